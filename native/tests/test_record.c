/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Slots of record columns: what each CPU variant makes of a batch is what the
 * plain conversion of one value gives.
 */
#include "common/cpu.h"
#include "record/record_rebuild.h"
#include "test.h"

#define ROWS 33u

static const glyd_record_kernels *kernels[2];
static unsigned n_kernels;

static void compare(const glyd_record_column *c, const int32_t *v, uint32_t n, unsigned suffix_len) {
  glyd_record_field f;
  memset(&f, 0, sizeof f);
  f.column = c;
  f.suffix_len = suffix_len;
  memcpy(f.suffix, ",\"next\": abcdefghijklmnopqrstuvw", 32);
  const unsigned most = glyd_record_text_max(c);
  for (unsigned size = 16; size <= 32; size += 16) {
    if (most + suffix_len >= size) continue;
    for (unsigned k = 0; k < n_kernels; k++) {
      uint8_t *const to = malloc((size_t)n * size + 64);
      if (!CHECK(to != NULL)) return;
      kernels[k]->format(&f, v, n, size, to);
      for (uint32_t i = 0; i < n; i++) {
        uint8_t text[64];
        const unsigned len = glyd_record_text(c, (uint32_t)v[i], text);
        memcpy(text + len, f.suffix, suffix_len);
        TEST_AT("kind %u format %u point %u width %u base %" PRId64 " divisor %u value %d suffix %u size %u kernel %u",
                c->kind, c->format, c->point, c->width, c->base, c->divisor, v[i], suffix_len, size, k);
        if (!CHECK_EQ(to[i * size + size - 1], len + suffix_len)) break;
        if (!CHECK_BYTES(to + i * size, text, len + suffix_len)) break;
      }
      free(to);
    }
  }
}

/* Values at both ends of the range and between. */
static void compare_all(glyd_record_column *c, uint64_t *state) {
  static const unsigned suffixes[] = {0, 1, 8, 9, 20};
  int32_t v[ROWS];
  for (uint32_t i = 0; i < ROWS; i++) {
    const uint64_t r = test_random(state);
    v[i] = (int32_t)(r >> (i & 31) << 2 >> 2 & 0x7FFFFFFF) % (int32_t)(c->range + 1);
    if (i < 4) v[i] = (int32_t)(i < c->range ? i : c->range);
    if (i == 4) v[i] = (int32_t)c->range;
    if (i == 5 && c->base < 0 && c->base % c->divisor == 0 && (uint64_t)-c->base / c->divisor <= c->range)
      v[i] = (int32_t)(-c->base / c->divisor);
  }
  compare(c, v, ROWS, suffixes[test_random(state) % (sizeof suffixes / sizeof *suffixes)]);
}

static void test_numbers(void) {
  static const int64_t bases[] = {0,
                                  1,
                                  -1,
                                  -9,
                                  99,
                                  -1000,
                                  99999000,
                                  -99999999,
                                  100000000,
                                  -100000000,
                                  99990000000,
                                  9999999999000000,
                                  -99999999999,
                                  12345678901234567,
                                  -((int64_t)1 << 61),
                                  (int64_t)1 << 61};
  static const uint32_t ranges[] = {0, 1, 10, 999, 99999999, 100000000, GLYD_RECORD_RANGE_MAX};
  static const uint32_t divisors[] = {1, 5, 100, 1000000};
  uint64_t state = 11;
  for (unsigned format = GLYD_RECORD_PLAIN; format < GLYD_RECORD_FORMATS; format++) {
    if (format == GLYD_RECORD_CLOCK) continue;
    for (unsigned b = 0; b < sizeof bases / sizeof *bases; b++)
      for (unsigned r = 0; r < sizeof ranges / sizeof *ranges; r++)
        for (unsigned d = 0; d < sizeof divisors / sizeof *divisors; d++)
          for (unsigned q = 0; q < 10; q++) {
            glyd_record_column c = {.kind = GLYD_RECORD_INT, .format = (uint8_t)format, .base = bases[b]};
            c.range = ranges[r];
            c.divisor = divisors[d];
            if (format == GLYD_RECORD_PADDED) {
              static const uint8_t widths[10] = {0, 1, 2, 4, 8, 9, 12, 16, 17, 18};
              if (c.base < 0) continue;
              c.width = widths[q];
            } else if (format == GLYD_RECORD_TAIL) {
              uint64_t power = 1;
              c.width = (uint8_t)q;
              for (unsigned i = 0; i < q; i++) power *= 10;
              if (c.base < 0 || (uint64_t)c.base >= power) continue;
              const uint64_t most = (power - 1 - (uint64_t)c.base) / c.divisor;
              if (c.range > most) c.range = (uint32_t)most;
            } else {
              c.point = (uint8_t)q;
              if (q == 0 && glyd_record_is_bare(format)) continue;
              if (format == GLYD_RECORD_ALIGNED)
                c.width = (uint8_t)(test_random(&state) % (GLYD_RECORD_ALIGNED_MAX + 1));
            }
            compare_all(&c, &state);
          }
  }
}

static void test_clocks(void) {
  for (int one = 0; one < 2; one++) {
    const glyd_record_column c = {
        .kind = GLYD_RECORD_INT, .format = GLYD_RECORD_CLOCK, .base = one, .range = 1439, .divisor = 1};
    for (int32_t from = 0; from < 1440; from += 240) {
      int32_t v[240];
      for (int32_t i = 0; i < 240; i++) v[i] = from + i;
      compare(&c, v, 240, 1);
    }
  }
}

static void test_dates(void) {
  static const char *const patterns[] = {
      "\1\1\1\1-\2\2-\4\4",
      "\4\4/\3\3\3/\1\1\1\1:\6\6:\7\7:\10\10",
      "\3\3\3 \5\5 \6\6:\7\7:\10\10",
      "\1\1\1\1-\2\2-\4\4T\6\6:\7\7:\10\10.\11\11\11\11\11\11Z",
      "\6\6:\7\7:\10\10,\11\11\11",
      "\11.\10\10 \7\7h",
      "\2\2\4\4",
      "\1\1\1\1\2\2\4\4 \6\6\7\7",
      "\11\11:\6\6",
  };
  uint64_t state = 5;
  for (unsigned p = 0; p < sizeof patterns / sizeof *patterns; p++) {
    glyd_record_column c = {.kind = GLYD_RECORD_DATE};
    c.date.len = (uint8_t)strlen(patterns[p]);
    memcpy(c.date.pattern, patterns[p], c.date.len);
    if (!CHECK(glyd_record_date_compile(&c.date))) continue;
    int64_t low, high;
    glyd_record_date_bounds(&c.date, &low, &high);
    static const uint32_t divisors[] = {1, 60, 86400, 3600000};
    for (unsigned d = 0; d < sizeof divisors / sizeof *divisors; d++)
      for (unsigned from = 0; from < 6; from++) {
        c.divisor = divisors[d];
        c.base = from == 0 ? low : low + (int64_t)(test_random(&state) % (uint64_t)(high - low));
        const uint64_t most = (uint64_t)(high - 1 - c.base) / c.divisor;
        c.range = most < GLYD_RECORD_RANGE_MAX ? (uint32_t)most : GLYD_RECORD_RANGE_MAX;
        compare_all(&c, &state);
      }
  }
}

int main(void) {
  kernels[n_kernels++] = &glyd_record_kernels_scalar;
#if defined(__x86_64__)
  if (glyd_cpu_select(0) & GLYD_CPU_AVX2) kernels[n_kernels++] = &glyd_record_kernels_avx2;
#endif
  test_numbers();
  test_clocks();
  test_dates();
  return test_end();
}
