/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Fingerprints against their definition, in pieces of all sizes, never more
 * than the bound; marks, of which every CPU variant finds the same.
 */
#include "common/cpu.h"
#include "frame_test.h"
#include "glyd/glyd.h"
#include "match/match_marks.h"
#include "test.h"

#define LEN 200000

static uint8_t data[LEN];
static uint64_t want[LEN / GLYD_FINGERPRINT_SPACING + 1], got[LEN / GLYD_FINGERPRINT_SPACING + 3];

static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static uint32_t load32(const uint8_t *p) {
  return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static size_t define(void) {
  size_t n = 0, last = 0;
  for (size_t p = 0; p + 64 <= LEN; p++) {
    if (load32(data + p) * 0x9E3779B1u + load32(data + p + 4) * 0x85EBCA77u + 0x80000000u >= 1u << 20) continue;
    if (n && p - last < 64) continue;
    uint64_t h = 0;
    for (size_t i = 0; i < 64; i += 8) h = mix(h + (load32(data + p + i) | (uint64_t)load32(data + p + i + 4) << 32));
    want[n++] = h;
    last = p;
  }
  return n;
}

static void check(const char *what) {
  const size_t n = define();
  const size_t steps[] = {1, 7, 62, 63, 64, 65, 126, 127, 4096, 100000, LEN};
  for (unsigned k = 0; k < sizeof steps / sizeof *steps; k++) {
    glyd_fingerprint_state state = {0};
    size_t found = 0;
    for (size_t at = 0; at < LEN;) {
      const size_t len = LEN - at < steps[k] ? LEN - at : steps[k];
      const size_t bound = len / GLYD_FINGERPRINT_SPACING + 2;
      const size_t more = glyd_fingerprints(&state, data + at, len, got + found);
      TEST_AT("%s, step %zu, at %zu", what, steps[k], at);
      CHECK(more <= bound);
      found += more;
      at += len;
    }
    TEST_AT("%s, step %zu", what, steps[k]);
    CHECK_EQ(found, n);
    CHECK_BYTES(got, want, n * sizeof *want);
  }
}

static void check_marks(void) {
  const size_t n = LEN - GLYD_MARKS_AT_ONCE - GLYD_MARK_BYTES;
  for (unsigned spacing_log = 1; spacing_log <= 12; spacing_log += 3) {
    size_t n_marks = 0;
    for (size_t at = 0; at <= n; at += 61) {
      const uint64_t marks = glyd_match_marks_first(data + at, 64, spacing_log);
      TEST_AT("spacing 2^%u, at %zu", spacing_log, at);
      CHECK_EQ(glyd_match_marks(glyd_cpu_features(), data + at, spacing_log), marks);
      CHECK_EQ(glyd_match_marks(glyd_cpu_select(GLYD_CPU_CHOICE_AVX2), data + at, spacing_log), marks);
      CHECK_EQ(glyd_match_marks(GLYD_CPU_SCALAR, data + at, spacing_log), marks);
      CHECK_EQ(glyd_match_marks_first(data + at, 7, spacing_log), marks & 127);
      /* the same bytes give the same mark wherever they stand */
      CHECK_EQ(glyd_match_marks_first(data + at + 5, 1, spacing_log), marks >> 5 & 1);
      n_marks += (size_t)__builtin_popcountll(marks);
    }
    TEST_AT("spacing 2^%u", spacing_log);
    const size_t expected = (n / 61 + 1) * 64 >> spacing_log;
    CHECK(n_marks > expected / 2 && n_marks < 2 * expected);
  }
  static const uint8_t zeros[GLYD_MARKS_AT_ONCE + GLYD_MARK_BYTES];
  CHECK_EQ(glyd_match_marks(glyd_cpu_features(), zeros, 1), 0);
}

/* A list has the marks that its blocks have one by one, for every CPU variant, and reads no further. */
static void check_lists(void) {
  enum { BLOCKS = 9 };
  static uint16_t listed[BLOCKS * GLYD_MARKS_AT_ONCE], places[BLOCKS * GLYD_MARKS_AT_ONCE];
  const size_t size = BLOCKS * GLYD_MARKS_AT_ONCE + GLYD_MARK_BYTES;
  guard end = guard_new(size, 0);
  const unsigned cpus[] = {glyd_cpu_features(), glyd_cpu_select(GLYD_CPU_CHOICE_AVX2), GLYD_CPU_SCALAR};
  for (unsigned spacing_log = 1; spacing_log <= 10; spacing_log += 3) {
    for (size_t at = 0; at < LEN - size; at += 997) {
      memcpy(end.p, data + at, size);
      size_t n = 0;
      for (size_t i = 0; i + GLYD_MARK_BYTES < size; i++)
        if (glyd_match_marks_first(end.p + i, 1, spacing_log)) listed[n++] = (uint16_t)i;
      TEST_AT("spacing 2^%u, at %zu", spacing_log, at);
      for (unsigned c = 0; c < 3; c++) {
        CHECK_EQ(glyd_match_marks_list(cpus[c], end.p, BLOCKS, spacing_log, places), n);
        CHECK_BYTES(places, listed, n * sizeof *places);
      }
    }
  }
  guard_free(end);
}

int main(void) {
  uint64_t seed = 5;
  for (size_t i = 0; i < LEN; i++) data[i] = (uint8_t)(test_random(&seed) >> 24);
  check("noise");
  check_marks();
  check_lists();
  for (size_t i = 0; i < LEN; i++) data[i] = (uint8_t)(i / 700);
  check("runs");
  for (size_t i = 0; i < LEN; i++) data[i] = i % 8 == 3 ? 0x80 : 0; /* 2^31 and 0 are a mark */
  check("marks in each eighth place");
  glyd_fingerprint_state state = {0};
  CHECK_EQ(glyd_fingerprints(&state, data, 0, got), 0);
  return test_end();
}
