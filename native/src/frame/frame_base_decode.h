/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A base that is itself given as frames: read as far as is asked for. Copies
 * of copies are followed down to where the bytes are, so that the bases in
 * between are never made as a whole.
 */
#ifndef GLYD_FRAME_BASE_DECODE_H
#define GLYD_FRAME_BASE_DECODE_H

#include <stddef.h>

#include "base/base_source.h"

#define GLYD_FRAME_BASE_DEPTH_MAX 64u /* bases that one is read through: readers call each other */

/* As glyd_base_create_frames of base.h. */
glyd_status glyd_frame_base_create(glyd_base **base, const uint8_t *in, size_t len, int is_mapped,
                                   const glyd_base *below, const glyd_limits *limits, const glyd_allocator *allocator,
                                   glyd_error *error);

#endif
