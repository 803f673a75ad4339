/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "base/base_source.h"

#include "common/alloc.h"
#include "common/checksum.h"
#include "common/cpu.h"
#include "common/mem.h"

glyd_status glyd_base_source_create(glyd_base **base, const void *data, uint64_t size,
                                    const glyd_allocator *allocator) {
  *base = NULL;
  if (!glyd_alloc_valid(allocator) || (!data && size > 0) || size > SIZE_MAX / 2) return GLYD_E_PARAMETER;
  glyd_base *b = glyd_alloc_get(allocator, sizeof *b);
  if (!b) return GLYD_E_MEMORY;
  *b = (glyd_base){.data = data, .size = size};
  if (allocator) b->allocator = *allocator;
  const glyd_hash128 h = glyd_checksum_xxh3_128(glyd_cpu_features(), data, (size_t)size);
  glyd_store64(b->id, __builtin_bswap64(h.high));
  glyd_store64(b->id + 8, __builtin_bswap64(h.low));
  *base = b;
  return GLYD_OK;
}

void glyd_base_source_free(glyd_base *base) {
  if (!base) return;
  const glyd_allocator a = base->allocator;
  glyd_alloc_put(&a, base->map);
  glyd_alloc_put(&a, base);
}

void glyd_base_source_copy(const glyd_base *base, uint64_t position, uint8_t *out, size_t len) {
  if (len > 0) memcpy(out, base->data + position, len);
}
