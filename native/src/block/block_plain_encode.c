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
/* Segments up to this size start with shorter matches: they have no history. */
#define SMALL_INPUT 65536
#define ENVELOPE_MAX 7 /* type byte + two varints of at most 3 bytes */
#define HEADER_MAX (6 * 3 + 16)

/* What a level does; constant in each instance of the parser. */
typedef struct parse_rules {
  unsigned block_log;  /* content bytes of a block */
  unsigned table_log;  /* log of the places in the table, at most */
  unsigned hash_bytes; /* bytes hashed */
  unsigned near_min;   /* shortest match, at least hash_bytes */
  unsigned far_min;    /* shortest match from 2^16 bytes back on */
  unsigned skip_log;   /* misses before the stride grows by one */
  int lazy;            /* look one position further */
  int repeat;          /* look for the last distance after a match */
  uint32_t window;     /* longest distance */
} parse_rules;

static const parse_rules rules_turbo = {17, 14, 8, 14, 14, 5, 0, 0, 65535};
static const parse_rules rules_fast = {17, 13, 7, 7, 7, 5, 0, 0, 65535};
static const parse_rules rules_fast_6 = {17, 13, 6, 6, 6, 5, 0, 0, 65535};
static const parse_rules rules_default = {17, 15, 7, 7, 8, 5, 1, 1, (1u << 18) - 1};

/* For content that would be mostly literals, and for small inputs: shorter
 * matches help it, and it is read fast enough to afford them. */
static const parse_rules rules_default_5 = {17, 15, 5, 5, 6, 7, 1, 1, (1u << 18) - 1};
static const parse_rules rules_default_4 = {17, 15, 4, 4, 6, 7, 1, 1, (1u << 18) - 1};

static const parse_rules *rules_of(int level) {
  return level <= GLYD_LEVEL_TURBO ? &rules_turbo : level == GLYD_LEVEL_FAST ? &rules_fast : &rules_default;
}

/* Views of the workspace. In a block of B bytes there are at most B / 4
 * sequences, as no match is shorter, and 3 bytes of long length for 255 bytes.
 * The parse fills distance, length, count, token (literal length only),
 * literal, ll and longs; lay_out the others and the rest of token. */
typedef struct planes {
  uint32_t *table;
  uint32_t *distance; /* of each sequence; the one before the first is 1 */
  uint8_t *length;    /* of each match, at most 255 */
  uint32_t *count;    /* matches of each length */
  uint8_t *literal, *offset, *token, *ll, *ml, *far, *longs;
  size_t n_seq, n_literal, n_offset, n_ll, n_ml, n_far, n_longs;
} planes;

/* Keeps the compiler from turning arithmetic on v into branches. */
#define GLYD_OPAQUE(v) __asm__("" : "+r"(v))

static size_t table_bytes(size_t log) { return sizeof(uint32_t) << log; }

/* At most one place a byte of input, so that small inputs do not pay for
 * clearing a large table. */
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
  p->table = carve(base, &at, table_bytes(rules->table_log));
  p->distance = carve(base, &at, (block / 4 + 1) * sizeof(uint32_t));
  if (base) *p->distance++ = 1;
  p->length = carve(base, &at, block / 4);
  p->count = carve(base, &at, 256 * sizeof(uint32_t));
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

/* Put an entry in its place; returns the one that was there. */
GLYD_INLINE uint32_t bucket_put(uint32_t *table, unsigned shift, uint64_t hash, uint32_t entry) {
  uint32_t *bucket = table + (hash >> shift), old = *bucket;
  *bucket = entry;
  return old;
}

GLYD_INLINE void insert(const parse_rules *rules, uint32_t *table, unsigned shift, const uint8_t *base,
                        const uint8_t *at, const uint8_t *limit) {
  if (at > limit) return;
  uint64_t h = glyd_bucket_hash(glyd_load64(at), rules->hash_bytes);
  bucket_put(table, shift, h, glyd_bucket_entry(h, (size_t)(at - base)));
}

/* What the parse of a block takes over from the block before. */
typedef struct parse_state {
  unsigned shift;  /* of hashes, to table indices */
  uint32_t window; /* longest distance */
  int repeat;      /* look for the last distance after a match */
  int tier;        /* level default: shortest match, see next_tier */
} parse_state;

/* Where the planes that the parse fills have got to. */
typedef struct parse_out {
  size_t n;
  uint8_t *literal, *ll, *longs;
} parse_out;

/* Append a sequence: ll literals at lit (16 bytes at its end can be read), then
 * m bytes from d back. */
GLYD_INLINE void emit(planes *p, parse_out *o, const uint8_t *lit, size_t ll, size_t m, uint32_t d) {
  glyd_copy16(o->literal, lit);
  for (size_t i = 16; i < ll; i += 16) glyd_copy16(o->literal + i, lit + i);
  o->literal += ll;
  size_t m_short = m < 255 ? m : 255;
  p->distance[o->n] = d;
  p->length[o->n] = (uint8_t)m_short;
  p->count[m_short]++;
  p->token[o->n] = (uint8_t)(ll < 7 ? ll : 7);
  *o->ll = (uint8_t)((ll < 255 ? ll : 255) - 7);
  o->ll += ll >= 7;
  o->n++;
  if (GLYD_UNLIKELY(ll >= 255)) o->longs = glyd_put_varint(o->longs, ll - 255);
  if (GLYD_UNLIKELY(m >= 255)) o->longs = glyd_put_varint(o->longs, m - 255);
}

/* Parse in[from..to): fills p->distance, length, count, token, literal, ll,
 * longs. */
GLYD_INLINE void parse_block(const parse_rules *rules, planes *p, const parse_state *state, const uint8_t *base,
                             const uint8_t *from, const uint8_t *to) {
  const uint8_t *ip = from, *anchor = from;
  uint32_t *table = p->table;
  const uint32_t window = state->window;
  const unsigned shift = state->shift;
  const int repeat = rules->repeat && state->repeat;
  parse_out o = {0, p->literal, p->ll, p->longs};
  memset(p->count, 0, 256 * sizeof *p->count);
  if (to - from > PARSE_MARGIN) {
    const uint8_t *limit = to - PARSE_MARGIN;
    while (ip < limit) {
      uint64_t h = glyd_bucket_hash(glyd_load64(ip), rules->hash_bytes);
      uint32_t entry = glyd_bucket_entry(h, (size_t)(ip - base));
      uint32_t d = entry - bucket_put(table, shift, h, entry);
      if (GLYD_LIKELY(d - 1 >= window)) {
        ip += ((size_t)(ip - anchor) >> rules->skip_log) + 1;
        continue;
      }
      size_t m = glyd_bucket_count16(ip, ip - d);
      if (rules->lazy) {
        /* the next position may have a longer match; whether is hard to
         * predict, so it is looked at without a branch */
        uint64_t h1 = glyd_bucket_hash(glyd_load64(ip + 1), rules->hash_bytes);
        uint32_t entry1 = glyd_bucket_entry(h1, (size_t)(ip - base) + 1);
        uint32_t d1 = entry1 - bucket_put(table, shift, h1, entry1), valid = 0u - (d1 - 1 < window);
        GLYD_OPAQUE(valid);
        d1 &= valid;
        size_t m1 = glyd_bucket_count16(ip + 1, ip + 1 - d1) & valid;
        uint32_t better = 0u - (m1 > m);
        GLYD_OPAQUE(better);
        d = (d1 & better) | (d & ~better);
        m = (m1 & better) | (m & ~better);
        ip += better & 1;
      }
      if (m == 16) m += glyd_bucket_count(ip + 16, ip + 16 - d, to);
      if (m < (d < 65536 ? rules->near_min : rules->far_min)) {
        ip++;
        continue;
      }
      /* how far back the match starts is as hard to predict: 8 bytes at once */
      size_t room = (size_t)(ip - anchor), back = 0;
      if (GLYD_LIKELY((size_t)(ip - base) >= (size_t)d + 8)) {
        uint64_t x = glyd_load64(ip - 8) ^ glyd_load64(ip - 8 - d);
        back = (size_t)__builtin_clzll(x | 1) >> 3;
        back = back < room ? back : room;
      }
      ip -= back;
      m += back;
      emit(p, &o, anchor, (size_t)(ip - anchor), m, d);
      if (!rules->lazy) insert(rules, table, shift, base, ip + 2, limit);
      ip += m;
      anchor = ip;
      insert(rules, table, shift, base, ip - 2, limit);
      if (repeat) {
        /* the same distance once more, for 5 bytes or more, after up to 3 others */
        while (ip < limit) {
          uint32_t x = glyd_bucket_equal16(ip, ip - d);
          x &= x >> 1;
          x &= x >> 2;
          x &= (x >> 1) & 15;
          if (GLYD_LIKELY(x == 0)) break;
          ip += glyd_ctz64(x);
          m = glyd_bucket_count(ip, ip - d, to);
          emit(p, &o, anchor, (size_t)(ip - anchor), m, d);
          ip += m;
          anchor = ip;
          insert(rules, table, shift, base, ip - 2, limit);
        }
      }
    }
  }
  size_t rest = (size_t)(to - anchor);
  memcpy(o.literal, anchor, rest);
  p->n_seq = o.n;
  p->n_literal = (size_t)(o.literal - p->literal) + rest;
  p->n_ll = (size_t)(o.ll - p->ll);
  p->n_longs = (size_t)(o.longs - p->longs);
}

static GLYD_NOINLINE void parse_turbo(planes *p, const parse_state *state, const uint8_t *base, const uint8_t *from,
                                      const uint8_t *to) {
  parse_block(&rules_turbo, p, state, base, from, to);
}
static GLYD_NOINLINE void parse_fast(planes *p, const parse_state *state, const uint8_t *base, const uint8_t *from,
                                     const uint8_t *to) {
  parse_block(&rules_fast, p, state, base, from, to);
}
static GLYD_NOINLINE void parse_fast_6(planes *p, const parse_state *state, const uint8_t *base, const uint8_t *from,
                                       const uint8_t *to) {
  parse_block(&rules_fast_6, p, state, base, from, to);
}
static GLYD_NOINLINE void parse_default(planes *p, const parse_state *state, const uint8_t *base, const uint8_t *from,
                                        const uint8_t *to) {
  parse_block(&rules_default, p, state, base, from, to);
}
static GLYD_NOINLINE void parse_default_5(planes *p, const parse_state *state, const uint8_t *base, const uint8_t *from,
                                          const uint8_t *to) {
  parse_block(&rules_default_5, p, state, base, from, to);
}
static GLYD_NOINLINE void parse_default_4(planes *p, const parse_state *state, const uint8_t *base, const uint8_t *from,
                                          const uint8_t *to) {
  parse_block(&rules_default_4, p, state, base, from, to);
}

/* Pick the rules for the next block from the share of literals in this one:
 * tier 0 has matches from 6 bytes on, 1 from 5. Tier 2, from 4, is for small
 * inputs only. */
static int next_tier(int tier, size_t n_literal, size_t n) {
  size_t sixteenths = 16 * n_literal / n;
  return sixteenths >= (tier ? 5 : 7);
}

/* Codes of the match lengths of a block. */
typedef struct length_codes {
  int own;           /* table[] is written */
  unsigned base;     /* b */
  unsigned escape;   /* length of escape byte 0 */
  uint8_t table[15]; /* T */
  uint8_t code[256]; /* code of a length below 255, 15: escape */
} length_codes;

/* Choose between b … b + 14 and the 15 most frequent lengths. count[255] holds
 * the long ones, which are escaped in any case. */
static void choose_codes(length_codes *codes, const uint32_t *count, size_t n) {
  unsigned low = 1;
  while (low < 255 && count[low] == 0) low++;
  /* the best run of 15 lengths starts at the shortest one, or nearly */
  size_t in_run = 0, in_top = 0;
  for (unsigned i = low; i < low + 15 && i < 255; i++) in_run += count[i];
  codes->own = 0;
  codes->base = low;
  codes->escape = low + 15 < 255 ? low + 15 : 255;
  memset(codes->code, 15, sizeof codes->code);
  if (in_run + 32 < n && low < 255) { /* at 255 all are escaped: none is there to choose from */
    /* the lengths that occur, each under its count */
    uint32_t key[255];
    unsigned n_key = 0;
    for (unsigned i = low; i < 255; i++) {
      key[n_key] = count[i] << 8 | i;
      n_key += count[i] != 0;
    }
    for (unsigned k = 0; k < 15; k++) {
      /* all lengths of the table must be valid: repeat one when they run out */
      unsigned best = 0;
      for (unsigned i = 1; i < n_key; i++) best = key[i] > key[best] ? i : best;
      codes->table[k] = (uint8_t)(key[best] & 255);
      in_top += key[best] >> 8;
      key[best] &= 255;
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

/* Whether the offsets of the block are smaller in the repeat form. */
static int repeat_form_pays(const uint32_t *distance, size_t n) {
  const uint32_t *before = distance - 1; /* 1 before the first */
  uint32_t repeats = 0, wide = 0, far = 0, most = 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t d = distance[i], same = d == before[i];
    repeats += same;
    wide += (d >> 15 != 0) & (same ^ 1u);
    far += d >> 16 != 0;
    most |= d;
  }
  uint32_t plain = 2 * (uint32_t)n + far, repeat = 2 * ((uint32_t)n - repeats) + wide;
  return repeat < plain - plain / 32 && most <= GLYD_PLAIN_REPEAT_OFFSET_MAX;
}

/* Fill the planes that the parse does not. */
static unsigned lay_out(planes *p, length_codes *codes) {
  const size_t n = p->n_seq;
  const uint32_t *distance = p->distance, *before = distance - 1;
  uint8_t *token = p->token, *offset = p->offset, *ml = p->ml, *far = p->far;
  choose_codes(codes, p->count, n);
  for (size_t i = 0; i < n; i++) {
    unsigned m = p->length[i], code = codes->code[m];
    *ml = (uint8_t)(m - codes->escape);
    ml += code == 15;
    token[i] |= (uint8_t)(code << GLYD_PLAIN_ML_SHIFT);
  }
  int repeat = repeat_form_pays(distance, n);
  if (repeat) {
    for (size_t i = 0; i < n; i++) {
      uint32_t d = distance[i], f = d == before[i], wide = d >> 15 != 0;
      glyd_store16(offset, (uint16_t)((d & 0x7FFFu) | wide << 15));
      *far = (uint8_t)(d >> 15);
      offset += f ? 0 : 2;
      far += wide & (f ^ 1u);
      token[i] |= (uint8_t)(f << GLYD_PLAIN_F_SHIFT);
    }
  } else {
    for (size_t i = 0; i < n; i++) {
      uint32_t d = distance[i], f = d >> 16 != 0;
      glyd_store16(offset + 2 * i, (uint16_t)d);
      *far = (uint8_t)(d >> 16);
      far += f;
      token[i] |= (uint8_t)(f << GLYD_PLAIN_F_SHIFT);
    }
    offset += 2 * n;
  }
  p->n_offset = (size_t)(offset - p->offset) / 2;
  p->n_ml = (size_t)(ml - p->ml);
  p->n_far = (size_t)(far - p->far);
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
  size_t body =
      (size_t)(h - header) + p->n_literal + 2 * p->n_offset + p->n_seq + p->n_ll + p->n_ml + p->n_far + p->n_longs;
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

/* Blocks from[0..n) as raw ones; NULL when they do not all fit: nothing is written then. */
static uint8_t *write_raw(const uint8_t *from, size_t n, size_t block, uint8_t *out, const uint8_t *out_end) {
  if (n == 0) return out;
  if (n >= (size_t)(out_end - out)) return NULL; /* what the frame stores raw is not copied for nothing */
  for (size_t at = 0; at < n && out != NULL; at += block) {
    const size_t size = n - at < block ? n - at : block;
    out = write_simple(GLYD_BLOCK_RAW, from + at, size, size, out, out_end);
  }
  return out;
}

/* Enter what comes before the content into the table. Entries hash as many bytes
 * as the first block's rules do: those of a later tier find less there. */
static void prime(const parse_rules *rules, planes *p, const parse_state *state, const uint8_t *in, size_t history) {
  if (history < PARSE_MARGIN) return;
  if (rules == &rules_default && state->tier) rules = state->tier == 2 ? &rules_default_4 : &rules_default_5;
  if (rules == &rules_fast && state->tier) rules = &rules_fast_6;
  const uint8_t *const limit = in + history - PARSE_MARGIN;
  for (const uint8_t *at = in; at <= limit; at++) insert(rules, p->table, state->shift, in, at, limit);
}

glyd_status glyd_plain_segment_encode(const glyd_lz_config *config, void *workspace, const uint8_t *in, size_t history,
                                      size_t len, uint8_t *out, size_t cap, size_t *out_len) {
  const parse_rules *rules = rules_of(config->level);
  const size_t total = history + len;
  planes p;
  planes_bind(&p, workspace, rules);
  unsigned log = table_log_for(rules, total);
  memset(p.table, 0, table_bytes(log));
  uint8_t *op = out;
  const uint8_t *out_end = out + cap;
  size_t block = (size_t)1 << rules->block_log;
  parse_state state = {64 - log, rules->window, 0, total > SMALL_INPUT ? 0 : total > SMALL_INPUT / 4 ? 1 : 2};
  size_t raw = 0; /* bytes before at that are to be raw blocks, written once something else follows */
  prime(rules, &p, &state, in, history);
  for (size_t at = history; at < total; at += block) {
    const uint8_t *from = in + at;
    size_t n = total - at < block ? total - at : block;
    if (from[0] == from[n - 1] && memcmp(from, from + 1, n - 1) == 0) {
      op = write_raw(from - raw, raw, block, op, out_end);
      if (op != NULL) op = write_simple(GLYD_BLOCK_FILL, from, 1, n, op, out_end);
      raw = 0;
      p.n_literal = 0;
    } else {
      if (rules == &rules_turbo) {
        parse_turbo(&p, &state, in, from, from + n);
      } else if (rules == &rules_fast && state.tier) {
        parse_fast_6(&p, &state, in, from, from + n);
      } else if (rules == &rules_fast) {
        parse_fast(&p, &state, in, from, from + n);
      } else if (state.tier == 2) {
        parse_default_4(&p, &state, in, from, from + n);
      } else if (state.tier == 1) {
        parse_default_5(&p, &state, in, from, from + n);
      } else {
        parse_default(&p, &state, in, from, from + n);
      }
      size_t saved = n - p.n_literal;
      if (p.n_seq == 0 || saved <= 3 * p.n_seq + 8) {
        raw += n;
      } else {
        length_codes codes;
        unsigned flags = lay_out(&p, &codes);
        /* matches so long are found close by as well, where they cost less */
        state.window = saved < 40 * p.n_seq || rules->window < 65535 ? rules->window : 65535;
        state.repeat = (flags & GLYD_PLAIN_FLAG_REPEAT) != 0 && n < 32 * p.n_seq;
        size_t size = p.n_literal + 2 * p.n_offset + p.n_seq + p.n_ll + p.n_ml + p.n_far + p.n_longs + HEADER_MAX;
        if (size < n - n / 32) { /* less is not worth reading it slower */
          op = write_raw(from - raw, raw, block, op, out_end);
          if (op != NULL) op = write_plain(&p, &codes, flags, n, op, out_end);
          raw = 0;
        } else {
          raw += n;
        }
      }
    }
    if (op == NULL) return GLYD_E_BUFFER;
    state.tier = next_tier(state.tier, p.n_literal, n);
  }
  op = write_raw(in + total - raw, raw, block, op, out_end);
  if (op == NULL) return GLYD_E_BUFFER;
  *out_len = (size_t)(op - out);
  return GLYD_OK;
}
