/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading the numbers of copies (spec.md).
 */
#ifndef GLYD_BASE_COPIES_DECODE_H
#define GLYD_BASE_COPIES_DECODE_H

#include "base/base_common.h"
#include "huffman/huffman_decode.h"

typedef struct glyd_base_copies_decoder {
  glyd_huffman_table tables[GLYD_BASE_PLANES];
  uint8_t gaps[GLYD_BASE_GROUP * GLYD_BASE_NUMBER_MAX];
  uint8_t lengths[GLYD_BASE_GROUP * GLYD_BASE_NUMBER_MAX];
  uint8_t places[GLYD_BASE_GROUP * GLYD_BASE_PLACE_MAX];
} glyd_base_copies_decoder;

/* Read n copies from *in on and advance it; copies has room for n. Each lies
 * inside a base of base_size bytes, all of them and their gaps inside content
 * of len bytes, or the answer is CORRUPT. *rest: bytes of len that no copy
 * covers. */
glyd_status glyd_base_copies_decode(glyd_base_copies_decoder *d, unsigned cpu, glyd_plane_input *in, uint64_t base_size,
                                    size_t len, glyd_base_copy *copies, size_t n, size_t *rest);

#endif
