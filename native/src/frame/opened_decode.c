/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "frame/opened_decode.h"

#include "common/mem.h"
#include "deflate/deflate_rebuild.h"
#include "frame/header_decode.h"
#include "frame/opened_common.h"
#include "frame/segment_decode.h"

#define ALIGN(n) (((n) + 63) & ~(uint64_t)63)

/* Frames as the segments inside see them: none of the kinds that may not be there. */
static glyd_frame_info inner_frame(const glyd_frame_info *frame, uint64_t content_size) {
  glyd_frame_info inner = *frame;
  inner.has_base = 0;
  inner.has_dictionary = 0;
  inner.has_opened = 0;
  inner.has_trailer = 0;
  inner.content_size = GLYD_SIZE_UNKNOWN;
  inner.segment_size = glyd_opened_inner_max(content_size);
  return inner;
}

static uint64_t inner_workspace(const glyd_frame_info *frame, uint64_t content_size) {
  const glyd_frame_info inner = inner_frame(frame, content_size);
  return glyd_segment_decode_workspace_max(&inner, inner.segment_size);
}

/* The area, then what its segments and after them the streams need. */
uint64_t glyd_opened_decode_workspace(const glyd_frame_info *frame, uint64_t content_size) {
  const uint64_t segments = inner_workspace(frame, content_size), streams = glyd_deflate_rebuild_workspace();
  return ALIGN(glyd_opened_area_max(content_size)) + (segments > streams ? segments : streams);
}

glyd_status glyd_opened_decode_info(const uint8_t *payload, size_t payload_size, uint64_t content_size,
                                    glyd_opened_info *info) {
  const uint8_t *const end = payload + payload_size;
  uint64_t streams;
  uint64_t *const fields[4] = {&streams, &info->inside_size, &info->kept_size, &info->description_size};
  const uint8_t *p = payload;
  for (unsigned i = 0; i < 4; i++)
    if (!(p = glyd_get_varint(p, end, fields[i]))) return GLYD_E_CORRUPT;
  const uint64_t most = glyd_opened_area_max(content_size);
  info->n_streams = streams >> 1;
  info->is_cut = (int)(streams & 1);
  info->head_size = (uint32_t)(p - payload);
  if (info->inside_size > most || info->kept_size > content_size || info->inside_size + info->kept_size > most ||
      info->description_size > (uint64_t)(end - p) || info->n_streams == 0)
    return GLYD_E_CORRUPT;
  return GLYD_OK;
}

/* The segments of a payload, as far as the first `want` bytes of the area need them. */
static glyd_status decode_area(unsigned cpu, void *workspace, const glyd_frame_info *frame, uint64_t content_size,
                               uint8_t *area, uint64_t area_size, uint64_t want, const uint8_t *in, size_t len) {
  const glyd_frame_info inner = inner_frame(frame, content_size);
  const glyd_references none = {NULL, NULL};
  uint64_t at = 0;
  while (at < want) {
    glyd_segment_info segment;
    if (glyd_header_decode_segment(in, len, &inner, &segment, NULL)) return GLYD_E_CORRUPT;
    if (segment.kind == GLYD_KIND_BASE || segment.content_size > area_size - at ||
        segment.payload_size > len - segment.header_size)
      return GLYD_E_CORRUPT;
    const glyd_status status =
        glyd_segment_decode(cpu, workspace, &none, &inner, &segment, area + at, in + segment.header_size, NULL);
    if (status) return status;
    const size_t size = segment.header_size + (size_t)segment.payload_size;
    at += segment.content_size;
    in += size;
    len -= size;
  }
  return want == area_size && len != 0 ? GLYD_E_CORRUPT : GLYD_OK;
}

glyd_status glyd_opened_decode(unsigned cpu, void *workspace, const glyd_frame_info *frame, uint8_t *out,
                               size_t out_len, const uint8_t *payload, size_t payload_size) {
  glyd_opened_info info;
  glyd_status status = glyd_opened_decode_info(payload, payload_size, out_len, &info);
  if (status) return status;
  uint8_t *const area = workspace;
  void *const rest = area + ALIGN(glyd_opened_area_max(out_len));
  const uint64_t area_size = info.inside_size + info.kept_size;
  const uint8_t *const description = payload + payload_size - info.description_size;
  status = decode_area(cpu, rest, frame, out_len, area, area_size, area_size, payload + info.head_size,
                       (size_t)(description - payload) - info.head_size);
  if (status) return status;
  const glyd_deflate_parts parts = {
      area,        (size_t)info.inside_size,     area + info.inside_size, (size_t)info.kept_size,
      description, (size_t)info.description_size};
  return glyd_deflate_rebuild(rest, info.n_streams, &parts, out, out_len);
}

glyd_status glyd_opened_decode_inside(unsigned cpu, void *workspace, const glyd_frame_info *frame, uint8_t *out,
                                      size_t cap, const uint8_t *payload, size_t payload_size, uint64_t content_size,
                                      glyd_opened_info *info) {
  glyd_status status = glyd_opened_decode_info(payload, payload_size, content_size, info);
  if (status) return status;
  if (info->inside_size > cap) return GLYD_E_BUFFER;
  uint8_t *const area = workspace;
  void *const rest = area + ALIGN(glyd_opened_area_max(content_size));
  const size_t len = payload_size - info->head_size - (size_t)info->description_size;
  status = decode_area(cpu, rest, frame, content_size, area, info->inside_size + info->kept_size, info->inside_size,
                       payload + info->head_size, len);
  if (status == GLYD_OK) memcpy(out, area, (size_t)info->inside_size);
  return status;
}

#define MAGIC_SIZE (sizeof GLYD_OPENED_CONTENT_MAGIC - 1)

glyd_status glyd_opened_decode_content_info(const uint8_t *in, size_t len, uint64_t *content_size,
                                            glyd_opened_info *info) {
  const size_t there = len < MAGIC_SIZE ? len : MAGIC_SIZE;
  if (there > 0 && memcmp(in, GLYD_OPENED_CONTENT_MAGIC, there) != 0) return GLYD_E_MAGIC;
  if (there < MAGIC_SIZE) return GLYD_E_TRUNCATED;
  const uint8_t *const p = glyd_get_varint(in + MAGIC_SIZE, in + len, content_size);
  if (!p || *content_size == 0 || *content_size > GLYD_OPENED_CONTENT_MAX) return GLYD_E_CORRUPT;
  const size_t before = (size_t)(p - in);
  const glyd_status status = glyd_opened_decode_info(p, len - before, *content_size, info);
  if (status) return status;
  info->head_size += (uint32_t)before;
  /* none of them is more than 2^32 */
  if (info->inside_size + info->kept_size + info->description_size != len - info->head_size) return GLYD_E_CORRUPT;
  return GLYD_OK;
}

glyd_status glyd_opened_decode_content(const uint8_t *in, const glyd_opened_info *info, void *workspace, uint8_t *out,
                                       size_t out_len) {
  const uint8_t *const inside = in + info->head_size, *const kept = inside + info->inside_size;
  const glyd_deflate_parts parts = {inside,
                                    (size_t)info->inside_size,
                                    kept,
                                    (size_t)info->kept_size,
                                    kept + info->kept_size,
                                    (size_t)info->description_size};
  return glyd_deflate_rebuild(workspace, info->n_streams, &parts, out, out_len);
}
