/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "record/record_encode.h"

#include "record/record_write_encode.h"

uint64_t glyd_record_encode_memory(uint64_t content) { return 16 * content + ((uint64_t)16 << 20); }

typedef struct encoder {
  glyd_record_memory memory;
  glyd_record_rows rows;
  glyd_record_source_table *tables;
  uint32_t n_tables;
  glyd_record_writer writer;
} encoder;

static int init_table(encoder *e, glyd_record_source_table *t, uint32_t n_columns) {
  t->rows = &e->rows;
  t->n_columns = n_columns;
  t->columns = glyd_record_memory_get(&e->memory, n_columns, sizeof *t->columns);
  t->order = glyd_record_memory_get(&e->memory, n_columns, sizeof *t->order);
  return t->columns && t->order;
}

/* Table 0 has the slots that all rows share: those of the only template, or the first ones. */
static int make_tables(encoder *e) {
  glyd_record_rows *const rows = &e->rows;
  const uint32_t T = rows->n_templates;
  static const uint8_t nothing[1] = {0};
  e->n_tables = T == 1 ? 1 : 1 + T;
  e->tables = glyd_record_memory_get(&e->memory, e->n_tables, sizeof *e->tables);
  if (!e->tables) return 0;
  memset(e->tables, 0, e->n_tables * sizeof *e->tables);
  const uint32_t shared = T == 1 ? rows->templates[0].n_slots : rows->shared;
  glyd_record_source_table *const all = &e->tables[0];
  all->n_rows = rows->n;
  if (!init_table(e, all, shared)) return 0;
  if (T == 1) {
    all->literal = rows->templates[0].literal;
    return 1;
  }
  glyd_record_text_ref *const literal = glyd_record_memory_get(&e->memory, shared + 1, sizeof *literal);
  if (!literal) return 0;
  for (uint32_t i = 0; i < shared; i++) literal[i] = rows->templates[0].literal[i];
  literal[shared] = (glyd_record_text_ref){nothing, 0};
  all->literal = literal;
  uint32_t *list[GLYD_RECORD_TABLES_MAX];
  for (uint32_t i = 0; i < T; i++) {
    glyd_record_source_table *const t = &e->tables[1 + i];
    list[i] = glyd_record_memory_get(&e->memory, rows->templates[i].rows, sizeof *list[i]);
    if (!list[i]) return 0;
    t->row = list[i];
    t->first_slot = shared;
    t->literal = rows->templates[i].literal + shared;
    if (!init_table(e, t, rows->templates[i].n_slots - shared)) return 0;
  }
  for (uint32_t r = 0; r < rows->n; r++) {
    glyd_record_source_table *const t = &e->tables[1 + rows->which[r]];
    list[rows->which[r]][t->n_rows++] = r;
  }
  return 1;
}

/* Exceptions often stand in the same rows of several columns. */
static void choose_masks(glyd_record_source_table *t) {
  const uint32_t bytes = (t->n_rows + 7) / 8;
  for (uint32_t i = 0; i < t->n_columns; i++) {
    glyd_record_source *const s = &t->columns[t->order[i]];
    if (s->c.exceptions == 0) continue;
    uint64_t best = 0;
    for (uint32_t b = 0; b < bytes; b++) best += (uint64_t)__builtin_popcount(s->null[b]);
    const uint32_t from = i > 32 ? i - 32 : 0;
    for (uint32_t q = from; q < i; q++) {
      const glyd_record_source *const o = &t->columns[t->order[q]];
      if (o->c.exceptions == 0) continue;
      uint64_t sum = 0;
      for (uint32_t b = 0; b < bytes && sum < best; b++)
        sum += (uint64_t)__builtin_popcount((unsigned)(s->null[b] ^ o->null[b]));
      if (sum >= best) continue;
      best = sum;
      s->c.mask = t->order[q];
    }
  }
}

static uint8_t *put_signed(uint8_t *p, int64_t v) {
  return glyd_put_varint(p, (uint64_t)v << 1 ^ (0 - ((uint64_t)v >> 63)));
}

/* Places in the order of decoding; what refers to a column stores its place + 1. */
static uint8_t *put_column(uint8_t *p, const glyd_record_source_table *t, const glyd_record_source *s,
                           const uint16_t *place) {
  const glyd_record_column *const c = &s->c;
  p = glyd_put_varint(p, c->kind);
  p = glyd_put_varint(p, c->position);
  p = glyd_put_varint(p, c->wide);
  p = glyd_put_varint(p, c->exceptions);
  if (!glyd_record_is_number(c)) {
    p = glyd_put_varint(p, c->range);
    if (c->kind == GLYD_RECORD_SORTED) p = glyd_put_varint(p, c->text_size);
    if (glyd_record_is_text(c)) p = glyd_put_varint(p, c->end);
  } else {
    if (c->kind == GLYD_RECORD_INT) {
      p = glyd_put_varint(p, c->format);
      p = glyd_put_varint(p, c->point);
      p = glyd_put_varint(p, c->width);
    } else {
      p = glyd_put_varint(p, c->date.len);
      memcpy(p, c->date.pattern, c->date.len);
      p += c->date.len;
    }
    p = put_signed(p, c->base);
    p = glyd_put_varint(p, c->range);
    p = glyd_put_varint(p, c->divisor);
  }
  p = glyd_put_varint(p, c->pred);
  p = glyd_put_varint(p, c->j < 0 ? 0 : 1 + (uint64_t)place[c->j]);
  p = glyd_put_varint(p, c->k < 0 ? 0 : 1 + (uint64_t)place[c->k]);
  if (c->pred >= GLYD_PRED_COLUMN && c->pred <= GLYD_PRED_DIFFERENCE) p = put_signed(p, (int32_t)c->adjust);
  if (c->exceptions > 0) {
    p = glyd_put_varint(p, c->mask < 0 ? 0 : 1 + (uint64_t)place[c->mask]);
    for (unsigned i = 0; i < c->exceptions; i++) {
      *p++ = (uint8_t)s->exception[i].len;
      memcpy(p, t->rows->in + s->exception[i].at, s->exception[i].len);
      p += s->exception[i].len;
    }
  }
  return p;
}

#define COLUMN_BYTES 128 /* of a column in the model, without exceptions */

static int put_model(encoder *e) {
  uint8_t *const before = e->memory.at;
  uint64_t room = 64;
  for (uint32_t i = 0; i < e->n_tables; i++) {
    const glyd_record_source_table *const t = &e->tables[i];
    uint64_t literal = 0;
    room += 16;
    for (uint32_t c = 0; c <= t->n_columns; c++) literal += t->literal[c].len + 5;
    if (literal > GLYD_RECORD_LITERAL_MAX) return 0;
    for (uint32_t c = 0; c < t->n_columns; c++)
      room += COLUMN_BYTES + t->columns[c].c.exceptions * (GLYD_RECORD_EXCEPTION_LEN + 1u);
    room += literal;
  }
  uint8_t *const out = glyd_record_memory_get(&e->memory, room, 1);
  if (!out) return 0;
  uint8_t *p = out;
  p = glyd_put_varint(p, e->rows.shape);
  p = glyd_put_varint(p, e->n_tables);
  p = glyd_put_varint(p, e->rows.n);
  p = glyd_put_varint(p, e->rows.n_escapes);
  for (uint32_t i = 0; i < e->n_tables; i++) {
    const glyd_record_source_table *const t = &e->tables[i];
    uint16_t *const place = glyd_record_memory_get(&e->memory, t->n_columns, sizeof *place);
    if (!place) return 0;
    for (uint32_t c = 0; c < t->n_columns; c++) place[t->order[c]] = (uint16_t)c;
    p = glyd_put_varint(p, t->n_columns);
    for (uint32_t c = 0; c <= t->n_columns; c++) p = glyd_put_varint(p, t->literal[c].len);
    for (uint32_t c = 0; c <= t->n_columns; c++) {
      memcpy(p, t->literal[c].p, t->literal[c].len);
      p += t->literal[c].len;
    }
    for (uint32_t c = 0; c < t->n_columns; c++) p = put_column(p, t, &t->columns[t->order[c]], place);
  }
  const int done = glyd_record_put_text(&e->writer, out, (size_t)(p - out));
  e->memory.at = before;
  return done;
}

/* Bytes with which two entries begin. */
static uint32_t shared_start(const uint8_t *in, const glyd_record_entry *a, const glyd_record_entry *b) {
  const uint32_t most = a->len < b->len ? a->len : b->len;
  uint32_t n = 0;
  while (n < most && in[a->at + n] == in[b->at + n]) n++;
  return n;
}

static int put_texts(encoder *e) {
  uint8_t *const before = e->memory.at;
  uint64_t room = 0;
  for (uint32_t i = 0; i < e->n_tables; i++)
    for (uint32_t c = 0; c < e->tables[i].n_columns; c++) {
      const glyd_record_source *const s = &e->tables[i].columns[c];
      if (!glyd_record_is_dictionary(&s->c)) continue;
      for (uint32_t q = 0; q < s->n_entries; q++) room += s->entries[q].len + 10;
    }
  uint8_t *const out = glyd_record_memory_get(&e->memory, room + 1, 1);
  if (!out) return 0;
  uint8_t *p = out;
  for (uint32_t i = 0; i < e->n_tables; i++)
    for (uint32_t c = 0; c < e->tables[i].n_columns; c++) {
      const glyd_record_source *const s = &e->tables[i].columns[e->tables[i].order[c]];
      if (!glyd_record_is_dictionary(&s->c)) continue;
      const uint8_t *const in = e->rows.in;
      const int sorted = s->c.kind == GLYD_RECORD_SORTED;
      for (unsigned pass = 0; pass < 2; pass++) /* lengths, then bytes */
        for (uint32_t q = 0; q < s->n_entries; q++) {
          const glyd_record_entry *const x = &s->entries[q];
          const uint32_t shared = sorted && q > 0 ? shared_start(in, x - 1, x) : 0;
          if (pass == 0) {
            if (sorted) p = glyd_put_varint(p, shared);
            p = glyd_put_varint(p, x->len - shared);
          } else {
            memcpy(p, in + x->at + shared, x->len - shared);
            p += x->len - shared;
          }
        }
    }
  const int done = glyd_record_put_text(&e->writer, out, (size_t)(p - out));
  e->memory.at = before;
  return done;
}

static int put_escapes(encoder *e) {
  uint8_t *const before = e->memory.at;
  const glyd_record_rows *const rows = &e->rows;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < rows->n_escapes; i++) sum += rows->escapes[i].len;
  uint8_t *const index = glyd_record_memory_get(&e->memory, (uint64_t)rows->n_escapes * 10 + 1, 1);
  uint8_t *const raw = glyd_record_memory_get(&e->memory, sum + 1, 1);
  if (!index || !raw) return 0;
  uint8_t *p = index, *q = raw;
  uint32_t row = 0;
  for (uint32_t i = 0; i < rows->n_escapes; i++) {
    const glyd_record_escape x = rows->escapes[i];
    p = glyd_put_varint(p, x.row - row);
    p = glyd_put_varint(p, x.len);
    row = x.row;
    memcpy(q, rows->in + x.at, x.len);
    q += x.len;
  }
  const int done =
      glyd_record_put(&e->writer, index, (size_t)(p - index)) && glyd_record_put_text(&e->writer, raw, (size_t)sum);
  e->memory.at = before;
  return done;
}

/* What a reader needs beside the streams must fit its bound with them. */
static uint64_t decoder_memory(const encoder *e, uint64_t streams) {
  uint64_t n = GLYD_RECORD_ALIGN(streams * 16) + 16384;
  for (uint32_t i = 0; i < e->n_tables; i++) {
    const glyd_record_source_table *const t = &e->tables[i];
    uint64_t literal = 0;
    for (uint32_t c = 0; c <= t->n_columns; c++) literal += t->literal[c].len;
    n += glyd_record_table_memory(t->n_columns, literal);
    for (uint32_t c = 0; c < t->n_columns; c++) {
      const glyd_record_source *const s = &t->columns[c];
      uint64_t keys = 0;
      if (s->c.pred >= GLYD_PRED_LAST) {
        keys = (uint64_t)t->columns[s->c.j].c.range + 1;
        if (s->c.k >= 0) keys *= (uint64_t)t->columns[s->c.k].c.range + 1;
      }
      n += sizeof s->c + glyd_record_column_memory(&s->c, t->n_rows, keys, s->keys ? s->starts[s->keys] : 0);
    }
  }
  return n;
}

unsigned glyd_record_ways(const uint8_t *in, size_t len, glyd_record_way *ways, int *compare) {
  uint8_t separator;
  unsigned n = 0;
  *compare = 0;
  if (len > UINT32_MAX / 4) return 0;
  const uint32_t size = (uint32_t)len;
  const unsigned shape = glyd_record_detect(in, size, &separator);
  const glyd_record_way found = {shape, separator}, log = {GLYD_SHAPE_LOG, separator};
  if ((shape == GLYD_SHAPE_NONE || shape == GLYD_SHAPE_LOG || shape == GLYD_SHAPE_DELIMITED) &&
      glyd_record_may_be_document(in, size)) {
    ways[n++] = (glyd_record_way){GLYD_SHAPE_DOCUMENT, separator};
    if (shape != GLYD_SHAPE_NONE) ways[n++] = found;
    return n;
  }
  if (shape == GLYD_SHAPE_NONE) return 0;
  ways[n++] = found;
  if (shape == GLYD_SHAPE_JSON && glyd_record_may_be_wrapped(in, size))
    ways[n++] = (glyd_record_way){GLYD_SHAPE_WRAPPED, separator};
  if (shape == GLYD_SHAPE_JSON && glyd_record_keys_vary(in, size))
    ways[n++] = (glyd_record_way){GLYD_SHAPE_PIECES, separator};
  if (shape == GLYD_SHAPE_DELIMITED && glyd_record_may_be_log(in, size, separator)) ways[n++] = log;
  *compare = n > 1;
  return n;
}

int glyd_record_encode(void *memory, uint64_t memory_len, const uint8_t *in, size_t len, glyd_record_way way,
                       glyd_record_sink sink, void *arg) {
  glyd_record_memory whole = {memory, (uint8_t *)memory + memory_len};
  if (len > UINT32_MAX / 4) return 0;
  encoder *const e = glyd_record_memory_get(&whole, 1, sizeof *e);
  if (!e) return 0;
  memset(e, 0, sizeof *e);
  e->memory = whole;
  if (!glyd_record_split(&e->rows, &e->memory, in, (uint32_t)len, way.shape, way.separator) || !make_tables(e))
    return 0;
  uint64_t streams = GLYD_RECORD_STREAM_FIRST + (e->n_tables > 1), columns = 0;
  uint32_t most = 0;
  for (uint32_t i = 0; i < e->n_tables; i++) {
    glyd_record_source_table *const t = &e->tables[i];
    columns += t->n_columns;
    if (columns > GLYD_RECORD_COLUMNS_MAX) return 0;
    if (!glyd_record_type_columns(t, &e->memory) || !glyd_record_choose(t, &e->memory) ||
        !glyd_record_transform(t, &e->memory))
      return 0;
    choose_masks(t);
    for (uint32_t c = 0; c < t->n_columns; c++) streams += glyd_record_column_streams(&t->columns[c].c);
    if (t->n_rows > most) most = t->n_rows;
  }
  glyd_record_writer *const w = &e->writer;
  w->sink = sink;
  w->arg = arg;
  w->low = glyd_record_memory_get(&e->memory, (uint64_t)most + 64, 1);
  w->high = glyd_record_memory_get(&e->memory, (uint64_t)most + 64, 1);
  w->bytes = glyd_record_memory_get(&e->memory, (uint64_t)most + 64, 4);
  if (!w->low || !w->high || !w->bytes) return 0;
  w->decoder = decoder_memory(e, streams);
  if (!sink(arg, NULL, (size_t)streams, 0)) return 0;
  if (!put_model(e) || !put_texts(e) || !put_escapes(e)) return 0;
  if (e->n_tables > 1 && !glyd_record_put(w, e->rows.which, e->rows.n)) return 0;
  for (uint32_t i = 0; i < e->n_tables; i++)
    if (!glyd_record_put_columns(w, &e->tables[i], &e->memory)) return 0;
  /* masks in masks are read beside the stream they belong to */
  return w->decoder + 2 * w->longest + 4096 <= glyd_record_decode_memory(len);
}
