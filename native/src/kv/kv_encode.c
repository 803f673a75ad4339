/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A page, a strip of 16 channels at a time, channel by channel.
 */
#include "kv/kv_encode.h"

static const uint8_t costs[GLYD_KV_DISTANCES] = GLYD_KV_COSTS;

size_t glyd_kv_encode_bound(uint32_t channels) {
  return glyd_kv_channels_check(channels) ? GLYD_KV_PLAIN_SIZE(channels) : 0;
}

static void write_header(uint8_t *out, int form, uint32_t channels, uint32_t size, uint32_t n_exceptions) {
  glyd_store16(out + GLYD_KV_AT_MAGIC, GLYD_KV_MAGIC);
  out[GLYD_KV_AT_VERSION] = GLYD_KV_VERSION;
  out[GLYD_KV_AT_FORM] = (uint8_t)form;
  glyd_store16(out + GLYD_KV_AT_CHANNELS, (uint16_t)channels);
  glyd_store16(out + GLYD_KV_AT_TOKENS, GLYD_KV_TOKENS);
  glyd_store32(out + GLYD_KV_AT_SIZE, size);
  glyd_store32(out + GLYD_KV_AT_EXCEPTIONS, n_exceptions);
}

static size_t write_plain(uint8_t *out, const uint8_t *in, uint32_t channels, size_t stride) {
  const uint32_t size = GLYD_KV_PLAIN_SIZE(channels);
  memset(out + GLYD_KV_AT_ENDS, 0, GLYD_KV_HEADER - GLYD_KV_AT_ENDS);
  write_header(out, GLYD_KV_PLAIN, channels, size, 0);
  uint8_t *to = out + GLYD_KV_HEADER;
  for (unsigned t = 0; t < GLYD_KV_TOKENS; t++, to += 2 * channels) memcpy(to, in + 2 * t * stride, 2 * channels);
  memset(to, 0, size - (size_t)(to - out));
  return size;
}

/* Columns of a strip as rows. */
static void transpose(uint16_t *rows, const uint8_t *in, size_t stride) {
  for (unsigned t = 0; t < GLYD_KV_TOKENS; t++)
    for (unsigned c = 0; c < GLYD_KV_CHANNELS_STEP; c++)
      rows[c * GLYD_KV_TOKENS + t] = glyd_load16(in + 2 * (t * stride + c));
}

/* What a base costs, near enough, from how many values have each exponent; GLYD_KV_WEIGHTS, by distance. */
static unsigned weigh(const uint8_t counts[256], unsigned base) {
  unsigned sum = 15 * GLYD_KV_TOKENS;
  for (unsigned d = 0; d < 15; d++)
    sum -= (15 - ((unsigned)(GLYD_KV_WEIGHTS >> 4 * d) & 15)) * counts[base + GLYD_KV_ABOVE - d];
  return sum;
}

/* Base of a channel: from the mean exponent on, up or else down as long as that costs less; 0 when all of it is zero. */
static unsigned base_of(const uint16_t *row, uint8_t counts[256]) {
  unsigned sum = 0;
  uint16_t any = 0;
  memset(counts, 0, 256);
  for (unsigned t = 0; t < GLYD_KV_TOKENS; t++) {
    const unsigned exponent = row[t] >> 7 & 0xFF;
    counts[exponent]++;
    sum += exponent;
    any |= row[t] & 0x7FFF;
  }
  if (any == 0) return 0;
  const unsigned mean = sum / GLYD_KV_TOKENS;
  unsigned base = mean < GLYD_KV_BASE_MIN ? GLYD_KV_BASE_MIN : mean > GLYD_KV_BASE_MAX ? GLYD_KV_BASE_MAX : mean;
  unsigned least = weigh(counts, base);
  for (int step = 1; step >= -1; step -= 2) {
    const unsigned from = base;
    for (;;) {
      const unsigned next = base + (unsigned)step;
      if (next < GLYD_KV_BASE_MIN || next > GLYD_KV_BASE_MAX) break;
      const unsigned cost = weigh(counts, next);
      if (cost >= least) break;
      base = next, least = cost;
    }
    if (base != from) break;
  }
  return base;
}

/* ranks[i][room][d]: quads whose first i distances are given, whose others may cost `room`, and whose next is less than
 * d. So a quad's code is a sum of four. */
static void fill_ranks(uint16_t ranks[4][GLYD_KV_COST_LIMIT + 1][GLYD_KV_DISTANCES]) {
  uint16_t ways[GLYD_KV_COST_LIMIT + 1]; /* of the distances after the next one, by what they may cost */
  for (unsigned room = 0; room <= GLYD_KV_COST_LIMIT; room++) ways[room] = 1;
  for (unsigned i = 4; i-- > 0;) {
    uint16_t all[GLYD_KV_COST_LIMIT + 1];
    for (unsigned room = 0; room <= GLYD_KV_COST_LIMIT; room++) {
      unsigned n = 0;
      for (unsigned d = 0; d < GLYD_KV_DISTANCES; d++) {
        ranks[i][room][d] = (uint16_t)n;
        if (costs[d] <= room) n += ways[room - costs[d]];
      }
      all[room] = (uint16_t)n;
    }
    memcpy(ways, all, sizeof ways);
  }
}

/* Code of a quad; distances that no code has with the others become the commonest one, the costliest first, and are
 * marked with a bit each. Distances past the last are costlier than all. */
static unsigned code_of(const uint16_t ranks[4][GLYD_KV_COST_LIMIT + 1][GLYD_KV_DISTANCES], const uint16_t *values,
                        unsigned base, unsigned *replaced) {
  unsigned d[4];
  unsigned cost[4];
  unsigned sum = 0;
  *replaced = 0;
  for (unsigned i = 0; i < 4; i++) {
    d[i] = base + GLYD_KV_ABOVE - (values[i] >> 7 & 0xFF);
    cost[i] = d[i] < GLYD_KV_DISTANCES ? costs[d[i]] : 1000;
    sum += cost[i];
  }
  while (sum > GLYD_KV_COST_LIMIT) {
    unsigned worst = 0;
    for (unsigned i = 1; i < 4; i++) worst = cost[i] > cost[worst] ? i : worst;
    sum -= cost[worst];
    cost[worst] = 0;
    d[worst] = GLYD_KV_COMMONEST;
    *replaced |= 1u << worst;
  }
  unsigned code = 0;
  unsigned room = GLYD_KV_COST_LIMIT;
  for (unsigned i = 0; i < 4; i++) {
    code += ranks[i][room][d[i]];
    room -= cost[i];
  }
  return code;
}

/* What is not in the strips. */
typedef struct extras {
  uint32_t n_corrections;
  uint32_t n_exceptions;
} extras;

/* A channel into the places that its two threads have in a strip. */
static void encode_channel(uint8_t *strip, glyd_kv_scratch *scratch, uint32_t channel, unsigned base, extras *n) {
  const uint32_t within = channel % GLYD_KV_CHANNELS_STEP;
  const uint16_t *row = scratch->rows + within * GLYD_KV_TOKENS;
  for (unsigned half = 0; half < 2; half++) {
    const unsigned thread = 16 * half + within;
    uint8_t codes[GLYD_KV_THREAD_CODES + 4] = {0};
    for (unsigned j = 0; j < GLYD_KV_THREAD_QUADS; j++) {
      const unsigned token = half * GLYD_KV_THREAD_TOKENS + 4 * j;
      uint8_t *kept = strip + j / 4 * 512 + thread * 16 + j % 4 * 4;
      unsigned replaced = 0;
      unsigned code = 0;
      if (base != 0) {
        code = code_of((const uint16_t(*)[GLYD_KV_COST_LIMIT + 1][GLYD_KV_DISTANCES]) scratch->ranks, row + token, base,
                       &replaced);
      }
      const unsigned bit = GLYD_KV_CODE_BITS * j;
      glyd_store32(codes + bit / 8, glyd_load32(codes + bit / 8) | code << bit % 8);
      for (unsigned i = 0; i < 4; i++) {
        const unsigned value = row[token + i];
        const unsigned exponent = value >> 7 & 0xFF;
        const unsigned below = base + GLYD_KV_CORRECTED_ABOVE - exponent;
        const unsigned place = within * GLYD_KV_TOKENS + token + i;
        kept[i] = (uint8_t)((value >> 8 & 0x80) | (value & 0x7F));
        if ((replaced >> i & 1) == 0) continue;
        if (exponent == 0 || below < GLYD_KV_CORRECTED_ZERO) {
          const unsigned to = exponent == 0 ? GLYD_KV_CORRECTED_ZERO : below;
          scratch->corrections[n->n_corrections++] = (uint16_t)(place | to << GLYD_KV_PLACE_BITS);
        } else {
          kept[i] = 0;
          scratch->exceptions[2 * n->n_exceptions] = (uint16_t)(channel * GLYD_KV_TOKENS + token + i);
          scratch->exceptions[2 * n->n_exceptions + 1] = (uint16_t)value;
          n->n_exceptions++;
        }
      }
    }
    memcpy(strip + GLYD_KV_CODES_AT + thread * 16, codes, 16);
    memcpy(strip + GLYD_KV_CODES_AT + 512 + thread * 4, codes + 16, 4);
    memcpy(strip + GLYD_KV_CODES_AT + 640 + thread * 2, codes + 20, 2);
  }
}

glyd_status glyd_kv_encode(uint8_t *out, size_t cap, const uint8_t *in, uint32_t channels, size_t stride,
                           void *workspace, size_t workspace_len, int cpu, size_t *out_len) {
  (void)cpu; /* there is one variant */
  *out_len = 0;
  const size_t bound = glyd_kv_encode_bound(channels);
  if (bound == 0 || stride < channels) return GLYD_E_PARAMETER;
  glyd_kv_scratch *scratch = glyd_kv_scratch_in(workspace, workspace_len);
  if (cap < bound || scratch == NULL) return GLYD_E_BUFFER;
  const uint64_t limit = bound / 16 * 15;
  uint8_t *bases = out + GLYD_KV_BASES_AT(channels);
  uint8_t *strip = out + GLYD_KV_STRIPS_AT(channels);
  extras n = {0, 0};
  fill_ranks(scratch->ranks);
  memset(out + GLYD_KV_AT_ENDS, 0, (size_t)(bases - out) - GLYD_KV_AT_ENDS);
  for (uint32_t first = 0; first < channels; first += GLYD_KV_CHANNELS_STEP, strip += GLYD_KV_STRIP) {
    transpose(scratch->rows, in + 2 * first, stride);
    for (uint32_t c = first; c < first + GLYD_KV_CHANNELS_STEP; c++) {
      const unsigned base = base_of(scratch->rows + (c - first) * GLYD_KV_TOKENS, scratch->counts);
      bases[c] = (uint8_t)base;
      encode_channel(strip, scratch, c, base, &n);
    }
    if (glyd_kv_packed_size(channels, n.n_corrections, n.n_exceptions) > limit) {
      *out_len = write_plain(out, in, channels, stride);
      return GLYD_OK;
    }
    glyd_store16(out + GLYD_KV_AT_ENDS + first / 8, (uint16_t)n.n_corrections);
  }
  uint8_t *to = out + GLYD_KV_CORRECTIONS_AT(channels);
  for (uint32_t i = 0; i < n.n_corrections; i++, to += 2) glyd_store16(to, scratch->corrections[i]);
  for (uint32_t i = 0; i < n.n_exceptions; i++) {
    glyd_store16(to + 2 * i, scratch->exceptions[2 * i]);
    glyd_store16(to + 2 * (n.n_exceptions + i), scratch->exceptions[2 * i + 1]);
  }
  to += 4 * n.n_exceptions;
  const size_t size = (size_t)glyd_kv_packed_size(channels, n.n_corrections, n.n_exceptions);
  memset(to, 0, size - (size_t)(to - out));
  write_header(out, GLYD_KV_PACKED, channels, (uint32_t)size, n.n_exceptions);
  *out_len = size;
  return GLYD_OK;
}
