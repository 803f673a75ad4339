/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The pointer that the allocator gave is kept in the 8 bytes before the block.
 */
#if !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* madvise */
#endif

#include "common/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE_PAGE ((uintptr_t)2 << 20)

int glyd_alloc_valid(const glyd_allocator *allocator) {
  return !allocator || (allocator->alloc == NULL) == (allocator->free == NULL);
}

void *glyd_alloc_get(const glyd_allocator *allocator, uint64_t size) {
  if (size > SIZE_MAX / 2) return NULL;
  const size_t full = (size_t)size + GLYD_ALLOC_OVERHEAD;
  void *raw = allocator && allocator->alloc ? allocator->alloc(allocator->opaque, full) : malloc(full);
  if (!raw) return NULL;
  uint8_t *p = (uint8_t *)raw + 8;
  p += (GLYD_ALLOC_ALIGN - ((uintptr_t)p & (GLYD_ALLOC_ALIGN - 1))) & (GLYD_ALLOC_ALIGN - 1);
  memcpy(p - 8, &raw, sizeof raw);
  return p;
}

void glyd_alloc_use_whole(void *ptr, uint64_t size) {
#if defined(MADV_HUGEPAGE)
  const uintptr_t first = ((uintptr_t)ptr + (LARGE_PAGE - 1)) & ~(LARGE_PAGE - 1);
  const uintptr_t end = ((uintptr_t)ptr + (uintptr_t)size) & ~(LARGE_PAGE - 1);
  if (first < end) (void)madvise((void *)first, end - first, MADV_HUGEPAGE); /* a refusal changes nothing */
#else
  (void)ptr;
  (void)size;
#endif
}

void glyd_alloc_put(const glyd_allocator *allocator, void *ptr) {
  if (!ptr) return;
  void *raw;
  memcpy(&raw, (uint8_t *)ptr - 8, sizeof raw);
  if (allocator && allocator->free)
    allocator->free(allocator->opaque, raw);
  else
    free(raw);
}
