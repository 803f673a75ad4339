/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What benchmarks measure with. Define _POSIX_C_SOURCE 199309L before the first include.
 */
#ifndef GLYD_BENCH_TIME_H
#define GLYD_BENCH_TIME_H

#include <stdlib.h>
#include <time.h>

/* Seconds of processor time of this thread. */
static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The upper median of n values, which are sorted. */
static inline double median(double *v, int n) {
  qsort(v, (size_t)n, sizeof *v, ascending);
  return v[n / 2];
}

#endif
