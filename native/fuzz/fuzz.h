/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What fuzz targets share. A target is one file with this function; it aborts
 * (FUZZ_CHECK) when something that must hold does not.
 */
#ifndef GLYD_FUZZ_H
#define GLYD_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "glyd/glyd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition)                                         \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                        \
    }                                                                 \
  } while (0)

#define FUZZ_OUTPUT_MAX ((size_t)4 << 20)
#define FUZZ_MEMORY_MAX ((uint64_t)32 << 20)

/* Every byte that goes through the allocator is counted against the limit. */
typedef struct fuzz_memory {
  uint64_t now;
  uint64_t peak;
} fuzz_memory;

static inline void *fuzz_alloc(void *opaque, size_t size) {
  fuzz_memory *m = opaque;
  uint64_t *p = malloc(size + 16);
  if (!p) return NULL;
  p[0] = size;
  m->now += size;
  if (m->now > m->peak) m->peak = m->now;
  return p + 2;
}

static inline void fuzz_free(void *opaque, void *ptr) {
  fuzz_memory *m = opaque;
  uint64_t *p = (uint64_t *)ptr - 2;
  m->now -= p[0];
  free(p);
}

#endif
