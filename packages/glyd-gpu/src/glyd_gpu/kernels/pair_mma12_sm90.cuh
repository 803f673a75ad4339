/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Products of many tokens, mma12: two blocks of a cluster multiply the same M
 * tokens with 128 rows each. Each brings half of the tokens and sends it to both, so
 * activations, most of what a stage holds, are read from L2 once for 256 rows.
 *
 * Tiles that do not fill a last round are cut into parts of one length along the
 * columns, after all others (those who multiply whole tiles are then at the same
 * columns, and read them from L2), the last columns first; their sums meet in global
 * memory and are added in column order.
 */
#ifndef GLYD_PAIR_MMA12_SM90_CUH
#define GLYD_PAIR_MMA12_SM90_CUH

#include "pair_launch_sm90.h"
#include "ring_arguments_sm90.cuh"
#include "ring_decode_sm90.cuh"
#include "ring_exceptions_sm90.cuh"
#include "ring_launch_sm90.h"

namespace glyd {

struct PairArgs {
  RingArgs ring;
  PairWork work;
};

/* ---- on the host ---------------------------------------------------------------- */
struct PairSetup {
  PairConfig config;
  PairWork work;
  RingRoom room;
  int64_t partials, parts_of_x, nbytes; /* bytes of partial sums; parts of the transposed x; bytes of the workspace */
};
/* 0, or a negative glyd_status. */
inline int pair_set_up(PairSetup &s, const int64_t *meta, uint64_t tokens, const int32_t *config) {
  constexpr int kPartsMax = 16;
  s.config = {config[0], config[1], config[2], config[3], config[4]};
  const PairConfig &c = s.config;
  if (c.tokens < 128 || c.tokens > 256 || c.tokens % 64 || c.workers < 2 || c.workers % 2 || c.parts < 1 ||
      c.parts > kPartsMax || c.group < 1 || c.dependent < 0 || c.dependent > 2 || tokens < 1 || tokens > kTokensMax ||
      meta[0] != GLYD_WEIGHTS_MMA12 || meta[1] < 1 || meta[1] > 0x7FFFFFFF || meta[2] < 1 || meta[2] > 0x7FFFFFFF ||
      !pair_divide(s.work, c, meta[1], meta[2], tokens))
    return -GLYD_E_PARAMETER;
  s.room = ring_room(false, {c.tokens, 2, 1, 1, 0, c.workers, c.dependent}, 0, meta[4] ? meta[6] : 0, kSharedMaxHopper,
                     true);
  s.parts_of_x = s.room.transposes ? (int64_t)s.work.token_tiles * (c.tokens / 64) * ((meta[2] + 15) / 16) : 0;
  if (s.room.shared < 0 || (meta[4] && s.room.exc_cap < 1) || s.parts_of_x > 0x3FFFFFFF ||
      (int64_t)s.work.rest * kPairBlocks * 4 > kCounterBytes - kTransposingBytes)
    return -GLYD_E_PARAMETER;
  s.partials = (int64_t)s.work.rest * s.work.parts * kPairBlocks * 64 * c.tokens * 4;
  const int64_t bytes = s.partials + (s.room.transposes ? (int64_t)s.work.token_tiles * c.tokens * meta[2] * 2 : 0);
  s.nbytes = bytes ? kCounterBytes + bytes : 0;
  return 0;
}
/* beside what set_arguments sets; workspace: nbytes, or null if there are none */
inline void pair_arguments(PairArgs &a, const PairSetup &s, void *workspace) {
  RingArgs &p = a.ring;
  uint8_t *at = static_cast<uint8_t *>(workspace);
  a.work = s.work;
  p.wr = kPairBlocks / 2, p.wk = p.kb = 1, p.dependent = s.config.dependent, p.tile_tokens = s.work.tile_tokens;
  p.stage_bytes = s.room.stage_bytes, p.n_stages = s.room.n_stages, p.exc_cap = s.room.exc_cap;
  if (s.nbytes == 0) return;
  p.counters = reinterpret_cast<unsigned *>(at);
  p.partials = reinterpret_cast<float *>(at + kCounterBytes);
  if (!s.room.transposes) return;
  p.transposing = reinterpret_cast<unsigned *>(at + kCounterBytes - kTransposingBytes);
  p.transposed = reinterpret_cast<uint16_t *>(at + kCounterBytes + s.partials);
  p.transposed_parts = (int)s.parts_of_x;
}

/* ---- on the device ---------------------------------------------------------------- */
/* n steps from k0 on of a tile; which of its parts. */
struct PairSegment {
  int tile, row_tile, tok, k0, n, part;
};
struct PairSchedule {
  int piece, tile;
  __device__ __forceinline__ explicit PairSchedule(int pair) : piece(pair), tile(pair) {}
  __device__ __forceinline__ bool next(const PairWork &w, PairSegment &s) {
    if (tile < w.whole) {
      s.part = 0, s.tile = tile, s.k0 = 0, s.n = w.steps;
      tile += w.pairs;
    } else if (piece < w.rest * w.parts) {
      const int before = piece / w.rest;
      s.part = w.parts - 1 - before, s.tile = w.whole + piece - before * w.rest;
      s.k0 = s.part * w.steps / w.parts, s.n = (s.part + 1) * w.steps / w.parts - s.k0;
      piece += w.pairs;
    } else {
      return false;
    }
    const int of_group = w.row_tiles * w.group, group = s.tile / of_group,
              size = min(w.group, w.token_tiles - group * w.group), rest = s.tile - group * of_group;
    s.row_tile = rest / size, s.tok = (group * w.group + rest % size) * w.tile_tokens;
    return true;
  }
};
struct PairParts { /* for lists of exceptions: row tiles are a block's */
  PairSchedule schedule;
  const PairWork &work;
  int rank;
  __device__ __forceinline__ bool next(const RingArgs &, Part &part) {
    PairSegment s;
    if (!schedule.next(work, s)) return false;
    part = {s.row_tile * 2 + rank, s.tok, s.k0, s.n};
    return true;
  }
};

/* ---- the warp that fills the ring ------------------------------------------- */
template <int M>
__device__ __forceinline__ void pair_fill(const PairArgs &a, const CUtensorMap *mx, uint32_t ring, const Bars &bars,
                                          int pair, int rank) {
  constexpr uint32_t kTile = GLYD_WEIGHTS_MMA12_TILE, kX = M * 128;
  const RingArgs &p = a.ring;
  const int half = p.tile_tokens / 2;
  const uint64_t policy_w = a.work.token_tiles > 1 ? policy_evict_normal() : policy_evict_first(),
                 policy_x = policy_evict_last();
  const size_t row_bytes = (size_t)p.n_tiles * kTile;
  PairSchedule schedule(pair);
  PairSegment s;
  int slot = 0, ahead = 0;
  uint32_t phase = 1;
  bool first = true;
  if (p.dependent != 2) grid_wait();
  while (schedule.next(a.work, s)) {
    const int block = (s.row_tile * 2 + rank) * 2, rows = max(0, min(2, p.n_blocks - block));
    const uint8_t *from = p.tiles + (size_t)block * row_bytes + (size_t)s.k0 * kTile;
    auto weights = [&](int at, const uint8_t *src) {
      const uint32_t full = bars.full + 8 * at;
      mb_expect(full, half * 256 + rows * kTile);
      for (int r = 0; r < rows; r++)
        bulk(ring + at * p.stage_bytes + kX + r * kTile, src + r * row_bytes, kTile, full, policy_w);
    };
    if (first && p.dependent == 2) {
      ahead = min(p.n_stages, s.n);
      for (int i = 0; i < ahead; i++)
        if (elect()) weights(i, from + (size_t)i * kTile);
      grid_wait();
    }
    first = false;
    for (int k = 0; k < s.n; k++, from += kTile) {
      mb_wait(bars.empty + 8 * slot, phase);
      if (elect()) {
        if (ahead == 0) weights(slot, from);
        tma2d_multicast(ring + slot * p.stage_bytes + rank * half * 128, mx, (s.k0 + k) * 64, s.tok + rank * half,
                        bars.full + 8 * slot, 3, policy_x);
      }
      if (ahead) ahead--;
      if (++slot == p.n_stages) slot = 0, phase ^= 1;
    }
  }
  if (first) grid_wait();
}

/* Parts of a tile: the last one to come adds all of them. Whether this warpgroup has the whole sum. */
template <int NA>
__device__ __forceinline__ bool pair_meet(float (&acc)[NA], const PairArgs &a, const PairSegment &s, int rank, int wg,
                                          int tid, uint32_t flag) {
  const int of = s.tile - a.work.whole, parts = a.work.parts, group = rank * 2 + wg;
  auto part = [&](int q) {
    return reinterpret_cast<float4 *>(a.ring.partials + (((size_t)of * parts + q) * 4 + group) * (128 * NA)) + tid;
  };
  unsigned *counter = a.ring.counters + of * 4 + group;
  uint32_t last = 0;
  if (s.part == 0) { /* usual: the other parts, which began before, are there */
    if (tid == 0) {
      last = load_acquire(counter) == (unsigned)(parts - 1);
      if (last) *counter = 0;
      sts32(flag, last);
    }
    bar_sync(1 + wg, 128);
    last = lds32(flag);
    bar_sync(1 + wg, 128);
  }
  const bool kept_sum = last;
  if (!last) {
    float4 *to = part(s.part);
#pragma unroll
    for (int i = 0; i < NA / 4; i++)
      __stcg(to + i * 128, make_float4(acc[4 * i], acc[4 * i + 1], acc[4 * i + 2], acc[4 * i + 3]));
    bar_sync(1 + wg, 128);
    if (tid == 0) {
      __threadfence();
      last = atomicAdd(counter, 1u) == (unsigned)(parts - 1);
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
  }
#pragma unroll 1
  for (int q = kept_sum ? 1 : 0; q < parts; q++) {
    const float4 *from = part(q);
#pragma unroll
    for (int i = 0; i < NA / 4; i++) {
      const float4 v = __ldcg(from + i * 128);
      acc[4 * i] += v.x, acc[4 * i + 1] += v.y, acc[4 * i + 2] += v.z, acc[4 * i + 3] += v.w;
    }
  }
  return true;
}

template <int M>
__global__ void __launch_bounds__(384, 1)
    pair_mma12_kernel(const __grid_constant__ CUtensorMap mx, const __grid_constant__ PairArgs a) {
  constexpr int L = GLYD_WEIGHTS_MMA12;
  const RingArgs &p = a.ring;
  const uint32_t ring = (smem_u32(ring_memory) + 1023) & ~1023u;
  const Bars bars(ring + p.n_stages * p.stage_bytes);
  const uint32_t exc = bars.full + kRingBars + 8 * kRingOut;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, pair = blockIdx.x / 2, rank = (int)cluster_rank();
  grid_release();
  if (warp == 8) ring_init(p, bars, 8, lane, &mx, 2);
  __syncwarp();
  cluster_arrive(), cluster_wait();
  if (warp >= 8) {
    set_registers<56, 168>();
    if (warp == 8)
      pair_fill<M>(a, &mx, ring, bars, pair, rank);
    else if (p.n_exceptions) {
      gather_exceptions<L, M, true>(p, exc, bars, PairParts{PairSchedule(pair), a.work, rank}, warp - 9, lane);
      if (p.transposed) transpose_end(p, warp - 9, lane);
    }
  } else {
    set_registers<224, 168>();
    if (p.dependent != 2) grid_wait();
    const int wg = warp >> 2, strip = warp & 3, tid = threadIdx.x & 127;
    const uint32_t out_at = bars.full + kRingBars + warp * kRingOut, flag = bars.flags + 4 * wg;
    int at = 0;
    uint32_t phase = 0, rounds = 0;
    PairSchedule schedule(pair);
    PairSegment s;
    if (wg == 1) { /* so that one multiplies while the other is at the end of a tile */
      mb_wait(bars.full, 0);
      const long long start = clock64();
      while (clock64() - start < kPairLag) {
      }
    }
    while (schedule.next(a.work, s)) {
      const int block = (s.row_tile * 2 + rank) * 2 + wg;
      const RowBases bases(p, block, strip * 16 + (lane >> 2));
      float acc[M / 2];
      loop_mma12<M, true>(acc, p, s.n, at, phase, ring, bars, wg, 0, tid, lane);
      grid_wait();
      const float f0 = RowBases::factor<L>(bases.low), f1 = RowBases::factor<L>(bases.high);
#pragma unroll
      for (int i = 0; i < M / 8; i++)
        acc[4 * i] *= f0, acc[4 * i + 1] *= f0, acc[4 * i + 2] *= f1, acc[4 * i + 3] *= f1;
      if (p.n_exceptions) add_exceptions<L, M, true>(acc, p, exc, bars, wg, true, strip, s.tok, lane, rounds);
      bool out = block < p.n_blocks;
      if (s.n < a.work.steps) out = pair_meet(acc, a, s, rank, wg, tid, flag) && out;
      if (out) {
        Output output(p, out_at, (int64_t)block * 64 + strip * 16, s.tok, lane);
#pragma unroll
        for (int i = 0; i < M / 8; i += 2) output.sixteen(p, 8 * i, acc + 4 * i);
      }
    }
  }
  __syncwarp();
  cluster_arrive(), cluster_wait(); /* the other block may still send here, and its warps arrive at barriers here */
}

} // namespace glyd

#endif
