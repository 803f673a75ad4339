/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * weights_rate [ROWS COLS]: MB of bf16 a second to pack and to unpack, one
 * thread, medians of 9, Gaussian weights.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "glyd/weights.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* shared machine: this thread's own time */
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a - *(const double *)b;
  return x < 0 ? -1 : x > 0;
}

int main(int argc, char **argv) {
  const size_t rows = argc > 2 ? (size_t)atol(argv[1]) : 1024;
  const size_t cols = argc > 2 ? (size_t)atol(argv[2]) : 4096;
  const size_t n = rows * cols;
  const size_t n_work = glyd_weights_workspace();
  uint16_t *w = malloc(2 * n);
  uint16_t *back = malloc(2 * n);
  void *work = malloc(n_work);
  if (w == NULL || back == NULL || work == NULL) return 1;
  uint64_t s = 88172645463325252u;
  for (size_t i = 0; i < n; i++) {
    float f = -6;
    for (int k = 0; k < 12; k++) {
      s ^= s << 13, s ^= s >> 7, s ^= s << 17;
      f += (float)(s >> 40) / 16777216.0f;
    }
    f *= 0.02f;
    uint32_t u;
    memcpy(&u, &f, 4);
    w[i] = (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
  }
  for (int layout = GLYD_WEIGHTS_MMA12; layout <= GLYD_WEIGHTS_TIERED; layout++) {
    const glyd_weights_shape shape = {layout, rows, cols};
    const size_t cap = (size_t)glyd_weights_pack_bound(&shape);
    uint8_t *out = malloc(cap);
    if (out == NULL) return 1;
    for (int cpu = 0; cpu < 2; cpu++) {
      double pack[9];
      double unpack[9];
      size_t size = 0;
      for (int i = 0; i < 9; i++) {
        const double t0 = now();
        if (glyd_weights_pack(out, cap, &shape, w, work, n_work, cpu, &size) != GLYD_OK || size == 0) return 1;
        const double t1 = now();
        if (glyd_weights_unpack_rows(back, 2 * n, out, size, 0, rows, work, n_work, cpu) != GLYD_OK) return 1;
        const double t2 = now();
        pack[i] = t1 - t0;
        unpack[i] = t2 - t1;
      }
      if (memcmp(w, back, 2 * n) != 0) return 1;
      qsort(pack, 9, sizeof *pack, by_value);
      qsort(unpack, 9, sizeof *unpack, by_value);
      printf("%-6s %-8s %.3f bits  pack %6.0f MB/s  unpack %6.0f MB/s\n",
             layout == GLYD_WEIGHTS_MMA12 ? "mma12" : "tiered", cpu ? "portable" : "best",
             8.0 * (double)size / (double)n, 2e-6 * (double)n / pack[4], 2e-6 * (double)n / unpack[4]);
    }
    free(out);
  }
  free(w);
  free(back);
  free(work);
  return 0;
}
