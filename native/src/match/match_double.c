/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "match/match_double.h"

#include "common/cpu.h"

#define LONG_BITS 18
#define SHORT_BITS 17
#define BITS_MIN 10
#define FAR (1u << 16) /* 4 bytes from farther off are not worth it */
#define NICE 128       /* a match of that length is taken without a look at the next bytes */

/* Entries hold ten more bits of the hash beside the position: a candidate that
 * does not match is nearly always refused without touching its cache line. */
#define TAG_BITS 10
#define TAG_MASK ((1u << TAG_BITS) - 1)
#define POSITION_MASK ((1u << (32 - TAG_BITS)) - 1)

static unsigned table_bits(unsigned most, uint64_t len) {
  unsigned bits = BITS_MIN;
  while (bits < most && (uint64_t)1 << bits < len) bits++;
  return bits;
}

size_t glyd_match_double_workspace(uint64_t segment_size) {
  return ((size_t)1 << table_bits(LONG_BITS, segment_size)) * sizeof(uint32_t) +
         ((size_t)1 << table_bits(SHORT_BITS, segment_size)) * sizeof(uint32_t);
}

void glyd_match_double_reset(glyd_match_double *m, unsigned cpu, void *memory, size_t len) {
  m->cpu = cpu;
  m->long_bits = table_bits(LONG_BITS, len);
  m->short_bits = table_bits(SHORT_BITS, len);
  m->long_table = memory;
  m->short_table = m->long_table + ((size_t)1 << m->long_bits);
  memset(memory, 0, (((size_t)1 << m->long_bits) + ((size_t)1 << m->short_bits)) * sizeof(uint32_t));
  m->repeat[0] = 1;
  m->repeat[1] = 4;
}

#define HASH_LONG(v) ((v)*0x9E3779B185EBCA87u)
#define HASH_SHORT(v) (((v) << 24) * 0x9FB21C651E98DF25u) /* of 5 bytes */

/* A new entry for pos goes into the table. Returns the difference to the old
 * one: a distance << TAG_BITS if the tags are the same. */
GLYD_INLINE uint32_t exchange(uint32_t *table, unsigned bits, uint64_t hash, size_t pos) {
  uint32_t *const slot = table + (hash >> (64 - bits));
  const uint32_t fresh = (uint32_t)pos << TAG_BITS | ((uint32_t)(hash >> (64 - TAG_BITS - bits)) & TAG_MASK);
  const uint32_t difference = fresh - *slot;
  *slot = fresh;
  return difference;
}

/* Whether the difference stands for an offset that a match at pos can have. The
 * unsigned wrap refuses distance 0, the position itself 2^22 bytes on. */
GLYD_INLINE int is_candidate(uint32_t difference, size_t pos) {
  return (difference & TAG_MASK) == 0 && (size_t)(difference >> TAG_BITS) - 1 < pos;
}

/* What a match saves less what its offset costs, in units of about two bits. */
GLYD_INLINE int gain(size_t len, size_t off) { return (int)(len * 4) - (int)glyd_log2_32((uint32_t)off + 1); }

/* Match at ip by one of the differences, the long one first; returns its
 * length, or 0. */
GLYD_INLINE size_t longest(const uint8_t *ip, size_t pos, uint64_t v, uint32_t dl, uint32_t ds, const uint8_t *iend,
                           size_t *off) {
  if (is_candidate(dl, pos)) {
    const size_t o = dl >> TAG_BITS;
    if (glyd_load64(ip - o) == v) {
      *off = o;
      return 8 + glyd_match_count(ip + 8, ip + 8 - o, iend);
    }
  }
  if (is_candidate(ds, pos)) {
    const size_t o = ds >> TAG_BITS;
    if (glyd_load32(ip - o) == (uint32_t)v) {
      *off = o;
      return 4 + glyd_match_count(ip + 4, ip + 4 - o, iend);
    }
  }
  return 0;
}

GLYD_INLINE size_t parse(glyd_match_double *m, const uint8_t *segment, size_t start, size_t end, glyd_sequence *seqs) {
  uint32_t *const lt = m->long_table, *const st = m->short_table;
  const unsigned lb = m->long_bits, sb = m->short_bits;
  const uint8_t *ip = segment + start, *anchor = ip;
  const uint8_t *const iend = segment + end;
  const uint8_t *const ilimit = end - start >= 16 ? iend - 16 : ip;
  size_t n = 0;
  /* Offsets used are at most the position, and 1 and 4 are met after a match. */
  uint32_t r0 = m->repeat[0], r1 = m->repeat[1];
  while (ip < ilimit) {
    size_t pos = (size_t)(ip - segment), ml, off;
    uint64_t v = glyd_load64(ip);
    uint32_t dl = exchange(lt, lb, HASH_LONG(v), pos), ds = exchange(st, sb, HASH_SHORT(v), pos);
    if (glyd_load32(ip + 1) == glyd_load32(ip + 1 - r0)) {
      ip++;
      off = r0;
      ml = 4 + glyd_match_count(ip + 4, ip + 4 - off, iend);
    } else {
      ml = longest(ip, pos, v, dl, ds, iend, &off);
      if (ml < 5 && (ml == 0 || off > FAR)) {
        ip += ((size_t)(ip - anchor) >> 8) + 1;
        continue;
      }
      /* Lazy steps: a better match one byte on, or a long one two bytes on, takes
       * over, and is tried the same way. */
      while (ip + 2 < ilimit && ml < NICE) {
        size_t length, offset;
        pos = (size_t)(ip + 1 - segment);
        v = glyd_load64(ip + 1);
        dl = exchange(lt, lb, HASH_LONG(v), pos);
        ds = exchange(st, sb, HASH_SHORT(v), pos);
        length = longest(ip + 1, pos, v, dl, ds, iend, &offset);
        if (length != 0 && gain(length, offset) > gain(ml, off)) {
          ip++;
          ml = length;
          off = offset;
          continue;
        }
        v = glyd_load64(ip + 2);
        dl = exchange(lt, lb, HASH_LONG(v), pos + 1);
        if (!is_candidate(dl, pos + 1)) break;
        offset = dl >> TAG_BITS;
        if (glyd_load64(ip + 2 - offset) != v) break;
        length = 8 + glyd_match_count(ip + 10, ip + 10 - offset, iend);
        if (gain(length, offset) <= gain(ml, off) + 2) break;
        ip += 2;
        ml = length;
        off = offset;
      }
      if (off != r0) {
        r1 = r0;
        r0 = (uint32_t)off;
      }
    }
    const uint8_t *mp = ip - off;
    while (ip > anchor && mp > segment && ip[-1] == mp[-1]) {
      ip--;
      mp--;
      ml++;
    }
    seqs[n++] = (glyd_sequence){(uint32_t)(ip - anchor), (uint32_t)ml, (uint32_t)off};
    const uint8_t *const second = ip + 2;
    ip += ml;
    anchor = ip;
    if (ip >= ilimit) break;
    /* What the next step looks at first is fetched while these places are filled. */
    v = glyd_load64(ip);
    __builtin_prefetch(lt + (HASH_LONG(v) >> (64 - lb)), 1);
    __builtin_prefetch(st + (HASH_SHORT(v) >> (64 - sb)), 1);
    exchange(lt, lb, HASH_LONG(glyd_load64(second)), (size_t)(second - segment));
    exchange(st, sb, HASH_SHORT(glyd_load64(second)), (size_t)(second - segment));
    exchange(lt, lb, HASH_LONG(glyd_load64(ip - 2)), (size_t)(ip - 2 - segment));
    exchange(st, sb, HASH_SHORT(glyd_load64(ip - 1)), (size_t)(ip - 1 - segment));
    while (ip < ilimit && glyd_load32(ip) == glyd_load32(ip - r1)) {
      ml = 4 + glyd_match_count(ip + 4, ip + 4 - r1, iend);
      const uint32_t r = r0;
      r0 = r1;
      r1 = r;
      v = glyd_load64(ip);
      exchange(lt, lb, HASH_LONG(v), (size_t)(ip - segment));
      exchange(st, sb, HASH_SHORT(v), (size_t)(ip - segment));
      seqs[n++] = (glyd_sequence){0, (uint32_t)ml, r0};
      ip += ml;
      anchor = ip;
    }
  }
  m->repeat[0] = r0;
  m->repeat[1] = r1;
  return n;
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2,lzcnt"))) static size_t parse_bmi2(glyd_match_double *m, const uint8_t *segment,
                                                                   size_t start, size_t end, glyd_sequence *seqs) {
  return parse(m, segment, start, end, seqs);
}
#endif

size_t glyd_match_double_parse(glyd_match_double *m, const uint8_t *segment, size_t start, size_t end,
                               glyd_sequence *seqs) {
#if defined(__x86_64__)
  if (m->cpu & GLYD_CPU_AVX2) return parse_bmi2(m, segment, start, end, seqs);
#endif
  return parse(m, segment, start, end, seqs);
}

/* What is only known, not coded, is entered at every fourth place: less time,
 * and half a percent more bytes at most (base/spec.md). */
#define KNOWN_STEP 4

static void enter(glyd_match_double *m, const uint8_t *segment, size_t from, size_t to) {
  for (size_t pos = from; pos < to; pos += KNOWN_STEP) {
    const uint64_t v = glyd_load64(segment + pos);
    exchange(m->long_table, m->long_bits, HASH_LONG(v), pos);
    exchange(m->short_table, m->short_bits, HASH_SHORT(v), pos);
  }
}

void glyd_match_double_skip(glyd_match_double *m, const uint8_t *segment, size_t from, size_t to, size_t segment_len,
                            uint32_t offset) {
  const size_t last = segment_len < 8 ? 0 : segment_len - 7;
  enter(m, segment, from, to < last ? to : last);
  if (offset == m->repeat[0]) return;
  m->repeat[1] = m->repeat[0];
  m->repeat[0] = offset;
}

void glyd_match_double_prime(glyd_match_double *m, const uint8_t *segment, size_t to) {
  enter(m, segment, 0, to < 8 ? 0 : to - 7);
}
