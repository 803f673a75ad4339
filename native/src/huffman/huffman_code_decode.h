/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What readers of planes, with and without contexts, share.
 */
#ifndef GLYD_HUFFMAN_CODE_DECODE_H
#define GLYD_HUFFMAN_CODE_DECODE_H

#include "huffman/huffman_decode.h"

/* Read code lengths at in->at, or differences from those of code (which has a
 * code then), and make the table of *bits bits. entry has room for
 * GLYD_HUFFMAN_BITS bits. */
glyd_status glyd_huffman_read_code(glyd_plane_input *in, int differences, glyd_huffman_lengths *code, uint16_t *entry,
                                   unsigned *bits);

/* Head of a plane, whose mode takes so many bits: at most max_n bytes; a plane of 0 bytes has mode 0. */
glyd_status glyd_huffman_read_head(glyd_plane_input *in, unsigned mode_bits, size_t max_n, size_t *n, unsigned *mode);

/* The n bytes, 1 or more, of a plane of modes 0 to 3 or 7 (others are refused), as
 * glyd_huffman_decode_plane. */
glyd_status glyd_huffman_decode_mode(unsigned cpu, unsigned mode, glyd_huffman_table *table, glyd_plane_input *in,
                                     uint8_t *out, size_t slack, const uint8_t **data, size_t n);

#endif
