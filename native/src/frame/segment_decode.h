/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * One segment, from its payload to checked content.
 */
#ifndef GLYD_SEGMENT_DECODE_H
#define GLYD_SEGMENT_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/glyd.h"

/* Workspaces from here on come as new pages each time, which take a fifth of the time of reading records if they are
 * small ones (record/spec.md). */
#define GLYD_LARGE_WORKSPACE ((uint64_t)24 << 20)

/* Bytes of workspace, aligned to 64, for segments of this kind and size in the frame; 0: none. */
uint64_t glyd_segment_decode_workspace(const glyd_frame_info *frame, int kind, uint64_t content_size);

/* The most that any segment of the frame needs that has so much content. */
uint64_t glyd_segment_decode_workspace_max(const glyd_frame_info *frame, uint64_t content_size);

/* BASE_MISSING, BASE_WRONG, DICT_MISSING or DICT_WRONG unless there is what the
 * frame names, if it names something. */
glyd_status glyd_segment_decode_check(const glyd_frame_info *frame, const glyd_references *references,
                                      glyd_error *error);

/* Decode segment->content_size bytes into out from segment->payload_size bytes
 * at payload; nothing else is read or written. references: checked for the
 * frame. Offsets in error are 0: the segment's start. */
glyd_status glyd_segment_decode(unsigned cpu, void *workspace, const glyd_references *references,
                                const glyd_frame_info *frame, const glyd_segment_info *segment, uint8_t *out,
                                const uint8_t *payload, glyd_error *error);

#endif
