/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Parameters, checked and resolved: everything that decides a frame's bytes.
 */
#ifndef GLYD_PLAN_ENCODE_H
#define GLYD_PLAN_ENCODE_H

#include <stdint.h>

#include "block/block_common.h"
#include "fields/fields_places_encode.h"
#include "glyd/glyd.h"

#define GLYD_SEGMENT_SIZE_DEFAULT ((uint64_t)4 << 20)
#define GLYD_SEGMENT_SIZE_MAX ((uint64_t)8 << 20) /* of level max: fewer bytes lost at borders */
#define GLYD_SEGMENT_SIZE_HIGH ((uint64_t)16 << 20)
#define GLYD_SEGMENT_SIZE_ULTRA ((uint64_t)32 << 20)
#define GLYD_SEGMENT_SIZE_COLD ((uint64_t)GLYD_COLD_CONTENT_MAX)
#define GLYD_SEGMENT_SIZE_BASE ((uint64_t)16 << 20)    /* most of a segment is copies, which cost no memory */
#define GLYD_SEGMENT_SIZE_RECORDS ((uint64_t)16 << 20) /* what a segment says of its columns is shared by more rows */
#define GLYD_SEGMENT_SIZE_LONG ((uint64_t)128 << 20)
#define GLYD_SMALL_CONTENT ((uint64_t)64 << 10) /* up to here a known size makes checks short */

typedef struct glyd_plan {
  int level;
  int threads; /* 1 … GLYD_THREADS_MAX */
  int check;   /* GLYD_CHECK_* */
  int has_trailer;
  int weights; /* GLYD_WEIGHTS_*; AUTO until the content has been looked at */
  unsigned segment_log;
  uint64_t segment_size;             /* content bytes of every segment but the last and those before a flush */
  uint64_t content_size;             /* or GLYD_SIZE_UNKNOWN */
  const glyd_base *base;             /* or NULL */
  const glyd_dictionary *dictionary; /* or NULL */
  int records;                       /* segments may be records */
  int containers;                    /* GLYD_CONTAINERS_*; AUTO until the content has been looked at */
  int opens_by_itself;               /* nobody asked: what gains little is left closed */
  uint64_t inner_segment;            /* content bytes of segments inside opened ones */
  int cold;                          /* segments may be cold */
  int64_t base_shift;                /* expected place in the base of numbers, less that in the content */
  glyd_fields_places *places;        /* of tensors in the base, or NULL */
  glyd_lz_config lz;
  glyd_allocator allocator;
} glyd_plan;

/* PARAMETER when params (may be NULL) or content_size are outside their ranges. */
glyd_status glyd_plan_encode(glyd_plan *plan, const glyd_params *params, uint64_t content_size);

/* Decide plan->weights, if it is AUTO, and plan->base_shift and plan->places from the first bytes of the
 * content: in holds all of it, or at least the first segment. MEMORY: no memory. Once it is called,
 * glyd_plan_encode_free follows. */
glyd_status glyd_plan_encode_weights(glyd_plan *plan, const uint8_t *in, size_t len);

/* Most bytes that glyd_plan_encode_weights allocates, whatever the content. */
uint64_t glyd_plan_encode_memory(const glyd_plan *plan);

/* Free what the plan has. */
void glyd_plan_encode_free(glyd_plan *plan);

/* Decide plan->containers, if it is AUTO: as for weights. */
void glyd_plan_encode_containers(glyd_plan *plan, const uint8_t *in, size_t len);

/* Leave records out if the content, all of it in one place, does not begin with any (AUTO) or looks like none. */
void glyd_plan_encode_content(glyd_plan *plan, const glyd_params *params, const uint8_t *in, size_t len);

#endif
