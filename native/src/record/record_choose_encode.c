/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * How each column is predicted: costs in bits, estimated from entropies over a
 * sample of rows from the middle. All in integers, so that every machine makes
 * the same choice.
 */
#include <stdlib.h>

#include "record/record_columns_encode.h"

#define SAMPLE 4096u
#define HASH (2 * SAMPLE)
#define COUNTS 65536u /* pairs that are counted without hashing */
#define NEVER UINT64_MAX
#define BITS(n) ((uint64_t)(n) << 16) /* costs are in 1/65536 bit */
#define NEAR 12u                      /* columns looked at on both sides in wide tables */
#define WIDE 64u
#define SUMS_MAX 48u /* columns up to which sums are tried */
#define PAIR_BITS 14u
#define WORK 150u /* sampled rows times columns squared, for each 100 bytes of the segment */
#define LEAST_ROWS 1024u
#define SMALL_SHARE 512u /* of the cost of all columns: what costs less is left as it is */
#define SMALL_SHARE_PAIRS 64u
#define PAIRS_MOST 200000u

typedef struct candidate {
  uint64_t saved;
  uint16_t c, j, k;
  uint8_t pred;
} candidate;

/* Keys of the sampled rows, or values, numbered as they come up. */
typedef struct numbering {
  uint16_t *id;    /* a row */
  uint32_t n;      /* different ones */
  uint64_t spread; /* sum of c * log2(c) over their counts */
  uint64_t early;  /* the same of the first quarter */
  int again;       /* a column before has the same numbers */
} numbering;

typedef struct chooser {
  glyd_record_source_table *t;
  uint32_t from, n;   /* sampled rows */
  numbering *columns; /* of columns whose range is below 65536 */
  numbering both;     /* of two columns together */
  int32_t *last;      /* by number of key */
  uint32_t *z;
  uint32_t *codes;
  uint64_t *plogp;    /* c * log2(c), c up to SAMPLE */
  uint32_t *step;     /* of it, from c to c + 1 */
  uint32_t *hash_key; /* open addressing: what it stands for */
  uint16_t *count;    /* COUNTS, zero between uses */
  uint16_t *place;    /* of a row: in count */
  uint32_t *order;
  candidate *candidates;
  uint32_t n_candidates, cap_candidates;
  uint64_t *best; /* cost of each column as chosen */
  uint64_t total; /* of all */
  uint8_t *mark;
  uint16_t *stack;
} chooser;

static int is_number(const glyd_record_source *s) { return glyd_record_is_number(&s->c); }
static int is_clock(const glyd_record_source *s) {
  return s->c.kind == GLYD_RECORD_INT && s->c.format == GLYD_RECORD_CLOCK;
}

/* Has the sampled row no value? What it has instead costs the same whatever the prediction. */
static int is_null(const glyd_record_source *s, uint32_t row) {
  return s->null && (s->null[row >> 3] >> (row & 7) & 1);
}

/* Bits of `total` symbols, at most SAMPLE, by their counts. */
static uint64_t entropy(const chooser *x, const uint32_t *h, unsigned size, uint32_t total) {
  uint64_t sum = x->plogp[total];
  for (unsigned i = 0; i < size; i++) sum -= x->plogp[h[i]];
  return sum >> 63 ? 0 : sum; /* the logarithm is not exact */
}

static void count_bytes(const uint32_t *z, uint32_t n, unsigned shift, uint32_t *h) {
  memset(h, 0, 256 * sizeof *h);
  for (uint32_t i = 0; i < n; i++) h[z[i] >> shift & 255]++;
}

/* Or something above the bound, if it is above it. */
static uint64_t residual_cost(const chooser *x, const uint32_t *z, uint32_t n, uint64_t bound) {
  uint32_t h[256], all = 0, escapes = 0;
  for (uint32_t i = 0; i < n; i++) {
    all |= z[i];
    escapes += z[i] >= 255;
  }
  if (escapes == 0) {
    count_bytes(z, n, 0, h);
    return entropy(x, h, 256, n);
  }
  uint64_t wide = BITS(300);
  for (unsigned shift = 0; shift < 32; shift += 8) {
    if (all >> shift == 0 || wide > bound) break;
    count_bytes(z, n, shift, h);
    wide += entropy(x, h, 256, n);
  }
  if (BITS(28 * (uint64_t)escapes) > bound) return wide;
  memset(h, 0, sizeof h);
  for (uint32_t i = 0; i < n; i++) h[z[i] < 255 ? z[i] : 255]++;
  const uint64_t one = entropy(x, h, 256, n) + BITS(28 * (uint64_t)escapes);
  return one < wide ? one : wide;
}

/* Keys, more than which there may be if they are too many to tell of anything
 * or to keep a value for each. */
static uint64_t key_count(const chooser *h, int j, int k) {
  uint64_t n = (uint64_t)h->t->columns[j].c.range + 1;
  if (k >= 0) n *= (uint64_t)h->t->columns[k].c.range + 1;
  return n <= 2 * (uint64_t)h->t->n_rows + 1024 ? n : UINT64_MAX;
}

/* Number the sampled rows by h->z. */
static void number_rows(chooser *h, numbering *out) {
  out->n = 0;
  out->spread = 0;
  for (uint32_t i = 0; i < h->n; i++) {
    uint32_t x = (uint32_t)(h->z[i] * 0x9E3779B97F4A7C15u >> 40) & (HASH - 1);
    while (h->count[x] && h->hash_key[x] != h->z[i]) x = (x + 1) & (HASH - 1);
    if (h->count[x] == 0) {
      h->hash_key[x] = h->z[i];
      h->order[x] = out->n++;
    }
    out->spread += h->step[h->count[x]++];
    h->place[i] = (uint16_t)x;
    out->id[i] = (uint16_t)h->order[x];
    if (i == h->n / 4) out->early = out->spread;
  }
  for (uint32_t i = 0; i < h->n; i++) h->count[h->place[i]] = 0;
}

/* Most keys come up once only: nothing can be learnt from them. */
static int hardly_again(const chooser *h, const numbering *a) { return a->n > h->n - h->n / 16; }

/* Those of one column or of two; NULL: too many keys, or the same as others. */
static const numbering *keys_of(chooser *h, int j, int k) {
  if (key_count(h, j, k) > GLYD_RECORD_KEYS_MAX) return NULL;
  const numbering *const a = &h->columns[j];
  if (k < 0) return hardly_again(h, a) || a->again ? NULL : a;
  const numbering *const b = &h->columns[k];
  for (uint32_t i = 0; i < h->n; i++) h->z[i] = (uint32_t)a->id[i] * b->n + b->id[i];
  number_rows(h, &h->both);
  if (hardly_again(h, &h->both)) return NULL;
  return h->both.n == a->n || h->both.n == b->n ? NULL : &h->both; /* one says all that both say */
}

/* Constant for predictions from other columns, or 0 where their steps differ. */
static uint32_t adjust_of(const chooser *h, unsigned pred, int c, int j, int k) {
  const glyd_record_column *const m = &h->t->columns[c].c, *const a = &h->t->columns[j].c;
  const glyd_record_column *const b = k >= 0 ? &h->t->columns[k].c : a;
  if (a->divisor != m->divisor || b->divisor != m->divisor || a->point != m->point || b->point != m->point) return 0;
  const uint64_t x = (uint64_t)a->base, y = (uint64_t)b->base;
  const uint64_t v = pred == GLYD_PRED_SUM          ? x + y - (uint64_t)m->base
                     : pred == GLYD_PRED_DIFFERENCE ? x - y - (uint64_t)m->base
                     : pred == GLYD_PRED_COLUMN     ? x - (uint64_t)m->base
                                                    : 0;
  return (uint32_t)(uint64_t)((int64_t)v / (int64_t)m->divisor);
}

/* What stands for the sampled values of a dictionary in the order in which its entries come up; NULL: it is none. */
static const uint32_t *fresh_codes(chooser *h, const glyd_record_source *s) {
  if (s->c.kind != GLYD_RECORD_FRESH) return NULL;
  uint32_t next = s->fresh;
  for (uint32_t i = 0; i < h->n; i++) h->codes[i] = glyd_record_fresh_code((uint32_t)s->v[h->from + i], &next);
  return h->codes;
}

static uint64_t cost_keyed(chooser *h, int c, unsigned pred, const numbering *keys, uint64_t bound) {
  const glyd_record_source *const s = &h->t->columns[c];
  if (!keys) return NEVER;
  const uint16_t *const key = keys->id;
  const int32_t *const v = s->v + h->from;
  const int clock = is_clock(s);
  const uint32_t warm = h->n / 4, counted = h->n - warm;
  uint64_t cost;
  memset(h->last, 0, keys->n * sizeof *h->last);
  if (pred == GLYD_PRED_LAST) {
    for (uint32_t i = 0; i < h->n; i++) {
      h->z[i] = (uint32_t)h->last[key[i]];
      if (!is_null(s, h->from + i)) h->last[key[i]] = v[i];
    }
    for (uint32_t i = warm; i < h->n; i++)
      h->z[i] =
          is_null(s, h->from + i) ? 0 : glyd_record_zigzag(glyd_record_difference(clock, (uint32_t)v[i], h->z[i]));
    cost = residual_cost(h, h->z + warm, counted, bound / h->n * counted);
  } else {
    uint32_t low[256] = {0}, high[256] = {0}, misses = 0;
    const uint32_t *const codes = fresh_codes(h, s);
    for (uint32_t i = 0; i < h->n; i++) {
      if (is_null(s, h->from + i)) continue;
      h->z[misses] = codes ? codes[i] : (uint32_t)v[i];
      misses += v[i] != h->last[key[i]] && i >= warm;
      h->last[key[i]] = v[i];
    }
    const uint32_t both[2] = {misses, counted - misses};
    count_bytes(h->z, misses, 0, low);
    count_bytes(h->z, misses, 8, high);
    cost = entropy(h, both, 2, counted) + entropy(h, low, 256, misses) + entropy(h, high, 256, misses);
  }
  return cost / (counted ? counted : 1) * h->n;
}

/* n * (all / sample)^growth, the growth of distinct pairs as half and whole sample show it. */
static uint64_t extrapolate(uint32_t n, uint32_t half, uint32_t sample, uint32_t all) {
  const uint64_t more = glyd_record_log2(all) - glyd_record_log2(sample);
  const uint32_t a = glyd_record_log2(n), b = glyd_record_log2(half ? half : 1);
  const uint64_t growth = a > b ? (a - b < 65536 ? a - b : 65536) : 0;
  const uint64_t log = a + (more * growth >> 16);
  const unsigned whole = (unsigned)(log >> 16);
  const uint64_t t = log & 65535;
  return (((uint64_t)1 << whole) * (65536 + t - (t * (65536 - t) >> 16) * 22479 / 65536)) >> 16;
}

static int compare_u32(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* Where the pair (key, value) of a row is counted: at a place of its own, or by hashing. */
static uint32_t pair_place(chooser *h, uint32_t pair, int direct) {
  if (direct) return pair;
  uint32_t x = (uint32_t)(pair * 0x9E3779B97F4A7C15u >> 40) & (HASH - 1);
  while (h->count[x] && h->hash_key[x] != pair) x = (x + 1) & (HASH - 1);
  h->hash_key[x] = pair;
  return x;
}

static void clear_counts(chooser *h, uint32_t rows, uint32_t counts) {
  if (counts <= COUNTS / 8)
    memset(h->count, 0, counts * sizeof *h->count);
  else
    for (uint32_t i = 0; i < rows; i++) h->count[h->place[i]] = 0;
}

static uint64_t cost_rank(chooser *h, int c, const numbering *keys, uint64_t bound) {
  const glyd_record_source *const s = &h->t->columns[c];
  if (!keys || s->c.range > 65535) return NEVER;
  const numbering *const values = &h->columns[c];
  const int direct = (uint64_t)keys->n * values->n <= COUNTS;
  uint32_t pairs = 0, half = 0;
  uint64_t spread = 0;
  for (uint32_t i = 0; i < h->n; i++) {
    const uint32_t x = pair_place(h, keys->id[i] * values->n + values->id[i], direct);
    h->place[i] = (uint16_t)x;
    pairs += h->count[x] == 0;
    spread += h->step[h->count[x]++];
    if (i == h->n / 2) half = pairs;
    if (i == h->n / 4 && (pairs > i - i / 32 || (keys->early - spread) * 32 > bound * 9)) {
      clear_counts(h, i + 1, keys->n * values->n);
      return NEVER; /* hardly any comes up again, or keys tell little: of few rows they tell too much */
    }
  }
  /* entropy given the key: no ranks do better than a third below it */
  const uint64_t given = keys->spread - spread;
  const uint64_t all = extrapolate(pairs, half, h->n, h->t->n_rows);
  const uint64_t table = BITS(all * PAIR_BITS) / h->t->n_rows * h->n;
  if (all > PAIRS_MOST || given >> 63 || given + table > bound) {
    clear_counts(h, h->n, keys->n * values->n);
    return NEVER;
  }
  uint32_t n = 0;
  for (uint32_t i = 0; i < h->n; i++) {
    uint16_t *const m = &h->count[h->place[i]];
    if (*m > 0) h->order[n++] = (uint32_t)keys->id[i] << 16 | (65535u - *m);
    *m = 0;
  }
  qsort(h->order, n, sizeof *h->order, compare_u32);
  uint32_t low[256] = {0}, high[256] = {0}, rank = 0, before = UINT32_MAX;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t of = h->order[i] >> 16, m = 65535u - (h->order[i] & 65535);
    rank = of == before ? rank + 1 : 0;
    before = of;
    low[rank & 255] += m;
    high[rank >> 8 & 255] += m;
  }
  return entropy(h, low, 256, h->n) + entropy(h, high, 256, h->n) + table;
}

static uint64_t cost_values(chooser *h, int c, unsigned pred, int j, int k, uint64_t bound) {
  const glyd_record_source *const s = &h->t->columns[c];
  const int32_t *const v = s->v + h->from;
  const int32_t *const a = j >= 0 ? h->t->columns[j].v + h->from : v, *const b =
                                                                          k >= 0 ? h->t->columns[k].v + h->from : v;
  const uint32_t adjust = j >= 0 ? adjust_of(h, pred, c, j, k) : 0;
  const int clock = is_clock(s);
  uint32_t *const p = h->z, n = h->n;
  memset(p, 0, 2 * sizeof *p); /* rows before the first do not matter here */
  switch (pred) {
  case GLYD_PRED_PREVIOUS:
    for (uint32_t i = 1; i < n; i++) p[i] = (uint32_t)v[i - 1];
    break;
  case GLYD_PRED_LINEAR:
    for (uint32_t i = 2; i < n; i++) p[i] = 2 * (uint32_t)v[i - 1] - (uint32_t)v[i - 2];
    break;
  case GLYD_PRED_COLUMN:
    for (uint32_t i = 0; i < n; i++) p[i] = (uint32_t)a[i] + adjust;
    break;
  case GLYD_PRED_DELTA:
    for (uint32_t i = 1; i < n; i++) p[i] = (uint32_t)v[i - 1] + (uint32_t)a[i] - (uint32_t)a[i - 1];
    break;
  case GLYD_PRED_SUM:
    for (uint32_t i = 0; i < n; i++) p[i] = (uint32_t)a[i] + (uint32_t)b[i] + adjust;
    break;
  case GLYD_PRED_DIFFERENCE:
    for (uint32_t i = 0; i < n; i++) p[i] = (uint32_t)a[i] - (uint32_t)b[i] + adjust;
    break;
  default: memset(p, 0, n * sizeof *p); break;
  }
  const uint32_t *const codes = fresh_codes(h, s);
  if (!is_number(s) && pred == GLYD_PRED_ZERO)
    for (uint32_t i = 0; i < n; i++) h->z[i] = codes ? codes[i] : (uint32_t)v[i];
  else if (clock)
    for (uint32_t i = 0; i < n; i++) h->z[i] = glyd_record_zigzag(glyd_record_difference(1, (uint32_t)v[i], p[i]));
  else
    for (uint32_t i = 0; i < n; i++) h->z[i] = glyd_record_zigzag((uint32_t)v[i] - p[i]);
  if (s->null)
    for (uint32_t i = 0; i < n; i++) h->z[i] = is_null(s, h->from + i) ? 0 : h->z[i];
  return residual_cost(h, h->z, n, bound);
}

/* Does column a need column b? */
static int needs(chooser *h, int a, int b) {
  memset(h->mark, 0, h->t->n_columns);
  uint32_t n = 0;
  h->stack[n++] = (uint16_t)a;
  h->mark[a] = 1;
  while (n > 0) {
    const int x = h->stack[--n];
    if (x == b) return 1;
    const int32_t of[2] = {h->t->columns[x].c.j, h->t->columns[x].c.k};
    for (unsigned i = 0; i < 2; i++)
      if (of[i] >= 0 && !h->mark[of[i]]) {
        h->mark[of[i]] = 1;
        h->stack[n++] = (uint16_t)of[i];
      }
  }
  return 0;
}

static void propose(chooser *h, int c, unsigned pred, int j, int k, uint64_t cost, uint64_t plain) {
  if (cost == NEVER || cost + BITS(h->n) / 100 >= plain || h->n_candidates == h->cap_candidates) return;
  h->candidates[h->n_candidates++] =
      (candidate){plain - cost, (uint16_t)c, (uint16_t)j, (uint16_t)(k < 0 ? UINT16_MAX : k), (uint8_t)pred};
}

/* Is the sum or difference of two columns right for most rows? */
static int sums_hit(const chooser *h, int c, unsigned pred, int j, int k) {
  const glyd_record_source *const s = &h->t->columns[c];
  const int32_t *const v = s->v + h->from, *const a = h->t->columns[j].v + h->from,
                       *const b = h->t->columns[k].v + h->from;
  const uint32_t adjust = adjust_of(h, pred, c, j, k);
  const int clock = is_clock(s);
  uint32_t hits = 0;
  for (uint32_t i = 0; i < 256; i++) {
    const uint32_t p =
        (pred == GLYD_PRED_SUM ? (uint32_t)a[i] + (uint32_t)b[i] : (uint32_t)a[i] - (uint32_t)b[i]) + adjust;
    hits += glyd_record_difference(clock, (uint32_t)v[i], p) == 0;
    if (i == 31 && hits < 12) return 0;
  }
  return hits > 150;
}

/* What the column costs by itself. */
static void choose_alone(chooser *h, int c) {
  glyd_record_source *const s = &h->t->columns[c];
  h->best[c] = 0;
  if (glyd_record_is_text(&s->c)) return;
  h->best[c] = cost_values(h, c, GLYD_PRED_ZERO, -1, -1, NEVER);
  const unsigned own = is_number(s) ? GLYD_PRED_LINEAR : s->c.kind == GLYD_RECORD_SORTED ? GLYD_PRED_PREVIOUS : 0;
  for (unsigned pred = GLYD_PRED_PREVIOUS; pred <= own; pred++) {
    const uint64_t x = cost_values(h, c, pred, -1, -1, h->best[c]);
    if (x >= h->best[c]) continue;
    h->best[c] = x;
    s->c.pred = (uint8_t)pred;
  }
}

static void propose_all(chooser *h, int c) {
  glyd_record_source *const s = &h->t->columns[c];
  const int K = (int)h->t->n_columns, numeric = is_number(s), clock = is_clock(s);
  const uint64_t plain = h->best[c];
  if (plain < BITS(h->n) / 50 || plain < h->total / SMALL_SHARE) return;
  for (int j = 0; j < K; j++) {
    const glyd_record_source *const a = &h->t->columns[j];
    if (j == c || glyd_record_is_text(&a->c)) continue;
    if (K > (int)WIDE && (j > c ? j - c : c - j) > (int)NEAR) continue;
    if (numeric && is_number(a) && clock == is_clock(a))
      for (unsigned pred = GLYD_PRED_COLUMN; pred <= GLYD_PRED_DELTA; pred++)
        propose(h, c, pred, j, -1, cost_values(h, c, pred, j, -1, plain), plain);
    if (a->c.range < 65536) {
      const numbering *const keys = keys_of(h, j, -1);
      if (numeric) propose(h, c, GLYD_PRED_LAST, j, -1, cost_keyed(h, c, GLYD_PRED_LAST, keys, plain), plain);
      if (s->c.range < 65536) {
        propose(h, c, GLYD_PRED_SAME, j, -1, cost_keyed(h, c, GLYD_PRED_SAME, keys, plain), plain);
        propose(h, c, GLYD_PRED_RANK, j, -1, cost_rank(h, c, keys, plain), plain);
      }
    }
    if (!numeric || !is_number(a) || K > (int)SUMS_MAX || h->n < 256) continue;
    for (int k = 0; k < K; k++) {
      const glyd_record_source *const b = &h->t->columns[k];
      if (k == c || k == j || !is_number(b) || (clock && !(is_clock(a) && is_clock(b)) && is_clock(a) == is_clock(b)))
        continue;
      for (unsigned pred = GLYD_PRED_SUM; pred <= GLYD_PRED_DIFFERENCE; pred++) {
        if (pred == GLYD_PRED_SUM && k < j) continue;
        if (sums_hit(h, c, pred, j, k)) propose(h, c, pred, j, k, cost_values(h, c, pred, j, k, plain), plain);
      }
    }
  }
}

static int compare_candidates(const void *a, const void *b) {
  const candidate *const x = a, *const y = b;
  if (x->saved != y->saved) return x->saved < y->saved ? 1 : -1;
  if (x->c != y->c) return x->c < y->c ? -1 : 1;
  if (x->pred != y->pred) return x->pred < y->pred ? -1 : 1;
  if (x->j != y->j) return x->j < y->j ? -1 : 1;
  return x->k < y->k ? -1 : x->k > y->k;
}

static void take_candidates(chooser *h) {
  qsort(h->candidates, h->n_candidates, sizeof *h->candidates, compare_candidates);
  for (uint32_t i = 0; i < h->n_candidates; i++) {
    const candidate *const x = &h->candidates[i];
    glyd_record_column *const m = &h->t->columns[x->c].c;
    const int k = x->k == UINT16_MAX ? -1 : x->k;
    if (m->j >= 0 || needs(h, x->j, x->c) || (k >= 0 && needs(h, k, x->c))) continue;
    m->pred = x->pred;
    m->j = x->j;
    m->k = k;
    h->best[x->c] -= x->saved;
  }
}

/* Two columns as a key, one of them the key so far. */
static void try_pairs(chooser *h, int c) {
  glyd_record_column *const m = &h->t->columns[c].c;
  const int K = (int)h->t->n_columns;
  if (glyd_record_is_text(m) || m->j < 0 || h->best[c] < BITS(h->n) * 3 / 10 ||
      h->best[c] < h->total / SMALL_SHARE_PAIRS)
    return;
  uint64_t best = h->best[c];
  int pred = -1, at = -1, with = -1;
  for (int k = 0; k < K; k++) {
    const glyd_record_source *const b = &h->t->columns[k];
    if (k == c || glyd_record_is_text(&b->c) || b->c.range >= 8192 || needs(h, k, c)) continue;
    for (int q = 0; q < 2; q++) {
      const int j = q ? m->k : m->j;
      if (j < 0 || j == k || h->t->columns[j].c.range >= 65536) continue;
      const numbering *const keys = keys_of(h, j, k);
      if (!keys) continue;
      for (int p = GLYD_PRED_LAST; p <= GLYD_PRED_RANK; p++) {
        if (p == GLYD_PRED_LAST ? !is_number(&h->t->columns[c]) : m->range > 65535) continue;
        const uint64_t x =
            p == GLYD_PRED_RANK ? cost_rank(h, c, keys, best) : cost_keyed(h, c, (unsigned)p, keys, best);
        if (x >= best) continue;
        best = x;
        pred = p;
        at = j;
        with = k;
      }
    }
  }
  if (pred < 0 || best + BITS(h->n) / 20 >= h->best[c]) return;
  m->pred = (uint8_t)pred;
  m->j = at;
  m->k = with;
  h->best[c] = best;
}

/* Columns in an order in which each comes after those it needs. */
static void put_order(glyd_record_source_table *t, uint8_t *done) {
  uint32_t n = 0;
  memset(done, 0, t->n_columns);
  while (n < t->n_columns) {
    for (uint32_t c = 0; c < t->n_columns; c++) {
      const glyd_record_column *const m = &t->columns[c].c;
      if (done[c] || (m->j >= 0 && !done[m->j]) || (m->k >= 0 && !done[m->k])) continue;
      done[c] = 1;
      t->order[n++] = (uint16_t)c;
    }
  }
}

/* Do the rows stand mostly in the order of a dictionary's texts? */
static int goes_by_text(const chooser *h, uint32_t c) {
  const glyd_record_source *const s = &h->t->columns[c];
  if ((s->c.kind != GLYD_RECORD_DICT && s->c.kind != GLYD_RECORD_FRESH) || s->n_entries < 64) return 0;
  const uint8_t *const in = h->t->rows->in;
  uint32_t changes = 0, up = 0;
  for (uint32_t i = 1; i < h->n; i++) {
    const int32_t a = s->v[h->from + i - 1], b = s->v[h->from + i];
    if (a == b) continue;
    const glyd_record_entry *const x = &s->entries[a], *const y = &s->entries[b];
    const int order = memcmp(in + x->at, in + y->at, x->len < y->len ? x->len : y->len);
    changes++;
    up += order < 0 || (order == 0 && x->len < y->len);
  }
  return changes > 16 && (up * 10 > changes * 9 || up * 10 < changes);
}

/* Numbers of the sampled rows' values, of all columns that may be keys. 0: no memory. */
static int number_columns(chooser *h, glyd_record_memory *memory) {
  for (uint32_t c = 0; c < h->t->n_columns; c++) {
    const glyd_record_source *const s = &h->t->columns[c];
    h->columns[c].n = 0;
    h->columns[c].again = 0;
    if (glyd_record_is_text(&s->c) || s->c.range >= 65536) continue;
    h->columns[c].id = glyd_record_memory_get(memory, h->n, sizeof *h->columns[c].id);
    if (!h->columns[c].id) return 0;
    memcpy(h->z, s->v + h->from, h->n * sizeof *h->z);
    number_rows(h, &h->columns[c]);
    for (uint32_t k = 0; k < c && !h->columns[c].again; k++)
      h->columns[c].again = h->columns[k].n == h->columns[c].n && h->columns[k].spread == h->columns[c].spread &&
                            memcmp(h->columns[k].id, h->columns[c].id, h->n * sizeof *h->columns[c].id) == 0;
  }
  return 1;
}

static int choose(chooser *h, glyd_record_memory *memory) {
  const uint32_t K = h->t->n_columns;
  h->columns = glyd_record_memory_get(memory, K, sizeof *h->columns);
  h->both.id = glyd_record_memory_get(memory, SAMPLE, sizeof *h->both.id);
  h->last = glyd_record_memory_get(memory, SAMPLE, sizeof *h->last);
  h->z = glyd_record_memory_get(memory, SAMPLE, sizeof *h->z);
  h->codes = glyd_record_memory_get(memory, SAMPLE, sizeof *h->codes);
  h->plogp = glyd_record_memory_get(memory, SAMPLE + 1, sizeof *h->plogp);
  h->step = glyd_record_memory_get(memory, SAMPLE, sizeof *h->step);
  h->hash_key = glyd_record_memory_get(memory, HASH, sizeof *h->hash_key);
  h->count = glyd_record_memory_get(memory, COUNTS, sizeof *h->count);
  h->place = glyd_record_memory_get(memory, SAMPLE, sizeof *h->place);
  h->order = glyd_record_memory_get(memory, HASH, sizeof *h->order);
  h->cap_candidates = 8 * K * (K < 3 * NEAR ? 3 * NEAR : 3 * NEAR + 32) + 64;
  h->candidates = glyd_record_memory_get(memory, h->cap_candidates, sizeof *h->candidates);
  h->best = glyd_record_memory_get(memory, K, sizeof *h->best);
  h->mark = glyd_record_memory_get(memory, K, 1);
  h->stack = glyd_record_memory_get(memory, K + 1, sizeof *h->stack);
  if (!h->columns || !h->both.id || !h->last || !h->z || !h->codes || !h->plogp || !h->step || !h->hash_key ||
      !h->count || !h->place || !h->order || !h->candidates || !h->best || !h->mark || !h->stack)
    return 0;
  if (h->n < 64) return 1;
  h->plogp[0] = 0;
  for (uint32_t i = 1; i <= SAMPLE; i++) h->plogp[i] = (uint64_t)i * glyd_record_log2(i);
  for (uint32_t i = 0; i < SAMPLE; i++) h->step[i] = (uint32_t)(h->plogp[i + 1] - h->plogp[i]);
  memset(h->count, 0, COUNTS * sizeof *h->count);
  for (uint32_t c = 0; c < K; c++)
    if (goes_by_text(h, c) && !glyd_record_sort_dictionary(h->t, &h->t->columns[c], memory)) return 0;
  for (uint32_t c = 0; c < K; c++) {
    glyd_record_source *const s = &h->t->columns[c];
    s->fresh = 0;
    for (uint32_t r = 0; r < h->from && s->c.kind == GLYD_RECORD_FRESH; r++) s->fresh += (uint32_t)s->v[r] == s->fresh;
  }
  if (!number_columns(h, memory)) return 0;
  for (uint32_t c = 0; c < K; c++) {
    choose_alone(h, (int)c);
    h->total += h->best[c];
  }
  for (uint32_t c = 0; c < K; c++) propose_all(h, (int)c);
  take_candidates(h);
  h->total = 0;
  for (uint32_t c = 0; c < K; c++) h->total += h->best[c];
  for (uint32_t c = 0; c < K; c++) try_pairs(h, (int)c);
  return 1;
}

int glyd_record_choose(glyd_record_source_table *t, glyd_record_memory *memory) {
  const uint32_t K = t->n_columns;
  uint8_t *const before = memory->at;
  chooser h = {.t = t};
  const uint64_t area = (uint64_t)K * K;
  h.n = area <= 1024 ? SAMPLE : (uint32_t)(SAMPLE * 1024 / area);
  if (h.n < 512) h.n = 512;
  /* the choice of a small segment must not take longer than all the rest */
  const uint64_t share = t->rows->len * (uint64_t)WORK / 100 / (area + 1);
  if (h.n > share) h.n = share > LEAST_ROWS ? (uint32_t)share : h.n < LEAST_ROWS ? h.n : LEAST_ROWS;
  if (h.n > t->n_rows) h.n = t->n_rows;
  h.from = (t->n_rows - h.n) / 2;
  if (!choose(&h, memory)) return 0;
  for (uint32_t c = 0; c < K; c++) {
    glyd_record_column *const m = &t->columns[c].c;
    if (m->pred >= GLYD_PRED_COLUMN && m->pred <= GLYD_PRED_DIFFERENCE && m->pred != GLYD_PRED_DELTA)
      m->adjust = adjust_of(&h, m->pred, (int)c, m->j, m->k);
  }
  put_order(t, h.mark);
  glyd_record_join_texts(t);
  glyd_record_end_texts(t);
  memory->at = before;
  return 1;
}
