/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * The inner loop of the ring products: stages of packed tiles to A fragments to
 * wgmma, for both layouts. While one group of two wgmmas runs, the registers of
 * the next are decoded.
 */
#ifndef GLYD_RING_DECODE_SM90_CUH
#define GLYD_RING_DECODE_SM90_CUH

#include "mma_sync.cuh"
#include "ring_sm90.cuh"

namespace glyd {

constexpr int kWarpTokens = 16; /* up to here the products of tiered are by mma.sync */

/* mma12: 8 weights are the four A registers of one k16 step */
__device__ __forceinline__ void decode_mma12(uint32_t codes, uint32_t low0, uint32_t low1, uint32_t *a) {
  const uint32_t h0 = and_or(codes, 0x87878787u, 0x40404040u),
                 h1 = and_or(__funnelshift_l(codes, codes, 4), 0x87878787u, 0x40404040u);
  a[0] = prmt(low0, h0, 0x5140), a[1] = prmt(low0, h0, 0x7362);
  a[2] = prmt(low1, h1, 0x5140), a[3] = prmt(low1, h1, 0x7362);
}

/* ---- tiered -------------------------------------------------------------------------
 * A byte is four codes of 2 bits, of tier 1 or digits. The table (a row of 128 bytes for each, a copy a bank): PRMT selector that puts what comes after codes 3 in their places; 2 * (number of codes 3) in bits 16-23; mask
 * of that many digits in bits 24-31. Counts and addresses are integer dot products: those run on the multipliers,
 * beside the logic unit, which has most of the work. */
constexpr uint32_t kTableRow = kRingTables / 256;
__device__ __forceinline__ uint32_t table(uint32_t at) { return *reinterpret_cast<const uint32_t *>(ring_memory + at); }
__device__ __forceinline__ void build_table(int thread, int lane) {
  for (int q = thread; q < 256; q += 256) { /* 256 threads, a row each; lanes start at different banks */
    uint32_t sel = 0, n = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const uint32_t c = (q >> (2 * k)) & 3;
      sel |= (c == 3 ? n : 4 + c) << (4 * k);
      n += c == 3;
    }
    const uint32_t a = sel | (2 * n) << 16 | ((1u << (2 * n)) - 1) << 24, at = smem_u32(ring_memory) + q * kTableRow;
#pragma unroll
    for (int j = 0; j < 8; j++) sts128(at + ((j + lane) & 7) * 16, a, a, a, a);
  }
}
/* row of byte i of v, plus the lane's place t in it */
template <int I> __device__ __forceinline__ uint32_t row_of(uint32_t v, uint32_t t) {
  constexpr uint32_t pick = kTableRow << I % 2 * 16;
  return I < 2 ? __dp2a_lo(pick, v, t) : __dp2a_hi(pick, v, t);
}
/* sum + F * (number of codes 3 of an entry) */
template <int F> __device__ __forceinline__ uint32_t count(uint32_t entry, uint32_t sum) {
  return __dp4a(entry, (uint32_t)F / 2 << 16, sum);
}
__device__ __forceinline__ uint32_t scan(uint32_t v) { /* exclusive sum over the warp */
  uint32_t sum = v;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1)
    asm volatile("{.reg .pred p; .reg .u32 u; shfl.sync.up.b32 u|p, %0, %1, 0, -1; @p add.u32 %0, %0, u;}"
                 : "+r"(sum)
                 : "r"(d));
  return sum - v;
}
/* 64 bits from a bit on; never past limit, wherever a pack says that its escapes are */
__device__ __forceinline__ uint64_t window64(uint32_t base, uint32_t bit, uint32_t limit) {
  const uint32_t a = min(base + (bit >> 5) * 4, limit), x = lds32(a), y = lds32(a + 4), z = lds32(a + 8);
  return (uint64_t)__funnelshift_r(y, z, bit) << 32 | __funnelshift_r(x, y, bit);
}
__device__ __forceinline__ uint32_t window32(uint32_t base, uint32_t bit, uint32_t limit) {
  const uint32_t a = min(base + (bit >> 5) * 4, limit);
  return __funnelshift_r(lds32(a), lds32(a + 4), bit);
}
/* exponents rotated right by one bit, four a word: biased so that base is 127 */
constexpr uint32_t rotated(int e) { return (uint32_t)(e >> 1 | (e & 1) << 7); }
constexpr uint32_t quad(int a, int b, int c, int d) {
  return rotated(a) | rotated(b) << 8 | rotated(c) << 16 | rotated(d) << 24;
}
constexpr uint32_t kTier1 = quad(127, 128, 129, 0), kTier2 = quad(126, 130, 125, 0),
                   kTier3Low = quad(124, 131, 123, 122), kTier3High = quad(121, 120, 119, 118);

/* exponent bytes and sign/mantissa bytes to two bf16 pairs */
__device__ __forceinline__ void join(uint32_t s, uint32_t e, uint32_t *o) {
  const uint32_t l = pick(s, e, 0x7F7F7F7Fu), h = pick(e, s, 0x7F7F7F7Fu);
  o[0] = prmt(l, h, 0x5140);
  o[1] = prmt(l, h, 0x7362);
}

/* What a thread multiplies of a tiered tile at shared address `at`, escapes at esc: emit(v, a) gets the A registers of
 * k16 steps 2 v and 2 v + 1. All look-ups come first: their latency would otherwise stand between every two products. */
template <class F>
__device__ __forceinline__ void decode_tiered(uint32_t at, uint32_t esc, uint32_t limit, int tid, int lane, F emit) {
  const uint32_t warp = (uint32_t)tid >> 5, t1 = lane * 4;
  const uint4 c = lds128(at + 8192);
  const uint32_t first2 = lds16(esc + 2 * warp), first3 = lds16(esc + 8 + 2 * warp);
  const uint32_t code[4] = {c.x, c.y, c.z, c.w};
  uint32_t q[16], w[16], window[4], exponents3; /* in a register, which ptxas fills anew for every use of a constant */
  asm("shfl.sync.idx.b32 %0, %1, 0, 31, -1;" : "=r"(exponents3) : "r"(kTier3Low));
#pragma unroll
  for (int v = 0; v < 4; v++) {
    q[4 * v] = table(row_of<0>(code[v], t1)), q[4 * v + 1] = table(row_of<1>(code[v], t1));
    q[4 * v + 2] = table(row_of<2>(code[v], t1)), q[4 * v + 3] = table(row_of<3>(code[v], t1));
  }
  uint32_t shift[16], n2[4]; /* where the digits of four weights are in their window; 2 * (digits of 16 weights) */
#pragma unroll
  for (int v = 0; v < 4; v++) {
    uint32_t s = 8; /* -24 mod 32: digits land on bits 24..31, where the mask is */
#pragma unroll
    for (int i = 0; i < 4; i++) shift[4 * v + i] = s, s = count<2>(q[4 * v + i], s);
    n2[v] = s - 8;
  }
  const uint32_t n01 = n2[0] + n2[1], p2 = 2 * first2 + scan(n01 + n2[2] + n2[3]);
  { /* digits of 32 weights fit in 64 bits */
    const uint64_t w0 = window64(esc + 16, p2, limit), w1 = window64(esc + 16, p2 + n01, limit);
    window[0] = (uint32_t)w0, window[2] = (uint32_t)w1;
    window[1] = __funnelshift_rc((uint32_t)w0, (uint32_t)(w0 >> 32), n2[0]);
    window[3] = __funnelshift_rc((uint32_t)w1, (uint32_t)(w1 >> 32), n2[2]);
  }
#pragma unroll
  for (int i = 0; i < 16; i++)
    w[i] = table(row_of<3>(__funnelshift_r(window[i / 4], window[i / 4], shift[i]) & q[i], t1));
  uint32_t w3[8], m = 0; /* codes of tier 3 of eight weights each; 4 * (those before) */
#pragma unroll
  for (int k = 0; k < 8; k++) w3[k] = m, m = count<4>(w[2 * k + 1], count<4>(w[2 * k], m));
  const uint32_t p3 = scan(m) + 4 * first3;
  /* one window serves all of a thread's third tier, but for one tile in a hundred, and data that is far from Gaussian */
  if (__any_sync(~0u, m > 32)) {
#pragma unroll
    for (int k = 0; k < 8; k++) w3[k] = window32(esc + 16, p3 + w3[k], limit);
  } else {
    const uint32_t all = window32(esc + 16, p3, limit);
#pragma unroll
    for (int k = 0; k < 8; k++) w3[k] = __funnelshift_r(all, all, w3[k]);
  }
#pragma unroll
  for (int v = 0; v < 4; v++) {
    const uint4 low = lds128(at + v * 2048);
    const uint32_t l[4] = {low.x, low.y, low.z, low.w};
    uint32_t a[8];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t x = q[4 * v + i], y = w[4 * v + i];
      uint32_t codes = w3[2 * v + i / 2];
      if (i % 2) codes = __funnelshift_r(codes, codes, count<4>(w[4 * v + i - 1], 0));
      join(l[i], prmt(prmt(prmt(exponents3, kTier3High, codes), kTier2, y), kTier1, x), a + 2 * i);
    }
    emit(v, a);
  }
}

/* tiered, few tokens: warps on their own, by mma.sync. Decoding is nearly all of the work, and a warp that waits for
 * its look-ups leaves the others be. Otherwise as main_loop. */
template <int M>
__device__ __forceinline__ void warp_loop(float (&acc)[M / 2], const RingArgs &p, int n, int k, int &s, uint32_t &phase,
                                          uint32_t ring, const Bars &bars, int r, int wk, int tid, int lane) {
  using T = Tile<GLYD_WEIGHTS_TIERED>;
  constexpr int kBox = M * 128, kAct = kBox * 2;
  const int ks = p.wk * p.kb, slot0 = r * ks + wk * p.kb;
  const uint32_t tile_at = ks * kAct + slot0 * T::kBytes + tid * 16,
                 act_at = wk * p.kb * kAct + (lane & 7) * 128 + ((lane >> 3 ^ lane) & 7) * 16,
                 esc_at = ks * kAct + p.wr * ks * T::kBytes + slot0 * p.escape_slot;
#pragma unroll
  for (int i = 0; i < M / 2; i++) acc[i] = 0.f;
  for (int j = 0; j < n; j++) {
    const uint32_t stage = ring + s * p.stage_bytes;
    mb_wait(bars.full + 8 * s, phase);
    for (int b = 0; b < p.kb; b++) {
      if (k + b >= p.n_tiles) break; /* what lies in the place of a tile past the matrix may decode to infinity */
      const uint32_t esc = stage + esc_at + b * p.escape_slot, x = stage + act_at + b * kAct;
      decode_tiered(stage + tile_at + b * T::kBytes, esc, esc + p.escape_slot - 12, tid, lane,
                    [&](int v, const uint32_t *a) {
#pragma unroll
                      for (int i = 0; i < M / 8; i++) {
                        const uint4 f = ldmatrix4((x ^ (v & 1) * 64) + (v >> 1) * kBox + i * 1024);
                        mma_16x8x16(acc + 4 * i, a, f.x, f.y);
                        mma_16x8x16(acc + 4 * i, a + 4, f.z, f.w);
                      }
                    });
    }
    __syncwarp();
    if (lane == 0) mb_arrive(bars.empty + 8 * s);
    k += ks;
    if (++s == p.n_stages) s = 0, phase ^= 1;
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
    for (int i = 0; i < NA; i++) asm volatile("" : "+f"(acc[i])::"memory");
    uint32_t previous = 0;
    bool release = false;
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
          decode_tiered(at, esc, esc + p.escape_slot - 12, tid, lane, [&](int v, const uint32_t *decoded) {
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
    for (int i = 0; i < NA; i++) asm volatile("" : "+f"(acc[i])::"memory");
    __syncwarp();
    if (release && lane == 0) mb_arrive(bars.empty + 8 * previous);
  }
}

} // namespace glyd

#endif
