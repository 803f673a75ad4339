/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Pages packed and unpacked, a block a page. Packing runs twice over its
 * values: for the sizes of the pages, then, when the caller has placed them,
 * for their bytes, which are the codec's.
 *
 * Never run on a GPU yet: tests run this code on the CPU (tests/emulation).
 */
#ifndef GLYD_GPU_KV_PACK_CUH
#define GLYD_GPU_KV_PACK_CUH

#include "kv_page.cuh"

constexpr int kKvPackThreads = 256;

struct KvPackArgs {
  const uint16_t *in;    /* [pages, 128, D] bf16 */
  int64_t *sizes;        /* [pages]; without out: written */
  uint8_t *out;          /* NULL: sizes only */
  const int64_t *places; /* [pages] of each page in out */
};

/* Shared memory of a block: rows of channels, a histogram a warp, bases, counts. */
struct KvPackShared {
  uint32_t counts[kKvPackThreads / 32][256];
  uint8_t bases[GLYD_KV_CHANNELS_MAX];
  uint32_t exceptions[GLYD_KV_CHANNELS_MAX]; /* of each channel; then those before it */
  uint32_t digits[GLYD_KV_CHANNELS_MAX / 16], codes3[GLYD_KV_CHANNELS_MAX / 16]; /* of each strip */
  uint32_t ends[GLYD_KV_GROUPS_MAX];                                            /* of escapes, in bytes */
  uint32_t n_exceptions;
};
template <int D> __host__ __device__ constexpr int kv_pack_shared() {
  return D * kKvChannelStride + (int)sizeof(KvPackShared);
}

/* A value's symbol in the order of the codec: code | digit << 2 | tier 3 code << 4. */
__device__ __forceinline__ uint32_t kv_symbol(uint32_t value, uint32_t base, bool &exception) {
  const uint32_t place = (value >> 7 & 0xFF) - base + GLYD_WEIGHTS_BELOW;
  /* exponent - base: -9 … 4 */
  const uint64_t low = 0x0B0F2F3F4F5F6F7Full, high = 0x00001F0702010003ull;
  exception = place >= GLYD_WEIGHTS_SPAN && (value & 0x7FFF) != 0;
  if (place >= GLYD_WEIGHTS_SPAN) return 0x8F;
  return (uint32_t)(place < 8 ? low >> (8 * place) : high >> (8 * (place - 8))) & 0xFF;
}

/* Base of a channel by a warp: the smallest with the most values at 0, 1, 2 above it; 0 for zeros only. */
__device__ __forceinline__ uint32_t kv_base(const uint16_t *row, uint32_t *counts) {
  const uint32_t lane = threadIdx.x % 32;
  for (uint32_t i = lane; i < 256; i += 32) counts[i] = 0;
  __syncwarp();
  uint32_t any = 0;
  for (uint32_t t = lane; t < kKvTokens; t += 32) {
    atomicAdd(&counts[row[t] >> 7 & 0xFF], 1u);
    any |= row[t] & 0x7FFF;
  }
  __syncwarp();
  uint32_t best = 0;
  for (uint32_t base = GLYD_WEIGHTS_TIERED_BASE_MIN + lane; base <= GLYD_WEIGHTS_TIERED_BASE_MAX; base += 32) {
    const uint32_t key = (counts[base] + counts[base + 1] + counts[base + 2]) << 8 | (255 - base);
    best = best > key ? best : key;
  }
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    const uint32_t other = __shfl_xor_sync(~0u, best, d);
    best = best > other ? best : other;
  }
  __syncwarp();
  return __any_sync(~0u, any != 0) ? 255 - (best & 0xFF) : 0;
}

/* Row and token of a thread's value j in a strip. */
__device__ __forceinline__ uint32_t kv_row_of(uint32_t lane, uint32_t j) { return (j >> 1 & 1) * 8 + lane / 4; }
__device__ __forceinline__ uint32_t kv_token_of(uint32_t lane, uint32_t j) {
  return j / 8 * 16 + (j >> 2 & 1) * 8 + lane % 4 * 2 + (j & 1);
}

__device__ __forceinline__ uint32_t kv_escape_nbytes(uint32_t n2, uint32_t n3) {
  const uint32_t nbytes = GLYD_WEIGHTS_ESCAPE_HEADER + ((n2 + 1) / 2 + n3 + 1) / 2;
  return (nbytes + GLYD_WEIGHTS_ESCAPE_UNIT - 1) / GLYD_WEIGHTS_ESCAPE_UNIT * GLYD_WEIGHTS_ESCAPE_UNIT;
}

template <int D> __global__ void __launch_bounds__(kKvPackThreads) kv_pack_kernel(const KvPackArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(128) uint8_t shared[];
#endif
  KvPackShared &s = *(KvPackShared *)shared;
  uint8_t *rows = shared + sizeof(KvPackShared);
  constexpr int strips = D / 16, groups = (D + GLYD_KV_GROUP - 1) / GLYD_KV_GROUP;
  constexpr int warps = kKvPackThreads / 32;
  const int64_t page = blockIdx.x;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint16_t *in = p.in + page * kKvTokens * D;
  for (uint32_t i = threadIdx.x; i < kKvTokens * D; i += blockDim.x)
    *(uint16_t *)(rows + i % D * kKvChannelStride + i / D * 2) = in[i];
  __syncthreads();
  for (int c = warp; c < D; c += warps) {
    const uint16_t *row = (const uint16_t *)(rows + c * kKvChannelStride);
    const uint32_t base = kv_base(row, s.counts[warp]);
    uint32_t n = 0;
    for (uint32_t t = lane; t < kKvTokens; t += 32) {
      bool exception;
      kv_symbol(row[t], base, exception);
      n += exception && base != 0;
    }
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) n += __shfl_xor_sync(~0u, n, d);
    if (lane == 0) s.bases[c] = (uint8_t)base, s.exceptions[c] = n;
  }
  __syncthreads();
  for (int k = warp; k < strips; k += warps) { /* escapes of a strip */
    uint32_t n2 = 0, n3 = 0;
    for (uint32_t j = 0; j < 64; j++) {
      const uint32_t c = k * 16 + kv_row_of(lane, j);
      bool exception;
      const uint32_t value = *(const uint16_t *)(rows + c * kKvChannelStride + kv_token_of(lane, j) * 2);
      const uint32_t symbol = s.bases[c] ? kv_symbol(value, s.bases[c], exception) : 0;
      n2 += (symbol & 3) == 3;
      n3 += (symbol & 15) == 15;
    }
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) n2 += __shfl_xor_sync(~0u, n2, d), n3 += __shfl_xor_sync(~0u, n3, d);
    if (lane == 0) s.digits[k] = n2, s.codes3[k] = n3;
  }
  if (warp == warps - 1) { /* exceptions before each channel */
    uint32_t before = 0;
    for (int c = 0; c < D; c += 32) {
      const uint32_t n = c + (int)lane < D ? s.exceptions[c + lane] : 0, sum = before_in_warp(n);
      if (c + (int)lane < D) s.exceptions[c + lane] = before + sum;
      before += __shfl_sync(~0u, sum + n, 31);
    }
    if (lane == 0) s.n_exceptions = before;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t end = 0;
    for (int g = 0; g < GLYD_KV_GROUPS_MAX; g++) {
      uint32_t n2 = 0, n3 = 0;
      for (int k = 4 * g; k < min(4 * g + 4, strips); k++) n2 += s.digits[k], n3 += s.codes3[k];
      end += g < groups ? kv_escape_nbytes(n2, n3) : 0;
      s.ends[g] = end;
    }
  }
  __syncthreads();
  const uint32_t plain = GLYD_KV_PLAIN_SIZE(D), escapes = s.ends[groups - 1], n_exceptions = s.n_exceptions;
  const uint32_t used = GLYD_KV_ESCAPES_AT(D) + escapes + 4 * n_exceptions;
  const uint32_t packed = (used + GLYD_KV_ALIGN - 1) / GLYD_KV_ALIGN * GLYD_KV_ALIGN;
  const bool tiered = packed <= plain / 16 * 15;
  const uint32_t size = tiered ? packed : plain;
  if (p.out == nullptr) {
    if (threadIdx.x == 0) p.sizes[page] = size;
    return;
  }
  uint8_t *out = p.out + p.places[page];
  if (threadIdx.x == 0) {
    uint32_t *header = (uint32_t *)out;
    header[0] = GLYD_KV_MAGIC | GLYD_KV_VERSION << 16 | (tiered ? GLYD_KV_TIERED : GLYD_KV_PLAIN) << 24;
    header[1] = (uint32_t)D | (uint32_t)kKvTokens << 16;
    header[2] = size;
    header[3] = tiered ? n_exceptions : 0;
    for (int g = 0; g < GLYD_KV_GROUPS_MAX; g += 2) {
      const uint32_t a = g < groups && tiered ? s.ends[g] / 16 : 0, b = g + 1 < groups && tiered ? s.ends[g + 1] / 16 : 0;
      header[4 + g / 2] = a | b << 16;
    }
  }
  if (!tiered) {
    for (uint32_t i = threadIdx.x; i < kKvTokens * D; i += blockDim.x) *(uint16_t *)(out + GLYD_KV_HEADER + 2 * i) = in[i];
    for (uint32_t i = GLYD_KV_HEADER + 2 * kKvTokens * D + threadIdx.x; i < size; i += blockDim.x) out[i] = 0;
    return;
  }
  for (uint32_t c = threadIdx.x; c < D; c += blockDim.x) out[GLYD_KV_BASES_AT + c] = s.bases[c];
  uint32_t *words = (uint32_t *)(out + GLYD_KV_ESCAPES_AT(D)); /* escapes are or'ed into zeros */
  for (uint32_t i = threadIdx.x; i < escapes / 4; i += blockDim.x) words[i] = 0;
  for (uint32_t i = used + threadIdx.x; i < size; i += blockDim.x) out[i] = 0;
  __syncthreads();
  for (int k = warp; k < strips; k += warps) {
    const int g = k / 4;
    uint32_t *group = words + (g ? s.ends[g - 1] : 0) / 4;
    uint32_t first2 = 0, first3 = 0, all2 = 0;
    for (int i = 4 * g; i < min(4 * g + 4, strips); i++) {
      first2 += i < k ? s.digits[i] : 0;
      first3 += i < k ? s.codes3[i] : 0;
      all2 += s.digits[i];
    }
    const uint32_t start3 = (all2 + 1) / 2;
    if (lane == 0) {
      atomicOr(&group[k % 4 / 2], first2 << (k % 2 * 16));
      atomicOr(&group[2 + k % 4 / 2], (start3 + first3) << (k % 2 * 16));
      if (k == strips - 1) /* warps that the last group does not have */
        for (int w = k % 4 + 1; w < 4; w++) {
          atomicOr(&group[w / 2], (first2 + s.digits[k]) << (w % 2 * 16));
          atomicOr(&group[2 + w / 2], (start3 + first3 + s.codes3[k]) << (w % 2 * 16));
        }
    }
    uint8_t *strip = out + GLYD_KV_STRIPS_AT(D) + k * GLYD_KV_STRIP + lane * 16;
    uint32_t n2 = 0, n3 = 0;
    for (int pass = 0; pass < 2; pass++) {
      const uint32_t before2 = before_in_warp(n2), before3 = before_in_warp(n3); /* of the first pass's counts */
      uint32_t at2 = first2 + before2, at3 = start3 + first3 + before3;
      for (uint32_t j = 0; j < 64; j += 16) {
        uint32_t codes = 0;
        uint32_t sm[4] = {0, 0, 0, 0};
        for (uint32_t i = 0; i < 16; i++) {
          const uint32_t c = k * 16 + kv_row_of(lane, j + i);
          const uint32_t value = *(const uint16_t *)(rows + c * kKvChannelStride + kv_token_of(lane, j + i) * 2);
          bool exception = false;
          const uint32_t symbol = s.bases[c] ? kv_symbol(value, s.bases[c], exception) : 0;
          const uint32_t kept = exception ? 0 : (value >> 8 & 0x80) | (value & 0x7F);
          codes |= (symbol & 3) << (2 * i);
          sm[i / 4] |= kept << (8 * (i % 4));
          const bool two = (symbol & 3) == 3, three = (symbol & 15) == 15;
          if (pass == 0) {
            n2 += two;
            n3 += three;
            continue;
          }
          if (two) {
            atomicOr(&group[4 + at2 / 16], (symbol >> 2 & 3) << (2 * (at2 % 16)));
            at2++;
          }
          if (three) {
            atomicOr(&group[4 + at3 / 8], (symbol >> 4) << (4 * (at3 % 8)));
            at3++;
          }
        }
        if (pass == 0) continue;
        *(uint4 *)(strip + j / 16 * 512) = make_uint4(sm[0], sm[1], sm[2], sm[3]);
        *(uint32_t *)(strip + 2048 + j / 16 * 4) = codes;
      }
    }
  }
  uint16_t *places = (uint16_t *)(out + GLYD_KV_ESCAPES_AT(D) + escapes);
  if (n_exceptions == 0) return;
  for (int c = warp; c < D; c += warps) {
    const uint16_t *row = (const uint16_t *)(rows + c * kKvChannelStride);
    uint32_t at = s.exceptions[c];
    for (uint32_t t = lane; t < kKvTokens; t += 32) {
      bool exception = false;
      if (s.bases[c]) kv_symbol(row[t], s.bases[c], exception);
      const uint32_t n = exception, sum = before_in_warp(n);
      if (exception) {
        places[at + sum] = (uint16_t)(c * kKvTokens + t);
        places[n_exceptions + at + sum] = row[t];
      }
      at += __shfl_sync(~0u, sum + n, 31);
    }
  }
}

struct KvUnpackArgs {
  uint16_t *out;         /* [pages, 128, D] bf16 */
  const uint64_t *pages; /* [pages] addresses */
};

template <int D> __host__ __device__ constexpr int kv_unpack_shared() {
  return kv_rows_nbytes(D) + kv_escapes_nbytes(D) + (int)kEscapeRoom + (int)sizeof(TieredTables);
}

template <int D> __global__ void __launch_bounds__(kKvPackThreads) kv_unpack_kernel(const KvUnpackArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(128) uint8_t shared[];
#endif
  TieredTables &tables = *(TieredTables *)shared;
  fill_tables(&tables);
  KvShared at[1];
  at[0].rows = shared + sizeof(TieredTables);
  at[0].escapes = at[0].rows + kv_rows_nbytes(D);
  const KvSource s[1] = {{(const uint8_t *)p.pages[blockIdx.x], nullptr, kKvTokens}};
  kv_stage<D, 1>(at, s, tables);
  const bool packed = kv_is_packed(s[0]);
  uint32_t *out = (uint32_t *)(p.out + (int64_t)blockIdx.x * kKvTokens * D);
  for (uint32_t i = threadIdx.x; i < kKvTokens * D / 2; i += blockDim.x) {
    const uint32_t token = i / (D / 2), c = i % (D / 2) * 2;
    if (packed)
      out[i] = *(const uint16_t *)(at[0].rows + c * kKvChannelStride + token * 2) |
               (uint32_t)*(const uint16_t *)(at[0].rows + (c + 1) * kKvChannelStride + token * 2) << 16;
    else
      out[i] = *(const uint32_t *)(at[0].rows + token * kv_token_stride(D) + c * 2);
  }
}

#endif
