/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_records_decode.h"

#include "block/block_decode.h"
#include "common/mem.h"
#include "record/record_common.h"
#include "record/record_model.h"
#include "segment/segment_stream_decode.h"

#define TABLE_SIZE GLYD_RECORD_ALIGN(sizeof(glyd_huffman_table))

typedef struct describer {
  glyd_record_stream *streams;
  uint64_t *stored; /* bytes of each stream */
  uint64_t n, next;
} describer;

/* Stored bytes of the next streams, or UINT64_MAX: there are not so many. */
static uint64_t take(describer *d, uint64_t n) {
  uint64_t sum = 0;
  if (n > d->n - d->next) return UINT64_MAX;
  while (n-- > 0) sum += d->stored[d->next++];
  return sum;
}

/* Streams of a column, in the order of spec.md. */
static uint64_t column_streams(const glyd_record_column *c) {
  const uint64_t exceptions = c->exceptions > 0 ? 1u + (c->exceptions > 1) : 0, high = c->range > 255;
  if (c->pred == GLYD_PRED_SAME) return exceptions + 2 + high;
  if (c->end > 0) return c->kind == GLYD_RECORD_TEXT;
  return exceptions + (c->pred == GLYD_PRED_RANK ? 3 + high : 0) + 2 + c->wide + (c->kind == GLYD_RECORD_TEXT);
}

static void describe_column(const glyd_record_model_table *t, uint32_t i, glyd_column_info *out) {
  const glyd_record_column *const c = &t->columns[i];
  out->place = c->position;
  out->kind = c->kind;
  out->prediction = c->pred;
  out->n_entries = glyd_record_is_dictionary(c) ? (uint64_t)c->range + 1 : 0;
  out->n_exceptions = c->exceptions;
  if (glyd_record_is_number(c)) {
    /* 31 bytes at most, and zeros behind them */
    uint8_t text[GLYD_COLUMN_TEXT_SIZE];
    /* as numbers, without the spaces in front or the zeros that the end of one lacks */
    glyd_record_column number = *c;
    if (c->kind == GLYD_RECORD_INT && c->format == GLYD_RECORD_TAIL) number.format = GLYD_RECORD_PADDED;
    if (c->kind == GLYD_RECORD_INT && c->format == GLYD_RECORD_ALIGNED) number.format = GLYD_RECORD_PLAIN;
    const unsigned least = glyd_record_text(&number, 0, text);
    memcpy(out->least, text, least);
    const unsigned most = glyd_record_text(&number, c->range, text);
    memcpy(out->most, text, most);
  }
  const uint32_t len = t->literal_len[c->position];
  out->hint_size = len < GLYD_COLUMN_HINT_SIZE ? len : GLYD_COLUMN_HINT_SIZE;
  memcpy(out->hint, t->literal[c->position] + (len - out->hint_size), out->hint_size);
}

static glyd_status describe(describer *d, const glyd_record_model *model, glyd_records_info *info,
                            glyd_column_info *columns, size_t cap) {
  uint64_t rows[GLYD_RECORD_TABLES_MAX] = {0};
  rows[0] = model->rows;
  d->next = GLYD_RECORD_STREAM_FIRST;
  if (model->n_tables > 1) {
    if (d->n <= d->next || d->streams[d->next].n != model->rows) return GLYD_E_CORRUPT;
    const uint8_t *const selector = d->streams[d->next].data;
    for (uint32_t r = 0; r < model->rows; r++) {
      if (selector[r] >= model->n_tables - 1) return GLYD_E_CORRUPT;
      rows[1 + selector[r]]++;
    }
    info->selector_stored = take(d, 1);
  }
  for (uint32_t i = 0; i < model->n_tables; i++) info->n_columns += model->tables[i].n_columns;
  if (info->n_columns > cap) return GLYD_E_BUFFER;
  for (uint32_t i = 0; i < model->n_tables; i++) {
    const glyd_record_model_table *const t = &model->tables[i];
    for (uint32_t k = 0; k < t->n_columns; k++) {
      glyd_column_info *const out = &columns[t->columns[k].position];
      memset(out, 0, sizeof *out);
      describe_column(t, k, out);
      out->table = i;
      out->n_rows = rows[i];
      out->stored = take(d, column_streams(&t->columns[k]));
      if (out->stored == UINT64_MAX) return GLYD_E_CORRUPT;
    }
    columns += t->n_columns;
  }
  return d->next == d->n ? GLYD_OK : GLYD_E_CORRUPT;
}

/* The share of the pool's stored bytes that the texts taken from it so far have. */
static uint64_t pool_share(const glyd_stream_reader *r) {
  return r->pool_size > 0 ? r->pool_stored * (r->pool_size - r->pool_n) / r->pool_size : 0;
}

glyd_status glyd_segment_records_describe(unsigned cpu, void *workspace, const uint8_t *in, size_t in_len,
                                          uint64_t content, glyd_records_info *info, glyd_column_info *columns,
                                          size_t cap) {
  uint8_t *const base = workspace;
  uint8_t *const table = base + GLYD_RECORD_ALIGN(glyd_lz_decode_workspace());
  glyd_record_arena arena = {table + TABLE_SIZE, table + TABLE_SIZE + glyd_record_decode_memory(content)};
  glyd_stream_reader reader = {cpu, in, in + in_len, base, (glyd_huffman_table *)(void *)table, &arena, NULL, 0, 0, 0};
  describer d = {.n = 0};
  memset(info, 0, sizeof *info);
  glyd_status status = glyd_segment_stream_begin(&reader, &d.n);
  if (status) return status;
  if (d.n < GLYD_RECORD_STREAM_FIRST) return GLYD_E_CORRUPT;
  d.streams = glyd_record_arena_get(&arena, d.n * sizeof *d.streams);
  d.stored = glyd_record_arena_get(&arena, d.n * sizeof *d.stored);
  if (!d.streams || !d.stored) return GLYD_E_CORRUPT;
  for (uint64_t i = 0; i < d.n; i++) {
    const uint8_t *const from = reader.at;
    const uint64_t pooled = pool_share(&reader);
    status = glyd_segment_stream_decode(&reader, &d.streams[i]);
    if (status) return status;
    d.stored[i] = (uint64_t)(reader.at - from) + pool_share(&reader) - pooled;
  }
  if (reader.at != reader.end || reader.pool_n > 0) return GLYD_E_CORRUPT;
  glyd_record_model model;
  status = glyd_record_decode_model(&model, &arena, &d.streams[GLYD_RECORD_STREAM_MODEL], content);
  if (status) return status;
  info->shape = (int)model.shape;
  info->n_tables = model.n_tables;
  info->n_rows = model.rows;
  info->n_escapes = model.escapes;
  info->escapes_size = d.streams[GLYD_RECORD_STREAM_RAW].n;
  info->model_stored = d.stored[GLYD_RECORD_STREAM_MODEL];
  info->dictionaries_stored = d.stored[GLYD_RECORD_STREAM_TEXTS];
  info->escapes_stored = d.stored[GLYD_RECORD_STREAM_ESCAPES] + d.stored[GLYD_RECORD_STREAM_RAW];
  return describe(&d, &model, info, columns, cap);
}
