/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * A tile into registers, for every architecture. Thread t of 128 gets its
 * weights as operand A of mma.sync.m16n8k16: for every k16 step four words a0
 * a1 a2 a3 (rows g, g + 8, g, g + 8; columns 2 q, 2 q, 2 q + 8, 2 q + 8).
 * Weights have the product's fixed exponents (spec, "Decoding"): times the
 * factor of the row they are the matrix's own.
 */
#ifndef GLYD_GPU_TILE_DECODE_CUH
#define GLYD_GPU_TILE_DECODE_CUH

#include "pack_view.cuh"

/* bitwise functions of three words: one LOP3 each */
__device__ __forceinline__ uint32_t and_or(uint32_t a, uint32_t mask, uint32_t c) { return (a & mask) | c; }
__device__ __forceinline__ uint32_t pick(uint32_t a, uint32_t b, uint32_t mask) { return (a & mask) | (b & ~mask); }

/* PRMT as the hardware does it: __byte_perm would mask the selector first, and lose the copied sign bits. */
__device__ __forceinline__ uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector) {
#ifdef GLYD_EMULATION /* on the CPU, in tests */
  return emulated_prmt(a, b, selector);
#else
  uint32_t r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(selector));
  return r;
#endif
}

/* ---- mma12 ------------------------------------------------------------------- */

/* Words of steps 2 part and 2 part + 1: low bytes of the part, and word s of the codes for step s. */
__device__ __forceinline__ void decode_mma12(uint4 low, uint32_t code0, uint32_t code1, uint32_t (&a)[8]) {
  const uint32_t lows[4] = {low.x, low.y, low.z, low.w};
#pragma unroll
  for (int k = 0; k < 2; k++) {
    const uint32_t n = k ? code1 : code0;
    const uint32_t h0 = and_or(n, 0x87878787u, 0x40404040u);
    const uint32_t h1 = and_or(__funnelshift_l(n, n, 4), 0x87878787u, 0x40404040u);
    a[4 * k] = prmt(lows[2 * k], h0, 0x5140);
    a[4 * k + 1] = prmt(lows[2 * k], h0, 0x7362);
    a[4 * k + 2] = prmt(lows[2 * k + 1], h1, 0x5140);
    a[4 * k + 3] = prmt(lows[2 * k + 1], h1, 0x7362);
  }
}

/* ---- tiered ------------------------------------------------------------------ */

/* Tables in shared memory. Of four 2-bit codes in a byte: the selectors of a PRMT (code c < 3: byte 4 + c of the
 * second word; the n-th code 3: byte n of the first), and how many codes are 3. */
struct TieredTables {
  uint32_t tier1[256]; /* selector | 2 n << 16 | (1 << 2 n) - 1 << 24 */
  uint32_t tier2[256]; /* selector | 4 n << 16 */
};

__device__ __forceinline__ void fill_tables(TieredTables *tables) {
  for (uint32_t i = threadIdx.x; i < 256; i += blockDim.x) {
    uint32_t selector = 0, n = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const uint32_t c = (i >> (2 * k)) & 3;
      selector |= (c == 3 ? n : 4 + c) << (4 * k);
      n += c == 3;
    }
    tables->tier1[i] = selector | (2 * n) << 16 | ((1u << (2 * n)) - 1) << 24;
    tables->tier2[i] = selector | (4 * n) << 16;
  }
}

/* Exponents by code, a byte each, rotated right by one: bit 7 is the bf16's bit 7, so joining needs no shift. */
constexpr uint32_t rotated(int e) { return (uint32_t)(e >> 1 | (e & 1) << 7); }
constexpr int kBias = 127;
constexpr int kTier2[3] = GLYD_WEIGHTS_TIER2, kTier3[8] = GLYD_WEIGHTS_TIER3;
constexpr uint32_t bytes4(int a, int b, int c, int d) {
  return rotated(kBias + a) | rotated(kBias + b) << 8 | rotated(kBias + c) << 16 | rotated(kBias + d) << 24;
}
constexpr uint32_t kExponents1 = rotated(kBias) | rotated(kBias + 1) << 8 | rotated(kBias + 2) << 16;
constexpr uint32_t kExponents2 =
    rotated(kBias + kTier2[0]) | rotated(kBias + kTier2[1]) << 8 | rotated(kBias + kTier2[2]) << 16;
constexpr uint32_t kExponents3Low = bytes4(kTier3[0], kTier3[1], kTier3[2], kTier3[3]);
constexpr uint32_t kExponents3High = bytes4(kTier3[4], kTier3[5], kTier3[6], kTier3[7]);
/* tier 3 code 8 selects the sign bit of byte 0, eight times: it must be 0, the exponent of zero */
static_assert((kExponents3Low & 0x80) == 0, "the exponent of code 8 is 0");

__device__ __forceinline__ uint32_t codes_3(uint32_t w) { return __popc(w & (w >> 1) & 0x55555555u); }

__device__ __forceinline__ uint32_t before_in_warp(uint32_t v) { /* exclusive sum over the warp */
  uint32_t sum = v;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    const uint32_t u = __shfl_up_sync(~0u, sum, d);
    if ((threadIdx.x & 31) >= (unsigned)d) sum += u;
  }
  return sum - v;
}

/* Escapes in shared memory, with room for places that a pack may lie about. */
constexpr uint32_t kEscapeRoom = 32; /* bytes after tile_escape_max: windows of 64 bits at any bit of the last */
struct SharedEscapes {
  const uint8_t *at;
  uint32_t nbytes; /* of room without kEscapeRoom */
  __device__ __forceinline__ uint32_t word(uint32_t byte) const { return *(const uint32_t *)(at + byte); }
  __device__ __forceinline__ uint32_t limit() const { return nbytes; }
};

/* The same in device memory: words past the end read as 0. */
struct GlobalEscapes {
  const uint8_t *at;
  uint32_t nbytes;
  __device__ __forceinline__ uint32_t word(uint32_t byte) const {
    return byte + 4 <= nbytes ? __ldg((const uint32_t *)(at + byte)) : 0;
  }
  __device__ __forceinline__ uint32_t limit() const { return nbytes; }
};

/* 32 bits from a bit of the escapes' digits on. */
template <class Escapes> __device__ __forceinline__ uint32_t window32(const Escapes &e, uint32_t bit) {
  const uint32_t at = GLYD_WEIGHTS_ESCAPE_HEADER + (bit >> 5) * 4;
  return __funnelshift_r(e.word(at), e.word(at + 4), bit);
}
template <class Escapes> __device__ __forceinline__ uint64_t window64(const Escapes &e, uint32_t bit) {
  const uint32_t at = GLYD_WEIGHTS_ESCAPE_HEADER + (bit >> 5) * 4;
  const uint32_t x = e.word(at), y = e.word(at + 4), z = e.word(at + 8);
  return (uint64_t)__funnelshift_r(y, z, bit) << 32 | __funnelshift_r(x, y, bit);
}

/* Where a thread's escapes start, and what is common to its four parts. */
struct TieredThread {
  uint32_t codes[4]; /* tier 1 of weights 16 v … */
  uint32_t digits;   /* bit of the next digit, from the first digit on */
  uint32_t codes3;   /* bit of the next tier 3 code */
  uint32_t last_bit; /* where a window may start at most */
  uint32_t n_digits, n_codes3; /* of the thread */
};

template <class Escapes>
__device__ __forceinline__ TieredThread tiered_thread(const Escapes &e, uint4 codes, uint32_t warp) {
  TieredThread t;
  t.codes[0] = codes.x, t.codes[1] = codes.y, t.codes[2] = codes.z, t.codes[3] = codes.w;
  uint32_t n[4], n3 = 0;
#pragma unroll
  for (int v = 0; v < 4; v++) n[v] = codes_3(t.codes[v]);
  const uint32_t limit = e.limit();
  /* bits after the header; room behind them is read, never more */
  t.last_bit = limit > GLYD_WEIGHTS_ESCAPE_HEADER ? (limit - GLYD_WEIGHTS_ESCAPE_HEADER) * 8 : 0;
  const uint32_t first2 = (e.word(warp / 2 * 4) >> (warp % 2 * 16)) & 0xFFFF;
  const uint32_t first3 = (e.word(8 + warp / 2 * 4) >> (warp % 2 * 16)) & 0xFFFF;
  t.n_digits = n[0] + n[1] + n[2] + n[3];
  t.digits = 2 * (first2 + before_in_warp(t.n_digits));
  uint32_t p = t.digits;
#pragma unroll
  for (int v = 0; v < 4; v++) {
    const uint32_t w = window32(e, min(p, t.last_bit));
    /* shifts by 32 give 0 with the clamping form */
    n3 += __popc(w & (w >> 1) & __funnelshift_rc(0x55555555u, 0, 32 - 2 * n[v]));
    p += 2 * n[v];
  }
  t.n_codes3 = n3;
  t.codes3 = 4 * (first3 + before_in_warp(n3));
  return t;
}

/* Words of steps 2 part and 2 part + 1; parts in order, each once. */
template <class Escapes>
__device__ __forceinline__ void decode_tiered(const Escapes &e, const TieredTables &tables, TieredThread &t, int part,
                                              uint4 sign_mantissa, uint32_t (&a)[8]) {
  const uint32_t s[4] = {sign_mantissa.x, sign_mantissa.y, sign_mantissa.z, sign_mantissa.w};
  const uint32_t digits = window32(e, min(t.digits, t.last_bit));
  const uint64_t codes3 = window64(e, min(t.codes3, t.last_bit));
  uint32_t b2 = 8, b3 = 0; /* digits rotated by 8 bits have the next four in the top byte */
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const uint32_t q = tables.tier1[(t.codes[part] >> (8 * i)) & 0xFF];
    const uint32_t four = __funnelshift_r(digits, digits, b2) & q; /* the mask is in q's top byte */
    const uint32_t r = tables.tier2[four >> 24];
    b2 += q >> 16; /* its mask adds multiples of 256: no change mod 32 */
    const uint32_t e3 = prmt(kExponents3Low, kExponents3High, (uint32_t)(codes3 >> b3));
    b3 += r >> 16;
    const uint32_t exponents = prmt(prmt(e3, kExponents2, r), kExponents1, q);
    const uint32_t low = pick(s[i], exponents, 0x7F7F7F7Fu), high = pick(exponents, s[i], 0x7F7F7F7Fu);
    a[2 * i] = prmt(low, high, 0x5140);
    a[2 * i + 1] = prmt(low, high, 0x7362);
  }
  t.digits += (b2 - 8) & 0xFF;
  t.codes3 += b3;
}

/* Copy a tile's escapes to shared memory by all threads of the block, asynchronously: cp_async_wait, then a barrier. */
#ifdef GLYD_EMULATION
inline void copy_async16(void *to, const void *from) { emulated_copy_async16(to, from); }
inline void cp_async_commit() { emulated_copies_commit(); }
template <int N> inline void cp_async_wait() { emulated_copies_wait(N); }
#else
__device__ __forceinline__ void copy_async16(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
#endif

#endif
