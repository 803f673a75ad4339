/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "object/object_encode.h"

#include "bitstream/bit_writer.h"
#include "block/block_encode.h"
#include "common/checksum.h"
#include "common/cpu.h"
#include "object/object_index_encode.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define TABLE_BITS_MIN 8u
#define TABLE_BITS_MAX 14u
#define CONTENT_PAD 32     /* bytes before the content that the first repeats may look at, and after it */
#define BLOCKS_FROM 32768u /* bytes of content from which on blocks are tried */

/* ---- finding matches ------------------------------------------------------
 *
 * The content is copied behind that of the dictionary, so that a distance is a
 * distance wherever it leads. Places are counted from the dictionary's start. */

#define ENOUGH 12     /* bytes: a repeated offset with so many is taken at once */
#define LAZY_BELOW 16 /* bytes: nothing better than a longer match is looked for */
#define COMMAND_BITS GLYD_OBJECT_COMMAND_BITS

/* A match as a number, of which the greatest is the best: gain, bits saved in
 * 1/16, << 32; slot << 30; length << 24; distance. Lengths are known up to COUNTED. */
typedef int64_t match;

typedef struct finder {
  const glyd_dictionary *d;
  const glyd_object_index *x;
  const int32_t *near_cost; /* of matches by log2 of their distances, in 1/16 bit */
  int32_t place_cost, literal_bits;
  const uint8_t *in;    /* start of the dictionary's copy */
  const uint8_t *start; /* of the object, behind it */
  const uint8_t *end;
  uint16_t *table; /* places in the object by 5 bytes; it may be wrong about them */
  unsigned bits;
  uint32_t repeat[GLYD_OBJECT_REPEATS];
} finder;

/* Symbol of a new distance for a match at a place, with its extra bits: as such,
 * or as a place in the dictionary, whatever takes less; which is hard to predict. */
GLYD_INLINE unsigned offset_symbol(const uint32_t *put, const glyd_dictionary *d, size_t place, uint32_t distance,
                                   unsigned *bits, uint32_t *extra) {
  const uint32_t v = distance + GLYD_OBJECT_OFFSET_BIAS, from = (uint32_t)place - distance;
  const unsigned near_bits = glyd_log2_32(v) - 3, near = near_bits << 3 | (v >> near_bits & 7);
  const unsigned there = (GLYD_OBJECT_SYMBOLS_HERE + (from >> d->shift)) & 255; /* anything where from is not there */
  const uint32_t by_place =
      0 - (uint32_t)((int)(from < d->size) & ((put[near] & 255) + near_bits > (put[there] & 255) + d->shift));
  *bits = near_bits ^ (by_place & (near_bits ^ d->shift));
  *extra = (v ^ (by_place & (v ^ from))) & ((1u << *bits) - 1);
  return near ^ (by_place & (near ^ there));
}

#define COUNTED 32 /* bytes that are compared at a time, behind what is asked about as well */

/* How many of COUNTED bytes at a equal those at b; mostly not all, and how many is hard to predict. */
GLYD_INLINE size_t count_first(const uint8_t *a, const uint8_t *b) {
#if defined(__SSE2__)
  const __m128i x0 = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)a),
                                    _mm_loadu_si128((const __m128i *)(const void *)b));
  const __m128i x1 = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)(a + 16)),
                                    _mm_loadu_si128((const __m128i *)(const void *)(b + 16)));
  const uint64_t equal = (uint32_t)_mm_movemask_epi8(x0) | (uint64_t)(uint32_t)_mm_movemask_epi8(x1) << 16;
  return glyd_ctz64(~equal);
#else
  for (unsigned i = 0; i < COUNTED; i += 8) {
    const uint64_t x = glyd_load64(a + i) ^ glyd_load64(b + i);
    if (x != 0) return i + (glyd_ctz64(x) >> 3);
  }
  return COUNTED;
#endif
}

GLYD_INLINE size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Bytes, at most 7, that the repeated offset has at ip that has most of them. */
GLYD_INLINE unsigned best_repeat(const finder *f, const uint8_t *ip, uint64_t v, unsigned *slot) {
  const uint64_t top = (uint64_t)1 << 63;
  const unsigned n0 = glyd_ctz64((v ^ glyd_load64(ip - f->repeat[0])) | top) >> 3 << 2 | 2;
  const unsigned n1 = glyd_ctz64((v ^ glyd_load64(ip - f->repeat[1])) | top) >> 3 << 2 | 1;
  const unsigned n2 = glyd_ctz64((v ^ glyd_load64(ip - f->repeat[2])) | top) >> 3 << 2;
  unsigned n = n0 > n1 ? n0 : n1;
  n = n > n2 ? n : n2;
  *slot = 2 - (n & 3);
  return n >> 2;
}

GLYD_INLINE int repeats(const finder *f, const uint8_t *ip, uint32_t v4) {
  return (int)(glyd_load32(ip - f->repeat[0]) == v4) | (glyd_load32(ip - f->repeat[1]) == v4) |
         (glyd_load32(ip - f->repeat[2]) == v4);
}

GLYD_INLINE match make_match(int32_t gain, unsigned slot, size_t n, size_t distance) {
  return gain * ((int64_t)1 << 32) + (int64_t)(slot << 30 | n << 24 | distance);
}

GLYD_INLINE match repeat_match(const finder *f, const uint8_t *ip, unsigned slot) {
  const uint32_t distance = f->repeat[slot];
  const size_t n = count_first(ip, ip - distance);
  return make_match((int32_t)n * f->literal_bits - 16 * (COMMAND_BITS + (int32_t)slot), slot, n, distance);
}

/* Best match at ip, which lies 8 bytes or more before the end; 0: none. Where
 * there is anything, all there may be is looked at without branches: each would
 * be hard to predict, and wrong predictions are most of the time. */
GLYD_INLINE match find(finder *f, const uint8_t *ip) {
  const uint64_t v = glyd_load64(ip);
  const uint64_t hl = glyd_object_hash_long(v), hs = glyd_object_hash_short(v);
  const uint32_t el = f->x->long_table[hl >> (64 - GLYD_OBJECT_LONG_BITS)];
  const uint32_t es = f->x->short_table[hs >> (64 - GLYD_OBJECT_SHORT_BITS)];
  uint16_t *const entry = f->table + (hs >> (64 - f->bits));
  const uint8_t *const found = f->start + *entry, *const here = found < ip ? found : ip - 1;
  *entry = (uint16_t)(ip - f->start);
  const uint32_t mask = (1u << GLYD_OBJECT_TAG_BITS) - 1;
  const uint32_t other_long = (el ^ glyd_object_tag(hl, GLYD_OBJECT_LONG_BITS)) & mask;
  const uint32_t other_short = (es ^ glyd_object_tag(hs, GLYD_OBJECT_SHORT_BITS)) & mask;
  const uint32_t here_differs = glyd_load32(here) ^ (uint32_t)v;
  match by_repeat = 0;
  if (repeats(f, ip, (uint32_t)v)) {
    unsigned slot;
    if (GLYD_LIKELY(best_repeat(f, ip, v, &slot) >= GLYD_OBJECT_MATCH_MIN)) by_repeat = repeat_match(f, ip, slot);
    if ((by_repeat >> 24 & 63) >= ENOUGH) return by_repeat; /* without waiting for the tables */
  } else if (other_long != 0 && other_short != 0 && here_differs != 0) {
    return 0;
  }
  const uint32_t there = other_long == 0 ? el : es;
  const uint8_t *from = f->in + (there >> GLYD_OBJECT_TAG_BITS) - 1; /* before it where the entry is empty */
  from = other_long != 0 && other_short != 0 ? here : from;
  const size_t n_here = count_first(ip, here), n_there = count_first(ip, from);
  const size_t d_here = (size_t)(ip - here), d_there = (size_t)(ip - from);
  const int32_t c_near = f->near_cost[glyd_log2_32((uint32_t)d_there)];
  const int32_t c_there = c_near < f->place_cost ? c_near : f->place_cost;
  const match by_place = make_match((int32_t)n_here * f->literal_bits - f->near_cost[glyd_log2_32((uint32_t)d_here)],
                                    GLYD_OBJECT_REPEATS, n_here, d_here);
  const match by_entry =
      make_match((int32_t)n_there * f->literal_bits - c_there, GLYD_OBJECT_REPEATS, n_there, d_there);
  const match best = by_repeat > by_place ? by_repeat : by_place;
  return best > by_entry ? best : by_entry;
}

/* Length of a match at ip that has n bytes, or COUNTED and more: it ends where
 * what it is copied from ends. 0: it is none. */
GLYD_INLINE size_t count_all(const finder *f, const uint8_t *ip, const uint8_t *from, size_t n) {
  const ptrdiff_t there = f->start - from;
  const size_t left = (size_t)(f->end - ip), most = there > 0 ? least((size_t)there, left) : left;
  while (GLYD_UNLIKELY(n % COUNTED == 0) && n < most) {
    const size_t k = count_first(ip + n, from + n);
    if (k < COUNTED) { /* n waits for no count but the last */
      n += k;
      break;
    }
    n += COUNTED;
  }
  return from < f->in ? 0 : least(n, most);
}

GLYD_INLINE void insert(finder *f, const uint8_t *p) {
  f->table[glyd_object_hash_short(glyd_load64(p)) >> (64 - f->bits)] = (uint16_t)(p - f->start);
}

GLYD_INLINE void use_slot(uint32_t repeat[GLYD_OBJECT_REPEATS], unsigned slot, uint32_t distance) {
  const uint32_t r0 = repeat[0], r1 = repeat[1], past0 = 0 - (uint32_t)(slot >= 1), past1 = 0 - (uint32_t)(slot >= 2);
  repeat[2] ^= past1 & (repeat[2] ^ r1);
  repeat[1] ^= past0 & (r1 ^ r0);
  repeat[0] = distance;
}

/* n bytes; some more are read and written. */
GLYD_INLINE uint8_t *take_literals(uint8_t *to, const uint8_t *from, size_t n) {
  glyd_copy16(to, from);
  if (GLYD_UNLIKELY(n > 16)) memcpy(to + 16, from + 16, n - 16);
  return to + n;
}

/* How far a match can be extended backwards, 8 bytes at most. */
GLYD_INLINE size_t count_back(const finder *f, const uint8_t *ip, const uint8_t *anchor, uint32_t distance) {
  const uint8_t *const from = ip - distance;
  const size_t left = (size_t)(ip - anchor), there = (size_t)(from - (from < f->start ? f->in : f->start));
  const uint64_t x = glyd_load64(ip - 8) ^ glyd_load64(from - 8);
  size_t n = x != 0 ? (63 - glyd_log2_64(x)) >> 3 : 8;
  n = n < left ? n : left;
  return n < there ? n : there;
}

/* A repeated offset a little further on that is better than a match at *ip. */
GLYD_INLINE match look_for_repeats(const finder *f, const uint8_t **ip, const uint8_t *limit, match m) {
  for (unsigned k = 1; k <= 2; k++) {
    const uint8_t *const at = *ip + k;
    unsigned slot;
    if (at >= limit || !repeats(f, at, glyd_load32(at)) ||
        best_repeat(f, at, glyd_load64(at), &slot) < GLYD_OBJECT_MATCH_MIN)
      continue;
    const match next = repeat_match(f, at, slot);
    if (next - ((match)((int32_t)k * f->literal_bits / 4) << 32) <= m) continue;
    *ip = at;
    return next;
  }
  return m;
}

/* Anything a byte further on, as long as that is better. */
GLYD_INLINE match look_ahead(finder *f, const uint8_t **ip, const uint8_t *limit, match m) {
  while (*ip + 1 < limit && (m >> 24 & 63) < LAZY_BELOW) {
    const match next = find(f, *ip + 1);
    if (next - ((match)(f->literal_bits / 4) << 32) <= m) break;
    m = next;
    ++*ip;
  }
  return m;
}

/* Sequences of the object of len bytes in e->content, and the literals that they leave in e->literals. */
GLYD_INLINE size_t parse(glyd_object_encoder *e, size_t len, size_t *n_literals) {
  const glyd_dictionary *const d = e->dictionary;
  const glyd_object_index *const x = d->index;
  finder f = {.d = d,
              .x = x,
              .in = e->content,
              .start = e->content + d->size,
              .table = e->table,
              .near_cost = x->near_cost,
              .place_cost = x->place_cost,
              .literal_bits = x->literal_bits,
              .bits = TABLE_BITS_MIN,
              .repeat = GLYD_OBJECT_REPEAT_START};
  const uint8_t *ip = f.start, *anchor = ip;
  uint8_t *literals = e->literals;
  size_t n = 0;
  f.end = ip + len;
  memset(e->content + d->size + len, 0, CONTENT_PAD); /* what is compared does not depend on earlier objects */
  while (f.bits < TABLE_BITS_MAX && (size_t)2 << f.bits < len) f.bits++;
  memset(f.table, 0, sizeof *f.table << f.bits);
  for (const uint8_t *const limit = len < 12 ? ip : f.end - 8; ip < limit;) {
    match m = find(&f, ip);
    if (m <= 0) {
      ip += 1 + ((size_t)(ip - anchor) >> 5);
      continue;
    }
    if (d->effort != GLYD_OBJECT_GREEDY && (m >> 30 & 3) == GLYD_OBJECT_REPEATS && (m >> 24 & 63) < LAZY_BELOW)
      m = d->effort == GLYD_OBJECT_LAZY ? look_ahead(&f, &ip, limit, m) : look_for_repeats(&f, &ip, limit, m);
    const uint32_t distance = m & 0xFFFFFF, slot = m >> 30 & 3;
    size_t length = count_all(&f, ip, ip - distance, m >> 24 & 63);
    if (GLYD_UNLIKELY(length < GLYD_OBJECT_MATCH_MIN)) {
      ip++;
      continue;
    }
    const uint8_t *const next = ip + length;
    const size_t back = count_back(&f, ip, anchor, distance);
    ip -= back;
    length += back;
    use_slot(f.repeat, slot, distance);
    literals = take_literals(literals, anchor, (size_t)(ip - anchor));
    e->sequences[n++] = (glyd_object_sequence){(uint32_t)(ip - anchor), (uint32_t)length, distance, slot};
    anchor = next;
    if (anchor < limit) { /* two places of the match, as later ones may begin there */
      insert(&f, ip + 1);
      insert(&f, anchor - 2);
    }
    ip = anchor;
  }
  memcpy(literals, anchor, (size_t)(f.end - anchor));
  *n_literals = (size_t)(literals + (f.end - anchor) - e->literals);
  return n;
}

/* ---- what a payload holds ------------------------------------------------- */

/* Half of the literals, as bits that go backwards from the end of a buffer. */
typedef struct literal_writer {
  uint8_t *p;     /* bytes written so far, growing downwards */
  uint64_t acc;   /* bits not yet moved below p, the last ones lowest; above them anything */
  unsigned count; /* how many: below 8 between calls */
} literal_writer;

GLYD_INLINE void flush_literals(literal_writer *w) {
  glyd_store64(w->p - 8, w->count != 0 ? w->acc << (64 - w->count) : 0);
  w->p -= w->count >> 3;
  w->count &= 7;
}

_Static_assert(7 + 3 * (GLYD_OBJECT_LITERAL_BITS + 8) <= 64, "three literals before bits are moved");

GLYD_INLINE literal_writer write_literals(const glyd_object_index *x, const uint8_t *context, const uint8_t *in,
                                          size_t n, uint8_t *top) {
  literal_writer w = {.p = top};
  unsigned before = 0;
  for (size_t i = 0; i < n;) {
    const size_t stop = n - i < 3 ? n : i + 3;
    for (; i < stop; i++) {
      const uint32_t put = x->put[context[before]][in[i]];
      w.acc = w.acc << (put & 255) | put >> 8;
      w.count += put & 255;
      before = in[i];
    }
    flush_literals(&w);
  }
  return w;
}

/* A step for what is not looked up; GLYD_OBJECT_NO_STEP where there is none. */
GLYD_NOINLINE static unsigned find_wide_step(const glyd_dictionary *d, size_t ll, size_t ml, unsigned slot) {
  const glyd_object_index *const x = d->index;
  unsigned best = GLYD_OBJECT_NO_STEP, least = ~0u;
  for (unsigned i = 0; i < x->n_wide; i++) {
    const unsigned s = x->wide[i], bits = glyd_object_step_bits(d, s);
    const glyd_object_step *const step = &d->steps[s];
    if (step->slot != slot || ll < step->literals || ml < step->length || bits >= least ||
        (ll - step->literals) >> step->literals_bits != 0 || (ml - step->length) >> step->length_bits != 0)
      continue;
    best = s;
    least = bits;
  }
  return best;
}

/* Step for a sequence. */
GLYD_INLINE unsigned find_step(const glyd_dictionary *d, size_t ll, size_t ml, unsigned slot) {
  const glyd_object_index *const x = d->index;
  if (GLYD_LIKELY(ll < GLYD_OBJECT_STEP_LITERALS && ml < GLYD_OBJECT_LONG_LENGTH))
    return x->step_of[slot][ml < 256 ? ml : 256][ll];
  return find_wide_step(d, ll, ml, slot);
}

/* Write sequences; 0 when there is no step for one. */
GLYD_INLINE int write_sequences(const glyd_object_encoder *e, size_t n, glyd_bit_writer *steps,
                                glyd_bit_writer *offsets) {
  const glyd_dictionary *const d = e->dictionary;
  const glyd_object_index *const x = d->index;
  const uint32_t *const offset_put = x->put[d->contexts + GLYD_OBJECT_OFFSETS];
  size_t pos = 0;
  for (size_t i = 0; i < n; i++) {
    const size_t ll = e->sequences[i].literals, ml = e->sequences[i].length;
    const uint32_t distance = e->sequences[i].offset;
    const unsigned slot = e->sequences[i].slot, s = find_step(d, ll, ml, slot);
    if (GLYD_UNLIKELY(s == GLYD_OBJECT_NO_STEP)) return 0;
    const uint64_t step = x->step_put[s];
    const unsigned length = step >> 16 & 63, before_match = step >> 24 & 63;
    const uint64_t more_literals = ll - (step >> 40 & 255), more_length = ml - (step >> 48 & 255);
    glyd_bit_writer_put(steps, (step & 0xFFFF) | more_literals << length | more_length << before_match,
                        step >> 32 & 63);
    pos += ll;
    if (slot == GLYD_OBJECT_REPEATS) {
      unsigned bits;
      uint32_t extra;
      const uint32_t symbol = offset_put[offset_symbol(offset_put, d, d->size + pos, distance, &bits, &extra)];
      glyd_bit_writer_put(offsets, symbol >> 8 | (uint64_t)extra << (symbol & 255), (symbol & 255) + bits);
    }
    pos += ml;
  }
  return 1;
}

/* Put literals that end at top behind the bits that start at out; returns the bytes of both. */
GLYD_INLINE size_t join(uint8_t *out, const glyd_bit_writer *w, const literal_writer *l, const uint8_t *top) {
  const size_t whole = (size_t)(w->p - out), literals = (size_t)(top - l->p);
  const size_t middle = (w->count + l->count + 7) / 8;
  /* The byte where both meet has those of w below and literals on top. */
  uint8_t both[2] = {(uint8_t)w->acc, 0};
  both[w->count + l->count > 8] |= (uint8_t)(l->acc << (8 - l->count));
  memcpy(out + whole, both, middle);
  memmove(out + whole + middle, l->p, literals);
  return whole + middle + literals;
}

GLYD_INLINE size_t encode_compact(glyd_object_encoder *e, const uint8_t *in, size_t len) {
  const glyd_dictionary *const d = e->dictionary;
  memcpy(e->content + d->size, in, len);
  size_t n_literals;
  const size_t n = parse(e, len, &n_literals);
  const unsigned count_bits = glyd_object_count_bits((uint32_t)len);
  glyd_bit_writer steps, offsets;
  glyd_bit_writer_init(&steps, e->payload);
  glyd_bit_writer_init(&offsets, e->offsets);
  glyd_bit_writer_put(&steps, 0, 2 * count_bits); /* known at the end */
  if (!write_sequences(e, n, &steps, &offsets)) return 0;
  const size_t half = (n_literals + 1) / 2;
  uint8_t *const top0 = e->half[0] + sizeof e->half[0], *const top1 = e->half[1] + sizeof e->half[1];
  const literal_writer l0 = write_literals(d->index, d->context, e->literals, half, top0);
  const literal_writer l1 = write_literals(d->index, d->context, e->literals + half, n_literals - half, top1);
  const size_t most =
      (size_t)(steps.p - e->payload) + (size_t)(top1 - l1.p) + (size_t)(offsets.p - e->offsets) + (size_t)(top0 - l0.p);
  if (most >= len) return 0;
  const size_t split = join(e->payload, &steps, &l1, top1);
  uint8_t *const second = e->payload + split;
  const size_t whole = (size_t)(offsets.p - e->offsets);
  memcpy(second, e->offsets, whole);
  offsets.p = second + whole;
  const size_t size = split + join(second, &offsets, &l0, top0);
  if (size >= len) return 0;
  glyd_store64(e->payload, glyd_load64(e->payload) | n_literals | (uint64_t)split << count_bits);
  return size;
}

static size_t encode_compact_portable(glyd_object_encoder *e, const uint8_t *in, size_t len) {
  return encode_compact(e, in, len);
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2,lzcnt"))) static size_t encode_compact_bmi2(glyd_object_encoder *e, const uint8_t *in,
                                                                            size_t len) {
  return encode_compact(e, in, len);
}
#endif

size_t glyd_object_encode_compact(glyd_object_encoder *e, const uint8_t *in, size_t len) {
#if defined(__x86_64__)
  if (e->cpu & GLYD_CPU_AVX2) return encode_compact_bmi2(e, in, len);
#endif
  return encode_compact_portable(e, in, len);
}

void glyd_object_encode_count(glyd_object_encoder *e, const uint8_t *in, size_t len, glyd_object_counts *counts) {
  memcpy(e->content + e->dictionary->size, in, len);
  size_t n_literals;
  const size_t n = parse(e, len, &n_literals);
  const glyd_dictionary *const d = e->dictionary;
  const glyd_object_index *const x = d->index;
  const uint32_t *const offset_put = x->put[d->contexts + GLYD_OBJECT_OFFSETS];
  const size_t half = (n_literals + 1) / 2;
  for (size_t i = 0; i < n_literals; i++)
    counts->literals[i == 0 || i == half ? 0 : e->literals[i - 1]][e->literals[i]]++;
  size_t pos = 0;
  for (size_t i = 0; i < n; i++) {
    const size_t ll = e->sequences[i].literals, ml = e->sequences[i].length;
    const uint32_t distance = e->sequences[i].offset;
    const unsigned slot = e->sequences[i].slot;
    counts->steps[slot][ml < 255 ? ml : 255][ll < 255 ? ll : 255]++;
    pos += ll;
    if (slot == GLYD_OBJECT_REPEATS) {
      unsigned bits;
      uint32_t extra;
      counts->offsets[offset_symbol(offset_put, d, d->size + pos, distance, &bits, &extra)]++;
    }
    pos += ml;
  }
}

/* ---- objects -------------------------------------------------------------- */

glyd_status glyd_object_encoder_make(glyd_object_encoder **encoder, const glyd_dictionary *dictionary, int check_size,
                                     const glyd_allocator *allocator) {
  *encoder = NULL;
  if (!glyd_alloc_valid(allocator) || (check_size != 0 && check_size != 2 && check_size != 4)) return GLYD_E_PARAMETER;
  if (!dictionary->index) return GLYD_E_STATE;
  glyd_object_encoder *const e =
      glyd_alloc_get(allocator, sizeof *e + 2 * CONTENT_PAD + dictionary->size + GLYD_OBJECT_COMPACT_MAX);
  if (!e) return GLYD_E_MEMORY;
  memset(e, 0, offsetof(glyd_object_encoder, table));
  e->content = (uint8_t *)(e + 1) + CONTENT_PAD;
  memset(e->content - CONTENT_PAD, 0, CONTENT_PAD);
  memcpy(e->content, dictionary->content, dictionary->size);
  if (allocator) e->allocator = *allocator;
  e->dictionary = dictionary;
  e->cpu = glyd_cpu_features();
  e->check_size = check_size;
  *encoder = e;
  return GLYD_OK;
}

void glyd_object_encoder_drop(glyd_object_encoder *encoder) {
  if (!encoder) return;
  const glyd_allocator a = encoder->allocator;
  glyd_alloc_put(&a, encoder->blocks);
  glyd_alloc_put(&a, encoder);
}

size_t glyd_object_encode_bound(size_t len) { return len > GLYD_OBJECT_MAX ? 0 : len + GLYD_OBJECT_HEADER_MAX; }

/* Blocks of in[0..len) after the dictionary's content; *size is 0 when they are not smaller than most. */
static glyd_status encode_blocks(glyd_object_encoder *e, const uint8_t *in, size_t len, size_t most,
                                 const uint8_t **payload, size_t *size) {
  const glyd_lz_config config = {
      .level = GLYD_LEVEL_MAX, .segment_size = (uint64_t)e->dictionary->size + len, .cpu = e->cpu};
  const uint64_t workspace = glyd_lz_encode_workspace(&config), history = e->dictionary->size;
  const uint64_t need = workspace + history + len + most;
  if (need > e->blocks_size) {
    glyd_alloc_put(&e->allocator, e->blocks);
    e->blocks_size = 0;
    e->blocks = glyd_alloc_get(&e->allocator, need);
    if (!e->blocks) return GLYD_E_MEMORY;
    e->blocks_size = need;
  }
  uint8_t *const content = e->blocks + workspace, *const out = content + history + len;
  memcpy(content, e->dictionary->content, history);
  memcpy(content + history, in, len);
  *payload = out;
  const glyd_status status = glyd_lz_encode_after(&config, e->blocks, content, history, len, out, most, size);
  if (status == GLYD_E_BUFFER) *size = 0;
  return status == GLYD_E_BUFFER ? GLYD_OK : status;
}

glyd_status glyd_object_encode(glyd_object_encoder *e, uint8_t *out, size_t cap, const uint8_t *in, size_t len,
                               size_t *out_len) {
  *out_len = 0;
  if (len > GLYD_OBJECT_MAX) return GLYD_E_PARAMETER;
  int form = GLYD_OBJECT_FORM_RAW;
  const uint8_t *payload = in;
  size_t size = len;
  if (len > 0 && len <= GLYD_OBJECT_COMPACT_MAX) {
    const size_t compact = glyd_object_encode_compact(e, in, len);
    if (compact != 0 && compact + 3 < size) {
      form = GLYD_OBJECT_FORM_COMPACT;
      payload = e->payload;
      size = compact;
    }
  }
  if (len >= BLOCKS_FROM) {
    const uint8_t *blocks;
    size_t n;
    const glyd_status status = encode_blocks(e, in, len, size - 1, &blocks, &n);
    if (status) return status;
    if (n != 0 && n + 4 < size) {
      form = GLYD_OBJECT_FORM_BLOCKS;
      payload = blocks;
      size = n;
    }
  }
  uint8_t header[GLYD_OBJECT_HEADER_MAX];
  glyd_store16(header, GLYD_OBJECT_MAGIC);
  header[2] = (uint8_t)(e->check_size / 2 | form << 2);
  glyd_store32(header + 3, e->dictionary->id);
  uint8_t *p = glyd_put_varint(header + 7, len);
  if (form != GLYD_OBJECT_FORM_RAW) p = glyd_put_varint(p, size);
  if (e->check_size != 0) {
    const uint64_t hash = glyd_checksum_xxh3(e->cpu, in, len);
    if (e->check_size == 2)
      glyd_store16(p, (uint16_t)hash);
    else
      glyd_store32(p, (uint32_t)hash);
    p += e->check_size;
  }
  const size_t header_size = (size_t)(p - header);
  if (cap < header_size || cap - header_size < size) return GLYD_E_BUFFER;
  memcpy(out, header, header_size);
  if (size > 0) memcpy(out + header_size, payload, size);
  *out_len = header_size + size;
  return GLYD_OK;
}
