/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What the tests of planes and blocks share: checks, random numbers, memory
 * that faults one byte outside, content of many kinds.
 */
#ifndef GLYD_CODEC_TEST_H
#define GLYD_CODEC_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHECK(x)                                              \
  do {                                                        \
    if (!(x)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
      exit(1);                                                \
    }                                                         \
  } while (0)

static uint64_t test_seed = 88172645463325252u;

static inline uint64_t test_random(void) {
  test_seed ^= test_seed << 13;
  test_seed ^= test_seed >> 7;
  test_seed ^= test_seed << 17;
  return test_seed * 0x2545F4914F6CDD1Du >> 8;
}

static inline size_t test_below(size_t n) { return n == 0 ? 0 : (size_t)(test_random() % n); }

/* Memory of n bytes: with no byte readable before (at_start) or after it. */
typedef struct guarded {
  uint8_t *base;
  size_t mapped;
  uint8_t *p;
} guarded;

static inline guarded guarded_new(size_t n, int at_start) {
  const size_t page = 65536; /* a multiple of any page size in use */
  const size_t room = (n + page - 1) / page * page;
  guarded g;
  g.mapped = room + 2 * page;
  g.base = mmap(NULL, g.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(g.base != MAP_FAILED);
  CHECK(room == 0 || mprotect(g.base + page, room, PROT_READ | PROT_WRITE) == 0);
  g.p = at_start ? g.base + page : g.base + page + room - n;
  return g;
}

static inline void guarded_free(guarded g) { munmap(g.base, g.mapped); }

/* Fill p[0..n) with content of the given kind. */
#define TEST_KINDS 11
static inline void test_content(unsigned kind, uint8_t *p, size_t n) {
  size_t i = 0;
  switch (kind % TEST_KINDS) {
  case 0: /* noise */
    for (; i < n; i++) p[i] = (uint8_t)test_random();
    break;
  case 1: /* one byte */ memset(p, (int)test_below(256), n); break;
  case 2: /* few symbols */
    for (; i < n; i++) p[i] = (uint8_t)('a' + test_below(1 + test_below(4)));
    break;
  case 3: /* copies of all lengths and distances among noise */
    while (i < n) {
      size_t ll = test_below(4) != 0 ? test_below(4) : test_below(400),
             ml = test_below(5) != 0 ? 4 + test_below(20) : test_below(3000);
      for (; ll > 0 && i < n; ll--) p[i++] = (uint8_t)test_random();
      size_t off = test_below(3) != 0 ? 1 + test_below(40) : 1 + test_below(i + 1);
      for (; ml > 0 && i < n && off <= i; ml--, i++) p[i] = p[i - off];
    }
    break;
  case 4: /* short periods */
    while (i < n) {
      size_t period = 1 + test_below(40), len = test_below(2000), from = i;
      for (; i < n && i < from + period; i++) p[i] = (uint8_t)test_random();
      for (; i < n && i < from + len; i++) p[i] = p[i - period];
    }
    break;
  case 5: /* words */
    while (i < n) {
      static const char *const words[] = {"the ", "segment ", "of ", "a ", "plane, ", "literal ", "match\n", "0x1F "};
      const char *w = words[test_below(8)];
      for (; *w != 0 && i < n; w++) p[i++] = (uint8_t)*w;
      if (test_below(9) == 0 && i < n) p[i++] = (uint8_t)test_random();
    }
    break;
  case 6: /* table with a counter */
    for (uint32_t row = 0; i < n; row++) {
      char line[64];
      int len = snprintf(line, sizeof line, "%u,2026-11-%02u,%u.%02u,ok\n", row, row / 5000 % 30,
                         (unsigned)test_below(500), (unsigned)test_below(100));
      for (int k = 0; k < len && i < n; k++) p[i++] = (uint8_t)line[k];
    }
    break;
  case 7: /* 4-byte records */
    for (uint32_t v = 0; i < n; i += 4) {
      v += (uint32_t)test_below(9);
      for (size_t k = 0; k < 4 && i + k < n; k++) p[i + k] = (uint8_t)(v >> (8 * k));
    }
    break;
  case 8: /* skewed bytes without matches */
    for (; i < n; i++) p[i] = (uint8_t)(test_random() & test_random() & test_random());
    break;
  case 9: /* stretches of few symbols out of a range that moves, some copies */
    while (i < n) {
      const unsigned base = (unsigned)test_below(200), span = 1 + (unsigned)test_below(56);
      for (size_t k = test_below(90000); k > 0 && i < n; k--) p[i++] = (uint8_t)(base + test_below(span));
      for (size_t k = test_below(300), off = 1 + test_below(i); k > 0 && i < n && off <= i; k--, i++) p[i] = p[i - off];
    }
    break;
  default: /* halves: noise, then the noise again */
    for (; i < n / 2; i++) p[i] = (uint8_t)test_random();
    for (; i < n; i++) p[i] = p[i - n / 2];
  }
}

#endif
