/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "object/object_tables_encode.h"

#include "common/checksum.h"
#include "common/cpu.h"
#include "huffman/huffman_encode.h"

#define TOTAL_MAX (1u << 19) /* counts are scaled to this sum at most */
#define LONGEST 10           /* bits of a code: larger tables leave the first cache */
#define ROUNDS 8             /* of assigning contexts */
#define COST_UNSEEN 16       /* bits of a symbol that a context has not seen */

/* log2 of v in 1/16, v from 1 on. */
static uint32_t log2_16(uint32_t v) {
  static const uint8_t fraction[16] = {0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 14, 15};
  const unsigned k = glyd_log2_32(v);
  return k * 16 + fraction[(k < 4 ? v << (4 - k) : v >> (k - 4)) & 15];
}

/* Bits a symbol costs in a context of these counts, in 1/16. */
static void costs(const uint32_t counts[256], uint8_t cost[256]) {
  uint32_t total = 0;
  for (unsigned s = 0; s < 256; s++) total += counts[s];
  for (unsigned s = 0; s < 256; s++) {
    const uint32_t bits = counts[s] != 0 ? log2_16(total) - log2_16(counts[s]) : COST_UNSEEN * 16 - 1;
    cost[s] = (uint8_t)(bits < COST_UNSEEN * 16 ? bits : COST_UNSEEN * 16 - 1);
  }
}

/* Deal the 256 bytes before a literal out to at most GLYD_OBJECT_CONTEXTS
 * contexts; returns how many. */
static unsigned choose_contexts(const uint32_t literals[256][256], uint8_t context[256],
                                uint32_t sums[GLYD_OBJECT_CONTEXTS][256]) {
  uint32_t total[256];
  for (unsigned b = 0; b < 256; b++) {
    total[b] = 0;
    for (unsigned s = 0; s < 256; s++) total[b] += literals[b][s];
    context[b] = 0;
  }
  /* The commonest bytes start a context each. */
  unsigned n = 0;
  for (; n < GLYD_OBJECT_CONTEXTS; n++) {
    unsigned best = 256;
    for (unsigned b = 0; b < 256; b++) {
      int taken = 0;
      for (unsigned k = 0; k < n; k++) taken |= memcmp(sums[k], literals[b], sizeof sums[k]) == 0;
      if (!taken && total[b] >= 256 && (best == 256 || total[b] > total[best])) best = b;
    }
    if (best == 256) break;
    memcpy(sums[n], literals[best], sizeof sums[n]);
  }
  if (n < 2) {
    memset(sums[0], 0, sizeof sums[0]);
    for (unsigned b = 0; b < 256; b++)
      for (unsigned s = 0; s < 256; s++) sums[0][s] += literals[b][s];
    return 1;
  }
  for (unsigned round = 0; round < ROUNDS; round++) {
    uint8_t cost[GLYD_OBJECT_CONTEXTS][256];
    for (unsigned k = 0; k < n; k++) costs(sums[k], cost[k]);
    memset(sums, 0, n * sizeof *sums);
    for (unsigned b = 0; b < 256; b++) {
      uint64_t least = UINT64_MAX;
      for (unsigned k = 0; k < n; k++) {
        uint64_t bits = 0;
        for (unsigned s = 0; s < 256; s++) bits += (uint64_t)literals[b][s] * cost[k][s];
        if (bits < least) {
          least = bits;
          context[b] = (uint8_t)k;
        }
      }
      for (unsigned s = 0; s < 256; s++) sums[context[b]][s] += literals[b][s];
    }
  }
  return n;
}

#define RARE 12 /* less than the total >> this is rare */

static void put_code(uint8_t *out, const uint32_t counts[256], unsigned escape) {
  uint8_t length[256];
  glyd_huffman_make_lengths_within(counts, length, LONGEST);
  out[0] = (uint8_t)escape;
  for (unsigned i = 0; i < 128; i++) out[1 + i] = (uint8_t)(length[2 * i] | length[2 * i + 1] << 4);
}

/* Bits to shift counts by. */
static unsigned scale_of(const uint32_t *counts, size_t n, uint64_t *total) {
  unsigned shift = 0;
  *total = 0;
  for (size_t s = 0; s < n; s++) *total += counts[s];
  while (*total >> shift > TOTAL_MAX) shift++;
  return shift;
}

/* A table for these counts: what is rare goes by the escape. */
static void put_table(uint8_t *out, const uint32_t counts[256]) {
  uint32_t scaled[256];
  uint64_t total;
  const unsigned shift = scale_of(counts, 256, &total);
  const uint32_t least = 1 + (uint32_t)(total >> shift >> RARE);
  uint32_t rest = 1;
  unsigned escape = 256, kept = 0;
  for (unsigned s = 0; s < 256; s++) {
    scaled[s] = counts[s] >> shift;
    if (scaled[s] < least) {
      rest += scaled[s];
      scaled[s] = 0;
      escape = s;
    }
    kept += scaled[s] != 0;
  }
  if (escape == 256) { /* every value is common: the least common one goes by itself */
    escape = 0;
    for (unsigned s = 1; s < 256; s++)
      if (scaled[s] < scaled[escape]) escape = s;
    kept--;
  }
  scaled[escape] = rest;
  if (kept == 0) scaled[(escape + 1) % 256] = 1; /* a code needs two symbols */
  put_code(out, scaled, escape);
}

typedef struct step {
  uint8_t literals, length, offset;
  uint32_t count;
} step;

/* Put a step among the most frequent ones, of which there are most. */
static unsigned keep_step(step *steps, unsigned n, unsigned most, step s) {
  if (n == most && (most == 0 || s.count <= steps[n - 1].count)) return n;
  unsigned at = n < most ? n++ : n - 1;
  for (; at > 0 && steps[at - 1].count < s.count; at--) steps[at] = steps[at - 1];
  steps[at] = s;
  return n;
}

#define OPEN_STEPS 40 /* at most, of any match length */

/* The most frequent steps, and their number. What they do not cover stays in
 * counts; escapes of match lengths that they need are added to lengths. */
static unsigned choose_steps(glyd_object_counts *counts, step steps[GLYD_OBJECT_STEPS_MAX], unsigned most,
                             uint32_t match_escapes[256], uint64_t *escaped) {
  uint64_t total;
  uint32_t *const all = counts->steps[0][0];
  (void)scale_of(all, sizeof counts->steps / sizeof *all, &total);
  const uint32_t least = 2 + (uint32_t)(total >> RARE);
  const unsigned most_open = most < 2 * OPEN_STEPS ? most / 2 : OPEN_STEPS;
  unsigned n = 0, closed;
  for (unsigned o = 0; o <= GLYD_OBJECT_REPEATS; o++)
    for (unsigned m = GLYD_OBJECT_MATCH_MIN; m < 255; m++)
      for (unsigned l = 0; l < GLYD_OBJECT_STEP_LITERALS; l++)
        if (counts->steps[o][m][l] >= least)
          n = keep_step(steps, n, most - most_open, (step){(uint8_t)l, (uint8_t)m, (uint8_t)o, counts->steps[o][m][l]});
  for (closed = 0; closed < n; closed++)
    counts->steps[steps[closed].offset][steps[closed].length][steps[closed].literals] = 0;
  for (unsigned o = 0; o <= GLYD_OBJECT_REPEATS; o++)
    for (unsigned l = 0; l < GLYD_OBJECT_STEP_LITERALS; l++) {
      uint32_t sum = 0;
      for (unsigned m = GLYD_OBJECT_MATCH_MIN; m < 256; m++) sum += counts->steps[o][m][l];
      if (sum >= least)
        n = closed + keep_step(steps + closed, n - closed, most_open, (step){(uint8_t)l, 0, (uint8_t)o, sum});
    }
  for (unsigned k = closed; k < n; k++)
    for (unsigned m = GLYD_OBJECT_MATCH_MIN; m < 256; m++) {
      uint32_t *const count = &counts->steps[steps[k].offset][m][steps[k].literals];
      match_escapes[m < 255 ? m - GLYD_OBJECT_MATCH_MIN : 255] += *count;
      *count = 0;
    }
  (void)scale_of(all, sizeof counts->steps / sizeof *all, escaped);
  return n;
}

/* The most frequent match lengths, ascending, filled up with short ones. */
static void put_lengths(uint8_t *out, const uint64_t lengths[256]) {
  uint8_t chosen[256] = {0};
  for (unsigned k = 0; k < GLYD_OBJECT_LENGTHS; k++) {
    unsigned best = 0;
    for (unsigned l = GLYD_OBJECT_MATCH_MIN; l < 255; l++)
      if (!chosen[l] && (best == 0 || lengths[l] > lengths[best])) best = l;
    chosen[best] = 1;
  }
  for (unsigned l = 0; l < 255; l++)
    if (chosen[l]) *out++ = (uint8_t)l;
}

/* Counts of commands and of both escapes for the sequences that are no steps. */
static void count_commands(const glyd_object_counts *counts, const uint8_t lengths[GLYD_OBJECT_LENGTHS],
                           uint32_t symbols[3][256]) {
  uint8_t code_of[256];
  memset(code_of, GLYD_OBJECT_LENGTHS, sizeof code_of);
  for (unsigned c = 0; c < GLYD_OBJECT_LENGTHS; c++) code_of[lengths[c]] = (uint8_t)c;
  for (unsigned o = 0; o <= GLYD_OBJECT_REPEATS; o++)
    for (unsigned m = GLYD_OBJECT_MATCH_MIN; m < 256; m++)
      for (unsigned l = 0; l < 256; l++) {
        const uint32_t n = counts->steps[o][m][l];
        const unsigned few = l < GLYD_OBJECT_LITERALS_ESCAPE ? l : GLYD_OBJECT_LITERALS_ESCAPE;
        symbols[GLYD_OBJECT_COMMANDS][o << 6 | (unsigned)code_of[m] << 2 | few] += n;
        if (few == GLYD_OBJECT_LITERALS_ESCAPE) symbols[GLYD_OBJECT_LITERAL_ESCAPES][l < 255 ? l - few : 255] += n;
        if (code_of[m] == GLYD_OBJECT_LENGTHS)
          symbols[GLYD_OBJECT_MATCH_ESCAPES][m < 255 ? m - GLYD_OBJECT_MATCH_MIN : 255] += n;
      }
}

size_t glyd_object_tables_write(uint8_t *out, const uint8_t *content, uint32_t size, glyd_object_counts *counts,
                                unsigned most_steps, unsigned lazy_below) {
  uint8_t context[256] = {0};
  uint32_t sums[GLYD_OBJECT_CONTEXTS][256], symbols[4][256];
  uint64_t lengths[256] = {0}, escaped = 0;
  step steps[GLYD_OBJECT_STEPS_MAX];
  unsigned contexts = 1, n_steps = 0;
  if (counts) {
    contexts = choose_contexts((const uint32_t(*)[256])counts->literals, context, sums);
    memset(symbols, 0, sizeof symbols);
    n_steps = choose_steps(counts, steps, most_steps, symbols[GLYD_OBJECT_MATCH_ESCAPES], &escaped);
    for (unsigned o = 0; o <= GLYD_OBJECT_REPEATS; o++)
      for (unsigned m = 0; m < 256; m++)
        for (unsigned l = 0; l < 256; l++) lengths[m] += counts->steps[o][m][l];
    memcpy(symbols[GLYD_OBJECT_OFFSETS], counts->offsets, sizeof counts->offsets);
  } else { /* any symbols alike */
    for (unsigned s = 0; s < 256; s++) sums[0][s] = symbols[0][s] = symbols[1][s] = symbols[2][s] = symbols[3][s] = 1;
  }
  glyd_store32(out, GLYD_DICTIONARY_MAGIC);
  out[4] = GLYD_DICTIONARY_VERSION;
  out[5] = (uint8_t)contexts;
  out[6] = (uint8_t)n_steps;
  out[7] = (uint8_t)lazy_below;
  glyd_store32(out + 8, size);
  put_lengths(out + 12, lengths);
  if (counts) count_commands(counts, out + 12, symbols);
  for (unsigned i = 0; i < 128; i++) out[27 + i] = (uint8_t)(context[2 * i] | context[2 * i + 1] << 4);
  uint8_t *p = out + GLYD_DICTIONARY_TABLES_AT;
  for (unsigned s = 0; s < n_steps; s++) {
    *p++ = steps[s].literals;
    *p++ = steps[s].length;
    *p++ = steps[s].offset;
  }
  for (unsigned t = 0; t < contexts + 4; t++, p += GLYD_DICTIONARY_TABLE)
    put_table(p, t < contexts ? sums[t] : symbols[t - contexts]);
  if (n_steps != 0) {
    uint32_t scaled[256] = {0};
    uint64_t total = escaped;
    unsigned shift = 0;
    for (unsigned s = 0; s < n_steps; s++) total += steps[s].count;
    while (total >> shift > TOTAL_MAX) shift++;
    for (unsigned s = 0; s < n_steps; s++) scaled[s] = steps[s].count >> shift;
    scaled[GLYD_OBJECT_STEPS_MAX] = (uint32_t)(escaped >> shift) + 1;
    put_code(p, scaled, GLYD_OBJECT_STEPS_MAX);
    p += GLYD_DICTIONARY_TABLE;
  }
  if (size > 0) memcpy(p, content, size);
  p += size;
  glyd_store32(p, (uint32_t)glyd_checksum_xxh3(glyd_cpu_features(), out, (size_t)(p - out)));
  return (size_t)(p - out) + 4;
}
