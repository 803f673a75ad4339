/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Columns: the fields of a slot as numbers, and how they are predicted.
 */
#ifndef GLYD_RECORD_COLUMNS_ENCODE_H
#define GLYD_RECORD_COLUMNS_ENCODE_H

#include "record/record_rows_encode.h"

GLYD_INLINE uint32_t glyd_record_zigzag(uint32_t v) { return v << 1 ^ (0u - (v >> 31)); }

/* Minutes of the day, from anywhere a day or two around it. */
GLYD_INLINE uint32_t glyd_record_wrap_clock(uint32_t v) {
  int32_t t = (int32_t)v;
  t += t < 0 ? 1440 : 0;
  t -= t >= 1440 ? 1440 : 0;
  t -= t >= 1440 ? 1440 : 0;
  return (uint32_t)t;
}

/* What is stored of v beside its prediction p: of clocks the shorter way round. */
GLYD_INLINE uint32_t glyd_record_difference(int clock, uint32_t v, uint32_t p) {
  if (!clock) return v - p;
  int32_t d = (int32_t)(v - glyd_record_wrap_clock(p));
  d += d < -720 ? 1440 : 0;
  d -= d >= 720 ? 1440 : 0;
  return (uint32_t)d;
}

typedef struct glyd_record_entry {
  uint32_t at, len, count, id;
} glyd_record_entry;

/* A column being encoded; c.position is its slot. */
typedef struct glyd_record_source {
  glyd_record_column c;
  int32_t *v;    /* a row */
  uint8_t *null; /* mask of exceptions, NULL: none */
  uint8_t *null_id;
  uint32_t n_null;
  glyd_record_span exception[GLYD_RECORD_EXCEPTIONS_MAX];
  glyd_record_entry *entries; /* dictionary, in the order of the ids */
  uint32_t n_entries;
  uint32_t fresh; /* GLYD_RECORD_FRESH: entries that come up before the sampled rows */
  /* ranks within keys */
  uint32_t keys;
  uint32_t *starts; /* keys + 1 */
  uint16_t *pairs;
  uint32_t *z; /* what is stored, a row; GLYD_PRED_SAME: value + 1, or 0 */
} glyd_record_source;

typedef struct glyd_record_source_table {
  const glyd_record_rows *rows;
  uint32_t n_rows;
  const uint32_t *row; /* rows of the segment, NULL: all */
  uint32_t first_slot, n_columns;
  glyd_record_source *columns;         /* by slot */
  const glyd_record_text_ref *literal; /* n_columns + 1 */
  uint16_t *order;                     /* columns in the order they are decoded */
} glyd_record_source_table;

GLYD_INLINE glyd_record_span glyd_record_source_field(const glyd_record_source_table *t, uint32_t slot, uint32_t r) {
  const uint32_t row = t->row ? t->row[r] : r;
  return t->rows->fields[t->rows->first[row] + t->first_slot + slot];
}

/* Find a type for every column and turn fields into values. 0: too little memory. */
int glyd_record_type_columns(glyd_record_source_table *table, glyd_record_memory *memory);

/* Choose how each column is predicted, and an order. 0: too little memory. */
int glyd_record_choose(glyd_record_source_table *table, glyd_record_memory *memory);

/* Put a dictionary's entries in the order of their texts, and change the ids. 0: too little memory. */
int glyd_record_sort_dictionary(const glyd_record_source_table *table, glyd_record_source *source,
                                glyd_record_memory *memory);

/* Let text columns whose rows have much text in common share a stream. */
void glyd_record_join_texts(glyd_record_source_table *table);

/* Let texts end with a byte, where that takes less than their lengths. */
void glyd_record_end_texts(glyd_record_source_table *table);

/* What stands for value v where `next` entries have come up. */
GLYD_INLINE uint32_t glyd_record_fresh_code(uint32_t v, uint32_t *next) {
  const uint32_t fresh = v == *next;
  *next += fresh;
  return fresh ? 0 : v + 1;
}

/* log2(v) in 1/65536, v > 0; the same on every machine. */
GLYD_INLINE uint32_t glyd_record_log2(uint32_t v) {
  const unsigned k = glyd_log2_32(v);
  const uint32_t t = (uint32_t)(((uint64_t)v << (32 - k)) >> 16) & 0xFFFF; /* fraction of v / 2^k */
  /* log2(1 + t) is t + 0.343 t (1 - t) within 0.009 */
  return (k << 16) + t + (uint32_t)(((uint64_t)t * (65536 - t) >> 16) * 22479 >> 16);
}

#endif
