/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Compression contexts: content in pieces, frames in pieces. The functions are
 * those of glyd.h (glyd_cctx_*, glyd_compress_stream, glyd_encode_segment).
 */
#ifndef GLYD_STREAM_ENCODE_H
#define GLYD_STREAM_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/glyd.h"

uint64_t glyd_stream_encode_memory(const glyd_params *params);
glyd_status glyd_stream_encode_create(glyd_cctx **ctx, const glyd_params *params);
void glyd_stream_encode_free(glyd_cctx *ctx);
glyd_status glyd_stream_encode_reset(glyd_cctx *ctx, uint64_t content_size);
glyd_status glyd_stream_encode_run(glyd_cctx *ctx, glyd_out *out, glyd_in *in, glyd_op op, size_t *pending);
glyd_status glyd_stream_encode_segment(glyd_cctx *ctx, uint8_t *out, size_t cap, const uint8_t *in, size_t len,
                                       size_t *out_len);

#endif
