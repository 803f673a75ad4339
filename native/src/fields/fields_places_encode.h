/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Where a base has the tensors of a safetensors file, by their names: a hint
 * for writers, whatever order they are in.
 */
#ifndef GLYD_FIELDS_PLACES_ENCODE_H
#define GLYD_FIELDS_PLACES_ENCODE_H

#include "glyd/glyd.h"

/* Content from begin to end, a tensor, is in the base from older on. */
typedef struct glyd_fields_place {
  uint64_t begin, end, older;
} glyd_fields_place;

typedef struct glyd_fields_places {
  size_t n;
  glyd_fields_place of[]; /* by begin */
} glyd_fields_places;

/* Find the tensors of content, of which the first len bytes are there, in an
 * older content: a safetensors file, or several one after the other. Of content with more than twice
 * as many names as the base the first are looked at. *places
 * NULL: there are none, or the header is not within len. To be freed by
 * glyd_alloc_put. MEMORY: no memory. */
glyd_status glyd_fields_places_make(glyd_fields_places **places, const uint8_t *in, size_t len, const uint8_t *older,
                                    uint64_t older_size, const glyd_allocator *allocator);

/* Most bytes that this allocates for a base, whatever the content; 0: it has no tensors. */
uint64_t glyd_fields_places_memory(const uint8_t *older, uint64_t older_size);

/* The place in the base less that in the content, for the content at at. 0: no
 * tensor that is known lies there. places may be NULL. */
int glyd_fields_places_shift(const glyd_fields_places *places, uint64_t at, int64_t *shift);

#endif
