/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "match/match_double.h"

#include "common/cpu.h"

#define LONG_BITS 17
#define SHORT_BITS 16
#define BITS_MIN 10

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
#define HASH_SHORT(v) (((v) << 24) * 0x9FB21C651E98DF25u)
#define SLOT(h, bits) ((h) >> (64 - (bits)))
#define ENTRY(h, bits, pos) ((uint32_t)(pos) << TAG_BITS | ((uint32_t)((h) >> (64 - TAG_BITS - (bits))) & TAG_MASK))

/* What a match saves less what its offset costs, in units of about two bits. */
GLYD_INLINE int gain(size_t len, size_t off) { return (int)(len * 4) - (int)glyd_log2_32((uint32_t)off + 1); }

GLYD_INLINE size_t parse(glyd_match_double *m, const uint8_t *segment, size_t start, size_t end, glyd_sequence *seqs) {
  uint32_t *const L = m->long_table, *const S = m->short_table;
  const unsigned lb = m->long_bits, sb = m->short_bits;
  const uint8_t *ip = segment + start, *anchor = ip;
  const uint8_t *const iend = segment + end;
  const uint8_t *const ilimit = end - start >= 16 ? iend - 16 : ip;
  size_t n = 0;
  uint32_t r0 = m->repeat[0], r1 = m->repeat[1];
  while (ip < ilimit) {
    size_t pos = (size_t)(ip - segment);
    uint64_t v = glyd_load64(ip);
    uint64_t hl = HASH_LONG(v), hs = HASH_SHORT(v);
    uint32_t el = L[SLOT(hl, lb)], es = S[SLOT(hs, sb)];
    uint32_t nl = ENTRY(hl, lb, pos), ns = ENTRY(hs, sb, pos);
    L[SLOT(hl, lb)] = nl;
    S[SLOT(hs, sb)] = ns;
    const uint8_t *mp;
    size_t ml, off;
    if (glyd_load32(ip + 1) == glyd_load32(ip + 1 - r0)) {
      ip++;
      off = r0;
      ml = 4 + glyd_match_count(ip + 4, ip + 4 - off, iend);
      goto emit;
    }
    if (((el ^ nl) & TAG_MASK) == 0) {
      off = ((nl - el) >> TAG_BITS);
      if (off - 1 < pos && glyd_load64(ip - off) == v) {
        ml = 8 + glyd_match_count(ip + 8, ip + 8 - off, iend);
        goto found;
      }
    }
    if (((es ^ ns) & TAG_MASK) == 0) {
      off = ((ns - es) >> TAG_BITS);
      if (off - 1 < pos && glyd_load32(ip - off) == (uint32_t)v) {
        ml = 4 + glyd_match_count(ip + 4, ip + 4 - off, iend);
        if (ml < 5 && off > 1u << 16) goto next;
        uint64_t v1 = glyd_load64(ip + 1), h1 = HASH_LONG(v1);
        uint32_t e1 = L[SLOT(h1, lb)], n1 = ENTRY(h1, lb, pos + 1);
        L[SLOT(h1, lb)] = n1;
        size_t o1 = (n1 - e1) >> TAG_BITS;
        if (((e1 ^ n1) & TAG_MASK) == 0 && o1 - 1 < pos + 1 && glyd_load64(ip + 1 - o1) == v1) {
          size_t m1 = 8 + glyd_match_count(ip + 9, ip + 9 - o1, iend);
          if (m1 >= ml + 1) {
            ip++;
            ml = m1;
            off = o1;
          }
        }
        goto found;
      }
    }
  next:
    ip += ((size_t)(ip - anchor) >> 8) + 1;
    continue;
  found:
    /* Lazy steps: a match one byte on that is clearly better takes over. */
    while (ip + 1 < ilimit) {
      const uint8_t *q = ip + 1;
      size_t qpos = (size_t)(q - segment);
      uint64_t w = glyd_load64(q), a = HASH_LONG(w), b = HASH_SHORT(w);
      uint32_t ea = L[SLOT(a, lb)], eb = S[SLOT(b, sb)], na = ENTRY(a, lb, qpos), nb = ENTRY(b, sb, qpos);
      L[SLOT(a, lb)] = na;
      S[SLOT(b, sb)] = nb;
      size_t bm = 0, bo = 0;
      size_t oa = (na - ea) >> TAG_BITS, ob = (nb - eb) >> TAG_BITS;
      if (((ea ^ na) & TAG_MASK) == 0 && oa - 1 < qpos && glyd_load64(q - oa) == w) {
        bm = 8 + glyd_match_count(q + 8, q + 8 - oa, iend);
        bo = oa;
      }
      if (bm == 0 && ((eb ^ nb) & TAG_MASK) == 0 && ob - 1 < qpos && glyd_load32(q - ob) == (uint32_t)w) {
        bm = 4 + glyd_match_count(q + 4, q + 4 - ob, iend);
        bo = ob;
      }
      if (bm == 0 || gain(bm, bo) <= gain(ml, off)) break;
      ip = q;
      ml = bm;
      off = bo;
    }
    if (off != r0) {
      r1 = r0;
      r0 = (uint32_t)off;
    }
  emit:
    mp = ip - off;
    while (ip > anchor && mp > segment && ip[-1] == mp[-1]) {
      ip--;
      mp--;
      ml++;
    }
    seqs[n].literals = (uint32_t)(ip - anchor);
    seqs[n].length = (uint32_t)ml;
    seqs[n].offset = (uint32_t)off;
    n++;
    const uint8_t *st = ip;
    ip += ml;
    anchor = ip;
    if (ip < ilimit) {
      uint64_t h = HASH_LONG(glyd_load64(st + 2));
      L[SLOT(h, lb)] = ENTRY(h, lb, st + 2 - segment);
      h = HASH_SHORT(glyd_load64(st + 2));
      S[SLOT(h, sb)] = ENTRY(h, sb, st + 2 - segment);
      h = HASH_LONG(glyd_load64(ip - 2));
      L[SLOT(h, lb)] = ENTRY(h, lb, ip - 2 - segment);
      h = HASH_SHORT(glyd_load64(ip - 1));
      S[SLOT(h, sb)] = ENTRY(h, sb, ip - 1 - segment);
      while (ip < ilimit && glyd_load32(ip) == glyd_load32(ip - r1)) {
        size_t len = 4 + glyd_match_count(ip + 4, ip + 4 - r1, iend);
        uint32_t t = r0;
        r0 = r1;
        r1 = t;
        h = HASH_LONG(glyd_load64(ip));
        L[SLOT(h, lb)] = ENTRY(h, lb, ip - segment);
        h = HASH_SHORT(glyd_load64(ip));
        S[SLOT(h, sb)] = ENTRY(h, sb, ip - segment);
        seqs[n].literals = 0;
        seqs[n].length = (uint32_t)len;
        seqs[n].offset = r0;
        n++;
        ip += len;
        anchor = ip;
      }
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
