/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Where the sums of a tile that is split along the columns meet: in shared memory
 * of a cluster, or in global memory. Always added in column order.
 */
#ifndef GLYD_RING_MEET_SM90_CUH
#define GLYD_RING_MEET_SM90_CUH

#include <type_traits>

#include "ring_sm90.cuh"

namespace glyd {

/* Sums of the ks warpgroups along the columns and the blocks of the cluster; each writes a share of the tokens. `at`: room
 * for those of WGS warpgroups, which all have read what was there. */
template <int M, int WGS>
__device__ __forceinline__ void meet_in_shared(const float (&acc)[M / 2], const RingArgs &p, Output &output,
                                               uint32_t ring, int wg, int ks, int rank, int tid, int lane) {
  constexpr int NB8 = M / 8;
  const int parts = p.cluster * ks, me = rank * ks + wg % ks, nq = (NB8 + parts - 1) / parts;
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
        const uint32_t at = ring + (wg / ks * ks + q % ks) * NB8 * 2048 + tid * 16;
        const uint32_t src = p.cluster > 1 ? mapa(at, q / ks) : at;
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

/* Sums of the workers that share a tile, of units in all: the last part to come adds all of them. Whether this block has
 * the whole sum, and is to write it. */
template <int NA, int WGS>
__device__ __forceinline__ bool meet_in_memory(float (&acc)[NA], const RingArgs &p, int tile, int k0, int steps,
                                               int units, int wg, int tid, uint32_t flag, bool out) {
  const uint32_t workers = gridDim.x;
  auto part = [&](int worker, int first) {
    return reinterpret_cast<float4 *>(p.partials + (((size_t)worker * 2 + first) * WGS + wg) * (128 * NA)) + tid;
  };
  const int wf = (int)((((uint32_t)tile * steps + 1) * workers - 1) / units),
            wl = (int)((((uint32_t)tile * steps + steps) * workers - 1) / units);
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
        for (int i = 0; i < NA / 4; i++) {
          const float4 v = __ldcg(from + i * 128);
          acc[4 * i] += v.x, acc[4 * i + 1] += v.y, acc[4 * i + 2] += v.z, acc[4 * i + 3] += v.w;
        }
      }
  }
  if (!last) {
    float4 *to = part((int)blockIdx.x, k0 == 0);
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
    if (out && last) {
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
    }
  }
  return out && last;
}

} // namespace glyd

#endif
