/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Columns as streams.
 */
#ifndef GLYD_RECORD_WRITE_ENCODE_H
#define GLYD_RECORD_WRITE_ENCODE_H

#include "record/record_columns_encode.h"
#include "record/record_encode.h"

typedef struct glyd_record_writer {
  glyd_record_sink sink;
  void *arg;
  uint64_t decoder;            /* bytes the reader needs for streams */
  uint64_t longest;            /* stream */
  uint8_t *low, *high, *bytes; /* a byte a row; 4 a row */
} glyd_record_writer;

/* Residuals of all columns, in decode order, for what was chosen. 0: too little memory. */
int glyd_record_transform(glyd_record_source_table *table, glyd_record_memory *memory);

/* Streams that a column has. */
unsigned glyd_record_column_streams(const glyd_record_column *column);

/* One stream to the sink. */
int glyd_record_put(glyd_record_writer *writer, const uint8_t *data, size_t n);

/* The same of text. */
int glyd_record_put_text(glyd_record_writer *writer, const uint8_t *data, size_t n);

/* The streams of the table's columns. */
int glyd_record_put_columns(glyd_record_writer *writer, const glyd_record_source_table *table,
                            glyd_record_memory *memory);

#endif
