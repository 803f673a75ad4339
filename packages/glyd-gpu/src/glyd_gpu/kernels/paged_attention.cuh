/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Attention of one new token a sequence over a paged cache of plain bf16 keys
 * and values, as continuous batching keeps it: [slots, key heads, channels],
 * and a table of pages for every sequence.
 *
 * A block takes a range of a sequence's tokens for one key head and up to
 * eight of the query heads that share it; short sequences have fewer ranges than
 * the grid has room for, and blocks without one end at once. Eight channels a lane, so that 8, 16
 * or 32 lanes hold a token; every such group of lanes keeps maximum, sum and
 * output of its own tokens, and they are put together at the end: groups and
 * warps by shared memory, ranges by a second kernel, each in a fixed order.
 * The work is bound by reading the cache: eight multiplications a byte are
 * below what the arithmetic units do meanwhile, so that no tensor cores are
 * needed. Lengths and tables are read on the device: one CUDA graph serves
 * whatever they say.
 *
 * Layers with a window keep a ring: token t is in slot t % window of the
 * sequence's pages, the oldest is written over by the newest. Attention does not
 * ask in which order tokens come, so that a ring is read as it lies.
 */
#ifndef GLYD_GPU_PAGED_ATTENTION_CUH
#define GLYD_GPU_PAGED_ATTENTION_CUH

#include <cuda_runtime.h>
#include <stdint.h>

constexpr int kPagedWarps = 4, kPagedThreads = kPagedWarps * 32;
constexpr int kPagedLoads = 4;      /* tokens in flight of a group of lanes */
constexpr int kPagedHeads = 8;      /* query heads of a block at most */
constexpr int kPagedRange = 64;     /* tokens of a range at least: fewer are not worth a block */
constexpr int kPagedSplits = 256;   /* ranges of a sequence at most */
constexpr int kPagedChannels = 256; /* of a head at most */

struct PagedArgs {
  uint16_t *out;           /* [sequences, heads, channels] bf16 */
  float *partial;          /* [sequences, heads, splits, 2 + channels] fp32, of sequences of several ranges */
  const uint16_t *q;       /* bf16, of strides below */
  uint16_t *k, *v;         /* caches [slots, key heads, channels] bf16 */
  const uint16_t *new_k;   /* of the newest token, also written to its slot; NULL: it is there already */
  const uint16_t *new_v;
  const int32_t *tables;   /* [sequences, pages] */
  const int32_t *lengths;  /* [sequences] tokens, the newest included; 0: nothing is done, and zeros given */
  int64_t slots;
  int64_t q_row, q_head, k_row, k_head, v_row, v_head; /* strides in values of q, new_k, new_v */
  int sequences, heads, key_heads, channels, pages, page_shift, page_stride, splits;
  int window; /* tokens of a ring; 0: no ring, all tokens have slots of their own */
  float scale; /* of scores, times log2(e) */
};

__device__ __forceinline__ float paged_exp2(float x) { /* exp2(-inf) is 0 */
#ifdef GLYD_EMULATION
  return exp2f(x);
#else
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#endif
}
__device__ __forceinline__ float paged_float(uint32_t bits) {
#ifdef GLYD_EMULATION
  return emulated_bf16(bits >> 16);
#else
  return __uint_as_float(bits);
#endif
}
__device__ __forceinline__ uint16_t paged_bf16(float f) { /* to nearest, ties to even; what is no number stays none */
  const uint32_t u = __float_as_uint(f);
  if ((u & 0x7FFFFFFF) > 0x7F800000) return 0x7FC0;
  return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}
/* Eight bf16 as floats. */
__device__ __forceinline__ void paged_floats(float (&f)[8], const uint4 &x) {
  const uint32_t words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int i = 0; i < 4; i++) f[2 * i] = paged_float(words[i] << 16), f[2 * i + 1] = paged_float(words[i] & 0xFFFF0000u);
}

/* Bytes of shared memory of a block: what groups of lanes found, and how it is put together. */
template <int Lanes, int Heads> __host__ __device__ constexpr int paged_shared() {
  return kPagedWarps * (32 / Lanes) * Heads * (8 * Lanes + 2 + 1) * 4;
}

/* Tokens of a sequence that are seen, which of their places the newest has, and tokens of each range. */
__device__ __forceinline__ int paged_tokens(const PagedArgs &p, int sequence) {
  const int n = min(p.lengths[sequence], p.pages << p.page_shift);
  return p.window ? min(n, p.window) : n;
}
__device__ __forceinline__ int paged_newest(const PagedArgs &p, int sequence, int n) {
  return p.window ? (p.lengths[sequence] - 1) % p.window : n - 1;
}
__device__ __forceinline__ int paged_range(const PagedArgs &p, int n) {
  const int range = (n + p.splits - 1) / p.splits;
  return (range + kPagedRange - 1) / kPagedRange * kPagedRange;
}

/* What n parts of [most, sum, …] are multiplied with when they are put together, by the lanes of a warp. */
__device__ __forceinline__ void paged_factors(float *factors, const float *parts, int n, int64_t stride, bool whole,
                                              float &top, float &total) {
  const int lane = threadIdx.x % 32;
  top = -INFINITY, total = 0;
  for (int i = lane; i < n; i += 32) top = fmaxf(top, parts[i * stride]);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
  const float base = top == -INFINITY ? 0.0f : top;
  for (int i = lane; i < n; i += 32) total += paged_exp2(parts[i * stride] - base) * parts[i * stride + 1];
#pragma unroll
  for (int d = 16; d > 0; d /= 2) total += __shfl_xor_sync(~0u, total, d);
  const float by = whole ? (total > 0 ? 1.0f / total : 0.0f) : 1.0f;
  for (int i = lane; i < n; i += 32) factors[i] = paged_exp2(parts[i * stride] - base) * by;
}

template <int Lanes, int Heads>
__global__ void __launch_bounds__(kPagedThreads, Heads <= 4 ? 4 : 2) paged_attention_kernel(const PagedArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(128) uint8_t shared[];
#endif
  constexpr int tokens = 32 / Lanes, step = kPagedWarps * tokens * kPagedLoads, D = 8 * Lanes;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / Lanes, channel = lane % Lanes * 8;
  const int sharing = p.heads / p.key_heads, head_groups = (sharing + Heads - 1) / Heads;
  const int split = blockIdx.x, key_head = blockIdx.y / head_groups, head_group = blockIdx.y % head_groups;
  const int sequence = blockIdx.z;
  const int first_head = key_head * sharing + head_group * Heads, n_heads = min(Heads, sharing - head_group * Heads);
  const bool has_channel = channel < p.channels;
  const int n = paged_tokens(p, sequence), range = paged_range(p, n);
  const int begin = split * range, end = min(n, begin + range);
  if (begin >= n && split > 0) return; /* all threads */
  const bool is_whole = range >= n;
  const int newest = paged_newest(p, sequence, n);
  const int32_t *table = p.tables + (int64_t)sequence * p.pages;

  float q[Heads][8], out[Heads][8], most[Heads], sum[Heads];
#pragma unroll
  for (int h = 0; h < Heads; h++) {
    uint4 x = make_uint4(0, 0, 0, 0);
    if (h < n_heads && has_channel) x = *(const uint4 *)(p.q + sequence * p.q_row + (first_head + h) * p.q_head + channel);
    paged_floats(q[h], x);
    most[h] = -INFINITY, sum[h] = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) q[h][i] *= p.scale, out[h][i] = 0;
  }

  for (int first = begin + warp * tokens * kPagedLoads; first < end; first += step) { /* alike in a warp */
    uint4 keys[kPagedLoads], values[kPagedLoads];
#pragma unroll
    for (int u = 0; u < kPagedLoads; u++) {
      const int t = first + u * tokens + group;
      keys[u] = values[u] = make_uint4(0, 0, 0, 0);
      if (t >= end || !has_channel) continue;
      int64_t slot = (int64_t)table[t >> p.page_shift] * p.page_stride + (t & ((1 << p.page_shift) - 1));
      slot = slot < 0 ? 0 : slot < p.slots ? slot : p.slots - 1; /* a table that lies leads to no place outside */
      const int64_t at = (slot * p.key_heads + key_head) * p.channels + channel;
      if (p.new_k && t == newest) {
        keys[u] = *(const uint4 *)(p.new_k + sequence * p.k_row + key_head * p.k_head + channel);
        values[u] = *(const uint4 *)(p.new_v + sequence * p.v_row + key_head * p.v_head + channel);
        if (head_group == 0) *(uint4 *)(p.k + at) = keys[u], *(uint4 *)(p.v + at) = values[u];
      } else {
        keys[u] = *(const uint4 *)(p.k + at);
        values[u] = *(const uint4 *)(p.v + at);
      }
    }
    float score[Heads][kPagedLoads];
#pragma unroll
    for (int u = 0; u < kPagedLoads; u++) {
      float k[8];
      paged_floats(k, keys[u]);
#pragma unroll
      for (int h = 0; h < Heads; h++) {
        float s = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) s += q[h][i] * k[i];
#pragma unroll
        for (int d = Lanes / 2; d > 0; d /= 2) s += __shfl_xor_sync(~0u, s, d);
        score[h][u] = first + u * tokens + group < end ? s : -INFINITY;
      }
    }
#pragma unroll
    for (int h = 0; h < Heads; h++) {
      float top = most[h];
#pragma unroll
      for (int u = 0; u < kPagedLoads; u++) top = fmaxf(top, score[h][u]);
      const float base = top == -INFINITY ? 0.0f : top; /* no token yet: nothing is added */
      const float factor = paged_exp2(most[h] - base);
      most[h] = top;
      sum[h] *= factor;
#pragma unroll
      for (int u = 0; u < kPagedLoads; u++) sum[h] += score[h][u] = paged_exp2(score[h][u] - base);
#pragma unroll
      for (int i = 0; i < 8; i++) out[h][i] *= factor;
    }
#pragma unroll
    for (int u = 0; u < kPagedLoads; u++) {
      float v[8];
      paged_floats(v, values[u]);
#pragma unroll
      for (int h = 0; h < Heads; h++)
#pragma unroll
        for (int i = 0; i < 8; i++) out[h][i] += score[h][u] * v[i];
    }
  }

  /* groups of lanes together: [group][head][most, sum, D] */
  float *parts = (float *)shared;
#pragma unroll
  for (int h = 0; h < Heads; h++) {
    float *to = parts + ((warp * tokens + group) * Heads + h) * (D + 2);
    if (channel == 0) to[0] = most[h], to[1] = sum[h];
#pragma unroll
    for (int i = 0; i < 8; i++) to[2 + channel + i] = out[h][i];
  }
  __syncthreads();
  constexpr int n_parts = kPagedWarps * tokens, stride = Heads * (D + 2);
  float *factors = parts + n_parts * stride; /* [head][group] */
  for (int h = warp; h < n_heads; h += kPagedWarps) {
    float top, total;
    paged_factors(factors + h * n_parts, parts + h * (D + 2), n_parts, stride, is_whole, top, total);
    if (!is_whole && lane == 0) {
      float *to = p.partial + (((int64_t)sequence * p.heads + first_head + h) * p.splits + split) * (p.channels + 2);
      to[0] = top, to[1] = total;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n_heads * p.channels; i += kPagedThreads) {
    const int h = i / p.channels, c = i % p.channels;
    const float *of = parts + h * (D + 2) + 2 + c;
    float value = 0;
#pragma unroll
    for (int w = 0; w < n_parts; w++) value += factors[h * n_parts + w] * of[w * stride];
    const int64_t row = (int64_t)sequence * p.heads + first_head + h;
    if (is_whole)
      p.out[row * p.channels + c] = paged_bf16(value);
    else
      p.partial[(row * p.splits + split) * (p.channels + 2) + 2 + c] = value;
  }
}

/* Ranges of tokens together, in their order. A block a query head, a thread a channel. */
__global__ void __launch_bounds__(kPagedChannels) paged_merge_kernel(const PagedArgs p) {
#ifdef GLYD_EMULATION
  float *factors = (float *)emulated_shared();
#else
  __shared__ float factors[kPagedSplits];
#endif
  const int c = threadIdx.x, sequence = blockIdx.x / p.heads;
  const int n = paged_tokens(p, sequence), range = paged_range(p, n);
  if (range >= n) return; /* all threads: the one range is the whole, and out is written */
  const int n_ranges = (n + range - 1) / range;
  const int64_t stride = p.channels + 2;
  const float *of = p.partial + (int64_t)blockIdx.x * p.splits * stride;
  if (c < 32) {
    float top, total;
    paged_factors(factors, of, n_ranges, stride, true, top, total);
  }
  __syncthreads();
  if (c >= p.channels) return;
  float value = 0;
#pragma unroll 4
  for (int i = 0; i < n_ranges; i++) value += factors[i] * of[i * stride + 2 + c];
  p.out[(int64_t)blockIdx.x * p.channels + c] = paged_bf16(value);
}

#endif
