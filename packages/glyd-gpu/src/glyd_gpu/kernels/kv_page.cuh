/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Pages of keys and values (native/src/kv/spec.md) in shared memory, by all
 * threads of a block. A packed page becomes rows of channels, a plain one rows
 * of tokens; who reads them asks which. Headers are checked when pages enter a
 * cache; whatever else a page says is clamped to the memory that it has.
 * Tests run this code on the CPU as well (tests/emulation).
 */
#ifndef GLYD_GPU_KV_PAGE_CUH
#define GLYD_GPU_KV_PAGE_CUH

#include "glyd/format_kv.h"
#include "tile_decode.cuh"

constexpr int kKvTokens = GLYD_KV_TOKENS;
/* Rows in shared memory start four banks further each, so that neither words of eight rows nor 16 bytes of eight lanes
 * meet in a bank. */
constexpr int kKvChannelStride = kKvTokens * 2 + 16;
__host__ __device__ constexpr int kv_token_stride(int channels) { return channels * 2 + 16; }
/* Bytes of rows, whichever they are, and of room for a packed page's escapes: it is 15/16 of a plain page at most, of
 * which 161 bytes a channel are bases and strips. */
__host__ __device__ constexpr int kv_rows_nbytes(int channels) {
  return channels * kKvChannelStride > kKvTokens * kv_token_stride(channels) ? channels * kKvChannelStride
                                                                             : kKvTokens * kv_token_stride(channels);
}
__host__ __device__ constexpr int kv_escapes_nbytes(int channels) { return 79 * channels + 64; }
static_assert(kv_escapes_nbytes(64) >= (int)(GLYD_KV_PLAIN_SIZE(64) / 16 * 15 - 32 - 161 * 64), "room for escapes");
static_assert(kv_escapes_nbytes(512) >= (int)(GLYD_KV_PLAIN_SIZE(512) / 16 * 15 - 32 - 161 * 512), "room for escapes");

/* A page, or plain rows: where 128 tokens, or fewer newest ones, come from. */
struct KvSource {
  const uint8_t *page; /* NULL: rows */
  const uint16_t *rows; /* [n_tokens, channels] bf16 */
  int n_tokens;
};

struct KvShared {
  uint8_t *rows;    /* [kv_rows_nbytes] */
  uint8_t *escapes; /* [kv_escapes_nbytes + kEscapeRoom] */
};

__device__ __forceinline__ bool kv_is_packed(const KvSource &s) {
  return s.page != nullptr && s.page[GLYD_KV_AT_FORM] == GLYD_KV_TIERED;
}
__device__ __forceinline__ uint32_t kv_escapes_end(const uint8_t *page, int group) {
  return *(const uint16_t *)(page + GLYD_KV_AT_ESCAPES + 2 * group) * (uint32_t)GLYD_WEIGHTS_ESCAPE_UNIT;
}

/* Begin to copy what needs no decoding: a packed page's escapes, or a plain page. cp_async_wait and a barrier follow. */
template <int D> __device__ __forceinline__ void kv_fetch(const KvShared &to, const KvSource &s) {
  if (kv_is_packed(s)) {
    const uint32_t all = kv_escapes_end(s.page, (D + GLYD_KV_GROUP - 1) / GLYD_KV_GROUP - 1);
    const uint32_t room = kv_escapes_nbytes(D) / 16 * 16, n = all < room ? all : room;
    for (uint32_t i = threadIdx.x * 16; i < n; i += blockDim.x * 16)
      copy_async16(to.escapes + i, s.page + GLYD_KV_ESCAPES_AT(D) + i);
  } else {
    const uint8_t *from = s.page ? s.page + GLYD_KV_HEADER : (const uint8_t *)s.rows;
    constexpr uint32_t pieces = D / 8; /* of 16 bytes in a token */
    for (uint32_t i = threadIdx.x; i < kKvTokens * pieces; i += blockDim.x) {
      const uint32_t token = i / pieces;
      uint8_t *at = to.rows + token * kv_token_stride(D) + i % pieces * 16;
      if ((int)token < s.n_tokens)
        copy_async16(at, from + i * 16);
      else
        *(uint4 *)at = make_uint4(0, 0, 0, 0); /* times a probability of 0: no NaN may stand there */
    }
  }
  cp_async_commit();
}

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

/* A thread's part of a strip. */
struct KvStrip {
  uint4 sign_mantissa[4], codes;
  uint32_t factors[2]; /* of channels g and g + 8, twice in a word */
};
template <int D> __device__ __forceinline__ void kv_load_strip(KvStrip &w, const uint8_t *page, int strip) {
  const uint4 *from = (const uint4 *)(page + GLYD_KV_STRIPS_AT(D) + strip * GLYD_KV_STRIP) + threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < 4; k++) w.sign_mantissa[k] = __ldcs(from + 32 * k);
  w.codes = __ldcs(from + 128);
  const uint8_t *bases = page + GLYD_KV_BASES_AT + strip * 16 + threadIdx.x % 32 / 4;
  w.factors[0] = (bases[0] * 0x80u) * 0x10001u; /* bf16 with that exponent; base 0: 0 */
  w.factors[1] = (bases[8] * 0x80u) * 0x10001u;
}

/* Decode a strip to its rows of channels. Escapes of the page are in shared memory. */
template <int D>
__device__ __forceinline__ void kv_decode_strip(const KvShared &to, const uint8_t *page, int strip, const KvStrip &w,
                                                const TieredTables &tables) {
  constexpr uint32_t room = kv_escapes_nbytes(D) / 16 * 16;
  const int group = strip / 4;
  uint32_t first = group ? kv_escapes_end(page, group - 1) : 0, end = kv_escapes_end(page, group);
  first = first < room - 16 ? first : room - 16;
  end = end < first + 16 ? first + 16 : end < room ? end : room;
  const SharedEscapes e = {to.escapes + first, end - first};
  const uint32_t lane = threadIdx.x % 32;
  uint8_t *at = to.rows + (strip * 16 + lane / 4) * kKvChannelStride + lane % 4 * 4;
  TieredThread t = tiered_thread(e, w.codes, strip % 4);
#pragma unroll
  for (int part = 0; part < 4; part++) {
    uint32_t a[8];
    decode_tiered(e, tables, t, part, w.sign_mantissa[part], a);
#pragma unroll
    for (int i = 0; i < 8; i++)
      *(uint32_t *)(at + (i & 1) * 8 * kKvChannelStride + (4 * part + i / 2) * 16) = kv_times(a[i], w.factors[i & 1]);
  }
}

/* Put a packed page's exceptions over what their places hold; a barrier before and one after. */
template <int D> __device__ __forceinline__ void kv_patch(const KvShared &to, const uint8_t *page) {
  uint32_t n = *(const uint32_t *)(page + GLYD_KV_AT_EXCEPTIONS);
  const uint32_t size = *(const uint32_t *)(page + GLYD_KV_AT_SIZE);
  const uint32_t at = GLYD_KV_ESCAPES_AT(D) + kv_escapes_end(page, (D + GLYD_KV_GROUP - 1) / GLYD_KV_GROUP - 1);
  const uint32_t most = size > at ? (size - at) / 4 : 0;
  n = n < most ? n : most;
  const uint16_t *places = (const uint16_t *)(page + at);
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
    const uint32_t place = places[i], channel = place / kKvTokens;
    if (channel < D) *(uint16_t *)(to.rows + channel * kKvChannelStride + place % kKvTokens * 2) = places[n + i];
  }
}

/* Ask for a page that comes next: its strips, which every page is longer than. */
template <int D> __device__ __forceinline__ void kv_prefetch(const uint8_t *page) {
  for (uint32_t i = threadIdx.x * 128; i < GLYD_KV_ESCAPES_AT(D); i += blockDim.x * 128) {
#ifndef GLYD_EMULATION
    asm volatile("prefetch.global.L2 [%0];" ::"l"(page + i));
#else
    (void)*(const volatile uint8_t *)(page + i);
#endif
  }
}

/* A page or two into shared memory; all threads of a block of whole warps. Ends with a barrier. */
template <int D, int N>
__device__ __forceinline__ void kv_stage(const KvShared (&to)[N], const KvSource (&s)[N], const TieredTables &tables) {
  constexpr int strips = D / GLYD_KV_CHANNELS_STEP;
  static_assert(N == 1 || N == 2, "the last one is chosen by a condition, not by an index");
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const bool packed[2] = {kv_is_packed(s[0]), kv_is_packed(s[N - 1])};
  auto is_mine = [&](int k) { return k < N * strips && (k < strips ? packed[0] : packed[1]); };
  auto page = [&](int k) { return k < strips ? s[0].page : s[N - 1].page; };
#pragma unroll
  for (int i = 0; i < N; i++) kv_fetch<D>(to[i], s[i]);
  KvStrip w;
  if (is_mine(warp)) kv_load_strip<D>(w, page(warp), warp % strips); /* on its way while escapes are */
  cp_async_wait<0>();
  __syncthreads();
  if (!packed[0] && !packed[1]) return;
  for (int k = warp; k < N * strips; k += warps) {
    if (!is_mine(k)) continue;
    if (k != warp) kv_load_strip<D>(w, page(k), k % strips);
    const KvShared at = {k < strips ? to[0].rows : to[N - 1].rows, k < strips ? to[0].escapes : to[N - 1].escapes};
    kv_decode_strip<D>(at, page(k), k % strips, w, tables);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; i++)
    if (packed[i]) kv_patch<D>(to[i], s[i].page);
  __syncthreads();
}

#endif
