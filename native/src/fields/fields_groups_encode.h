/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Numbers of difference pieces apart: by groups, and those that are 0 from the
 * others. Loops without checks.
 */
#ifndef GLYD_FIELDS_GROUPS_ENCODE_H
#define GLYD_FIELDS_GROUPS_ENCODE_H

#include "fields/fields_groups.h"

#define GLYD_FIELDS_GROUPS_SPARE 32u /* bytes behind numbers that may be written */

/* Where the numbers of a byte of bits come from. Set made to 0 before the first use. */
typedef struct glyd_fields_picks {
  int made;
  uint8_t of_2[256][16]; /* to shuffle bytes of eight numbers by */
  uint8_t of_4[256][8];  /* to permute eight numbers by */
} glyd_fields_picks;

/* Put each of n numbers of 2 bytes to those of its group, which have room for all and what may be written behind. */
void glyd_fields_groups_split(unsigned cpu, glyd_fields_picks *picks, uint8_t *const to[GLYD_FIELDS_GROUPS_MAX],
                              const uint8_t *numbers, const uint8_t *group, size_t n);

/* Numbers of period bytes that are not 0, less 1, to to, which has room for all and what may be written behind, and a
 * bit for each of n numbers that says whether it is one. Returns how many. */
size_t glyd_fields_drop_zeros(unsigned cpu, glyd_fields_picks *picks, uint8_t *to, uint8_t *bitmap,
                              const uint8_t *numbers, size_t n, size_t period);

#endif
