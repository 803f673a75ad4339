/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * What the products with rings take from ptx_sm90.cuh and wgmma_*_sm90.cuh, on
 * the CPU: mbarriers, copies that complete on them, named barriers, clusters,
 * wgmma. Products read their operands when they are waited for, as late as they
 * may. Addresses of other blocks' memory (mapa) are not there to be read.
 */
#ifndef GLYD_EMULATED_RING_SM90_H
#define GLYD_EMULATED_RING_SM90_H

#include <cuda.h>

#include <deque>
#include <map>

#include "emulated_sm90.h"

#define __grid_constant__

struct __nv_bfloat16 {
  uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 v) { return emulated_bf16(v.bits); }
inline float bf16_float(uint32_t bits) { return __uint_as_float(bits << 16); }
inline uint32_t emulated_round(float f) {
  const uint32_t u = __float_as_uint(f);
  if ((u & 0x7FFFFFFF) > 0x7F800000) return u >> 16 | 0x40;
  return (u + 0x7FFF + (u >> 16 & 1)) >> 16;
}
inline uint32_t bf16_pair(float a, float b) { return emulated_round(a) | emulated_round(b) << 16; }

inline int __ffs(uint32_t x) { return __builtin_ffs((int)x); }
inline int __clz(uint32_t x) { return x ? __builtin_clz(x) : 32; }
inline bool __all_sync(unsigned mask, bool value) { return __ballot_sync(mask, value) == ~0u; }
inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
inline uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }
template <class T> T __ldcg(const T *p) { return *p; }
template <class T> void __stcg(T *p, T v) { *p = v; }
inline void __threadfence() {}
inline unsigned load_acquire(const unsigned *p) { return *p; }

/* ---- mbarriers ------------------------------------------------------------------- */
struct EmulatedBar { /* in its 8 bytes */
  uint16_t count, pending;
  int32_t bytes_and_phase;
  int32_t bytes() const { return bytes_and_phase >> 1; }
  uint32_t phase() const { return bytes_and_phase & 1; }
};
static_assert(sizeof(EmulatedBar) == 8, "an mbarrier");
namespace emulation {
inline unsigned completed = 0, idle = 0;                   /* phases of any mbarrier; tests in vain since */
inline std::map<std::pair<Block *, int>, std::pair<unsigned, unsigned>> named; /* gate, arrived */
inline unsigned cluster_gate = 0, cluster_arrived = 0;
inline std::map<Fiber *, unsigned> cluster_seen; /* gate at the last arrival */
/* Something of another block of the cluster. */
template <class F> void in_block(uint32_t rank, F what) {
  Block *mine = block;
  block = &cluster.at(rank);
  what();
  block = mine;
}
inline void yield() {
  if (++idle > 50000000) {
    fprintf(stderr, "threads ask for mbarriers that do not complete\n");
    abort();
  }
  block->now->gate = nullptr;
  swapcontext(&block->now->context, &block->scheduler);
}
struct Group {
  float *d;
  int n;
  uint64_t a, b;
  bool ends;
  float rows[2][16]; /* where a is 0: the thread's rows of A, from registers */
};
inline std::map<Fiber *, std::deque<Group>> products; /* that a thread has issued */
} // namespace emulation
inline EmulatedBar &emulated_bar(uint32_t at) {
  emulated_word<uint64_t>(at);
  return *reinterpret_cast<EmulatedBar *>(emulated_shared() + at);
}
inline void emulated_turn(EmulatedBar &b) {
  if (b.pending || b.bytes()) return;
  b.pending = b.count, b.bytes_and_phase ^= 1;
  emulation::completed++, emulation::idle = 0;
}
inline void emulated_bytes(uint32_t at, int n) {
  EmulatedBar &b = emulated_bar(at);
  b.bytes_and_phase += n * 2;
  emulated_turn(b);
}
inline void mb_init(uint32_t at, uint32_t n) { emulated_bar(at) = {(uint16_t)n, (uint16_t)n, 0}; }
inline void mb_arrive(uint32_t at) {
  EmulatedBar &b = emulated_bar(at);
  if (b.pending == 0) {
    fprintf(stderr, "mbarrier at %u: too many arrivals\n", at);
    abort();
  }
  b.pending--;
  emulated_turn(b);
}
inline void mb_arrive_at(uint32_t at, uint32_t rank) {
  emulation::in_block(rank, [&] { mb_arrive(at); });
}
inline void mb_announce(uint32_t at, uint32_t n) { emulated_bar(at).bytes_and_phase += (int)n * 2; }
inline void mb_expect(uint32_t at, uint32_t n) {
  emulated_bar(at).bytes_and_phase += (int)n * 2;
  mb_arrive(at);
}
inline bool emulated_done(uint32_t at, uint32_t phase) { return emulated_bar(at).phase() != (phase & 1); }
inline void mb_wait(uint32_t at, uint32_t phase) {
  while (!emulated_done(at, phase)) emulation::wait(&emulation::completed, emulation::completed);
}
inline bool mb_test(uint32_t at, uint32_t phase) {
  const bool done = emulated_done(at, phase);
  if (!done) emulation::yield();
  return done;
}
inline void mb_fence_init() {}
inline void proxy_fence() {}

/* ---- copies ------------------------------------------------------------------------ */
inline void bulk(uint32_t to, const void *from, uint32_t n, uint32_t bar, uint64_t) {
  if (n % 16 || to % 16 || (uintptr_t)from % 16) {
    fprintf(stderr, "bulk copy of %u bytes to %u from %p\n", n, to, from);
    abort();
  }
  emulated_word<uint4>(to), emulated_word<uint4>(to + n - 16);
  memcpy(emulated_shared() + to, from, n);
  emulated_bytes(bar, -(int)n);
}
inline void bulk_prefetch(const void *, uint32_t) {}
inline void tma_prefetch_map(const CUtensorMap *) {}
inline void tma2d(uint32_t to, const CUtensorMap *map, int col, int row, uint32_t bar, uint64_t) {
  if (to % 1024) {
    fprintf(stderr, "a box at %u, not at a multiple of 1024\n", to);
    abort();
  }
  for (int r = 0; r < map->box_rows; r++)
    for (int c = 0; c < 64; c++) {
      const bool in = row + r < map->rows && col + c < map->cols;
      const uint16_t v = in ? map->at[(row + r) * map->cols + col + c] : 0;
      const uint32_t at = to + (uint32_t)r * 128 + (((uint32_t)c / 8 ^ ((uint32_t)r & 7)) << 4) + (uint32_t)c % 8 * 2;
      emulated_word<uint16_t>(at);
      memcpy(emulated_shared() + at, &v, 2);
    }
  emulated_bytes(bar, -map->box_rows * 128);
}
inline void tma2d_multicast(uint32_t to, const CUtensorMap *map, int col, int row, uint32_t bar, uint16_t blocks,
                            uint64_t policy) {
  for (uint32_t r = 0; r < 16; r++)
    if (blocks >> r & 1) emulation::in_block(r, [&] { tma2d(to, map, col, row, bar, policy); });
}
inline uint64_t policy_evict_first() { return 0; }
inline uint64_t policy_evict_normal() { return 0; }
inline uint64_t policy_evict_last() { return 0; }

/* ---- shared memory ------------------------------------------------------------------- */
inline float4 lds_f4(uint32_t at) { return emulated_word<float4>(at); }
inline float4 ldc_f4(uint32_t at) { return lds_f4(at); }
inline void sts32(uint32_t at, uint32_t v) {
  emulated_word<uint32_t>(at);
  memcpy(emulated_shared() + at, &v, 4);
}
inline void stg128(void *to, uint4 v) {
  if ((uintptr_t)to % 16) abort();
  memcpy(to, &v, 16);
}
inline void emulated_stmatrix(uint32_t at, const uint32_t *blocks, int n, bool transposed) {
  const uint64_t words[5] = {at, blocks[0], blocks[1], n == 4 ? blocks[2] : 0u, n == 4 ? blocks[3] : 0u};
  const auto all = emulation::exchange(words, 5);
  const unsigned lane = threadIdx.x % 32;
  for (int m = 0; m < n; m++)
    for (unsigned h = 0; h < 2; h++) {
      const unsigned row = transposed ? lane % 4 * 2 + h : lane / 4, col = transposed ? lane / 4 : lane % 4 * 2 + h;
      const uint32_t to = (uint32_t)all[8 * m + row][0];
      if (to % 16) abort();
      sts16(to + 2 * col, (uint16_t)(blocks[m] >> (16 * h)));
    }
  __syncwarp(); /* a word of an exchange serves until the next but one */
}
inline uint4 ldmatrix4(uint32_t at) {
  uint32_t a[4];
  emulated_word<uint4>(at);
  emulated_ldmatrix(a, emulated_shared() + at, false);
  return {a[0], a[1], a[2], a[3]};
}
inline uint32_t and_or(uint32_t a, uint32_t m, uint32_t c) { return (a & m) | c; }
inline void stmatrix2(uint32_t at, uint32_t x, uint32_t y) {
  const uint32_t b[4] = {x, y, 0, 0};
  emulated_stmatrix(at, b, 2, true);
}
inline void stmatrix4(uint32_t at, uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
  const uint32_t b[4] = {x, y, z, w};
  emulated_stmatrix(at, b, 4, true);
}
/* ---- threads ---------------------------------------------------------------------------- */
inline bool elect() {
  __syncwarp();
  return threadIdx.x % 32 == 0;
}
inline void bar_sync(int id, int n) {
  auto &bar = emulation::named[{emulation::block, id}];
  const unsigned seen = bar.first;
  if (++bar.second == (unsigned)n) {
    bar.second = 0, bar.first++;
    return;
  }
  emulation::wait(&bar.first, seen);
}
inline uint32_t cluster_rank() { return (uint32_t)(emulation::block - emulation::cluster.data()); }
inline uint32_t mapa(uint32_t, uint32_t) {
  fprintf(stderr, "memory of another block\n");
  abort();
}
inline void cluster_arrive() {
  using namespace emulation;
  cluster_seen[block->now] = cluster_gate;
  if (++cluster_arrived == block_size.x * cluster.size()) cluster_arrived = 0, cluster_gate++;
}
inline void cluster_wait() {
  using namespace emulation;
  if (cluster_gate == cluster_seen[block->now]) wait(&cluster_gate, cluster_gate);
}
inline void grid_wait() {}
inline void grid_release() {}
template <int N, int NOW> void set_registers() {}

/* ---- tensor cores ------------------------------------------------------------------------- */
inline void pin(float &) {}
inline void wg_fence() {}
inline void wg_commit() {
  auto &mine = emulation::products[emulation::block->now];
  if (!mine.empty()) mine.back().ends = true;
}
inline float emulated_operand(uint64_t descriptor, unsigned row, unsigned k) { /* 128-byte swizzle, by the address */
  uint32_t at = (uint32_t)(descriptor & 0x3FFF) * 16 + row / 8 * 1024 + row % 8 * 128 + k * 2;
  if ((descriptor >> 62) != 1 || (descriptor >> 32 & 0x3FFF) != 64) abort();
  at ^= (at >> 7 & 7) << 4;
  return emulated_bf16(emulated_word<uint16_t>(at));
}
inline void emulated_product(const emulation::Group &g) {
  const unsigned t = threadIdx.x % 128;
  for (unsigned half = 0; half < 2; half++) {
    float a[16];
    for (unsigned k = 0; k < 16; k++)
      a[k] = g.a ? emulated_operand(g.a, t / 32 * 16 + t % 32 / 4 + 8 * half, k) : g.rows[half][k];
    for (unsigned i = 0; i < (unsigned)g.n / 8; i++)
      for (unsigned j = 0; j < 2; j++) {
        double sum = g.d[4 * i + 2 * half + j];
        for (unsigned k = 0; k < 16; k++)
          sum += (double)a[k] * (double)emulated_operand(g.b, 8 * i + 2 * (t % 4) + j, k);
        g.d[4 * i + 2 * half + j] = (float)sum;
      }
  }
}
template <int N> void wg_wait() {
  auto &mine = emulation::products[emulation::block->now];
  int groups = 0;
  for (const auto &g : mine) groups += g.ends;
  while (groups > N) {
    emulated_product(mine.front());
    groups -= mine.front().ends;
    mine.pop_front();
  }
  __syncwarp();
}
template <int N> struct WgmmaShared {
  static void mma(float (&d)[N / 2], uint64_t a, uint64_t b) {
    emulation::products[emulation::block->now].push_back({d, N, a, b, false, {}});
  }
};
template <int N> struct Wgmma {
  static void mma(float (&d)[N / 2], const uint32_t *a, uint64_t b) {
    emulation::Group group = {d, N, 0, b, false, {}};
    const uint64_t words[4] = {a[0], a[1], a[2], a[3]};
    const auto all = emulation::exchange(words, 4);
    const unsigned quad = threadIdx.x % 32 / 4 * 4;
    for (unsigned half = 0; half < 2; half++)
      for (unsigned k = 0; k < 16; k++)
        group.rows[half][k] =
            emulated_bf16((uint32_t)(all[quad + k % 8 / 2][half + k / 8 * 2] >> (k % 2 * 16)) & 0xFFFF);
    emulation::products[emulation::block->now].push_back(group);
  }
};

#endif
