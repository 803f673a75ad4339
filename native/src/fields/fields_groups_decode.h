/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Numbers of difference pieces to their places: loops without checks.
 */
#ifndef GLYD_FIELDS_GROUPS_DECODE_H
#define GLYD_FIELDS_GROUPS_DECODE_H

#include "fields/fields_groups.h"

#define GLYD_FIELDS_GROUPS_SLACK 32u /* bytes behind numbers that may be read */

/* Where the numbers of a byte of bits go. Set made to 0 before the first use. */
typedef struct glyd_fields_ranks {
  int made;
  uint8_t of_2[256][16]; /* to shuffle bytes of eight numbers by */
  uint8_t of_4[256][8];  /* to permute eight numbers by; 255: 0 */
} glyd_fields_ranks;

/* Put the numbers of period bytes at from, each 1 larger, to where the n bits are set, and zeros to the others. Returns
 * 0 when one of the k numbers gets too large. Slack lies behind the numbers at from. */
int glyd_fields_spread(unsigned cpu, glyd_fields_ranks *ranks, uint8_t *out, const uint8_t *from, const uint8_t *bitmap,
                       size_t n, size_t k, size_t period);

/* Add the differences of n numbers of 2 or 4 bytes, zigzag, that lie group by group, to the older ones. Slack lies
 * behind the last group. */
void glyd_fields_groups_merge(unsigned cpu, glyd_fields_ranks *ranks, uint8_t *out, const uint8_t *older,
                              const uint8_t *grouped, const uint8_t *group,
                              const uint32_t start[GLYD_FIELDS_GROUPS_MAX + 1], size_t n, size_t period);

#endif
