/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Tables are set up once from the model: which columns become tables of slots,
 * what literal text goes with which slot. Then rows are rebuilt in batches.
 */
#include "record/record_decode.h"

#include "common/cpu.h"
#include "record/record_fuse_decode.h"
#include "record/record_model.h"
#include "record/record_rebuild.h"

typedef struct rebuild {
  const glyd_record_stream *streams;
  size_t n_streams, next; /* next stream to hand out */
  const uint8_t *texts, *texts_end;
  glyd_record_arena *arena;
  uint64_t reserve; /* what tables and columns not set up yet need at least */
  glyd_record_model model;
  glyd_record_table *tables;
  const uint8_t *selector;
  const glyd_record_kernels *kernels;
} rebuild;

static const glyd_record_stream *take(rebuild *b, uint64_t n) {
  if (b->next >= b->n_streams || b->streams[b->next].n != n || b->streams[b->next].pooled) return NULL;
  return &b->streams[b->next++];
}

static const glyd_record_stream *take_text(rebuild *b) {
  return b->next < b->n_streams ? &b->streams[b->next++] : NULL;
}

static uint32_t count_bits(const uint8_t *mask, uint32_t n) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; i += 64) {
    uint64_t v = glyd_load64(mask + (i >> 3));
    if (n - i < 64) v &= ((uint64_t)1 << (n - i)) - 1;
    sum += (uint32_t)__builtin_popcountll(v);
  }
  return sum;
}

static int all_zero(const uint8_t *p, uint64_t n) { return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0); }

static int take_residuals(rebuild *b, glyd_record_residuals *r, uint32_t rows, int wide) {
  const glyd_record_stream *s;
  r->zero = 1;
  for (int k = 0; k <= wide; k++) {
    if (!(s = take(b, rows))) return 0;
    r->plane[k] = s->data;
    r->zero = r->zero && all_zero(s->data, rows);
  }
  if (!(s = take_text(b)) || s->pooled || s->n % 4 != 0 || s->n / 4 > rows) return 0;
  r->escapes = s->data;
  r->n_escapes = (uint32_t)(s->n / 4);
  return 1;
}

static int take_exceptions(rebuild *b, const glyd_record_table *table, glyd_record_field *f) {
  const uint32_t bytes = (table->rows + 7) / 8;
  const glyd_record_stream *s = take(b, bytes);
  if (!s) return 0;
  f->null = s->data;
  if (f->column->mask >= 0) { /* their exclusive or is stored */
    uint8_t *const mask = glyd_record_arena_get(b->arena, bytes + GLYD_RECORD_PAD);
    if (!mask) return 0;
    const uint8_t *const other = table->fields[f->column->mask].null;
    for (uint32_t i = 0; i < bytes; i++) mask[i] = s->data[i] ^ other[i];
    memset(mask + bytes, 0, GLYD_RECORD_PAD);
    f->null = mask;
  }
  if (f->column->exceptions > 1) {
    if (!(s = take(b, count_bits(f->null, table->rows)))) return 0;
    f->null_id = s->data;
    f->null_end = s->data + s->n;
  }
  return 1;
}

static int take_ranks(rebuild *b, glyd_record_field *f) {
  const glyd_record_stream *const low = take(b, f->keys), *const high = take(b, f->keys);
  if (!low || !high) return 0;
  uint32_t *const starts = glyd_record_arena_get(b->arena, ((uint64_t)f->keys + 1) * sizeof *starts);
  if (!starts) return 0;
  uint32_t sum = 0;
  for (uint32_t i = 0; i < f->keys; i++) {
    starts[i] = sum;
    sum += (uint32_t)low->data[i] | (uint32_t)high->data[i] << 8;
    if (sum > GLYD_RECORD_PAIRS_MAX) return 0;
  }
  const glyd_record_stream *const id = take(b, sum);
  const glyd_record_stream *const id_high = f->column->range > 255 ? take(b, sum) : NULL;
  if (sum == 0 || !id || (f->column->range > 255 && !id_high)) return 0;
  uint16_t *const pairs = glyd_record_arena_get(b->arena, (uint64_t)sum * sizeof *pairs);
  if (!pairs) return 0;
  for (uint32_t i = 0; i < sum; i++) pairs[i] = (uint16_t)(id->data[i] | (id_high ? id_high->data[i] << 8 : 0));
  f->starts = starts;
  f->pairs = pairs;
  f->n_pairs = sum;
  return 1;
}

/* Entries of a dictionary in the order in which they come up: 0 stands for the next one.
 * The first was predicted, as the value of a key that comes up first. */
static int take_fresh(rebuild *b, glyd_record_field *f, uint32_t n, const uint8_t *low, const uint8_t *high) {
  uint8_t *const to = glyd_record_arena_get(b->arena, 2 * ((uint64_t)n + GLYD_RECORD_PAD));
  if (!to) return 0;
  uint8_t *const to_high = to + n + GLYD_RECORD_PAD;
  uint32_t next = 1;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t code = (uint32_t)low[i] | (high ? (uint32_t)high[i] << 8 : 0);
    const uint32_t v = code == 0 ? next : code - 1;
    next += code == 0;
    to[i] = (uint8_t)v;
    to_high[i] = (uint8_t)(v >> 8);
  }
  if (next > f->column->range + 1) return 0;
  memset(to + n, 0, GLYD_RECORD_PAD);
  memset(to_high + n, 0, GLYD_RECORD_PAD);
  f->miss_low = to;
  f->miss_high = to_high;
  return 1;
}

static int take_same(rebuild *b, const glyd_record_table *table, glyd_record_field *f) {
  const glyd_record_stream *const mask = take(b, (table->rows + 7) / 8);
  if (!mask) return 0;
  const uint32_t misses = count_bits(mask->data, table->rows);
  const glyd_record_stream *const low = take(b, misses);
  const glyd_record_stream *const high = f->column->range > 255 ? take(b, misses) : NULL;
  if (!low || (f->column->range > 255 && !high)) return 0;
  f->miss = mask->data;
  if (f->column->kind == GLYD_RECORD_FRESH) return take_fresh(b, f, misses, low->data, high ? high->data : NULL);
  f->miss_low = low->data;
  if (high) {
    f->miss_high = high->data;
  } else {
    uint8_t *const zeros = glyd_record_arena_get(b->arena, (uint64_t)misses + GLYD_RECORD_PAD);
    if (!zeros) return 0;
    memset(zeros, 0, misses + GLYD_RECORD_PAD);
    f->miss_high = zeros;
  }
  return 1;
}

/* The same of a sorted dictionary: texts share their beginning with the one before. */
static int take_sorted(rebuild *b, glyd_record_field *f) {
  const uint32_t n = f->column->range + 1, size = f->column->text_size;
  uint32_t *const offset = glyd_record_arena_get(b->arena, ((uint64_t)n + 1) * sizeof *offset);
  uint8_t *const text = glyd_record_arena_get(b->arena, (uint64_t)size + GLYD_RECORD_PAD);
  if (!offset || !text) return 0;
  uint64_t sum = 0, before = 0;
  const uint8_t *const lengths = b->texts, *p = lengths;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t shared, len;
    p = glyd_get_varint(p, b->texts_end, &shared);
    if (p) p = glyd_get_varint(p, b->texts_end, &len);
    if (!p || shared > before || len > size || shared + len > size - sum) return 0;
    offset[i] = (uint32_t)sum;
    before = shared + len;
    sum += before;
  }
  if (sum != size) return 0;
  offset[n] = size;
  const uint8_t *from = p;
  p = lengths;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t shared, len;
    p = glyd_get_varint(p, b->texts_end, &shared);
    p = glyd_get_varint(p, b->texts_end, &len);
    if (len > (uint64_t)(b->texts_end - from)) return 0;
    uint8_t *const to = text + offset[i];
    if (shared > 0) memcpy(to, text + offset[i - 1], (size_t)shared);
    memcpy(to + shared, from, (size_t)len);
    from += len;
  }
  memset(text + size, 0, GLYD_RECORD_PAD);
  f->offset = offset;
  f->text = text;
  b->texts = from;
  return 1;
}

/* Offsets of a dictionary's entries; their bytes follow their lengths. */
static int take_dictionary(rebuild *b, glyd_record_field *f) {
  const uint32_t n = f->column->range + 1;
  uint32_t *const offset = glyd_record_arena_get(b->arena, ((uint64_t)n + 1) * sizeof *offset);
  if (!offset) return 0;
  uint64_t sum = 0;
  const uint8_t *p = b->texts;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t len;
    p = glyd_get_varint(p, b->texts_end, &len);
    if (!p || len > (uint64_t)(b->texts_end - p)) return 0;
    offset[i] = (uint32_t)sum;
    sum += len;
    if (sum > (uint64_t)(b->texts_end - p)) return 0;
  }
  offset[n] = (uint32_t)sum;
  f->offset = offset;
  f->text = p;
  b->texts = p + sum;
  return 1;
}

static int take_streams(rebuild *b, glyd_record_table *table, uint32_t i) {
  glyd_record_field *const f = &table->fields[i];
  const glyd_record_column *const c = f->column;
  const uint64_t batch = table->rows < GLYD_RECORD_BATCH ? table->rows : GLYD_RECORD_BATCH;
  int32_t *const value = glyd_record_arena_get(b->arena, (batch + 16) * sizeof *value);
  if (!value) return 0;
  f->value = value + 8;
  f->value[-1] = f->value[-2] = 0;
  if (c->exceptions > 0 && !take_exceptions(b, table, f)) return 0;
  if (c->j >= 0) f->of_a = f->key_a = table->fields[c->j].value;
  if (c->k >= 0) f->of_b = f->key_b = table->fields[c->k].value;
  if (c->k >= 0) f->key_factor = table->fields[c->k].column->range + 1;
  f->keys = glyd_record_keys(c, table->fields[0].column);
  if (c->pred == GLYD_PRED_LAST || c->pred == GLYD_PRED_SAME) {
    f->last = glyd_record_arena_get(b->arena, (uint64_t)f->keys * sizeof *f->last);
    if (!f->last) return 0;
    memset(f->last, 0, f->keys * sizeof *f->last);
  }
  if (c->pred == GLYD_PRED_SAME) {
    if (!take_same(b, table, f)) return 0;
  } else {
    if (c->pred == GLYD_PRED_RANK && !take_ranks(b, f)) return 0;
    if (c->end == 0 && !take_residuals(b, &f->residuals, table->rows, c->wide)) return 0;
  }
  if (c->kind == GLYD_RECORD_DICT || c->kind == GLYD_RECORD_FRESH) return take_dictionary(b, f);
  if (c->kind == GLYD_RECORD_SORTED) return take_sorted(b, f);
  if (!glyd_record_is_text(c)) return 1;
  f->at = glyd_record_arena_get(b->arena, batch * sizeof *f->at);
  if (!f->at) return 0;
  f->own = f;
  if (c->kind == GLYD_RECORD_TEXT) {
    const glyd_record_stream *const s = take_text(b);
    if (!s) return 0;
    f->text = s->data;
    f->text_end = s->data + s->n;
    return 1;
  }
  glyd_record_field *last = f; /* the text column before and those that follow it already */
  while (!glyd_record_is_text((--last)->column)) continue;
  f->own = last->own;
  last->more = f;
  last->own = NULL;
  return 1;
}

/* ---- slots ---- */

static unsigned longest(const glyd_record_field *f, const uint8_t *exceptions) {
  unsigned most = 0;
  if (glyd_record_is_text(f->column)) return f->column->range;
  if (glyd_record_is_dictionary(f->column)) {
    for (uint32_t i = 0; i <= f->column->range; i++) {
      const uint32_t len = f->offset[i + 1] - f->offset[i];
      if (len > most) most = len;
    }
    return most;
  }
  most = glyd_record_text_max(f->column);
  for (unsigned q = 0; q < f->column->exceptions; q++) {
    if (*exceptions > most) most = *exceptions;
    exceptions += 1 + *exceptions;
  }
  return most;
}

#define SHORT_TEXT 31u /* bytes of texts that are put into slots, a batch at a time */

/* Choose where a column's text comes from, with slots of 32 bytes in mind. */
static void choose_slot(rebuild *b, const glyd_record_table *table, glyd_record_field *f, unsigned most) {
  const glyd_record_column *const c = f->column;
  const uint64_t left = (uint64_t)(b->arena->end - b->arena->at);
  const uint64_t room = left > b->reserve ? left - b->reserve : 0;
  const uint64_t entries = (uint64_t)c->range + 1, batch_size = (GLYD_RECORD_BATCH + 8) * (uint64_t)(32 + 4);
  if (glyd_record_is_text(c)) {
    f->slot = most <= SHORT_TEXT && batch_size <= room ? GLYD_SLOT_BATCH : GLYD_SLOT_COPY;
  } else if (glyd_record_is_dictionary(c)) {
    const uint64_t size = (entries + 4) * 32 * ((most + 30) / 31 + 1);
    f->slot = most <= 93 && size <= room && size <= 65536 + 4 * (uint64_t)f->offset[entries] + 32 * entries
                  ? GLYD_SLOT_TABLE
              : most <= SHORT_TEXT && batch_size <= room ? GLYD_SLOT_BATCH
                                                         : GLYD_SLOT_COPY;
  } else {
    const uint64_t most_entries = table->rows / 2; /* made once, and used more than once */
    const uint64_t size = (entries + c->exceptions + 4) * 64;
    f->slot = entries <= GLYD_RECORD_SLOT_TABLE && entries <= most_entries && size <= room ? GLYD_SLOT_TABLE
                                                                                           : GLYD_SLOT_BATCH;
  }
}

static unsigned slots_of(const glyd_record_field *f, unsigned most, unsigned text) {
  if (f->slot == GLYD_SLOT_COPY) return 0;
  return f->slot == GLYD_SLOT_BATCH || most == 0 ? 1 : (most + text - 1) / text;
}

/* Bytes of literal that fit behind a column's text into its slots. */
static unsigned suffix_room(const glyd_record_field *f, unsigned most, unsigned text, unsigned literal) {
  unsigned n = slots_of(f, most, text) * text;
  n = n > most ? n - most : 0;
  if (n > 31) n = 31;
  if (f->slot == GLYD_SLOT_BATCH && text == 15 && n > 8) n = 8;
  return n < literal ? n : literal;
}

static uint32_t count_pieces(const glyd_record_model_table *m, const glyd_record_table *table, const uint32_t *most,
                             unsigned text) {
  uint64_t n = (m->literal_len[0] + text - 1) / text;
  for (uint32_t p = 0; p < m->n_columns; p++) {
    const glyd_record_field *const f = &table->fields[m->order[p]];
    const uint32_t literal = m->literal_len[p + 1] - suffix_room(f, most[m->order[p]], text, m->literal_len[p + 1]);
    n += slots_of(f, most[m->order[p]], text) + (literal + text - 1) / text;
  }
  return (uint32_t)n;
}

/* Write text and suffix over the slots of entry i of a column that has so many pieces. */
static void put_text(uint8_t *slots, uint64_t entries, unsigned pieces, unsigned size, uint64_t i, const uint8_t *text,
                     unsigned len, const glyd_record_field *f) {
  uint8_t whole[160];
  memcpy(whole, text, len);
  memcpy(whole + len, f->suffix, f->suffix_len);
  unsigned left = len + f->suffix_len;
  const uint8_t *p = whole;
  for (unsigned q = 0; q < pieces; q++) {
    uint8_t *const slot = slots + (q * entries + i) * size;
    const unsigned n = left < size - 1 ? left : size - 1;
    memset(slot, 0, size);
    memcpy(slot, p, n);
    slot[size - 1] = (uint8_t)n;
    p += n;
    left -= n;
  }
}

/* Slots for all values of a column of numbers or date-times. */
static void put_numbers(const glyd_record_kernels *kernels, uint8_t *slots, uint64_t entries, unsigned pieces,
                        unsigned size, const glyd_record_field *f) {
  int32_t v[GLYD_RECORD_BATCH];
  uint8_t whole[(GLYD_RECORD_BATCH + 2) * 32];
  glyd_record_field bare = *f;
  bare.suffix_len = 0;
  for (uint32_t from = 0; from <= f->column->range; from += GLYD_RECORD_BATCH) {
    const uint32_t left = f->column->range + 1 - from, n = left < GLYD_RECORD_BATCH ? left : GLYD_RECORD_BATCH;
    for (uint32_t i = 0; i < n; i++) v[i] = (int32_t)(from + i);
    if (pieces == 1) {
      kernels->format(f, v, n, size, slots + (size_t)from * size);
      continue;
    }
    kernels->format(&bare, v, n, 32, whole);
    for (uint32_t i = 0; i < n; i++)
      put_text(slots, entries, pieces, size, from + i, whole + (size_t)i * 32, whole[i * 32 + 31], f);
  }
}

static int make_slots(rebuild *b, const glyd_record_table *table, glyd_record_field *f, const uint8_t *exceptions,
                      unsigned pieces, unsigned size, glyd_record_piece *out) {
  const glyd_record_column *const c = f->column;
  const uint64_t batch = table->rows < GLYD_RECORD_BATCH ? table->rows : GLYD_RECORD_BATCH;
  f->table_size = f->slot == GLYD_SLOT_TABLE ? c->range + 1 : (uint32_t)batch + 4; /* formatting overshoots a slot */
  const uint64_t entries = (uint64_t)f->table_size + c->exceptions;
  uint8_t *const slots = glyd_record_arena_get(b->arena, entries * size * pieces + 64);
  if (!slots) return 0;
  f->identity = f->slot == GLYD_SLOT_TABLE && c->exceptions == 0;
  if (f->identity) {
    f->index = f->value;
  } else {
    f->index = glyd_record_arena_get(b->arena, batch * sizeof *f->index);
    if (!f->index) return 0;
  }
  f->scratch = slots;
  if (f->slot == GLYD_SLOT_TABLE) {
    if (glyd_record_is_dictionary(c))
      for (uint32_t v = 0; v <= c->range; v++)
        put_text(slots, entries, pieces, size, v, f->text + f->offset[v], f->offset[v + 1] - f->offset[v], f);
    else
      put_numbers(b->kernels, slots, entries, pieces, size, f);
  }
  for (unsigned q = 0; q < c->exceptions; q++) {
    put_text(slots, entries, pieces, size, f->table_size + q, exceptions + 1, *exceptions, f);
    exceptions += 1 + *exceptions;
  }
  for (unsigned q = 0; q < pieces; q++) out[q] = (glyd_record_piece){slots + q * entries * size, f->index};
  return 1;
}

/* Constant text as pieces; returns how many, or UINT32_MAX. */
static uint32_t make_literal(rebuild *b, const uint8_t *text, uint32_t len, unsigned size, const int32_t *zeros,
                             glyd_record_piece *out) {
  uint32_t n = 0;
  while (len > 0) {
    const uint32_t take_len = len < size - 1 ? len : size - 1;
    uint8_t *const slot = glyd_record_arena_get(b->arena, size);
    if (!slot) return UINT32_MAX;
    memset(slot, 0, size);
    memcpy(slot, text, take_len);
    slot[size - 1] = (uint8_t)take_len;
    out[n++] = (glyd_record_piece){slot, zeros};
    text += take_len;
    len -= take_len;
  }
  return n;
}

static int make_runs(rebuild *b, const glyd_record_model_table *m, glyd_record_table *table, const uint32_t *most) {
  const unsigned size = 1u << table->slot_log, text = size - 1;
  const uint64_t batch = table->rows < GLYD_RECORD_BATCH ? table->rows : GLYD_RECORD_BATCH;
  glyd_record_piece *const pieces = glyd_record_arena_get(b->arena, (uint64_t)table->n_pieces * sizeof *pieces);
  int32_t *const zeros = glyd_record_arena_get(b->arena, batch * sizeof *zeros);
  table->runs = glyd_record_arena_get(b->arena, ((uint64_t)m->n_columns + 1) * sizeof *table->runs);
  if (!pieces || !zeros || !table->runs) return 0;
  memset(zeros, 0, batch * sizeof *zeros);
  glyd_record_group group = {.n = 0};
  uint32_t n = make_literal(b, m->literal[0], m->literal_len[0], size, zeros, pieces), from = 0;
  if (n == UINT32_MAX) return 0;
  for (uint32_t p = 0; p < m->n_columns; p++) {
    const uint32_t i = m->order[p];
    glyd_record_field *const f = &table->fields[i];
    const uint8_t *literal = m->literal[p + 1];
    uint32_t literal_len = m->literal_len[p + 1];
    if (f->slot == GLYD_SLOT_COPY) {
      n = glyd_record_group_close(&group, b->arena, b->reserve, table, pieces, n);
      table->runs[table->n_runs++] = (glyd_record_run){pieces + from, n - from, f};
      from = n;
    } else {
      f->suffix_len = suffix_room(f, most[i], text, literal_len);
      memcpy(f->suffix, literal, f->suffix_len);
      literal += f->suffix_len;
      literal_len -= f->suffix_len;
      const unsigned count = slots_of(f, most[i], text);
      const unsigned longest_text = most[i] + f->suffix_len;
      if (count != 1 || !glyd_record_group_takes(&group, table, f, longest_text))
        n = glyd_record_group_close(&group, b->arena, b->reserve, table, pieces, n);
      if (!make_slots(b, table, f, m->exceptions[i], count, size, pieces + n)) return 0;
      if (count == 1 && glyd_record_group_takes(&group, table, f, longest_text))
        glyd_record_group_add(&group, f, longest_text, n);
      n += count;
    }
    if (literal_len > 0) n = glyd_record_group_close(&group, b->arena, b->reserve, table, pieces, n);
    const uint32_t more = make_literal(b, literal, literal_len, size, zeros, pieces + n);
    if (more == UINT32_MAX) return 0;
    n += more;
  }
  n = glyd_record_group_close(&group, b->arena, b->reserve, table, pieces, n);
  if (n > from || table->n_runs == 0) table->runs[table->n_runs++] = (glyd_record_run){pieces + from, n - from, NULL};
  return 1;
}

/* What slots of a column take at least, with which it can do, and with a table of them. */
static uint64_t slot_memory(const glyd_record_table *table, const glyd_record_field *f, unsigned most) {
  const glyd_record_column *const c = f->column;
  const uint64_t batch = table->rows < GLYD_RECORD_BATCH ? table->rows : GLYD_RECORD_BATCH;
  if (f->slot == GLYD_SLOT_TABLE)
    return ((uint64_t)c->range + 1 + c->exceptions) * 32 * (most / 31 + 2) + 128 + 4 * batch;
  return f->slot == GLYD_SLOT_BATCH ? (batch + 4 + c->exceptions) * 32 + 4 * batch + 256 : 0;
}

/* Fields and their streams; nothing yet that could be done without. */
static int take_table(rebuild *b, uint32_t t, uint32_t n_rows) {
  const glyd_record_model_table *const m = &b->model.tables[t];
  glyd_record_table *const table = &b->tables[t];
  memset(table, 0, sizeof *table);
  table->rows = n_rows;
  table->n_fields = m->n_columns;
  const uint64_t batch = n_rows < GLYD_RECORD_BATCH ? n_rows : GLYD_RECORD_BATCH;
  table->fields = glyd_record_arena_get(b->arena, m->n_columns * sizeof *table->fields);
  table->most = glyd_record_arena_get(b->arena, m->n_columns * sizeof *table->most);
  table->keys = glyd_record_arena_get(b->arena, (batch + 8) * sizeof *table->keys);
  table->scratch = glyd_record_arena_get(b->arena, (batch + 8) * sizeof *table->scratch);
  if (!table->fields || !table->most || !table->keys || !table->scratch) return 0;
  memset(table->fields, 0, m->n_columns * sizeof *table->fields);
  for (uint32_t i = 0; i < m->n_columns; i++) {
    glyd_record_field *const f = &table->fields[i];
    f->column = &m->columns[i];
    f->slot = glyd_record_is_number(f->column) ? GLYD_SLOT_BATCH : GLYD_SLOT_COPY; /* what can be done without memory */
    if (!take_streams(b, table, i)) return 0;
    table->most[i] = longest(f, m->exceptions[i]);
    b->reserve += slot_memory(table, f, table->most[i]);
  }
  b->reserve += glyd_record_table_memory(m->n_columns, m->literal_total);
  return 1;
}

static int setup_table(rebuild *b, uint32_t t) {
  const glyd_record_model_table *const m = &b->model.tables[t];
  glyd_record_table *const table = &b->tables[t];
  const uint32_t *const most = table->most;
  int wide_slots = 0;
  for (uint32_t i = 0; i < m->n_columns; i++) {
    glyd_record_field *const f = &table->fields[i];
    b->reserve -= slot_memory(table, f, most[i]);
    choose_slot(b, table, f, most[i]);
    if (f->slot == GLYD_SLOT_BATCH) {
      if (most[i] > 31) return 0;
      wide_slots |= most[i] > 15;
    }
    b->reserve += slot_memory(table, f, most[i]); /* set aside what make_slots will take */
  }
  const uint32_t with16 = count_pieces(m, table, most, 15), with32 = count_pieces(m, table, most, 31);
  table->slot_log = !wide_slots && with16 <= with32 + with32 / 4 ? 4 : 5;
  table->n_pieces = table->slot_log == 4 ? with16 : with32;
  if (!make_runs(b, m, table, most)) return 0;
  for (uint32_t i = 0; i < m->n_columns; i++) b->reserve -= slot_memory(table, &table->fields[i], most[i]);
  b->reserve -= glyd_record_table_memory(m->n_columns, m->literal_total);
  return 1;
}

/* How many of n rows are of each of so many templates? 0: one is of another. Four counts in turns: one would have to
 * wait for itself where rows are alike. */
static int count_rows(const uint8_t *selector, uint32_t n, uint32_t templates, uint32_t *counts) {
  uint32_t part[4][256] = {{0}};
  for (uint32_t r = 0; r < n; r++) part[r & 3][selector[r]]++;
  for (uint32_t t = 0; t < 256; t++) {
    const uint32_t sum = part[0][t] + part[1][t] + part[2][t] + part[3][t];
    if (t < templates)
      counts[t] = sum;
    else if (sum > 0)
      return 0;
  }
  return 1;
}

static int setup(rebuild *b) {
  const uint32_t n = b->model.n_tables;
  uint32_t counts[GLYD_RECORD_TABLES_MAX] = {0};
  counts[0] = b->model.rows;
  b->next = GLYD_RECORD_STREAM_FIRST;
  if (n > 1) {
    const glyd_record_stream *const s = take(b, b->model.rows);
    if (!s) return 0;
    b->selector = s->data;
    if (!count_rows(s->data, b->model.rows, n - 1, counts + 1)) return 0;
  }
  b->tables = glyd_record_arena_get(b->arena, n * sizeof *b->tables);
  if (!b->tables) return 0;
  b->reserve = 0;
  for (uint32_t t = 0; t < n; t++)
    if (!take_table(b, t, counts[t])) return 0;
  for (uint32_t t = 0; t < n; t++)
    if (!setup_table(b, t)) return 0;
  return b->next == b->n_streams && b->texts == b->texts_end;
}

/* ---- rows ---- */

typedef struct escapes {
  const uint8_t *p, *end; /* gap and length of those to come */
  const uint8_t *raw, *raw_end;
  uint32_t left;
  uint64_t row, len; /* of the next one; row UINT64_MAX: none */
} escapes;

static int next_escape(escapes *e, uint64_t row) {
  if (e->left == 0) {
    e->row = UINT64_MAX;
    return e->p == e->end && e->raw == e->raw_end;
  }
  uint64_t gap;
  e->left--;
  e->p = glyd_get_varint(e->p, e->end, &gap);
  if (e->p) e->p = glyd_get_varint(e->p, e->end, &e->len);
  if (!e->p || e->len > (uint64_t)(e->raw_end - e->raw) || gap > UINT32_MAX) return 0;
  e->row = row + gap;
  return 1;
}

/* Escapes that stand before this row. */
static uint8_t *put_escapes(escapes *e, uint64_t row, uint8_t *out, const uint8_t *end) {
  while (e->row == row) {
    if (e->len > (uint64_t)(end - out)) return NULL;
    memcpy(out, e->raw, e->len);
    out += e->len;
    e->raw += e->len;
    if (!next_escape(e, row)) return NULL;
  }
  return out;
}

static int put_content(const rebuild *b, uint8_t *out, uint8_t *end) {
  const glyd_record_stream *const index = &b->streams[GLYD_RECORD_STREAM_ESCAPES];
  const glyd_record_stream *const raw = &b->streams[GLYD_RECORD_STREAM_RAW];
  escapes e = {index->data, index->data + index->n, raw->data, raw->data + raw->n, b->model.escapes, 0, 0};
  if (!next_escape(&e, 0)) return 0;
  glyd_record_table *const table = &b->tables[0];
  while (table->done + table->batch < table->rows) {
    if (!b->kernels->batch(table)) return 0;
    uint32_t from = 0;
    while (from < table->batch) {
      out = put_escapes(&e, (uint64_t)table->done + from, out, end);
      if (!out) return 0;
      const uint64_t until = e.row < (uint64_t)table->done + table->batch ? e.row - table->done : table->batch;
      if (until <= from) return 0;
      out =
          b->kernels->rows(b->tables, b->selector ? b->selector + table->done : NULL, out, end, from, (uint32_t)until);
      if (!out) return 0;
      from = (uint32_t)until;
    }
  }
  out = put_escapes(&e, table->rows, out, end);
  return out == end && e.row == UINT64_MAX;
}

glyd_status glyd_record_decode(unsigned cpu, glyd_record_arena *arena, const glyd_record_stream *streams,
                               size_t n_streams, uint8_t *out, size_t len) {
  rebuild b = {.streams = streams, .n_streams = n_streams, .arena = arena};
  if (n_streams < GLYD_RECORD_STREAM_FIRST || streams[GLYD_RECORD_STREAM_ESCAPES].pooled) return GLYD_E_CORRUPT;
  const glyd_status status = glyd_record_decode_model(&b.model, arena, &streams[GLYD_RECORD_STREAM_MODEL], len);
  if (status) return status;
  b.texts = streams[GLYD_RECORD_STREAM_TEXTS].data;
  b.texts_end = b.texts + streams[GLYD_RECORD_STREAM_TEXTS].n;
  b.kernels = &glyd_record_kernels_scalar;
#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX2) b.kernels = &glyd_record_kernels_avx2;
#else
  (void)cpu;
#endif
  if (!setup(&b) || !put_content(&b, out, out + len)) return GLYD_E_CORRUPT;
  return GLYD_OK;
}
