/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writers of the fixed structures of a frame.
 */
#ifndef GLYD_HEADER_ENCODE_H
#define GLYD_HEADER_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "frame/plan_encode.h"

/* Frame header into at least GLYD_HEADER_ENCODE_MAX bytes; returns its size. */
#define GLYD_HEADER_ENCODE_MAX (GLYD_HEADER_FIXED_MAX + 2 + GLYD_RECORD_BASE_MAX + 6)
size_t glyd_header_encode_frame(const glyd_plan *plan, uint8_t *out);

/* Segment header that ends at end, where the payload starts (at most
 * GLYD_SEGMENT_HEADER_MAX bytes before it); returns where it starts. */
uint8_t *glyd_header_encode_segment(const glyd_plan *plan, int kind, uint64_t content, uint64_t payload, uint64_t check,
                                    uint8_t *end);

/* Header bytes that no segment of this content size goes beyond; a raw one has just as many. */
size_t glyd_header_encode_segment_room(const glyd_plan *plan, uint64_t content);

/* Start of a trailer: the 0 byte and the count, at most GLYD_TRAILER_PREFIX_MAX bytes. */
#define GLYD_TRAILER_PREFIX_MAX 11u
size_t glyd_header_encode_trailer_prefix(uint64_t n, uint8_t *out);

/* The first 20 bytes of the tail; its check follows them. */
void glyd_header_encode_tail(uint64_t content_size, uint64_t frame_size, uint32_t trailer_size, uint8_t *out);

#endif
