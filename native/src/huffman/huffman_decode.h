/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading planes (spec.md).
 */
#ifndef GLYD_HUFFMAN_DECODE_H
#define GLYD_HUFFMAN_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/status.h"
#include "huffman/huffman_common.h"

/* A code, its symbols in the order of their values. */
typedef struct glyd_huffman_lengths {
  unsigned n;
  unsigned of_length[GLYD_HUFFMAN_BITS + 1]; /* how many codes there are of each length */
  uint8_t symbol[256];
  uint8_t length[256];
} glyd_huffman_lengths;

/* Decoding table of a code; also the "last table" of a kind of plane. */
typedef struct glyd_huffman_table {
  glyd_huffman_lengths code;
  uint16_t entry[1 << GLYD_HUFFMAN_BITS]; /* indexed by the next bits: symbol << 8 | code length */
  uint32_t bits;                          /* length of the index; 0: no table yet, set it at the start of a segment */
} glyd_huffman_table;

/* Input of a body: [at, end) is left to read, [end, readable) may be loaded
 * from but means nothing. */
typedef struct glyd_plane_input {
  const uint8_t *at;
  const uint8_t *end;
  const uint8_t *readable;
} glyd_plane_input;

/* Read the plane at in->at, at most max_n bytes of content, and advance in->at.
 * out has room for max_n bytes. *data is where the *n bytes are: out or, for a raw plane, the
 * input itself if slack bytes after the plane are readable there. slack
 * SIZE_MAX always gives out. Writes only out[0..max_n). */
glyd_status glyd_huffman_decode_plane(unsigned cpu, glyd_huffman_table *table, glyd_plane_input *in, uint8_t *out,
                                      size_t max_n, size_t slack, const uint8_t **data, size_t *n);

#endif
