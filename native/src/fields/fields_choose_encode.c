/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Costs are bits a byte times 4096, from samples. Everything is integer
 * arithmetic, so that all machines choose alike.
 */
#include "fields/fields_choose_encode.h"

#include "common/mem.h"
#include "fields/fields_difference_encode.h"
#include "fields/fields_entropy_encode.h"

#define WINDOWS 4u
#define WINDOW_MAX ((size_t)2048)
#define COST_ONE (GLYD_ENTROPY_ONE * 16u) /* one bit a byte */
#define COST_RAW (8u * COST_ONE)
#define REPEATS_MAX ((size_t)4096) /* bytes that are searched for repeats */
#define REPEATS_LOG 12
#define SEGMENT_STEP ((size_t)64)
#define SEGMENT_SHARE 8u /* one in so many words counts */
#define SEGMENT_LOG 13
#define SEGMENT_MIN 64u /* fewer words say nothing */
#define BLOCKS_MAX 96u  /* elements that the search for block formats looks at */
#define BLOCKS_MIN 24u
#define SEARCH_EVERY 4u /* chunks of noise */

typedef struct sample {
  const uint8_t *segment;
  size_t begin[WINDOWS], end[WINDOWS]; /* offsets in the segment, begins at multiples of 8 */
  unsigned n;
} sample;

static sample take_sample(const uint8_t *segment, size_t at, size_t len) {
  sample s = {.segment = segment};
  if (len <= WINDOWS * WINDOW_MAX) {
    s.begin[0] = at;
    s.end[0] = at + len;
    s.n = 1;
    return s;
  }
  for (; s.n < WINDOWS; s.n++) {
    s.begin[s.n] = (at + s.n * (len / WINDOWS) + 7) & ~(size_t)7;
    s.end[s.n] = s.begin[s.n] + WINDOW_MAX;
    if (s.end[s.n] > at + len) s.end[s.n] = at + len;
  }
  return s;
}

typedef struct plane_counts {
  uint16_t of[GLYD_FIELDS_RUNS_MAX][256];
  uint32_t n[GLYD_FIELDS_RUNS_MAX];
} plane_counts;

static uint32_t cost_of(uint64_t bits, uint64_t n) { return n == 0 ? COST_RAW : (uint32_t)(bits * 16 / n); }

/* Cost of a sample in this layout; COST_RAW when it holds no element. */
static uint32_t layout_cost(const sample *s, const glyd_fields_layout *layout, size_t phase) {
  plane_counts c;
  memset(c.of, 0, layout->n_runs * sizeof c.of[0]);
  memset(c.n, 0, sizeof c.n);
  const size_t period = layout->period;
  uint64_t total = 0;
  for (unsigned w = 0; w < s->n; w++) {
    size_t at = s->begin[w] + (phase + period - s->begin[w] % period) % period;
    for (; at + period <= s->end[w]; at += period) {
      const uint8_t *p = s->segment + at;
      if (layout->sign_moved) {
        for (size_t j = 0; j + 2 < period; j++) c.of[j][p[j]]++;
        const uint32_t h = glyd_load16(p + period - 2), moved = (h << 1 | h >> 15) & 0xFFFF;
        c.of[period - 2][moved & 255]++;
        c.of[period - 1][moved >> 8]++;
      } else {
        for (unsigned j = 0; j < layout->n_runs; j++)
          for (unsigned k = layout->run[j]; k > 0; k--) c.of[j][*p++]++;
      }
      total++;
    }
  }
  uint64_t bits = 0;
  for (unsigned j = 0; j < layout->n_runs; j++) bits += glyd_entropy_bits(c.of[j], (uint32_t)(total * layout->run[j]));
  return cost_of(bits, total * period);
}

/* ---- numbers of 1, 2, 4 and 8 bytes --------------------------------------- */

typedef struct period_costs {
  uint32_t cost[4]; /* of periods 1, 2, 4, 8, with no sign moved */
  uint32_t samples; /* bytes counted */
} period_costs;

/* Bits of the planes of a period below 8, whose double's counts are in of: they are folded. */
static uint64_t folded_bits(uint16_t (*of)[256], unsigned period, uint32_t *n) {
  uint64_t bits = 0;
  for (unsigned i = 0; i < period; i++) {
    for (unsigned v = 0; v < 256; v++) of[i][v] = (uint16_t)(of[i][v] + of[i + period][v]);
    n[i] += n[i + period];
    bits += glyd_entropy_bits(of[i], n[i]);
  }
  return bits;
}

static period_costs count_periods(const sample *s) {
  uint16_t of[8][256];
  uint32_t n[8] = {0};
  memset(of, 0, sizeof of);
  for (unsigned w = 0; w < s->n; w++) {
    const uint8_t *p = s->segment + s->begin[w], *const end = s->segment + s->end[w];
    for (; end - p >= 8; p += 8) {
      const uint64_t v = glyd_load64(p);
      for (unsigned k = 0; k < 8; k++) of[k][v >> (8 * k) & 255]++;
      for (unsigned k = 0; k < 8; k++) n[k]++;
    }
    for (unsigned k = 0; p < end; k++) {
      of[k][*p++]++;
      n[k]++;
    }
  }
  period_costs c = {.samples = 0};
  uint64_t bits = 0;
  for (unsigned k = 0; k < 8; k++) {
    c.samples += n[k];
    bits += glyd_entropy_bits(of[k], n[k]);
  }
  c.cost[3] = cost_of(bits, c.samples);
  for (unsigned log = 3; log-- > 0;) c.cost[log] = cost_of(folded_bits(of, 1u << log, n), c.samples);
  return c;
}

static glyd_fields_layout number_layout(unsigned period, int sign_moved) {
  glyd_fields_layout l = {.period = period, .n_runs = (uint8_t)period, .sign_moved = (uint8_t)sign_moved};
  memset(l.run, 1, period);
  return l;
}

/* The period worth its planes: a longer one must gain 1/64, on small samples 1/16. */
static unsigned best_period(const period_costs *c) {
  unsigned best = 0;
  for (unsigned log = 1; log < 4; log++) {
    const uint32_t plane = c->samples >> log;
    if (plane < 256) break;
    if (c->cost[log] + (c->cost[best] >> (plane < 512 ? 4 : 6)) <= c->cost[best]) best = log;
  }
  return 1u << best;
}

/* Phase, and whether the sign is moved, for numbers of this period. */
static uint32_t place_numbers(const sample *s, unsigned period, uint32_t plain_cost, glyd_fields_choice *choice) {
  choice->layout = number_layout(period, 0);
  choice->phase = 0;
  uint32_t best = plain_cost;
  for (unsigned phase = 0; phase < period && period > 1; phase++) {
    const glyd_fields_layout moved = number_layout(period, 1);
    const uint32_t cost = layout_cost(s, &moved, phase);
    if (cost > best || (cost == best && choice->layout.sign_moved)) continue;
    best = cost;
    choice->layout = moved;
    choice->phase = phase;
  }
  return best;
}

/* ---- block formats ---------------------------------------------------------- */

/* Formats of GGUF: a group of quantised numbers with its scales. high: offsets
 * of the high bytes of 16-bit scales (of the exponent, in the first). */
typedef struct block_format {
  uint8_t period, n_runs, n_high, high[2], run[6];
} block_format;

static const block_format block_formats[] = {
    {17, 2, 1, {0, 0}, {1, 16}},                /* MXFP4 */
    {18, 3, 1, {1, 0}, {1, 1, 16}},             /* Q4_0, IQ4_NL */
    {20, 5, 2, {1, 3}, {1, 1, 1, 1, 16}},       /* Q4_1 */
    {22, 4, 1, {1, 0}, {1, 1, 4, 16}},          /* Q5_0 */
    {24, 6, 2, {1, 3}, {1, 1, 1, 1, 4, 16}},    /* Q5_1 */
    {34, 3, 1, {1, 0}, {1, 1, 32}},             /* Q8_0 */
    {84, 6, 2, {81, 83}, {16, 64, 1, 1, 1, 1}}, /* Q2_K */
    {110, 5, 1, {109, 0}, {32, 64, 12, 1, 1}},  /* Q3_K */
    {136, 5, 1, {1, 0}, {1, 1, 2, 4, 128}},     /* IQ4_XS */
    {144, 6, 2, {1, 3}, {1, 1, 1, 1, 12, 128}}, /* Q4_K */
    {176, 6, 2, {1, 3}, {1, 1, 1, 1, 12, 160}}, /* Q5_K */
    {210, 5, 1, {209, 0}, {128, 64, 16, 1, 1}}, /* Q6_K */
};
#define N_BLOCK_FORMATS (sizeof block_formats / sizeof block_formats[0])

/* Sum of squared counts, over n elements, of the byte at each offset: the
 * largest, and where. */
static uint32_t most_repeated(const uint8_t *in, size_t period, size_t n, size_t *offset) {
  uint32_t most = 0;
  for (size_t at = 0; at < period; at++) {
    uint8_t counts[256] = {0};
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += 2u * counts[in[at + i * period]]++ + 1;
    if (sum <= most) continue;
    most = sum;
    *offset = at;
  }
  return most;
}

/* Look for a block format that costs less than limit; returns its cost, or limit. */
static uint32_t find_blocks(const sample *s, size_t at, size_t len, uint32_t limit, glyd_fields_choice *choice) {
  for (size_t f = 0; f < N_BLOCK_FORMATS; f++) {
    const block_format *b = &block_formats[f];
    const size_t n = len / b->period < BLOCKS_MAX ? len / b->period : BLOCKS_MAX;
    size_t offset = 0;
    if (n < BLOCKS_MIN) break;
    /* noise gives n + n (n - 1) / 256; the high byte of a scale twice that and more */
    if (most_repeated(s->segment + at, b->period, n, &offset) < 2 * (n + n * n / 256)) continue;
    glyd_fields_layout layout = {.period = b->period, .n_runs = b->n_runs};
    memcpy(layout.run, b->run, sizeof b->run);
    for (unsigned h = 0; h < b->n_high; h++) {
      const size_t phase = (at + offset + b->period - b->high[h]) % b->period;
      const uint32_t cost = layout_cost(s, &layout, phase);
      if (cost >= limit) continue;
      limit = cost;
      choice->layout = layout;
      choice->phase = phase;
    }
  }
  return limit;
}

/* ---- LZ ----------------------------------------------------------------------- */

/* What part of the bytes, in 1/256, repeats 8 bytes from before. */
static uint32_t repeats(const uint8_t *in, size_t len) {
  if (len < 16) return 0;
  if (len > REPEATS_MAX) {
    in += (len - REPEATS_MAX) / 2;
    len = REPEATS_MAX;
  }
  uint16_t last[1 << REPEATS_LOG] = {0};
  uint32_t n = 0, found = 0;
  for (size_t i = 0; i + 8 <= len; i++, n++) {
    const uint64_t v = glyd_load64(in + i);
    uint16_t *place = &last[v * 0x9E3779B97F4A7C15u >> (64 - REPEATS_LOG)];
    const size_t before = *place;
    *place = (uint16_t)i;
    if (before < i && glyd_load64(in + before) == v) found++;
  }
  return (uint32_t)(((uint64_t)found << 8) / n);
}

uint32_t glyd_fields_repeats(const uint8_t *segment, size_t len) {
  uint32_t last[1 << SEGMENT_LOG] = {0};
  uint32_t n = 0, found = 0;
  for (size_t at = SEGMENT_STEP; at + 16 <= len; at += SEGMENT_STEP) {
    const uint64_t v = glyd_load64(segment + at);
    if (v == glyd_load64(segment + at + 8)) continue;
    const uint64_t h = v * 0x9E3779B97F4A7C15u;
    if ((h & (SEGMENT_SHARE - 1)) != 0) continue; /* the same words are looked at wherever they are */
    uint32_t *place = &last[h >> (64 - SEGMENT_LOG)];
    found += *place != 0 && glyd_load64(segment + (size_t)*place * SEGMENT_STEP) == v;
    *place = (uint32_t)(at / SEGMENT_STEP);
    n++;
  }
  return n < SEGMENT_MIN ? 0 : (uint32_t)(((uint64_t)found << 8) / n);
}

/* ---- the choice ---------------------------------------------------------------- */

void glyd_fields_choose(const uint8_t *segment, size_t at, size_t len, int coded, const glyd_fields_choice *before,
                        glyd_fields_choice *choice) {
  const sample s = take_sample(segment, at, len);
  const period_costs plain = count_periods(&s);
  const unsigned period = best_period(&plain);
  const uint32_t plain_cost = plain.cost[glyd_log2_32(period)];
  uint32_t cost = COST_RAW;
  int kept = 0;
  *choice = (glyd_fields_choice){.is_fields = 0};
  if (before->is_fields && !before->is_difference && before->layout.period > 1) {
    cost = layout_cost(&s, &before->layout, before->phase);
    kept = cost <= plain_cost + (plain_cost >> 7);
  }
  if (kept) {
    choice->layout = before->layout;
    choice->phase = before->phase;
  } else {
    cost = place_numbers(&s, period, plain_cost, choice);
    if (cost > COST_RAW - COST_RAW / 16) {
      if (before->searched % SEARCH_EVERY == 0) {
        const uint32_t limit = cost - cost / 128;
        const uint32_t found = find_blocks(&s, at, len, limit, choice);
        if (found < limit) cost = found;
        choice->searched = found < limit ? 0 : 1;
      } else {
        choice->searched = before->searched + 1;
      }
    }
  }
  const uint32_t repeated = repeats(segment + at, len);
  const uint32_t lz =
      (uint32_t)((uint64_t)(coded && plain.cost[0] < COST_RAW ? plain.cost[0] : COST_RAW) * (256 - repeated) / 256);
  const int gains = cost <= COST_RAW - COST_RAW / 100 || (choice->layout.period > 8 && cost < COST_RAW);
  /* nothing repeats: at the same size planes are faster than a search for matches */
  choice->is_fields = gains && (repeated < 8 ? cost <= lz + (lz >> 7) : cost < lz - (lz >> 5));
  if (kept && cost < COST_ONE / 8 && cost <= lz + COST_ONE / 8) choice->is_fields = 1;
  choice->cost = choice->is_fields ? cost : lz;
}

int glyd_fields_choose_difference(const uint8_t *segment, size_t at, size_t len, const uint8_t *older, uint64_t size,
                                  int64_t shift, glyd_fields_choice *choice) {
  const int64_t first = (int64_t)at + shift;
  if (first < 0 || (uint64_t)first > size || len > size - (uint64_t)first) return 0;
  const int is_number = choice->is_fields && glyd_fields_is_number(&choice->layout);
  const unsigned period = is_number ? choice->layout.period : 1;
  const size_t phase = is_number ? choice->phase : 0;
  const sample s = take_sample(segment, at, len);
  plane_counts c;
  memset(c.of, 0, period * sizeof c.of[0]);
  uint8_t difference[WINDOWS * WINDOW_MAX];
  uint32_t total = 0;
  for (unsigned w = 0; w < s.n; w++) {
    const size_t begin = s.begin[w] + (phase + period - s.begin[w] % period) % period;
    const size_t n = s.end[w] > begin ? (s.end[w] - begin) / period : 0;
    glyd_fields_difference_subtract(difference, segment + begin, older + ((int64_t)begin + shift), n * period, period);
    for (size_t i = 0; i < n * period; i += period)
      for (unsigned k = 0; k < period; k++) c.of[k][difference[i + k]]++;
    total += (uint32_t)n;
  }
  uint64_t bits = 0;
  for (unsigned k = 0; k < period; k++) bits += glyd_entropy_bits(c.of[k], total);
  const uint32_t cost = cost_of(bits, (uint64_t)total * period);
  if (cost >= choice->cost - choice->cost / 16) return 0;
  *choice = (glyd_fields_choice){.is_fields = 1,
                                 .is_difference = 1,
                                 .layout = number_layout(period, 0),
                                 .phase = phase,
                                 .shift = shift,
                                 .cost = cost,
                                 .searched = choice->searched};
  return 1;
}
