/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Decompression contexts: frames in pieces, content in pieces. The functions
 * are those of glyd.h (glyd_dctx_*, glyd_decompress_stream, glyd_decode_segment).
 */
#ifndef GLYD_STREAM_DECODE_H
#define GLYD_STREAM_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/glyd.h"

uint64_t glyd_stream_decode_memory(const glyd_frame_info *info, int threads);
glyd_status glyd_stream_decode_create(glyd_dctx **ctx, int threads, const glyd_limits *limits,
                                      const glyd_allocator *allocator);
void glyd_stream_decode_free(glyd_dctx *ctx);
glyd_status glyd_stream_decode_reset(glyd_dctx *ctx);
glyd_status glyd_stream_decode_run(glyd_dctx *ctx, glyd_out *out, glyd_in *in, int *at_end);
void glyd_stream_decode_set_base(glyd_dctx *ctx, const glyd_base *base);
void glyd_stream_decode_set_dictionary(glyd_dctx *ctx, const glyd_dictionary *dictionary);
void glyd_stream_decode_error(const glyd_dctx *ctx, glyd_error *error);
glyd_status glyd_stream_decode_segment(glyd_dctx *ctx, const glyd_frame_info *frame, uint8_t *out, size_t cap,
                                       const uint8_t *in, size_t len, size_t *out_len);

glyd_status glyd_stream_decode_inside(glyd_dctx *ctx, const glyd_frame_info *frame, uint8_t *out, size_t cap,
                                      const uint8_t *in, size_t len, size_t *out_len);
glyd_status glyd_stream_decode_opened_info(const glyd_frame_info *frame, const uint8_t *in, size_t len,
                                           glyd_opened_info *info);

#endif
