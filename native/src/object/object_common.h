/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What readers and writers of objects share (spec.md).
 */
#ifndef GLYD_OBJECT_COMMON_H
#define GLYD_OBJECT_COMMON_H

#include "common/alloc.h"
#include "common/mem.h"
#include "glyd/dictionary.h"

#define GLYD_OBJECT_CONTEXTS 8 /* most contexts of literals */
#define GLYD_OBJECT_TABLES (GLYD_OBJECT_CONTEXTS + 2)
/* Longest codes: larger tables leave the first cache. */
#define GLYD_OBJECT_LITERAL_BITS 9
#define GLYD_OBJECT_BITS 10 /* of steps and offsets */

/* Tables after those of literals: index = contexts + this. */
#define GLYD_OBJECT_OFFSETS 0
#define GLYD_OBJECT_STEPS 1

/* What writers do with a match before they take it: nothing; look whether a
 * repeated offset is better up to two bytes on; or anything, a byte on. */
#define GLYD_OBJECT_GREEDY 0
#define GLYD_OBJECT_REPEATS_AHEAD 1
#define GLYD_OBJECT_LAZY 2

#define GLYD_OBJECT_STEPS_MAX 255
#define GLYD_OBJECT_STEP 4        /* bytes of one in a dictionary */
#define GLYD_OBJECT_EXTRA_BITS 16 /* most extra bits of a length, which stays below 2^16 */
#define GLYD_OBJECT_MATCH_MIN 4
#define GLYD_OBJECT_SYMBOLS_HERE 144 /* offset symbols of distances; others are places in the dictionary */
#define GLYD_OBJECT_PLACES 112
#define GLYD_OBJECT_REPEATS 3
#define GLYD_OBJECT_REPEAT_START \
  { 1, 4, 8 }
#define GLYD_OBJECT_OFFSET_BIAS 7
#define GLYD_OBJECT_COMPACT_MAX 65535u

#define GLYD_OBJECT_FORM_RAW 0
#define GLYD_OBJECT_FORM_COMPACT 1
#define GLYD_OBJECT_FORM_BLOCKS 2

#define GLYD_DICTIONARY_TABLE 129 /* bytes of a table in a dictionary */
#define GLYD_DICTIONARY_CODES 128 /* of one without an escape, that of steps */
#define GLYD_DICTIONARY_CONTEXTS_AT 12
#define GLYD_DICTIONARY_STEPS_AT 140 /* tables come after them */
#define GLYD_DICTIONARY_PAD 64       /* zeros after the content in memory: copies may read there */

/* Entries of decoding tables: bits taken in bits 0-5, and
 *   literals   bit 6: an escape; bit 7: two of them; both << 8; bits of the first << 24; context after them << 28
 *   offsets    bit 6: an escape; a byte each, from bit 8: bits of the code, extra bits; what these are added to << 32
 *   steps      bits 6-7: the slot; a byte each, from bit 8: bits of the code, extra bits of literals and of match
 *              length; from bit 32, 16 bits each: literals and match length that these are added to */
#define GLYD_OBJECT_ENTRY_BITS 63u
#define GLYD_OBJECT_ENTRY_ESCAPE 64u
#define GLYD_OBJECT_ENTRY_TWO 128u
#define GLYD_OBJECT_ENTRY_SLOT 192u
#define GLYD_OBJECT_PLACE 0x80000000u /* an offset that is a place in the dictionary */

typedef struct glyd_object_code {
  uint16_t code[256]; /* bit-reversed, but for literals */
  uint8_t length[256];
  uint8_t escape; /* symbol whose code means: 8 bits follow; steps have none */
} glyd_object_code;

/* A sequence up to its offset: lengths are these and a number of so many bits. */
typedef struct glyd_object_step {
  uint8_t literals, length;
  uint8_t literals_bits, length_bits;
  uint8_t slot; /* GLYD_OBJECT_REPEATS: a new offset */
} glyd_object_step;

struct glyd_dictionary {
  glyd_allocator allocator;
  uint32_t id;
  uint32_t size; /* of the content */
  unsigned shift;
  unsigned contexts;
  unsigned effort; /* of writers, a hint */
  unsigned n_steps;
  glyd_object_step steps[GLYD_OBJECT_STEPS_MAX];
  uint8_t context[256];
  void *index; /* of object_index_encode.c; NULL before glyd_dictionary_index */
  glyd_object_code code[GLYD_OBJECT_TABLES];
  uint64_t step_table[1 << GLYD_OBJECT_BITS];
  uint64_t offset_table[1 << GLYD_OBJECT_BITS];
  uint32_t literal_table[GLYD_OBJECT_CONTEXTS << GLYD_OBJECT_LITERAL_BITS];
  uint8_t content[]; /* size bytes and GLYD_DICTIONARY_PAD zeros */
};

/* k of the places in a dictionary of size bytes. */
static inline unsigned glyd_object_shift(uint32_t size) {
  unsigned k = 0;
  while ((uint32_t)GLYD_OBJECT_PLACES << k < size) k++;
  return k;
}

/* Bits that hold the number of literals, and the bytes of the first half, of a payload for this content. */
static inline unsigned glyd_object_count_bits(uint32_t size) { return glyd_log2_32(size) + 1; }

/* Entry of an offset symbol with a code of some length. */
static inline uint64_t glyd_object_offset_entry(const glyd_dictionary *d, uint32_t symbol, uint32_t length) {
  const int is_place = symbol >= GLYD_OBJECT_SYMBOLS_HERE;
  const uint32_t extra = is_place ? d->shift : symbol >> 3;
  const uint32_t from = is_place ? GLYD_OBJECT_PLACE | (symbol - GLYD_OBJECT_SYMBOLS_HERE) << extra
                                 : ((8 + (symbol & 7)) << extra) - GLYD_OBJECT_OFFSET_BIAS;
  return (uint64_t)from << 32 | extra << 16 | length << 8 | (length + extra);
}

#endif
