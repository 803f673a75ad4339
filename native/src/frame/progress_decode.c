/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "frame/progress_decode.h"

#include "common/mem.h"
#include "frame/frame_common.h"

#define MEMORY_DEFAULT ((uint64_t)2 << 30)

void glyd_progress_init(glyd_progress *progress, const glyd_limits *limits) {
  *progress = (glyd_progress){.total_content = 0};
  if (limits) progress->limits = *limits;
  if (progress->limits.max_output == 0) progress->limits.max_output = UINT64_MAX;
  if (progress->limits.max_memory == 0) progress->limits.max_memory = MEMORY_DEFAULT;
  if (progress->limits.max_segments == 0) progress->limits.max_segments = UINT64_MAX;
}

static glyd_status check_output(const glyd_progress *progress, uint64_t more, glyd_error *error) {
  const uint64_t most = progress->limits.max_output;
  if (more <= most && progress->total_content <= most - more) return GLYD_OK;
  const uint64_t sum = progress->total_content + more;
  return glyd_frame_fail(error, GLYD_E_LIMIT_OUTPUT, 0, most, sum < more ? UINT64_MAX : sum);
}

glyd_status glyd_progress_frame(glyd_progress *progress, const glyd_frame_info *frame, glyd_error *error) {
  progress->frames++;
  progress->frame = *frame;
  progress->content = 0;
  progress->stored = 0;
  progress->segments = 0;
  progress->last_content = frame->segment_size;
  progress->last_stored = 0;
  progress->index_size = 0;
  glyd_checksum_init(&progress->index);
  if (frame->is_skippable || frame->content_size == GLYD_SIZE_UNKNOWN) return GLYD_OK;
  return check_output(progress, frame->content_size, error);
}

glyd_status glyd_progress_segment(glyd_progress *progress, const glyd_segment_info *segment, glyd_error *error) {
  const uint64_t declared = progress->frame.content_size;
  if (declared != GLYD_SIZE_UNKNOWN && segment->content_size > declared - progress->content)
    return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, declared, progress->content + segment->content_size);
  const glyd_status status = check_output(progress, segment->content_size, error);
  if (status) return status;
  if (progress->total_segments >= progress->limits.max_segments)
    return glyd_frame_fail(error, GLYD_E_LIMIT_SEGMENTS, 0, progress->limits.max_segments,
                           progress->total_segments + 1);
  const uint64_t stored = segment->header_size + segment->payload_size;
  if (progress->frame.has_trailer) {
    uint8_t entry[GLYD_INDEX_ENTRY_MAX];
    const uint8_t *end =
        glyd_frame_put_index_entry(entry, segment->content_size, progress->last_content, stored, progress->last_stored);
    glyd_checksum_update(&progress->index, entry, (size_t)(end - entry));
    progress->index_size += (uint64_t)(end - entry);
  }
  progress->last_content = segment->content_size;
  progress->last_stored = stored;
  progress->content += segment->content_size;
  progress->stored += stored;
  progress->segments++;
  progress->total_content += segment->content_size;
  progress->total_segments++;
  return GLYD_OK;
}

int glyd_progress_complete(const glyd_progress *progress) { return progress->content == progress->frame.content_size; }

glyd_status glyd_progress_trailer(const glyd_progress *progress, glyd_error *error) {
  const uint64_t declared = progress->frame.content_size;
  if (declared == GLYD_SIZE_UNKNOWN || progress->content == declared) return GLYD_OK;
  return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, declared, progress->content);
}

uint64_t glyd_progress_trailer_size(const glyd_progress *progress) {
  return 1 + glyd_frame_varint_size(progress->segments) + progress->index_size + GLYD_TAIL_SIZE;
}

glyd_status glyd_progress_check_count(const glyd_progress *progress, uint64_t n, glyd_error *error) {
  if (n == progress->segments) return GLYD_OK;
  return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, progress->segments, n);
}

glyd_status glyd_progress_check_tail(const glyd_progress *progress, uint64_t entries_hash, const uint8_t *tail,
                                     uint64_t trailer_hash, glyd_error *error) {
  const uint32_t check = glyd_load32(tail + 20);
  if (check != (uint32_t)trailer_hash) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, check, (uint32_t)trailer_hash);
  const uint64_t index_hash = glyd_checksum_digest(&progress->index);
  if (entries_hash != index_hash) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, index_hash, entries_hash);
  const uint64_t content = glyd_load64(tail);
  if (content != progress->content) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, progress->content, content);
  const uint64_t trailer_size = glyd_progress_trailer_size(progress);
  const uint64_t size = progress->frame.header_size + progress->stored + trailer_size;
  const uint64_t frame_size = glyd_load64(tail + 8);
  if (frame_size != size) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, size, frame_size);
  const uint32_t stated = glyd_load32(tail + 16);
  if (stated != trailer_size) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, trailer_size, stated);
  return GLYD_OK;
}
