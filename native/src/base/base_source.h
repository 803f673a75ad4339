/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A base: its bytes, its name and, for writers, its map.
 */
#ifndef GLYD_BASE_SOURCE_H
#define GLYD_BASE_SOURCE_H

#include "glyd/base.h"

/* Content of a base that is not in memory as a whole: give len bytes of it from
 * position on, all of them inside it. */
typedef struct glyd_base_reader {
  glyd_status (*read)(void *state, uint64_t position, uint8_t *out, size_t len);
  void (*free)(void *state);
  void *state;
} glyd_base_reader;

struct glyd_base {
  const uint8_t *data; /* NULL: reader gives it */
  uint64_t size;
  int is_mapped;           /* a read-only mapping of a file */
  glyd_base_reader reader; /* such a base has no id: what was decoded with it is checked, or it is not used */
  unsigned depth;          /* bases that it is read through */
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

/* A base of size bytes that reader gives; it is freed with the base, or here on an error. */
glyd_status glyd_base_source_create_reader(glyd_base **base, uint64_t size, unsigned depth,
                                           const glyd_base_reader *reader, const glyd_allocator *allocator);

/* Copy len bytes from position on, all of them inside the base. What is in memory never fails. */
glyd_status glyd_base_source_copy(const glyd_base *base, uint64_t position, uint8_t *out, size_t len);

/* len bytes from position on in one place until glyd_base_source_close_view; *owned: for that. */
glyd_status glyd_base_source_view(const glyd_base *base, uint64_t position, size_t len, const uint8_t **view,
                                  uint8_t **owned);
void glyd_base_source_close_view(const glyd_base *base, uint8_t *owned);

#endif
