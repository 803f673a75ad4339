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
#define GLYD_OBJECT_TABLES (GLYD_OBJECT_CONTEXTS + 5)
#define GLYD_OBJECT_BITS 11 /* longest code */

/* Tables after those of literals: index = contexts + this. */
#define GLYD_OBJECT_COMMANDS 0
#define GLYD_OBJECT_LITERAL_ESCAPES 1
#define GLYD_OBJECT_MATCH_ESCAPES 2
#define GLYD_OBJECT_OFFSETS 3
#define GLYD_OBJECT_STEPS 4 /* dictionaries with steps only */

#define GLYD_OBJECT_LAZY 16 /* lazy_below where matches are worth looking for */

#define GLYD_OBJECT_STEPS_MAX 255
#define GLYD_OBJECT_STEP 3 /* bytes of one in a dictionary: literals, match length, offset */
#define GLYD_OBJECT_LENGTHS 15
#define GLYD_OBJECT_MATCH_MIN 4
#define GLYD_OBJECT_LITERALS_ESCAPE 3
#define GLYD_OBJECT_ESCAPE 255       /* 16 bits with the length follow */
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

#define GLYD_DICTIONARY_TABLE 129     /* bytes of a table in a dictionary */
#define GLYD_DICTIONARY_TABLES_AT 155 /* where steps and then tables start */
#define GLYD_DICTIONARY_PAD 64        /* zeros after the content in memory: copies may read there */

/* Entries of decoding tables: bits taken in bits 0-5, and
 *   all but steps bit 6: an escape
 *   literals      bit 7: two of them; both << 8; bits of the first << 24; context after them << 28
 *   escapes, commands   symbol << 8
 *   offsets       bit 7: a place in the dictionary; bits of the code << 8, of what follows it << 13;
 *                 first bits of the number << 18
 *   steps         a sequence, below, with bit 6: no escape; match length 0: it follows */
#define GLYD_OBJECT_ENTRY_BITS 63u
#define GLYD_OBJECT_ENTRY_ESCAPE 64u
#define GLYD_OBJECT_ENTRY_STEP 64u /* a step, no escape */
#define GLYD_OBJECT_ENTRY_TWO 128u
#define GLYD_OBJECT_ENTRY_PLACE 128u

/* Lengths and offset of a sequence; its lowest bits are free. */
#define GLYD_OBJECT_SEQUENCE(literals, length, slot) \
  ((uint64_t)(length) << 48 | (uint64_t)(literals) << 32 | (uint64_t)(slot) << 16)

typedef struct glyd_object_code {
  uint16_t code[256]; /* bit-reversed, but for literals */
  uint8_t length[256];
  uint8_t escape; /* symbol whose code means: 8 bits follow */
} glyd_object_code;

struct glyd_dictionary {
  glyd_allocator allocator;
  uint32_t id;
  uint32_t size; /* of the content */
  unsigned shift;
  unsigned contexts;
  unsigned lazy_below; /* bytes: writers look for something better than a shorter match */
  unsigned n_steps;    /* 0: every sequence starts with a command */
  uint8_t steps[GLYD_OBJECT_STEPS_MAX][GLYD_OBJECT_STEP];
  uint8_t lengths[GLYD_OBJECT_LENGTHS + 1]; /* the last: what escapes are added to */
  uint8_t context[256];
  void *index; /* of object_index_encode.c; NULL before glyd_dictionary_index */
  glyd_object_code code[GLYD_OBJECT_TABLES];
  unsigned bits; /* of the longest code: tables have 2^bits entries */
  uint32_t literal_table[GLYD_OBJECT_CONTEXTS << GLYD_OBJECT_BITS];
  uint32_t table[GLYD_OBJECT_STEPS][1 << GLYD_OBJECT_BITS];
  uint64_t step_table[1 << GLYD_OBJECT_BITS]; /* all 0 without steps */
  uint8_t content[];                          /* size bytes and GLYD_DICTIONARY_PAD zeros */
};

/* k of the places in a dictionary of size bytes. */
static inline unsigned glyd_object_shift(uint32_t size) {
  unsigned k = 0;
  while ((uint32_t)GLYD_OBJECT_PLACES << k < size) k++;
  return k;
}

/* Bits that hold the number of literals of a payload for this content. */
static inline unsigned glyd_object_count_bits(uint32_t size) { return glyd_log2_32(size) + 1; }

/* Tables after those of literals. */
static inline unsigned glyd_object_other_tables(unsigned n_steps) {
  return n_steps != 0 ? GLYD_OBJECT_STEPS + 1 : GLYD_OBJECT_STEPS;
}

/* Match length of a command, 0 where an escape follows. */
static inline uint32_t glyd_object_command_length(const glyd_dictionary *d, uint32_t command) {
  const uint32_t code = command >> 2 & 15;
  return code < GLYD_OBJECT_LENGTHS ? d->lengths[code] : 0;
}

/* Entry of an offset symbol with a code of some length. */
static inline uint32_t glyd_object_offset_entry(const glyd_dictionary *d, uint32_t symbol, uint32_t length) {
  const int is_place = symbol >= GLYD_OBJECT_SYMBOLS_HERE;
  const uint32_t extra = is_place ? d->shift : symbol >> 3;
  const uint32_t first = is_place ? symbol - GLYD_OBJECT_SYMBOLS_HERE : 8 + (symbol & 7);
  return first << 18 | extra << 13 | length << 8 | (is_place ? GLYD_OBJECT_ENTRY_PLACE : 0) | (length + extra);
}

#endif
