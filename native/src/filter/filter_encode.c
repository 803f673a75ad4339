/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "filter/filter_encode.h"

#include "filter/filter_code.h"
#include "huffman/huffman_encode.h"

#define SAMPLES 16u               /* places that are looked at */
#define SAMPLE ((size_t)16 << 10) /* bytes of each */
#define LEAST ((size_t)4 << 10)   /* less content is not worth a filter */
#define SPACING 200u              /* bytes of code between two addresses, at most */
#define NEAR ((int32_t)1 << 24)   /* calls of code lead no farther */

/* Calls and jumps in the sample that lead to somewhere near. */
static size_t count_x86(const uint8_t *p, size_t n) {
  size_t found = 0;
  for (size_t i = 0; i + 8 <= n; i++) {
    const unsigned opcode = glyd_filter_x86_opcode(p + i);
    if (opcode == 0) continue;
    const int32_t v = (int32_t)glyd_load32(p + i + opcode);
    found += v > -NEAR && v < NEAR && v != 0;
    i += opcode + 3;
  }
  return found;
}

static size_t count_arm64(const uint8_t *p, size_t n) {
  size_t found = 0;
  for (size_t i = 0; i + 4 <= n; i += 4) {
    const uint32_t w = glyd_load32(p + i);
    const uint32_t high = w >> 20 & 0x3F; /* a distance below 4 MiB, or less than 0 */
    found += (w & 0xFC000000u) == 0x94000000u && (high == 0 || high == 0x3F);
    found += (w & 0x9F000000u) == 0x90000000u && (w >> 5 & 0x7FFFFu) - 0x1000u > 0x7DFFFu - 0x1000u;
  }
  return found;
}

/* Bits of the sample's bytes by their frequency alone, those of an element apart. */
static uint64_t bits_of(const uint8_t *p, size_t n, unsigned width) {
  uint64_t bits = 0;
  for (unsigned k = 0; k < width; k++) {
    uint32_t counts[256] = {0}, price[256];
    for (size_t i = k; i < n; i += width) counts[p[i]]++;
    glyd_huffman_price_symbols(counts, price);
    for (unsigned s = 0; s < 256; s++) bits += (uint64_t)counts[s] * price[s];
  }
  return bits;
}

static void subtract(uint8_t *data, size_t n, unsigned width_log, size_t stride) {
  const size_t elements = n >> width_log;
  for (size_t i = elements; i-- > stride;) {
    uint8_t *const p = data + (i << width_log), *const q = p - (stride << width_log);
    if (width_log == 0)
      *p = (uint8_t)(*p - *q);
    else if (width_log == 1)
      glyd_store16(p, (uint16_t)(glyd_load16(p) - glyd_load16(q)));
    else
      glyd_store32(p, glyd_load32(p) - glyd_load32(q));
  }
}

/* The differences that leave the fewest bits in the sample, if that is a fifth
 * less than with none. */
static int suggest_delta(const uint8_t *p, size_t n, glyd_filter *filter) {
  static const uint8_t strides[3][7] = {{1, 2, 3, 4, 6, 8, 0}, {1, 2, 3, 4, 6, 0}, {1, 2, 3, 4, 0}};
  uint8_t copy[SAMPLE];
  uint64_t none = UINT64_MAX, least = UINT64_MAX;
  for (unsigned w = 0; w < 3; w++) {
    const uint64_t bits = bits_of(p, n, 1u << w);
    if (bits < none) none = bits;
    for (const uint8_t *s = strides[w]; *s != 0; s++) {
      memcpy(copy, p, n);
      subtract(copy, n, w, *s);
      const uint64_t after = bits_of(copy, n, 1u << w);
      if (after >= least) continue;
      least = after;
      *filter = (glyd_filter){GLYD_FILTER_DELTA, w, *s};
    }
  }
  return least < none - none / 5;
}

int glyd_filter_suggest(const uint8_t *in, size_t n, glyd_filter *filter, size_t *where) {
  if (n < LEAST) return 0;
  const size_t size = n < SAMPLE ? n : SAMPLE, samples = n / size < SAMPLES ? n / size : SAMPLES;
  size_t like[2] = {0, 0}, most[2] = {0, 0}, at[2] = {0, 0}; /* samples like code of x86 and ARM64, the most so */
  for (size_t k = 0; k < samples; k++) {
    const size_t place = (n - size) / samples * k & ~(size_t)3;
    const size_t found[2] = {count_x86(in + place, size), count_arm64(in + place, size)};
    for (unsigned i = 0; i < 2; i++) {
      like[i] += found[i] * SPACING > size;
      if (found[i] <= most[i]) continue;
      most[i] = found[i];
      at[i] = place;
    }
  }
  const unsigned better = like[1] > like[0];
  if (like[better] * 8 >= samples && like[better] != 0) {
    *filter = (glyd_filter){.kind = better ? GLYD_FILTER_ARM64 : GLYD_FILTER_X86};
    *where = at[better];
    return 1;
  }
  *where = (n - size) / 2 & ~(size_t)15;
  return suggest_delta(in + *where, size, filter);
}

uint8_t *glyd_filter_write(const glyd_filter *filter, uint8_t *out) {
  *out++ = (uint8_t)filter->kind;
  if (filter->kind == GLYD_FILTER_DELTA) *out++ = (uint8_t)(filter->width_log | (filter->stride - 1) << 2);
  return out;
}

void glyd_filter_apply(const glyd_filter *filter, uint8_t *data, size_t n) {
  switch (filter->kind) {
  case GLYD_FILTER_X86: glyd_filter_x86_walk(data, n, 1, glyd_filter_x86_find_plain); break;
  case GLYD_FILTER_ARM64: glyd_filter_arm64_walk(data, n, 1); break;
  case GLYD_FILTER_DELTA: subtract(data, n, filter->width_log, filter->stride); break;
  default: break;
  }
}
