/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Planes back to elements: loops without checks.
 */
#ifndef GLYD_FIELDS_JOIN_DECODE_H
#define GLYD_FIELDS_JOIN_DECODE_H

#include "fields/fields_common.h"

/* Write n elements to out[0..n * period). plane[j] has n * run[j] bytes and
 * nothing past them is read. */
void glyd_fields_join(unsigned cpu, const glyd_fields_layout *layout, uint8_t *out,
                      const uint8_t *const plane[GLYD_FIELDS_RUNS_MAX], size_t n);

#endif
