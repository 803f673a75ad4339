/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * In place of CUDA's header: kernels as ordinary C++, a block, or the blocks of a
 * cluster, at a time on one CPU thread. Every thread of a block is a fiber that runs until it meets a
 * barrier or an exchange with its warp; whoever waits for threads that never
 * come ends the program. Fibers run in an order of their own each time, so that
 * what depends on an order shows. Shared memory starts as NaNs, and copies by
 * cp.async happen when they are waited for, not before.
 */
#ifndef GLYD_EMULATED_CUDA_RUNTIME_H
#define GLYD_EMULATED_CUDA_RUNTIME_H

#define GLYD_EMULATION 1

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <functional>
#include <vector>

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
struct alignas(8) uint2 {
  uint32_t x, y;
};
inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct emulated_dim {
  unsigned x, y, z;
};

namespace emulation {

constexpr int kWarp = 32, kWords = 8; /* words of an exchange */

struct Copy {
  void *to;
  const void *from;
};

struct Fiber {
  ucontext_t context;
  emulated_dim thread;
  bool done = false;
  const unsigned *gate = nullptr; /* waits until this is no longer … */
  unsigned seen = 0;              /* … that */
  std::vector<std::vector<Copy>> copies = {{}}; /* by group; the last one is not committed yet */
  std::vector<char> stack;
};

struct Warp {
  unsigned gate = 0, arrived = 0, round = 0;
  uint64_t words[2][kWarp][kWords];
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  unsigned gate = 0, arrived = 0;
  ucontext_t scheduler;
  Fiber *now = nullptr;
  std::function<void()> kernel;
  emulated_dim index;
  std::vector<uint8_t> shared;
};

inline Block *block;
inline std::vector<Block> cluster; /* that are run together */
inline emulated_dim block_size, grid_size;
inline uint32_t order = 1;
inline bool is_damaged = false; /* the input: products of exponents that no page has may round */

inline void wait(const unsigned *gate, unsigned seen) {
  Fiber *me = block->now;
  me->gate = gate;
  me->seen = seen;
  swapcontext(&me->context, &block->scheduler);
}

inline unsigned live(int warp) {
  unsigned n = 0;
  for (int i = warp * kWarp; i < (warp + 1) * kWarp; i++) n += !block->fibers[(size_t)i].done;
  return n;
}

inline void barrier() {
  unsigned all = 0;
  for (int w = 0; w < (int)block->warps.size(); w++) all += live(w);
  const unsigned seen = block->gate;
  if (++block->arrived == all) {
    block->arrived = 0;
    block->gate++;
    return;
  }
  wait(&block->gate, seen);
}

/* All 32 lanes give words and get everybody's. */
inline const uint64_t (*exchange(const uint64_t *words, int n))[kWords] {
  const unsigned t = block->now->thread.x;
  Warp &warp = block->warps[t / kWarp];
  auto &slot = warp.words[warp.round & 1];
  memcpy(slot[t % kWarp], words, sizeof(uint64_t) * (size_t)n);
  const unsigned seen = warp.gate;
  if (++warp.arrived == kWarp) {
    warp.arrived = 0;
    warp.round++;
    warp.gate++;
  } else {
    wait(&warp.gate, seen);
  }
  return slot;
}

inline void enter() {
  block->kernel();
  block->now->done = true;
  swapcontext(&block->now->context, &block->scheduler);
}

/* Run a kernel; as many blocks along x as a cluster has at a time. */
inline void launch(emulated_dim grid, unsigned threads, size_t shared_nbytes, const std::function<void()> &kernel,
                   unsigned blocks = 1) {
  block_size = {threads, 1, 1};
  grid_size = grid;
  for (unsigned z = 0; z < grid.z; z++)
    for (unsigned y = 0; y < grid.y; y++)
      for (unsigned x = 0; x < grid.x; x += blocks) {
        cluster.clear();
        cluster.resize(blocks);
        for (Block &here : cluster) {
          here.index = {x + (unsigned)(&here - cluster.data()), y, z};
          here.shared.assign(shared_nbytes + 128, 0xFF);
          here.kernel = kernel;
          here.fibers.resize(threads);
          here.warps.resize(threads / kWarp);
          for (unsigned t = 0; t < threads; t++) {
            Fiber &f = here.fibers[t];
            f.thread = {t, 0, 0};
            f.stack.resize(1 << 16);
            getcontext(&f.context);
            f.context.uc_stack.ss_sp = f.stack.data();
            f.context.uc_stack.ss_size = f.stack.size();
            f.context.uc_link = nullptr;
            makecontext(&f.context, enter, 0);
          }
        }
        for (;;) {
          bool any = false, ran = false;
          order = order * 1664525u + 1013904223u;
          const unsigned all = threads * blocks, start = order >> 8, step = (order >> 4 & 1) ? 1 : all - 1;
          for (unsigned i = 0; i < all; i++) {
            const unsigned at = (unsigned)((start + (size_t)i * step) % all);
            Block &here = cluster[at / threads];
            Fiber &f = here.fibers[at % threads];
            if (f.done) continue;
            any = true;
            if (f.gate && *f.gate == f.seen) continue;
            f.gate = nullptr;
            block = &here;
            here.now = &f;
            ran = true;
            swapcontext(&here.scheduler, &f.context);
          }
          if (!any) break;
          if (!ran) {
            fprintf(stderr, "block %u %u %u: threads wait for others that do not come\n", x, y, z);
            abort();
          }
        }
      }
}

} // namespace emulation

#define threadIdx (emulation::block->now->thread)
#define blockIdx (emulation::block->index)
#define blockDim emulation::block_size
#define gridDim emulation::grid_size

inline uint8_t *emulated_shared() {
  return (uint8_t *)(((uintptr_t)emulation::block->shared.data() + 127) / 128 * 128);
}

inline void __syncthreads() { emulation::barrier(); }
inline void __syncwarp() {
  const uint64_t none = 0;
  emulation::exchange(&none, 1);
}
template <class T> T emulated_from_lane(T value, unsigned lane) {
  uint64_t word = 0;
  memcpy(&word, &value, sizeof value);
  const auto all = emulation::exchange(&word, 1);
  T r;
  memcpy(&r, &all[lane % emulation::kWarp][0], sizeof r);
  return r;
}
template <class T> T __shfl_sync(unsigned, T value, int lane) { return emulated_from_lane(value, (unsigned)lane); }
template <class T> T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulated_from_lane(value, (threadIdx.x % emulation::kWarp) ^ (unsigned)mask);
}
template <class T> T __shfl_up_sync(unsigned, T value, int by) {
  const unsigned lane = threadIdx.x % emulation::kWarp;
  return emulated_from_lane(value, lane >= (unsigned)by ? lane - (unsigned)by : lane);
}
inline unsigned __ballot_sync(unsigned, bool value) {
  const uint64_t word = value;
  const auto all = emulation::exchange(&word, 1);
  unsigned r = 0;
  for (int i = 0; i < emulation::kWarp; i++) r |= (unsigned)all[i][0] << i;
  return r;
}
inline bool __any_sync(unsigned mask, bool value) { return __ballot_sync(mask, value) != 0; }

inline long long clock64() { /* every look takes a while */
  static long long now = 0;
  return now += 100;
}
inline int __popc(uint32_t x) { return __builtin_popcount(x); }
inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t by) {
  return (uint32_t)((((uint64_t)high << 32 | low) << (by & 31)) >> 32);
}
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t by) {
  return (uint32_t)(((uint64_t)high << 32 | low) >> (by & 31));
}
inline uint32_t __funnelshift_lc(uint32_t low, uint32_t high, uint32_t by) {
  return (uint32_t)(((uint64_t)high << 32 | low) << (by < 32 ? by : 32) >> 32);
}
inline uint32_t __funnelshift_rc(uint32_t low, uint32_t high, uint32_t by) {
  return (uint32_t)(((uint64_t)high << 32 | low) >> (by < 32 ? by : 32));
}
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
inline uint32_t __float_as_uint(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}
inline float __uint_as_float(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}
inline uint32_t atomicAdd(uint32_t *p, uint32_t v) {
  const uint32_t old = *p;
  *p += v;
  return old;
}
inline uint32_t atomicOr(uint32_t *p, uint32_t v) {
  const uint32_t old = *p;
  *p |= v;
  return old;
}
inline int max(int a, int b) { return a > b ? a : b; }
inline int min(int a, int b) { return a < b ? a : b; }
inline uint32_t max(uint32_t a, uint32_t b) { return a > b ? a : b; }
inline uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* ---- instructions ----------------------------------------------------------- */

inline uint32_t emulated_prmt(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = (uint64_t)b << 32 | a;
  uint32_t r = 0;
  for (int i = 0; i < 4; i++) {
    const uint32_t n = selector >> (4 * i) & 15, byte = (uint32_t)(bytes >> (8 * (n & 7))) & 0xFF;
    r |= (n & 8 ? (byte & 0x80 ? 0xFFu : 0u) : byte) << (8 * i);
  }
  return r;
}

inline float emulated_bf16(uint32_t bits) {
  const uint32_t u = bits << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}

/* Two bf16 times two bf16; the product must be exact. */
inline uint32_t emulated_times(uint32_t pair, uint32_t factor) {
  uint32_t r = 0;
  for (int i = 0; i < 2; i++) {
    const float f = emulated_bf16(pair >> (16 * i) & 0xFFFF) * emulated_bf16(factor >> (16 * i) & 0xFFFF);
    const uint32_t u = __float_as_uint(f);
    if (u & 0xFFFF && !emulation::is_damaged) {
      fprintf(stderr, "a product of bf16 is not exact\n");
      abort();
    }
    r |= u >> 16 << (16 * i);
  }
  return r;
}

inline void emulated_copy_async16(void *to, const void *from) {
  if ((uintptr_t)to % 16 || (uintptr_t)from % 16) {
    fprintf(stderr, "cp.async from %p to %p: not at multiples of 16\n", from, to);
    abort();
  }
  emulation::block->now->copies.back().push_back({to, from});
}
inline void emulated_copies_commit() { emulation::block->now->copies.emplace_back(); }
/* All groups but the last n. */
inline void emulated_copies_wait(size_t n) {
  auto &groups = emulation::block->now->copies;
  while (groups.size() > n + 1) {
    for (const auto &copy : groups.front()) memcpy(copy.to, copy.from, 16);
    groups.erase(groups.begin());
  }
}

inline void emulated_ldmatrix(uint32_t (&a)[4], const void *row, bool transposed) {
  const uint64_t word = (uint64_t)(uintptr_t)row;
  if (word % 16) {
    fprintf(stderr, "ldmatrix: a row is not at a multiple of 16\n");
    abort();
  }
  const auto all = emulation::exchange(&word, 1);
  const unsigned lane = threadIdx.x % emulation::kWarp;
  for (unsigned m = 0; m < 4; m++) {
    a[m] = 0;
    for (unsigned half = 0; half < 2; half++) {
      const unsigned r = transposed ? lane % 4 * 2 + half : lane / 4, c = transposed ? lane / 4 : lane % 4 * 2 + half;
      uint16_t v;
      memcpy(&v, (const uint16_t *)(uintptr_t)all[8 * m + r][0] + c, 2);
      a[m] |= (uint32_t)v << (16 * half);
    }
  }
}

inline uint32_t emulated_movmatrix(uint32_t x) {
  const uint64_t word = x;
  const auto all = emulation::exchange(&word, 1);
  const unsigned lane = threadIdx.x % emulation::kWarp;
  uint32_t r = 0;
  for (unsigned half = 0; half < 2; half++) {
    const unsigned row = lane % 4 * 2 + half, c = lane / 4;
    r |= ((uint32_t)all[row * 4 + c / 2][0] >> (16 * (c % 2)) & 0xFFFF) << (16 * half);
  }
  return r;
}

inline void mma_16x8x16(float *d, const uint32_t *a, uint32_t b0, uint32_t b1) {
  const uint64_t words[6] = {a[0], a[1], a[2], a[3], b0, b1};
  const auto all = emulation::exchange(words, 6);
  const unsigned lane = threadIdx.x % emulation::kWarp;
  for (unsigned i = 0; i < 4; i++) {
    const unsigned row = lane / 4 + i / 2 * 8, col = lane % 4 * 2 + i % 2;
    double sum = d[i];
    for (unsigned k = 0; k < 16; k++) {
      const uint64_t x = all[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], y = all[col * 4 + k % 8 / 2][4 + k / 8];
      sum += (double)emulated_bf16((uint32_t)(x >> (k % 2 * 16)) & 0xFFFF) *
             (double)emulated_bf16((uint32_t)(y >> (k % 2 * 16)) & 0xFFFF);
    }
    d[i] = (float)sum;
  }
}

#endif
