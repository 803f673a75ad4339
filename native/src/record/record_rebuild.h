/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Tables being rebuilt: what the setup makes and the kernels run on.
 */
#ifndef GLYD_RECORD_REBUILD_H
#define GLYD_RECORD_REBUILD_H

#include "record/record_common.h"

/* Residuals, read from the start. */
typedef struct glyd_record_residuals {
  const uint8_t *plane[GLYD_RECORD_PLANES_MAX]; /* the low bytes first */
  const uint8_t *escapes;                       /* four planes */
  uint32_t n_escapes, at;                       /* at: next escape */
  int zero;                                     /* all are 0 */
} glyd_record_residuals;

/* Where the text of a column's values comes from. */
enum {
  GLYD_SLOT_TABLE, /* one slot a value, made once */
  GLYD_SLOT_BATCH, /* one slot a row, made for each batch */
  GLYD_SLOT_COPY   /* bytes to copy */
};

typedef struct glyd_record_field {
  const glyd_record_column *column;
  glyd_record_residuals residuals;
  const uint8_t *null;                        /* exceptions: bit mask, NULL: none */
  const uint8_t *null_id, *null_end;          /* and which, NULL: the only one */
  const uint8_t *miss, *miss_low, *miss_high; /* GLYD_PRED_SAME */
  uint32_t miss_at;
  uint32_t fresh;            /* GLYD_RECORD_FRESH: entries that came up */
  uint32_t keys, key_factor; /* number of keys; second key's */
  const int32_t *key_a, *key_b;
  const int32_t *of_a, *of_b; /* predictions from columns */
  int32_t *last;              /* by key */
  const uint32_t *starts;     /* GLYD_PRED_RANK: by key */
  const uint16_t *pairs;
  uint32_t n_pairs;
  uint32_t table_size; /* slots that stand for values; those of exceptions follow */
  uint32_t most;       /* largest value of the batch */
  int slot;            /* GLYD_SLOT_* */
  int identity;        /* the index of a row's slot is its value */
  unsigned suffix_len;
  uint8_t suffix[32];
  uint8_t *scratch;   /* slots of a table or a batch */
  int32_t *value;     /* value[-2], value[-1]: of the batch before */
  int32_t *index;     /* of slots */
  const uint8_t **at; /* GLYD_SLOT_COPY, texts: per row, lengths are the values */
  const uint8_t *text, *text_end;
  struct glyd_record_field *more; /* of a text column: the next one that shares its bytes */
  struct glyd_record_field *own;  /* of the last of them: the first */
  const uint32_t *offset;         /* of dictionary entries in text; offset[n] is the end of the last */
} glyd_record_field;

/* Slots of a column that has a table of them: its values, then its exceptions. */
static inline uint64_t glyd_record_slots(const glyd_record_field *f) {
  return (uint64_t)f->column->range + 1 + f->column->exceptions;
}

/* A column of slots. */
typedef struct glyd_record_piece {
  const uint8_t *slots;
  const int32_t *index;
} glyd_record_piece;

#define GLYD_RECORD_FUSED_MAX 8u

/* Columns, each with a table of slots, that are one piece: the index of their values together. */
typedef struct glyd_record_fusion {
  struct glyd_record_fusion *next;
  int32_t *index;
  uint32_t n;
  const glyd_record_field *fields[GLYD_RECORD_FUSED_MAX];
} glyd_record_fusion;

/* Pieces in a row, then bytes to copy (NULL: none). */
typedef struct glyd_record_run {
  const glyd_record_piece *pieces;
  uint32_t n;
  const glyd_record_field *copy;
} glyd_record_run;

typedef struct glyd_record_table {
  uint32_t rows, done; /* done: rows before this batch */
  uint32_t batch, row; /* rows of this batch; next one (tables of templates) */
  uint32_t n_fields;
  glyd_record_field *fields; /* in decode order */
  uint32_t *most;            /* of each: bytes of its longest text, 0: of a text column */
  glyd_record_fusion *fusions;
  glyd_record_run *runs;
  uint32_t n_runs;
  uint32_t n_pieces;
  unsigned slot_log;       /* 4 or 5 */
  uint64_t room;           /* for any row of the batch */
  int32_t *keys, *scratch; /* a batch each */
} glyd_record_table;

/* Rebuild the next batch: values, checked, and slots. 0: corrupt. */
typedef int (*glyd_record_batch_fn)(glyd_record_table *table);

/* Put rows [from, to) of the batch of table 0, each followed, if there is a selector (that of the
 * batch's first row), by the next row of the table it names, to [out, end). NULL: corrupt. */
typedef uint8_t *(*glyd_record_rows_fn)(glyd_record_table *tables, const uint8_t *selector, uint8_t *out, uint8_t *end,
                                        uint32_t from, uint32_t to);

/* Slots for n values of a column of numbers or date-times, a batch at most. */
typedef void (*glyd_record_format_fn)(const glyd_record_field *f, const int32_t *v, uint32_t n, unsigned size,
                                      uint8_t *slots);

typedef struct glyd_record_kernels {
  glyd_record_batch_fn batch;
  glyd_record_rows_fn rows;
  glyd_record_format_fn format;
} glyd_record_kernels;

extern const glyd_record_kernels glyd_record_kernels_scalar;
#if defined(__x86_64__)
extern const glyd_record_kernels glyd_record_kernels_avx2;
#endif

#endif
