/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What a record segment holds: its columns, their types and bounds, and the
 * bytes that each takes (native/src/record/spec.md).
 */
#ifndef GLYD_RECORDS_H
#define GLYD_RECORDS_H

#include "glyd/glyd.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GLYD_COLUMN_TEXT_SIZE 32 /* of a bound, with the 0 behind it */
#define GLYD_COLUMN_HINT_SIZE 64

typedef struct glyd_records_info {
  int shape;          /* 1 delimited, 2 JSON, 3 SQL, 4 log; others: not known to this version */
  uint32_t n_tables;  /* that of all rows and, if there are several kinds of row, one a kind */
  uint32_t n_columns; /* of all tables */
  uint64_t n_rows;
  uint64_t n_escapes;    /* pieces of content that are no rows */
  uint64_t escapes_size; /* their bytes, as content */
  /* stored bytes beside the columns' */
  uint64_t model_stored, dictionaries_stored, escapes_stored, selector_stored;
} glyd_records_info;

typedef struct glyd_column_info {
  uint32_t table; /* from 0 */
  uint32_t place; /* in the rows of its table */
  int kind; /* 1 integer or decimal, 2 date-time, 3 dictionary, 4 text, 5 sorted dictionary, 6 text beside text, 7 dictionary in the order of the rows */
  int prediction; /* 0 … 9, record/spec.md */
  uint64_t n_rows;
  uint64_t n_entries;    /* of a dictionary */
  uint64_t n_exceptions; /* different texts that are no number or date-time */
  uint64_t stored;       /* bytes, without the texts of dictionaries */
  /* Of numbers and date-times: bounds as text, "" for others. All values, but
   * for exceptions, are within; the bounds need not occur. */
  char least[GLYD_COLUMN_TEXT_SIZE], most[GLYD_COLUMN_TEXT_SIZE];
  /* The end of the text that stands before it in each row, where names of fields are. */
  uint32_t hint_size;
  char hint[GLYD_COLUMN_HINT_SIZE];
} glyd_column_info;

/* Workspace for segments of so many content bytes, to be aligned to 64. */
GLYD_API uint64_t glyd_read_records_workspace(uint64_t content_size);

/* Describe the payload of a record segment whose header says content_size.
 * columns (room for cap of them) are filled table by table, by place; there are
 * info->n_columns, BUFFER if that is more than cap. Decodes streams but no rows.
 * CORRUPT for anything that breaks a rule of the format. */
GLYD_API glyd_status glyd_read_records(const void *payload, size_t size, uint64_t content_size, void *workspace,
                                       glyd_records_info *info, glyd_column_info *columns, size_t cap);

#ifdef __cplusplus
}
#endif

#endif
