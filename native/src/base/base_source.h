/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A base: its bytes, its name and, for writers, its map.
 */
#ifndef GLYD_BASE_SOURCE_H
#define GLYD_BASE_SOURCE_H

#include "glyd/base.h"

struct glyd_base {
  const uint8_t *data;
  uint64_t size;
  int is_mapped; /* a read-only mapping of a file */
  uint8_t id[GLYD_BASE_ID_SIZE];
  glyd_allocator allocator;
  uint32_t *map; /* base_map_encode.h; NULL: not mapped */
};

glyd_status glyd_base_source_create(glyd_base **base, const void *data, uint64_t size, int is_mapped,
                                    const glyd_allocator *allocator);
void glyd_base_source_free(glyd_base *base);

/* Sequential work on a base goes by pieces of this size, each given back. */
#define GLYD_BASE_PIECE ((size_t)32 << 20)

/* [from, to) of a mapped base has been used: its pages may go, others may stay. */
void glyd_base_source_release(const glyd_base *base, uint64_t from, uint64_t to);

/* All of it, where a base is large enough for that to matter: after a segment. */
void glyd_base_source_release_all(const glyd_base *base);

/* Copy len bytes from position on, all of them inside the base. */
void glyd_base_source_copy(const glyd_base *base, uint64_t position, uint8_t *out, size_t len);

#endif
