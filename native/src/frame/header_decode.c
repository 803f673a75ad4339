/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "frame/header_decode.h"

#include "common/cpu.h"
#include "common/mem.h"
#include "frame/frame_common.h"

/* MAGIC unless the first bytes can be those of a frame or a skippable frame. */
static int magic_possible(const uint8_t *in, size_t len) {
  uint8_t magics[8];
  glyd_store32(magics, GLYD_FRAME_MAGIC);
  glyd_store32(magics + 4, GLYD_SKIPPABLE_MAGIC);
  const size_t n = len < 4 ? len : 4;
  return n == 0 || memcmp(in, magics, n) == 0 || memcmp(in, magics + 4, n) == 0;
}

static uint64_t low_bytes(const uint8_t *in, size_t len) {
  uint64_t v = 0;
  for (size_t i = 0; i < len && i < 4; i++) v |= (uint64_t)in[i] << (8 * i);
  return v;
}

static glyd_status decode_skippable(const uint8_t *in, size_t len, glyd_frame_info *info, glyd_error *error) {
  if (len < GLYD_SKIPPABLE_HEADER_SIZE)
    return glyd_frame_fail(error, GLYD_E_TRUNCATED, 0, GLYD_SKIPPABLE_HEADER_SIZE, len);
  const uint32_t check = (uint32_t)glyd_checksum_xxh3(GLYD_CPU_SCALAR, in, 16);
  const uint32_t stored = glyd_load32(in + 16);
  if (check != stored) return glyd_frame_fail(error, GLYD_E_HEADER, 0, stored, check);
  *info = (glyd_frame_info){.header_size = GLYD_SKIPPABLE_HEADER_SIZE,
                            .is_skippable = 1,
                            .skip_tag = glyd_load32(in + 4),
                            .skip_size = glyd_load64(in + 8)};
  return GLYD_OK;
}

/* A varint of the header: TRUNCATED asks for one more byte and what must follow. */
static glyd_status header_varint(const uint8_t *in, size_t len, size_t *at, size_t after, uint64_t *v,
                                 glyd_error *error) {
  const uint8_t *p = glyd_get_varint(in + *at, in + len, v);
  if (!p && *v == 1) return glyd_frame_fail(error, GLYD_E_TRUNCATED, 0, len + 1 + after, len);
  if (!p) return glyd_frame_fail(error, GLYD_E_HEADER, 0, 0, in[*at]);
  *at = (size_t)(p - in);
  return GLYD_OK;
}

glyd_status glyd_header_decode_prefix(const uint8_t *in, size_t len, glyd_header_prefix *prefix, glyd_error *error) {
  *prefix = (glyd_header_prefix){.size = 0};
  if (!magic_possible(in, len)) return glyd_frame_fail(error, GLYD_E_MAGIC, 0, GLYD_FRAME_MAGIC, low_bytes(in, len));
  if (len >= 4 && glyd_load32(in) == GLYD_SKIPPABLE_MAGIC) {
    prefix->size = GLYD_SKIPPABLE_HEADER_SIZE;
    return decode_skippable(in, len, &prefix->info, error);
  }
  if (len >= 5 && in[4] != GLYD_FORMAT_VERSION)
    return glyd_frame_fail(error, GLYD_E_VERSION, 0, GLYD_FORMAT_VERSION, in[4]);
  if (len < 9) return glyd_frame_fail(error, GLYD_E_TRUNCATED, 0, GLYD_HEADER_MIN, len);

  glyd_frame_info *info = &prefix->info;
  prefix->flags = in[5];
  prefix->segment_log = in[7];
  prefix->memory_code = in[8];
  info->version = in[4];
  info->level = in[6];
  info->check = prefix->flags & GLYD_FLAG_CHECK_MASK;
  info->has_trailer = (prefix->flags & GLYD_FLAG_TRAILER) != 0;
  info->content_size = GLYD_SIZE_UNKNOWN;
  const int extended = (prefix->flags & GLYD_FLAG_EXTENSIONS) != 0;
  size_t at = 9;
  uint64_t v = 0;
  if (prefix->flags & GLYD_FLAG_CONTENT_SIZE) {
    const glyd_status status = header_varint(in, len, &at, extended ? 5 : 4, &v, error);
    if (status) return status;
    info->content_size = v;
  }
  if (extended) {
    const glyd_status status = header_varint(in, len, &at, 4, &v, error);
    if (status) return status;
    if (v > GLYD_EXTENSIONS_MAX) return glyd_frame_fail(error, GLYD_E_HEADER, 0, GLYD_EXTENSIONS_MAX, v);
    prefix->extensions_size = (uint32_t)v;
  }
  prefix->size = (uint32_t)at;
  info->header_size = prefix->size + prefix->extensions_size + 4;
  return GLYD_OK;
}

void glyd_header_decode_extensions(glyd_extension_reader *reader, const uint8_t *in, size_t len) {
  for (size_t i = 0; i < len && !reader->malformed;) {
    if (reader->skip > 0) {
      const uint64_t n = reader->skip < len - i ? reader->skip : len - i;
      if (reader->type == GLYD_RECORD_BASE) {
        memcpy(reader->base + reader->base_size, in + i, (size_t)n);
        reader->base_size += (uint32_t)n;
      }
      if (reader->type == GLYD_RECORD_DICTIONARY && reader->has_dictionary) /* little-endian, the lowest byte first */
        for (uint64_t k = 0; k < n; k++)
          reader->dictionary_id |= (uint32_t)in[i + k] << (8 * (GLYD_RECORD_DICTIONARY_SIZE - reader->skip + k));
      reader->skip -= n;
      i += (size_t)n;
      continue;
    }
    const uint64_t b = in[i++];
    if ((reader->shift == 63 && b > 1) || (b == 0 && reader->shift != 0)) {
      reader->malformed = 1;
      return;
    }
    reader->value |= (b & 127) << reader->shift;
    reader->shift += 7;
    if (b >= 128) continue;
    if (reader->in_length) {
      reader->skip = reader->value;
      if (reader->type == GLYD_RECORD_BASE) {
        if (reader->has_base || reader->skip > GLYD_RECORD_BASE_MAX) {
          reader->malformed = 1;
          return;
        }
        reader->has_base = 1;
      }
      if (reader->type == GLYD_RECORD_DICTIONARY) {
        if (reader->has_dictionary) {
          reader->malformed = 1;
          return;
        }
        if (reader->skip == GLYD_RECORD_DICTIONARY_SIZE)
          reader->has_dictionary = 1;
        else if (reader->required == 0)
          reader->required = reader->type; /* of a later version */
      }
      if (reader->type == GLYD_RECORD_RECORDS || reader->type == GLYD_RECORD_COLD ||
          reader->type == GLYD_RECORD_OPENED) {
        int *const has = reader->type == GLYD_RECORD_RECORDS ? &reader->has_records
                         : reader->type == GLYD_RECORD_COLD  ? &reader->has_cold
                                                             : &reader->has_opened;
        if (*has) {
          reader->malformed = 1;
          return;
        }
        if (reader->skip == 0)
          *has = 1;
        else if (reader->required == 0)
          reader->required = reader->type; /* of a later version */
      }
    } else {
      reader->type = reader->value;
      const int known = reader->type == GLYD_RECORD_BASE || reader->type == GLYD_RECORD_DICTIONARY ||
                        reader->type == GLYD_RECORD_RECORDS || reader->type == GLYD_RECORD_COLD ||
                        reader->type == GLYD_RECORD_OPENED;
      if ((reader->type & 1) && !known && reader->required == 0) reader->required = reader->type;
    }
    reader->in_length = !reader->in_length;
    reader->value = 0;
    reader->shift = 0;
  }
}

/* The base record: id and size, nothing else. */
static glyd_status decode_base(const glyd_extension_reader *extensions, glyd_frame_info *info, glyd_error *error) {
  const uint8_t *const end = extensions->base + extensions->base_size;
  const uint8_t *at = NULL;
  uint64_t size = 0;
  if (extensions->base_size > sizeof info->base_id)
    at = glyd_get_varint(extensions->base + sizeof info->base_id, end, &size);
  if (at != end || size > GLYD_CONTENT_SIZE_MAX)
    return glyd_frame_fail(error, GLYD_E_HEADER, 0, GLYD_RECORD_BASE_MAX, extensions->base_size);
  info->has_base = 1;
  info->base_size = size;
  memcpy(info->base_id, extensions->base, sizeof info->base_id);
  return GLYD_OK;
}

glyd_status glyd_header_decode_finish(glyd_header_prefix *prefix, const glyd_extension_reader *extensions,
                                      uint64_t hash, uint32_t stored_check, glyd_error *error) {
  glyd_frame_info *info = &prefix->info;
  if ((uint32_t)hash != stored_check) return glyd_frame_fail(error, GLYD_E_HEADER, 0, stored_check, (uint32_t)hash);
  if (prefix->flags & GLYD_FLAG_RESERVED)
    return glyd_frame_fail(error, GLYD_E_FEATURE, 0, 0, prefix->flags & GLYD_FLAG_RESERVED);
  if (info->check > GLYD_CHECK_XXH3_64) return glyd_frame_fail(error, GLYD_E_FEATURE, 0, GLYD_CHECK_XXH3_64, 3);
  if (prefix->segment_log < GLYD_SEGMENT_LOG_MIN || prefix->segment_log > GLYD_SEGMENT_LOG_MAX)
    return glyd_frame_fail(error, GLYD_E_HEADER, 0, GLYD_SEGMENT_LOG_MAX, prefix->segment_log);
  const int known = info->content_size != GLYD_SIZE_UNKNOWN || (prefix->flags & GLYD_FLAG_CONTENT_SIZE);
  if (known && info->content_size > GLYD_CONTENT_SIZE_MAX)
    return glyd_frame_fail(error, GLYD_E_HEADER, 0, GLYD_CONTENT_SIZE_MAX, info->content_size);
  if (!known && !info->has_trailer) return glyd_frame_fail(error, GLYD_E_HEADER, 0, GLYD_FLAG_TRAILER, prefix->flags);
  const unsigned code =
      glyd_frame_memory_code(prefix->segment_log, info->content_size, extensions->has_base, extensions->has_dictionary,
                             extensions->has_records, extensions->has_cold, extensions->has_opened);
  if (code != prefix->memory_code) return glyd_frame_fail(error, GLYD_E_HEADER, 0, code, prefix->memory_code);
  if (extensions->malformed || extensions->skip || extensions->shift || extensions->in_length)
    return glyd_frame_fail(error, GLYD_E_HEADER, 0, prefix->extensions_size, extensions->skip);
  if (extensions->required) return glyd_frame_fail(error, GLYD_E_FEATURE, 0, 0, extensions->required);
  if (extensions->has_base && extensions->has_dictionary)
    return glyd_frame_fail(error, GLYD_E_HEADER, 0, GLYD_RECORD_BASE, GLYD_RECORD_DICTIONARY);
  info->has_dictionary = extensions->has_dictionary;
  info->dictionary_id = extensions->dictionary_id;
  info->has_records = extensions->has_records;
  info->has_cold = extensions->has_cold;
  info->has_opened = extensions->has_opened;
  return extensions->has_base ? decode_base(extensions, info, error) : GLYD_OK;
}

glyd_status glyd_header_decode_frame(const uint8_t *in, size_t len, glyd_frame_info *info, glyd_error *error) {
  glyd_header_prefix prefix;
  glyd_status status = glyd_header_decode_prefix(in, len, &prefix, error);
  if (status) return status;
  if (!prefix.info.is_skippable) {
    const size_t size = prefix.info.header_size;
    if (len < size) return glyd_frame_fail(error, GLYD_E_TRUNCATED, 0, size, len);
    glyd_extension_reader extensions = {.value = 0};
    glyd_header_decode_extensions(&extensions, in + prefix.size, prefix.extensions_size);
    const uint64_t hash = glyd_checksum_xxh3(GLYD_CPU_SCALAR, in, size - 4);
    status = glyd_header_decode_finish(&prefix, &extensions, hash, glyd_load32(in + size - 4), error);
    if (status) return status;
    prefix.info.segment_size = (uint64_t)1 << prefix.segment_log;
    prefix.info.decoder_memory = glyd_frame_memory_value(prefix.memory_code);
  }
  *info = prefix.info;
  return GLYD_OK;
}

static int kind_known(int kind) {
  return (kind >= GLYD_KIND_RAW && kind <= GLYD_KIND_BASE) || kind == GLYD_KIND_WEIGHTS || kind == GLYD_KIND_COLD ||
         kind == GLYD_KIND_FILTERED || kind == GLYD_KIND_OPENED || kind == GLYD_KIND_DICTIONARY;
}

glyd_status glyd_header_decode_segment(const uint8_t *in, size_t len, const glyd_frame_info *frame,
                                       glyd_segment_info *segment, glyd_error *error) {
  *segment = (glyd_segment_info){.kind = GLYD_KIND_END};
  if (len < 1) return glyd_frame_fail(error, GLYD_E_TRUNCATED, 0, 1, 0);
  const int kind = in[0];
  if (kind == GLYD_KIND_END) {
    if (!frame->has_trailer) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, GLYD_KIND_RAW, GLYD_KIND_END);
    segment->header_size = 1;
    return GLYD_OK;
  }
  if (!kind_known(kind)) return glyd_frame_fail(error, GLYD_E_FEATURE, 0, GLYD_KIND_LZ, (uint64_t)kind);
  if (kind == GLYD_KIND_RECORD && !frame->has_records)
    return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, GLYD_KIND_LZ, (uint64_t)kind);
  if (kind == GLYD_KIND_OPENED && !frame->has_opened)
    return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, GLYD_KIND_LZ, (uint64_t)kind);
  if (kind == GLYD_KIND_COLD && !frame->has_cold)
    return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, GLYD_KIND_LZ, (uint64_t)kind);
  if (kind == GLYD_KIND_DICTIONARY && !frame->has_dictionary)
    return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, GLYD_KIND_LZ, (uint64_t)kind);
  if (kind == GLYD_KIND_BASE && !frame->has_base)
    return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, GLYD_KIND_LZ, (uint64_t)kind);

  const unsigned check_size = glyd_frame_check_size(frame->check);
  uint64_t sizes[2];
  const uint8_t *p = in + 1;
  for (unsigned i = 0; i < 2; i++) {
    const uint8_t *next = glyd_get_varint(p, in + len, &sizes[i]);
    /* Five bytes without an end are beyond any size: no need to wait for more. */
    if (!next && sizes[i] == 1 && in + len - p < 5)
      return glyd_frame_fail(error, GLYD_E_TRUNCATED, 0, len + 1 + (1 - i) + check_size, len);
    if (!next) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, frame->segment_size, *p);
    p = next;
    const uint64_t most = i == 0 ? glyd_frame_content_max(GLYD_SEGMENT_LOG_MAX, frame->content_size) : sizes[0];
    const uint64_t limit =
        i == 0 ? (most < frame->segment_size ? most : frame->segment_size) : most + GLYD_PAYLOAD_SLACK;
    if (sizes[i] == 0 || sizes[i] > limit) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, limit, sizes[i]);
  }
  if (kind == GLYD_KIND_RAW && sizes[1] != sizes[0])
    return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, sizes[0], sizes[1]);
  if (kind == GLYD_KIND_FILL && sizes[1] != 1) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, 1, sizes[1]);
  const size_t size = (size_t)(p - in) + check_size;
  if (len < size) return glyd_frame_fail(error, GLYD_E_TRUNCATED, 0, size, len);
  segment->kind = kind;
  segment->header_size = (uint32_t)size;
  segment->content_size = sizes[0];
  segment->payload_size = sizes[1];
  if (check_size == 4) segment->check = glyd_load32(p);
  if (check_size == 8) segment->check = glyd_load64(p);
  return GLYD_OK;
}

glyd_status glyd_header_decode_tail(const uint8_t *in, size_t len, glyd_tail *tail) {
  if (len != GLYD_TAIL_SIZE) return GLYD_E_PARAMETER;
  tail->content_size = glyd_load64(in);
  tail->frame_size = glyd_load64(in + 8);
  tail->trailer_size = glyd_load32(in + 16);
  /* 0 byte, count and tail at least; a header before them; no segment decodes
   * to more than 2^30 bytes from fewer than four. */
  if (tail->trailer_size < GLYD_TAIL_SIZE + 2) return GLYD_E_HEADER;
  if (tail->frame_size < (uint64_t)tail->trailer_size + GLYD_HEADER_MIN) return GLYD_E_HEADER;
  if (tail->frame_size > GLYD_CONTENT_SIZE_MAX || tail->content_size > GLYD_CONTENT_SIZE_MAX) return GLYD_E_HEADER;
  return GLYD_OK;
}

static int unzigzag_add(uint64_t code, uint64_t before, uint64_t most, uint64_t *now) {
  *now = before + ((code >> 1) ^ (0 - (code & 1)));
  return *now >= 1 && *now <= most;
}

glyd_status glyd_header_decode_trailer(const uint8_t *in, size_t len, const glyd_frame_info *frame,
                                       glyd_index_entry *entries, uint64_t *n, glyd_error *error) {
  const uint64_t room = *n;
  *n = 0;
  if (len < GLYD_TAIL_SIZE + 2) return glyd_frame_fail(error, GLYD_E_TRUNCATED, 0, GLYD_TAIL_SIZE + 2, len);
  const uint32_t check = (uint32_t)glyd_checksum_xxh3(GLYD_CPU_SCALAR, in, len - 4);
  const uint32_t stored_check = glyd_load32(in + len - 4);
  if (check != stored_check) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, stored_check, check);
  glyd_tail tail;
  if (glyd_header_decode_tail(in + len - GLYD_TAIL_SIZE, GLYD_TAIL_SIZE, &tail) != GLYD_OK || tail.trailer_size != len)
    return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, len, tail.trailer_size);
  if (in[0] != GLYD_KIND_END) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, GLYD_KIND_END, in[0]);

  const uint8_t *end = in + len - GLYD_TAIL_SIZE;
  uint64_t count;
  const uint8_t *p = glyd_get_varint(in + 1, end, &count);
  /* Two varints an entry: a count beyond that is refused before any room is asked for. */
  if (!p || count > (uint64_t)(end - p) / 2) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, len / 2, p ? count : 0);
  *n = count;
  if (room < count) return glyd_frame_fail(error, GLYD_E_BUFFER, 0, count, room);

  const uint64_t stored_most = frame->segment_size + GLYD_PAYLOAD_SLACK + GLYD_SEGMENT_HEADER_MAX;
  glyd_index_entry now = {.content_size = frame->segment_size, .stored_size = 0};
  uint64_t content = 0;
  uint64_t stored = 0;
  for (uint64_t i = 0; i < count; i++) {
    const size_t at = (size_t)(p - in);
    uint64_t code = 0;
    p = glyd_get_varint(p, end, &code);
    if (!p || !unzigzag_add(code, now.content_size, frame->segment_size, &now.content_size))
      return glyd_frame_fail(error, GLYD_E_CORRUPT, at, frame->segment_size, now.content_size);
    p = glyd_get_varint(p, end, &code);
    if (!p || !unzigzag_add(code, now.stored_size, stored_most, &now.stored_size))
      return glyd_frame_fail(error, GLYD_E_CORRUPT, at, stored_most, now.stored_size);
    content += now.content_size;
    stored += now.stored_size;
    if (entries) entries[i] = now;
  }
  if (p != end) return glyd_frame_fail(error, GLYD_E_CORRUPT, (uint64_t)(p - in), 0, (uint64_t)(end - p));
  if (content != tail.content_size) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, tail.content_size, content);
  if (frame->content_size != GLYD_SIZE_UNKNOWN && content != frame->content_size)
    return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, frame->content_size, content);
  const uint64_t size = frame->header_size + stored + len;
  if (size != tail.frame_size) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, tail.frame_size, size);
  return GLYD_OK;
}
