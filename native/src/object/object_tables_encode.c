/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "object/object_tables_encode.h"

#include "common/checksum.h"
#include "common/cpu.h"
#include "huffman/huffman_encode.h"

#define TOTAL_MAX (1u << 19) /* counts are scaled to this sum at most */
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

/* Code lengths of at most bits, 4 bits each. */
static uint8_t *put_code(uint8_t *out, const uint32_t counts[256], unsigned bits) {
  uint8_t length[256];
  glyd_huffman_make_lengths_within(counts, length, bits);
  for (unsigned i = 0; i < GLYD_DICTIONARY_CODES; i++) *out++ = (uint8_t)(length[2 * i] | length[2 * i + 1] << 4);
  return out;
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
static uint8_t *put_table(uint8_t *out, const uint32_t counts[256], unsigned bits) {
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
  *out++ = (uint8_t)escape;
  return put_code(out, scaled, bits);
}

/* ---- steps ---------------------------------------------------------------- */

#define LONG_LITERALS 16 /* steps for single numbers of literals below this */
#define CLASSES 16       /* of lengths: 0, 1, 2, 3, then two for each power of 2 from 4 to 128 */
#define LONG_BITS 10     /* one more class of match lengths: 255 and more */

typedef struct step {
  glyd_object_step s;
  uint32_t count;
} step;

typedef struct step_list {
  step steps[GLYD_OBJECT_STEPS_MAX];
  unsigned n;
} step_list;

/* Put a step among the most frequent ones from at on, of which there are most. */
static void keep_step(step_list *list, unsigned at, unsigned most, step s) {
  if (most == 0) return;
  if (list->n == at + most) {
    if (s.count <= list->steps[list->n - 1].count) return;
    list->n--;
  }
  unsigned to = list->n++;
  for (; to > at && list->steps[to - 1].count < s.count; to--) list->steps[to] = list->steps[to - 1];
  list->steps[to] = s;
}

/* Sum of the counts that a step covers, of which none is left when they are taken. Lengths of 255 stand for any
 * from there on. */
static uint32_t sum_counts(glyd_object_counts *counts, const glyd_object_step *s, int take) {
  const uint32_t l_end = s->literals + (1u << s->literals_bits), m_end = s->length + (1u << s->length_bits);
  uint32_t sum = 0;
  for (uint32_t m = s->length; m < 256 && m < m_end; m++)
    for (uint32_t l = s->literals; l < 256 && l < l_end; l++) {
      if ((m == 255 && m_end < 1024) || (l == 255 && l_end < 1024)) continue;
      uint32_t *const count = &counts->steps[s->slot][m][l];
      sum += *count;
      if (take) *count = 0;
    }
  return sum;
}

/* First number of a class, and how many bits tell its numbers apart. */
static unsigned class_start(unsigned c, unsigned *bits) {
  *bits = c < 4 ? 0 : c / 2 - 1;
  return c < 4 ? c : (2 + c % 2) << (c / 2 - 1);
}

/* The most frequent steps of one kind: exact, of a class of match lengths, of
 * classes of both lengths. Their counts are taken. */
static void choose_kind(glyd_object_counts *counts, step_list *list, unsigned kind, unsigned most, uint32_t least) {
  const unsigned at = list->n;
  for (unsigned o = 0; o <= GLYD_OBJECT_REPEATS; o++)
    for (unsigned m = 0; m < (kind == 0 ? 255 - GLYD_OBJECT_MATCH_MIN : CLASSES + 1); m++)
      for (unsigned l = 0; l < (kind < 2 ? LONG_LITERALS : CLASSES); l++) {
        unsigned m_bits = 0, l_bits = 0;
        const unsigned m_start = kind == 0 ? m : class_start(m, &m_bits);
        const unsigned l_start = kind < 2 ? l : class_start(l, &l_bits);
        step s = {{(uint8_t)l_start, (uint8_t)(m_start + GLYD_OBJECT_MATCH_MIN), (uint8_t)l_bits, (uint8_t)m_bits,
                   (uint8_t)o},
                  0};
        if (kind > 0 && m == CLASSES) {
          s.s.length = 255;
          s.s.length_bits = LONG_BITS;
        }
        s.count = sum_counts(counts, &s.s, 0);
        if (s.count >= least) keep_step(list, at, most, s);
      }
  for (unsigned k = at; k < list->n; k++) (void)sum_counts(counts, &list->steps[k].s, 1);
}

/* Steps for whatever the others do not cover: bits of literals and of match lengths. */
static const uint8_t general[][2] = {{2, 4}, {4, 6}, {8, 8}, {16, 15}};
#define GENERAL (sizeof general / sizeof *general * (GLYD_OBJECT_REPEATS + 1))

/* At most so many steps for the counts, which do not survive: the most frequent
 * exact ones, then classes for what is left, then the general ones. */
static void choose_steps(glyd_object_counts *counts, step_list *list, unsigned most) {
  uint64_t total;
  uint32_t *const all = counts->steps[0][0];
  const unsigned shift = scale_of(all, sizeof counts->steps / sizeof *all, &total);
  const uint32_t least = 2 + (uint32_t)(total >> RARE);
  list->n = 0;
  most -= (unsigned)GENERAL;
  choose_kind(counts, list, 0, most * 5 / 8, least);
  choose_kind(counts, list, 1, (most - list->n) * 2 / 3, least);
  choose_kind(counts, list, 2, most - list->n, least);
  for (unsigned k = 0; k < sizeof general / sizeof *general; k++)
    for (unsigned o = 0; o <= GLYD_OBJECT_REPEATS; o++) {
      step s = {{0, GLYD_OBJECT_MATCH_MIN, general[k][0], general[k][1], (uint8_t)o}, 0};
      s.count = sum_counts(counts, &s.s, 1);
      list->steps[list->n++] = s;
    }
  for (unsigned k = 0; k < list->n; k++) list->steps[k].count >>= shift;
}

static uint8_t *put_steps(uint8_t *out, const step_list *list) {
  for (unsigned k = 0; k < list->n; k++) {
    const glyd_object_step *const s = &list->steps[k].s;
    *out++ = s->literals;
    *out++ = s->length;
    *out++ = s->literals_bits;
    *out++ = (uint8_t)(s->length_bits | s->slot << 5);
  }
  return out;
}

size_t glyd_object_tables_write(uint8_t *out, const uint8_t *content, uint32_t size, glyd_object_counts *counts,
                                unsigned most_steps, unsigned effort) {
  uint8_t context[256];
  uint32_t sums[GLYD_OBJECT_CONTEXTS][256], scaled[256] = {0};
  step_list steps;
  const unsigned contexts = choose_contexts((const uint32_t(*)[256])counts->literals, context, sums);
  choose_steps(counts, &steps, most_steps);
  glyd_store32(out, GLYD_DICTIONARY_MAGIC);
  out[4] = GLYD_DICTIONARY_VERSION;
  out[5] = (uint8_t)contexts;
  out[6] = (uint8_t)steps.n;
  out[7] = (uint8_t)effort;
  glyd_store32(out + 8, size);
  uint8_t *p = out + GLYD_DICTIONARY_CONTEXTS_AT;
  for (unsigned i = 0; i < 128; i++) *p++ = (uint8_t)(context[2 * i] | context[2 * i + 1] << 4);
  p = put_steps(p, &steps);
  for (unsigned t = 0; t < contexts; t++) p = put_table(p, sums[t], GLYD_OBJECT_LITERAL_BITS);
  p = put_table(p, counts->offsets, GLYD_OBJECT_BITS);
  for (unsigned k = 0; k < steps.n; k++) scaled[k] = steps.steps[k].count + 1; /* any has a code */
  p = put_code(p, scaled, GLYD_OBJECT_BITS);
  if (size > 0) memcpy(p, content, size);
  p += size;
  glyd_store32(p, (uint32_t)glyd_checksum_xxh3(glyd_cpu_features(), out, (size_t)(p - out)));
  return (size_t)(p - out) + 4;
}
