/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "match/match_row.h"

#include "common/cpu.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define WAYS 16u     /* of a row; one of the sixteen tags is the place of the latest */
#define PLACES 15u   /* that hold a position */
#define BITS_MIN 6   /* rows */
#define BITS_MAX 17  /* 2^17 rows hold 2 M positions */
#define HASHED 8     /* bytes that must be readable at a position that is hashed */
#define NICE 192     /* a match of that length is taken without a look at the next bytes */
#define DEEP 64      /* longer matches are not given up for one two bytes on */
#define SKIP_FROM 96 /* of longer matches only the ends are put into rows */
#define SKIP_ENDS 32
#define FAR (1u << 16) /* 4 bytes from farther off are not worth it */

/* Gains, of a match over its bytes as literals: a bit of the offset counts OFFSET_BIT,
 * a bit of a literal LITERAL_BIT / 10, a repeat slot before the one that is used SLOT.
 * A match must gain more than LEAST. One that begins later must gain more than the
 * one before by the rest: one or two bytes on, at a repeated offset or another. */
#define OFFSET_BIT 8
#define LITERAL_BIT 54u
#define LITERAL_LEAST 20 /* bounds and first value of what a literal counts */
#define LITERAL_MOST 44
#define LITERAL_FIRST 32
#define SLOT 4
#define LEAST 16
#define NEXT_REPEAT 4
#define NEXT_OTHER 24
#define SECOND_REPEAT 16
#define SECOND_OTHER 48

#define OFFSET_MAX (((size_t)1 << 28) - 8)

static unsigned table_bits(uint64_t len) {
  unsigned bits = BITS_MIN;
  while (bits < BITS_MAX && (uint64_t)8 << bits < len) bits++;
  return bits;
}

size_t glyd_match_row_workspace(uint64_t segment_size) {
  return ((size_t)WAYS << table_bits(segment_size)) * (sizeof(uint32_t) + 1);
}

void glyd_match_row_reset(glyd_match_row *m, unsigned cpu, void *memory, size_t len) {
  m->cpu = cpu;
  m->bits = table_bits(len);
  m->positions = memory;
  m->tags = (uint8_t *)memory + ((size_t)WAYS << m->bits) * sizeof(uint32_t);
  memset(memory, 0, ((size_t)WAYS << m->bits) * (sizeof(uint32_t) + 1));
  m->repeat[0] = 1;
  m->repeat[1] = 4;
  m->repeat[2] = 8;
  m->literal = LITERAL_FIRST;
  m->next = 0;
}

void glyd_match_row_price(glyd_match_row *m, uint64_t bits, size_t n) {
  const uint64_t price = bits * LITERAL_BIT / (10 * (uint64_t)n);
  m->literal = price < LITERAL_LEAST ? LITERAL_LEAST : price > LITERAL_MOST ? LITERAL_MOST : (int)price;
}

/* Row and, in the low 8 bits, the tag of a position. */
GLYD_INLINE uint32_t hash_at(const uint8_t *p, unsigned bits) {
  return (uint32_t)(((glyd_load64(p) << 24) * 0x9FB21C651E98DF25u) >> (64 - 8 - bits));
}

GLYD_INLINE void fetch(const glyd_match_row *m, uint32_t hash) {
  const size_t row = (size_t)(hash >> 8) * WAYS;
  __builtin_prefetch(m->tags + row, 1);
  __builtin_prefetch(m->positions + row, 1);
}

GLYD_INLINE void insert(const glyd_match_row *m, uint32_t hash, size_t pos) {
  const size_t row = (size_t)(hash >> 8) * WAYS;
  uint8_t *const tags = m->tags + row;
  const unsigned latest = tags[PLACES] == 0 ? PLACES - 1 : tags[PLACES] - 1u;
  tags[PLACES] = (uint8_t)latest;
  tags[latest] = (uint8_t)hash;
  m->positions[row + latest] = (uint32_t)pos;
}

/* Hashes of the next positions, which end before limit. */
static void begin_at(glyd_match_row *m, const uint8_t *segment, size_t pos, size_t limit) {
  m->next = pos;
  for (size_t i = 0; i < GLYD_MATCH_ROW_AHEAD && pos + i < limit; i++) {
    const uint32_t h = hash_at(segment + pos + i, m->bits);
    m->hashes[(pos + i) % GLYD_MATCH_ROW_AHEAD] = h;
    fetch(m, h);
  }
}

/* The hash of next, which moves on; positions from limit on have none. */
GLYD_INLINE uint32_t take_hash(glyd_match_row *m, const uint8_t *segment, size_t limit) {
  const size_t pos = m->next++, ahead = pos + GLYD_MATCH_ROW_AHEAD;
  const uint32_t now = m->hashes[pos % GLYD_MATCH_ROW_AHEAD];
  if (GLYD_LIKELY(ahead < limit)) {
    const uint32_t h = hash_at(segment + ahead, m->bits);
    m->hashes[pos % GLYD_MATCH_ROW_AHEAD] = h;
    fetch(m, h);
  }
  return now;
}

/* Positions before to go into their rows. */
GLYD_INLINE void insert_until(glyd_match_row *m, const uint8_t *segment, size_t to, size_t limit) {
  if (to > limit) to = limit;
  if (GLYD_UNLIKELY(to > m->next + SKIP_FROM)) {
    for (size_t stop = m->next + SKIP_ENDS; m->next < stop;) {
      const size_t pos = m->next;
      insert(m, take_hash(m, segment, limit), pos);
    }
    begin_at(m, segment, to - SKIP_ENDS, limit);
  }
  while (m->next < to) {
    const size_t pos = m->next;
    insert(m, take_hash(m, segment, limit), pos);
  }
}

/* Places of the row whose tag is that of the hash, the latest first. */
GLYD_INLINE uint32_t tag_mask(const uint8_t *tags, uint8_t tag) {
  uint32_t mask;
#ifdef __SSE2__
  const __m128i t = _mm_load_si128((const __m128i *)(const void *)tags);
  mask = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(t, _mm_set1_epi8((char)tag)));
#else
  mask = 0;
  for (unsigned i = 0; i < PLACES; i++) mask |= (uint32_t)(tags[i] == tag) << i;
#endif
  mask &= (1u << PLACES) - 1;
  return (mask | mask << PLACES) >> tags[PLACES] & ((1u << PLACES) - 1);
}

GLYD_INLINE int gain(int literal, size_t len, size_t off) {
  return (int)len * literal - OFFSET_BIT * (int)glyd_log2_32((uint32_t)off + 1);
}

typedef struct found {
  size_t length, offset;
  int gain;
} found;

/* The best match at ip that gains more than f does; puts ip into its row. */
GLYD_INLINE void search(glyd_match_row *m, const uint8_t *segment, const uint8_t *ip, const uint8_t *iend, size_t limit,
                        found *f) {
  const size_t pos = (size_t)(ip - segment);
  const uint32_t hash = take_hash(m, segment, limit);
  const size_t row = (size_t)(hash >> 8) * WAYS;
  const uint32_t *const positions = m->positions + row;
  const uint8_t *const tags = m->tags + row;
  const unsigned latest = tags[PLACES];
  uint32_t mask = tag_mask(tags, (uint8_t)hash);
  const size_t most = (size_t)(iend - ip);
  /* Candidates farther off must match for longer, and all long enough to gain more. */
  size_t longest = (size_t)f->gain / (size_t)m->literal;
  if (longest < 3) longest = 3;
  if (longest + 1 > most) mask = 0;
  while (mask != 0) {
    unsigned place = latest + glyd_ctz64(mask);
    if (place >= PLACES) place -= PLACES;
    mask &= mask - 1;
    const size_t from = positions[place];
    if (from >= pos || pos - from > OFFSET_MAX) continue;
    const uint8_t *const mp = segment + from;
    if (glyd_load32(mp + longest - 3) != glyd_load32(ip + longest - 3)) continue;
    const size_t length = glyd_match_count(ip, mp, iend), offset = pos - from;
    if (length <= longest) continue;
    longest = length;
    const int g = gain(m->literal, length, offset);
    if (g > f->gain && (length > 4 || offset <= FAR)) *f = (found){length, offset, g};
    if (length >= most) break;
  }
  insert(m, hash, pos);
}

/* A repeated offset at ip that gains more than f does. */
GLYD_INLINE void try_repeats(int literal, const uint32_t repeat[3], const uint8_t *segment, const uint8_t *ip,
                             const uint8_t *iend, found *f) {
  const uint32_t v = glyd_load32(ip);
  const size_t pos = (size_t)(ip - segment);
  for (unsigned k = 0; k < 3; k++) {
    const size_t o = repeat[k];
    if (o > pos || glyd_load32(ip - o) != v) continue;
    const size_t length = 4 + glyd_match_count(ip + 4, ip + 4 - o, iend);
    const int g = (int)length * literal - SLOT * (int)k;
    if (g > f->gain) *f = (found){length, o, g};
  }
}

/* A match at ip that gains more than these bounds, at a repeated offset or another. */
GLYD_INLINE void search_later(glyd_match_row *m, const uint32_t repeat[3], const uint8_t *segment, const uint8_t *ip,
                              const uint8_t *iend, size_t limit, int repeated, int other, found *f) {
  f->gain = repeated;
  try_repeats(m->literal, repeat, segment, ip, iend, f);
  if (f->length == 0) f->gain = other;
  search(m, segment, ip, iend, limit, f);
}

GLYD_INLINE size_t parse(glyd_match_row *restrict m, const uint8_t *segment, size_t start, size_t end,
                         glyd_sequence *seqs) {
  const uint8_t *ip = segment + start, *anchor = ip;
  const uint8_t *const iend = segment + end;
  /* Positions below limit can be hashed and compared 8 bytes at a time. */
  const size_t limit = end - start >= 2 * HASHED ? end - HASHED : start;
  const uint8_t *const ilimit = segment + limit;
  uint32_t repeat[3] = {m->repeat[0], m->repeat[1], m->repeat[2]};
  size_t n = 0;
  if (start < limit) begin_at(m, segment, start, limit);
  while (ip < ilimit) {
    found best = {0, 0, LEAST};
    try_repeats(m->literal, repeat, segment, ip, iend, &best);
    insert_until(m, segment, (size_t)(ip - segment), limit);
    search(m, segment, ip, iend, limit, &best);
    if (best.length == 0) {
      const size_t step = ((size_t)(ip - anchor) >> 8) + 1;
      ip += step;
      if (GLYD_UNLIKELY(step > 1) && ip < ilimit) begin_at(m, segment, (size_t)(ip - segment), limit);
      continue;
    }
    /* A better match one or two bytes on takes over, and is tried the same way. */
    const uint8_t *at = ip;
    while (at + 1 < ilimit && best.length < NICE) {
      found next = {0, 0, 0};
      search_later(m, repeat, segment, ++at, iend, limit, best.gain + NEXT_REPEAT, best.gain + NEXT_OTHER, &next);
      if (next.length == 0 && at + 1 < ilimit && at == ip + 1 && best.length < DEEP)
        search_later(m, repeat, segment, ++at, iend, limit, best.gain + SECOND_REPEAT, best.gain + SECOND_OTHER, &next);
      if (next.length == 0) break;
      best = next;
      ip = at;
    }
    const uint8_t *mp = ip - best.offset;
    while (ip > anchor && mp > segment && ip[-1] == mp[-1]) {
      ip--;
      mp--;
      best.length++;
    }
    seqs[n++] = (glyd_sequence){(uint32_t)(ip - anchor), (uint32_t)best.length, (uint32_t)best.offset};
    (void)glyd_match_use_offset(repeat, (uint32_t)best.offset);
    ip += best.length;
    anchor = ip;
    insert_until(m, segment, (size_t)(ip - segment), limit);
  }
  memcpy(m->repeat, repeat, sizeof repeat);
  return n;
}

static size_t parse_plain(glyd_match_row *m, const uint8_t *segment, size_t start, size_t end, glyd_sequence *seqs) {
  return parse(m, segment, start, end, seqs);
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2,lzcnt"))) static size_t parse_bmi2(glyd_match_row *m, const uint8_t *segment,
                                                                   size_t start, size_t end, glyd_sequence *seqs) {
  return parse(m, segment, start, end, seqs);
}
#endif

size_t glyd_match_row_parse(glyd_match_row *m, const uint8_t *segment, size_t start, size_t end, glyd_sequence *seqs) {
#if defined(__x86_64__)
  if (m->cpu & GLYD_CPU_AVX2) return parse_bmi2(m, segment, start, end, seqs);
#endif
  return parse_plain(m, segment, start, end, seqs);
}

void glyd_match_row_skip(glyd_match_row *m, const uint8_t *segment, size_t from, size_t to, size_t segment_len,
                         uint32_t offset) {
  for (size_t pos = from; pos < to && pos + HASHED <= segment_len; pos += 4)
    insert(m, hash_at(segment + pos, m->bits), pos);
  (void)glyd_match_use_offset(m->repeat, offset);
}

void glyd_match_row_prime(glyd_match_row *m, const uint8_t *segment, size_t to) {
  for (size_t pos = 0; pos + HASHED <= to; pos++) insert(m, hash_at(segment + pos, m->bits), pos);
}
