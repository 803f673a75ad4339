/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading the payload of a filtered segment.
 */
#ifndef GLYD_SEGMENT_FILTER_DECODE_H
#define GLYD_SEGMENT_FILTER_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/status.h"

/* Decode in[0..in_len) into out[0..out_len), exactly. workspace: that of glyd_lz_decode. */
glyd_status glyd_segment_filter_decode(unsigned cpu, void *workspace, uint8_t *out, size_t out_len, const uint8_t *in,
                                       size_t in_len);

#endif
