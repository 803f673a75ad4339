/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * The inner loop of the ring products: stages of packed tiles to A fragments to
 * wgmma, for both layouts. While one group of two wgmmas runs, the registers of
 * the next are decoded.
 */
#ifndef GLYD_RING_DECODE_SM90_CUH
#define GLYD_RING_DECODE_SM90_CUH

#ifndef GLYD_EMULATION
#include "mma_sync.cuh"
#endif
#include "ring_sm90.cuh"
#include "ring_tiered_sm90.cuh"

namespace glyd {

constexpr int kWarpTokens = 32; /* up to here the products of tiered are by mma.sync */

/* mma12: 8 weights are the four A registers of one k16 step */
__device__ __forceinline__ void decode_mma12(uint32_t codes, uint32_t low0, uint32_t low1, uint32_t *a) {
  const uint32_t h0 = and_or(codes, 0x87878787u, 0x40404040u),
                 h1 = and_or(__funnelshift_l(codes, codes, 4), 0x87878787u, 0x40404040u);
  a[0] = prmt(low0, h0, 0x5140), a[1] = prmt(low0, h0, 0x7362);
  a[2] = prmt(low1, h1, 0x5140), a[3] = prmt(low1, h1, 0x7362);
}

/* tiered, few tokens: warps on their own, by mma.sync. Decoding is nearly all of the work, and a warp that waits for
 * its look-ups leaves the others be. Otherwise as main_loop. */
template <int M>
__device__ __forceinline__ void warp_loop(float (&acc)[M / 2], const RingArgs &p, int n, int k, int &s, uint32_t &phase,
                                          uint32_t ring, const Bars &bars, int r, int wk, int tid, int lane) {
  using T = Tile<GLYD_WEIGHTS_TIERED>;
  constexpr int kBox = M * 128, kAct = kBox * 2;
  const int ks = p.wk * p.kb, slot0 = r * ks + wk * p.kb;
  const uint32_t tiles_at = in_register(ring + ks * kAct + slot0 * T::kBytes + tid * 16),
                 act_at = in_register(ring + wk * p.kb * kAct + (lane & 7) * 128 + ((lane >> 3 ^ lane) & 7) * 16),
                 escapes_at = in_register(ring + ks * kAct + p.wr * ks * T::kBytes + slot0 * p.escape_slot),
                 exponents3 = in_register(kTier3Low);
  uint32_t stage = s * p.stage_bytes;
#pragma unroll
  for (int i = 0; i < M / 2; i++) acc[i] = 0.f;
  for (int j = 0; j < n; j++, k += ks) {
    mb_wait(bars.full + 8 * s, phase);
    uint32_t at = tiles_at + stage, esc = escapes_at + stage, x = act_at + stage;
    /* what lies in the place of a tile past the matrix may decode to infinity */
    for (int left = min(p.kb, p.n_tiles - k); left > 0; left--) {
      decode_tiered(at, esc, esc + p.escape_slot - 12, exponents3, tid, lane, [&](int v, const uint32_t *a) {
#pragma unroll
        for (int i = 0; i < M / 8; i++) {
          const uint4 f = ldmatrix4((x ^ (v & 1) * 64) + (v >> 1) * kBox + i * 1024);
          mma_16x8x16(acc + 4 * i, a, f.x, f.y);
          mma_16x8x16(acc + 4 * i, a + 4, f.z, f.w);
        }
      });
      at += T::kBytes, esc += p.escape_slot, x += kAct;
    }
    __syncwarp();
    if (lane == 0) mb_arrive(bars.empty + 8 * s);
    stage += p.stage_bytes;
    if (++s == p.n_stages) s = 0, phase ^= 1, stage = 0;
  }
}

/* n stages from ring position (s, phase) on; k is the first tile column of the warpgroup's first stage. */
template <int L, int M>
__device__ __forceinline__ void main_loop(float (&acc)[M / 2], const RingArgs &p, int n, int k, int &s, uint32_t &phase,
                                          uint32_t ring, const Bars &bars, int r, int wk, int tid, int lane) {
  using T = Tile<L>;
  if constexpr (T::kTiered && M <= kWarpTokens) {
    warp_loop<M>(acc, p, n, k, s, phase, ring, bars, r, wk, tid, lane);
  } else {
    constexpr int NA = M / 2, kBox = M * 128, kAct = kBox * (T::kCols / 64);
    const uint64_t descriptor = (1ull << 62) | ((uint64_t)64 << 32) | ((uint64_t)1 << 16); /* 128-byte swizzle */
    const int ks = p.wk * p.kb, slot0 = r * ks + wk * p.kb;
    const uint32_t tile_at = ks * kAct + slot0 * T::kBytes + tid * 16, act_at = wk * p.kb * kAct,
                   esc_at = ks * kAct + p.wr * ks * T::kBytes + slot0 * p.escape_slot;
#pragma unroll
    for (int i = 0; i < NA; i++) acc[i] = 0.f;
#pragma unroll
    for (int i = 0; i < NA; i++) pin(acc[i]);
    uint32_t previous = 0;
    bool release = false;
    const uint32_t exponents3 = T::kTiered ? in_register(kTier3Low) : 0;
    for (int j = 0; j < n; j++) {
      const uint32_t stage = ring + s * p.stage_bytes;
      mb_wait(bars.full + 8 * s, phase);
      for (int b = 0; b < p.kb; b++) {
        const uint32_t at = stage + tile_at + b * T::kBytes;
        const uint64_t db = descriptor | ((stage + act_at + b * kAct) >> 4);
        if constexpr (!T::kTiered) {
          const uint4 l0 = lds128(at), c = lds128(at + 4096), l1 = lds128(at + 2048);
          uint32_t a0[8], a1[8];
          decode_mma12(c.x, l0.x, l0.y, a0), decode_mma12(c.y, l0.z, l0.w, a0 + 4);
          wg_fence();
          Wgmma<M>::mma(acc, a0, db), Wgmma<M>::mma(acc, a0 + 4, db + 2);
          wg_commit();
          wg_wait<1>();
          __syncwarp(); /* one lane arrives for what all have read */
          if (release && lane == 0) mb_arrive(bars.empty + 8 * previous);
          release = false;
          decode_mma12(c.z, l1.x, l1.y, a1), decode_mma12(c.w, l1.z, l1.w, a1 + 4);
          wg_fence();
          Wgmma<M>::mma(acc, a1, db + 4), Wgmma<M>::mma(acc, a1 + 4, db + 6);
          wg_commit();
          wg_wait<1>();
        } else if (k + b < p.n_tiles) { /* what lies in the place of a tile past the matrix may decode to infinity */
          const uint32_t esc = stage + esc_at + b * p.escape_slot;
          uint32_t regs[2][8];
          decode_tiered(at, esc, esc + p.escape_slot - 12, exponents3, tid, lane, [&](int v, const uint32_t *decoded) {
            uint32_t *a = regs[v & 1];
#pragma unroll
            for (int i = 0; i < 8; i++) a[i] = decoded[i];
            wg_fence();
            const uint64_t dv = db + (v >> 1) * (kBox >> 4) + (v & 1) * 4;
            Wgmma<M>::mma(acc, a, dv), Wgmma<M>::mma(acc, a + 4, dv + 2);
            wg_commit();
            wg_wait<1>();
            if (v == 0) {
              if (release && lane == 0) mb_arrive(bars.empty + 8 * previous);
              release = false;
            }
          });
        }
      }
      if (T::kTiered && release) { /* a stage without tiles for this warpgroup */
        wg_wait<0>();
        if (lane == 0) mb_arrive(bars.empty + 8 * previous);
      }
      previous = s, release = true;
      k += ks;
      if (++s == p.n_stages) s = 0, phase ^= 1;
    }
    wg_wait<0>();
#pragma unroll
    for (int i = 0; i < NA; i++) pin(acc[i]);
    __syncwarp();
    if (release && lane == 0) mb_arrive(bars.empty + 8 * previous);
  }
}

/* the compiler keeps it in a register instead of reading it again in the loop */
__device__ __forceinline__ uint32_t kept(uint32_t v) {
  asm volatile("" : "+r"(v));
  return v;
}
/* mma12: n stages from ring position (s, phase) on. Bytes of the next tile are loaded while both groups of this one run. */
template <int M, bool PAIR = false>
__device__ __forceinline__ void loop_mma12(float (&acc)[M / 2], const RingArgs &p, int n, int &s, uint32_t &phase,
                                           uint32_t ring, const Bars &bars, int r, int wk, int tid, int lane) {
  using T = Tile<GLYD_WEIGHTS_MMA12>;
  constexpr uint32_t kBox = M * 128;
  const uint32_t stage_bytes = kept(p.stage_bytes), stages = kept(p.n_stages), kb = kept(p.kb),
                 tile_at = kept(p.wk * p.kb * kBox + (r * p.wk + wk) * p.kb * T::kBytes + tid * 16),
                 act_at = kept((wk * p.kb * kBox) >> 4 | 1u << 16), first = kept(ring), full = kept(bars.full),
                 arrives = kept(PAIR ? lane < 2 : lane == 0);
  auto arrive = [&](uint32_t bar) { /* a pair's stage is free when both blocks have read it */
                                    if constexpr (PAIR)
                                      mb_arrive_at(bar, lane);
                                    else
                                      mb_arrive(bar);
  };
#pragma unroll
  for (int i = 0; i < M / 2; i++) acc[i] = 0.f;
#pragma unroll
  for (int i = 0; i < M / 2; i++) pin(acc[i]);
  uint32_t stage = first + s * stage_bytes, bar = full + 8 * s, previous = 0, ph = phase, left = n, b = 0;
  mb_wait(bar, ph);
  uint32_t at = stage + tile_at, d = (stage >> 4) + act_at;
  uint4 c = lds128(at + 4096), l0 = lds128(at), l1 = lds128(at + 2048);
  auto descriptor = [](uint32_t low) { return (uint64_t)0x40000040u << 32 | low; };
  while (true) {
    uint32_t a0[8], a1[8];
    decode_mma12(c.x, l0.x, l0.y, a0), decode_mma12(c.y, l0.z, l0.w, a0 + 4);
    wg_fence();
    Wgmma<M>::mma(acc, a0, descriptor(d)), Wgmma<M>::mma(acc, a0 + 4, descriptor(d + 2));
    wg_commit();
    wg_wait<1>();
    __syncwarp(); /* one lane arrives for what all have read */
    if (b == 0 && previous && arrives) arrive(previous + 128);
    decode_mma12(c.z, l1.x, l1.y, a1), decode_mma12(c.w, l1.z, l1.w, a1 + 4);
    wg_fence();
    Wgmma<M>::mma(acc, a1, descriptor(d + 4)), Wgmma<M>::mma(acc, a1 + 4, descriptor(d + 6));
    wg_commit();
    if (++b < kb) {
      at += T::kBytes, d += kBox >> 4;
    } else {
      b = 0, previous = bar;
      bar += 8, stage += stage_bytes;
      if (bar == full + 8 * stages) bar = full, stage = first, ph ^= 1;
      if (--left == 0) break;
      mb_wait(bar, ph);
      at = stage + tile_at, d = (stage >> 4) + act_at;
    }
    c = lds128(at + 4096), l0 = lds128(at), l1 = lds128(at + 2048);
    wg_wait<1>();
  }
  wg_wait<0>();
#pragma unroll
  for (int i = 0; i < M / 2; i++) pin(acc[i]);
  __syncwarp();
  if (arrives) arrive(previous + 128);
  s = (bar - full) >> 3, phase = ph;
}

template <int L, int M>
__device__ __forceinline__ void multiply(float (&acc)[M / 2], const RingArgs &p, int n, int k, int &s, uint32_t &phase,
                                         uint32_t ring, const Bars &bars, int r, int wk, int tid, int lane) {
  if constexpr (!Tile<L>::kTiered && M >= 64) {
    if (n > 0) return loop_mma12<M>(acc, p, n, s, phase, ring, bars, r, wk, tid, lane);
  }
  main_loop<L, M>(acc, p, n, k, s, phase, ring, bars, r, wk, tid, lane);
}

} // namespace glyd

#endif
