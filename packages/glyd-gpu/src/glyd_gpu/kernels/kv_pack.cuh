/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Pages packed and unpacked, a block a page. Pages are packed to places of the
 * largest size, as their sizes are not known before; then, when the caller has
 * placed them, they are copied. Their bytes are the codec's.
 */
#ifndef GLYD_GPU_KV_PACK_CUH
#define GLYD_GPU_KV_PACK_CUH

#include "kv_page.cuh"

constexpr int kKvPackThreads = 256, kKvPackWarps = kKvPackThreads / 32;

struct KvPackArgs {
  const uint16_t *in; /* [pages, 128, D] bf16 */
  int64_t *sizes;     /* [pages] */
  uint8_t *out;       /* [pages, GLYD_KV_PLAIN_SIZE(D)] */
};

/* Shared memory of a block: rows of channels, escapes, and this. */
struct KvPackShared {
  uint32_t counts[kKvPackWarps][64];
  uint8_t bases[GLYD_KV_CHANNELS_MAX];
  uint32_t exceptions[GLYD_KV_CHANNELS_MAX]; /* of each channel; then those before it */
  uint32_t digits[GLYD_KV_CHANNELS_MAX / 16], codes3[GLYD_KV_CHANNELS_MAX / 16]; /* of each strip */
  uint32_t ends[GLYD_KV_GROUPS_MAX];                                            /* of escapes, in bytes */
  uint32_t n_exceptions;
};
__host__ __device__ constexpr int kv_pack_escapes(int channels) { return (kv_escapes_nbytes(channels) + 15) / 16 * 16; }
template <int D> __host__ __device__ constexpr int kv_pack_shared() {
  return D * kKvChannelStride + kv_pack_escapes(D) + (int)sizeof(KvPackShared);
}

__device__ __forceinline__ uint32_t kv_exponent(uint32_t value) { return value >> 7 & 0xFF; }
/* Where an exponent lies among those that a base codes: 0 … 13, else there is no code. */
__device__ __forceinline__ uint32_t kv_place(uint32_t value, uint32_t base) {
  return kv_exponent(value) - base + GLYD_WEIGHTS_BELOW;
}
__device__ __forceinline__ bool kv_is_exception(uint32_t value, uint32_t base) {
  return base != 0 && kv_place(value, base) >= GLYD_WEIGHTS_SPAN && (value & 0x7FFF) != 0;
}
/* By place, two bits each: codes of tier 1 and digits of tier 2; and what has no code of its own is 3. */
constexpr uint32_t kv_code_of(int place, bool second) {
  const int e = place - GLYD_WEIGHTS_BELOW;
  if (!second) return e >= 0 && e < 3 ? (uint32_t)e : 3;
  for (int i = 0; i < 3; i++)
    if (kTier2[i] == e) return (uint32_t)i;
  return 3;
}
constexpr uint32_t kv_codes_of(bool second) {
  uint32_t all = 0;
  for (int place = 0; place < 16; place++) all |= kv_code_of(place, second) << (2 * place);
  return all;
}
/* Four bits each: codes of tier 3. */
constexpr uint64_t kv_codes3_of() {
  uint64_t all = 0;
  for (int place = 0; place < 16; place++) {
    uint64_t code = GLYD_WEIGHTS_TIER3_ZERO;
    for (int i = 0; i < 8; i++)
      if (kTier3[i] == place - GLYD_WEIGHTS_BELOW) code = (uint64_t)i;
    all |= code << (4 * place);
  }
  return all;
}
constexpr uint32_t kKvCodes = kv_codes_of(false), kKvDigitsOf = kv_codes_of(true);
constexpr uint64_t kKvCodes3Of = kv_codes3_of();
/* Places of tiers 1 and 2 are neighbours. */
static_assert(kTier2[0] == -1 && kTier2[1] == 3 && kTier2[2] == -2, "places 7 to 12");
__device__ __forceinline__ bool kv_has_digit(uint32_t place) { return place - 9 > 2; }
__device__ __forceinline__ bool kv_has_code3(uint32_t place) { return place - 7 > 5; }

__device__ __forceinline__ uint32_t kv_least(uint32_t v) {
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) v = min(v, __shfl_xor_sync(~0u, v, d));
  return v;
}
__device__ __forceinline__ uint32_t kv_sum(uint32_t v) {
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) v += __shfl_xor_sync(~0u, v, d);
  return v;
}

/* Base of a channel by a warp: the smallest with the most values at 0, 1, 2 above it; 0 for zeros only. A lane has four
 * values of the row. */
__device__ __forceinline__ uint32_t kv_base(const uint32_t (&values)[4], uint32_t *counts) {
  constexpr uint32_t kMin = GLYD_WEIGHTS_TIERED_BASE_MIN, kMax = GLYD_WEIGHTS_TIERED_BASE_MAX;
  const uint32_t lane = threadIdx.x % 32;
  uint32_t low = 255, high = 255, any = 0; /* 255 - the highest */
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const uint32_t e = kv_exponent(values[i]);
    any |= values[i] & 0x7FFF;
    if (e < kMin || e > kMax + 2) continue;
    low = min(low, e);
    high = min(high, 255 - e);
  }
  low = kv_least(low), high = kv_least(high);
  if (!__any_sync(~0u, any != 0)) return 0;
  if (low == 255) return kMin; /* no base codes any of them */
  const uint32_t first = low < kMin + 2 ? kMin : low - 2, last = min(255 - high, kMax);
  uint32_t best = 0; /* 255 - base in the low byte: of equals the smallest */
  for (uint32_t from = first; from <= last; from += 32) {
    counts[lane] = counts[lane + 32] = 0;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t at = kv_exponent(values[i]) - from;
      if (at < 34) atomicAdd(&counts[at], 1u);
    }
    __syncwarp();
    const uint32_t n = counts[lane] + counts[lane + 1] + counts[lane + 2], key = n << 8 | (255 - from - lane);
    if (from + lane <= last && key > best) best = key;
    __syncwarp();
  }
  return 255 - (~kv_least(~best) & 0xFF);
}

__device__ __forceinline__ uint32_t kv_escape_nbytes(uint32_t n2, uint32_t n3) {
  const uint32_t nbytes = GLYD_WEIGHTS_ESCAPE_HEADER + ((n2 + 1) / 2 + n3 + 1) / 2;
  return (nbytes + GLYD_WEIGHTS_ESCAPE_UNIT - 1) / GLYD_WEIGHTS_ESCAPE_UNIT * GLYD_WEIGHTS_ESCAPE_UNIT;
}
/* Four values of a lane in a strip: two tokens of channel g, then of g + 8. Step 2 s + kh has tokens 16 s + 8 kh + 2 q and
 * the next. */
__device__ __forceinline__ void kv_four(uint32_t (&v)[2], const uint8_t *rows, int strip, int step) {
  const uint32_t lane = threadIdx.x % 32;
  const uint8_t *at = rows + (strip * 16 + lane / 4) * kKvChannelStride + step * 16 + lane % 4 * 4;
  v[0] = *(const uint32_t *)at;
  v[1] = *(const uint32_t *)(at + 8 * kKvChannelStride);
}

template <int D> __global__ void __launch_bounds__(kKvPackThreads) kv_pack_kernel(const KvPackArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(128) uint8_t shared[];
#endif
  uint8_t *rows = shared, *staged = rows + D * kKvChannelStride;
  KvPackShared &s = *(KvPackShared *)(staged + kv_pack_escapes(D));
  constexpr int strips = D / 16, groups = (D + GLYD_KV_GROUP - 1) / GLYD_KV_GROUP;
  constexpr int each = (strips + kKvPackWarps - 1) / kKvPackWarps; /* strips of a warp */
  const int64_t page = blockIdx.x;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint16_t *in = p.in + page * kKvTokens * D;
  /* to rows of channels: a lane takes two tokens of eight channels */
  for (int i = warp; i < D / 8 * 2; i += kKvPackWarps) {
    const uint32_t pair = i % 2 * 32 + lane;
    const uint4 x = *(const uint4 *)(in + 2 * pair * D + i / 2 * 8), y = *(const uint4 *)(in + (2 * pair + 1) * D + i / 2 * 8);
    const uint32_t a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
    uint8_t *to = rows + i / 2 * 8 * kKvChannelStride + pair * 4;
#pragma unroll
    for (int j = 0; j < 8; j++)
      *(uint32_t *)(to + j * kKvChannelStride) = prmt(a[j / 2], b[j / 2], j % 2 ? 0x7632 : 0x5410);
  }
  for (uint32_t i = threadIdx.x; i < kv_pack_escapes(D) / 4; i += kKvPackThreads) ((uint32_t *)staged)[i] = 0;
  __syncthreads();
  for (int c = warp; c < D; c += kKvPackWarps) {
    const uint32_t *row = (const uint32_t *)(rows + c * kKvChannelStride) + 2 * lane;
    const uint32_t values[4] = {row[0] & 0xFFFF, row[0] >> 16, row[1] & 0xFFFF, row[1] >> 16};
    const uint32_t base = kv_base(values, s.counts[warp]);
    uint32_t n = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) n += kv_is_exception(values[i], base);
    if (__any_sync(~0u, n != 0)) n = kv_sum(n);
    if (lane == 0) s.bases[c] = (uint8_t)base, s.exceptions[c] = n;
  }
  __syncthreads();
  uint32_t n2[each], n3[each]; /* of the lane */
#pragma unroll
  for (int i = 0; i < each; i++) {
    const int k = warp + i * kKvPackWarps;
    n2[i] = n3[i] = 0;
    if (k >= strips) break;
    const uint32_t base[2] = {s.bases[k * 16 + lane / 4], s.bases[k * 16 + lane / 4 + 8]};
#pragma unroll 4
    for (int step = 0; step < 16; step++) {
      uint32_t v[2];
      kv_four(v, rows, k, step);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const uint32_t place = kv_place(v[j / 2] >> (j % 2 * 16), base[j / 2]);
        n2[i] += kv_has_digit(place);
        n3[i] += kv_has_code3(place);
      }
    }
    const uint32_t all2 = kv_sum(n2[i]), all3 = kv_sum(n3[i]);
    if (lane == 0) s.digits[k] = all2, s.codes3[k] = all3;
  }
  if (warp == kKvPackWarps - 1) { /* exceptions before each channel */
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
    for (int g = 0; g < groups; g++) {
      uint32_t all2 = 0, all3 = 0;
      for (int k = 4 * g; k < min(4 * g + 4, strips); k++) all2 += s.digits[k], all3 += s.codes3[k];
      end += kv_escape_nbytes(all2, all3);
      s.ends[g] = end;
    }
  }
  __syncthreads();
  const uint32_t plain = GLYD_KV_PLAIN_SIZE(D), escapes = s.ends[groups - 1], n_exceptions = s.n_exceptions;
  const uint32_t used = GLYD_KV_ESCAPES_AT(D) + escapes + 4 * n_exceptions;
  const uint32_t packed = (used + GLYD_KV_ALIGN - 1) / GLYD_KV_ALIGN * GLYD_KV_ALIGN;
  const bool tiered = packed <= plain / 16 * 15;
  const uint32_t size = tiered ? packed : plain;
  uint8_t *out = p.out + page * plain;
  if (threadIdx.x == 0) {
    p.sizes[page] = size;
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
    for (uint32_t i = threadIdx.x; i < kKvTokens * D / 8; i += kKvPackThreads)
      ((uint4 *)(out + GLYD_KV_HEADER))[i] = ((const uint4 *)in)[i];
    for (uint32_t i = GLYD_KV_HEADER + 2 * kKvTokens * D + threadIdx.x; i < size; i += kKvPackThreads) out[i] = 0;
    return;
  }
  for (uint32_t c = threadIdx.x; c < D; c += kKvPackThreads) out[GLYD_KV_BASES_AT + c] = s.bases[c];
  for (uint32_t i = used + threadIdx.x; i < size; i += kKvPackThreads) out[i] = 0;
#pragma unroll
  for (int i = 0; i < each; i++) {
    const int k = warp + i * kKvPackWarps, g = k / 4;
    if (k >= strips) break;
    uint32_t *group = (uint32_t *)(staged + (g ? s.ends[g - 1] : 0)); /* escapes are or'ed into zeros */
    uint32_t first2 = 0, first3 = 0, all2 = 0;
    for (int j = 4 * g; j < min(4 * g + 4, strips); j++) {
      first2 += j < k ? s.digits[j] : 0;
      first3 += j < k ? s.codes3[j] : 0;
      all2 += s.digits[j];
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
    const uint32_t base[2] = {s.bases[k * 16 + lane / 4], s.bases[k * 16 + lane / 4 + 8]};
    uint32_t at2 = first2 + before_in_warp(n2[i]), at3 = start3 + first3 + before_in_warp(n3[i]);
    uint32_t codes[4];
#pragma unroll
    for (int part = 0; part < 4; part++) {
      uint32_t kept[4];
      codes[part] = 0;
#pragma unroll
      for (int m = 0; m < 4; m++) {
        uint32_t v[2];
        kv_four(v, rows, k, 4 * part + m);
        kept[m] = (prmt(v[0], v[1], 0x6420) & 0x7F7F7F7Fu) | (prmt(v[0], v[1], 0x7531) & 0x80808080u);
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const uint32_t value = v[j / 2] >> (j % 2 * 16) & 0xFFFF, place = min(kv_place(value, base[j / 2]), 15u);
          codes[part] |= (kKvCodes >> (2 * place) & 3) << (2 * (4 * m + j));
          if (kv_is_exception(value, base[j / 2])) kept[m] &= ~(0xFFu << (8 * j));
          if (kv_has_digit(place)) {
            atomicOr(&group[4 + at2 / 16], (kKvDigitsOf >> (2 * place) & 3) << (2 * (at2 % 16)));
            at2++;
          }
          if (kv_has_code3(place)) {
            atomicOr(&group[4 + at3 / 8], (uint32_t)(kKvCodes3Of >> (4 * place) & 15) << (4 * (at3 % 8)));
            at3++;
          }
        }
      }
      *(uint4 *)(strip + part * 512) = make_uint4(kept[0], kept[1], kept[2], kept[3]);
    }
    *(uint4 *)(strip + 2048) = make_uint4(codes[0], codes[1], codes[2], codes[3]);
  }
  uint16_t *places = (uint16_t *)(out + GLYD_KV_ESCAPES_AT(D) + escapes);
  if (n_exceptions != 0)
    for (int c = warp; c < D; c += kKvPackWarps) {
      const uint16_t *row = (const uint16_t *)(rows + c * kKvChannelStride);
      uint32_t at = s.exceptions[c];
      for (uint32_t t = lane; t < kKvTokens; t += 32) {
        const bool exception = kv_is_exception(row[t], s.bases[c]);
        const uint32_t n = exception, sum = before_in_warp(n);
        if (exception) {
          places[at + sum] = (uint16_t)(c * kKvTokens + t);
          places[n_exceptions + at + sum] = row[t];
        }
        at += __shfl_sync(~0u, sum + n, 31);
      }
    }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < escapes / 16; i += kKvPackThreads)
    ((uint4 *)(out + GLYD_KV_ESCAPES_AT(D)))[i] = ((const uint4 *)staged)[i];
}

struct KvPlaceArgs {
  uint8_t *out;
  const int64_t *places; /* [pages] in out */
  const uint8_t *in;     /* [pages, nbytes], each page as long as it says */
  uint32_t nbytes;
};
__global__ void __launch_bounds__(kKvPackThreads) kv_place_kernel(const KvPlaceArgs p) {
  const uint8_t *from = p.in + (int64_t)blockIdx.x * p.nbytes;
  uint8_t *to = p.out + p.places[blockIdx.x];
  const uint32_t size = *(const uint32_t *)(from + GLYD_KV_AT_SIZE);
  for (uint32_t i = threadIdx.x; i < (size < p.nbytes ? size : p.nbytes) / 16; i += blockDim.x)
    ((uint4 *)to)[i] = ((const uint4 *)from)[i];
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
