/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Products of many tokens: weights are decoded to bf16 in shared memory.
 *
 * One warp fills a ring of packed tiles, one a ring of activations (TMA). Warps
 * that decode turn packed tiles into exact bf16 weights in a third ring, in the
 * order that wgmma reads (128-byte swizzle), and put exceptions in their places.
 * Two warpgroups multiply, both operands from shared memory. The same kernel takes
 * plain bf16 weights by TMA instead of decoding: same tiles, same order of sums,
 * so packed and plain products have the same bits.
 *
 * The parts of a tile that several workers share (staged_work.cuh) meet in global
 * memory, added in column order.
 */
#ifndef GLYD_STAGED_SM90_CUH
#define GLYD_STAGED_SM90_CUH

#include <utility>

#include "ring_sm90.cuh"
#include "staged_launch_sm90.h"
#include "staged_tile_sm90.cuh"
#include "staged_work.cuh"
#include "wgmma_shared_sm90.cuh"

namespace glyd {

struct StagedArgs {
  RingArgs ring; /* of it: what is known of the pack, x, y, bias, workspace */
  StagedWork work;
  int weight_slots, x_slots, packed_slots;
};

/* Shared memory: weights [slots][64-row blocks][64 rows of 128 bytes], activations [slots][M rows of 128 bytes], packed
 * tiles [slots][blocks][6144], barriers, staging of outputs. */
template <int M, int B> struct StagedMemory {
  static constexpr uint32_t kWeights = B * kStagedTile, kX = M * 128, kPacked = B * GLYD_WEIGHTS_MMA12_TILE;
  uint32_t weights, x, packed, weight_full, weight_empty, x_full, packed_full, flags, out;
  __device__ __forceinline__ explicit StagedMemory(const StagedArgs &p) {
    weights = (smem_u32(ring_memory) + 1023) & ~1023u;
    x = weights + p.weight_slots * kWeights;
    packed = x + p.x_slots * kX;
    weight_full = packed + p.packed_slots * kPacked;
    weight_empty = weight_full + 64, x_full = weight_full + 128, packed_full = weight_full + 192, flags = weight_full + 256;
    out = weight_full + kStagedBars;
  }
};

template <int M, int B>
__device__ __forceinline__ void staged_fill_x(const StagedArgs &p, const StagedMemory<M, B> &m, const CUtensorMap *mx,
                                              Steps<M> &at, uint64_t policy) {
  if (!at.more) return;
  if (elect()) {
    const uint32_t full = m.x_full + 8 * at.slot.at;
    mb_expect(full, m.kX);
    tma2d(m.x + at.slot.at * m.kX, mx, (at.s.k0 + at.i) * 64, at.s.tok, full, policy);
  }
  at.next(p.work, p.x_slots);
}
template <int M, int B>
__device__ __forceinline__ void staged_fill_packed(const StagedArgs &p, const StagedMemory<M, B> &m, Steps<M> &at,
                                                   uint64_t policy) {
  if (!at.more) return;
  if (elect()) {
    const RingArgs &r = p.ring;
    const int blocks = min(B, r.n_blocks - at.s.row_tile * B);
    const uint32_t full = m.packed_full + 8 * at.slot.at;
    mb_expect(full, blocks * GLYD_WEIGHTS_MMA12_TILE);
    const uint8_t *from =
        r.tiles + ((size_t)at.s.row_tile * B * r.n_tiles + at.s.k0 + at.i) * GLYD_WEIGHTS_MMA12_TILE;
    uint32_t to = m.packed + at.slot.at * m.kPacked;
#pragma unroll 1
    for (int b = 0; b < blocks; b++, from += (size_t)r.n_tiles * GLYD_WEIGHTS_MMA12_TILE, to += GLYD_WEIGHTS_MMA12_TILE)
      bulk(to, from, GLYD_WEIGHTS_MMA12_TILE, full, policy);
  }
  at.next(p.work, p.packed_slots);
}

/* Four warps: each decodes 16 rows of every block. The first also fills the ring of packed tiles, the second that of
 * activations: when a slot of weights is free, so is the slot of activations of the step after (they have one more). */
template <int M, int B>
__device__ __forceinline__ void staged_decode(const StagedArgs &p, const StagedMemory<M, B> &m, const CUtensorMap *mx,
                                              int strip, int lane) {
  const RingArgs &r = p.ring;
  const int tid = strip * 32 + lane, row = strip * 16 + (lane >> 2);
  const uint32_t to = staged_rows(strip, lane);
  const uint64_t policy = strip == 1           ? policy_evict_last()
                          : p.work.token_tiles > 1 ? policy_evict_normal()
                                              : policy_evict_first();
  Schedule<M> schedule(p.work, blockIdx.x);
  Steps<M> ahead(p.work, blockIdx.x);
  Segment s;
  Slot in, out;
  if (r.dependent != 2) grid_wait();
  if (strip == 0) {
    for (int i = 0; i < p.packed_slots; i++) staged_fill_packed(p, m, ahead, policy);
  } else if (strip == 1) {
    grid_wait();
    staged_fill_x(p, m, mx, ahead, policy);
  }
  while (schedule.next(p.work, s)) {
    PatchList<RingArgs> lists[B];
    uint32_t bases[B];
#pragma unroll
    for (int b = 0; b < B; b++) {
      const int block = s.row_tile * B + b;
      bases[b] = staged_bases(r.blocks + (size_t)min(block, r.n_blocks - 1) * GLYD_WEIGHTS_BLOCK_HEADER, row);
      lists[b].open(r, block, s.k0, lane);
    }
    for (int i = 0; i < s.n; i++) {
      mb_wait(m.packed_full + 8 * in.at, in.phase);
      const uint32_t from = m.packed + in.at * m.kPacked + tid * 16, tile = m.weights + out.at * m.kWeights;
      PackedWords words[B];
#pragma unroll
      for (int b = 0; b < B; b++) words[b].load(from + b * GLYD_WEIGHTS_MMA12_TILE);
      mb_wait(m.weight_empty + 8 * out.at, out.phase ^ 1);
      if (strip == 1) staged_fill_x(p, m, mx, ahead, policy);
#pragma unroll
      for (int b = 0; b < B; b++) staged_store(tile + b * kStagedTile + to, words[b], bases[b]);
#pragma unroll
      for (int b = 0; b < B; b++) lists[b].apply(r, s.k0 + i, tile + b * kStagedTile, strip, lane);
      proxy_fence();
      __syncwarp();
      if (lane == 0) mb_arrive(m.weight_full + 8 * out.at);
      bar_sync(3, 128); /* all have read the packed tiles */
      if (strip == 0) staged_fill_packed(p, m, ahead, policy);
      in.next(p.packed_slots), out.next(p.weight_slots);
    }
  }
}

/* Weights that are bf16 already, [rows, cols]: one warp. */
template <int M, int B>
__device__ __forceinline__ void staged_copy(const StagedArgs &p, const StagedMemory<M, B> &m, const CUtensorMap *mx,
                                            const CUtensorMap *mw) {
  const uint64_t policy_x = policy_evict_last(),
                 policy = p.work.token_tiles > 1 ? policy_evict_normal() : policy_evict_first();
  Steps<M> ahead(p.work, blockIdx.x), at(p.work, blockIdx.x);
  if (p.ring.dependent != 2) grid_wait();
  bool waits = true;
  while (at.more) {
    mb_wait(m.weight_empty + 8 * at.slot.at, at.slot.phase ^ 1);
    if (elect()) {
      const uint32_t full = m.weight_full + 8 * at.slot.at;
      mb_expect(full, m.kWeights);
      tma2d(m.weights + at.slot.at * m.kWeights, mw, (at.s.k0 + at.i) * 64, at.s.row_tile * B * 64, full, policy);
    }
    if (waits) grid_wait(), staged_fill_x(p, m, mx, ahead, policy_x), waits = false;
    staged_fill_x(p, m, mx, ahead, policy_x);
    at.next(p.work, p.weight_slots);
  }
}

/* Partial sums of a tile that several workers share. Returns whether this warpgroup has all of it now. */
template <int NA>
__device__ __forceinline__ bool staged_meet(float (&acc)[NA], const StagedArgs &p, const Segment &s, int wg, int tid,
                                            uint32_t flag) {
  const uint32_t steps = p.work.steps, units = p.work.split * steps, W = p.work.split_workers, w = blockIdx.x;
  auto part = [&](int worker, int first) {
    return reinterpret_cast<float4 *>(p.ring.partials + (((size_t)worker * 2 + first) * 2 + wg) * (128 * NA)) + tid;
  };
  const int wf = (int)((((uint32_t)s.tile * steps + 1) * W - 1) / units),
            wl = (int)((((uint32_t)s.tile * steps + steps) * W - 1) / units);
  unsigned *counter = p.ring.counters + s.tile * 2 + wg;
  uint32_t last = 0;
  if (s.k0 == 0) { /* usual: the other parts were done at the start of the next workers' ranges */
    if (tid == 0) {
      last = load_acquire(counter) == (unsigned)(wl - wf);
      if (last) *counter = 0;
      sts32(flag, last);
    }
    bar_sync(1 + wg, 128);
    last = lds32(flag);
    bar_sync(1 + wg, 128);
    if (last) {
      for (int q = wf + 1; q <= wl; q++) {
        const float4 *from = part(q, 0);
#pragma unroll
        for (int i = 0; i < NA / 4; i++) {
          const float4 v = __ldcg(from + i * 128);
          acc[4 * i] += v.x, acc[4 * i + 1] += v.y, acc[4 * i + 2] += v.z, acc[4 * i + 3] += v.w;
        }
      }
      return true;
    }
  }
  float4 *to = part(w, s.k0 == 0);
#pragma unroll
  for (int i = 0; i < NA / 4; i++)
    __stcg(to + i * 128, make_float4(acc[4 * i], acc[4 * i + 1], acc[4 * i + 2], acc[4 * i + 3]));
  bar_sync(1 + wg, 128);
  if (tid == 0) {
    __threadfence();
    last = atomicAdd(counter, 1u) == (unsigned)(wl - wf);
    if (last) *counter = 0;
    sts32(flag, last);
  }
  bar_sync(1 + wg, 128);
  last = lds32(flag);
  bar_sync(1 + wg, 128);
  if (!last) return false;
  __threadfence();
#pragma unroll
  for (int i = 0; i < NA; i++) acc[i] = -0.f;
  for (int q = wf; q <= wl; q++) {
    const float4 *from = part(q, q == wf);
#pragma unroll
    for (int i = 0; i < NA / 4; i++) {
      const float4 v = __ldcg(from + i * 128);
      acc[4 * i] += v.x, acc[4 * i + 1] += v.y, acc[4 * i + 2] += v.z, acc[4 * i + 3] += v.w;
    }
  }
  return true;
}

/* 16 tokens at a time through two pieces of staging in turn: what the piece before last held has been read by all. */
struct StagedOutput : Output {
  using Output::Output;
  template <int T> __device__ __forceinline__ void put(const RingArgs &p, const float *f) {
    constexpr uint32_t kPiece = T / 16 % 2 * kRingOut;
    stmatrix4(to + kPiece, bf16_pair(f[0] + bias0, f[1] + bias0), bf16_pair(f[2] + bias1, f[3] + bias1),
              bf16_pair(f[4] + bias0, f[5] + bias0), bf16_pair(f[6] + bias1, f[7] + bias1));
    __syncwarp();
    if (T < tokens && rows > 0) store(y + (size_t)T * p.rows, lds128(from + kPiece));
  }
};

template <int... I>
__device__ __forceinline__ void staged_put(StagedOutput &output, const RingArgs &p, const float *acc,
                                           std::integer_sequence<int, I...>) {
  (output.put<16 * I>(p, acc + 8 * I), ...);
}

/* The sums of a tile's parts, in column order, each block of the cluster a share of the tokens. The ring, which everyone has
 * read, holds them meanwhile. */
template <int M, int B, int NA>
__device__ __forceinline__ void staged_meet_cluster(float (&acc)[NA], const StagedArgs &p, const StagedMemory<M, B> &m,
                                                    const Segment &s, int wg, int strip, int lane, uint32_t out_at) {
  constexpr int R = B / 2, kPairs = R * M / 16, kBatch = 2; /* of 8 tokens */
  const int parts = p.work.cluster, rank = (int)cluster_rank(), tid = strip * 32 + lane;
  const uint32_t at = m.weights + (wg * kPairs * 2 * 128 + tid) * 16;
  bar_sync(4, 256);
#pragma unroll
  for (int i = 0; i < NA / 4; i++)
    sts128(at + i * 2048, __float_as_uint(acc[4 * i]), __float_as_uint(acc[4 * i + 1]), __float_as_uint(acc[4 * i + 2]),
           __float_as_uint(acc[4 * i + 3]));
  cluster_arrive(), cluster_wait();
  const int end = (rank + 1) * kPairs / parts;
  for (int first = rank * kPairs / parts; first < end; first += kBatch) {
    float f[kBatch][8];
#pragma unroll
    for (int j = 0; j < kBatch; j++)
#pragma unroll
      for (int i = 0; i < 8; i++) f[j][i] = -0.f;
    for (int q = 0; q < parts; q++) {
      const uint32_t from = mapa(at, q);
#pragma unroll
      for (int j = 0; j < kBatch; j++) {
        const uint32_t of = from + min(first + j, kPairs - 1) * 4096;
        const float4 u = ldc_f4(of), v = ldc_f4(of + 2048);
        f[j][0] += u.x, f[j][1] += u.y, f[j][2] += u.z, f[j][3] += u.w;
        f[j][4] += v.x, f[j][5] += v.y, f[j][6] += v.z, f[j][7] += v.w;
      }
    }
#pragma unroll
    for (int j = 0; j < kBatch; j++) {
      const int pair = first + j, block = s.row_tile * B + wg * R + pair / (M / 16);
      if (pair >= end || block >= p.ring.n_blocks) break;
      Output output(p.ring, out_at, (int64_t)block * 64 + strip * 16, s.tok, lane);
      output.sixteen(p.ring, pair % (M / 16) * 16, f[j]);
    }
  }
  __syncwarp();
  cluster_arrive(), cluster_wait();
}

template <int M, int B>
__device__ __forceinline__ void staged_multiply(const StagedArgs &p, const StagedMemory<M, B> &m, int wg, int warp,
                                                int lane) {
  constexpr int R = B / 2, NA = R * M / 2; /* row blocks and sums of a warpgroup */
  const int tid = threadIdx.x & 127, strip = warp & 3;
  const uint32_t out_at = m.out + warp * 2 * kRingOut, flag = m.flags + 4 * wg;
  auto descriptor = [](uint32_t at) { return (uint64_t)0x40000040u << 32 | 1u << 16 | at >> 4; };
  Schedule<M> schedule(p.work, blockIdx.x);
  Segment s;
  Slot w, x;
  while (schedule.next(p.work, s)) {
    float acc[NA];
#pragma unroll
    for (int i = 0; i < NA; i++) acc[i] = 0.f;
#pragma unroll
    for (int i = 0; i < NA; i++) asm volatile("" : "+f"(acc[i])::"memory");
    uint32_t done = 0;
    for (int i = 0; i < s.n; i++) {
      mb_wait(m.weight_full + 8 * w.at, w.phase);
      mb_wait(m.x_full + 8 * x.at, x.phase);
      const uint64_t a = descriptor(m.weights + w.at * m.kWeights + wg * R * kStagedTile), b = descriptor(m.x + x.at * m.kX);
      wg_fence();
#pragma unroll
      for (int k = 0; k < 4; k++)
#pragma unroll
        for (int r = 0; r < R; r++) WgmmaShared<M>::mma(acc + r * (M / 2), a + r * (kStagedTile >> 4) + 2 * k, b + 2 * k);
      wg_commit();
      wg_wait<1>();
      if (i && lane == 0) mb_arrive(m.weight_empty + done);
      done = 8 * w.at;
      w.next(p.weight_slots), x.next(p.x_slots);
    }
    wg_wait<0>();
#pragma unroll
    for (int i = 0; i < NA; i++) asm volatile("" : "+f"(acc[i])::"memory");
    if (lane == 0) mb_arrive(m.weight_empty + done);
    grid_wait();
    if (p.work.cluster > 1) {
      staged_meet_cluster<M, B>(acc, p, m, s, wg, strip, lane, out_at);
      return;
    }
    if (s.n < p.work.steps && !staged_meet<NA>(acc, p, s, wg, tid, flag)) continue;
    __syncwarp(); /* staging is read by the tile before no more */
#pragma unroll
    for (int r = 0; r < R; r++) {
      const int block = s.row_tile * B + wg * R + r;
      if (block >= p.ring.n_blocks) break;
      StagedOutput output(p.ring, out_at, (int64_t)block * 64 + strip * 16, s.tok, lane);
      staged_put(output, p.ring, acc + r * (M / 2), std::make_integer_sequence<int, M / 16>());
    }
  }
}

constexpr int kStagedThreads = 384, kStagedConsumer = 192, kStagedDecoder = 120; /* registers; launched with 168 */
static_assert(2 * kStagedConsumer + kStagedDecoder <= 3 * (65536 / kStagedThreads / 8 * 8), "registers of a block");

template <int M, int B, bool PLAIN>
__global__ void __launch_bounds__(kStagedThreads, 1)
    staged_kernel(const __grid_constant__ CUtensorMap mx, const __grid_constant__ CUtensorMap mw,
                  const __grid_constant__ StagedArgs p) {
  const StagedMemory<M, B> m(p);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, wg = warp >> 2;
  grid_release();
  if (warp == 0) {
    if (lane == 0) {
      tma_prefetch_map(&mx);
      if (PLAIN) tma_prefetch_map(&mw);
    }
    if (lane < 8) {
      mb_init(m.weight_full + 8 * lane, PLAIN ? 1 : 4), mb_init(m.weight_empty + 8 * lane, 8);
      mb_init(m.x_full + 8 * lane, 1), mb_init(m.packed_full + 8 * lane, 1);
    }
    mb_fence_init();
  }
  __syncthreads();
  if (wg < 2) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kStagedConsumer));
    staged_multiply<M, B>(p, m, wg, warp, lane);
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kStagedDecoder));
    if constexpr (!PLAIN)
      staged_decode<M, B>(p, m, &mx, warp & 3, lane);
    else if ((warp & 3) == 0)
      staged_copy<M, B>(p, m, &mx, &mw);
    __syncwarp();
    if (p.work.cluster > 1) cluster_arrive(), cluster_wait(), cluster_arrive(), cluster_wait();
  }
}

} // namespace glyd

#endif
