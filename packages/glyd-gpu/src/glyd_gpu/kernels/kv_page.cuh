/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Pages of keys and values (native/src/kv/spec.md): a slab of 32 tokens by a
 * warp, from shared memory to operands A of mma.sync, block by block. A page
 * lies in the order of those operands: of keys (tokens by channels) and of
 * values transposed (channels by tokens) alike, a thread has half a piece twice.
 * Headers are checked when pages enter a cache; whatever else a page says is
 * clamped to the memory that it has.
 * Tests run this code on the CPU as well (tests/emulation).
 */
#ifndef GLYD_GPU_KV_PAGE_CUH
#define GLYD_GPU_KV_PAGE_CUH

#include "glyd/format_kv.h"
#include "glyd/kv_quads.h"
#include "tile_decode.cuh"

constexpr int kKvTokens = GLYD_KV_TOKENS, kKvSlabTokens = GLYD_KV_SLAB_TOKENS;
constexpr int kKvSteps = kKvSlabTokens / 16;               /* of a slab: tokens of an mma */
constexpr uint32_t kKvSpelled = 1u << (GLYD_KV_CODE_BITS - 3); /* quads of a list at most */
constexpr uint32_t kKvFewestCodes = (1u << GLYD_KV_CODE_BITS) - kKvSpelled;

__device__ __forceinline__ bool kv_is_packed(const uint8_t *header) { return header[GLYD_KV_AT_FORM] == GLYD_KV_PACKED; }

/* Two bf16 times a power of two each, exactly. */
__device__ __forceinline__ uint32_t kv_times(uint32_t pair, uint32_t factor) {
#ifdef GLYD_EMULATION
  return emulated_times(pair, factor);
#else
  uint32_t r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(pair), "r"(factor), "r"(0x80008000u));
  return r;
#endif
}

/* Exponents of a quad as tables have them, from its distances: those of base 127, rotated right by one, so that bit 7 is
 * the bf16's bit 7. */
__device__ __forceinline__ uint32_t kv_rotated(uint32_t exponents) {
  return (exponents >> 1 & 0x7F7F7F7Fu) | (exponents & 0x01010101u) << 7;
}

/* The table of quads in shared memory, R copies side by side: lanes read the copy of their number, so fewer of them meet
 * in a bank. */
static __device__ const uint32_t kKvQuads[GLYD_KV_QUADS] = GLYD_KV_QUAD_TABLE;
constexpr int kKvQuadRows = GLYD_KV_QUADS; /* codes past them are in a list */
template <int R> __device__ __forceinline__ void kv_fill_quads(uint32_t *table) {
#pragma unroll 4
  for (int i = threadIdx.x; i < kKvQuadRows; i += blockDim.x) {
    const uint32_t word = kv_rotated((kBias + GLYD_KV_ABOVE) * 0x01010101u - kKvQuads[i]);
#pragma unroll
    for (int r = 0; r < R; r++) table[i * R + r] = word;
  }
}

/* How a lane looks quads up: the table, and from some code on the list of the warp, which stands in rows as the table's. */
template <int R> struct KvLook {
  static constexpr uint32_t kShift = R == 1 ? 2 : R == 2 ? 3 : R == 4 ? 4 : 5; /* a row's bytes */
  static constexpr uint32_t kMask = ((1u << GLYD_KV_CODE_BITS) - 1) << kShift;
  static_assert(4 * R == 1 << kShift, "1, 2, 4 or 8 copies");
  const uint8_t *table;
  uint32_t copy, limit, list; /* list: from the place in the table to that in the list */
  __device__ __forceinline__ uint32_t at(uint32_t code_at) const {
    uint32_t place = and_or(code_at, kMask, copy);
#ifdef GLYD_EMULATION
    if (place >= limit) place += list;
#else /* two instructions: the compiler would take three */
    asm("{.reg .pred p; setp.ge.u32 p, %0, %1; @p add.u32 %0, %0, %2;}" : "+r"(place) : "r"(limit), "r"(list));
#endif
    return *(const uint32_t *)(table + place);
  }
};

/* A warp's list: quads of n words, every `row`-th word from one on. */
__device__ __forceinline__ void kv_fill_list(uint32_t *list, int row, const uint16_t *words, uint32_t n) {
#pragma unroll 1
  for (uint32_t i = threadIdx.x % 32; i < n; i += 32) {
    uint32_t d = words[i];
    d = (d | d << 8) & 0x00FF00FFu;
    d = (d | d << 4) & 0x0F0F0F0Fu;
    uint32_t e = (kBias + GLYD_KV_ABOVE) * 0x01010101u - d;
    if (((d + 0x02020202u) & 0x10101010u) != 0) { /* a zero, or a distance that has two words */
      const uint32_t far = i + 1 < n ? words[i + 1] : 0;
#pragma unroll 1
      for (int k = 0; k < 4; k++) {
        const uint32_t nibble = d >> (8 * k) & 15, x = far >> (4 * k) & 15;
        uint32_t to = e >> (8 * k) & 0xFF;
        if (nibble == GLYD_KV_SPELLED_ZERO) to = 0;
        if (nibble == GLYD_KV_SPELLED_FAR) to = kBias + GLYD_KV_ABOVE + (x < GLYD_KV_FAR_ABOVE ? 0u - GLYD_KV_FAR : 16u) - x;
        e = (e & ~(0xFFu << (8 * k))) | to << (8 * k);
      }
    }
    list[i * row] = kv_rotated(e);
  }
}

/* Which two half pieces a lane has as operand A, in the order of its registers: of keys a0 a1 and a2 a3 are channels of
 * pieces 2 q and 2 q + 1 beside each other; of values transposed the two halves of piece 4 g + q. */
template <bool Values> __device__ __forceinline__ uint32_t kv_piece(uint32_t lane, uint32_t s) {
  return Values ? lane : lane % 4 * 8 + 4 * s + lane / 8;
}
template <bool Values> __device__ __forceinline__ uint32_t kv_half(uint32_t lane, uint32_t s) {
  return Values ? s : lane / 4 % 2;
}

/* Codes of a lane's half pieces in all blocks of a slab. */
template <int D> struct KvCodes {
  static constexpr uint32_t kWords = GLYD_KV_WORDS(D), kRestBits = GLYD_KV_REST_BITS(D), kRest = GLYD_KV_REST(D);
  uint32_t words[2][kWords + 1];
  template <bool Values> static __device__ __forceinline__ const uint8_t *half_at(const uint8_t *slab, uint32_t s) {
    const uint32_t half = kv_half<Values>(threadIdx.x % 32, s), place = GLYD_KV_PLACE(kv_piece<Values>(threadIdx.x % 32, s), half);
    return slab + GLYD_KV_CODES_AT(D) + half * kWords * 128 + place * 4;
  }
  template <bool Values> __device__ __forceinline__ void load_rest(const uint8_t *slab, uint32_t s) {
      const uint32_t half = kv_half<Values>(threadIdx.x % 32, s);
      const uint8_t *rest = slab + GLYD_KV_CODES_AT(D) + kWords * 256 + kRest * kv_piece<Values>(threadIdx.x % 32, s);
      static_assert(kRestBits == 0 || kRestBits == 4 || kRestBits == 16 || kRestBits == 24, "of the head sizes that there are");
      words[s][kWords] = 0;
      if (kRestBits == 4) words[s][kWords] = (uint32_t)rest[0] >> (4 * half) & 15;
      if (kRestBits == 16) words[s][kWords] = *(const uint16_t *)(rest + 2 * half);
      if (kRestBits == 24) words[s][kWords] = rest[3 * half] | rest[3 * half + 1] << 8 | rest[3 * half + 2] << 16;
  }
  template <bool Values> __device__ __forceinline__ void load(const uint8_t *slab) {
#pragma unroll
    for (uint32_t s = 0; s < 2; s++) {
      const uint8_t *at = half_at<Values>(slab, s);
#pragma unroll
      for (uint32_t i = 0; i < kWords; i++) words[s][i] = *(const uint32_t *)(at + i * 128);
      load_rest<Values>(slab, s);
    }
  }
  /* The same of one quad, from where it lies. */
  template <bool Values, uint32_t kShift> static __device__ __forceinline__ uint32_t fetch(const uint8_t *slab, uint32_t s, uint32_t i) {
    KvCodes all; /* what is not used is not loaded */
    all.template load_rest<Values>(slab, s);
    const uint8_t *at = all.template half_at<Values>(slab, s);
    const uint32_t bit = GLYD_KV_CODE_BITS * i, word = bit / 32;
    const uint32_t x = word < kWords ? *(const uint32_t *)(at + word * 128) : all.words[s][kWords];
    const uint32_t y = word + 1 < kWords ? *(const uint32_t *)(at + (word + 1) * 128) : all.words[s][kWords];
    return __funnelshift_r(x, y, bit % 32) << kShift;
  }
  /* The code of a quad where a row's number stands: i = 2 block + step. */
  template <uint32_t kShift> __device__ __forceinline__ uint32_t at(uint32_t s, uint32_t i) const {
    const uint32_t bit = GLYD_KV_CODE_BITS * i, word = bit / 32, shift = bit % 32;
    const uint32_t x = words[s][word];
    if (shift + GLYD_KV_CODE_BITS > 32) return __funnelshift_r(x, words[s][word + (word < kWords)], shift - kShift);
    return shift < kShift ? x << ((kShift - shift) & 31) : x >> ((shift - kShift) & 31);
  }
};

__device__ __forceinline__ uint32_t kv_pick(uint32_t a, uint32_t b, uint32_t mask) { /* (a & mask) | (b & ~mask) */
#ifdef GLYD_EMULATION
  return pick(a, b, mask);
#else
  uint32_t r;
  asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(r) : "r"(a), "r"(b), "r"(mask));
  return r;
#endif
}

/* Powers of two of a block's bases, for the first and the second register of half pieces of keys, or of channels g and
 * g + 8 of values. */
template <bool Values> __device__ __forceinline__ void kv_factors(uint32_t (&f)[2], const uint8_t *bases) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t b = Values ? *(const uint16_t *)(bases + lane / 4 * 2) : *(const uint32_t *)(bases + lane % 4 * 4);
  f[0] = prmt(b, 0, Values ? 0x4040 : 0x4140) << 7;
  f[1] = prmt(b, 0, Values ? 0x4141 : 0x4342) << 7;
}

/* A block of a slab as operands A of its two steps; code_at(s, step): codes where a row's number stands. */
template <int D, int R, bool Values, class CodeAt>
__device__ __forceinline__ void kv_block(uint32_t (&a)[kKvSteps][4], const uint8_t *slab, uint32_t block,
                                         const KvLook<R> &look, const uint8_t *bases, CodeAt code_at) {
  const uint32_t lane = threadIdx.x % 32;
  uint32_t f[2];
  kv_factors<Values>(f, bases + 16 * block);
#pragma unroll
  for (uint32_t s = 0; s < 2; s++) {
    const uint32_t half = kv_half<Values>(lane, s), place = GLYD_KV_PLACE(kv_piece<Values>(lane, s), half);
    const uint2 kept = *(const uint2 *)(slab + GLYD_KV_BLOCK * block + 256 * half + 8 * place);
#pragma unroll
    for (uint32_t step = 0; step < 2; step++) {
      const uint32_t k = step ? kept.y : kept.x;
      const uint32_t e = look.at(code_at(s, step));
      const uint32_t low = kv_pick(k, e, 0x7F7F7F7Fu), high = kv_pick(e, k, 0x7F7F7F7Fu);
      a[step][2 * s] = kv_times(prmt(low, high, Values ? 0x6240 : 0x5140), f[Values ? 0 : s]);
      a[step][2 * s + 1] = kv_times(prmt(low, high, Values ? 0x7351 : 0x7362), f[Values ? 1 : s]);
    }
  }
}

/* Where lists and exceptions of a page are, from its header. */
struct KvExtras {
  uint32_t n_exceptions, places; /* how many, and where in the page */
  uint32_t most;                 /* words of lists that there is room for */
};
template <int D> __device__ __forceinline__ uint32_t kv_list_end(const uint8_t *header, uint32_t most, uint32_t list) {
  const uint32_t end = *(const uint16_t *)(header + GLYD_KV_AT_ENDS + 2 * list);
  return end < most ? end : most;
}
template <int D> __device__ __forceinline__ uint32_t kv_most_words(const uint8_t *header) {
  const uint32_t size = *(const uint32_t *)(header + GLYD_KV_AT_SIZE);
  return size > GLYD_KV_LISTS_AT(D) ? (size - GLYD_KV_LISTS_AT(D)) / 2 : 0;
}
template <int D> __device__ __forceinline__ KvExtras kv_extras(const uint8_t *header) {
  KvExtras x;
  x.most = kv_most_words<D>(header);
  const uint32_t end = kv_list_end<D>(header, x.most, GLYD_KV_SLABS * GLYD_KV_GROUPS(D) - 1);
  const uint32_t room = (x.most - end) / 2, said = *(const uint16_t *)(header + GLYD_KV_AT_EXCEPTIONS);
  x.n_exceptions = said < room ? said : room;
  x.places = GLYD_KV_LISTS_AT(D) + 2 * end;
  return x;
}
/* Where the list of a slab's group begins; of the group after the last, where the slab's lists end. */
template <int D> __device__ __forceinline__ uint32_t kv_list_begin(const uint8_t *header, uint32_t most, uint32_t slab, uint32_t group) {
  const uint32_t list = slab * GLYD_KV_GROUPS(D) + group;
  return list ? kv_list_end<D>(header, most, list - 1) : 0;
}
__device__ __forceinline__ uint32_t kv_n_codes(const uint8_t *header) {
  const uint32_t n = *(const uint16_t *)(header + GLYD_KV_AT_CODES);
  return n < kKvFewestCodes ? kKvFewestCodes : min(n, (uint32_t)GLYD_KV_QUADS);
}

/* Put a page's exceptions in their places of a block. */
template <bool Values>
__device__ __forceinline__ void kv_put_exceptions(uint32_t (&a)[kKvSteps][4], const uint8_t *page, const KvExtras &x,
                                                  uint32_t slab, uint32_t block) {
  const uint16_t *places = (const uint16_t *)(page + x.places);
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll 1
  for (uint32_t first = 0; first < x.n_exceptions; first += 32) {
    const bool is = first + lane < x.n_exceptions;
    const uint32_t place = is ? places[first + lane] : 0, channel = place / kKvTokens, token = place % kKvTokens;
    const uint32_t value = is ? places[x.n_exceptions + first + lane] : 0;
    uint32_t here = __ballot_sync(~0u, is && channel / 16 == block && token / kKvSlabTokens == slab);
#pragma unroll 1
    for (; here != 0; here &= here - 1) {
      const int from = __popc((here & (0u - here)) - 1);
      const uint32_t c = __shfl_sync(~0u, channel, from) % 16, t = __shfl_sync(~0u, token, from) % kKvSlabTokens;
      const uint32_t v = __shfl_sync(~0u, value, from), piece = c % 8 * 4 + t % 16 / 4, half = t / 2 % 2;
      const uint32_t s = Values ? half : c % 2;
      const uint32_t owner = Values ? piece : (2 * (piece % 4) + half) * 4 + c % 8 / 2;
      const uint32_t number = t / 16 * 4 + 2 * s + (Values ? c / 8 : t % 2), high = Values ? t % 2 : c / 8;
#pragma unroll
      for (uint32_t i = 0; i < 4 * kKvSteps; i++)
        if (lane == owner && i == number) a[i / 4][i % 4] = prmt(a[i / 4][i % 4], v, high ? 0x5410 : 0x3254);
    }
  }
}

#endif
