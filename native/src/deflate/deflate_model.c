/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "deflate/deflate_model.h"

#define LOOKAHEAD_MIN (GLYD_DEFLATE_MATCH_MAX + GLYD_DEFLATE_MATCH_MIN + 1)
#define FEW 4096u          /* positions that are cleared one by one */
#define TOO_FAR 4096u      /* a match of 3 bytes is not taken from further away */
#define GZIP_TOKENS 32767u /* a block of the gzip program */
#define GZIP_ASKS 4096u    /* tokens from one question to the next whether to end it */
#define LAZY_FROM_LEVEL 4u /* levels below take the first match */
#define RANK_MAX 256u      /* candidates of a rank */

static const struct {
  uint16_t good, lazy, nice, chain;
} levels[10] = {{0, 0, 0, 0},    {4, 4, 8, 4},      {4, 5, 16, 8},     {4, 6, 32, 32},       {4, 4, 16, 16},
                {8, 16, 32, 32}, {8, 16, 128, 128}, {8, 32, 128, 256}, {32, 128, 258, 1024}, {32, 258, 258, 4096}};

void glyd_deflate_model_init(glyd_deflate_model *m) { memset(m->head, 0, sizeof m->head); }

void glyd_deflate_model_begin(glyd_deflate_model *m, const glyd_deflate_settings *settings, const uint8_t *in,
                              uint32_t n) {
  m->settings = *settings;
  m->in = in;
  m->n = n;
  const unsigned level = settings->level < 10 ? settings->level : 0, hash_log = settings->memory + 7u;
  m->good = levels[level].good;
  m->lazy = levels[level].lazy;
  m->nice = levels[level].nice;
  m->chain = levels[level].chain;
  m->hash_shift = (hash_log + GLYD_DEFLATE_MATCH_MIN - 1) / GLYD_DEFLATE_MATCH_MIN;
  m->hash_mask = (1u << hash_log) - 1;
  m->window_mask = (1u << settings->window_log) - 1;
  m->reach = (1u << settings->window_log) - LOOKAHEAD_MIN;
  m->inserted = 0;
  m->has_match = 0;
  m->match = m->later = 0;
  m->steps = 0;
}

GLYD_INLINE uint32_t hash_of(const glyd_deflate_model *m, uint32_t at) {
  const uint8_t *const p = m->in + at;
  return ((uint32_t)p[0] << 2 * m->hash_shift ^ (uint32_t)p[1] << m->hash_shift ^ (uint32_t)p[2]) & m->hash_mask;
}

void glyd_deflate_model_end(glyd_deflate_model *m) {
  if (m->inserted > FEW) {
    memset(m->head, 0, ((size_t)m->hash_mask + 1) * sizeof *m->head);
    return;
  }
  for (uint32_t i = 0; i < m->inserted && i + GLYD_DEFLATE_MATCH_MIN <= m->n; i++) m->head[hash_of(m, i)] = 0;
}

/* Insert all positions up to at, which has 3 bytes. */
GLYD_INLINE void insert(glyd_deflate_model *m, uint32_t at) {
  for (; m->inserted <= at; m->inserted++) {
    const uint32_t hash = hash_of(m, m->inserted);
    m->before[m->inserted & m->window_mask] = m->head[hash];
    m->head[hash] = m->inserted;
  }
}

GLYD_INLINE uint32_t match_length(const uint8_t *a, const uint8_t *b, uint32_t most) {
  uint32_t n = 0;
  while (n + 8 <= most) {
    const uint64_t differ = glyd_load64(a + n) ^ glyd_load64(b + n);
    if (differ) return n + (glyd_ctz64(differ) >> 3);
    n += 8;
  }
  while (n < most && a[n] == b[n]) n++;
  return n;
}

/* The first of the longest matches longer than `longer`, or 0. */
static glyd_deflate_token search(glyd_deflate_model *m, uint32_t at, uint32_t longer) {
  const uint32_t left = m->n - at, most = left < GLYD_DEFLATE_MATCH_MAX ? left : GLYD_DEFLATE_MATCH_MAX;
  if (left < GLYD_DEFLATE_MATCH_MIN) return 0;
  insert(m, at);
  uint32_t candidate = m->before[at & m->window_mask];
  if (candidate == 0 || at - candidate > m->reach || longer >= most) return 0;
  const uint32_t limit = at > m->reach ? at - m->reach : 0, nice = m->nice < left ? m->nice : left;
  const uint8_t *const here = m->in + at;
  uint32_t chain = longer >= m->good ? m->chain >> 2 : m->chain, best = longer, where = 0;
  uint16_t start = glyd_load16(here), end = glyd_load16(here + best - 1);
  const uint32_t chain_before = chain;
  do {
    const uint8_t *const there = m->in + candidate;
    if (glyd_load16(there + best - 1) != end || glyd_load16(there) != start) continue;
    const uint32_t length = match_length(here, there, most);
    if (length <= best) continue;
    where = candidate;
    best = length;
    if (length >= nice || length == most) break;
    end = glyd_load16(here + best - 1);
  } while ((candidate = m->before[candidate & m->window_mask]) > limit && --chain != 0);
  m->steps += chain_before - chain + 1;
  if (where == 0 || best < GLYD_DEFLATE_MATCH_MIN) return 0;
  const uint32_t distance = at - where;
  if (m->settings.level >= LAZY_FROM_LEVEL &&
      ((best <= 5 && m->settings.is_filtered) || (best == GLYD_DEFLATE_MATCH_MIN && distance > TOO_FAR)))
    return 0;
  return best << 16 | distance;
}

static glyd_deflate_token find_run(const glyd_deflate_model *m, uint32_t at) {
  const uint32_t left = m->n - at;
  if (at == 0 || left < GLYD_DEFLATE_MATCH_MIN) return 0;
  const uint32_t n =
      match_length(m->in + at, m->in + at - 1, left < GLYD_DEFLATE_MATCH_MAX ? left : GLYD_DEFLATE_MATCH_MAX);
  return n >= GLYD_DEFLATE_MATCH_MIN ? n << 16 | 1 : 0;
}

glyd_deflate_token glyd_deflate_model_predict(glyd_deflate_model *m, uint32_t at) {
  const glyd_deflate_token literal = m->in[at];
  const unsigned level = m->settings.level;
  m->later = 0;
  if (level == GLYD_DEFLATE_LITERALS) return literal;
  if (level == GLYD_DEFLATE_RUNS) {
    const glyd_deflate_token run = find_run(m, at);
    return run ? run : literal;
  }
  if (!m->has_match) m->match = search(m, at, GLYD_DEFLATE_MATCH_MIN - 1);
  m->has_match = 0;
  if (m->match == 0) return literal;
  const uint32_t length = m->match >> 16;
  if (level < LAZY_FROM_LEVEL || length >= m->lazy || at + 1 == m->n) return m->match;
  m->later = search(m, at + 1, length);
  return m->later ? literal : m->match;
}

void glyd_deflate_model_accept(glyd_deflate_model *m, uint32_t at, glyd_deflate_token predicted,
                               glyd_deflate_token token) {
  const unsigned level = m->settings.level;
  if (level == GLYD_DEFLATE_LITERALS || level == GLYD_DEFLATE_RUNS) return;
  if (token < 256) {
    m->has_match = predicted == token && m->later != 0;
    m->match = m->later;
    return;
  }
  m->has_match = 0;
  /* The fast levels do not look into longer matches. */
  if (level < LAZY_FROM_LEVEL && token >> 16 > m->lazy && m->inserted < at + (token >> 16))
    m->inserted = at + (token >> 16);
}

void glyd_deflate_model_skip(glyd_deflate_model *m) { m->has_match = 0; }

/* The next candidate from `candidate` on (0: from the nearest) with so long a match, or 0. */
static uint32_t next_of(glyd_deflate_model *m, uint32_t at, uint32_t length, uint32_t candidate) {
  const uint32_t limit = at > m->reach ? at - m->reach : 0;
  candidate = candidate ? m->before[candidate & m->window_mask] : m->before[at & m->window_mask];
  for (uint32_t i = 0; candidate > limit && i < RANK_MAX; i++) {
    m->steps++;
    if (match_length(m->in + at, m->in + candidate, length) == length) return candidate;
    candidate = m->before[candidate & m->window_mask];
  }
  return 0;
}

static int has_candidates(glyd_deflate_model *m, uint32_t at, uint32_t length) {
  const unsigned level = m->settings.level;
  if (level == GLYD_DEFLATE_LITERALS || level == GLYD_DEFLATE_RUNS || m->n - at < length) return 0;
  if (m->inserted <= at) insert(m, at);
  return 1;
}

uint32_t glyd_deflate_model_find(glyd_deflate_model *m, uint32_t at, uint32_t length, uint32_t k) {
  if (!has_candidates(m, at, length)) return 0;
  uint32_t candidate = 0;
  for (uint32_t i = 0; i <= k && i < RANK_MAX; i++)
    if ((candidate = next_of(m, at, length, candidate)) == 0) return 0;
  return k < RANK_MAX ? at - candidate : 0;
}

uint32_t glyd_deflate_model_rank(glyd_deflate_model *m, uint32_t at, uint32_t length, uint32_t distance) {
  if (!has_candidates(m, at, length)) return UINT32_MAX;
  uint32_t candidate = 0;
  for (uint32_t i = 0; i < RANK_MAX; i++) {
    candidate = next_of(m, at, length, candidate);
    if (candidate == 0 || at - candidate > distance) return UINT32_MAX;
    if (at - candidate == distance) return i;
  }
  return UINT32_MAX;
}

uint32_t glyd_deflate_model_block_tokens(const glyd_deflate_settings *settings) {
  return settings->is_gzip ? GZIP_TOKENS : (1u << (settings->memory + 6)) - 1;
}

int glyd_deflate_model_block_ends(const glyd_deflate_settings *settings, const glyd_deflate_token *tokens, uint32_t n,
                                  uint64_t size) {
  if (!settings->is_gzip || settings->level <= 2 || n % GZIP_ASKS != 0) return 0;
  uint64_t bits = (uint64_t)n * 8;
  uint32_t matches = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (tokens[i] < 256) continue;
    unsigned extra_bits;
    uint32_t extra;
    (void)glyd_deflate_distance_code(tokens[i] & 0xFFFF, &extra_bits, &extra);
    bits += 5 + extra_bits;
    matches++;
  }
  return matches < n / 2 && bits >> 3 < size / 2;
}
