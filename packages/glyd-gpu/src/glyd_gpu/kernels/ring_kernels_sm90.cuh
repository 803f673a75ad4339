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

#include <type_traits>

#include "ring_decode_sm90.cuh"
#include "ring_exceptions_sm90.cuh"
#include "ring_launch_sm90.h"

namespace glyd {

/* Registers of the two roles. setmaxnreg waits for ever when a block asks for more than it was launched with: a
 * multiple of 8 a thread, at most 64K. */
template <int WGS> struct Registers {
  static constexpr int kConsumer = WGS == 2   ? 224
                                   : WGS == 3 ? 152
                                              : 104,
                       kProducer = WGS == 4 ? 64 : 56, kLaunched = 65536 / (WGS * 128 + 128) / 8 * 8;
  static_assert(kConsumer * WGS + kProducer <= kLaunched * (WGS + 1), "registers of a block");
  __device__ __forceinline__ static void produce() {
    set_registers<kProducer, kLaunched>();
  }
  __device__ __forceinline__ static void consume() {
    set_registers<kConsumer, kLaunched>();
  }
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
            part = blockIdx.x / p.cluster, tile = part / token_tiles, tok = part % token_tiles * M;
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
      gather_exceptions<L, M, kMany>(p, exc, bars, tile * steps + first, last - first, steps, tok, warp - WGS * 4 - 1,
                                     lane);
    }
    __syncwarp();
    if (p.cluster > 1) cluster_arrive(), cluster_wait(), cluster_arrive(), cluster_wait();
    if (kMany && p.transposed) transpose_end(p, warp - WGS * 4 - 1, lane);
  } else {
    Registers<WGS>::consume();
    if (p.dependent != 2) grid_wait();
    const int wg = warp >> 2, strip = warp & 3, tid = threadIdx.x & 127, wr = wg / p.wk, wk = wg % p.wk,
              block = tile * p.wr + wr;
    const int parts = p.cluster * p.wk, me = rank * p.wk + wk, nq = (NB8 + parts - 1) / parts;
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
      bar_sync(8, WGS * 128); /* every warpgroup has read the whole ring: its memory now takes the partial sums */
#pragma unroll
      for (int i = 0; i < NB8; i++)
        sts128(ring + ((wg * NB8 + i) * 128 + tid) * 16, __float_as_uint(acc[4 * i]), __float_as_uint(acc[4 * i + 1]),
               __float_as_uint(acc[4 * i + 2]), __float_as_uint(acc[4 * i + 3]));
      __syncwarp();
      if (p.cluster > 1)
        cluster_arrive(), cluster_wait();
      else
        bar_sync(8, WGS * 128);
      /* the loads of several parts are on their way together: each costs the latency of another block's memory */
      auto reduce = [&](auto blocks, auto batch) {
        constexpr int NQ = decltype(blocks)::value, QS = decltype(batch)::value;
        float f[NQ][4];
#pragma unroll
        for (int i = 0; i < NQ; i++) f[i][0] = f[i][1] = f[i][2] = f[i][3] = 0.f;
        for (int q0 = 0; q0 < parts; q0 += QS) {
          float4 v[QS][NQ];
#pragma unroll
          for (int k = 0; k < QS; k++) {
            const int q = min(q0 + k, parts - 1);
            const uint32_t at = ring + (wr * p.wk + q % p.wk) * NB8 * 2048 + tid * 16;
            const uint32_t src = p.cluster > 1 ? mapa(at, q / p.wk) : at;
#pragma unroll
            for (int i = 0; i < NQ; i++) {
              const uint32_t from = src + min(me * nq + i, NB8 - 1) * 2048;
              v[k][i] = p.cluster > 1 ? ldc_f4(from) : lds_f4(from);
            }
          }
#pragma unroll
          for (int k = 0; k < QS; k++)
            if (q0 + k < parts)
#pragma unroll
              for (int i = 0; i < NQ; i++)
                f[i][0] += v[k][i].x, f[i][1] += v[k][i].y, f[i][2] += v[k][i].z, f[i][3] += v[k][i].w;
        }
        __syncwarp();
        if (p.cluster > 1) cluster_arrive();
#pragma unroll
        for (int i = 0; i < NQ; i += 2) {
          if (i >= nq || me * nq + i >= NB8) break;
          if (i + 1 < nq && me * nq + i + 1 < NB8)
            output.sixteen(p, (me * nq + i) * 8, f[i]);
          else
            output.eight(p, (me * nq + i) * 8, f[i], lane);
        }
      };
      using std::integral_constant;
      if (nq == 1)
        reduce(integral_constant<int, 1>(), integral_constant<int, 4>());
      else if (nq == 2)
        reduce(integral_constant<int, 2>(), integral_constant<int, 4>());
      else if (nq <= 4)
        reduce(integral_constant<int, 4>(), integral_constant<int, 2>());
      else if (NB8 > 8 && nq <= 8)
        reduce(integral_constant<int, 8>(), integral_constant<int, 2>());
      else if (NB8 > 16)
        reduce(integral_constant<int, 16>(), integral_constant<int, 1>());
      __syncwarp();
      if (p.cluster > 1) cluster_wait();
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
      gather_exceptions<L, M, kMany>(p, exc, bars, u0, u1 - u0, steps, 0, warp - WGS * 4 - 1, lane);
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
        auto part = [&](int worker, int first) {
          return reinterpret_cast<float4 *>(p.partials + (((size_t)worker * 2 + first) * WGS + wg) * (64 * M)) + tid;
        };
        const int wf = (int)((((uint32_t)tile * steps + 1) * W - 1) / units),
                  wl = (int)((((uint32_t)tile * steps + steps) * W - 1) / units);
        unsigned *counter = p.counters + tile * WGS + wg;
        uint32_t last = 0;
        if (k0 == 0) { /* usual: the other parts were done at the start of the next workers' ranges */
          if (tid == 0) {
            last = load_acquire(counter) == (unsigned)(wl - wf);
            if (last) *counter = 0;
            sts32(flag, last);
          }
          bar_sync(1 + wg, 128);
          last = lds32(flag);
          bar_sync(1 + wg, 128);
          if (out && last)
            for (int q = wf + 1; q <= wl; q++) {
              const float4 *from = part(q, 0);
#pragma unroll
              for (int i = 0; i < NB8; i++) {
                const float4 v = __ldcg(from + i * 128);
                acc[4 * i] += v.x, acc[4 * i + 1] += v.y, acc[4 * i + 2] += v.z, acc[4 * i + 3] += v.w;
              }
            }
        }
        if (!last) {
          float4 *to = part(w, k0 == 0);
#pragma unroll
          for (int i = 0; i < NB8; i++)
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
          if (out && last) {
            __threadfence();
#pragma unroll
            for (int i = 0; i < NA; i++) acc[i] = -0.f;
            for (int q = wf; q <= wl; q++) {
              const float4 *from = part(q, q == wf);
#pragma unroll
              for (int i = 0; i < NB8; i++) {
                const float4 v = __ldcg(from + i * 128);
                acc[4 * i] += v.x, acc[4 * i + 1] += v.y, acc[4 * i + 2] += v.z, acc[4 * i + 3] += v.w;
              }
            }
          }
        }
        out = out && last;
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
  cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  if (e) return e;
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attributes[2];
  const int64_t token_tiles = (p.tokens + M - 1) / M, steps = (p.n_tiles + ks - 1) / ks,
                units = (int64_t)row_tiles * steps * (cluster ? 1 : token_tiles),
                most = token_tiles > 1 ? row_tiles * token_tiles : units;
  const int64_t blocks = cluster ? row_tiles * token_tiles * c.cluster : (c.workers < most ? c.workers : most);
  /* places in the work are products of 32 bits */
  if (blocks > 0x7FFFFFFF || units > 0x7FFFFFFF || (!cluster && units * blocks > 0xFFFFFFFF)) return -GLYD_E_PARAMETER;
  p.row_tiles = row_tiles, p.stride = cluster || token_tiles == 1 ? 0 : (int)blocks;
  config.gridDim = dim3((unsigned)blocks);
  config.blockDim = dim3(WGS * 128 + 128);
  config.dynamicSmemBytes = (size_t)shared;
  config.stream = stream;
  config.attrs = attributes;
  if (c.cluster > 1) {
    cudaLaunchAttribute &a = attributes[config.numAttrs++];
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = (unsigned)c.cluster, a.val.clusterDim.y = a.val.clusterDim.z = 1;
  }
  if (c.dependent) {
    cudaLaunchAttribute &a = attributes[config.numAttrs++];
    a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    a.val.programmaticStreamSerializationAllowed = 1;
  }
  e = cudaLaunchKernelEx(&config, kernel, mx, p);
  return e ? e : cudaGetLastError();
}

#endif

} // namespace glyd

#endif
