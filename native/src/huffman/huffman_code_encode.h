/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What writers of planes, with and without contexts, share.
 */
#ifndef GLYD_HUFFMAN_CODE_ENCODE_H
#define GLYD_HUFFMAN_CODE_ENCODE_H

#include "huffman/huffman_codes.h"
#include "huffman/huffman_common.h"
#include "huffman/huffman_encode.h"

#define GLYD_HUFFMAN_LENGTHS_BUFFER (GLYD_HUFFMAN_LENGTHS_BYTES + 1024) /* and what is written past the end */

/* Write the code lengths, GLYD_HUFFMAN_LENGTHS_BUFFER bytes of room; returns the end. */
uint8_t *glyd_huffman_put_lengths(uint8_t *out, const uint8_t length[256]);

/* The same as differences from the lengths of another code, which has at least two symbols. */
uint8_t *glyd_huffman_put_differences(uint8_t *out, const uint8_t last[256], const uint8_t length[256]);

/* glyd_huffman_encode_plane_above with so many bits of the head for the mode. */
uint8_t *glyd_huffman_encode_plane_headed(unsigned cpu, uint8_t *out, const uint8_t *in, size_t n,
                                          const uint32_t *counts, glyd_huffman_code *last, unsigned gain_shift,
                                          unsigned head_bits);

#endif
