/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * The two ring products and how one is launched.
 *
 * ring_cluster_kernel: a row tile's columns are split over wk warpgroups and
 * the blocks of a cluster; partial sums meet in shared memory, each owner adds
 * a share of the tokens, in column order. For few row tiles.
 *
 * ring_streamk_kernel: one block a multiprocessor, worker w of W owns the units
 * w T / W … (w + 1) T / W of all (row tile, column step) pairs; parts of a tile
 * meet in global memory, always added in column order. For many row tiles.
 *
 * Both give the same bits on every run: what is added in which order depends on
 * the configuration alone.
 */
#ifndef GLYD_RING_KERNELS_SM90_CUH
#define GLYD_RING_KERNELS_SM90_CUH

#include "ring_arguments_sm90.cuh"
#include "ring_decode_sm90.cuh"
#include "ring_exceptions_sm90.cuh"
#include "ring_launch_sm90.h"
#include "ring_meet_sm90.cuh"

namespace glyd {

/* Registers of the two roles. setmaxnreg waits for ever when a block asks for more than it was launched with: a
 * multiple of 8 a thread, at most 64K. */
template <int WGS> struct Registers {
  static constexpr int kConsumer = WGS == 2   ? 224
                                   : WGS == 3 ? 152
                                              : 104,
                       kProducer = WGS == 4 ? 64 : 56, kLaunched = 65536 / (WGS * 128 + 128) / 8 * 8;
  static_assert(kConsumer * WGS + kProducer <= kLaunched * (WGS + 1), "registers of a block");
  __device__ __forceinline__ static void produce() { set_registers<kProducer, kLaunched>(); }
  __device__ __forceinline__ static void consume() { set_registers<kConsumer, kLaunched>(); }
};

template <int L> __device__ __forceinline__ uint32_t ring_base() {
  return (smem_u32(ring_memory) + Tile<L>::kTables + 1023) & ~1023u;
}

template <int L, int M, int WGS>
__global__ void __launch_bounds__(WGS * 128 + 128, 1)
    ring_cluster_kernel(const __grid_constant__ CUtensorMap mx, const __grid_constant__ RingArgs p) {
  constexpr int NA = M / 2, NB8 = M / 8;
  constexpr bool kMany = ring_many(Tile<L>::kTiered, M, WGS);
  const uint32_t ring = ring_base<L>();
  const Bars bars(ring + p.n_stages * p.stage_bytes);
  const uint32_t exc = bars.full + kRingBars + WGS * 4 * kRingOut;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int ks = p.wk * p.kb, steps = (p.n_tiles + ks - 1) / ks, token_tiles = (p.tokens + M - 1) / M,
            part = blockIdx.x / p.cluster, tile = part / token_tiles, tok = part % token_tiles * p.tile_tokens;
  const int rank = p.cluster > 1 ? (int)cluster_rank() : 0;
  const int first = rank * steps / p.cluster, last = (rank + 1) * steps / p.cluster;
  RingProducer<L, M, kMany> producer;
  grid_release();
  if (warp == WGS * 4) {
    producer.start(p, ring, tile * steps + first, last - first, steps, tok, token_tiles > 1, lane);
    ring_init(p, bars, WGS * 4, lane, &mx);
  } else if (Tile<L>::kTiered && warp < 8) {
    build_table(threadIdx.x, lane);
  }
  __syncthreads();
  if (warp >= WGS * 4) {
    Registers<WGS>::produce();
    if (warp == WGS * 4) {
      producer.fill(p, &mx, bars, lane);
    } else if (p.n_exceptions) {
      gather_exceptions<L, M, kMany>(p, exc, bars,
                                     RingParts<M, kMany>{tile * steps + first, last - first, steps, tok, 0},
                                     warp - WGS * 4 - 1, lane);
    }
    __syncwarp();
    if (p.cluster > 1) cluster_arrive(), cluster_wait(), cluster_arrive(), cluster_wait();
    if (kMany && p.transposed) transpose_end(p, warp - WGS * 4 - 1, lane);
  } else {
    Registers<WGS>::consume();
    if (p.dependent != 2) grid_wait();
    const int wg = warp >> 2, strip = warp & 3, tid = threadIdx.x & 127, wr = wg / p.wk, wk = wg % p.wk,
              block = tile * p.wr + wr;
    const int parts = p.cluster * p.wk;
    const RowBases bases(p, block, strip * 16 + (lane >> 2));
    const int64_t row0 = (int64_t)block * 64 + strip * 16;
    int s = 0;
    uint32_t phase = 0, rounds = 0;
    float acc[NA];
    multiply<L, M>(acc, p, last - first, first * ks + wk * p.kb, s, phase, ring, bars, wr, wk, tid, lane);
    grid_wait();
    const float f0 = RowBases::factor<L>(bases.low), f1 = RowBases::factor<L>(bases.high);
#pragma unroll
    for (int i = 0; i < NB8; i++) acc[4 * i] *= f0, acc[4 * i + 1] *= f0, acc[4 * i + 2] *= f1, acc[4 * i + 3] *= f1;
    if (p.n_exceptions && last > first)
      add_exceptions<L, M, kMany>(acc, p, exc, bars, wr, wk == 0, strip, tok, lane, rounds);
    Output output(p, bars.full + kRingBars + warp * kRingOut, row0, tok, lane);
    if (parts == 1) {
      if constexpr (NB8 == 1)
        output.eight(p, 0, acc, lane);
      else
#pragma unroll
        for (int i = 0; i < NB8; i += 2) output.sixteen(p, 8 * i, acc + 4 * i);
    } else {
      meet_in_shared<M, WGS>(acc, p, output, ring, wg, p.wk, rank, tid, lane);
    }
  }
}

template <int L, int M, int WGS>
__global__ void __launch_bounds__(WGS * 128 + 128, 1)
    ring_streamk_kernel(const __grid_constant__ CUtensorMap mx, const __grid_constant__ RingArgs p) {
  constexpr int NA = M / 2, NB8 = M / 8;
  constexpr bool kMany = ring_many(Tile<L>::kTiered, M, WGS);
  const uint32_t ring = ring_base<L>();
  const Bars bars(ring + p.n_stages * p.stage_bytes);
  const uint32_t exc = bars.full + kRingBars + WGS * 4 * kRingOut;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int ks = p.kb, steps = (p.n_tiles + ks - 1) / ks, row_tiles = (p.n_blocks + WGS - 1) / WGS,
            units = row_tiles * steps, W = gridDim.x, w = blockIdx.x;
  const bool strides = kMany && p.stride; /* whole tiles w, w + W, ... */
  const int tiles = row_tiles * ((p.tokens + M - 1) / M), u0 = strides ? w : (int)((uint32_t)w * units / W),
            u1 = strides ? w + (tiles - w + W - 1) / W * steps : (int)((uint32_t)(w + 1) * units / W);
  RingProducer<L, M, kMany> producer;
  grid_release();
  if (warp == WGS * 4) {
    producer.start(p, ring, u0, u1 - u0, steps, 0, strides, lane);
    ring_init(p, bars, WGS * 4, lane, &mx);
  } else if (Tile<L>::kTiered && warp < 8) {
    build_table(threadIdx.x, lane);
  }
  __syncthreads();
  if (warp >= WGS * 4) {
    Registers<WGS>::produce();
    if (warp == WGS * 4) {
      producer.fill(p, &mx, bars, lane);
    } else if (p.n_exceptions) {
      gather_exceptions<L, M, kMany>(p, exc, bars, RingParts<M, kMany>{u0, u1 - u0, steps, 0, 0}, warp - WGS * 4 - 1,
                                     lane);
      if (kMany && p.transposed) transpose_end(p, warp - WGS * 4 - 1, lane);
    }
  } else {
    Registers<WGS>::consume();
    if (p.dependent != 2) grid_wait();
    const int wg = warp >> 2, strip = warp & 3, tid = threadIdx.x & 127;
    const uint32_t out_at = bars.full + kRingBars + warp * kRingOut, flag = bars.flags + 4 * wg;
    int s = 0;
    uint32_t phase = 0, rounds = 0;
    for (int u = u0; u < u1;) {
      int tile = u / steps, k0 = u - tile * steps, tok = 0;
      if (strides) {
        const Place place = place_of<M>(p, w + (u - w) / steps * W);
        tile = place.tile, tok = place.tok, k0 = 0;
      }
      const int n = min(steps - k0, u1 - u), block = tile * WGS + wg;
      const RowBases bases(p, block, strip * 16 + (lane >> 2));
      float acc[NA];
      multiply<L, M>(acc, p, n, k0 * ks, s, phase, ring, bars, wg, 0, tid, lane);
      u += n;
      grid_wait();
      const float f0 = RowBases::factor<L>(bases.low), f1 = RowBases::factor<L>(bases.high);
#pragma unroll
      for (int i = 0; i < NB8; i++) acc[4 * i] *= f0, acc[4 * i + 1] *= f0, acc[4 * i + 2] *= f1, acc[4 * i + 3] *= f1;
      if (p.n_exceptions) add_exceptions<L, M, kMany>(acc, p, exc, bars, wg, true, strip, tok, lane, rounds);
      bool out = block < p.n_blocks;
      if (n < steps) { /* a shared tile: the last part to come adds all of them, in column order */
        out = meet_in_memory<NA, WGS>(acc, p, tile, k0, steps, units, wg, tid, flag, out);
      }
      if (out) {
        Output output(p, out_at, (int64_t)block * 64 + strip * 16, tok, lane);
        if constexpr (NB8 == 1)
          output.eight(p, 0, acc, lane);
        else
#pragma unroll
          for (int i = 0; i < NB8; i += 2) output.sixteen(p, 8 * i, acc + 4 * i);
      }
    }
  }
}

#ifndef GLYD_EMULATION
/* ---- launch ---------------------------------------------------------------------- */
template <int L, int M, int WGS>
int ring_launch(const CUtensorMap &mx, RingArgs p, const RingConfig &c, const RingRoom &room, cudaStream_t stream) {
  const bool cluster = c.cluster > 0;
  const int shared = room.shared, row_tiles = (p.n_blocks + c.wr - 1) / c.wr, ks = c.wk * c.kb;
  void (*kernel)(const CUtensorMap, const RingArgs) =
      cluster ? ring_cluster_kernel<L, M, WGS> : ring_streamk_kernel<L, M, WGS>;
  const int64_t token_tiles = (p.tokens + M - 1) / M, steps = (p.n_tiles + ks - 1) / ks,
                units = (int64_t)row_tiles * steps * (cluster ? 1 : token_tiles),
                most = token_tiles > 1 ? row_tiles * token_tiles : units;
  const int64_t blocks = cluster ? row_tiles * token_tiles * c.cluster : (c.workers < most ? c.workers : most);
  /* places in the work are products of 32 bits */
  if (blocks > 0x7FFFFFFF || units > 0x7FFFFFFF || (!cluster && units * blocks > 0xFFFFFFFF)) return -GLYD_E_PARAMETER;
  p.row_tiles = row_tiles, p.stride = cluster || token_tiles == 1 ? 0 : (int)blocks;
  return launch_blocks(kernel, mx, p, blocks, WGS * 128 + 128, shared, c.cluster, c.dependent, stream);
}

#endif

} // namespace glyd

#endif
