/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Changing content back.
 */
#ifndef GLYD_FILTER_DECODE_H
#define GLYD_FILTER_DECODE_H

#include "filter/filter_common.h"

/* Read the head of a payload; returns the bytes it takes, 0 when it is corrupt. */
size_t glyd_filter_read(const uint8_t *in, size_t len, glyd_filter *filter);

/* Change n bytes, at most 2^30, back in place. */
void glyd_filter_undo(unsigned cpu, const glyd_filter *filter, uint8_t *data, size_t n);

#endif
