/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "block/block_coded_price_encode.h"

#include "huffman/huffman_encode.h"

#define TABLE_ALWAYS 128 /* sequences from which a fine block has a match-length table */

int glyd_coded_choose_lengths(const glyd_sequence *seqs, size_t n, int fine, uint8_t lengths[GLYD_CODED_LENGTHS]) {
  const unsigned first = fine ? GLYD_CODED_FINE_LENGTH : GLYD_CODED_MATCH_MIN;
  const unsigned match_min = fine ? GLYD_CODED_FINE_MATCH_MIN : GLYD_CODED_MATCH_MIN;
  uint32_t counts[256];
  memset(counts, 0, sizeof counts);
  for (size_t i = 0; i < n; i++) counts[seqs[i].length < GLYD_CODED_LONG ? seqs[i].length : GLYD_CODED_LONG]++;
  uint32_t escapes = 0, covered = 0;
  for (unsigned l = first + GLYD_CODED_LENGTHS; l <= GLYD_CODED_LONG; l++) escapes += counts[l];
  /* Two bytes need a table; in blocks of some size it costs nothing, and lets the next parse have them. */
  const int needed = fine && (counts[GLYD_CODED_FINE_MATCH_MIN] != 0 || n >= TABLE_ALWAYS);
  if (!needed && escapes <= (uint32_t)n / 32 + 32) return 0;
  /* keys: count << 8 | (255 - length): of equal counts the shorter length */
  uint32_t top[GLYD_CODED_LENGTHS];
  memset(top, 0, sizeof top);
  for (unsigned l = match_min; l < GLYD_CODED_LONG; l++) {
    uint32_t key = counts[l] << 8 | (255 - l);
    unsigned k = GLYD_CODED_LENGTHS;
    if (key <= top[k - 1]) continue;
    for (k--; k > 0 && top[k - 1] < key; k--) top[k] = top[k - 1];
    top[k] = key;
  }
  for (unsigned k = 0; k < GLYD_CODED_LENGTHS; k++) covered += top[k] >> 8;
  if (!needed && (uint32_t)n - covered + (uint32_t)n / 32 + 32 >= escapes) return 0;
  unsigned k = 0;
  for (unsigned l = match_min; l < GLYD_CODED_LONG; l++) {
    uint32_t key = counts[l] << 8 | (255 - l);
    if (key >= top[GLYD_CODED_LENGTHS - 1]) lengths[k++] = (uint8_t)l;
  }
  return 1;
}

int glyd_coded_low_bytes_pay(const uint8_t *low, size_t n) {
  if (n < 256) return 0;
  uint32_t counts[256];
  glyd_huffman_count(low, n, counts);
  if (counts[low[0]] == n) return 1;
  uint8_t length[256];
  glyd_huffman_make_lengths(counts, length);
  size_t bits = 0;
  for (unsigned s = 0; s < 256; s++) bits += (size_t)counts[s] * length[s];
  return bits / 8 + 128 + n / 32 < n;
}
