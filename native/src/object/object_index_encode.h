/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What an encoder knows of a dictionary.
 */
#ifndef GLYD_OBJECT_INDEX_ENCODE_H
#define GLYD_OBJECT_INDEX_ENCODE_H

#include "object/object_encode.h"

#define GLYD_OBJECT_LONG_BITS 14  /* table of 8 bytes */
#define GLYD_OBJECT_SHORT_BITS 14 /* table of 5 bytes */
#define GLYD_OBJECT_TAG_BITS 11

#define GLYD_OBJECT_COMMAND_BITS 5    /* about what a sequence costs beside its offset */
#define GLYD_OBJECT_NEW_OFFSET_BITS 4 /* a match with a new offset must save this much more: it takes time to read */

#define GLYD_OBJECT_NO_STEP 255
#define GLYD_OBJECT_STEP_LITERALS 16  /* steps of fewer literals, and shorter matches than */
#define GLYD_OBJECT_LONG_LENGTH 1024u /* this, are looked up */

typedef struct glyd_object_index {
  uint32_t put[GLYD_OBJECT_TABLES - 1][256]; /* but for steps: bits << 8 | how many, escapes included */
  /* Steps: code, then a byte each: its bits, those with extra bits of literals, with those of the match, what is taken
   * from literals, from match length. */
  uint64_t step_put[GLYD_OBJECT_STEPS_MAX];
  /* By offset, match length (256: any from there to GLYD_OBJECT_LONG_LENGTH), literals. */
  uint8_t step_of[GLYD_OBJECT_REPEATS + 1][257][GLYD_OBJECT_STEP_LITERALS];
  uint8_t wide[GLYD_OBJECT_STEPS_MAX]; /* steps that reach beyond that */
  unsigned n_wide;
  int32_t literal_bits;  /* average, in 1/16 */
  int32_t near_cost[32]; /* of a match with a new distance, by its log2, in 1/16 bit */
  int32_t place_cost;    /* of one with a place in the dictionary */
  uint32_t long_table[1 << GLYD_OBJECT_LONG_BITS];
  uint32_t short_table[1 << GLYD_OBJECT_SHORT_BITS];
} glyd_object_index;

GLYD_INLINE uint64_t glyd_object_hash_long(uint64_t v) { return v * 0x9E3779B185EBCA87u; }
GLYD_INLINE uint64_t glyd_object_hash_short(uint64_t v) { return (v << 24) * 0x9FB21C651E98DF25u; } /* 5 bytes */
GLYD_INLINE uint32_t glyd_object_tag(uint64_t hash, unsigned bits) {
  return (uint32_t)(hash >> (64 - bits - GLYD_OBJECT_TAG_BITS)) & ((1u << GLYD_OBJECT_TAG_BITS) - 1);
}

/* Entry of a table for a place; 0 is empty. */
GLYD_INLINE uint32_t glyd_object_entry(uint32_t place, uint32_t tag) {
  return (place + 1) << GLYD_OBJECT_TAG_BITS | tag;
}

/* Bits of a step with what follows it. */
GLYD_INLINE unsigned glyd_object_step_bits(const glyd_dictionary *d, unsigned s) {
  return (unsigned)d->code[d->contexts + GLYD_OBJECT_STEPS].length[s] + d->steps[s].literals_bits +
         d->steps[s].length_bits;
}

glyd_status glyd_object_index_build(glyd_dictionary *dictionary);

#endif
