/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Finding the filter that content may gain by, and changing it.
 */
#ifndef GLYD_FILTER_ENCODE_H
#define GLYD_FILTER_ENCODE_H

#include "filter/filter_common.h"

/* The filter that n bytes may gain by, judged by samples, and where that shows; returns 0 if there is none. */
int glyd_filter_suggest(const uint8_t *in, size_t n, glyd_filter *filter, size_t *where);

/* Write the head of a payload, GLYD_FILTER_HEAD_MAX bytes of room; returns its end. */
uint8_t *glyd_filter_write(const glyd_filter *filter, uint8_t *out);

/* Change n bytes, at most 2^30, in place. */
void glyd_filter_apply(const glyd_filter *filter, uint8_t *data, size_t n);

#endif
