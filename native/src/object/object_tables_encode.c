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

/* A table for these counts: what is rare goes by the escape. */
static void put_table(uint8_t *out, const uint32_t counts[256]) {
  uint32_t scaled[256], total = 0;
  unsigned shift = 0;
  for (unsigned s = 0; s < 256; s++) total += counts[s];
  while (total >> shift > TOTAL_MAX) shift++;
  const uint32_t least = 1 + (total >> shift >> 12);
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
  uint8_t length[256];
  glyd_huffman_make_lengths(scaled, length);
  out[0] = (uint8_t)escape;
  for (unsigned i = 0; i < 128; i++) out[1 + i] = (uint8_t)(length[2 * i] | length[2 * i + 1] << 4);
}

/* The most frequent match lengths, ascending, filled up with short ones. */
static void put_lengths(uint8_t *out, const uint32_t lengths[256]) {
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

size_t glyd_object_tables_write(uint8_t *out, const uint8_t *content, uint32_t size, glyd_object_counts *counts) {
  static const uint32_t alike[256] = {0};
  uint8_t context[256] = {0};
  uint32_t sums[GLYD_OBJECT_CONTEXTS][256];
  uint32_t even[256];
  for (unsigned s = 0; s < 256; s++) even[s] = 1;
  const unsigned contexts = counts ? choose_contexts((const uint32_t(*)[256])counts->literals, context, sums) : 1;
  glyd_store32(out, GLYD_DICTIONARY_MAGIC);
  out[4] = GLYD_DICTIONARY_VERSION;
  out[5] = (uint8_t)contexts;
  out[6] = out[7] = 0;
  glyd_store32(out + 8, size);
  put_lengths(out + 12, counts ? counts->lengths : alike);
  for (unsigned i = 0; i < 128; i++) out[27 + i] = (uint8_t)(context[2 * i] | context[2 * i + 1] << 4);
  uint8_t *p = out + GLYD_DICTIONARY_TABLES_AT;
  for (unsigned t = 0; t < contexts + 4; t++, p += GLYD_DICTIONARY_TABLE)
    put_table(p, !counts ? even : t < contexts ? sums[t] : counts->symbols[t - contexts]);
  if (size > 0) memcpy(p, content, size);
  p += size;
  glyd_store32(p, (uint32_t)glyd_checksum_xxh3(glyd_cpu_features(), out, (size_t)(p - out)));
  return (size_t)(p - out) + 4;
}
