/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A page: bases of all channels, then quads, then how many codes it has.
 */
#include "kv/kv_encode.h"

static const uint8_t costs[GLYD_KV_DISTANCES] = GLYD_KV_COSTS;
static const uint16_t choices[] = GLYD_KV_CHOICES;
#define CHOICES (sizeof choices / sizeof *choices)

size_t glyd_kv_encode_bound(uint32_t channels) {
  return glyd_kv_channels_check(channels) ? GLYD_KV_PLAIN_SIZE(channels) : 0;
}

static void write_header(uint8_t *out, int form, uint32_t channels, uint32_t size, uint32_t n_exceptions,
                         uint32_t n_codes) {
  glyd_store16(out + GLYD_KV_AT_MAGIC, GLYD_KV_MAGIC);
  out[GLYD_KV_AT_VERSION] = GLYD_KV_VERSION;
  out[GLYD_KV_AT_FORM] = (uint8_t)form;
  glyd_store16(out + GLYD_KV_AT_CHANNELS, (uint16_t)channels);
  glyd_store16(out + GLYD_KV_AT_TOKENS, GLYD_KV_TOKENS);
  glyd_store32(out + GLYD_KV_AT_SIZE, size);
  glyd_store16(out + GLYD_KV_AT_EXCEPTIONS, (uint16_t)n_exceptions);
  glyd_store16(out + GLYD_KV_AT_CODES, (uint16_t)n_codes);
}

static size_t write_plain(uint8_t *out, const uint8_t *in, uint32_t channels, size_t stride) {
  const uint32_t size = GLYD_KV_PLAIN_SIZE(channels);
  memset(out + GLYD_KV_AT_ENDS, 0, GLYD_KV_HEADER - GLYD_KV_AT_ENDS);
  write_header(out, GLYD_KV_PLAIN, channels, size, 0, 0);
  uint8_t *to = out + GLYD_KV_HEADER;
  for (unsigned t = 0; t < GLYD_KV_TOKENS; t++, to += 2 * channels) memcpy(to, in + 2 * t * stride, 2 * channels);
  memset(to, 0, size - (size_t)(to - out));
  return size;
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

/* ranks[i][room][d]: quads whose first i distances are given, whose others cost `room` together, and whose next is less
 * than d; first[cost]: quads that cost less. So a quad's code is a sum of five. */
static void fill_ranks(glyd_kv_scratch *scratch) {
  uint16_t ways[GLYD_KV_COST_LIMIT + 1] = {1}; /* of the distances after the next one, by what they cost */
  for (unsigned i = 4; i-- > 0;) {
    uint16_t all[GLYD_KV_COST_LIMIT + 1];
    for (unsigned room = 0; room <= GLYD_KV_COST_LIMIT; room++) {
      unsigned n = 0;
      for (unsigned d = 0; d < GLYD_KV_DISTANCES; d++) {
        scratch->ranks[i][room][d] = (uint16_t)n;
        if (costs[d] <= room) n += ways[room - costs[d]];
      }
      all[room] = (uint16_t)n;
    }
    memcpy(ways, all, sizeof ways);
  }
  unsigned before = 0;
  for (unsigned cost = 0; cost <= GLYD_KV_COST_LIMIT; cost++) {
    scratch->first[cost] = (uint16_t)before;
    before += ways[cost];
  }
}

/* Code of four distances among all; GLYD_KV_QUADS when they have none. */
static unsigned code_of(const glyd_kv_scratch *scratch, const int d[4]) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; i++) {
    if (d[i] < 0 || d[i] >= GLYD_KV_DISTANCES) return GLYD_KV_QUADS;
    sum += costs[d[i]];
  }
  if (sum > GLYD_KV_COST_LIMIT) return GLYD_KV_QUADS;
  unsigned code = scratch->first[sum];
  for (unsigned i = 0; i < 4; i++) {
    code += scratch->ranks[i][sum][d[i]];
    sum -= costs[d[i]];
  }
  return code;
}

/* Four distances as they are spelled: two words, of which the second one counts when there is a far one in the first. A distance of
 * GLYD_KV_DISTANCE_MAX + 1 stands for zero. */
#define ZERO (GLYD_KV_DISTANCE_MAX + 1)
static void spell(uint16_t words[2], const int d[4]) {
  unsigned word = 0;
  unsigned far = 0;
  for (unsigned i = 0; i < 4; i++) {
    const int near = d[i] >= 0 && d[i] < GLYD_KV_SPELLED_ZERO;
    const int x = near ? d[i] : d[i] == ZERO ? GLYD_KV_SPELLED_ZERO : GLYD_KV_SPELLED_FAR;
    word |= (unsigned)x << 4 * i;
    if (x != GLYD_KV_SPELLED_FAR) continue;
    far |= (unsigned)(d[i] < 0 ? d[i] + 16 : d[i] - GLYD_KV_FAR) << 4 * i;
  }
  words[0] = (uint16_t)word;
  words[1] = (uint16_t)far;
}
static int is_far(unsigned word) {
  for (unsigned i = 0; i < 4; i++)
    if ((word >> 4 * i & 15) == GLYD_KV_SPELLED_FAR) return 1;
  return 0;
}

/* Distance of a value; 0 when it is an exception. */
static int distance_of(int *d, unsigned value, unsigned base) {
  const unsigned exponent = value >> 7 & 0xFF;
  *d = GLYD_KV_COMMONEST;
  if (base == 0) return 1;
  if ((value & 0x7FFF) == 0) {
    *d = ZERO;
    return 1;
  }
  const int distance = (int)(base + GLYD_KV_ABOVE) - (int)exponent;
  if (exponent == 0 || exponent == 255 || distance < GLYD_KV_DISTANCE_MIN || distance > GLYD_KV_DISTANCE_MAX) return 0;
  *d = distance;
  return 1;
}

/* What a page is made of. */
typedef struct page_in {
  const uint8_t *at;
  size_t stride;
  uint32_t channels;
  const uint8_t *bases;
} page_in;

/* A quad's signs and mantissas, its code among all, and its words. */
static void encode_quad(uint8_t *kept, glyd_kv_scratch *scratch, page_in in, uint32_t slab, uint32_t number,
                        glyd_kv_quad quad) {
  int d[4];
  for (unsigned i = 0; i < 4; i++) {
    const uint32_t channel = quad.channel + i % 2 * 8u;
    const unsigned value = glyd_load16(in.at + 2 * ((quad.token + i / 2) * in.stride + channel));
    const int said = distance_of(&d[i], value, in.bases[glyd_kv_base_at(channel)]);
    kept[i] = (uint8_t)(said ? (value >> 8 & 0x80) | (value & 0x7F) : 0);
  }
  scratch->ranked[slab][number] = (uint16_t)code_of(scratch, d);
  spell(scratch->words[slab][number], d);
}

/* Exceptions of a channel. */
static uint32_t find_exceptions(glyd_kv_scratch *scratch, uint32_t channel, unsigned base, uint32_t n) {
  for (unsigned t = 0; t < GLYD_KV_TOKENS; t++) {
    int d;
    if (distance_of(&d, scratch->column[t], base)) continue;
    scratch->exceptions[2 * n] = (uint16_t)(channel * GLYD_KV_TOKENS + t);
    scratch->exceptions[2 * n + 1] = scratch->column[t];
    n++;
  }
  return n;
}

/* Words that a quad takes in a list when a page has so many codes. */
static unsigned words_of(const glyd_kv_scratch *scratch, uint32_t slab, uint32_t number, unsigned n_codes) {
  if (scratch->ranked[slab][number] < n_codes) return 0;
  return is_far(scratch->words[slab][number][0]) ? 2 : 1;
}

/* The quads of a group of a slab, in the order of their list: gives words that it has, and codes where wanted. */
static unsigned list_group(glyd_kv_scratch *scratch, uint32_t channels, uint32_t slab, uint32_t group, unsigned n_codes,
                           uint8_t *words) {
  const uint32_t blocks = channels / GLYD_KV_CHANNELS_STEP;
  const uint32_t first = group * (GLYD_KV_GROUP / GLYD_KV_CHANNELS_STEP);
  const uint32_t last = first + 4 < blocks ? first + 4 : blocks;
  unsigned n = 0;
  for (uint32_t piece = 0; piece < GLYD_KV_PIECES; piece++)
    for (uint32_t block = first; block < last; block++)
      for (uint32_t k = 0; k < GLYD_KV_PIECE_QUADS; k++) {
        const uint32_t number = glyd_kv_quad_number(block, piece, k / 2, k % 2);
        const unsigned more = words_of(scratch, slab, number, n_codes);
        if (words != NULL) {
          scratch->codes[number] = (uint16_t)(more ? n_codes + n : scratch->ranked[slab][number]);
          for (unsigned i = 0; i < more; i++) glyd_store16(words + 2 * (n + i), scratch->words[slab][number][i]);
        }
        n += more;
      }
  return n;
}

/* How many codes a page has: the first choice with which no list is too long; 0 when there is none. */
static unsigned choose_codes(glyd_kv_scratch *scratch, uint32_t channels, uint32_t *n_words) {
  for (unsigned i = 0; i < CHOICES; i++) {
    int fits = 1;
    *n_words = 0;
    for (uint32_t slab = 0; fits && slab < GLYD_KV_SLABS; slab++)
      for (uint32_t group = 0; fits && group < GLYD_KV_GROUPS(channels); group++) {
        const unsigned n = list_group(scratch, channels, slab, group, choices[i], NULL);
        fits = n <= (1u << GLYD_KV_CODE_BITS) - choices[i];
        *n_words += n;
      }
    if (fits) return choices[i];
  }
  return 0;
}

/* Codes of half a piece, of all blocks of a slab, to their places. */
static void write_codes(uint8_t *slab, const glyd_kv_scratch *scratch, uint32_t channels, uint32_t piece,
                        uint32_t half) {
  const uint32_t words = GLYD_KV_WORDS(channels);
  uint8_t *codes = slab + GLYD_KV_CODES_AT(channels);
  uint64_t held = 0;
  uint32_t n_held = 0;
  uint32_t word = 0;
  for (uint32_t i = 0; i < 2 * channels / GLYD_KV_CHANNELS_STEP; i++) {
    held |= (uint64_t)scratch->codes[glyd_kv_quad_number(i / 2, piece, i % 2, half)] << n_held;
    n_held += GLYD_KV_CODE_BITS;
    if (n_held < 32) continue;
    glyd_store32(codes + 4 * ((half * words + word++) * 32 + GLYD_KV_PLACE(piece, half)), (uint32_t)held);
    held >>= 32;
    n_held -= 32;
  }
  uint8_t *rest = codes + 4 * 32 * 2 * words + GLYD_KV_REST(channels) * piece;
  held <<= GLYD_KV_REST_BITS(channels) * half;
  for (uint32_t k = 0; k < GLYD_KV_REST(channels); k++)
    rest[k] = (uint8_t)((half ? rest[k] : 0) | (held >> 8 * k & 0xFF));
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
  const page_in page = {in, stride, channels, bases};
  uint32_t n_exceptions = 0;
  for (uint32_t c = 0; c < channels; c++) {
    for (unsigned t = 0; t < GLYD_KV_TOKENS; t++) scratch->column[t] = glyd_load16(in + 2 * (t * stride + c));
    const unsigned base = base_of(scratch->column, scratch->counts);
    bases[glyd_kv_base_at(c)] = (uint8_t)base;
    n_exceptions = find_exceptions(scratch, c, base, n_exceptions);
  }
  uint32_t n_words = 0;
  unsigned n_codes = 0;
  if (glyd_kv_packed_size(channels, 0, n_exceptions) <= limit) {
    fill_ranks(scratch);
    for (uint32_t slab = 0; slab < GLYD_KV_SLABS; slab++) {
      uint8_t *to = out + GLYD_KV_SLABS_AT(channels) + (size_t)slab * GLYD_KV_SLAB(channels);
      for (uint32_t block = 0; block < channels / GLYD_KV_CHANNELS_STEP; block++)
        for (uint32_t piece = 0; piece < GLYD_KV_PIECES; piece++)
          for (uint32_t k = 0; k < GLYD_KV_PIECE_QUADS; k++)
            encode_quad(to + glyd_kv_kept_at(block, piece, k / 2, k % 2), scratch, page, slab,
                        glyd_kv_quad_number(block, piece, k / 2, k % 2),
                        glyd_kv_quad_at(slab, block, piece, k / 2, k % 2));
    }
    n_codes = choose_codes(scratch, channels, &n_words);
  }
  const size_t size = (size_t)glyd_kv_packed_size(channels, n_words, n_exceptions);
  if (n_codes == 0 || size > limit) {
    *out_len = write_plain(out, in, channels, stride);
    return GLYD_OK;
  }
  memset(out + GLYD_KV_AT_ENDS, 0, (size_t)(bases - out) - GLYD_KV_AT_ENDS);
  uint8_t *lists = out + GLYD_KV_LISTS_AT(channels);
  uint32_t end = 0;
  for (uint32_t slab = 0; slab < GLYD_KV_SLABS; slab++) {
    for (uint32_t group = 0; group < GLYD_KV_GROUPS(channels); group++) {
      end += list_group(scratch, channels, slab, group, n_codes, lists + 2 * (size_t)end);
      glyd_store16(out + GLYD_KV_AT_ENDS + 2 * (slab * GLYD_KV_GROUPS(channels) + group), (uint16_t)end);
    }
    for (uint32_t piece = 0; piece < GLYD_KV_PIECES; piece++)
      for (uint32_t half = 0; half < 2; half++)
        write_codes(out + GLYD_KV_SLABS_AT(channels) + (size_t)slab * GLYD_KV_SLAB(channels), scratch, channels, piece,
                    half);
  }
  uint8_t *to = lists + 2 * (size_t)end;
  for (uint32_t i = 0; i < n_exceptions; i++) {
    glyd_store16(to + 2 * i, scratch->exceptions[2 * i]);
    glyd_store16(to + 2 * ((size_t)n_exceptions + i), scratch->exceptions[2 * i + 1]);
  }
  to += 4 * (size_t)n_exceptions;
  memset(to, 0, size - (size_t)(to - out));
  write_header(out, GLYD_KV_PACKED, channels, (uint32_t)size, n_exceptions, n_codes);
  *out_len = size;
  return GLYD_OK;
}
