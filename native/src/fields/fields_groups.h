/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Groups of numbers of a difference piece by their size in the base: a step of
 * training is as large for all, so the smaller a number, the more units in its
 * last place.
 */
#ifndef GLYD_FIELDS_GROUPS_H
#define GLYD_FIELDS_GROUPS_H

#include "common/mem.h"
#include "fields/fields_common.h"

#define GLYD_FIELDS_GROUPS_MAX 4u
#define GLYD_FIELDS_SPARSE 0x80u /* of the first byte of a group: numbers that are 0 are left out */

typedef struct glyd_fields_groups {
  unsigned n;
  uint8_t bounds[GLYD_FIELDS_GROUPS_MAX]; /* n - 1: classes from which on it is the next group, ascending */
  uint8_t of[256];                        /* by the class of a number */
} glyd_fields_groups;

/* Whether numbers of so many bytes may have groups. */
GLYD_INLINE int glyd_fields_may_group(size_t period) { return period == 2 || period == 4; }

/* The upper byte of the upper 16 bits of the number at p, moved left by one bit: what the exponent of most formats fills. */
GLYD_INLINE unsigned glyd_fields_class(const uint8_t *p, size_t period) {
  return glyd_load16(p + period - 2) >> 7 & 255;
}

GLYD_INLINE void glyd_fields_groups_set(glyd_fields_groups *groups, unsigned n, const uint8_t *bounds) {
  groups->n = n;
  memcpy(groups->bounds, bounds, n - 1);
  for (unsigned c = 0, g = 0; c < 256; c++) {
    while (g + 1 < n && bounds[g] <= c) g++;
    groups->of[c] = (uint8_t)g;
  }
}

/* Counts of groups that grow one by one: four of 16 bits, of which the last that is full is never looked at again. */
GLYD_INLINE uint32_t glyd_fields_groups_next(uint64_t *counts, unsigned group) {
  const unsigned shift = 16 * group;
  const uint32_t next = (uint32_t)(*counts >> shift) & 0xFFFF;
  *counts += (uint64_t)1 << shift;
  return next;
}

/* The group of each of n numbers, at most 2^16, and where each group starts if they lie one after the other. */
void glyd_fields_groups_find(unsigned cpu, const glyd_fields_groups *groups, const uint8_t *older, size_t n,
                             size_t period, uint8_t *group, uint32_t start[GLYD_FIELDS_GROUPS_MAX + 1]);

#endif
