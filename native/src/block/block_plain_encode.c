/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Encoder of plain blocks: parse into sequences, then lay them out in planes.
 */
#include "block/block_plain_encode.h"

#include "block/block_plain_common.h"
#include "common/mem.h"
#include "match/match_bucket.h"

/* A parse never ends a search closer to the end of the block than this, which
 * keeps 16-byte reads at the current position inside the input. */
#define PARSE_MARGIN 16
#define ENVELOPE_MAX 7 /* type byte + two varints of at most 3 bytes */
#define HEADER_MAX (6 * 3 + 16)

/* What a level does; constant in each instance of the parser. */
typedef struct parse_rules {
  unsigned block_log;  /* content bytes of a block */
  unsigned table_log;  /* most buckets */
  unsigned ways;       /* entries a bucket, 1 or 2 */
  unsigned hash_bytes; /* bytes hashed: the shortest match found */
  unsigned far_min;    /* shortest match from 2^16 bytes back on */
  unsigned skip_log;   /* misses before the stride grows by one */
  uint32_t window;     /* longest distance */
} parse_rules;

static const parse_rules rules_turbo = {17, 13, 1, 8, 8, 5, 65535};
static const parse_rules rules_fast = {17, 13, 1, 6, 7, 5, 65535};
static const parse_rules rules_default = {17, 15, 2, 6, 7, 5, (1u << 20) - 1};

static const parse_rules *rules_of(int level) {
  return level <= GLYD_LEVEL_TURBO ? &rules_turbo : level == GLYD_LEVEL_FAST ? &rules_fast : &rules_default;
}

/* Sequence: offset in 24 bits, literal length in 20, match length in 20. */
typedef uint64_t sequence;
#define SEQUENCE(off, ll, ml) ((uint64_t)(off) | (uint64_t)(ll) << 24 | (uint64_t)(ml) << 44)
#define SEQUENCE_OFF(s) ((uint32_t)(s)&0xFFFFFFu)
#define SEQUENCE_LL(s) ((uint32_t)((s) >> 24) & 0xFFFFFu)
#define SEQUENCE_ML(s) ((uint32_t)((s) >> 44))

/* Views of the workspace. In a block of B bytes there are at most B / 4
 * sequences, as no match is shorter, and 3 bytes of long length for 255 bytes. */
typedef struct planes {
  uint32_t *table;
  sequence *seq;
  uint8_t *literal, *offset, *token, *ll, *ml, *far, *longs;
  size_t n_seq, n_literal, n_offset, n_ll, n_ml, n_far, n_longs;
} planes;

static size_t table_bytes(const parse_rules *rules, size_t log) { return (size_t)rules->ways << (log + 2); }

/* Buckets for an input: one for every second byte, so that small inputs do
 * not pay for clearing a large table. */
static unsigned table_log_for(const parse_rules *rules, size_t len) {
  unsigned log = rules->table_log;
  while (log > 8 && ((size_t)1 << log) > len) log--;
  return log;
}

/* Next part of a workspace; with base NULL only *at, the sum of sizes, counts. */
static void *carve(uint8_t *base, size_t *at, size_t size) {
  void *part = base ? base + *at : NULL;
  *at += (size + 63) & ~(size_t)63;
  return part;
}

/* Lay the views over the workspace; returns its size. The 64 bytes more are
 * for copies and stores past the end of what counts. */
static size_t planes_bind(planes *p, uint8_t *base, const parse_rules *rules) {
  size_t block = (size_t)1 << rules->block_log, at = 0;
  p->table = carve(base, &at, table_bytes(rules, rules->table_log));
  p->seq = carve(base, &at, block / 4 * sizeof(sequence));
  p->literal = carve(base, &at, block + 64);
  p->offset = carve(base, &at, block / 2 + 64);
  p->token = carve(base, &at, block / 4);
  p->ll = carve(base, &at, block / 4 + 64);
  p->ml = carve(base, &at, block / 4 + 64);
  p->far = carve(base, &at, block / 4 + 64);
  p->longs = carve(base, &at, block / 64 + 64);
  return at;
}

size_t glyd_plain_encode_workspace(const glyd_lz_config *config) {
  planes p;
  return planes_bind(&p, NULL, rules_of(config->level));
}

GLYD_INLINE void bucket_put(const parse_rules *rules, uint32_t *table, unsigned log, const uint8_t *base,
                            const uint8_t *at) {
  uint64_t h = glyd_bucket_hash(glyd_load64(at), rules->hash_bytes);
  uint32_t *bucket = table + (size_t)glyd_bucket_index(h, log) * rules->ways;
  uint32_t entry = glyd_bucket_entry(h, log, (size_t)(at - base));
  if (rules->ways == 2) bucket[1] = bucket[0];
  bucket[0] = entry;
}

/* Length of the match d bytes back, 0 when it is too short for its distance. */
GLYD_INLINE size_t match_at(const parse_rules *rules, const uint8_t *ip, uint64_t v, uint32_t d, const uint8_t *end) {
  uint64_t x = glyd_load64(ip - d) ^ v;
  size_t m = x ? glyd_ctz64(x) >> 3 : 8 + glyd_bucket_count(ip + 8, ip + 8 - d, end);
  return m >= (d < 65536 ? rules->hash_bytes : rules->far_min) ? m : 0;
}

/* Parse in[from..to) into p->seq and p->literal. */
GLYD_INLINE void parse_block(const parse_rules *rules, planes *p, unsigned log, const uint8_t *base,
                             const uint8_t *from, const uint8_t *to) {
  const uint8_t *ip = from, *anchor = from;
  uint32_t *table = p->table;
  sequence *seq = p->seq;
  uint8_t *lit = p->literal;
  if (to - from > PARSE_MARGIN) {
    const uint8_t *limit = to - PARSE_MARGIN;
    while (ip <= limit) {
      uint64_t v = glyd_load64(ip);
      uint64_t h = glyd_bucket_hash(v, rules->hash_bytes);
      uint32_t *bucket = table + (size_t)glyd_bucket_index(h, log) * rules->ways;
      uint32_t entry = glyd_bucket_entry(h, log, (size_t)(ip - base));
      uint32_t d0 = entry - bucket[0], d1 = 0;
      if (rules->ways == 2) {
        d1 = entry - bucket[1];
        bucket[1] = bucket[0];
      }
      bucket[0] = entry;
      size_t m = 0;
      uint32_t d = 0;
      if ((d0 - 1 < rules->window) | (rules->ways == 2 && d1 - 1 < rules->window)) {
        if (d0 - 1 < rules->window) {
          m = match_at(rules, ip, v, d0, to);
          d = d0;
        }
        if (rules->ways == 2 && d1 - 1 < rules->window) {
          size_t m1 = match_at(rules, ip, v, d1, to);
          if (m1 > m + (d1 >= 65536 && d < 65536)) {
            m = m1;
            d = d1;
          }
        }
      }
      if (m == 0) {
        ip += ((size_t)(ip - anchor) >> rules->skip_log) + 1;
        continue;
      }
      while (ip > anchor && ip - base > (ptrdiff_t)d && ip[-1] == ip[-1 - (ptrdiff_t)d]) {
        ip--;
        m++;
      }
      size_t ll = (size_t)(ip - anchor);
      for (size_t i = 0; i < ll; i += 16) glyd_copy16(lit + i, anchor + i);
      lit += ll;
      *seq++ = SEQUENCE(d, ll, m);
      if (ip + 2 <= limit) bucket_put(rules, table, log, base, ip + 2);
      ip += m;
      anchor = ip;
      if (ip - 2 <= limit) bucket_put(rules, table, log, base, ip - 2);
    }
  }
  size_t rest = (size_t)(to - anchor);
  memcpy(lit, anchor, rest);
  lit += rest;
  p->n_seq = (size_t)(seq - p->seq);
  p->n_literal = (size_t)(lit - p->literal);
}

static GLYD_NOINLINE void parse_turbo(planes *p, unsigned log, const uint8_t *base, const uint8_t *from,
                                      const uint8_t *to) {
  parse_block(&rules_turbo, p, log, base, from, to);
}
static GLYD_NOINLINE void parse_fast(planes *p, unsigned log, const uint8_t *base, const uint8_t *from,
                                     const uint8_t *to) {
  parse_block(&rules_fast, p, log, base, from, to);
}
static GLYD_NOINLINE void parse_default(planes *p, unsigned log, const uint8_t *base, const uint8_t *from,
                                        const uint8_t *to) {
  parse_block(&rules_default, p, log, base, from, to);
}

/* Codes of the match lengths of a block. */
typedef struct length_codes {
  int own;            /* table[] is written */
  unsigned base;      /* b */
  unsigned escape;    /* length of escape byte 0 */
  uint8_t table[15];  /* T */
  uint8_t code[256];  /* code of a length below 255, 15: escape */
} length_codes;

/* Choose between b … b + 14 and the 15 most frequent lengths. count[255] holds
 * the long ones, which are escaped in any case. */
static void choose_codes(length_codes *codes, uint32_t *count, size_t n) {
  unsigned low = 1;
  while (low < 255 && count[low] == 0) low++;
  /* the best run of 15 lengths starts at the shortest one, or nearly */
  size_t in_run = 0, in_top = 0;
  for (unsigned i = low; i < low + 15 && i < 255; i++) in_run += count[i];
  codes->own = 0;
  codes->base = low;
  codes->escape = low + 15 < 255 ? low + 15 : 255;
  memset(codes->code, 15, sizeof codes->code);
  if (in_run + 32 < n) {
    uint32_t left[255];
    memcpy(left, count, sizeof left);
    for (unsigned k = 0; k < 15; k++) {
      unsigned best = low;
      for (unsigned i = low; i < 255; i++) {
        if (left[i] > left[best]) best = i;
      }
      codes->table[k] = (uint8_t)best;
      in_top += left[best];
      left[best] = 0;
    }
    codes->own = in_top > in_run + 24;
  }
  if (codes->own) {
    codes->escape = low;
    for (unsigned k = 0; k < 15; k++) codes->code[codes->table[k]] = (uint8_t)k;
  } else {
    for (unsigned k = 0; k < 15 && low + k < 255; k++) codes->code[low + k] = (uint8_t)k;
  }
}

/* Bytes the offsets of a block take in both forms. */
static int repeat_form_pays(const sequence *seq, size_t n) {
  size_t plain = 2 * n, repeat = 0;
  uint32_t last = 1, most = 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t d = SEQUENCE_OFF(seq[i]);
    plain += d >= 1u << 16;
    repeat += d == last ? 0u : 2u + (d >= 1u << 15);
    most = d > most ? d : most;
    last = d;
  }
  return repeat < plain - plain / 32 && most <= GLYD_PLAIN_REPEAT_OFFSET_MAX;
}

/* Fill all planes but the literals from the sequences. */
static unsigned lay_out(planes *p, length_codes *codes) {
  uint32_t count[2][256];
  size_t n = p->n_seq;
  memset(count, 0, sizeof count);
  for (size_t i = 0; i < n; i++) {
    uint32_t ml = SEQUENCE_ML(p->seq[i]);
    count[i & 1][ml < 255 ? ml : 255]++;
  }
  for (size_t i = 0; i < 256; i++) count[0][i] += count[1][i];
  choose_codes(codes, count[0], n);
  int repeat = repeat_form_pays(p->seq, n);
  uint8_t *offset = p->offset, *ll_out = p->ll, *ml_out = p->ml, *far = p->far, *longs = p->longs;
  uint32_t last = 1;
  for (size_t i = 0; i < n; i++) {
    sequence s = p->seq[i];
    uint32_t ll = SEQUENCE_LL(s), ml = SEQUENCE_ML(s), d = SEQUENCE_OFF(s);
    unsigned ll_code = ll < 7 ? ll : 7, ml_short = ml < 255 ? ml : 255, ml_code = codes->code[ml_short], f;
    *ll_out = (uint8_t)((ll < 255 ? ll : 255) - 7);
    ll_out += ll_code == 7;
    *ml_out = (uint8_t)(ml_short - codes->escape);
    ml_out += ml_code == 15;
    if (ll >= 255) longs = glyd_put_varint(longs, ll - 255);
    if (ml >= 255) longs = glyd_put_varint(longs, ml - 255);
    if (repeat) {
      f = d == last;
      last = d;
      unsigned wide = d >= 1u << 15;
      glyd_store16(offset, (uint16_t)((d & 0x7FFFu) | wide << 15));
      *far = (uint8_t)(d >> 15);
      offset += f ? 0 : 2;
      far += wide & (f ^ 1u);
    } else {
      f = d >= 1u << 16;
      glyd_store16(offset, (uint16_t)d);
      offset += 2;
      *far = (uint8_t)(d >> 16);
      far += f;
    }
    p->token[i] = (uint8_t)(ll_code | ml_code << GLYD_PLAIN_ML_SHIFT | f << GLYD_PLAIN_F_SHIFT);
  }
  p->n_offset = (size_t)(offset - p->offset) / 2;
  p->n_ll = (size_t)(ll_out - p->ll);
  p->n_ml = (size_t)(ml_out - p->ml);
  p->n_far = (size_t)(far - p->far);
  p->n_longs = (size_t)(longs - p->longs);
  return (codes->own ? GLYD_PLAIN_FLAG_TABLE : 0) | (repeat ? GLYD_PLAIN_FLAG_REPEAT : 0);
}

static uint8_t *append(uint8_t *out, const void *from, size_t n) {
  memcpy(out, from, n);
  return out + n;
}

/* Write one block; NULL when it does not fit. */
static uint8_t *write_plain(const planes *p, const length_codes *codes, unsigned flags, size_t content, uint8_t *out,
                            const uint8_t *out_end) {
  uint8_t header[HEADER_MAX], *h = header;
  h = glyd_put_varint(h, p->n_seq);
  h = glyd_put_varint(h, p->n_ll);
  h = glyd_put_varint(h, p->n_ml);
  h = glyd_put_varint(h, p->n_offset);
  h = glyd_put_varint(h, p->n_far);
  h = glyd_put_varint(h, p->n_longs);
  *h++ = (uint8_t)codes->base;
  if (codes->own) h = append(h, codes->table, 15);
  size_t body = (size_t)(h - header) + p->n_literal + 2 * p->n_offset + p->n_seq + p->n_ll + p->n_ml + p->n_far +
                p->n_longs;
  uint8_t envelope[ENVELOPE_MAX], *e = envelope;
  *e++ = (uint8_t)(GLYD_BLOCK_PLAIN | flags);
  e = glyd_put_varint(e, content);
  e = glyd_put_varint(e, body);
  if ((size_t)(e - envelope) + body > (size_t)(out_end - out)) return NULL;
  out = append(out, envelope, (size_t)(e - envelope));
  out = append(out, header, (size_t)(h - header));
  out = append(out, p->offset, 2 * p->n_offset);
  out = append(out, p->token, p->n_seq);
  out = append(out, p->ll, p->n_ll);
  out = append(out, p->ml, p->n_ml);
  out = append(out, p->far, p->n_far);
  out = append(out, p->longs, p->n_longs);
  return append(out, p->literal, p->n_literal);
}

/* Raw block, or fill when n is 1; NULL when it does not fit. */
static uint8_t *write_simple(unsigned type, const uint8_t *data, size_t n, size_t content, uint8_t *out,
                             const uint8_t *out_end) {
  uint8_t envelope[ENVELOPE_MAX], *e = envelope;
  *e++ = (uint8_t)type;
  e = glyd_put_varint(e, content);
  e = glyd_put_varint(e, n);
  if ((size_t)(e - envelope) + n > (size_t)(out_end - out)) return NULL;
  out = append(out, envelope, (size_t)(e - envelope));
  return append(out, data, n);
}

glyd_status glyd_plain_segment_encode(const glyd_lz_config *config, void *workspace, const uint8_t *in, size_t len,
                                      uint8_t *out, size_t cap, size_t *out_len) {
  const parse_rules *rules = rules_of(config->level);
  planes p;
  planes_bind(&p, workspace, rules);
  unsigned log = table_log_for(rules, len);
  memset(p.table, 0, table_bytes(rules, log));
  uint8_t *op = out;
  const uint8_t *out_end = out + cap;
  size_t block = (size_t)1 << rules->block_log;
  for (size_t at = 0; at < len; at += block) {
    const uint8_t *from = in + at;
    size_t n = len - at < block ? len - at : block;
    if (from[0] == from[n - 1] && memcmp(from, from + 1, n - 1) == 0) {
      op = write_simple(GLYD_BLOCK_FILL, from, 1, n, op, out_end);
    } else {
      if (rules == &rules_turbo) {
        parse_turbo(&p, log, in, from, from + n);
      } else if (rules == &rules_fast) {
        parse_fast(&p, log, in, from, from + n);
      } else {
        parse_default(&p, log, in, from, from + n);
      }
      size_t saved = n - p.n_literal;
      if (p.n_seq == 0 || saved <= 3 * p.n_seq + 8) {
        op = write_simple(GLYD_BLOCK_RAW, from, n, n, op, out_end);
      } else {
        length_codes codes;
        unsigned flags = lay_out(&p, &codes);
        size_t size = p.n_literal + 2 * p.n_offset + p.n_seq + p.n_ll + p.n_ml + p.n_far + p.n_longs + HEADER_MAX;
        if (size < n) {
          op = write_plain(&p, &codes, flags, n, op, out_end);
        } else {
          op = write_simple(GLYD_BLOCK_RAW, from, n, n, op, out_end);
        }
      }
    }
    if (op == NULL) return GLYD_E_BUFFER;
  }
  *out_len = (size_t)(op - out);
  return GLYD_OK;
}
