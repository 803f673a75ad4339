/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing opened segments (deflate/spec.md).
 */
#ifndef GLYD_OPENED_ENCODE_H
#define GLYD_OPENED_ENCODE_H

#include "frame/plan_encode.h"

/* Does the content seem to have streams that can be opened? Looks at their first blocks. */
int glyd_opened_encode_sniff(const uint8_t *in, size_t len);

/* Find streams in in[0..len), and encode it opened into out[0..cap); *size 0: there are none, or it does not fit.
 * Memory for that comes from the plan's allocator, and is freed before the return. */
glyd_status glyd_opened_encode(const glyd_plan *plan, const uint8_t *in, size_t len, uint8_t *out, size_t cap,
                               size_t *size, size_t *opened);

/* Most bytes that glyd_opened_encode allocates at once for a segment. */
uint64_t glyd_opened_encode_memory(const glyd_plan *plan);

/* Opened content of in[0..len) into out[0..cap), which the caller verifies; *size 0: there are no streams in it. */
uint64_t glyd_opened_encode_content_bound(uint64_t len);
glyd_status glyd_opened_encode_content(const uint8_t *in, size_t len, const glyd_allocator *allocator, uint8_t *out,
                                       size_t cap, size_t *size);

/* What becomes of the places where streams may begin: at most `cap` of them, in order; *n: all there are. */
glyd_status glyd_opened_encode_survey(const uint8_t *in, size_t len, const glyd_allocator *allocator,
                                      glyd_stream_info *streams, size_t cap, size_t *n);

#endif
