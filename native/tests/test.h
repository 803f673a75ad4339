/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A test is a program. CHECK counts and goes on; a failure prints both values.
 * main ends with `return test_end();`: the last line of output is
 * "N passed, N failed", the exit status 1 when anything failed or nothing ran.
 */
#ifndef GLYD_TEST_H
#define GLYD_TEST_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long test_passed;
static unsigned long test_failed;
static unsigned long test_shown;

#define TEST_SHOWN_MAX 50 /* failures printed in full; all are counted */

/* Set before a loop's checks: printed with a failure. */
static char test_where[200];

#define TEST_AT(...) ((void)snprintf(test_where, sizeof test_where, __VA_ARGS__))

static inline int test_check(int ok, const char *file, int line, const char *what, uint64_t got, uint64_t want) {
  if (ok) {
    test_passed++;
    return 1;
  }
  test_failed++;
  if (test_shown++ < TEST_SHOWN_MAX)
    printf("%s:%d: %s: got %" PRIu64 ", want %" PRIu64 " [%s]\n", file, line, what, got, want, test_where);
  return 0;
}

static inline int test_equal(uint64_t got, uint64_t want, const char *file, int line, const char *what) {
  return test_check(got == want, file, line, what, got, want);
}

/* Each gives 1 when it held, and evaluates its arguments once. */
#define CHECK(condition) test_check((condition) ? 1 : 0, __FILE__, __LINE__, #condition, 0, 1)
#define CHECK_EQ(got, want) test_equal((uint64_t)(got), (uint64_t)(want), __FILE__, __LINE__, #got " == " #want)

static inline int test_same_bytes(const void *a, const void *b, size_t n, const char *file, int line) {
  const uint8_t *p = a;
  const uint8_t *q = b;
  size_t i = 0;
  if (n > 0 && memcmp(a, b, n) != 0)
    while (i < n && p[i] == q[i]) i++;
  else
    i = n;
  return test_check(i == n, file, line, "first differing byte", i, n);
}
#define CHECK_BYTES(a, b, n) test_same_bytes(a, b, n, __FILE__, __LINE__)

static inline int test_end(void) {
  printf("%lu passed, %lu failed\n", test_passed, test_failed);
  return test_failed > 0 || test_passed == 0;
}

/* A small generator with a fixed seed, so that every run does the same. */
static inline uint64_t test_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

#endif
