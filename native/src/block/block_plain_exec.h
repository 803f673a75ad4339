/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Between the header of a plain block and the code that executes its
 * sequences: the planes, checked to lie inside the body, and where to write.
 */
#ifndef GLYD_BLOCK_PLAIN_EXEC_H
#define GLYD_BLOCK_PLAIN_EXEC_H

#include "block/block_common.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define GLYD_PLAIN_AVX2 1
#endif

/* Bytes that batches read past the end of a plane at most. */
#define GLYD_PLAIN_OVERREAD 288

typedef struct glyd_plain_view {
  const uint8_t *offset, *token, *ll, *ml, *far, *longs, *literal, *literal_end;
  const uint8_t *readable_end; /* literal_end plus slack */
  size_t n, n_offset;
  uint8_t length[16]; /* match lengths of the codes; [15]: of escape byte 0 */
  int repeat;
  const uint8_t *seg;
  uint8_t *op, *op_end, *out_end;
} glyd_plain_view;

/* The variants need GLYD_PLAIN_OVERREAD readable bytes from view->literal on. */
glyd_status glyd_plain_exec_portable(const glyd_plain_view *view);
#ifdef GLYD_PLAIN_AVX2
/* Needs AVX2, BMI1, BMI2, LZCNT and POPCNT. */
glyd_status glyd_plain_exec_avx2(const glyd_plain_view *view);
#endif

#endif
