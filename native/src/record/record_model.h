/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The model of a segment as read: tables, literals, columns.
 */
#ifndef GLYD_RECORD_MODEL_H
#define GLYD_RECORD_MODEL_H

#include "record/record_common.h"
#include "record/record_decode.h"

typedef struct glyd_record_model_table {
  uint32_t n_columns;
  glyd_record_column *columns; /* in decode order */
  const uint8_t **exceptions;  /* of each column: texts, each a byte of length and bytes */
  uint16_t *order;             /* column at each place of the row */
  const uint8_t **literal;     /* n_columns + 1 */
  uint32_t *literal_len;
  uint32_t literal_total;
} glyd_record_model_table;

typedef struct glyd_record_model {
  unsigned shape;
  uint32_t n_tables;
  uint32_t rows, escapes;
  glyd_record_model_table *tables;
} glyd_record_model;

/* Read and check the model stream; len is the content size. GLYD_E_CORRUPT. */
glyd_status glyd_record_decode_model(glyd_record_model *model, glyd_record_arena *arena, const glyd_record_stream *in,
                                     uint64_t len);

#endif
