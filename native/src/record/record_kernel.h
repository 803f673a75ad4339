/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Values, slots and text of a batch of rows; compiled once per CPU variant,
 * for the compiler to vectorise. A slot is text and, in its last byte, its
 * length; all of it is stored and the output moves on by the length, so that
 * nothing depends on the type of a field. Eight slots are loaded before the
 * first is stored: else each load waits for a store to an address not known.
 */
#include "record/record_format.h"

#define BATCH GLYD_RECORD_BATCH

GLYD_INLINE int32_t unzigzag(uint32_t z) { return (int32_t)((z >> 1) ^ (0u - (z & 1))); }

/* Minutes of a day, from a sum of two or three of them. */
GLYD_INLINE int32_t wrap_clock(int32_t t) {
  t += t < 0 ? 1440 : 0;
  t -= t >= 1440 ? 1440 : 0;
  t -= t >= 1440 ? 1440 : 0;
  return t;
}

GLYD_INLINE int32_t add(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
GLYD_INLINE int32_t sub(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }

static GLYD_NOINLINE int take_escapes(glyd_record_residuals *r, uint32_t from, uint32_t n, int wide, int zigzag,
                                      int32_t *out) {
  for (uint32_t i = 0; i < n; i++) {
    unsigned all = 255;
    for (int k = 0; k <= wide; k++) all &= r->plane[k][from + i];
    if (all != 255) continue;
    if (r->at >= r->n_escapes) return 0;
    const size_t e = r->at++, m = r->n_escapes;
    const uint32_t z = r->escapes[e] | (uint32_t)r->escapes[e + m] << 8 | (uint32_t)r->escapes[e + 2 * m] << 16 |
                       (uint32_t)r->escapes[e + 3 * m] << 24;
    out[i] = zigzag ? unzigzag(z) : (int32_t)z;
  }
  return 1;
}

static GLYD_NOINLINE int expand(glyd_record_residuals *r, uint32_t from, uint32_t n, int wide, int zigzag,
                                int32_t *restrict out) {
  const uint8_t *restrict low = r->plane[0] + from;
  uint8_t largest = 0;
  /* four lines of each of many planes: too few in a row for the processor to see the next batch coming */
  for (int k = 0; k <= wide; k++)
    for (uint32_t i = 0; i < BATCH; i += 64) __builtin_prefetch(r->plane[k] + from + n + i);
  if (wide > 1) {
    const uint8_t *restrict high = r->plane[1] + from, *restrict third = r->plane[2] + from;
    for (uint32_t i = 0; i < n; i++)
      out[i] = (int32_t)((uint32_t)low[i] | (uint32_t)high[i] << 8 | (uint32_t)third[i] << 16);
    if (wide > 2) {
      const uint8_t *restrict fourth = r->plane[3] + from;
      for (uint32_t i = 0; i < n; i++) out[i] |= (int32_t)((uint32_t)fourth[i] << 24);
    }
    if (zigzag)
      for (uint32_t i = 0; i < n; i++) out[i] = unzigzag((uint32_t)out[i]);
  } else if (wide) {
    const uint8_t *restrict high = r->plane[1] + from;
    if (zigzag)
      for (uint32_t i = 0; i < n; i++) out[i] = unzigzag((uint32_t)low[i] | (uint32_t)high[i] << 8);
    else
      for (uint32_t i = 0; i < n; i++) out[i] = (int32_t)((uint32_t)low[i] | (uint32_t)high[i] << 8);
  } else {
    if (zigzag)
      for (uint32_t i = 0; i < n; i++) out[i] = unzigzag(low[i]);
    else
      for (uint32_t i = 0; i < n; i++) out[i] = low[i];
  }
  for (uint32_t i = 0; i < n; i++) largest = low[i] > largest ? low[i] : largest;
  return largest == 255 ? take_escapes(r, from, n, wide, zigzag, out) : 1;
}

static const int32_t *keys_of(const glyd_record_field *f, uint32_t n, int32_t *restrict buffer) {
  if (!f->key_b) return f->key_a;
  const int32_t *restrict a = f->key_a, *restrict b = f->key_b;
  const int32_t factor = (int32_t)f->key_factor;
  for (uint32_t i = 0; i < n; i++) buffer[i] = a[i] * factor + b[i];
  return buffer;
}

/* Rows [q, m) of key `key` have a new value. */
GLYD_INLINE void spread_miss(int32_t *restrict out, const int32_t *restrict keys, uint32_t q, uint32_t m, int32_t key,
                             int32_t v) {
  for (uint32_t i = q; i < m; i++) out[i] = keys[i] == key ? v : out[i];
}

#define FEW_MISSES 10 /* of 64 rows: then it pays to look at the rows after each */

static void values_same(glyd_record_field *f, uint32_t from, uint32_t n, const int32_t *key) {
  int32_t *const last = f->last, *const out = f->value;
  uint32_t at = f->miss_at;
  for (uint32_t i = 0; i < n; i += 64) {
    const uint32_t m = n - i < 64 ? n - i : 64;
    uint64_t bits = glyd_load64(f->miss + ((from + i) >> 3));
    if (m < 64) bits &= ((uint64_t)1 << m) - 1;
    const int misses = __builtin_popcountll(bits);
    if (misses <= FEW_MISSES) {
      for (uint32_t q = 0; q < m; q++) out[i + q] = last[key[i + q]];
      for (; bits; bits &= bits - 1, at++) {
        const uint32_t q = glyd_ctz64(bits);
        const int32_t fresh = (int32_t)((uint32_t)f->miss_low[at] | (uint32_t)f->miss_high[at] << 8);
        last[key[i + q]] = fresh;
        spread_miss(out + i, key + i, q, m, key[i + q], fresh);
      }
      continue;
    }
    for (uint32_t q = 0; q < m; q++) {
      const int32_t fresh = (int32_t)((uint32_t)f->miss_low[at] | (uint32_t)f->miss_high[at] << 8);
      int32_t *const place = last + key[i + q];
      const uint32_t b = (uint32_t)(bits >> q) & 1;
      const int32_t v = b ? fresh : *place;
      *place = v;
      out[i + q] = v;
      at += b;
    }
  }
  f->miss_at = at;
}

/* Values of rows [from, from + n) of the table; 0: corrupt. */
static GLYD_NOINLINE int values(glyd_record_field *f, uint32_t from, uint32_t n, int32_t *key_buffer,
                                int32_t *restrict res) {
  const glyd_record_column *const c = f->column;
  glyd_record_residuals *const r = &f->residuals;
  int32_t *const out = f->value;
  const int clock = c->kind == GLYD_RECORD_INT && c->format == GLYD_RECORD_CLOCK;
  const int ids = !glyd_record_is_number(c);
  if (c->pred == GLYD_PRED_SAME) {
    values_same(f, from, n, keys_of(f, n, key_buffer));
  } else {
    const int zigzag = !(c->pred == GLYD_PRED_RANK || (ids && c->pred == GLYD_PRED_ZERO));
    if (r->zero)
      memset(res, 0, n * sizeof *res);
    else if (!expand(r, from, n, c->wide, zigzag, res))
      return 0;
  }
  switch (c->pred) {
  case GLYD_PRED_ZERO:
    if (c->kind == GLYD_RECORD_FRESH) {
      uint32_t next = f->fresh;
      for (uint32_t i = 0; i < n; i++) {
        const uint32_t code = (uint32_t)res[i];
        out[i] = (int32_t)(code == 0 ? next : code - 1);
        next += code == 0;
      }
      f->fresh = next;
      break;
    }
    memcpy(out, res, n * sizeof *out);
    if (clock)
      for (uint32_t i = 0; i < n; i++) out[i] += out[i] < 0 ? 1440 : 0;
    break;
  case GLYD_PRED_PREVIOUS: {
    int32_t a = out[-1];
    if (r->zero)
      for (uint32_t i = 0; i < n; i++) out[i] = a;
    else if (clock)
      for (uint32_t i = 0; i < n; i++) out[i] = a = wrap_clock(add(a, res[i]));
    else
      for (uint32_t i = 0; i < n; i++) out[i] = a = add(a, res[i]);
    break;
  }
  case GLYD_PRED_LINEAR: {
    int32_t a = out[-1], b = out[-2];
    for (uint32_t i = 0; i < n; i++) {
      int32_t p = sub(add(a, a), b);
      b = a;
      if (clock)
        a = wrap_clock(add(wrap_clock(p), res[i]));
      else
        a = add(p, res[i]);
      out[i] = a;
    }
    break;
  }
  case GLYD_PRED_COLUMN: {
    const int32_t *restrict a = f->of_a, k = (int32_t)c->adjust;
    for (uint32_t i = 0; i < n; i++) out[i] = add(a[i], k);
    goto residual;
  }
  case GLYD_PRED_SUM: {
    const int32_t *restrict a = f->of_a, *restrict b = f->of_b, k = (int32_t)c->adjust;
    for (uint32_t i = 0; i < n; i++) out[i] = add(add(a[i], b[i]), k);
    goto residual;
  }
  case GLYD_PRED_DIFFERENCE: {
    const int32_t *restrict a = f->of_a, *restrict b = f->of_b, k = (int32_t)c->adjust;
    for (uint32_t i = 0; i < n; i++) out[i] = add(sub(a[i], b[i]), k);
    goto residual;
  }
  residual:
    if (clock) {
      for (uint32_t i = 0; i < n; i++) out[i] = wrap_clock(out[i]);
      for (uint32_t i = 0; i < n; i++) out[i] = wrap_clock(add(out[i], res[i]));
    } else {
      for (uint32_t i = 0; i < n; i++) out[i] = add(out[i], res[i]);
    }
    break;
  case GLYD_PRED_DELTA: {
    const int32_t *a = f->of_a;
    if (clock) {
      int32_t v = out[-1], before = a[-1];
      for (uint32_t i = 0; i < n; i++) {
        v = wrap_clock(add(wrap_clock(add(v, sub(a[i], before))), res[i]));
        before = a[i];
        out[i] = v;
      }
    } else {
      int32_t acc = sub(out[-1], a[-1]);
      for (uint32_t i = 0; i < n; i++) {
        acc = add(acc, res[i]);
        out[i] = add(acc, a[i]);
      }
    }
    break;
  }
  case GLYD_PRED_LAST: {
    const int32_t *const key = keys_of(f, n, key_buffer);
    int32_t *const last = f->last;
    if (clock)
      for (uint32_t i = 0; i < n; i++) out[i] = last[key[i]] = wrap_clock(add(last[key[i]], res[i]));
    else
      for (uint32_t i = 0; i < n; i++) out[i] = last[key[i]] = add(last[key[i]], res[i]);
    break;
  }
  case GLYD_PRED_RANK: {
    const int32_t *const key = keys_of(f, n, key_buffer);
    const uint32_t *const starts = f->starts;
    const uint16_t *const pairs = f->pairs;
    const uint32_t n_pairs = f->n_pairs;
    uint32_t bad = 0;
    for (uint32_t i = 0; i < n; i++) {
      uint32_t x = starts[key[i]] + (uint32_t)res[i];
      bad |= x >= n_pairs;
      x = x >= n_pairs ? 0 : x;
      out[i] = pairs[x];
    }
    if (bad) return 0;
    break;
  }
  default: break;
  }
  uint32_t most = 0;
  for (uint32_t i = 0; i < n; i++) most = (uint32_t)out[i] > most ? (uint32_t)out[i] : most;
  f->most = most;
  return most <= c->range;
}

static int set_exceptions(glyd_record_field *f, uint32_t from, uint32_t n) {
  const int32_t first = (int32_t)f->table_size;
  for (uint32_t i = 0; i < n; i += 64) {
    const uint32_t m = n - i < 64 ? n - i : 64;
    uint64_t bits = glyd_load64(f->null + ((from + i) >> 3));
    if (m < 64) bits &= ((uint64_t)1 << m) - 1;
    for (; bits; bits &= bits - 1) {
      unsigned id = 0;
      if (f->null_id) {
        if (f->null_id == f->null_end) return 0;
        id = *f->null_id++;
        if (id >= f->column->exceptions) return 0;
      }
      f->index[i + glyd_ctz64(bits)] = first + (int32_t)id;
    }
  }
  return 1;
}

GLYD_INLINE void text_slots(glyd_record_field *f, uint32_t n, unsigned size) {
  for (uint32_t i = 0; i < n; i++) format_text(f, f->scratch + (size_t)i * size, size, f->at[i], (unsigned)f->value[i]);
}

GLYD_INLINE void entry_slots(glyd_record_field *f, uint32_t n, unsigned size) {
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t *const o = f->offset + (uint32_t)f->value[i];
    format_text(f, f->scratch + (size_t)i * size, size, f->text + o[0], o[1] - o[0]);
  }
}

/* A bit for each of 32 bytes, set where it is `byte`. */
GLYD_INLINE uint32_t find_bytes(const uint8_t *p, uint8_t byte) {
#if defined(GLYD_RECORD_AVX2)
  const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)p);
  return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8((char)byte)));
#else
  const uint64_t low = 0x7F7F7F7F7F7F7F7Fu, all = byte * 0x0101010101010101u;
  uint64_t mask = 0;
  for (unsigned i = 0; i < 4; i++) {
    const uint64_t x = glyd_load64(p + 8 * i) ^ all;
    const uint64_t zeros = ~(((x & low) + low) | x | low); /* the high bit of each byte that is 0 */
    mask |= ((zeros >> 7) * 0x0102040810204080u >> 56) << (8 * i);
  }
  return (uint32_t)mask;
#endif
}

/* The same of a column of its own whose texts end with a byte. Their ends are found 64 bytes at a time, with no branch
 * on where they are. 0: too few, or one is too long. */
static GLYD_NOINLINE int place_ended(glyd_record_field *f, uint32_t n) {
  const uint8_t *const begin = f->text, byte = (uint8_t)(f->column->end - 1);
  const uint64_t left = (uint64_t)(f->text_end - begin);
  uint32_t ends[BATCH + 72], found = 0; /* streams of a segment are shorter than 2^32 bytes */
  for (uint64_t at = 0; found < n && at < left; at += 64) {
    uint64_t mask =
        find_bytes(begin + at, byte) | (uint64_t)find_bytes(begin + at + 32, byte)
                                           << 32; /* streams are followed by GLYD_RECORD_PAD readable bytes */
    if (left - at < 64) mask &= ((uint64_t)1 << (left - at)) - 1;
    uint32_t *out = ends + found;
    found += (uint32_t)__builtin_popcountll(mask);
    do {
      for (unsigned k = 0; k < 8; k++) { /* more than there are: written over by those to come */
        *out++ = (uint32_t)at + glyd_ctz64(mask | (uint64_t)1 << 63);
        mask &= mask - 1;
      }
    } while (mask != 0);
  }
  if (found < n) return 0;
  uint32_t from = 0, most = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t len = ends[i] - from;
    f->at[i] = begin + from;
    f->value[i] = (int32_t)len;
    most = len > most ? len : most;
    from = ends[i] + 1;
  }
  f->text = begin + from;
  f->most = most;
  return most <= f->column->range;
}

/* Where the texts of a batch are, of columns that share their bytes. */
static GLYD_NOINLINE int place_shared(glyd_record_field *first, uint32_t n) {
  const uint8_t *p = first->text;
  uint64_t left = (uint64_t)(first->text_end - p);
  for (uint32_t i = 0; i < n; i++) {
    for (glyd_record_field *f = first; f; f = f->more) {
      f->at[i] = p;
      if (f->column->end > 0) {
        const uint8_t *const end = memchr(p, f->column->end - 1, left);
        if (!end || (uint64_t)(end - p) > f->column->range) return 0;
        const uint32_t len = (uint32_t)(end - p);
        f->value[i] = (int32_t)len;
        f->most = len > f->most ? len : f->most;
        p += len + 1;
        left -= len + 1;
        continue;
      }
      const uint32_t len = (uint32_t)f->value[i];
      if (len > left) return 0;
      p += len;
      left -= len;
    }
  }
  first->text = p;
  return 1;
}

/* The same, and slots of short ones. */
static int place_texts(glyd_record_field *first, uint32_t n, unsigned size) {
  if (!(first->column->end > 0 && !first->more ? place_ended(first, n) : place_shared(first, n))) return 0;
  for (glyd_record_field *f = first; f; f = f->more) {
    if (f->slot == GLYD_SLOT_COPY) continue;
    if (size == 16)
      text_slots(f, n, 16);
    else
      text_slots(f, n, 32);
  }
  return 1;
}

/* Texts of the rows of a batch, made for it. 0: corrupt. */
static int make_batch(glyd_record_field *f, uint32_t n, unsigned size) {
  const glyd_record_column *const c = f->column;
  if (glyd_record_is_text(c)) return f->own ? place_texts(f->own, n, size) : 1;
  if (f->slot == GLYD_SLOT_COPY) return 1;
  if (glyd_record_is_number(c))
    format(f, f->value, n, size, f->scratch);
  else if (size == 16)
    entry_slots(f, n, 16);
  else
    entry_slots(f, n, 32);
  return 1;
}

static GLYD_NOINLINE int slots(glyd_record_field *f, uint32_t from, uint32_t n, unsigned size) {
  if (f->slot != GLYD_SLOT_TABLE) {
    if (!make_batch(f, n, size)) return 0;
    if (f->slot == GLYD_SLOT_COPY) return 1;
    for (uint32_t i = 0; i < n; i++) f->index[i] = (int32_t)i;
  } else if (!f->identity) {
    memcpy(f->index, f->value, n * sizeof *f->index);
  }
  return f->null ? set_exceptions(f, from, n) : 1;
}

static GLYD_NOINLINE void fuse(const glyd_record_fusion *fusion, uint32_t n) {
  int32_t *restrict const index = fusion->index;
  const int32_t *restrict v = fusion->fields[0]->index;
  memcpy(index, v, n * sizeof *index);
  for (uint32_t k = 1; k < fusion->n; k++) {
    const int32_t entries = (int32_t)glyd_record_slots(fusion->fields[k]);
    v = fusion->fields[k]->index;
    for (uint32_t i = 0; i < n; i++) index[i] = index[i] * entries + v[i];
  }
}

static int batch(glyd_record_table *table) {
  table->done += table->batch;
  for (uint32_t i = 0; i < table->n_fields && table->batch > 0; i++) {
    int32_t *const v = table->fields[i].value;
    const int32_t a = v[table->batch - 1], b = table->batch > 1 ? v[table->batch - 2] : v[-1];
    v[-1] = a;
    v[-2] = b;
  }
  const uint32_t left = table->rows - table->done;
  const uint32_t n = left < BATCH ? left : BATCH;
  table->batch = n;
  table->row = 0;
  uint64_t room = ((uint64_t)table->n_pieces << table->slot_log) + 64;
  for (uint32_t i = 0; i < table->n_fields; i++) {
    glyd_record_field *const f = &table->fields[i];
    f->most = 0;
    if (f->column->end == 0 && !values(f, table->done, n, table->keys, table->scratch)) return 0;
    if (!slots(f, table->done, n, 1u << table->slot_log)) return 0;
  }
  for (uint32_t i = 0; i < table->n_fields;
       i++) { /* texts that end with a byte are placed with the last that shares their bytes */
    const glyd_record_field *const f = &table->fields[i];
    if (f->slot == GLYD_SLOT_COPY) room += glyd_record_is_text(f->column) ? f->most : table->most[i];
  }
  for (const glyd_record_fusion *x = table->fusions; x; x = x->next) fuse(x, n);
  table->room = room;
  return 1;
}

/* ---- text ---- */

typedef struct slot16 {
  uint8_t b[16];
} slot16;

GLYD_INLINE slot16 load_slot16(const uint8_t *p) {
  slot16 v;
  memcpy(&v, p, sizeof v);
  return v;
}

GLYD_INLINE void store_slot16(uint8_t *p, slot16 v) { memcpy(p, &v, sizeof v); }

/* One register: the compiler makes two of a struct, and eight slots do not fit then. */
#if defined(GLYD_RECORD_AVX2)
typedef __m256i slot32;

GLYD_INLINE slot32 load_slot32(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
GLYD_INLINE void store_slot32(uint8_t *p, slot32 v) { _mm256_storeu_si256((__m256i *)(void *)p, v); }
#else
typedef struct slot32 {
  uint8_t b[32];
} slot32;

GLYD_INLINE slot32 load_slot32(const uint8_t *p) {
  slot32 v;
  memcpy(&v, p, sizeof v);
  return v;
}

GLYD_INLINE void store_slot32(uint8_t *p, slot32 v) { memcpy(p, &v, sizeof v); }
#endif

#define ADDRESS(k, LOG) const uint8_t *const s##k = q[k].slots + ((size_t)(uint32_t)q[k].index[row] << (LOG))
#define LOAD(k, TYPE)                  \
  const TYPE v##k = load_##TYPE(s##k); \
  const size_t n##k = s##k[sizeof v##k - 1]

#define DEFINE_PIECES(NAME, TYPE, LOG)                                                             \
  GLYD_INLINE uint8_t *NAME(const glyd_record_piece *q, uint32_t n, uint8_t *out, size_t row) {    \
    for (; n >= 8; n -= 8, q += 8) {                                                               \
      ADDRESS(0, LOG);                                                                             \
      ADDRESS(1, LOG);                                                                             \
      ADDRESS(2, LOG);                                                                             \
      ADDRESS(3, LOG);                                                                             \
      ADDRESS(4, LOG);                                                                             \
      ADDRESS(5, LOG);                                                                             \
      ADDRESS(6, LOG);                                                                             \
      ADDRESS(7, LOG);                                                                             \
      LOAD(0, TYPE);                                                                               \
      LOAD(1, TYPE);                                                                               \
      LOAD(2, TYPE);                                                                               \
      LOAD(3, TYPE);                                                                               \
      LOAD(4, TYPE);                                                                               \
      LOAD(5, TYPE);                                                                               \
      LOAD(6, TYPE);                                                                               \
      LOAD(7, TYPE);                                                                               \
      uint8_t *const o1 = out + n0, *const o2 = o1 + n1, *const o3 = o2 + n2, *const o4 = o3 + n3; \
      uint8_t *const o5 = o4 + n4, *const o6 = o5 + n5, *const o7 = o6 + n6;                       \
      store_##TYPE(out, v0);                                                                       \
      store_##TYPE(o1, v1);                                                                        \
      store_##TYPE(o2, v2);                                                                        \
      store_##TYPE(o3, v3);                                                                        \
      store_##TYPE(o4, v4);                                                                        \
      store_##TYPE(o5, v5);                                                                        \
      store_##TYPE(o6, v6);                                                                        \
      store_##TYPE(o7, v7);                                                                        \
      out = o7 + n7;                                                                               \
    }                                                                                              \
    if (n >= 4) {                                                                                  \
      ADDRESS(0, LOG);                                                                             \
      ADDRESS(1, LOG);                                                                             \
      ADDRESS(2, LOG);                                                                             \
      ADDRESS(3, LOG);                                                                             \
      LOAD(0, TYPE);                                                                               \
      LOAD(1, TYPE);                                                                               \
      LOAD(2, TYPE);                                                                               \
      LOAD(3, TYPE);                                                                               \
      uint8_t *const o1 = out + n0, *const o2 = o1 + n1, *const o3 = o2 + n2;                      \
      store_##TYPE(out, v0);                                                                       \
      store_##TYPE(o1, v1);                                                                        \
      store_##TYPE(o2, v2);                                                                        \
      store_##TYPE(o3, v3);                                                                        \
      out = o3 + n3;                                                                               \
      n -= 4;                                                                                      \
      q += 4;                                                                                      \
    }                                                                                              \
    if (n >= 2) {                                                                                  \
      ADDRESS(0, LOG);                                                                             \
      ADDRESS(1, LOG);                                                                             \
      LOAD(0, TYPE);                                                                               \
      LOAD(1, TYPE);                                                                               \
      store_##TYPE(out, v0);                                                                       \
      store_##TYPE(out + n0, v1);                                                                  \
      out += n0 + n1;                                                                              \
      n -= 2;                                                                                      \
      q += 2;                                                                                      \
    }                                                                                              \
    if (n > 0) {                                                                                   \
      ADDRESS(0, LOG);                                                                             \
      LOAD(0, TYPE);                                                                               \
      store_##TYPE(out, v0);                                                                       \
      out += n0;                                                                                   \
    }                                                                                              \
    return out;                                                                                    \
  }

DEFINE_PIECES(pieces16, slot16, 4)
DEFINE_PIECES(pieces32, slot32, 5)

GLYD_INLINE const uint8_t *copy_source(const glyd_record_field *f, uint32_t row, size_t *len) {
  if (glyd_record_is_text(f->column)) {
    *len = (size_t)(uint32_t)f->value[row];
    return f->at[row];
  }
  const uint32_t *const o = f->offset + (uint32_t)f->value[row];
  *len = o[1] - o[0];
  return f->text + o[0];
}

/* Byte-exact, for the end of the output. */
static GLYD_NOINLINE uint8_t *row_careful(const glyd_record_table *table, uint8_t *out, uint8_t *end, uint32_t row) {
  const unsigned size = 1u << table->slot_log;
  for (uint32_t i = 0; i < table->n_runs; i++) {
    const glyd_record_run *const run = &table->runs[i];
    for (uint32_t k = 0; k < run->n; k++) {
      const uint8_t *const s = run->pieces[k].slots + (size_t)(uint32_t)run->pieces[k].index[row] * size;
      const size_t len = s[size - 1];
      if (len > (size_t)(end - out)) return NULL;
      memcpy(out, s, len);
      out += len;
    }
    if (!run->copy) continue;
    size_t len;
    const uint8_t *const s = copy_source(run->copy, row, &len);
    if (len > (size_t)(end - out)) return NULL;
    memcpy(out, s, len);
    out += len;
  }
  return out;
}

GLYD_INLINE uint8_t *copy_text(uint8_t *out, const uint8_t *from, size_t len) {
  store_slot32(out, load_slot32(from)); /* sources are followed by GLYD_RECORD_PAD readable bytes */
  if (len > 32) {
    store_slot32(out + 32, load_slot32(from + 32));
    if (len > 64) memcpy(out + 64, from + 64, len - 64);
  }
  return out + len;
}

/* A row where there is room for the longest of the batch. */
GLYD_INLINE uint8_t *row_fast(const glyd_record_table *table, uint8_t *out, uint32_t row) {
  const glyd_record_run *run = table->runs, *const last = run + table->n_runs;
  for (; run < last; run++) {
    out = table->slot_log == 4 ? pieces16(run->pieces, run->n, out, row) : pieces32(run->pieces, run->n, out, row);
    if (!run->copy) continue;
    size_t len;
    const uint8_t *const s = copy_source(run->copy, row, &len);
    out = copy_text(out, s, len);
  }
  return out;
}

GLYD_INLINE uint8_t *row_any(const glyd_record_table *table, uint8_t *out, uint8_t *end, uint32_t row) {
  return (size_t)(end - out) < table->room ? row_careful(table, out, end, row) : row_fast(table, out, row);
}

/* Rows without texts to copy, where all of them have room. */
static GLYD_NOINLINE uint8_t *rows_of_slots(const glyd_record_table *table, uint8_t *out, uint32_t from, uint32_t to) {
  const glyd_record_piece *const q = table->runs[0].pieces;
  const uint32_t n = table->runs[0].n;
  if (table->slot_log == 4)
    for (uint32_t row = from; row < to; row++) out = pieces16(q, n, out, row);
  else
    for (uint32_t row = from; row < to; row++) out = pieces32(q, n, out, row);
  return out;
}

static GLYD_NOINLINE uint8_t *rows_of_one(const glyd_record_table *table, uint8_t *out, uint8_t *end, uint32_t from,
                                          uint32_t to) {
  if (table->n_runs == 1 && !table->runs[0].copy) {
    const size_t left = (size_t)(end - out), fit = left / table->room;
    const uint32_t n = fit < to - from ? (uint32_t)fit : to - from;
    out = rows_of_slots(table, out, from, from + n);
    from += n;
  }
  for (; from < to && out; from++) out = row_any(table, out, end, from);
  return out;
}

static uint8_t *rows(glyd_record_table *tables, const uint8_t *selector, uint8_t *out, uint8_t *end, uint32_t from,
                     uint32_t to) {
  if (!selector) return rows_of_one(tables, out, end, from, to);
  for (; from < to; from++) {
    glyd_record_table *const own = &tables[1 + selector[from]];
    if (own->row == own->batch && !batch(own)) return NULL;
    out = row_any(tables, out, end, from);
    if (!out) return NULL;
    out = row_any(own, out, end, own->row++);
    if (!out) return NULL;
  }
  return out;
}
