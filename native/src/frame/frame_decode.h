/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * All frames of an input that is in one place.
 */
#ifndef GLYD_FRAME_DECODE_H
#define GLYD_FRAME_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/glyd.h"

/* As glyd_decompress_references and glyd_content_size of glyd.h. */
glyd_status glyd_frame_decode(uint8_t *out, size_t cap, const uint8_t *in, size_t len,
                              const glyd_references *references, int threads, const glyd_limits *limits,
                              const glyd_allocator *allocator, size_t *out_len, glyd_error *error);

/* Hop over all segments of an input and check what is not their payload: headers,
 * sums, trailers, and that references has what they need. see is told of each segment:
 * its place among the content, and its payload's in the input. */
typedef glyd_status glyd_frame_see(void *arg, const glyd_segment_info *segment, const glyd_frame_info *frame,
                                   uint64_t content, size_t payload);
glyd_status glyd_frame_walk(const uint8_t *in, size_t len, const glyd_references *references, const glyd_limits *limits,
                            glyd_frame_see *see, void *arg, uint64_t *content_size, glyd_error *error);
glyd_status glyd_frame_decode_size(const uint8_t *in, size_t len, const glyd_limits *limits, uint64_t *size,
                                   glyd_error *error);

#endif
