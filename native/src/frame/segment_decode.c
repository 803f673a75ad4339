/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "frame/segment_decode.h"

#include "block/block_decode.h"
#include "cold/cold_decode.h"
#include "common/checksum.h"
#include "common/mem.h"
#include "frame/frame_common.h"
#include "frame/opened_decode.h"
#include "object/object_common.h"
#include "segment/segment_base_decode.h"
#include "segment/segment_dictionary_decode.h"
#include "segment/segment_filter_decode.h"
#include "segment/segment_record_decode.h"
#include "segment/segment_weights_decode.h"

/* LZ, weights and filtered ones: one size, as a workspace serves segment after segment. */
uint64_t glyd_segment_decode_workspace(const glyd_frame_info *frame, int kind, uint64_t content_size) {
  if (kind == GLYD_KIND_BASE) return glyd_segment_base_decode_workspace(content_size);
  if (kind == GLYD_KIND_RECORD) return glyd_segment_record_decode_workspace(content_size);
  if (kind == GLYD_KIND_COLD) return glyd_cold_decode_workspace(content_size);
  if (kind == GLYD_KIND_OPENED) return glyd_opened_decode_workspace(frame, content_size);
  if (kind == GLYD_KIND_DICTIONARY) return glyd_segment_dictionary_decode_workspace(content_size, frame->has_cold);
  const int blocks = kind == GLYD_KIND_LZ || kind == GLYD_KIND_WEIGHTS || kind == GLYD_KIND_FILTERED;
  return blocks ? glyd_segment_weights_decode_workspace() : 0;
}

uint64_t glyd_segment_decode_workspace_max(const glyd_frame_info *frame, uint64_t content_size) {
  uint64_t most = glyd_segment_decode_workspace(frame, GLYD_KIND_LZ, content_size);
  const int kinds[5] = {
      frame->has_dictionary ? GLYD_KIND_DICTIONARY : GLYD_KIND_LZ, frame->has_base ? GLYD_KIND_BASE : GLYD_KIND_LZ,
      frame->has_records ? GLYD_KIND_RECORD : GLYD_KIND_LZ, frame->has_cold ? GLYD_KIND_COLD : GLYD_KIND_LZ,
      frame->has_opened ? GLYD_KIND_OPENED : GLYD_KIND_LZ};
  for (unsigned i = 0; i < 5; i++) {
    const uint64_t n = glyd_segment_decode_workspace(frame, kinds[i], content_size);
    if (n > most) most = n;
  }
  return most;
}

static uint64_t id_start(const uint8_t *id) { return __builtin_bswap64(glyd_load64(id)); }

static glyd_status check_dictionary(const glyd_frame_info *frame, const glyd_dictionary *dictionary,
                                    glyd_error *error) {
  if (!dictionary) return glyd_frame_fail(error, GLYD_E_DICT_MISSING, 0, frame->dictionary_id, 0);
  if (dictionary->id != frame->dictionary_id)
    return glyd_frame_fail(error, GLYD_E_DICT_WRONG, 0, frame->dictionary_id, dictionary->id);
  return GLYD_OK;
}

glyd_status glyd_segment_decode_check(const glyd_frame_info *frame, const glyd_references *references,
                                      glyd_error *error) {
  if (frame->has_dictionary) return check_dictionary(frame, references->dictionary, error);
  if (!frame->has_base) return GLYD_OK;
  const glyd_base *const base = references->base;
  if (!base) return glyd_frame_fail(error, GLYD_E_BASE_MISSING, 0, id_start(frame->base_id), 0);
  /* a base that is read piece by piece has no id: it is right if what is made of it has the right check */
  const int is_named = !base->reader.read;
  if (base->size != frame->base_size || (!is_named && frame->check == GLYD_CHECK_NONE) ||
      (is_named && memcmp(base->id, frame->base_id, sizeof base->id) != 0))
    return glyd_frame_fail(error, GLYD_E_BASE_WRONG, 0, id_start(frame->base_id), id_start(base->id));
  return GLYD_OK;
}

#define FILL_PIECE ((size_t)64 << 10) /* stays in the cache until it is hashed */

static void fill(uint8_t *out, uint8_t value, size_t len, glyd_checksum_pass *pass) {
  for (size_t at = 0; at < len;) {
    const size_t n = len - at < FILL_PIECE ? len - at : FILL_PIECE;
    memset(out + at, value, n);
    at += n;
    if (pass) glyd_checksum_pass_advance(pass, at);
  }
}

glyd_status glyd_segment_decode(unsigned cpu, void *workspace, const glyd_references *references,
                                const glyd_frame_info *frame, const glyd_segment_info *segment, uint8_t *out,
                                const uint8_t *payload, glyd_error *error) {
  const int check = frame->check;
  const size_t len = (size_t)segment->content_size;
  glyd_status status = GLYD_OK;
  glyd_checksum_pass hash;
  glyd_checksum_pass *const pass = check == GLYD_CHECK_NONE ? NULL : &hash;
  if (pass) glyd_checksum_pass_begin(pass, cpu, out, len);
  switch (segment->kind) {
  case GLYD_KIND_RAW:
    if (pass)
      glyd_checksum_pass_copy(pass, out, payload, 0, len);
    else
      memcpy(out, payload, len);
    break;
  case GLYD_KIND_FILL: fill(out, payload[0], len, pass); break;
  case GLYD_KIND_LZ:
    status = glyd_lz_decode(cpu, workspace, out, len, payload, (size_t)segment->payload_size, pass);
    break;
  case GLYD_KIND_RECORD:
    status = glyd_segment_record_decode(cpu, workspace, out, len, payload, (size_t)segment->payload_size);
    break;
  case GLYD_KIND_COLD:
    status = glyd_cold_decode(cpu, workspace, out, len, payload, (size_t)segment->payload_size);
    break;
  case GLYD_KIND_BASE:
    status =
        glyd_segment_base_decode(cpu, workspace, references->base, out, len, payload, (size_t)segment->payload_size);
    break;
  case GLYD_KIND_WEIGHTS:
    status = glyd_segment_weights_decode(cpu, workspace, references->base, out, len, payload,
                                         (size_t)segment->payload_size, pass);
    break;
  case GLYD_KIND_FILTERED:
    status = glyd_segment_filter_decode(cpu, workspace, out, len, payload, (size_t)segment->payload_size);
    break;
  case GLYD_KIND_DICTIONARY:
    status = glyd_segment_dictionary_decode(cpu, workspace, references->dictionary, frame->has_cold, out, len, payload,
                                            (size_t)segment->payload_size);
    break;
  case GLYD_KIND_OPENED:
    status = glyd_opened_decode(cpu, workspace, frame, out, len, payload, (size_t)segment->payload_size);
    break;
  default: status = GLYD_E_FEATURE; break;
  }
  if (status) return glyd_frame_fail(error, status, 0, segment->content_size, segment->payload_size);
  if (!pass) return GLYD_OK;
  const uint64_t found = glyd_frame_check_value(check, glyd_checksum_pass_end(pass));
  if (found != segment->check) return glyd_frame_fail(error, GLYD_E_CHECKSUM, 0, segment->check, found);
  return GLYD_OK;
}
