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
#define GLYD_OBJECT_TABLES (GLYD_OBJECT_CONTEXTS + 4)
#define GLYD_OBJECT_BITS 11 /* longest code */

/* Tables after those of literals: index = contexts + this. */
#define GLYD_OBJECT_COMMANDS 0
#define GLYD_OBJECT_LITERAL_ESCAPES 1
#define GLYD_OBJECT_MATCH_ESCAPES 2
#define GLYD_OBJECT_OFFSETS 3

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

#define GLYD_DICTIONARY_TABLE 129 /* bytes of a table in a dictionary */
#define GLYD_DICTIONARY_TABLES_AT 155
#define GLYD_DICTIONARY_PAD 64 /* zeros after the content in memory: copies may read there */

/* Entries of decoding tables: code length in bits 0-3, and
 *   all           bit 4: an escape
 *   literals      symbol << 8 | context after it << 5
 *   escapes       symbol << 8
 *   commands      match length (0: an escape follows) << 16 | symbol << 8
 *   offsets       base << 11 | is a place in the dictionary << 10 | extra bits << 5 */
#define GLYD_OBJECT_ENTRY_ESCAPE 16u
#define GLYD_OBJECT_ENTRY_PLACE 1024u

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
  uint8_t lengths[GLYD_OBJECT_LENGTHS + 1]; /* the last: what escapes are added to */
  uint8_t context[256];
  void *index; /* of object_index_encode.c; NULL before glyd_dictionary_index */
  glyd_object_code code[GLYD_OBJECT_TABLES];
  uint16_t literal_table[GLYD_OBJECT_CONTEXTS][1 << GLYD_OBJECT_BITS];
  uint32_t table[4][1 << GLYD_OBJECT_BITS];
  uint8_t content[]; /* size bytes and GLYD_DICTIONARY_PAD zeros */
};

/* k of the places in a dictionary of size bytes. */
static inline unsigned glyd_object_shift(uint32_t size) {
  unsigned k = 0;
  while ((uint32_t)GLYD_OBJECT_PLACES << k < size) k++;
  return k;
}

/* Bits that hold the number of literals of a payload for this content. */
static inline unsigned glyd_object_count_bits(uint32_t size) { return glyd_log2_32(size) + 1; }

/* Match length of a command, 0 where an escape follows. */
static inline uint32_t glyd_object_command_length(const glyd_dictionary *d, uint32_t command) {
  const uint32_t code = command >> 2 & 15;
  return code < GLYD_OBJECT_LENGTHS ? d->lengths[code] : 0;
}

/* Entry of an offset symbol but for its code length. */
static inline uint32_t glyd_object_offset_entry(const glyd_dictionary *d, uint32_t symbol) {
  if (symbol >= GLYD_OBJECT_SYMBOLS_HERE)
    return ((symbol - GLYD_OBJECT_SYMBOLS_HERE) << d->shift) << 11 | GLYD_OBJECT_ENTRY_PLACE | d->shift << 5;
  return (((8 + (symbol & 7)) << (symbol >> 3)) - GLYD_OBJECT_OFFSET_BIAS) << 11 | (symbol >> 3) << 5;
}

#endif
