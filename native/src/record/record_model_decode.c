/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "record/record_model.h"

typedef struct reader {
  const uint8_t *p, *end;
  int bad;
} reader;

static uint64_t get(reader *r, uint64_t most) {
  uint64_t v;
  const uint8_t *p = r->bad ? NULL : glyd_get_varint(r->p, r->end, &v);
  if (!p || v > most) {
    r->bad = 1;
    return 0;
  }
  r->p = p;
  return v;
}

static int64_t get_signed(reader *r) {
  const uint64_t z = get(r, UINT64_MAX);
  return (int64_t)((z >> 1) ^ (0 - (z & 1)));
}

static const uint8_t *get_bytes(reader *r, uint64_t n) {
  const uint8_t *p = r->p;
  if (r->bad || n > (uint64_t)(r->end - p)) {
    r->bad = 1;
    return NULL;
  }
  r->p += n;
  return p;
}

void *glyd_record_arena_get(glyd_record_arena *arena, uint64_t n) {
  if (n > (uint64_t)(arena->end - arena->at)) return NULL;
  uint8_t *const p = arena->at;
  const uint64_t used = GLYD_RECORD_ALIGN(n);
  arena->at = used > (uint64_t)(arena->end - p) ? arena->end : p + used;
  return p;
}

/* Values of a column stay within what its text can show and within 62 bits. */
static int column_bounds(const glyd_record_column *c) {
  const int64_t limit = (int64_t)1 << 62;
  if (c->base < -limit || c->base > limit) return 0;
  const int64_t last = c->base + (int64_t)((uint64_t)c->range * c->divisor);
  if (c->kind == GLYD_RECORD_DATE) {
    int64_t low, high;
    glyd_record_date_bounds(&c->date, &low, &high);
    return c->base >= low && last < high;
  }
  if (c->format == GLYD_RECORD_CLOCK) return c->base >= 0 && c->base <= 1 && c->range == 1439 && c->divisor == 1;
  if (c->format == GLYD_RECORD_TAIL) {
    int64_t power = 1;
    for (unsigned i = 0; i < c->width; i++) power *= 10;
    return c->base >= 0 && last < power;
  }
  return c->format != GLYD_RECORD_PADDED || c->base >= 0;
}

static void read_kind(reader *r, glyd_record_column *c, uint64_t len) {
  if (!glyd_record_is_number(c)) {
    c->range = (uint32_t)get(r, glyd_record_is_dictionary(c) ? GLYD_RECORD_DICT_MAX - 1 - (c->kind == GLYD_RECORD_FRESH)
                                : len < GLYD_RECORD_RANGE_MAX ? len
                                                              : GLYD_RECORD_RANGE_MAX);
    c->divisor = 1;
    /* no more than a reader has memory for */
    if (c->kind == GLYD_RECORD_SORTED) c->text_size = (uint32_t)get(r, glyd_record_decode_memory(len));
    if (glyd_record_is_text(c)) c->end = (uint16_t)get(r, 256);
    return;
  }
  if (c->kind == GLYD_RECORD_INT) {
    c->format = (uint8_t)get(r, GLYD_RECORD_FORMATS - 1);
    c->point = (uint8_t)get(r, 9);
    c->width = (uint8_t)get(r, c->format == GLYD_RECORD_ALIGNED ? GLYD_RECORD_ALIGNED_MAX
                               : c->format == GLYD_RECORD_TAIL  ? GLYD_RECORD_TAIL_MAX
                                                                : GLYD_RECORD_WIDTH_MAX);
    const int whole =
        c->format == GLYD_RECORD_CLOCK || c->format == GLYD_RECORD_PADDED || c->format == GLYD_RECORD_TAIL;
    if ((whole && c->point != 0) || (glyd_record_is_bare(c->format) && c->point == 0)) r->bad = 1;
  } else {
    c->date.len = (uint8_t)get(r, GLYD_RECORD_PATTERN_MAX);
    const uint8_t *const pattern = get_bytes(r, c->date.len);
    if (r->bad) return;
    memcpy(c->date.pattern, pattern, c->date.len);
    if (!glyd_record_date_compile(&c->date)) r->bad = 1;
  }
  c->base = get_signed(r);
  c->range = (uint32_t)get(r, GLYD_RECORD_RANGE_MAX);
  c->divisor = (uint32_t)get(r, GLYD_RECORD_RANGE_MAX);
  if (c->divisor == 0 || !column_bounds(c)) r->bad = 1;
}

/* Which predictions which columns can have. */
static int prediction_valid(const glyd_record_column *columns, uint32_t i) {
  const glyd_record_column *const c = &columns[i];
  const int needs_j = c->pred >= GLYD_PRED_COLUMN, may_k = c->pred >= GLYD_PRED_SUM;
  const int needs_k = c->pred == GLYD_PRED_SUM || c->pred == GLYD_PRED_DIFFERENCE;
  if (needs_j != (c->j >= 0) || (c->k >= 0 && !may_k) || (needs_k && c->k < 0)) return 0;
  if (c->j >= (int32_t)i || c->k >= (int32_t)i) return 0;
  /* texts that end with a byte have no lengths yet when other columns are decoded */
  if ((c->j >= 0 && columns[c->j].end > 0) || (c->k >= 0 && columns[c->k].end > 0)) return 0;
  if (glyd_record_is_text(c)) return c->pred == GLYD_PRED_ZERO;
  if (c->pred >= GLYD_PRED_LAST && glyd_record_keys(c, columns) == 0) return 0;
  if (c->pred >= GLYD_PRED_SAME) return c->range <= 65535;
  if (c->kind == GLYD_RECORD_DICT || c->kind == GLYD_RECORD_FRESH) return c->pred == GLYD_PRED_ZERO;
  if (c->kind == GLYD_RECORD_SORTED) return c->pred <= GLYD_PRED_PREVIOUS;
  if (c->pred == GLYD_PRED_LAST) return 1;
  for (int q = 0; q < 2; q++) {
    const int32_t of = q ? c->k : c->j;
    if (of < 0) continue;
    if (!glyd_record_is_number(&columns[of])) return 0;
  }
  return 1;
}

/* Is there a text column whose bytes those of another may follow? */
static int has_text(const glyd_record_column *columns, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (columns[i].kind == GLYD_RECORD_TEXT) return 1;
  return 0;
}

static void read_column(reader *r, glyd_record_model_table *t, uint32_t i, uint64_t len) {
  glyd_record_column *const c = &t->columns[i];
  memset(c, 0, sizeof *c);
  c->kind = (uint8_t)get(r, GLYD_RECORD_FRESH);
  if (c->kind == 0) r->bad = 1;
  if (c->kind == GLYD_RECORD_MORE && !has_text(t->columns, i)) r->bad = 1;
  c->position = (uint16_t)get(r, t->n_columns - 1);
  c->wide = (uint8_t)get(r, GLYD_RECORD_PLANES_MAX - 1);
  c->exceptions = (uint8_t)get(r, GLYD_RECORD_EXCEPTIONS_MAX);
  if (!r->bad) read_kind(r, c, len);
  c->pred = (uint8_t)get(r, GLYD_PRED_COUNT - 1);
  c->j = (int32_t)get(r, i) - 1;
  c->k = (int32_t)get(r, i) - 1;
  if (c->pred >= GLYD_PRED_COLUMN && c->pred <= GLYD_PRED_DIFFERENCE) c->adjust = (uint32_t)get_signed(r);
  c->mask = -1;
  t->exceptions[i] = NULL;
  if (c->exceptions > 0) {
    if (!glyd_record_is_number(c)) r->bad = 1;
    c->mask = (int32_t)get(r, i) - 1;
    if (c->mask >= 0 && t->columns[c->mask].exceptions == 0) r->bad = 1;
    t->exceptions[i] = r->p;
    for (unsigned q = 0; q < c->exceptions; q++) (void)get_bytes(r, get(r, GLYD_RECORD_EXCEPTION_LEN));
  }
  if (!r->bad && !prediction_valid(t->columns, i)) r->bad = 1;
  if (r->bad) return;
  if (t->order[c->position] != UINT16_MAX) r->bad = 1;
  t->order[c->position] = (uint16_t)i;
}

static glyd_status read_table(reader *r, glyd_record_model_table *t, glyd_record_arena *arena, uint64_t len,
                              uint32_t *columns_left) {
  const uint32_t n = (uint32_t)get(r, *columns_left);
  if (r->bad) return GLYD_E_CORRUPT;
  *columns_left -= n;
  t->n_columns = n;
  t->columns = glyd_record_arena_get(arena, n * sizeof *t->columns);
  t->exceptions = glyd_record_arena_get(arena, n * sizeof *t->exceptions);
  t->order = glyd_record_arena_get(arena, n * sizeof *t->order);
  t->literal = glyd_record_arena_get(arena, (n + 1) * sizeof *t->literal);
  t->literal_len = glyd_record_arena_get(arena, (n + 1) * sizeof *t->literal_len);
  if (!t->columns || !t->exceptions || !t->order || !t->literal || !t->literal_len) return GLYD_E_CORRUPT;
  memset(t->order, 0xFF, n * sizeof *t->order);
  t->literal_total = 0;
  for (uint32_t i = 0; i <= n; i++) {
    t->literal_len[i] = (uint32_t)get(r, GLYD_RECORD_LITERAL_MAX - t->literal_total);
    t->literal_total += t->literal_len[i];
  }
  for (uint32_t i = 0; i <= n; i++) t->literal[i] = get_bytes(r, t->literal_len[i]);
  for (uint32_t i = 0; i < n && !r->bad; i++) read_column(r, t, i, len);
  return r->bad ? GLYD_E_CORRUPT : GLYD_OK;
}

glyd_status glyd_record_decode_model(glyd_record_model *model, glyd_record_arena *arena, const glyd_record_stream *in,
                                     uint64_t len) {
  reader r = {in->data, in->data + in->n, 0};
  uint32_t columns_left = GLYD_RECORD_COLUMNS_MAX;
  model->shape = (unsigned)get(&r, 255);
  model->n_tables = (uint32_t)get(&r, GLYD_RECORD_TABLES_MAX);
  model->rows = (uint32_t)get(&r, len < UINT32_MAX / 2 ? len : UINT32_MAX / 2);
  model->escapes = (uint32_t)get(&r, len < UINT32_MAX / 2 ? len : UINT32_MAX / 2);
  if (r.bad || model->n_tables == 0) return GLYD_E_CORRUPT;
  model->tables = glyd_record_arena_get(arena, model->n_tables * sizeof *model->tables);
  if (!model->tables) return GLYD_E_CORRUPT;
  for (uint32_t i = 0; i < model->n_tables; i++) {
    const glyd_status status = read_table(&r, &model->tables[i], arena, len, &columns_left);
    if (status) return status;
  }
  return r.p == r.end ? GLYD_OK : GLYD_E_CORRUPT;
}
