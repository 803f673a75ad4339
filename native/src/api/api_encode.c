/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Exported functions of the compressor.
 */
#include "base/base_map_encode.h"
#include "common/alloc.h"
#include "frame/frame_encode.h"
#include "frame/opened_encode.h"
#include "frame/stream_encode.h"
#include "glyd/glyd.h"
#include "match/match_sketch.h"

void glyd_params_init(glyd_params *params, int level) {
  const int opens = level == GLYD_LEVEL_ULTRA || level == GLYD_LEVEL_COLD;
  *params = (glyd_params){.level = level,
                          .threads = 1,
                          .checksum = 1,
                          .content_size = GLYD_SIZE_UNKNOWN,
                          .weights = GLYD_WEIGHTS_AUTO,
                          .containers = opens ? GLYD_CONTAINERS_AUTO : GLYD_CONTAINERS_OFF};
}

glyd_status glyd_base_index(glyd_base *base) {
  return base->reader.read ? GLYD_E_PARAMETER : glyd_base_map_build(base);
}

uint64_t glyd_base_index_memory(uint64_t size) { return glyd_base_map_memory(size); }

uint64_t glyd_compress_bound(uint64_t len, const glyd_params *params) { return glyd_frame_encode_bound(len, params); }

glyd_status glyd_compress(void *out, size_t cap, const void *in, size_t len, const glyd_params *params,
                          size_t *out_len) {
  return glyd_frame_encode(out, cap, in, len, params, out_len);
}

uint64_t glyd_cctx_memory(const glyd_params *params) { return glyd_stream_encode_memory(params); }

glyd_status glyd_cctx_create(glyd_cctx **ctx, const glyd_params *params) {
  return glyd_stream_encode_create(ctx, params);
}

void glyd_cctx_free(glyd_cctx *ctx) { glyd_stream_encode_free(ctx); }

glyd_status glyd_cctx_reset(glyd_cctx *ctx, uint64_t content_size) {
  return glyd_stream_encode_reset(ctx, content_size);
}

glyd_status glyd_compress_stream(glyd_cctx *ctx, glyd_out *out, glyd_in *in, glyd_op op, size_t *pending) {
  return glyd_stream_encode_run(ctx, out, in, op, pending);
}

glyd_status glyd_encode_segment(glyd_cctx *ctx, void *out, size_t cap, const void *in, size_t len, size_t *out_len) {
  return glyd_stream_encode_segment(ctx, out, cap, in, len, out_len);
}

size_t glyd_fingerprints(glyd_fingerprint_state *state, const void *data, size_t len, uint64_t *out) {
  return glyd_match_sketch(state, data, len, out);
}

glyd_status glyd_survey_streams(const void *in, size_t len, const glyd_allocator *allocator, glyd_stream_info *streams,
                                size_t cap, size_t *n) {
  *n = 0;
  if (!glyd_alloc_valid(allocator)) return GLYD_E_PARAMETER;
  if (len == 0) return GLYD_OK;
  return glyd_opened_encode_survey(in, len, allocator, streams, cap, n);
}

uint64_t glyd_open_streams_bound(uint64_t len) { return glyd_opened_encode_content_bound(len); }

glyd_status glyd_open_streams(const void *in, size_t len, const glyd_allocator *allocator, void *out, size_t cap,
                              size_t *out_len) {
  *out_len = 0;
  if (!glyd_alloc_valid(allocator) || len > GLYD_OPENED_CONTENT_MAX) return GLYD_E_PARAMETER;
  return len == 0 ? GLYD_OK : glyd_opened_encode_content(in, len, allocator, out, cap, out_len);
}
