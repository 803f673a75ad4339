/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * What lies between the products of a layer, a kernel each: norms, rotations
 * and gates. transformers writes them as up to eight operations, each a kernel
 * of two microseconds. Every rounding to bf16 is where theirs is; only the sum
 * of squares of a norm is added up in another order.
 */
#ifndef GLYD_GPU_LAYER_PARTS_CUH
#define GLYD_GPU_LAYER_PARTS_CUH

#include <cuda_runtime.h>
#include <stdint.h>

constexpr int kPartThreads = 256; /* of a block */

struct NormArgs {
  uint16_t *out;          /* [rows, inner, cols] */
  const uint16_t *x;      /* of strides below, in values */
  const uint16_t *weight; /* [cols] */
  const uint16_t *add;    /* [rows, inner, cols], or NULL: added to x, rounded, before all else */
  uint16_t *sum;          /* [rows, inner, cols], where that goes */
  int64_t outer, within;  /* strides of rows and of inner rows */
  int rows, inner, cols;
  float eps;
};

struct RotateArgs {
  uint16_t *out;       /* [rows, heads, channels] of q, then the same of k */
  const uint16_t *q;   /* strides below, in values */
  const uint16_t *k;
  const uint16_t *cos; /* rows of channels */
  const uint16_t *sin;
  int64_t q_row, q_head, k_row, k_head, angle_row; /* the last of cos and sin: 0 where all rows have the same */
  int rows, heads, key_heads, channels;
};

/* A token of each of several sequences: its queries to out, its keys and values to their place in a cache. */
struct PlaceArgs {
  uint16_t *out;                     /* [rows, heads, channels] */
  uint16_t *keys, *values;           /* [rows, key_heads, length, channels] */
  const uint16_t *q, *k, *v;         /* rows of heads of channels, one behind the other, strides of rows below, in values */
  const uint16_t *q_weight, *k_weight; /* [channels] of their norms, or NULL: there are none */
  const uint16_t *cos, *sin;         /* rows of channels, stride angle_row: 0 where all rows have the same */
  const int64_t *position;           /* one for all rows */
  int64_t q_row, k_row, v_row, angle_row, length;
  int rows, heads, key_heads, channels;
  float eps;
};

struct GateArgs {
  uint16_t *out; /* [rows, cols] */
  const uint16_t *gate;
  const uint16_t *up;
  int64_t gate_row, up_row; /* strides in values */
  int rows, cols;
};

__device__ __forceinline__ float part_float(uint32_t high) { /* a bf16 in the upper half, zeros below */
#ifdef GLYD_EMULATION
  return emulated_bf16(high >> 16);
#else
  return __uint_as_float(high);
#endif
}
__device__ __forceinline__ float part_value(uint16_t x) { return part_float((uint32_t)x << 16); }
__device__ __forceinline__ uint16_t part_bf16(float f) { /* to nearest, ties to even */
  const uint32_t u = __float_as_uint(f);
  if ((u & 0x7FFFFFFF) > 0x7F800000) return 0x7FC0;
  return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}
__device__ __forceinline__ float part_round(float f) { return part_value(part_bf16(f)); }
/* Products and sums that the compiler must not contract: torch rounds between them. */
__device__ __forceinline__ float part_mul(float a, float b) {
#ifdef GLYD_EMULATION
  return a * b;
#else
  return __fmul_rn(a, b);
#endif
}
__device__ __forceinline__ float part_rsqrt(float x) {
#ifdef GLYD_EMULATION
  return 1.0f / sqrtf(x);
#else
  return rsqrtf(x);
#endif
}

/* The next kernel may start, and fill its ring, as soon as this one runs; this one waits for what lies before it.
 * Nothing of what came before has been read at this place. */
__device__ __forceinline__ void part_begin() {
#if !defined(GLYD_EMULATION) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

struct Eight {
  float f[8];
};
__device__ __forceinline__ Eight part_load(const uint16_t *p) {
  const uint4 x = *(const uint4 *)p;
  const uint32_t words[4] = {x.x, x.y, x.z, x.w};
  Eight r;
#pragma unroll
  for (int i = 0; i < 4; i++) r.f[2 * i] = part_float(words[i] << 16), r.f[2 * i + 1] = part_float(words[i] & 0xFFFF0000u);
  return r;
}
__device__ __forceinline__ void part_store(uint16_t *p, const Eight &x) {
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; i++) words[i] = part_bf16(x.f[2 * i]) | (uint32_t)part_bf16(x.f[2 * i + 1]) << 16;
  *(uint4 *)p = make_uint4(words[0], words[1], words[2], words[3]);
}

/* Sum over the threads that have a row. */
template <bool Wide> __device__ __forceinline__ float part_sum(float s, float *shared) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(~0u, s, d);
  if constexpr (Wide) {
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int w = 0; w < kPartThreads / 32; w++) s += shared[w];
  }
  return s;
}

/* A block a row where rows are wide, else a warp. */
template <bool Wide> __global__ void __launch_bounds__(kPartThreads) norm_kernel(const NormArgs p) {
#ifdef GLYD_EMULATION
  float *shared = (float *)emulated_shared();
#else
  __shared__ float shared[kPartThreads / 32];
#endif
  part_begin();
  const int64_t row = Wide ? blockIdx.x : (int64_t)blockIdx.x * (kPartThreads / 32) + threadIdx.x / 32;
  const int first = (Wide ? threadIdx.x : threadIdx.x % 32) * 8, step = (Wide ? kPartThreads : 32) * 8;
  const bool is_row = row < (int64_t)p.rows * p.inner; /* alike in a warp */
  const int64_t at = is_row ? row : 0;
  const uint16_t *x = p.x + at / p.inner * p.outer + at % p.inner * p.within;
  float s = 0;
  for (int c = first; c < p.cols; c += step) {
    Eight v = part_load(x + c);
    if (p.add) {
      const Eight a = part_load(p.add + at * p.cols + c);
#pragma unroll
      for (int i = 0; i < 8; i++) v.f[i] = part_round(v.f[i] + a.f[i]);
      if (is_row) part_store(p.sum + at * p.cols + c, v);
    }
#pragma unroll
    for (int i = 0; i < 8; i++) s += v.f[i] * v.f[i];
  }
  s = part_sum<Wide>(s, shared);
  if (!is_row) return;
  if (p.add) x = p.sum + at * p.cols; /* what this very thread has written */
  const float factor = part_rsqrt(s * (1.0f / (float)p.cols) + p.eps); /* as torch takes a mean */
  for (int c = first; c < p.cols; c += step) {
    Eight v = part_load(x + c);
    const Eight w = part_load(p.weight + c);
#pragma unroll
    for (int i = 0; i < 8; i++) v.f[i] = part_mul(w.f[i], part_round(part_mul(v.f[i], factor)));
    part_store(p.out + at * p.cols + c, v);
  }
}

/* Turn eight channels of the first half of a head and the eight of the second. */
__device__ __forceinline__ void part_turn(Eight &a, Eight &b, const uint16_t *cos, const uint16_t *sin, int c, int half) {
  const Eight cos_a = part_load(cos + c), cos_b = part_load(cos + half + c);
  const Eight sin_a = part_load(sin + c), sin_b = part_load(sin + half + c);
#pragma unroll
  for (int j = 0; j < 8; j++) {
    const float y = part_round(part_mul(a.f[j], cos_a.f[j])) + part_round(part_mul(-b.f[j], sin_a.f[j]));
    b.f[j] = part_round(part_mul(b.f[j], cos_b.f[j])) + part_round(part_mul(a.f[j], sin_b.f[j]));
    a.f[j] = y;
  }
}

/* A thread eight channels of the first half of a head, and the eight of the second. */
__global__ void __launch_bounds__(kPartThreads) rotate_kernel(const RotateArgs p) {
  part_begin();
  const int eights = p.channels / 16, all = p.heads + p.key_heads;
  const int64_t i = (int64_t)blockIdx.x * kPartThreads + threadIdx.x;
  if (i >= (int64_t)p.rows * all * eights) return;
  const int c = (int)(i % eights) * 8, head = (int)(i / eights % all), half = p.channels / 2;
  const int64_t row = i / eights / all;
  const bool is_q = head < p.heads;
  const uint16_t *x = is_q ? p.q + row * p.q_row + head * p.q_head : p.k + row * p.k_row + (head - p.heads) * p.k_head;
  uint16_t *out = is_q ? p.out + (row * p.heads + head) * p.channels
                       : p.out + ((int64_t)p.rows * p.heads + row * p.key_heads + (head - p.heads)) * p.channels;
  Eight a = part_load(x + c), b = part_load(x + half + c);
  part_turn(a, b, p.cos + row * p.angle_row, p.sin + row * p.angle_row, c, half);
  part_store(out + c, a);
  part_store(out + half + c, b);
}

/* channels / 16 threads a head, a power of two up to 32: norm, rotation and place of it. Heads of v are copied. */
__global__ void __launch_bounds__(kPartThreads) place_kernel(const PlaceArgs p) {
  part_begin();
  const int eights = p.channels / 16, all = p.heads + 2 * p.key_heads, half = p.channels / 2;
  const int64_t i = (int64_t)blockIdx.x * kPartThreads + threadIdx.x;
  const bool is_head = i < (int64_t)p.rows * all * eights; /* alike for the threads of a head, not of a warp */
  const int c = (int)(i % eights) * 8, head = is_head ? (int)(i / eights % all) : 0;
  const int64_t row = is_head ? i / eights / all : 0;
  const bool is_q = head < p.heads, is_k = !is_q && head < p.heads + p.key_heads;
  const int mine = is_q ? head : is_k ? head - p.heads : head - p.heads - p.key_heads;
  const uint16_t *x = (is_q ? p.q + row * p.q_row : is_k ? p.k + row * p.k_row : p.v + row * p.v_row) + mine * p.channels;
  Eight a = part_load(x + c), b = part_load(x + half + c);
  float s = 0;
#pragma unroll
  for (int j = 0; j < 8; j++) s += a.f[j] * a.f[j] + b.f[j] * b.f[j];
  for (int d = eights / 2; d > 0; d /= 2) s += __shfl_xor_sync(~0u, s, d);
  const uint16_t *weight = is_q ? p.q_weight : is_k ? p.k_weight : nullptr;
  if (weight) {
    const float factor = part_rsqrt(s * (1.0f / (float)p.channels) + p.eps);
    const Eight w = part_load(weight + c), u = part_load(weight + half + c);
#pragma unroll
    for (int j = 0; j < 8; j++) {
      a.f[j] = part_round(part_mul(w.f[j], part_round(part_mul(a.f[j], factor))));
      b.f[j] = part_round(part_mul(u.f[j], part_round(part_mul(b.f[j], factor))));
    }
  }
  if (is_q || is_k) part_turn(a, b, p.cos + row * p.angle_row, p.sin + row * p.angle_row, c, half);
  const int64_t at = *p.position;
  if (!is_head || (!is_q && (at < 0 || at >= p.length))) return;
  uint16_t *out = is_q ? p.out + (row * p.heads + mine) * p.channels
                       : (is_k ? p.keys : p.values) + ((row * p.key_heads + mine) * p.length + at) * p.channels;
  part_store(out + c, a);
  part_store(out + half + c, b);
}

/* silu(gate) times up. */
__global__ void __launch_bounds__(kPartThreads) gate_kernel(const GateArgs p) {
  part_begin();
  const int eights = p.cols / 8;
  const int64_t i = (int64_t)blockIdx.x * kPartThreads + threadIdx.x;
  if (i >= (int64_t)p.rows * eights) return;
  const int64_t row = i / eights;
  const int c = (int)(i % eights) * 8;
  const Eight g = part_load(p.gate + row * p.gate_row + c), u = part_load(p.up + row * p.up_row + c);
  Eight y;
#pragma unroll
  for (int j = 0; j < 8; j++) y.f[j] = part_mul(part_round(g.f[j] / (1.0f + expf(-g.f[j]))), u.f[j]);
  part_store(p.out + row * p.cols + c, y);
}

#endif
