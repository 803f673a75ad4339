/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing the numbers of copies (spec.md).
 */
#ifndef GLYD_BASE_COPIES_ENCODE_H
#define GLYD_BASE_COPIES_ENCODE_H

#include "base/base_common.h"
#include "glyd/status.h"
#include "huffman/huffman_encode.h"

typedef struct glyd_base_copies_encoder {
  glyd_huffman_code last[GLYD_BASE_PLANES];
  uint8_t gaps[GLYD_BASE_GROUP * GLYD_BASE_NUMBER_MAX];
  uint8_t lengths[GLYD_BASE_GROUP * GLYD_BASE_NUMBER_MAX];
  uint8_t places[GLYD_BASE_GROUP * GLYD_BASE_PLACE_MAX];
  uint8_t out[GLYD_BASE_GROUP * (2 * GLYD_BASE_NUMBER_MAX + GLYD_BASE_PLACE_MAX) + 3 * GLYD_HUFFMAN_PLANE_BOUND(0)];
} glyd_base_copies_encoder;

/* Write n copies to out[0..cap). Sets *size; BUFFER when they do not fit. */
glyd_status glyd_base_copies_encode(glyd_base_copies_encoder *e, unsigned cpu, const glyd_base_copy *copies, size_t n,
                                    uint8_t *out, size_t cap, size_t *size);

#endif
