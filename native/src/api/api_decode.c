/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Exported functions of the decompressor.
 */
#include "base/base_source.h"
#include "common/alloc.h"
#include "deflate/deflate_rebuild.h"
#include "frame/frame_decode.h"
#include "frame/header_decode.h"
#include "frame/opened_decode.h"
#include "frame/stream_decode.h"
#include "glyd/dictionary.h"
#include "glyd/glyd.h"

glyd_status glyd_content_size(const void *in, size_t len, const glyd_limits *limits, uint64_t *size,
                              glyd_error *error) {
  return glyd_frame_decode_size(in, len, limits, size, error);
}

glyd_status glyd_decompress(void *out, size_t cap, const void *in, size_t len, int threads, const glyd_limits *limits,
                            const glyd_allocator *allocator, size_t *out_len, glyd_error *error) {
  return glyd_frame_decode(out, cap, in, len, NULL, threads, limits, allocator, out_len, error);
}

glyd_status glyd_decompress_base(void *out, size_t cap, const void *in, size_t len, const glyd_base *base, int threads,
                                 const glyd_limits *limits, const glyd_allocator *allocator, size_t *out_len,
                                 glyd_error *error) {
  const glyd_references references = {base, NULL};
  return glyd_frame_decode(out, cap, in, len, &references, threads, limits, allocator, out_len, error);
}

glyd_status glyd_decompress_references(void *out, size_t cap, const void *in, size_t len,
                                       const glyd_references *references, int threads, const glyd_limits *limits,
                                       const glyd_allocator *allocator, size_t *out_len, glyd_error *error) {
  return glyd_frame_decode(out, cap, in, len, references, threads, limits, allocator, out_len, error);
}

void glyd_dctx_set_dictionary(glyd_dctx *ctx, const glyd_dictionary *dictionary) {
  glyd_stream_decode_set_dictionary(ctx, dictionary);
}

void glyd_dctx_set_base(glyd_dctx *ctx, const glyd_base *base) { glyd_stream_decode_set_base(ctx, base); }

glyd_status glyd_read_frame_header(const void *in, size_t len, glyd_frame_info *info, glyd_error *error) {
  return glyd_header_decode_frame(in, len, info, error);
}

glyd_status glyd_read_segment_header(const void *in, size_t len, const glyd_frame_info *frame,
                                     glyd_segment_info *segment, glyd_error *error) {
  return glyd_header_decode_segment(in, len, frame, segment, error);
}

glyd_status glyd_read_tail(const void *in, size_t len, glyd_tail *tail) {
  return glyd_header_decode_tail(in, len, tail);
}

glyd_status glyd_read_trailer(const void *in, size_t len, const glyd_frame_info *frame, glyd_index_entry *entries,
                              uint64_t *n, glyd_error *error) {
  return glyd_header_decode_trailer(in, len, frame, entries, n, error);
}

uint64_t glyd_dctx_memory(const glyd_frame_info *info, int threads) { return glyd_stream_decode_memory(info, threads); }

glyd_status glyd_dctx_create(glyd_dctx **ctx, int threads, const glyd_limits *limits, const glyd_allocator *allocator) {
  return glyd_stream_decode_create(ctx, threads, limits, allocator);
}

void glyd_dctx_free(glyd_dctx *ctx) { glyd_stream_decode_free(ctx); }

glyd_status glyd_dctx_reset(glyd_dctx *ctx) { return glyd_stream_decode_reset(ctx); }

glyd_status glyd_decompress_stream(glyd_dctx *ctx, glyd_out *out, glyd_in *in, int *at_end) {
  return glyd_stream_decode_run(ctx, out, in, at_end);
}

void glyd_dctx_error(const glyd_dctx *ctx, glyd_error *error) { glyd_stream_decode_error(ctx, error); }

glyd_status glyd_decode_segment(glyd_dctx *ctx, const glyd_frame_info *frame, void *out, size_t cap, const void *in,
                                size_t len, size_t *out_len) {
  return glyd_stream_decode_segment(ctx, frame, out, cap, in, len, out_len);
}

glyd_status glyd_read_opened(const glyd_frame_info *frame, const void *in, size_t len, glyd_opened_info *info) {
  return glyd_stream_decode_opened_info(frame, in, len, info);
}

glyd_status glyd_decode_inside(glyd_dctx *ctx, const glyd_frame_info *frame, void *out, size_t cap, const void *in,
                               size_t len, size_t *out_len) {
  return glyd_stream_decode_inside(ctx, frame, out, cap, in, len, out_len);
}

glyd_status glyd_opened_content_size(const void *in, size_t len, uint64_t *size) {
  glyd_opened_info info;
  return glyd_opened_decode_content_info(in, len, size, &info);
}

glyd_status glyd_close_streams(const void *in, size_t len, const glyd_allocator *allocator, void *out, size_t cap,
                               size_t *out_len) {
  glyd_opened_info info;
  uint64_t size;
  *out_len = 0;
  if (!glyd_alloc_valid(allocator)) return GLYD_E_PARAMETER;
  glyd_status status = glyd_opened_decode_content_info(in, len, &size, &info);
  if (status) return status;
  if (size > cap) return GLYD_E_BUFFER;
  void *const workspace = glyd_alloc_get(allocator, glyd_deflate_rebuild_workspace());
  if (!workspace) return GLYD_E_MEMORY;
  status = glyd_opened_decode_content(in, &info, workspace, out, (size_t)size);
  if (status == GLYD_OK) *out_len = (size_t)size;
  glyd_alloc_put(allocator, workspace);
  return status;
}
