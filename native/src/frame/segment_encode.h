/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * One segment, from content to header and payload.
 */
#ifndef GLYD_SEGMENT_ENCODE_H
#define GLYD_SEGMENT_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "frame/plan_encode.h"

/* Buffer that does for len bytes of content, with the payload GLYD_SEGMENT_HEADER_MAX after its start. */
#define GLYD_SEGMENT_BUFFER(len) ((uint64_t)(len) + GLYD_SEGMENT_HEADER_MAX)

/* Bytes of workspace, aligned to 64. */
uint64_t glyd_segment_encode_workspace(const glyd_plan *plan);

/* at: where the content lies in that of its frame, or GLYD_SIZE_UNKNOWN.
 * Encode in[0..len), 1 <= len <= plan->lz.segment_size. The payload is put into
 * payload[0..len), its header right before it, in room of
 * glyd_header_encode_segment_room(plan, len) bytes. The segment is *size bytes
 * from *start. */
glyd_status glyd_segment_encode(const glyd_plan *plan, void *workspace, uint64_t at, const uint8_t *in, size_t len,
                                uint8_t *payload, const uint8_t **start, size_t *size);

/* Is the segment at start a record, or an opened one, which may hold some? */
int glyd_segment_may_be_record(const uint8_t *start);

#endif
