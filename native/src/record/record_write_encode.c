/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "record/record_write_encode.h"

#include <stdlib.h>

#define PAIRS_MOST 200000u /* more cost more than they save */

static int is_null(const glyd_record_source *s, uint32_t r) { return s->null && (s->null[r >> 3] >> (r & 7) & 1); }

GLYD_INLINE uint32_t key_of(const glyd_record_source_table *t, const glyd_record_column *m, uint32_t r) {
  const uint32_t a = (uint32_t)t->columns[m->j].v[r];
  return m->k < 0 ? a : a * (t->columns[m->k].c.range + 1) + (uint32_t)t->columns[m->k].v[r];
}

static uint32_t keys_of(const glyd_record_source_table *t, const glyd_record_column *m) {
  const uint32_t a = t->columns[m->j].c.range + 1;
  return m->k < 0 ? a : a * (t->columns[m->k].c.range + 1);
}

/* Pairs of a key, the most common first, then the one that came up first. */
static int compare_pairs(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

#define FEW 24u /* pairs of a key that are sorted by insertion */

static void sort_pairs(uint64_t *pair, uint32_t n) {
  if (n > FEW) {
    qsort(pair, n, sizeof *pair, compare_pairs);
    return;
  }
  for (uint32_t i = 1; i < n; i++) {
    const uint64_t x = pair[i];
    uint32_t k = i;
    for (; k > 0 && pair[k - 1] > x; k--) pair[k] = pair[k - 1];
    pair[k] = x;
  }
}

/* Ranks of values within keys, the most common first. 0: too many pairs; -1: memory. */
static int make_ranks(const glyd_record_source_table *t, glyd_record_source *s, glyd_record_memory *memory) {
  const uint32_t keys = keys_of(t, &s->c), n = t->n_rows;
  s->keys = keys;
  s->starts = glyd_record_memory_get(memory, (uint64_t)keys + 1, sizeof *s->starts);
  s->pairs = glyd_record_memory_get(memory, GLYD_RECORD_PAIRS_MAX, sizeof *s->pairs);
  uint8_t *const before = memory->at;
  const uint32_t most = n < PAIRS_MOST ? n : PAIRS_MOST;
  const unsigned bits = glyd_log2_32(most | 1) + 2;
  const uint32_t mask = (1u << bits) - 1;
  uint64_t *const pair = glyd_record_memory_get(memory, (uint64_t)mask + 1, sizeof *pair);
  uint32_t *const count = glyd_record_memory_get(memory, (uint64_t)mask + 1, sizeof *count);
  uint64_t *const order = glyd_record_memory_get(memory, most, sizeof *order);
  uint32_t *const used = glyd_record_memory_get(memory, most, sizeof *used); /* places in the table, as they come up */
  if (!s->starts || !s->pairs || !pair || !count || !order || !used) return -1;
  memset(count, 0, ((size_t)mask + 1) * sizeof *count);
  uint32_t pairs = 0;
  for (uint32_t r = 0; r < n; r++) {
    if (r > 0 && is_null(s, r)) s->v[r] = s->v[r - 1];
    const uint64_t p = (uint64_t)key_of(t, &s->c, r) << 16 | (uint32_t)s->v[r];
    uint32_t x = (uint32_t)(p * 0x9E3779B97F4A7C15u >> (64 - bits));
    while (count[x] && pair[x] != p) x = (x + 1) & mask;
    if (count[x] == 0) {
      if (pairs == most) return 0;
      used[pairs++] = x;
      pair[x] = p;
    }
    count[x]++;
    s->z[r] = x;
  }
  /* by key, then falling count, then as they come up */
  uint32_t *const starts = s->starts;
  memset(starts, 0, ((size_t)keys + 1) * sizeof *starts);
  for (uint32_t i = 0; i < pairs; i++) starts[(pair[used[i]] >> 16) + 1]++;
  for (uint32_t i = 0; i < keys; i++) starts[i + 1] += starts[i];
  for (uint32_t i = 0; i < pairs; i++) {
    const uint32_t x = used[i];
    order[starts[pair[x] >> 16]++] = (uint64_t)(UINT32_MAX - count[x]) << 32 | i;
  }
  for (uint32_t key = 0, from = 0; key < keys; key++) { /* starts are the ends now */
    sort_pairs(order + from, starts[key] - from);
    for (uint32_t i = from; i < starts[key]; i++) {
      const uint32_t x = used[(uint32_t)order[i]];
      s->pairs[i] = (uint16_t)pair[x];
      count[x] = i - from;
    }
    from = starts[key];
  }
  memmove(starts + 1, starts, keys * sizeof *starts);
  starts[0] = 0;
  for (uint32_t r = 0; r < n; r++) s->z[r] = count[s->z[r]];
  memory->at = before - GLYD_RECORD_ALIGN(GLYD_RECORD_PAIRS_MAX * sizeof *s->pairs) +
               GLYD_RECORD_ALIGN(pairs * sizeof *s->pairs); /* pairs were taken last: what is not used goes back */
  return 1;
}

/* z and, where there is no value, v. */
static void make_residuals(const glyd_record_source_table *t, glyd_record_source *s, int32_t *last) {
  const glyd_record_column *const m = &s->c;
  const uint32_t n = t->n_rows;
  int32_t *const v = s->v;
  const int ids = !glyd_record_is_number(m);
  const int fresh = m->kind == GLYD_RECORD_FRESH;
  uint32_t next = 0;
  if (fresh && m->pred == GLYD_PRED_ZERO) {
    for (uint32_t r = 0; r < n; r++) s->z[r] = glyd_record_fresh_code((uint32_t)v[r], &next);
    return;
  }
  if (ids && m->pred == GLYD_PRED_ZERO) {
    for (uint32_t r = 0; r < n; r++) s->z[r] = (uint32_t)v[r];
    return;
  }
  const int clock = m->kind == GLYD_RECORD_INT && m->format == GLYD_RECORD_CLOCK;
  const int32_t *const a = m->j >= 0 ? t->columns[m->j].v : v, *const b = m->k >= 0 ? t->columns[m->k].v : v;
  uint32_t before = 0, before2 = 0, a_before = 0;
  for (uint32_t r = 0; r < n; r++) {
    uint32_t p = 0, key = 0;
    switch (m->pred) {
    case GLYD_PRED_PREVIOUS: p = before; break;
    case GLYD_PRED_LINEAR: p = 2 * before - before2; break;
    case GLYD_PRED_COLUMN: p = (uint32_t)a[r] + m->adjust; break;
    case GLYD_PRED_DELTA: p = before + (uint32_t)a[r] - a_before; break;
    case GLYD_PRED_SUM: p = (uint32_t)a[r] + (uint32_t)b[r] + m->adjust; break;
    case GLYD_PRED_DIFFERENCE: p = (uint32_t)a[r] - (uint32_t)b[r] + m->adjust; break;
    case GLYD_PRED_LAST:
    case GLYD_PRED_SAME:
      key = key_of(t, m, r);
      p = (uint32_t)last[key];
      break;
    default: break;
    }
    if (is_null(s, r)) {
      const uint32_t w = clock ? glyd_record_wrap_clock(p) : p;
      v[r] = w <= m->range ? (int32_t)w : (int32_t)w < 0 ? 0 : (int32_t)m->range;
    }
    const uint32_t x = (uint32_t)v[r];
    if (m->pred >= GLYD_PRED_LAST) last[key] = v[r];
    const uint32_t code = fresh ? glyd_record_fresh_code(x, &next) : x;
    s->z[r] =
        m->pred == GLYD_PRED_SAME ? (x == p ? 0 : code + 1) : glyd_record_zigzag(glyd_record_difference(clock, x, p));
    before2 = before;
    before = x;
    a_before = (uint32_t)a[r];
  }
}

/* How many planes beside the first? Escapes take four bytes and more, another
 * plane that is mostly 0 a mask. */
static uint8_t choose_wide(const uint32_t *z, uint32_t n) {
  uint32_t large[GLYD_RECORD_PLANES_MAX] = {0};
  for (uint32_t r = 0; r < n; r++)
    for (unsigned k = 1; k < GLYD_RECORD_PLANES_MAX; k++) large[k] += z[r] >= glyd_record_escape_from(k);
  uint8_t wide = 0;
  while (wide < GLYD_RECORD_PLANES_MAX - 1u && large[wide + 1] > n / (wide == 0 ? 96 : 48) + 4) wide++;
  return wide;
}

int glyd_record_transform(glyd_record_source_table *t, glyd_record_memory *memory) {
  for (uint32_t i = 0; i < t->n_columns; i++) {
    glyd_record_source *const s = &t->columns[t->order[i]];
    s->z = glyd_record_memory_get(memory, (uint64_t)t->n_rows + 16, sizeof *s->z);
    if (!s->z) return 0;
    if (s->c.pred == GLYD_PRED_RANK) {
      uint8_t *const before = memory->at;
      const int done = make_ranks(t, s, memory);
      if (done < 0) return 0;
      if (done == 0) {
        memory->at = before;
        s->c.pred = GLYD_PRED_ZERO;
        s->c.j = s->c.k = -1;
      }
    }
    if (s->c.pred != GLYD_PRED_RANK) {
      uint8_t *const before = memory->at;
      int32_t *last = NULL;
      if (s->c.pred >= GLYD_PRED_LAST) {
        const uint32_t keys = keys_of(t, &s->c);
        last = glyd_record_memory_get(memory, keys, sizeof *last);
        if (!last) return 0;
        memset(last, 0, keys * sizeof *last);
      }
      make_residuals(t, s, last);
      memory->at = before;
    }
    s->c.wide = s->c.pred == GLYD_PRED_SAME || s->c.end > 0 ? 0 : choose_wide(s->z, t->n_rows);
  }
  return 1;
}

unsigned glyd_record_column_streams(const glyd_record_column *c) {
  unsigned n = c->exceptions > 0 ? 1u + (c->exceptions > 1) : 0;
  const unsigned high = c->range > 255;
  if (c->pred == GLYD_PRED_SAME) return n + 2 + high;
  if (c->pred == GLYD_PRED_RANK) n += 3 + high;
  return n + (c->end > 0 ? 0 : 2u + c->wide) + (c->kind == GLYD_RECORD_TEXT);
}

static int put(glyd_record_writer *w, const uint8_t *data, size_t n, int text) {
  w->decoder += GLYD_RECORD_ALIGN(n + GLYD_RECORD_PAD);
  if (n > w->longest) w->longest = n;
  return w->sink(w->arg, data, n, text);
}

int glyd_record_put(glyd_record_writer *w, const uint8_t *data, size_t n) { return put(w, data, n, 0); }

int glyd_record_put_text(glyd_record_writer *w, const uint8_t *data, size_t n) { return put(w, data, n, 1); }

static int put_exceptions(glyd_record_writer *w, const glyd_record_source_table *t, const glyd_record_source *s) {
  const uint32_t n = t->n_rows, bytes = (n + 7) / 8;
  if (s->c.mask >= 0) {
    const uint8_t *const other = t->columns[s->c.mask].null;
    for (uint32_t i = 0; i < bytes; i++) w->low[i] = s->null[i] ^ other[i];
    w->decoder += bytes + 2 * GLYD_RECORD_PAD;
  } else {
    memcpy(w->low, s->null, bytes);
  }
  if (!glyd_record_put(w, w->low, bytes)) return 0;
  return s->c.exceptions == 1 || glyd_record_put(w, s->null_id, s->n_null);
}

static int put_same(glyd_record_writer *w, const glyd_record_source *s, uint32_t n) {
  uint32_t misses = 0;
  memset(w->bytes, 0, n / 8 + 1);
  for (uint32_t r = 0; r < n; r++) {
    if (!s->z[r]) continue;
    const uint32_t x = s->z[r] - 1;
    w->bytes[r >> 3] |= (uint8_t)(1u << (r & 7));
    w->low[misses] = (uint8_t)x;
    w->high[misses++] = (uint8_t)(x >> 8);
  }
  if (!glyd_record_put(w, w->bytes, (n + 7) / 8) || !glyd_record_put(w, w->low, misses)) return 0;
  if (s->c.kind == GLYD_RECORD_FRESH) w->decoder += GLYD_RECORD_ALIGN(2 * ((uint64_t)misses + GLYD_RECORD_PAD));
  if (s->c.range > 255) return glyd_record_put(w, w->high, misses);
  w->decoder += misses + 2 * GLYD_RECORD_PAD;
  return 1;
}

static int put_pairs(glyd_record_writer *w, const glyd_record_source *s, glyd_record_memory *memory) {
  uint8_t *const before = memory->at;
  const uint32_t pairs = s->starts[s->keys], n = s->keys > pairs ? s->keys : pairs;
  uint8_t *const low = glyd_record_memory_get(memory, n, 1), *const high = glyd_record_memory_get(memory, n, 1);
  if (!low || !high) return 0;
  for (uint32_t i = 0; i < s->keys; i++) {
    const uint32_t count = s->starts[i + 1] - s->starts[i];
    low[i] = (uint8_t)count;
    high[i] = (uint8_t)(count >> 8);
  }
  if (!glyd_record_put(w, low, s->keys) || !glyd_record_put(w, high, s->keys)) return 0;
  for (uint32_t i = 0; i < pairs; i++) {
    low[i] = (uint8_t)s->pairs[i];
    high[i] = (uint8_t)(s->pairs[i] >> 8);
  }
  if (!glyd_record_put(w, low, pairs) || (s->c.range > 255 && !glyd_record_put(w, high, pairs))) return 0;
  memory->at = before;
  return 1;
}

static int put_residuals(glyd_record_writer *w, const glyd_record_source *s, uint32_t n) {
  const uint32_t limit = glyd_record_escape_from(s->c.wide + 1u);
  uint32_t escapes = 0;
  for (unsigned k = 0; k <= s->c.wide; k++) {
    for (uint32_t r = 0; r < n; r++) w->low[r] = (uint8_t)((s->z[r] < limit ? s->z[r] : limit) >> (8 * k));
    if (!glyd_record_put(w, w->low, n)) return 0;
  }
  for (uint32_t r = 0; r < n; r++) escapes += s->z[r] >= limit;
  uint32_t e = 0;
  for (uint32_t r = 0; r < n; r++) {
    if (s->z[r] < limit) continue;
    for (uint32_t k = 0; k < 4; k++) w->bytes[e + k * (size_t)escapes] = (uint8_t)(s->z[r] >> (8 * k));
    e++;
  }
  return glyd_record_put(w, w->bytes, 4 * (size_t)escapes);
}

/* The bytes of a text column, and of those that follow it, row by row. */
static int put_text(glyd_record_writer *w, const glyd_record_source_table *t, uint32_t from,
                    glyd_record_memory *memory) {
  uint8_t *const before = memory->at;
  uint64_t sum = 0;
  uint32_t n = 0;
  uint32_t *const slot = glyd_record_memory_get(memory, t->n_columns, sizeof *slot);
  if (!slot) return 0;
  slot[n++] = t->order[from];
  for (uint32_t i = from + 1; i < t->n_columns && t->columns[t->order[i]].c.kind != GLYD_RECORD_TEXT; i++)
    if (t->columns[t->order[i]].c.kind == GLYD_RECORD_MORE) slot[n++] = t->order[i];
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t r = 0; r < t->n_rows; r++)
      sum += glyd_record_source_field(t, slot[i], r).len + (t->columns[slot[i]].c.end > 0);
  uint8_t *const text = glyd_record_memory_get(memory, sum + 1, 1);
  if (!text) return 0;
  uint64_t at = 0;
  for (uint32_t r = 0; r < t->n_rows; r++) {
    for (uint32_t i = 0; i < n; i++) {
      const glyd_record_span f = glyd_record_source_field(t, slot[i], r);
      memcpy(text + at, t->rows->in + f.at, f.len);
      at += f.len;
      const uint16_t end = t->columns[slot[i]].c.end;
      text[at] = (uint8_t)(end - 1u);
      at += end > 0;
    }
  }
  const int done = glyd_record_put_text(w, text, (size_t)sum);
  memory->at = before;
  return done;
}

int glyd_record_put_columns(glyd_record_writer *w, const glyd_record_source_table *t, glyd_record_memory *memory) {
  for (uint32_t i = 0; i < t->n_columns; i++) {
    const uint32_t c = t->order[i];
    const glyd_record_source *const s = &t->columns[c];
    if (s->c.exceptions > 0 && !put_exceptions(w, t, s)) return 0;
    if (s->c.pred == GLYD_PRED_SAME) {
      if (!put_same(w, s, t->n_rows)) return 0;
      continue;
    }
    if (s->c.pred == GLYD_PRED_RANK && !put_pairs(w, s, memory)) return 0;
    if (s->c.end == 0 && !put_residuals(w, s, t->n_rows)) return 0;
    if (s->c.kind == GLYD_RECORD_TEXT && !put_text(w, t, i, memory)) return 0;
  }
  return 1;
}
