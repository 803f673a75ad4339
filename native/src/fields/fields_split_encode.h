/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Elements to planes: loops without checks.
 */
#ifndef GLYD_FIELDS_SPLIT_ENCODE_H
#define GLYD_FIELDS_SPLIT_ENCODE_H

#include "fields/fields_common.h"

/* Split n elements at in: plane j gets n * run[j] bytes, right after those of
 * plane j - 1 in out. Writes only out[0..n * period). */
void glyd_fields_split(unsigned cpu, const glyd_fields_layout *layout, uint8_t *out, const uint8_t *in, size_t n);

#endif
