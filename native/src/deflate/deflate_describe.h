/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The description of streams (spec.md), once for writing and for reading: a
 * value given to a function below is written, or ignored and read; what the
 * function returns is the value in both. The file that includes this one says
 * first what a coder is:
 *   #define IS_WRITING 0 or 1
 *   typedef … coder;
 *   static uint32_t code_bit(coder *c, uint32_t chance, uint32_t bit);
 */
#include "deflate/deflate_model.h"
#include "deflate/deflate_trees.h"

/* A chance of 1 that learns: 22 bits of it, then how many bits it has seen. */
typedef uint32_t adaptive;

#define BREAKS_MAX 65536u
#define NO_TOKEN UINT32_MAX /* what was read is none */
#define STEPS_A_BYTE 512u   /* candidates that may be looked at: what takes longer stays closed */
#define STEPS_SLACK (1u << 22)
#define ASK_STEPS 256u /* tokens from one look at them to the next */

#define SEEN_BITS 10u
#define SEEN_MAX 127u
#define NUMBER_BITS 33u
#define CLASSES 5u /* of predictions: a literal, one before a later match, matches by length */
#define HISTORY 8u /* of the last three predictions */

/* Numbers by their length in bits, then their highest bits. */
typedef struct number_chances {
  adaptive length[NUMBER_BITS];
  adaptive high[NUMBER_BITS][8];
} number_chances;

typedef struct glyd_deflate_chances {
  adaptive is_right[HISTORY][CLASSES];
  adaptive is_literal[CLASSES], is_match_before, same_length[CLASSES], length[CLASSES][256];
  number_chances rank[2], distance;
  adaptive same_settings, settings[5][16];
  adaptive is_stored[2], is_last[2], by_rule, is_fixed[2], padding[2], is_cut;
  adaptive same_lengths, same_length_of[17], code_length[16], same_count[3], count[3][32];
  adaptive same_item[2], item[32], extra, same_header_codes, header_code[8];
  number_chances tokens, stored, gap, content, n_breaks, break_size;
  adaptive is_broken, same_break;
} glyd_deflate_chances;

static void begin_chances(glyd_deflate_chances *chances) {
  adaptive *const all = (adaptive *)chances;
  for (size_t i = 0; i < sizeof *chances / sizeof(adaptive); i++) all[i] = 1u << 31;
}

_Static_assert(sizeof(glyd_deflate_chances) % sizeof(adaptive) == 0, "nothing but chances");

/* Learns fast at first: its 1/(n + 1.5)th part. */
GLYD_INLINE uint32_t code_adaptive(coder *c, adaptive *a, uint32_t bit) {
  const uint32_t p = *a >> SEEN_BITS, seen = *a & ((1u << SEEN_BITS) - 1);
  uint32_t chance = p >> 6;
  if (chance == 0) chance = 1;
  bit = code_bit(c, chance, bit);
  const uint32_t rate = 2 * seen + 3; /* the part is 2 / rate */
  const uint32_t next = bit ? p + (((1u << 22) - 1 - p) * 2) / rate : p - p * 2 / rate;
  *a = next << SEEN_BITS | (seen < SEEN_MAX ? seen + 1 : seen);
  return bit;
}

static uint32_t code_plain(coder *c, unsigned bits, uint32_t v) {
  uint32_t r = 0;
  for (unsigned i = bits; i-- > 0;) r = r << 1 | code_bit(c, 1u << 15, v >> i & 1);
  return r;
}

/* A value of so many bits, highest first; tree has 2^bits chances. */
static uint32_t code_tree(coder *c, adaptive *tree, unsigned bits, uint32_t v) {
  uint32_t node = 1;
  for (unsigned i = bits; i-- > 0;) node = node << 1 | code_adaptive(c, &tree[node], v >> i & 1);
  return node - (1u << bits);
}

/* Any number below 2^32 - 1. */
static uint32_t code_number(coder *c, number_chances *chances, uint32_t v) {
  const unsigned length = glyd_log2_32(v + 1);
  unsigned n = 0;
  while (n < 31 && code_adaptive(c, &chances->length[n], n < length)) n++;
  const unsigned high = n < 2 ? n : 2, low = n - high;
  uint32_t r = code_tree(c, chances->high[n], high, (v + 1) >> low & ((1u << high) - 1));
  r = 1u << high | r;
  return (r << low | code_plain(c, low, (v + 1) & ((1u << low) - 1))) - 1;
}

GLYD_INLINE unsigned class_of(const glyd_deflate_model *m, glyd_deflate_token predicted) {
  if (predicted < 256) return m->later ? 1 : 0;
  const uint32_t length = predicted >> 16;
  return length < 5 ? 2 : length < 9 ? 3 : 4;
}

/* A token that was not predicted, or NO_TOKEN. */
static GLYD_NOINLINE glyd_deflate_token code_other(coder *c, glyd_deflate_chances *h, glyd_deflate_model *m,
                                                   uint32_t at, glyd_deflate_token predicted, unsigned class,
                                                   glyd_deflate_token token) {
  if (predicted >= 256 && code_adaptive(c, &h->is_literal[class], token < 256)) return m->in[at];
  if (class == 1 && code_adaptive(c, &h->is_match_before, token == m->match)) return m->match;
  uint32_t length = token >> 16;
  const uint32_t expected = predicted >> 16;
  const int same = expected != 0 && code_adaptive(c, &h->same_length[class], length == expected);
  if (same)
    length = expected;
  else
    length = code_tree(c, h->length[class], 8, length - GLYD_DEFLATE_MATCH_MIN) + GLYD_DEFLATE_MATCH_MIN;
  if (length > m->n - at) return NO_TOKEN;
  const uint32_t given = IS_WRITING ? token & 0xFFFF : 1;
  uint32_t rank = 0;
  if (IS_WRITING) rank = glyd_deflate_model_rank(m, at, length, given) + 1; /* 0: not found */
  rank = code_number(c, &h->rank[same], rank);
  if (rank > 0) {
    const uint32_t distance = glyd_deflate_model_find(m, at, length, rank - 1);
    return distance ? length << 16 | distance : NO_TOKEN;
  }
  const uint32_t distance = code_number(c, &h->distance, given - 1) + 1;
  if (distance > at || distance > GLYD_DEFLATE_WINDOW) return NO_TOKEN;
  if (!IS_WRITING && memcmp(m->in + at, m->in + at - distance, length) != 0) return NO_TOKEN;
  return length << 16 | distance;
}

static void code_settings(coder *c, glyd_deflate_chances *h, glyd_deflate_settings *last,
                          glyd_deflate_settings *settings) {
  if (!code_adaptive(c, &h->same_settings, memcmp(last, settings, sizeof *last) == 0)) {
    last->level = (uint8_t)code_tree(c, h->settings[0], 4, settings->level);
    last->is_filtered = (uint8_t)code_tree(c, h->settings[1], 1, settings->is_filtered);
    last->memory = (uint8_t)code_tree(c, h->settings[2], 4, settings->memory);
    last->window_log = (uint8_t)code_tree(c, h->settings[3], 4, settings->window_log);
    last->is_gzip = (uint8_t)code_tree(c, h->settings[4], 1, settings->is_gzip);
  }
  *settings = *last;
}

GLYD_INLINE int settings_valid(const glyd_deflate_settings *s) {
  return s->level < GLYD_DEFLATE_LEVELS && s->memory >= 1 && s->memory <= 9 && s->window_log >= 9 &&
         s->window_log <= 15;
}

/* A count of 5 bits, mostly as predicted. */
static uint32_t code_count(coder *c, glyd_deflate_chances *h, unsigned which, uint32_t predicted, uint32_t v) {
  if (code_adaptive(c, &h->same_count[which], v == predicted)) return predicted;
  return code_tree(c, h->count[which], 5, v);
}

/* Lengths of one code, mostly those predicted (missing ones are 0). */
static void code_lengths(coder *c, glyd_deflate_chances *h, const uint8_t *predicted, unsigned n_predicted,
                         uint8_t *lengths, unsigned n) {
  int same = 1;
  for (unsigned i = 0; i < n; i++) same &= lengths[i] == (i < n_predicted ? predicted[i] : 0);
  same = (int)code_adaptive(c, &h->same_lengths, (uint32_t)same);
  for (unsigned i = 0; i < n; i++) {
    const uint8_t guess = i < n_predicted ? predicted[i] : 0;
    if (same || code_adaptive(c, &h->same_length_of[guess], lengths[i] == guess))
      lengths[i] = guess;
    else
      lengths[i] = (uint8_t)code_tree(c, h->code_length, 4, lengths[i]);
  }
}

/* The header of a dynamic block whose tokens are known; predicted: zlib's. 0: what was read is none. */
static int code_header(coder *c, glyd_deflate_chances *h, glyd_deflate_block *predicted, glyd_deflate_block *block) {
  block->n_litlens = 257 + code_count(c, h, 0, predicted->n_litlens - 257, block->n_litlens - 257);
  block->n_distances = 1 + code_count(c, h, 1, predicted->n_distances - 1, block->n_distances - 1);
  if (block->n_litlens > GLYD_DEFLATE_LITLENS || block->n_distances > GLYD_DEFLATE_DISTANCES) return 0;
  code_lengths(c, h, predicted->lengths, predicted->n_litlens, block->lengths, block->n_litlens);
  code_lengths(c, h, predicted->lengths + predicted->n_litlens, predicted->n_distances,
               block->lengths + block->n_litlens, block->n_distances);
  const unsigned n = block->n_litlens + block->n_distances;
  unsigned items = 0;
  for (unsigned i = 0; i < n; items++) {
    const unsigned in_first = i < block->n_litlens;
    const uint8_t *const part = block->lengths + (in_first ? 0 : block->n_litlens);
    const unsigned at = in_first ? i : i - block->n_litlens, size = in_first ? block->n_litlens : block->n_distances;
    const glyd_deflate_item guess = glyd_deflate_trees_item(part, at, size);
    glyd_deflate_item *const item = &block->items[items];
    if (code_adaptive(c, &h->same_item[guess.symbol >= 16],
                      item->symbol == guess.symbol && item->extra == guess.extra)) {
      *item = guess;
    } else {
      item->symbol = (uint8_t)code_tree(c, h->item, 5, item->symbol);
      item->extra = item->symbol < 16 ? 0 : (uint8_t)code_plain(c, 7, item->extra);
      if (item->symbol >= GLYD_DEFLATE_HEADER_CODES || item->extra >> glyd_deflate_item_bits(item->symbol)) return 0;
    }
    const unsigned repeats = glyd_deflate_trees_item_size(*item);
    if (repeats > n - i || (item->symbol == 16 && i == 0)) return 0;
    const uint8_t value = item->symbol < 16 ? item->symbol : item->symbol == 16 ? block->lengths[i - 1] : 0;
    for (unsigned k = 0; k < repeats; k++, i++)
      if (block->lengths[i] != value) return 0;
  }
  predicted->n_items = block->n_items = items;
  memcpy(predicted->items, block->items, items * sizeof *block->items);
  glyd_deflate_trees_item_codes(predicted);
  const int same = memcmp(predicted->header_lengths, block->header_lengths, sizeof block->header_lengths) == 0;
  if (code_adaptive(c, &h->same_header_codes, (uint32_t)same))
    memcpy(block->header_lengths, predicted->header_lengths, sizeof block->header_lengths);
  else
    for (unsigned i = 0; i < GLYD_DEFLATE_HEADER_CODES; i++)
      block->header_lengths[i] = (uint8_t)code_tree(c, h->header_code, 3, block->header_lengths[i]);
  unsigned used = GLYD_DEFLATE_HEADER_CODES;
  while (used > 4 && block->header_lengths[glyd_deflate_header_order[used - 1]] == 0) used--;
  block->n_header_codes = 4 + code_count(c, h, 2, used - 4, block->n_header_codes - 4);
  if (block->n_header_codes < used || block->n_header_codes > GLYD_DEFLATE_HEADER_CODES) return 0;
  for (unsigned i = 0; i < items; i++)
    if (block->header_lengths[block->items[i].symbol] == 0) return 0;
  return 1;
}

/* Has every symbol that occurs a code? */
static int codes_suffice(const glyd_deflate_counts *counts, const glyd_deflate_block *block) {
  for (unsigned i = 0; i < GLYD_DEFLATE_LITLENS; i++)
    if (counts->litlens[i] && (i >= block->n_litlens || block->lengths[i] == 0)) return 0;
  for (unsigned i = 0; i < GLYD_DEFLATE_DISTANCES; i++)
    if (counts->distances[i] && (i >= block->n_distances || block->lengths[block->n_litlens + i] == 0)) return 0;
  return 1;
}

/* Does a block end here by the rule? After so many tokens, and with the content. */
GLYD_INLINE int ends_by_rule(const glyd_deflate_settings *s, const glyd_deflate_token *tokens, uint32_t n,
                             uint64_t size, uint32_t left) {
  if (left == 0 || n >= glyd_deflate_model_block_tokens(s)) return 1;
  return s->is_gzip && n > 0 && glyd_deflate_model_block_ends(s, tokens, n, size);
}

/* The state of a stream being described. */
typedef struct state {
  glyd_deflate_chances *chances;
  glyd_deflate_model *model;
  glyd_deflate_token *tokens; /* of a block: room for GLYD_DEFLATE_TOKENS_MAX */
  uint32_t at;                /* place in the content */
  unsigned history;
} state;

/* Code the tokens of a block: block->n_tokens, or as many as the rule says. 0: what was read is none, or there was
 * too much to do. */
static int code_tokens(coder *c, state *s, int by_rule, glyd_deflate_block *block) {
  glyd_deflate_model *const m = s->model;
  glyd_deflate_chances *const h = s->chances;
  const uint32_t start = s->at;
  uint32_t i = 0;
  for (;; i++) {
    const uint32_t left = m->n - s->at;
    if (by_rule ? ends_by_rule(&m->settings, s->tokens, i, s->at - start, left) : i == block->n_tokens) break;
    if (left == 0 || i == GLYD_DEFLATE_TOKENS_MAX) return 0;
    if (i % ASK_STEPS == 0 && m->steps > (uint64_t)m->n * STEPS_A_BYTE + STEPS_SLACK) return 0;
    const glyd_deflate_token predicted = glyd_deflate_model_predict(m, s->at);
    const unsigned class = class_of(m, predicted);
    glyd_deflate_token token = IS_WRITING ? s->tokens[i] : 0;
    const uint32_t right = code_adaptive(c, &h->is_right[s->history][class], token == predicted);
    token = right ? predicted : code_other(c, h, m, s->at, predicted, class, token);
    if (token == NO_TOKEN) return 0;
    s->history = (s->history << 1 | (right ^ 1)) & (HISTORY - 1);
    glyd_deflate_model_accept(m, s->at, predicted, token);
    s->at += glyd_deflate_token_size(token);
    s->tokens[i] = token;
  }
  block->n_tokens = i;
  return 1;
}

/* Code a block of the content from s->at on; writing: all of it is known. is_cut: the stream is cut off after a
 * block that is not its last. 0 as above. */
static int code_block(coder *c, state *s, glyd_deflate_block *block, glyd_deflate_block *predicted, int by_rule) {
  glyd_deflate_model *const m = s->model;
  glyd_deflate_chances *const h = s->chances;
  const uint32_t left = m->n - s->at;
  const int is_stored = block->type == GLYD_DEFLATE_STORED;
  if (code_adaptive(c, &h->is_stored[left == 0], (uint32_t)is_stored)) {
    block->type = GLYD_DEFLATE_STORED;
    block->n_tokens = code_number(c, &h->stored, block->n_tokens);
    if (block->n_tokens > left || block->n_tokens > 0xFFFF) return 0;
    block->padding = code_adaptive(c, &h->padding[0], block->padding != 0) ? code_plain(c, 7, block->padding) : 0;
    s->at += block->n_tokens;
    glyd_deflate_model_skip(m);
  } else {
    by_rule = (int)code_adaptive(c, &h->by_rule, (uint32_t)by_rule);
    if (!by_rule) block->n_tokens = code_number(c, &h->tokens, block->n_tokens);
    if (!code_tokens(c, s, by_rule, block)) return 0;
    glyd_deflate_counts counts;
    glyd_deflate_trees_count(s->tokens, block->n_tokens, &counts);
    glyd_deflate_trees_header(&counts, predicted);
    const int fixed = glyd_deflate_trees_type(&counts, predicted, UINT32_MAX) == GLYD_DEFLATE_FIXED;
    const uint32_t is_fixed = code_adaptive(c, &h->is_fixed[fixed], block->type == GLYD_DEFLATE_FIXED);
    block->type = is_fixed ? GLYD_DEFLATE_FIXED : GLYD_DEFLATE_DYNAMIC;
    if (!is_fixed && (!code_header(c, h, predicted, block) || !codes_suffice(&counts, block))) return 0;
  }
  block->is_last = code_adaptive(c, &h->is_last[s->at == m->n], block->is_last);
  return 1;
}

/* What comes before a stream's blocks. Writing: given. */
typedef struct opening {
  uint32_t gap, content_size, n_breaks;
  glyd_deflate_settings settings;
} opening;

static void code_opening(coder *c, glyd_deflate_chances *h, glyd_deflate_settings *last, opening *o) {
  o->gap = code_number(c, &h->gap, o->gap);
  o->content_size = code_number(c, &h->content, o->content_size);
  o->n_breaks = code_adaptive(c, &h->is_broken, o->n_breaks != 0) ? code_number(c, &h->n_breaks, o->n_breaks) : 0;
  code_settings(c, h, last, &o->settings);
}

static uint32_t code_break(coder *c, glyd_deflate_chances *h, uint32_t last, uint32_t size) {
  return code_adaptive(c, &h->same_break, size == last) ? last : code_number(c, &h->break_size, size);
}

/* After a block that is not the last, with no content left: is the stream cut off? */
static int code_is_cut(coder *c, glyd_deflate_chances *h, int is_cut) {
  return (int)code_adaptive(c, &h->is_cut, (uint32_t)is_cut);
}

/* The bits of the last byte that the stream does not use. */
static uint32_t code_padding(coder *c, glyd_deflate_chances *h, uint32_t padding) {
  return code_adaptive(c, &h->padding[1], padding != 0) ? code_plain(c, 7, padding) : 0;
}
