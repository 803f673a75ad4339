/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "frame/header_encode.h"

#include "base/base_source.h"
#include "common/checksum.h"
#include "common/cpu.h"
#include "common/mem.h"
#include "frame/frame_common.h"
#include "object/object_common.h"

size_t glyd_header_encode_frame(const glyd_plan *plan, uint8_t *out) {
  const int known = plan->content_size != GLYD_SIZE_UNKNOWN;
  unsigned flags = (unsigned)plan->check;
  if (known) flags |= GLYD_FLAG_CONTENT_SIZE;
  if (plan->has_trailer) flags |= GLYD_FLAG_TRAILER;
  const int has_records = plan->base || plan->dictionary || plan->records || plan->cold || plan->containers;
  if (has_records) flags |= GLYD_FLAG_EXTENSIONS;
  glyd_store32(out, GLYD_FRAME_MAGIC);
  out[4] = GLYD_FORMAT_VERSION;
  out[5] = (uint8_t)flags;
  out[6] = (uint8_t)plan->level;
  out[7] = (uint8_t)plan->segment_log;
  out[8] = (uint8_t)glyd_frame_memory_code(plan->segment_log, plan->content_size, plan->base != NULL,
                                           plan->dictionary != NULL, plan->records, plan->cold, plan->containers);
  uint8_t *p = out + 9;
  if (known) p = glyd_put_varint(p, plan->content_size);
  if (has_records) { /* all lengths and types are below 128 */
    uint8_t *end = p + 1;
    if (plan->base) {
      uint8_t *const record = end + 2;
      memcpy(record, plan->base->id, GLYD_BASE_ID_SIZE);
      end[0] = GLYD_RECORD_BASE;
      uint8_t *const after = glyd_put_varint(record + GLYD_BASE_ID_SIZE, plan->base->size);
      end[1] = (uint8_t)(after - record);
      end = after;
    }
    if (plan->dictionary) {
      end[0] = GLYD_RECORD_DICTIONARY;
      end[1] = 4;
      glyd_store32(end + 2, plan->dictionary->id);
      end += 6;
    }
    if (plan->records) {
      *end++ = GLYD_RECORD_RECORDS;
      *end++ = 0;
    }
    if (plan->cold) {
      *end++ = GLYD_RECORD_COLD;
      *end++ = 0;
    }
    if (plan->containers) {
      *end++ = GLYD_RECORD_OPENED;
      *end++ = 0;
    }
    p[0] = (uint8_t)(end - p - 1);
    p = end;
  }
  const size_t n = (size_t)(p - out);
  glyd_store32(p, (uint32_t)glyd_checksum_xxh3(GLYD_CPU_SCALAR, out, n));
  return n + 4;
}

uint8_t *glyd_header_encode_segment(const glyd_plan *plan, int kind, uint64_t content, uint64_t payload, uint64_t check,
                                    uint8_t *end) {
  uint8_t header[GLYD_SEGMENT_HEADER_MAX];
  uint8_t *p = header;
  *p++ = (uint8_t)kind;
  p = glyd_put_varint(p, content);
  p = glyd_put_varint(p, payload);
  if (plan->check == GLYD_CHECK_XXH3_32) {
    glyd_store32(p, (uint32_t)check);
    p += 4;
  } else if (plan->check == GLYD_CHECK_XXH3_64) {
    glyd_store64(p, check);
    p += 8;
  }
  const size_t n = (size_t)(p - header);
  memcpy(end - n, header, n);
  return end - n;
}

size_t glyd_header_encode_segment_room(const glyd_plan *plan, uint64_t content) {
  uint8_t varint[10];
  const size_t check = plan->check == GLYD_CHECK_XXH3_32 ? 4 : plan->check == GLYD_CHECK_XXH3_64 ? 8 : 0;
  return 1 + 2 * (size_t)(glyd_put_varint(varint, content) - varint) + check;
}

size_t glyd_header_encode_trailer_prefix(uint64_t n, uint8_t *out) {
  out[0] = GLYD_KIND_END;
  return (size_t)(glyd_put_varint(out + 1, n) - out);
}

void glyd_header_encode_tail(uint64_t content_size, uint64_t frame_size, uint32_t trailer_size, uint8_t *out) {
  glyd_store64(out, content_size);
  glyd_store64(out + 8, frame_size);
  glyd_store32(out + 16, trailer_size);
}
