/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What both sides of the frame share: sizes that follow from other sizes, and
 * the way errors are filled in. docs/format.md has the bytes.
 */
#ifndef GLYD_FRAME_COMMON_H
#define GLYD_FRAME_COMMON_H

#include <stdint.h>

#include "cold/cold_memory.h"
#include "common/mem.h"
#include "frame/opened_common.h"
#include "glyd/glyd.h"
#include "record/record_common.h"
#include "segment/segment_dictionary_common.h"

/* A payload may exceed its content by this much (docs/format.md). */
#define GLYD_PAYLOAD_SLACK 4096u

/* Headers claim less than 2^63 bytes, so that sums of two never wrap. */
#define GLYD_CONTENT_SIZE_MAX ((uint64_t)INT64_MAX)

/* Fill error (may be NULL) and return its status. */
static inline glyd_status glyd_frame_fail(glyd_error *error, glyd_status status, uint64_t offset, uint64_t expected,
                                          uint64_t found) {
  if (error) *error = (glyd_error){.status = status, .offset = offset, .expected = expected, .found = found};
  return status;
}

/* Bytes a check of this GLYD_CHECK_* takes: 0, 4 or 8. */
static inline unsigned glyd_frame_check_size(int check) { return (unsigned)check * 4u; }

/* The part of an XXH3-64 value that a check of this kind stores. */
static inline uint64_t glyd_frame_check_value(int check, uint64_t hash) {
  if (check == GLYD_CHECK_NONE) return 0;
  return check == GLYD_CHECK_XXH3_32 ? hash & 0xFFFFFFFFu : hash;
}

/* Content bytes the largest segment can have. */
static inline uint64_t glyd_frame_content_max(unsigned segment_log, uint64_t content_size) {
  const uint64_t segment = (uint64_t)1 << segment_log;
  return content_size < segment ? content_size : segment;
}

static inline uint64_t glyd_frame_memory_value(unsigned code) { return (uint64_t)(8 + code % 8) << (code / 8 + 10); }

/* The memory code of a frame: the smallest that covers one segment and 1 MiB,
 * with a base the copies of a segment, with a dictionary what is laid behind it, with records what rebuilding them takes,
 * with cold segments the model, with opened ones what is inside. */
static inline unsigned glyd_frame_memory_code(unsigned segment_log, uint64_t content_size, int has_base,
                                              int has_dictionary, int has_records, int has_cold, int has_opened) {
  const uint64_t content = glyd_frame_content_max(segment_log, content_size);
  uint64_t need = (has_base ? 3 : 2) * content + GLYD_PAYLOAD_SLACK + (1u << 20);
  uint64_t most = content; /* of a segment, or one inside */
  if (has_opened) {
    const uint64_t inner = glyd_opened_inner_max(content);
    need += glyd_opened_area_max(content) + GLYD_OPENED_REBUILD_MEMORY;
    if (inner > most) most = inner;
  }
  if (has_records) need += glyd_record_decode_memory(most);
  if (has_dictionary) need += GLYD_SEGMENT_DICTIONARY_MEMORY;
  if (has_cold) {
    const uint64_t after = has_dictionary ? glyd_segment_dictionary_first(content) + GLYD_DICTIONARY_CONTENT_MAX : 0;
    need += glyd_cold_memory(after > most ? after : most);
  }
  unsigned code = 0;
  while (glyd_frame_memory_value(code) < need) code++;
  return code;
}

static inline uint64_t glyd_frame_zigzag(uint64_t now, uint64_t before) {
  const uint64_t d = now - before;
  return (d << 1) ^ (0 - (d >> 63));
}

/* One entry of the index: two varints, at most this long for sizes up to 2^31. */
#define GLYD_INDEX_ENTRY_MAX 10u

static inline uint8_t *glyd_frame_put_index_entry(uint8_t *p, uint64_t content, uint64_t content_before,
                                                  uint64_t stored, uint64_t stored_before) {
  p = glyd_put_varint(p, glyd_frame_zigzag(content, content_before));
  return glyd_put_varint(p, glyd_frame_zigzag(stored, stored_before));
}

static inline unsigned glyd_frame_varint_size(uint64_t v) {
  unsigned n = 1;
  for (; v >= 128; v >>= 7) n++;
  return n;
}

#endif
