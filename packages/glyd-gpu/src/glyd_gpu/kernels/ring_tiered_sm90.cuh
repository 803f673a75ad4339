/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * A tiered tile in shared memory to A fragments, for the ring products.
 *
 * A byte is four codes of 2 bits, of tier 1 or digits. The table has a row of
 * 128 bytes for each, a copy a bank: PRMT selector that puts what comes after
 * codes 3 in their places; 2 * (number of codes 3) in bits 16-23; mask of that
 * many digits in bits 24-31. Counts and addresses are integer dot products:
 * those run on the multipliers, beside the logic unit, which has most to do.
 */
#ifndef GLYD_RING_TIERED_SM90_CUH
#define GLYD_RING_TIERED_SM90_CUH

#ifdef GLYD_EMULATION /* on the CPU, in tests */
#include "emulated_sm90.h"
#else
#include "ring_sm90.cuh"
static_assert(glyd::kRingTables == 256 * 128, "room for the table");
#endif

namespace glyd {

constexpr uint32_t kTableRow = 128;
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
  for (int d = 1; d < 32; d <<= 1) {
#ifdef GLYD_EMULATION
    const uint32_t u = __shfl_up_sync(~0u, sum, d);
    if (threadIdx.x % 32 >= (unsigned)d) sum += u;
#else
    asm volatile("{.reg .pred p; .reg .u32 u; shfl.sync.up.b32 u|p, %0, %1, 0, -1; @p add.u32 %0, %0, u;}"
                 : "+r"(sum)
                 : "r"(d));
#endif
  }
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

/* A value kept in a register: of one that it knows how to compute ptxas would make a copy for every use. */
__device__ __forceinline__ uint32_t in_register(uint32_t value) {
#ifdef GLYD_EMULATION
  return value;
#else
  uint32_t r;
  asm volatile("{.reg .u32 lane; mov.u32 lane, %%laneid; shfl.sync.idx.b32 %0, %1, lane, 31, -1;}" : "=r"(r) : "r"(value));
  return r;
#endif
}

/* What a thread multiplies of a tiered tile at shared address `at`, escapes at esc: emit(v, a) gets the A registers of
 * k16 steps 2 v and 2 v + 1. All look-ups come first: their latency would otherwise stand between every two products. */
template <class F>
__device__ __forceinline__ void decode_tiered(uint32_t at, uint32_t esc, uint32_t limit, uint32_t exponents3, int tid,
                                              int lane, F emit) {
  const uint32_t warp = (uint32_t)tid >> 5, t1 = lane * 4;
  const uint4 c = lds128(at + 8192);
  const uint32_t first2 = lds16(esc + 2 * warp), first3 = lds16(esc + 8 + 2 * warp);
  const uint32_t code[4] = {c.x, c.y, c.z, c.w};
  uint32_t q[16], w[16], window[4];
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

} // namespace glyd

#endif
