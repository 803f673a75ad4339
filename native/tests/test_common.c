/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * XXH3-64 against known answers on every CPU variant and in pieces, aligned
 * allocation, worker teams, CPU selection.
 */
#include <stdatomic.h>

#include "checksum_vectors.h"
#include "common/alloc.h"
#include "common/checksum.h"
#include "common/cpu.h"
#include "common/mem.h"
#include "common/thread.h"
#include "test.h"

static uint8_t bytes[100003];

/* Data that comes into being step by step, by other hands or by the pass itself. */
static void check_pass(unsigned cpu, size_t len, uint64_t want) {
  static uint8_t made[sizeof bytes];
  const size_t steps[] = {1, 64, 1023, 1024, 1025, 65536, sizeof bytes};
  uint64_t seed = len + 1;
  for (unsigned k = 0; k < 16; k++) {
    const unsigned copies = k & 1; /* every second time, of all steps */
    memset(made, 0xA5, sizeof made);
    glyd_checksum_pass pass;
    glyd_checksum_pass_begin(&pass, cpu, made, len);
    for (size_t at = 0; at < len;) {
      size_t n = k < 14 ? steps[k / 2] : 1 + test_random(&seed) % 3000;
      if (n > len - at) n = len - at;
      if (copies || (k == 14 && n % 2)) {
        glyd_checksum_pass_copy(&pass, made + at, bytes + at, at, n);
      } else {
        memcpy(made + at, bytes + at, n);
        if (n % 3) glyd_checksum_pass_advance(&pass, at + n);
      }
      at += n;
    }
    TEST_AT("length %zu in one pass, variant %u, way %u", len, cpu, k);
    CHECK_EQ(glyd_checksum_pass_end(&pass), want);
    CHECK(memcmp(made, bytes, len) == 0);
    CHECK(len == sizeof made || made[len] == 0xA5);
  }
}

static void check_hash(size_t len, uint64_t want) {
  const unsigned variants[] = {GLYD_CPU_SCALAR, glyd_cpu_select(GLYD_CPU_CHOICE_AVX2), glyd_cpu_features()};
  for (unsigned i = 0; i < 3; i++) {
    TEST_AT("length %zu, variant %u", len, variants[i]);
    CHECK_EQ(glyd_checksum_xxh3(variants[i], bytes, len), want);
    check_pass(variants[i], len, want);
  }
  uint64_t seed = len + 1;
  const size_t steps[] = {1, 63, 64, 65, 255, 256, 257, 5000};
  for (unsigned k = 0; k < 9; k++) {
    glyd_checksum_state state;
    glyd_checksum_init(&state);
    for (size_t at = 0; at < len;) {
      size_t n = k < 8 ? steps[k] : 1 + test_random(&seed) % 700;
      if (n > len - at) n = len - at;
      glyd_checksum_update(&state, bytes + at, n);
      at += n;
    }
    TEST_AT("length %zu in pieces, way %u", len, k);
    CHECK_EQ(glyd_checksum_digest(&state), want);
  }
}

static void test_checksum(void) {
  uint64_t v = 1;
  for (size_t i = 0; i < sizeof bytes; i++) {
    v = v * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = (uint8_t)(v >> 56);
  }
  for (size_t len = 0; len <= 512; len++) check_hash(len, checksum_short[len]);
  for (size_t i = 0; i < sizeof checksum_long / sizeof *checksum_long; i++)
    check_hash(checksum_long[i].len, checksum_long[i].hash);
  CHECK_EQ(glyd_checksum(NULL, 0), checksum_short[0]);
}

static void test_varint(void) {
  const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, (uint64_t)1 << 35, UINT64_MAX >> 1, UINT64_MAX};
  for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
    uint8_t b[10];
    uint64_t back;
    const uint8_t *end = glyd_put_varint(b, values[i]);
    CHECK(glyd_get_varint(b, end, &back) == end);
    CHECK_EQ(back, values[i]);
    for (const uint8_t *cut = b; cut < end; cut++) CHECK(glyd_get_varint(b, cut, &back) == NULL && back == 1);
  }
  const uint8_t bad[][10] = {{0x80, 0}, {0xFF, 0x80, 0}, {255, 255, 255, 255, 255, 255, 255, 255, 255, 2}};
  for (unsigned i = 0; i < 3; i++) {
    uint64_t back;
    CHECK(glyd_get_varint(bad[i], bad[i] + 10, &back) == NULL);
    CHECK_EQ(back, 0);
  }
}

static void *no_memory(void *opaque, size_t size) {
  *(size_t *)opaque = size;
  return NULL;
}
static void no_free(void *opaque, void *ptr) {
  (void)opaque;
  (void)ptr;
}

static void test_alloc(void) {
  for (size_t size = 1; size < 5000; size = size * 3 + 1) {
    uint8_t *p = glyd_alloc_get(NULL, size);
    if (!CHECK(p != NULL)) return;
    CHECK_EQ((uintptr_t)p % GLYD_ALLOC_ALIGN, 0);
    memset(p, 1, size);
    glyd_alloc_put(NULL, p);
  }
  size_t asked = 0;
  glyd_allocator a = {no_memory, no_free, &asked};
  CHECK(glyd_alloc_get(&a, 100) == NULL);
  CHECK_EQ(asked, 100 + GLYD_ALLOC_OVERHEAD);
  CHECK(glyd_alloc_get(NULL, UINT64_MAX) == NULL);
  CHECK(glyd_alloc_valid(&a) && glyd_alloc_valid(NULL));
  a.free = NULL;
  CHECK(!glyd_alloc_valid(&a));
}

static _Atomic unsigned long calls;
static void count_worker(void *arg, int worker) {
  atomic_fetch_add(&calls, 1ul << (8 * worker));
  (void)arg;
}

static void test_threads(void) {
  CHECK(glyd_thread_cores() >= 1);
  CHECK_EQ(glyd_thread_count(0), glyd_thread_cores());
  CHECK_EQ(glyd_thread_count(100000), GLYD_THREADS_MAX);
  CHECK_EQ(glyd_thread_worth(8, 100, 1000), 1);
  CHECK_EQ(glyd_thread_worth(8, 3000, 1000), 3);
  CHECK_EQ(glyd_thread_worth(8, 3000000, 1000), 8);
  glyd_thread_team(4, count_worker, NULL);
  CHECK_EQ(atomic_load(&calls), 0x01010101);
}

static void test_cpu(void) {
  CHECK_EQ(glyd_cpu_select(GLYD_CPU_CHOICE_SCALAR), GLYD_CPU_SCALAR);
  CHECK_EQ(glyd_cpu_select(GLYD_CPU_CHOICE_BEST), glyd_cpu_features());
  CHECK_EQ(glyd_cpu_select(GLYD_CPU_CHOICE_AVX2), glyd_cpu_features() & ~GLYD_CPU_AVX512);
#if defined(__x86_64__)
  CHECK_EQ((glyd_cpu_features() & GLYD_CPU_AVX2) != 0,
           __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"));
#endif
  CHECK(glyd_cpu_variant() != NULL);
}

int main(void) {
  test_checksum();
  test_varint();
  test_alloc();
  test_threads();
  test_cpu();
  return test_end();
}
