/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What the library needs of threads: a lock, a condition, a team of workers.
 */
#ifndef GLYD_COMMON_THREAD_H
#define GLYD_COMMON_THREAD_H

#include <pthread.h>
#include <stdint.h>

#define GLYD_THREADS_MAX 256

typedef pthread_mutex_t glyd_lock;
typedef pthread_cond_t glyd_condition;

/* Number of CPUs this process may run on, at least 1. */
int glyd_thread_cores(void);

/* threads of a parameter (0: cores) as a number from 1 to GLYD_THREADS_MAX. */
int glyd_thread_count(int threads);

/* Content bytes that pay for a worker: a start and a join take about 30 us. */
#define GLYD_ENCODE_GRAIN ((uint64_t)64 << 10)
#define GLYD_DECODE_GRAIN ((uint64_t)512 << 10)

/* n, or fewer where total bytes are not worth n workers; at least 1. */
int glyd_thread_worth(int n, uint64_t total, uint64_t grain);

/* Run work(arg, i) for i from 0 to n - 1, each on a thread of its own, the
 * caller's among them, and wait for all. Where the system gives fewer threads,
 * the missing calls are left out: work(arg, 0) always runs, and must be able
 * to do everything alone. */
void glyd_thread_team(int n, void (*work)(void *arg, int worker), void *arg);

#endif
