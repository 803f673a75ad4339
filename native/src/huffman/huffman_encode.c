/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "huffman/huffman_encode.h"

#include "bitstream/bit_writer.h"
#include "common/cpu.h"
#include "huffman/huffman_code_encode.h"
#include "huffman/huffman_common.h"

/* Bits of a length table: at most 128 runs of each kind at 2 * 8 + 1 bits, and
 * 256 lengths at 21 bits. Far less in practice; the buffer holds the worst. */
_Static_assert(GLYD_HUFFMAN_LENGTHS_BYTES * 8 >= 256 * 21, "lengths alone must fit");
#define LENGTHS_BUFFER GLYD_HUFFMAN_LENGTHS_BUFFER

void glyd_huffman_count(const uint8_t *in, size_t n, uint32_t counts[256]) {
  if (n < 512) { /* small planes: clearing and adding up would cost more than counting */
    memset(counts, 0, 256 * sizeof *counts);
    for (size_t i = 0; i < n; i++) counts[in[i]]++;
    return;
  }
  /* Four tables: equal neighbours would otherwise wait for each other's store. */
  uint32_t part[4][256];
  memset(part, 0, sizeof part);
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t v = glyd_load64(in + i);
    part[0][v & 255]++;
    part[1][v >> 8 & 255]++;
    part[2][v >> 16 & 255]++;
    part[3][v >> 24 & 255]++;
    part[0][v >> 32 & 255]++;
    part[1][v >> 40 & 255]++;
    part[2][v >> 48 & 255]++;
    part[3][v >> 56]++;
  }
  for (; i < n; i++) part[0][in[i]]++;
  for (unsigned s = 0; s < 256; s++) counts[s] = part[0][s] + part[1][s] + part[2][s] + part[3][s];
}

/* Sort keys of count << 8 | symbol, ascending: insertion for few symbols, for
 * many two counting passes over the bits that the largest count has. */
static void sort_keys(uint32_t *keys, unsigned n, uint32_t largest) {
  if (n <= 24) {
    for (unsigned i = 1; i < n; i++) {
      uint32_t k = keys[i];
      unsigned j = i;
      for (; j > 0 && keys[j - 1] > k; j--) keys[j] = keys[j - 1];
      keys[j] = k;
    }
    return;
  }
  uint32_t other[256];
  uint32_t *from = keys, *to = other;
  const unsigned bits = glyd_log2_32(largest) / 2 + 1, mask = (1u << bits) - 1;
  for (unsigned pass = 0, shift = 8; pass < 2; pass++, shift += bits) { /* even: keys ends up sorted */
    uint16_t start[1024];
    memset(start, 0, (mask + 1) * sizeof *start);
    for (unsigned i = 0; i < n; i++) start[from[i] >> shift & mask]++;
    uint16_t sum = 0;
    for (unsigned i = 0; i <= mask; i++) {
      uint16_t c = start[i];
      start[i] = sum;
      sum = (uint16_t)(sum + c);
    }
    for (unsigned i = 0; i < n; i++) to[start[from[i] >> shift & mask]++] = from[i];
    uint32_t *t = from;
    from = to;
    to = t;
  }
}

void glyd_huffman_make_lengths_within(const uint32_t counts[256], uint8_t length[256], unsigned bits) {
  uint32_t keys[257];
  unsigned n = 0;
  uint32_t any = 0; /* has the highest bit of the largest count */
  for (unsigned s = 0; s < 256; s++) {
    length[s] = 0;
    keys[n] = counts[s] << 8 | s;
    n += counts[s] != 0;
    any |= counts[s];
  }
  sort_keys(keys, n, any);

  /* Two queues: leaves by count, joined nodes in the order they are made. */
  uint32_t weight[512];
  uint16_t parent[512];
  for (unsigned i = 0; i < n; i++) weight[i] = keys[i] >> 8;
  unsigned leaf = 0, node = n, made = n;
  while (made < 2 * n - 1) {
    uint32_t w = 0;
    for (unsigned k = 0; k < 2; k++) {
      unsigned x = (leaf < n && (node >= made || weight[leaf] <= weight[node])) ? leaf++ : node++;
      parent[x] = (uint16_t)made;
      w += weight[x];
    }
    weight[made++] = w;
  }
  /* Only how many codes there are of each length matters: symbols get them by count. */
  uint32_t of_length[GLYD_HUFFMAN_BITS + 2] = {0};
  uint8_t depth[512];
  depth[2 * n - 2] = 0;
  int32_t excess = -((int32_t)1 << bits); /* Kraft sum less 1, in units of 2^-BITS */
  for (unsigned i = 2 * n - 2; i-- > 0;) {
    depth[i] = (uint8_t)(depth[parent[i]] + 1);
    if (i < n) {
      unsigned l = depth[i] < bits ? depth[i] : bits;
      of_length[l]++;
      excess += 1 << (bits - l);
    }
  }
  while (excess > 0) { /* lengthen the longest codes that can be */
    unsigned b = bits - 1;
    while (of_length[b] == 0) b--;
    of_length[b]--;
    of_length[b + 1]++;
    excess -= 1 << (bits - 1 - b);
  }
  while (excess < 0) { /* and give back what that was too much */
    unsigned b = bits - glyd_log2_32((uint32_t)-excess);
    while (of_length[b] == 0) b++;
    of_length[b]--;
    of_length[b - 1]++;
    excess += 1 << (bits - b);
  }
  unsigned i = n;
  for (unsigned l = 1; l <= bits; l++)
    for (uint32_t k = of_length[l]; k > 0; k--) length[keys[--i] & 255] = (uint8_t)l;
}

void glyd_huffman_make_lengths(const uint32_t counts[256], uint8_t length[256]) {
  glyd_huffman_make_lengths_within(counts, length, GLYD_HUFFMAN_BITS);
}

static void put_gamma(glyd_bit_writer *w, uint32_t v) {
  unsigned k = glyd_log2_32(v);
  glyd_bit_writer_put(w, 1u << k | (v & ((1u << k) - 1)) << (k + 1), 2 * k + 1);
}

uint8_t *glyd_huffman_put_lengths(uint8_t *out, const uint8_t length[256]) {
  glyd_bit_writer w;
  glyd_bit_writer_init(&w, out);
  unsigned last = 255;
  while (length[last] == 0) last--;
  int previous = GLYD_HUFFMAN_FIRST_LENGTH;
  for (unsigned i = 0; i <= last;) {
    unsigned start = i;
    while (length[i] == 0) i++;
    put_gamma(&w, i - start + (start == 0));
    start = i;
    while (i <= last && length[i] != 0) i++;
    put_gamma(&w, i - start);
    for (unsigned s = start; s < i; s++) {
      int d = length[s] - previous;
      previous = length[s];
      const unsigned below = d < 0, z = ((unsigned)d ^ (0u - below)) * 2 + below; /* no branch on the sign */
      glyd_bit_writer_put(&w, 1u << z, z + 1);
    }
  }
  return glyd_bit_writer_end(&w);
}

uint8_t *glyd_huffman_put_differences(uint8_t *out, const uint8_t last[256], const uint8_t length[256]) {
  glyd_bit_writer w;
  glyd_bit_writer_init(&w, out);
  unsigned kraft = 0;
  for (unsigned s = 0; s < 256; s++) {
    if (last[s] == 0) continue;
    const int d = (length[s] != 0 ? length[s] : GLYD_HUFFMAN_BITS + 1) - last[s];
    const unsigned below = d < 0, z = ((unsigned)d ^ (0u - below)) * 2 + below;
    glyd_bit_writer_put(&w, 1u << z, z + 1);
    if (length[s] != 0) kraft += 1u << (GLYD_HUFFMAN_BITS - length[s]);
  }
  unsigned gap = 1;
  for (unsigned s = 0; s < 256 && kraft < 1u << GLYD_HUFFMAN_BITS; s++) {
    if (last[s] != 0) continue;
    if (length[s] == 0) {
      gap++;
      continue;
    }
    put_gamma(&w, gap);
    gap = 1;
    const unsigned z = (unsigned)(GLYD_HUFFMAN_BITS - length[s]);
    glyd_bit_writer_put(&w, 1u << z, z + 1);
    kraft += 1u << z;
  }
  return glyd_bit_writer_end(&w);
}

/* Symbols in[0], in[stride], … below in[n]. */
GLYD_INLINE uint8_t *put_stream(uint8_t *out, const uint8_t *in, size_t n, size_t stride,
                                const glyd_huffman_code *code) {
  glyd_bit_writer w;
  glyd_bit_writer_init(&w, out);
  size_t i = 0;
  const uint16_t *codes = code->code;
  const uint8_t *lengths = code->length;
  for (; i + 4 * stride < n; i += 5 * stride) { /* 5 * 11 + 7 bits fit the accumulator */
    unsigned s0 = in[i], s1 = in[i + stride], s2 = in[i + 2 * stride], s3 = in[i + 3 * stride], s4 = in[i + 4 * stride];
    unsigned l1 = lengths[s0], l2 = l1 + lengths[s1], l3 = l2 + lengths[s2], l4 = l3 + lengths[s3];
    uint64_t v = codes[s0] | (uint64_t)codes[s1] << l1 | (uint64_t)codes[s2] << l2 | (uint64_t)codes[s3] << l3 |
                 (uint64_t)codes[s4] << l4;
    glyd_bit_writer_put(&w, v, l4 + lengths[s4]);
  }
  for (; i < n; i += stride) glyd_bit_writer_put(&w, codes[in[i]], lengths[in[i]]);
  return glyd_bit_writer_end(&w);
}

GLYD_INLINE uint8_t *put_streams(uint8_t *out, const uint8_t *in, size_t n, size_t streams,
                                 const glyd_huffman_code *code) {
  if (streams == 1) return put_stream(out, in, n, 1, code);
  if (streams == 2) {
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i += 2) bits += code->length[in[i]];
    out = glyd_put_varint(out, (bits + 7) / 8);
    out = put_stream(out, in, n, 2, code);
    return put_stream(out, in + 1, n - 1, 2, code);
  }
  uint8_t *sizes = out;
  out += GLYD_HUFFMAN_SIZES_BYTES;
  for (size_t j = 0; j < GLYD_HUFFMAN_STREAMS; j++) {
    uint8_t *end = put_stream(out, in + j, n - j, GLYD_HUFFMAN_STREAMS, code);
    if (j < GLYD_HUFFMAN_STREAMS - 1) glyd_store16(sizes + 2 * j, (uint16_t)(end - out));
    out = end;
  }
  return out;
}

static uint8_t *put_streams_scalar(uint8_t *out, const uint8_t *in, size_t n, size_t streams,
                                   const glyd_huffman_code *code) {
  return put_streams(out, in, n, streams, code);
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2"))) static uint8_t *put_streams_bmi2(uint8_t *out, const uint8_t *in, size_t n,
                                                                     size_t streams, const glyd_huffman_code *code) {
  return put_streams(out, in, n, streams, code);
}
#endif

uint32_t glyd_huffman_log2_256(uint32_t v) {
  static const uint8_t fraction[64] = {0,   6,   11,  17,  22,  28,  33,  38,  44,  49,  54,  59,  63,  68,  73,  78,
                                       82,  87,  92,  96,  100, 105, 109, 113, 118, 122, 126, 130, 134, 138, 142, 146,
                                       150, 154, 157, 161, 165, 169, 172, 176, 179, 183, 186, 190, 193, 197, 200, 203,
                                       207, 210, 213, 216, 220, 223, 226, 229, 232, 235, 238, 241, 244, 247, 250, 253};
  if (v < 2) return 0;
  const unsigned k = glyd_log2_32(v);
  return k * 256 + fraction[(k < 6 ? v << (6 - k) : v >> (k - 6)) & 63];
}

void glyd_huffman_price_symbols(const uint32_t counts[256], uint32_t price[256]) {
  uint32_t total = 64; /* a symbol that did not occur is priced as a quarter of one that did */
  for (unsigned s = 0; s < 256; s++) total += 4 * counts[s];
  const uint32_t all = glyd_huffman_log2_256(total);
  for (unsigned s = 0; s < 256; s++) price[s] = all - glyd_huffman_log2_256(4 * counts[s] + 1);
}

uint8_t *glyd_huffman_encode_plane(unsigned cpu, uint8_t *out, const uint8_t *in, size_t n, const uint32_t *counts,
                                   glyd_huffman_code *last) {
  return glyd_huffman_encode_plane_above(cpu, out, in, n, counts, last, 5);
}

uint8_t *glyd_huffman_encode_plane_above(unsigned cpu, uint8_t *out, const uint8_t *in, size_t n,
                                         const uint32_t *counts, glyd_huffman_code *last, unsigned gain_shift) {
  return glyd_huffman_encode_plane_headed(cpu, out, in, n, counts, last, gain_shift, GLYD_PLANE_BITS);
}

uint8_t *glyd_huffman_encode_plane_headed(unsigned cpu, uint8_t *out, const uint8_t *in, size_t n,
                                          const uint32_t *counts, glyd_huffman_code *last, unsigned gain_shift,
                                          unsigned head_bits) {
  if (n == 0) {
    *out++ = 0;
    return out;
  }
  uint32_t own_counts[256];
  if (counts == NULL) {
    glyd_huffman_count(in, n, own_counts);
    counts = own_counts;
  }
  if (counts[in[0]] == n) {
    out = glyd_put_varint(out, n << head_bits | GLYD_PLANE_FILL);
    *out++ = in[0];
    return out;
  }
  glyd_huffman_code code;
  uint8_t table[LENGTHS_BUFFER];
  glyd_huffman_make_lengths(counts, code.length);
  size_t table_len = (size_t)(glyd_huffman_put_lengths(table, code.length) - table);
  unsigned own = GLYD_PLANE_OWN;
  if (last->valid && head_bits == GLYD_PLANE_FINE_BITS) {
    uint8_t differences[LENGTHS_BUFFER];
    const size_t len = (size_t)(glyd_huffman_put_differences(differences, last->length, code.length) - differences);
    if (len < table_len) {
      own = GLYD_PLANE_CHANGED;
      table_len = len;
      memcpy(table, differences, len);
    }
  }
  uint32_t own_bits = 0, last_bits = 0; /* at most 2^18 symbols of 11 bits */
  for (unsigned s = 0; s < 256; s++) own_bits += counts[s] * code.length[s];
  int last_fits = last->valid;
  if (last_fits) {
    unsigned lacking = 0;
    for (unsigned s = 0; s < 256; s++) {
      last_bits += counts[s] * last->length[s];
      lacking |= (unsigned)((counts[s] != 0) & (last->length[s] == 0));
    }
    last_fits = !lacking;
  }
  const size_t streams = n < GLYD_HUFFMAN_TWO_FROM ? 1 : n < GLYD_HUFFMAN_EIGHT_FROM ? 2 : GLYD_HUFFMAN_STREAMS;
  size_t coded = table_len + (own_bits >> 3);
  if (last_fits && last_bits >> 3 <= coded)
    coded = last_bits >> 3;
  else
    last_fits = 0;
  coded += streams == 1 ? 1 : streams == 2 ? 4 : GLYD_HUFFMAN_SIZES_BYTES + GLYD_HUFFMAN_STREAMS;
  if (coded + (n >> gain_shift) + 2 >= n) { /* too small a gain is not worth decoding time */
    out = glyd_put_varint(out, n << head_bits | GLYD_PLANE_RAW);
    memcpy(out, in, n);
    return out + n;
  }
  if (last_fits) {
    out = glyd_put_varint(out, n << head_bits | GLYD_PLANE_LAST);
  } else {
    out = glyd_put_varint(out, n << head_bits | own);
    memcpy(out, table, table_len);
    out += table_len;
    glyd_huffman_make_codes(code.length, code.code);
    code.valid = 1;
    *last = code;
  }
#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX2) return put_streams_bmi2(out, in, n, streams, last);
#endif
  (void)cpu;
  return put_streams_scalar(out, in, n, streams, last);
}
