/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Layout of the elements of a fields piece (spec.md).
 */
#ifndef GLYD_FIELDS_COMMON_H
#define GLYD_FIELDS_COMMON_H

#include <stddef.h>
#include <stdint.h>

#define GLYD_FIELDS_RUNS_MAX 16u
#define GLYD_FIELDS_RUNS_MASK 0x0Fu /* of the first byte: runs - 1 */
#define GLYD_FIELDS_SIGN_MOVED 0x10u
#define GLYD_FIELDS_CUT_SHIFT 5u /* b, in two bits */
#define GLYD_FIELDS_CUT_MASK 0x60u
#define GLYD_FIELDS_RESERVED 0x80u
#define GLYD_FIELDS_BLOCK_MAX (1u << 18) /* content bytes: a plane may have no more */

#define GLYD_FIELDS_DIFFERENCE_BLOCK ((size_t)1 << 17) /* content bytes of a block of differences */

typedef struct glyd_fields_layout {
  uint32_t period;    /* bytes of an element: the sum of the runs */
  uint8_t n_runs;     /* 1 … GLYD_FIELDS_RUNS_MAX */
  uint8_t sign_moved; /* all runs are 1, period 2, 4 or 8 */
  uint8_t run[GLYD_FIELDS_RUNS_MAX];
} glyd_fields_layout;

/* Elements of a block, at least 8, when b is cut. */
static inline size_t glyd_fields_block(const glyd_fields_layout *layout, unsigned cut) {
  return (GLYD_FIELDS_BLOCK_MAX >> cut) / layout->period;
}

/* Whether elements are numbers of 1, 2, 4 or 8 bytes, byte by byte. */
static inline int glyd_fields_is_number(const glyd_fields_layout *layout) {
  const uint32_t p = layout->period;
  return layout->n_runs == p && (p == 1 || p == 2 || p == 4 || p == 8);
}

/* Loops that have a form of their own. */
enum { GLYD_FIELDS_SHAPE_RUNS = 0, GLYD_FIELDS_SHAPE_1 = 1, GLYD_FIELDS_SHAPE_2 = 2, GLYD_FIELDS_SHAPE_4 = 4 };

/* The form for a layout: 1, 2 or 4 bytes in as many runs, or any runs. */
static inline int glyd_fields_shape(const glyd_fields_layout *layout) {
  if (layout->n_runs != layout->period) return GLYD_FIELDS_SHAPE_RUNS;
  return layout->period == 1 || layout->period == 2 || layout->period == 4 ? (int)layout->period
                                                                           : GLYD_FIELDS_SHAPE_RUNS;
}

#endif
