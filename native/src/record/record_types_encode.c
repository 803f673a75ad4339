/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A type for each column, judged by a sample, and its values. Columns are
 * worked on in blocks of rows, so that the text stays in the cache.
 */
#include "record/record_columns_encode.h"
#include "record/record_text_encode.h"

#define SAMPLE 512u
#define BLOCK 1024u
#define FRESH_ROWS 4096u
#define FRESH_ENTRIES 32u
#define AGAIN 2048u /* rows that tell how often numbers come up again */
#define LIMIT ((int64_t)1 << 61)

typedef struct state {
  int kind;
  int failed;
  glyd_record_date_cache dates;
  int64_t origin, least, most;
  int any;
  int clock, zero, midnight;
  uint32_t last_exception;
  /* dictionary */
  uint32_t *slots; /* open addressing: entry + 1 */
  uint32_t n_slots, cap;
  uint32_t last;
} state;

static uint64_t hash_text(const uint8_t *p, uint32_t n) {
  uint64_t h = n * 0x9E3779B97F4A7C15u;
  for (; n >= 8; n -= 8, p += 8) {
    h = (h ^ glyd_load64(p)) * 0xFF51AFD7ED558CCDu;
    h ^= h >> 32;
  }
  uint64_t tail = 0;
  if (n >= 4)
    tail = glyd_load32(p) | (uint64_t)glyd_load32(p + n - 4) << 32;
  else
    for (uint32_t i = 0; i < n; i++) tail = tail << 8 | p[i];
  h = (h ^ tail) * 0xFF51AFD7ED558CCDu;
  return h ^ h >> 29;
}

/* Mask of a set for so many hashes: twice as many places, a power of two. Small columns are many. */
static uint32_t set_mask(uint32_t n) {
  uint32_t mask = 63;
  while (mask + 1 < 2 * n) mask = 2 * mask + 1;
  return mask;
}

/* ---- choosing a type ---- */

/* Does the sample look like dates? */
static int sample_dates(const glyd_record_source_table *t, glyd_record_source *s, uint32_t slot, uint32_t step) {
  const uint8_t *const in = t->rows->in, *const end = in + t->rows->len;
  unsigned best = 0;
  glyd_record_date found = {0};
  uint32_t seen = 0;
  for (unsigned variant = 0; variant < 32 && best * 10 < SAMPLE * 9; variant++) {
    glyd_record_date date = {0};
    int have = 0;
    for (uint32_t r = 0; r < t->n_rows && r < 16 * step && !have; r += step) {
      const glyd_record_span f = glyd_record_source_field(t, slot, r);
      have = f.len <= GLYD_RECORD_PATTERN_MAX && glyd_record_date_find(&date, in + f.at, f.len, variant);
    }
    if (!have) continue;
    glyd_record_date_cache cache;
    glyd_record_date_begin(&cache, &date);
    unsigned good = 0;
    seen = 0;
    for (uint32_t r = 0; r < t->n_rows; r += step, seen++) {
      const glyd_record_span f = glyd_record_source_field(t, slot, r);
      int64_t v;
      good += (unsigned)glyd_record_date_read(&cache, &date, in + f.at, f.len, end, &v);
    }
    if (good > best) {
      best = good;
      found = date;
    }
  }
  if (best * 10 < seen * 8 || best == 0) return 0;
  s->c.kind = GLYD_RECORD_DATE;
  s->c.date = found;
  return 1;
}

/* Do so many of these numbers come up again that ids take less? Numbers that a
 * column could not be looked up by are the ones that gain. */
static int often_again(const glyd_record_source_table *t, const glyd_record_column *c, uint32_t slot) {
  const uint8_t *const in = t->rows->in, *const end = in + t->rows->len;
  const uint32_t step = t->n_rows / AGAIN + 1;
  uint32_t seen[2 * AGAIN], fresh = 0, n = 0;
  const uint32_t mask = set_mask(t->n_rows / step + 1);
  memset(seen, 0, (mask + 1) * sizeof *seen);
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (uint32_t r = 0; r < t->n_rows; r += step, n++) {
    const glyd_record_span f = glyd_record_source_field(t, slot, r);
    int64_t v;
    if (glyd_record_number_read(c, in + f.at, f.len, end, &v)) {
      least = v < least ? v : least;
      most = v > most ? v : most;
    }
    const uint32_t h = (uint32_t)(hash_text(in + f.at, f.len) >> 20) | 1;
    uint32_t k = h >> 2 & mask;
    while (seen[k] != 0 && seen[k] != h) k = (k + 1) & mask;
    fresh += seen[k] == 0;
    seen[k] = h;
  }
  const uint64_t range = most > least ? (uint64_t)most - (uint64_t)least : 0;
  return n >= SAMPLE && ((range > 65535 && fresh * 3 < n) || (fresh <= 12 && range > 8 * (uint64_t)fresh && fresh > 2));
}

static int sample_numbers(const glyd_record_source_table *t, glyd_record_source *s, uint32_t slot, uint32_t step) {
  const uint8_t *const in = t->rows->in;
  glyd_record_numbers numbers = {0};
  uint64_t seen[64];
  uint32_t n_seen = 0, large = 0, n = 0;
  for (uint32_t r = 0; r < t->n_rows; r += step, n++) {
    const glyd_record_span f = glyd_record_source_field(t, slot, r);
    glyd_record_count_number(&numbers, in + f.at, f.len);
    large += f.len > 5;
    if (n_seen < 64) {
      const uint64_t h = hash_text(in + f.at, f.len);
      uint32_t i = 0;
      while (i < n_seen && seen[i] != h) i++;
      if (i == n_seen) seen[n_seen++] = h;
    }
  }
  if (!glyd_record_number_format(&numbers, &s->c)) return 0;
  if (n_seen < 64 && n_seen * 8 < n && large * 2 > n) return 0; /* few large numbers: a dictionary has smaller ids */
  if (often_again(t, &s->c, slot)) return 0;
  s->c.kind = GLYD_RECORD_INT;
  return 1;
}

/* How many of some rows, one after the other, have a text that is not in those before? */
static uint32_t count_fresh(const glyd_record_source_table *t, uint32_t slot, uint32_t most, uint32_t *n,
                            uint64_t *bytes) {
  uint32_t seen[2 * FRESH_ROWS], fresh = 0;
  const uint32_t first = t->n_rows > 4 * most ? t->n_rows / 3 : 0;
  const uint32_t mask = set_mask(t->n_rows < most ? t->n_rows : most);
  memset(seen, 0, (mask + 1) * sizeof *seen);
  *n = 0;
  *bytes = 0;
  for (uint32_t r = first; r < t->n_rows && *n < most; r++, ++*n) {
    const glyd_record_span f = glyd_record_source_field(t, slot, r);
    const uint32_t h = (uint32_t)(hash_text(t->rows->in + f.at, f.len) >> 20) | 1;
    uint32_t k = h >> 2 & mask;
    while (seen[k] != 0 && seen[k] != h) k = (k + 1) & mask;
    fresh += seen[k] == 0;
    seen[k] = h;
    *bytes += f.len;
  }
  return fresh;
}

static void choose_type(const glyd_record_source_table *t, glyd_record_source *s, uint32_t slot) {
  const uint32_t step = t->n_rows / SAMPLE + 1;
  s->c.kind = GLYD_RECORD_DICT;
  s->c.divisor = 1;
  if (sample_dates(t, s, slot, step) || sample_numbers(t, s, slot, step)) return;
  /* text that hardly repeats? */
  uint64_t bytes;
  uint32_t n = 0;
  const uint32_t fresh = count_fresh(t, slot, SAMPLE, &n, &bytes);
  if (n == 0) return;
  const int is_long = bytes > 24 * (uint64_t)n;
  if (bytes > 400 * (uint64_t)n || (fresh * 10 > n * 6 && is_long)) s->c.kind = GLYD_RECORD_TEXT;
  if (fresh * 10 <= n * 9 || is_long) return;
  /* short texts may come up again after more rows than that */
  if (count_fresh(t, slot, FRESH_ROWS, &n, &bytes) * 10 > n * 6) s->c.kind = GLYD_RECORD_TEXT;
}

/* ---- dictionaries ---- */

static int begin_dictionary(glyd_record_source *s, state *d, glyd_record_memory *memory) {
  d->n_slots = 1024;
  d->cap = 512;
  d->slots = glyd_record_memory_get(memory, d->n_slots, sizeof *d->slots);
  s->entries = glyd_record_memory_get(memory, d->cap, sizeof *s->entries);
  s->n_entries = 0;
  d->last = UINT32_MAX;
  if (!d->slots || !s->entries) return 0;
  memset(d->slots, 0, d->n_slots * sizeof *d->slots);
  return 1;
}

static int grow_dictionary(const uint8_t *in, glyd_record_source *s, state *d, glyd_record_memory *memory) {
  const uint32_t n = s->n_entries;
  d->n_slots *= 4;
  d->cap *= 4;
  uint32_t *const slots = glyd_record_memory_get(memory, d->n_slots, sizeof *slots);
  glyd_record_entry *const entries = glyd_record_memory_get(memory, d->cap, sizeof *entries);
  if (!slots || !entries) return 0;
  memset(slots, 0, d->n_slots * sizeof *slots);
  memcpy(entries, s->entries, n * sizeof *entries);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = (uint32_t)(hash_text(in + entries[i].at, entries[i].len) >> 20) & (d->n_slots - 1);
    while (slots[k]) k = (k + 1) & (d->n_slots - 1);
    slots[k] = i + 1;
  }
  d->slots = slots;
  s->entries = entries;
  return 1;
}

/* Ids of rows [from, to); 0: too many different texts. -1: no memory. */
static int fill_dictionary(const glyd_record_source_table *t, glyd_record_source *s, state *d, uint32_t slot,
                           uint32_t from, uint32_t to, glyd_record_memory *memory) {
  const uint8_t *const in = t->rows->in;
  for (uint32_t r = from; r < to; r++) {
    const glyd_record_span f = glyd_record_source_field(t, slot, r);
    const uint8_t *const p = in + f.at;
    if (d->last != UINT32_MAX && s->entries[d->last].len == f.len &&
        glyd_record_same(in + s->entries[d->last].at, p, f.len)) {
      s->entries[d->last].count++;
      s->v[r] = (int32_t)d->last;
      continue;
    }
    uint32_t k = (uint32_t)(hash_text(p, f.len) >> 20) & (d->n_slots - 1), id;
    for (;; k = (k + 1) & (d->n_slots - 1)) {
      if (d->slots[k] == 0) {
        if (s->n_entries == GLYD_RECORD_DICT_MAX) return 0;
        if (s->n_entries > 4096 && s->n_entries > (r + 1) / 2 + 2048) return 0;
        id = s->n_entries++;
        s->entries[id] = (glyd_record_entry){f.at, f.len, 0, id};
        d->slots[k] = id + 1;
        if (s->n_entries == d->cap && !grow_dictionary(in, s, d, memory)) return -1;
        break;
      }
      id = d->slots[k] - 1;
      if (s->entries[id].len == f.len && glyd_record_same(in + s->entries[id].at, p, f.len)) break;
    }
    s->entries[id].count++;
    s->v[r] = (int32_t)id;
    d->last = id;
  }
  return 1;
}

/* By text, or falling count and then order of appearance. */
static int entry_before(const glyd_record_entry *a, const glyd_record_entry *b, const uint8_t *texts) {
  if (!texts) return a->count != b->count ? a->count > b->count : a->id < b->id;
  const int order = memcmp(texts + a->at, texts + b->at, a->len < b->len ? a->len : b->len);
  return order != 0 ? order < 0 : a->len < b->len;
}

static void sift(glyd_record_entry *e, uint32_t at, uint32_t n, const uint8_t *texts) {
  const glyd_record_entry x = e[at];
  for (;;) {
    uint32_t child = 2 * at + 1;
    if (child >= n) break;
    if (child + 1 < n && entry_before(&e[child], &e[child + 1], texts)) child++;
    if (!entry_before(&x, &e[child], texts)) break;
    e[at] = e[child];
    at = child;
  }
  e[at] = x;
}

/* Order entries and give the values their new ids. texts: their bytes; NULL: by count. */
static int order_entries(const glyd_record_source_table *t, glyd_record_source *s, const uint8_t *texts,
                         glyd_record_memory *memory) {
  const uint32_t n = s->n_entries;
  uint32_t *const id = glyd_record_memory_get(memory, n, sizeof *id);
  if (!id) return 0;
  for (uint32_t i = n / 2; i-- > 0;) sift(s->entries, i, n, texts);
  for (uint32_t i = n; i-- > 1;) {
    const glyd_record_entry x = s->entries[0];
    s->entries[0] = s->entries[i];
    s->entries[i] = x;
    sift(s->entries, 0, i, texts);
  }
  for (uint32_t i = 0; i < n; i++) {
    id[s->entries[i].id] = i;
    s->entries[i].id = i;
  }
  for (uint32_t r = 0; r < t->n_rows; r++) s->v[r] = (int32_t)id[s->v[r]];
  s->c.range = n > 0 ? n - 1 : 0;
  return 1;
}

int glyd_record_sort_dictionary(const glyd_record_source_table *t, glyd_record_source *s, glyd_record_memory *memory) {
  uint8_t *const before = memory->at;
  const int done = order_entries(t, s, t->rows->in, memory);
  memory->at = before;
  s->c.kind = GLYD_RECORD_SORTED;
  s->c.text_size = 0;
  for (uint32_t i = 0; i < s->n_entries; i++) s->c.text_size += s->entries[i].len;
  return done;
}

/* ---- numbers and dates ---- */

/* 0: too many texts that are no value. */
static int add_exception(glyd_record_source *s, state *d, const uint8_t *in, glyd_record_span f, uint32_t r) {
  uint32_t id = d->last_exception;
  if (f.len > GLYD_RECORD_EXCEPTION_LEN) return 0;
  if (s->c.exceptions == 0 || s->exception[id].len != f.len ||
      !glyd_record_same(in + s->exception[id].at, in + f.at, f.len)) {
    for (id = 0; id < s->c.exceptions; id++)
      if (s->exception[id].len == f.len && glyd_record_same(in + s->exception[id].at, in + f.at, f.len)) break;
    if (id == s->c.exceptions) {
      if (id == GLYD_RECORD_EXCEPTIONS_MAX || (id > 16 && s->n_null > r / 8 + 16)) return 0;
      s->exception[id] = f;
      s->c.exceptions++;
    }
    d->last_exception = id;
  }
  s->null[r >> 3] |= (uint8_t)(1u << (r & 7));
  s->null_id[s->n_null++] = (uint8_t)id;
  s->v[r] = r > 0 ? s->v[r - 1] : 0;
  return 1;
}

static int fill_values(const glyd_record_source_table *t, glyd_record_source *s, state *d, uint32_t slot, uint32_t from,
                       uint32_t to) {
  const uint8_t *const in = t->rows->in, *const end = in + t->rows->len;
  const int dates = s->c.kind == GLYD_RECORD_DATE;
  const int simple = !dates && s->c.format == GLYD_RECORD_PLAIN && s->c.point == 0;
  for (uint32_t r = from; r < to; r++) {
    const glyd_record_span f = glyd_record_source_field(t, slot, r);
    int64_t x = 0;
    uint64_t few;
    int ok = 1;
    if (simple && f.len - 1 < 8 && end - (in + f.at) >= 8 && (in[f.at] != '0' || f.len == 1) &&
        glyd_record_eight_digits(glyd_load64(in + f.at), f.len, &few))
      x = (int64_t)few;
    else
      ok = dates ? glyd_record_date_read(&d->dates, &s->c.date, in + f.at, f.len, end, &x)
                 : glyd_record_number_read(&s->c, in + f.at, f.len, end, &x);
    if (ok && !d->any && x > -LIMIT && x < LIMIT) {
      d->any = 1;
      d->origin = d->least = d->most = x;
    }
    const int64_t least = ok && x < d->least ? x : d->least, most = ok && x > d->most ? x : d->most;
    if (!ok || !d->any || x <= -LIMIT || x >= LIMIT || most - least >= (int64_t)GLYD_RECORD_RANGE_MAX) {
      if (!add_exception(s, d, in, f, r)) return 0;
      continue;
    }
    d->least = least;
    d->most = most;
    s->v[r] = (int32_t)(uint32_t)(uint64_t)(x - d->origin);
    if (d->clock) {
      d->clock = x >= 0 && x <= 2400 && x % 100 < 60;
      d->zero |= x == 0;
      d->midnight |= x == 2400;
    }
  }
  return s->n_null <= to / 2 + BLOCK;
}

static uint32_t divisor_of(const int32_t *v, uint32_t n, uint32_t shift) {
  uint32_t g = 0;
  for (uint32_t r = 0; r < n && g != 1; r++) {
    uint32_t x = (uint32_t)v[r] + shift;
    if (g != 0 && x % g == 0) continue;
    while (x != 0) {
      const uint32_t rest = g % x;
      g = x;
      x = rest;
    }
  }
  return g == 0 ? 1 : g;
}

static void end_values(const glyd_record_source_table *t, glyd_record_source *s, const state *d) {
  const uint32_t n = t->n_rows, shift = (uint32_t)(uint64_t)(d->origin - d->least);
  s->c.base = d->any ? d->least : 0;
  if (!d->any) memset(s->v, 0, n * sizeof *s->v);
  if (s->c.kind == GLYD_RECORD_INT && s->c.format == GLYD_RECORD_PLAIN && s->c.point == 0 && d->any && d->clock &&
      d->most >= 1000 && !(d->zero && d->midnight)) {
    const int32_t origin = (int32_t)d->origin, one = d->midnight;
    for (uint32_t r = 0; r < n; r++) {
      const int32_t x = s->v[r] + origin;
      s->v[r] = x / 100 * 60 + x % 100 - one;
      if (s->v[r] < 0 || s->v[r] > 1439) s->v[r] = 0; /* a first row without a value */
    }
    s->c.format = GLYD_RECORD_CLOCK;
    s->c.base = one;
    s->c.range = 1439;
    return;
  }
  /* rows without a value stand where the row before them does, or the first value */
  const uint32_t g = d->any ? divisor_of(s->v, n, shift) : 1;
  for (uint32_t r = 0; r < n; r++) s->v[r] = (int32_t)(((uint32_t)s->v[r] + shift) / g);
  s->c.divisor = g;
  s->c.range = d->any ? (uint32_t)((d->most - d->least) / g) : 0;
}

/* ---- all columns ---- */

static int begin_column(const glyd_record_source_table *t, glyd_record_source *s, state *d,
                        glyd_record_memory *memory) {
  const uint32_t n = t->n_rows;
  *d = (state){.kind = s->c.kind, .clock = 1};
  s->c.exceptions = 0;
  s->n_null = 0;
  if (s->c.kind == GLYD_RECORD_DICT) return begin_dictionary(s, d, memory);
  if (s->c.kind == GLYD_RECORD_TEXT) return 1;
  if (s->c.kind == GLYD_RECORD_DATE) glyd_record_date_begin(&d->dates, &s->c.date);
  s->null = glyd_record_memory_get(memory, n / 8 + 72, 1);
  s->null_id = glyd_record_memory_get(memory, n, 1);
  if (!s->null || !s->null_id) return 0;
  memset(s->null, 0, n / 8 + 72);
  return 1;
}

/* Values of rows [from, to). 0: the type does not do; -1: no memory. */
static int fill_column(const glyd_record_source_table *t, glyd_record_source *s, state *d, uint32_t slot, uint32_t from,
                       uint32_t to, glyd_record_memory *memory) {
  if (s->c.kind == GLYD_RECORD_DICT) return fill_dictionary(t, s, d, slot, from, to, memory);
  if (s->c.kind != GLYD_RECORD_TEXT) return fill_values(t, s, d, slot, from, to);
  for (uint32_t r = from; r < to; r++) {
    const uint32_t len = glyd_record_source_field(t, slot, r).len;
    if (len > s->c.range) s->c.range = len;
    s->v[r] = (int32_t)len;
  }
  return 1;
}

int glyd_record_type_columns(glyd_record_source_table *t, glyd_record_memory *memory) {
  const uint32_t n = t->n_rows;
  state *const states = glyd_record_memory_get(memory, t->n_columns, sizeof *states);
  if (!states) return 0;
  for (uint32_t c = 0; c < t->n_columns; c++) {
    glyd_record_source *const s = &t->columns[c];
    memset(s, 0, sizeof *s);
    s->c.position = (uint16_t)c;
    s->c.j = s->c.k = s->c.mask = -1;
    s->v = glyd_record_memory_get(memory, (uint64_t)n + 16, sizeof *s->v);
    if (!s->v) return 0;
    choose_type(t, s, c);
    if (!begin_column(t, s, &states[c], memory)) return 0;
  }
  for (uint32_t from = 0; from < n; from += BLOCK) {
    const uint32_t to = n - from < BLOCK ? n : from + BLOCK;
    for (uint32_t c = 0; c < t->n_columns; c++) {
      glyd_record_source *const s = &t->columns[c];
      int done = fill_column(t, s, &states[c], c, from, to, memory);
      while (done == 0) { /* on to a type that takes more */
        s->c.kind = s->c.kind == GLYD_RECORD_DICT ? GLYD_RECORD_TEXT : GLYD_RECORD_DICT;
        s->c.range = 0;
        s->c.format = s->c.point = s->c.width = 0;
        if (!begin_column(t, s, &states[c], memory)) return 0;
        done = fill_column(t, s, &states[c], c, 0, to, memory);
      }
      if (done < 0) return 0;
    }
  }
  for (uint32_t c = 0; c < t->n_columns; c++) {
    glyd_record_source *const s = &t->columns[c];
    if (s->c.kind == GLYD_RECORD_DICT && s->n_entries > FRESH_ENTRIES && s->n_entries < GLYD_RECORD_DICT_MAX &&
        (uint64_t)s->n_entries * 32 > n) {
      s->c.kind = GLYD_RECORD_FRESH; /* many come up once: that the next one does is all there is to say */
      s->c.range = s->n_entries - 1;
    }
    if (s->c.kind == GLYD_RECORD_DICT && !order_entries(t, s, NULL, memory)) return 0;
    if (s->c.kind == GLYD_RECORD_INT || s->c.kind == GLYD_RECORD_DATE) end_values(t, s, &states[c]);
    if (s->c.exceptions == 0) s->null = NULL;
  }
  return 1;
}

/* ---- text in common ---- */

#define JOIN_ROWS 256u
#define JOIN_COLUMNS 8u
#define JOIN_BYTES 96u /* of a text that are looked at */
#define JOIN_MATCH 5u  /* bytes */

/* Bytes of b that stand in a too. */
static uint32_t common_bytes(const uint8_t *a, uint32_t n, const uint8_t *b, uint32_t m) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i + JOIN_MATCH <= m;) {
    uint32_t best = 0;
    for (uint32_t k = 0; k + JOIN_MATCH <= n; k++) {
      if (a[k] != b[i]) continue;
      uint32_t len = 0;
      while (k + len < n && i + len < m && a[k + len] == b[i + len]) len++;
      if (len > best) best = len;
    }
    if (best >= JOIN_MATCH) {
      sum += best;
      i += best;
    } else {
      i++;
    }
  }
  return sum;
}

void glyd_record_join_texts(glyd_record_source_table *t) {
  uint32_t slot[JOIN_COLUMNS], n = 0;
  for (uint32_t i = 0; i < t->n_columns && n < JOIN_COLUMNS; i++)
    if (t->columns[t->order[i]].c.kind == GLYD_RECORD_TEXT) slot[n++] = t->order[i];
  if (n < 2 || t->n_rows < 16) return;
  const uint32_t rows = t->n_rows < JOIN_ROWS ? t->n_rows : JOIN_ROWS, step = t->n_rows / rows;
  uint64_t bytes = 0, common = 0;
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t k = 0; k < n; k++) {
      const glyd_record_span f = glyd_record_source_field(t, slot[k], r * step);
      const uint32_t len = f.len < JOIN_BYTES ? f.len : JOIN_BYTES;
      uint32_t best = 0;
      bytes += len;
      for (uint32_t q = 0; q < k; q++) {
        const glyd_record_span g = glyd_record_source_field(t, slot[q], r * step);
        const uint32_t x =
            common_bytes(t->rows->in + g.at, g.len < JOIN_BYTES ? g.len : JOIN_BYTES, t->rows->in + f.at, len);
        if (x > best) best = x;
      }
      common += best;
    }
  if (common * 8 < bytes) return;
  for (uint32_t k = 1; k < n; k++) t->columns[slot[k]].c.kind = GLYD_RECORD_MORE;
}

/* ---- ends of texts ---- */

#define ENDED_FROM 12u /* bytes of a text, as a mean: in longer ones matches of words reach over the end */

#define ALIKE 16u /* but for one in so many, they have the same length */

static int has_byte(const glyd_record_source_table *t, uint32_t slot, uint8_t byte) {
  for (uint32_t r = 0; r < t->n_rows; r++) {
    const glyd_record_span f = glyd_record_source_field(t, slot, r);
    if (memchr(t->rows->in + f.at, byte, f.len)) return 1;
  }
  return 0;
}

void glyd_record_end_texts(glyd_record_source_table *t) {
  static const uint8_t ends[3] = {'\n', 0, '\t'};
  for (uint32_t c = 0; c < t->n_columns; c++) {
    glyd_record_column *const m = &t->columns[c].c;
    uint64_t bytes = 0;
    uint32_t alike = 0; /* texts as long as the one before: such lengths cost nothing, an end has its share of a code */
    if (!glyd_record_is_text(m)) continue;
    for (uint32_t r = 0, before = 0; r < t->n_rows; r++) {
      const uint32_t len = glyd_record_source_field(t, c, r).len;
      bytes += len;
      alike += len == before;
      before = len;
    }
    if (bytes < ENDED_FROM * (uint64_t)t->n_rows || alike > t->n_rows - t->n_rows / ALIKE - 1) continue;
    for (unsigned i = 0; i < sizeof ends && m->end == 0; i++)
      if (!has_byte(t, c, ends[i])) m->end = (uint16_t)(ends[i] + 1);
  }
}
