/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Exported functions about bases that readers and writers use.
 */
#include "base/base_source.h"
#include "common/mem.h"
#include "frame/frame_base_decode.h"

glyd_status glyd_base_create(glyd_base **base, const void *data, uint64_t size, int is_mapped,
                             const glyd_allocator *allocator) {
  return glyd_base_source_create(base, data, size, is_mapped, allocator);
}

glyd_status glyd_base_create_frames(glyd_base **base, const void *in, size_t len, int is_mapped, const glyd_base *below,
                                    const glyd_limits *limits, const glyd_allocator *allocator, glyd_error *error) {
  return glyd_frame_base_create(base, in, len, is_mapped, below, limits, allocator, error);
}

void glyd_base_free(glyd_base *base) { glyd_base_source_free(base); }

uint64_t glyd_base_size(const glyd_base *base) { return base->size; }

void glyd_base_get_id(const glyd_base *base, uint8_t id[GLYD_BASE_ID_SIZE]) { memcpy(id, base->id, GLYD_BASE_ID_SIZE); }
