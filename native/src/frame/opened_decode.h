/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading opened segments (deflate/spec.md): segments inside give what streams
 * decompress to, from which the streams are made again.
 */
#ifndef GLYD_OPENED_DECODE_H
#define GLYD_OPENED_DECODE_H

#include "glyd/glyd.h"

/* Bytes of workspace, aligned to 64. */
uint64_t glyd_opened_decode_workspace(const glyd_frame_info *frame, uint64_t content_size);

/* Decode payload[0..payload_size) into out[0..out_len), exactly. */
glyd_status glyd_opened_decode(unsigned cpu, void *workspace, const glyd_frame_info *frame, uint8_t *out,
                               size_t out_len, const uint8_t *payload, size_t payload_size);

/* What its streams decompress to, one after the other, into out[0..cap): no stream is made. */
glyd_status glyd_opened_decode_inside(unsigned cpu, void *workspace, const glyd_frame_info *frame, uint8_t *out,
                                      size_t cap, const uint8_t *payload, size_t payload_size, uint64_t content_size,
                                      glyd_opened_info *info);

/* Read the head of a payload; content_size: of the segment. */
glyd_status glyd_opened_decode_info(const uint8_t *payload, size_t payload_size, uint64_t content_size,
                                    glyd_opened_info *info);

/* Read the head of opened content; the sizes fit. */
glyd_status glyd_opened_decode_content_info(const uint8_t *in, size_t len, uint64_t *content_size,
                                            glyd_opened_info *info);

/* Make the content of it again: out_len bytes, exactly. The workspace is glyd_deflate_rebuild_workspace(). */
glyd_status glyd_opened_decode_content(const uint8_t *in, const glyd_opened_info *info, void *workspace, uint8_t *out,
                                       size_t out_len);

#endif
