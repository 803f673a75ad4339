/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Threads are started for a batch and joined at its end: no pool outlives a
 * call, so contexts survive a fork and nothing needs shutting down.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "common/thread.h"

#include <sched.h>
#include <stddef.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)1 << 20) /* some systems give threads as little as 128 KiB */

int glyd_thread_cores(void) {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    const int n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
  }
#endif
  const long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (int)(n < GLYD_THREADS_MAX ? n : GLYD_THREADS_MAX) : 1;
}

int glyd_thread_count(int threads) {
  if (threads <= 0) threads = glyd_thread_cores();
  return threads < GLYD_THREADS_MAX ? threads : GLYD_THREADS_MAX;
}

int glyd_thread_worth(int n, uint64_t total, uint64_t grain) {
  const uint64_t worth = total / grain;
  if (worth >= (uint64_t)n) return n;
  return worth > 1 ? (int)worth : 1;
}

typedef struct member {
  void (*work)(void *arg, int worker);
  void *arg;
  int worker;
  pthread_t thread;
} member;

static void *run_member(void *p) {
  const member *m = p;
  m->work(m->arg, m->worker);
  return NULL;
}

void glyd_thread_team(int n, void (*work)(void *arg, int worker), void *arg) {
  member team[GLYD_THREADS_MAX];
  int started = 1;
  if (n > 1) {
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) == 0) {
      (void)pthread_attr_setstacksize(&attr, STACK_SIZE);
      for (; started < n && started < GLYD_THREADS_MAX; started++) {
        member *m = &team[started];
        *m = (member){.work = work, .arg = arg, .worker = started};
        if (pthread_create(&m->thread, &attr, run_member, m) != 0) break;
      }
      (void)pthread_attr_destroy(&attr);
    }
  }
  work(arg, 0);
  for (int i = 1; i < started; i++) (void)pthread_join(team[i].thread, NULL);
}
