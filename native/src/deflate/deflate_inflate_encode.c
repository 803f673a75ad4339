/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "deflate/deflate_inflate_encode.h"

#include "deflate/deflate_trees.h"

#define FAST_BITS 10u
#define NO_SYMBOL UINT32_MAX

/* Bits from the input, 0 past its end. */
typedef struct source {
  const uint8_t *in;
  size_t len;
  uint64_t bit;
} source;

GLYD_INLINE uint64_t peek(const source *s) {
  const size_t at = (size_t)(s->bit >> 3);
  uint64_t v = 0;
  if (GLYD_LIKELY(at + 8 <= s->len))
    v = glyd_load64(s->in + at);
  else if (at < s->len)
    memcpy(&v, s->in + at, s->len - at);
  return v >> (s->bit & 7);
}

static uint32_t take(source *s, unsigned n) {
  const uint32_t v = (uint32_t)peek(s) & ((1u << n) - 1);
  s->bit += n;
  return v;
}

static int is_past_end(const source *s) { return s->bit > (uint64_t)s->len * 8; }

/* 0: more codes than there is room for, or fewer and more than one. */
static int make_code(glyd_inflate_code *code, const uint8_t *lengths, unsigned n) {
  uint16_t turned[288];
  memset(code->used, 0, sizeof code->used);
  for (unsigned i = 0; i < n; i++) code->used[lengths[i]]++;
  const unsigned total = n - code->used[0];
  code->used[0] = 0;
  uint32_t next = 0, index = 0, space = 0;
  for (unsigned bits = 1; bits <= GLYD_DEFLATE_CODE_MAX; bits++) {
    next = (next + code->used[bits - 1]) << 1;
    code->first[bits] = (uint16_t)next;
    code->index[bits] = (uint16_t)index;
    index += code->used[bits];
    space += (uint32_t)code->used[bits] << (GLYD_DEFLATE_CODE_MAX - bits);
  }
  if (space > 1u << GLYD_DEFLATE_CODE_MAX) return 0;
  if (space < 1u << GLYD_DEFLATE_CODE_MAX && total > 1) return 0;
  uint16_t place[GLYD_DEFLATE_CODE_MAX + 2];
  memcpy(place, code->index, sizeof place);
  for (unsigned i = 0; i < n; i++)
    if (lengths[i]) code->symbols[place[lengths[i]]++] = (uint16_t)i;
  glyd_deflate_trees_codes(lengths, n, turned);
  memset(code->fast, 0, sizeof code->fast);
  for (unsigned i = 0; i < n; i++) {
    if (lengths[i] == 0 || lengths[i] > FAST_BITS) continue;
    for (uint32_t v = turned[i]; v < 1u << FAST_BITS; v += 1u << lengths[i])
      code->fast[v] = (uint16_t)(i << 4 | lengths[i]);
  }
  return 1;
}

GLYD_INLINE uint32_t get_symbol(source *s, const glyd_inflate_code *code) {
  const uint64_t bits = peek(s);
  const uint32_t entry = code->fast[bits & ((1u << FAST_BITS) - 1)];
  if (GLYD_LIKELY(entry != 0)) {
    s->bit += entry & 15;
    return entry >> 4;
  }
  uint32_t v = 0;
  for (unsigned n = 1; n <= GLYD_DEFLATE_CODE_MAX; n++) {
    v = v << 1 | (uint32_t)(bits >> (n - 1) & 1);
    if (v - code->first[n] < code->used[n]) {
      s->bit += n;
      return code->symbols[code->index[n] + v - code->first[n]];
    }
  }
  return NO_SYMBOL;
}

static glyd_inflate_result read_header(glyd_inflate *s, source *in, glyd_deflate_block *block) {
  block->n_litlens = 257 + take(in, 5);
  block->n_distances = 1 + take(in, 5);
  block->n_header_codes = 4 + take(in, 4);
  if (block->n_litlens > GLYD_DEFLATE_LITLENS || block->n_distances > GLYD_DEFLATE_DISTANCES)
    return GLYD_INFLATE_INVALID;
  memset(block->header_lengths, 0, sizeof block->header_lengths);
  for (unsigned i = 0; i < block->n_header_codes; i++)
    block->header_lengths[glyd_deflate_header_order[i]] = (uint8_t)take(in, 3);
  if (!make_code(&s->litlens, block->header_lengths, GLYD_DEFLATE_HEADER_CODES)) return GLYD_INFLATE_INVALID;
  const unsigned n = block->n_litlens + block->n_distances;
  block->n_items = 0;
  for (unsigned i = 0; i < n;) {
    const uint32_t symbol = get_symbol(in, &s->litlens);
    if (symbol == NO_SYMBOL || (symbol == 16 && i == 0)) return GLYD_INFLATE_INVALID;
    const glyd_deflate_item item = {(uint8_t)symbol, (uint8_t)take(in, glyd_deflate_item_bits(symbol))};
    const unsigned repeats = glyd_deflate_trees_item_size(item);
    if (repeats > n - i) return GLYD_INFLATE_INVALID;
    block->items[block->n_items++] = item;
    memset(block->lengths + i, symbol < 16 ? (int)symbol : symbol == 16 ? block->lengths[i - 1] : 0, repeats);
    i += repeats;
  }
  if (block->lengths[GLYD_DEFLATE_END] == 0) return GLYD_INFLATE_INVALID;
  if (!make_code(&s->litlens, block->lengths, block->n_litlens)) return GLYD_INFLATE_INVALID;
  return make_code(&s->distances, block->lengths + block->n_litlens, block->n_distances) ? GLYD_INFLATE_OK
                                                                                         : GLYD_INFLATE_INVALID;
}

static void copy_match(uint8_t *out, uint32_t distance, uint32_t length) {
  const uint8_t *const from = out - distance;
  if (distance >= length) {
    memcpy(out, from, length);
    return;
  }
  for (uint32_t i = 0; i < length; i++) out[i] = from[i];
}

static glyd_inflate_result read_tokens(glyd_inflate *s, source *in, size_t *place, uint32_t *n_tokens,
                                       glyd_deflate_token *tokens) {
  size_t at = *place;
  uint32_t n = 0;
  for (;; n++) {
    const uint32_t symbol = get_symbol(in, &s->litlens);
    if (symbol == GLYD_DEFLATE_END) break;
    if (is_past_end(in)) return GLYD_INFLATE_SHORT;
    if (symbol >= GLYD_DEFLATE_LITLENS || n == GLYD_DEFLATE_TOKENS_MAX) return GLYD_INFLATE_INVALID;
    if (symbol < 256) {
      if (at == s->cap) return GLYD_INFLATE_FULL;
      s->out[at++] = (uint8_t)symbol;
      if (tokens) tokens[n] = symbol;
      continue;
    }
    uint32_t length = GLYD_DEFLATE_MATCH_MAX;
    if (symbol < 285) {
      const unsigned bits = symbol < 265 ? 0 : (symbol - 261) / 4;
      length = symbol < 265 ? symbol - 254 : ((4 + (symbol - 261) % 4) << bits) + 3;
      length += take(in, bits);
      if (length == GLYD_DEFLATE_MATCH_MAX) return GLYD_INFLATE_INVALID; /* may be, but nobody writes it so */
    }
    const uint32_t code = get_symbol(in, &s->distances);
    if (code >= GLYD_DEFLATE_DISTANCES) return is_past_end(in) ? GLYD_INFLATE_SHORT : GLYD_INFLATE_INVALID;
    const unsigned bits = code < 4 ? 0 : (code - 2) / 2;
    const uint32_t distance = ((code < 4 ? code : 2 + (code & 1)) << bits) + 1 + take(in, bits);
    if (distance > at) return GLYD_INFLATE_INVALID;
    if (length > s->cap - at) return GLYD_INFLATE_FULL;
    copy_match(s->out + at, distance, length);
    at += length;
    if (tokens) tokens[n] = length << 16 | distance;
  }
  *place = at;
  *n_tokens = n;
  return GLYD_INFLATE_OK;
}

static glyd_inflate_result read_stored(glyd_inflate *s, source *in, size_t *place, glyd_deflate_block *block) {
  block->padding = take(in, (unsigned)(-in->bit & 7));
  const uint32_t length = take(in, 16), inverse = take(in, 16);
  if (is_past_end(in)) return GLYD_INFLATE_SHORT;
  if ((length ^ inverse) != 0xFFFF) return GLYD_INFLATE_INVALID;
  const size_t from = (size_t)(in->bit >> 3);
  if (length > in->len - from) return GLYD_INFLATE_SHORT;
  if (length > s->cap - *place) return GLYD_INFLATE_FULL;
  if (length > 0) memcpy(s->out + *place, in->in + from, length);
  in->bit += (uint64_t)length * 8;
  *place += length;
  block->n_tokens = length;
  return GLYD_INFLATE_OK;
}

void glyd_inflate_begin(glyd_inflate *s, const uint8_t *in, size_t len, uint8_t *out, size_t cap) {
  s->in = in;
  s->len = len;
  s->bit = 0;
  s->out = out;
  s->at = 0;
  s->cap = cap;
}

glyd_inflate_result glyd_inflate_block(glyd_inflate *s, glyd_deflate_block *block, glyd_deflate_token *tokens) {
  source in = {s->in, s->len, s->bit};
  size_t at = s->at;
  glyd_inflate_result result = GLYD_INFLATE_OK;
  block->is_last = take(&in, 1);
  block->type = take(&in, 2);
  block->n_tokens = block->padding = block->n_litlens = block->n_distances = block->n_items = 0;
  if (is_past_end(&in)) return GLYD_INFLATE_SHORT;
  if (block->type > GLYD_DEFLATE_DYNAMIC) return GLYD_INFLATE_INVALID;
  if (block->type == GLYD_DEFLATE_STORED) {
    result = read_stored(s, &in, &at, block);
  } else {
    if (block->type == GLYD_DEFLATE_FIXED) {
      uint8_t litlens[288], distances[32];
      glyd_deflate_trees_fixed(litlens, distances);
      if (!make_code(&s->litlens, litlens, 288) || !make_code(&s->distances, distances, 32))
        result = GLYD_INFLATE_INVALID;
    } else {
      result = read_header(s, &in, block);
    }
    if (result == GLYD_INFLATE_OK) result = read_tokens(s, &in, &at, &block->n_tokens, tokens);
  }
  if (is_past_end(&in)) return GLYD_INFLATE_SHORT;
  if (result == GLYD_INFLATE_OK) {
    s->bit = in.bit;
    s->at = at;
  }
  return result;
}
