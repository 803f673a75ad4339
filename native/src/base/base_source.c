/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#if !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* madvise */
#endif

#include "base/base_source.h"

#include <sys/mman.h>

#include "common/alloc.h"
#include "common/checksum.h"
#include "common/cpu.h"
#include "common/mem.h"

#define PAGE ((uintptr_t)64 << 10)            /* no system has larger ones */
#define LARGE ((uint64_t)2 * GLYD_BASE_PIECE) /* smaller bases may stay in memory */

glyd_status glyd_base_source_create(glyd_base **base, const void *data, uint64_t size, int is_mapped,
                                    const glyd_allocator *allocator) {
  *base = NULL;
  if (!glyd_alloc_valid(allocator) || (!data && size > 0) || size > SIZE_MAX / 2 || (is_mapped & ~1))
    return GLYD_E_PARAMETER;
  glyd_base *b = glyd_alloc_get(allocator, sizeof *b);
  if (!b) return GLYD_E_MEMORY;
  *b = (glyd_base){.data = data, .size = size, .is_mapped = is_mapped};
  if (allocator) b->allocator = *allocator;
  const size_t len = (size_t)size;
  glyd_checksum_pass pass;
  glyd_checksum_pass_begin(&pass, glyd_cpu_features(), data, len);
  for (size_t at = 0; at < len; at += GLYD_BASE_PIECE) {
    glyd_checksum_pass_advance(&pass, len - at < GLYD_BASE_PIECE ? len : at + GLYD_BASE_PIECE);
    if (len > LARGE) glyd_base_source_release(b, at, at + GLYD_BASE_PIECE);
  }
  const glyd_hash128 h = glyd_checksum_pass_end_128(&pass);
  glyd_store64(b->id, __builtin_bswap64(h.high));
  glyd_store64(b->id + 8, __builtin_bswap64(h.low));
  *base = b;
  return GLYD_OK;
}

glyd_status glyd_base_source_create_reader(glyd_base **base, uint64_t size, unsigned depth,
                                           const glyd_base_reader *reader, const glyd_allocator *allocator) {
  glyd_base *b = glyd_alloc_get(allocator, sizeof *b);
  *base = b;
  if (!b) {
    reader->free(reader->state);
    return GLYD_E_MEMORY;
  }
  *b = (glyd_base){.size = size, .reader = *reader, .depth = depth};
  if (allocator) b->allocator = *allocator;
  return GLYD_OK;
}

void glyd_base_source_release(const glyd_base *base, uint64_t from, uint64_t to) {
#if defined(MADV_DONTNEED)
  if (!base->is_mapped || base->size == 0) return;
  if (to > base->size) to = base->size;
  /* Whole pages only; the mapping's ends are the caller's affair. */
  const uintptr_t first = ((uintptr_t)(base->data + from) + (PAGE - 1)) & ~(PAGE - 1);
  const uintptr_t end = (uintptr_t)(base->data + to) & ~(PAGE - 1);
  if (first < end) (void)madvise((void *)first, end - first, MADV_DONTNEED); /* advice: a refusal changes nothing */
#else
  (void)base;
  (void)from;
  (void)to;
#endif
}

void glyd_base_source_release_all(const glyd_base *base) {
  if (base->size > LARGE) glyd_base_source_release(base, 0, base->size);
}

void glyd_base_source_free(glyd_base *base) {
  if (!base) return;
  const glyd_allocator a = base->allocator;
  if (base->reader.free) base->reader.free(base->reader.state);
  glyd_alloc_put(&a, base->map);
  glyd_alloc_put(&a, base);
}

glyd_status glyd_base_source_copy(const glyd_base *base, uint64_t position, uint8_t *out, size_t len) {
  if (base->reader.read) return base->reader.read(base->reader.state, position, out, len);
  if (len > 0) memcpy(out, base->data + position, len);
  return GLYD_OK;
}

glyd_status glyd_base_source_view(const glyd_base *base, uint64_t position, size_t len, const uint8_t **view,
                                  uint8_t **owned) {
  *owned = NULL;
  if (!base->reader.read) {
    *view = base->data + position;
    return GLYD_OK;
  }
  *owned = glyd_alloc_get(&base->allocator, len);
  *view = *owned;
  return *owned ? base->reader.read(base->reader.state, position, *owned, len) : GLYD_E_MEMORY;
}

void glyd_base_source_close_view(const glyd_base *base, uint8_t *owned) { glyd_alloc_put(&base->allocator, owned); }
