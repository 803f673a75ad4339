/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Book-keeping of a decoder: sums that must agree and limits that must hold,
 * in constant memory. The index is not kept: its entries are hashed as the
 * segments come, and the trailer's are compared by hash.
 */
#ifndef GLYD_PROGRESS_DECODE_H
#define GLYD_PROGRESS_DECODE_H

#include <stdint.h>

#include "common/checksum.h"
#include "glyd/glyd.h"

typedef struct glyd_progress {
  glyd_limits limits; /* 0 resolved to the defaults */
  /* of the call or context */
  uint64_t total_content;
  uint64_t total_segments;
  uint64_t frames; /* skippable ones included */
  /* of the frame */
  glyd_frame_info frame;
  uint64_t content;
  uint64_t stored;
  uint64_t segments;
  uint64_t last_content;
  uint64_t last_stored;
  uint64_t index_size; /* bytes of the index entries so far */
  glyd_checksum_state index;
} glyd_progress;

/* limits may be NULL. */
void glyd_progress_init(glyd_progress *progress, const glyd_limits *limits);

/* A frame starts. LIMIT_OUTPUT when its declared content is too large. */
glyd_status glyd_progress_frame(glyd_progress *progress, const glyd_frame_info *frame, glyd_error *error);

/* A segment header (not of kind END) was read: check that it may come, count it. */
glyd_status glyd_progress_segment(glyd_progress *progress, const glyd_segment_info *segment, glyd_error *error);

/* 1 when no segment may follow because the declared content is complete. */
int glyd_progress_complete(const glyd_progress *progress);

/* The byte that ends the segments may come now? CORRUPT if content is missing. */
glyd_status glyd_progress_trailer(const glyd_progress *progress, glyd_error *error);

/* Size that the trailer must have, from the 0 byte to its end. */
uint64_t glyd_progress_trailer_size(const glyd_progress *progress);

/* Check what was read of a trailer: its prefix (0 byte and count) against the
 * count, hash of its entries, tail (GLYD_TAIL_SIZE bytes) with the hash of
 * everything before its last four bytes. */
glyd_status glyd_progress_check_count(const glyd_progress *progress, uint64_t n, glyd_error *error);
glyd_status glyd_progress_check_tail(const glyd_progress *progress, uint64_t entries_hash, const uint8_t *tail,
                                     uint64_t trailer_hash, glyd_error *error);

#endif
