/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Pages of keys and values (native/src/kv/spec.md): a strip of 16 channels by a
 * warp, from wherever it lies to a tile in shared memory. A packed page's strip
 * becomes rows of channels, a plain one's rows of tokens; who reads them asks
 * which. Headers are checked when pages enter a cache; whatever else a page says
 * is clamped to the memory that it has.
 * Tests run this code on the CPU as well (tests/emulation).
 */
#ifndef GLYD_GPU_KV_PAGE_CUH
#define GLYD_GPU_KV_PAGE_CUH

#include "glyd/format_kv.h"
#include "glyd/kv_quads.h"
#include "tile_decode.cuh"

constexpr int kKvTokens = GLYD_KV_TOKENS;
/* A tile of channels: a row is 16 bytes longer than its tokens, so that neither 16 bytes of eight rows nor those that
 * ldmatrix reads meet in a bank. A tile of tokens: rows of 32 bytes, whose halves change places in every other four. */
constexpr int kKvRow = kKvTokens * 2 + 16, kKvTile = 16 * kKvRow;
static_assert(kKvTokens * 32 <= kKvTile, "a tile of tokens is no larger");
__host__ __device__ constexpr int kv_token_at(int token, int half) { return token * 32 + (half ^ (token >> 2 & 1)) * 16; }

__device__ __forceinline__ bool kv_is_packed(const uint8_t *header) { return header[GLYD_KV_AT_FORM] == GLYD_KV_PACKED; }

/* Two bf16 times the same power of two, exactly. */
__device__ __forceinline__ uint32_t kv_times(uint32_t pair, uint32_t factor) {
#ifdef GLYD_EMULATION
  return emulated_times(pair, factor);
#else
  uint32_t r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(pair), "r"(factor), "r"(0x80008000u));
  return r;
#endif
}
__device__ __forceinline__ uint32_t kv_factor(uint32_t base) { return base * 0x800080u; } /* twice; base 0: 0 */

/* Exponents of quads in shared memory, R copies side by side: lanes read the copy of their number, so fewer of them meet
 * in a bank. They are those of base 127, rotated right by one: bit 7 is the bf16's bit 7. */
static __device__ const uint32_t kKvQuads[GLYD_KV_QUADS] = GLYD_KV_QUAD_TABLE;
constexpr int kKvQuadRows = 1 << GLYD_KV_CODE_BITS;
template <int R> __device__ __forceinline__ void kv_fill_quads(uint32_t *table) {
  for (int i = threadIdx.x; i < kKvQuadRows; i += blockDim.x) {
    const uint32_t e = (kBias + GLYD_KV_ABOVE) * 0x01010101u - (i < GLYD_KV_QUADS ? kKvQuads[i] : 0);
    const uint32_t word = (e >> 1 & 0x7F7F7F7Fu) | (e & 0x01010101u) << 7;
#pragma unroll
    for (int r = 0; r < R; r++) table[i * R + r] = word;
  }
}

/* A lane's part of a strip: it has channel lane % 16, and of it 64 tokens. */
struct KvStrip {
  uint4 kept[4];     /* sign and mantissa */
  uint32_t codes[6]; /* of 16 quads */
};
__device__ __forceinline__ KvStrip kv_load_strip(const uint8_t *strip) {
  const uint32_t lane = threadIdx.x % 32;
  KvStrip w;
#pragma unroll
  for (int i = 0; i < 4; i++) w.kept[i] = *(const uint4 *)(strip + 512 * i + lane * 16);
  const uint4 first = *(const uint4 *)(strip + GLYD_KV_CODES_AT + lane * 16);
  w.codes[0] = first.x, w.codes[1] = first.y, w.codes[2] = first.z, w.codes[3] = first.w;
  w.codes[4] = *(const uint32_t *)(strip + GLYD_KV_CODES_AT + 512 + lane * 4);
  w.codes[5] = *(const uint16_t *)(strip + GLYD_KV_CODES_AT + 640 + lane * 2);
  return w;
}

__device__ __forceinline__ uint32_t kv_pick(uint32_t a, uint32_t b, uint32_t mask) { /* (a & mask) | (b & ~mask) */
#ifdef GLYD_EMULATION
  return pick(a, b, mask);
#else
  uint32_t r;
  asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(r) : "r"(a), "r"(b), "r"(mask));
  return r;
#endif
}

/* Decode a strip to a tile of channels. */
template <int R>
__device__ __forceinline__ void kv_decode_strip(uint8_t *tile, const KvStrip &w, const uint32_t *table, uint32_t base) {
  constexpr uint32_t kShift = R == 1 ? 2 : R == 2 ? 3 : R == 4 ? 4 : 5; /* a row's bytes */
  constexpr uint32_t kMask = (uint32_t)(kKvQuadRows - 1) << kShift;
  static_assert(4 * R == 1 << kShift, "1, 2, 4 or 8 copies");
  const uint32_t lane = threadIdx.x % 32, factor = kv_factor(base), copy = lane % R * 4;
  uint8_t *row = tile + lane % 16 * kKvRow + lane / 16 * kKvTokens;
#pragma unroll
  for (int part = 0; part < 4; part++) {
    const uint32_t s[4] = {w.kept[part].x, w.kept[part].y, w.kept[part].z, w.kept[part].w};
    uint32_t a[8];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const uint32_t bit = GLYD_KV_CODE_BITS * (4 * part + j), shift = bit % 32;
      const uint32_t x = w.codes[bit / 32], y = w.codes[bit / 32 + (bit / 32 < 5)];
      uint32_t at = shift < kShift ? x << ((kShift - shift) & 31) : x >> ((shift - kShift) & 31);
      if (shift + GLYD_KV_CODE_BITS > 32) at = __funnelshift_r(x, y, shift - kShift);
      const uint32_t e = *(const uint32_t *)((const uint8_t *)table + and_or(at, kMask, copy));
      const uint32_t low = kv_pick(s[j], e, 0x7F7F7F7Fu), high = kv_pick(e, s[j], 0x7F7F7F7Fu);
      a[2 * j] = kv_times(prmt(low, high, 0x5140), factor);
      a[2 * j + 1] = kv_times(prmt(low, high, 0x7362), factor);
    }
    *(uint4 *)(row + part * 32) = make_uint4(a[0], a[1], a[2], a[3]);
    *(uint4 *)(row + part * 32 + 16) = make_uint4(a[4], a[5], a[6], a[7]);
  }
}

/* Give a corrected place of a tile its exponent, in lanes where `is`; a lane has the base of channel lane % 16. */
__device__ __forceinline__ void kv_correct_one(uint8_t *tile, uint32_t correction, bool is, uint32_t base) {
  const uint32_t channel = correction / kKvTokens % 16, its = __shfl_sync(~0u, base, (int)channel);
  const uint32_t below = correction >> GLYD_KV_PLACE_BITS;
  const uint32_t e = below == GLYD_KV_CORRECTED_ZERO ? 0 : (its + GLYD_KV_CORRECTED_ABOVE - below) & 0xFF;
  uint16_t *at = (uint16_t *)(tile + channel * kKvRow + correction % kKvTokens * 2);
  if (is) *at = (uint16_t)((*at & 0x807F) | e << 7);
}
/* The same of a list, from a number on. */
__device__ __forceinline__ void kv_correct(uint8_t *tile, const uint16_t *corrections, uint32_t first, uint32_t n, uint32_t base) {
  for (; first < n; first += 32) {
    const uint32_t i = first + threadIdx.x % 32;
    kv_correct_one(tile, i < n ? corrections[i] : 0, i < n, base);
  }
}

/* Where corrections and exceptions of a page are, from its header. */
struct KvExtras {
  uint32_t n_exceptions, places; /* how many, and where in the page */
  uint32_t most;                 /* corrections that there is room for */
};
template <int D> __device__ __forceinline__ uint32_t kv_corrections_end(const uint8_t *header, uint32_t most, int strip) {
  const uint32_t end = *(const uint16_t *)(header + GLYD_KV_AT_ENDS + 2 * strip);
  return end < most ? end : most;
}
template <int D> __device__ __forceinline__ uint32_t kv_most_corrections(const uint8_t *header) {
  const uint32_t size = *(const uint32_t *)(header + GLYD_KV_AT_SIZE);
  return size > GLYD_KV_CORRECTIONS_AT(D) ? (size - GLYD_KV_CORRECTIONS_AT(D)) / 2 : 0;
}
template <int D> __device__ __forceinline__ KvExtras kv_extras(const uint8_t *header) {
  KvExtras x;
  x.most = kv_most_corrections<D>(header);
  const uint32_t end = kv_corrections_end<D>(header, x.most, D / 16 - 1);
  const uint32_t room = (x.most - end) / 2, said = *(const uint32_t *)(header + GLYD_KV_AT_EXCEPTIONS);
  x.n_exceptions = said < room ? said : room;
  x.places = GLYD_KV_CORRECTIONS_AT(D) + 2 * end;
  return x;
}

/* Put a page's exceptions in their places of a strip's tile. */
__device__ __forceinline__ void kv_put_exceptions(uint8_t *tile, const uint8_t *page, const KvExtras &x, uint32_t strip) {
  const uint16_t *places = (const uint16_t *)(page + x.places);
  for (uint32_t i = threadIdx.x % 32; i < x.n_exceptions; i += 32) {
    const uint32_t place = places[i];
    if (place >> GLYD_KV_PLACE_BITS == strip)
      *(uint16_t *)(tile + place / kKvTokens % 16 * kKvRow + place % kKvTokens * 2) = places[x.n_exceptions + i];
  }
}

/* A strip of plain rows [tokens][D] to a tile of tokens; zeros past the last: times a probability of 0, no NaN may stand
 * there. */
template <int D>
__device__ __forceinline__ void kv_copy_strip(uint8_t *tile, const uint16_t *rows, int strip, int n_tokens) {
  uint4 x[8];
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int token = 16 * i + (int)(threadIdx.x % 32) / 2, half = threadIdx.x % 2;
    x[i] = token < n_tokens ? __ldcs((const uint4 *)(rows + token * D + strip * 16 + half * 8)) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int token = 16 * i + (int)(threadIdx.x % 32) / 2, half = threadIdx.x % 2;
    *(uint4 *)(tile + kv_token_at(token, half)) = x[i];
  }
}

#endif
