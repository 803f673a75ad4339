/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Attention of one new token a sequence over pages of keys and values.
 *
 * A block takes a range of a sequence's slabs of 32 tokens for one key head and
 * up to eight of the query heads that share it; its warps take slabs in turn,
 * each for itself. While a warp works on the keys of a slab, the values are
 * copied to shared memory, and then the keys of the next one. A page lies in the
 * order of mma.sync's operand A, so that what a thread decodes is what it
 * multiplies: K, tokens by channels, times Q of eight heads; then V transposed,
 * channels by tokens, times the probabilities, which turn around by movmatrix.
 * Every warp keeps maximum, sum and output of its own tokens in registers; at the
 * end warps, then blocks, are put together in a fixed order. So the bits depend
 * on the division into ranges alone, not on how pages are stored: plain pages go
 * through the same mma in the same order.
 * Tests run this code on the CPU as well (tests/emulation).
 */
#ifndef GLYD_GPU_KV_ATTENTION_CUH
#define GLYD_GPU_KV_ATTENTION_CUH

#include "kv_slab.cuh"

#ifndef GLYD_EMULATION
#include "mma_sync.cuh"
using glyd::mma_16x8x16;
#endif

constexpr int kKvHeads = 8;             /* query heads of a block: columns of the mma */

struct KvAttentionArgs {
  uint16_t *out;            /* [sequences, heads, D] bf16 */
  float *partial;           /* [sequences, key heads, head groups, splits, 8, D + 2] fp32; NULL with one split */
  const uint16_t *q;        /* [sequences, heads, D] bf16 */
  const uint64_t *k_pages;  /* [sequences, key heads, pages] addresses */
  const uint64_t *v_pages;
  const uint16_t *k_tail;   /* [sequences, key heads, tail, D] bf16 */
  const uint16_t *v_tail;
  const int32_t *starts;    /* [sequences] first token that is seen; NULL: 0 */
  int sequences, heads, key_heads, pages, tail, splits;
  float scale; /* of scores, times log2(e) */
};

/* Transpose an 8 x 8 matrix of 16-bit values held by a warp. */
__device__ __forceinline__ uint32_t movmatrix(uint32_t x) {
#ifdef GLYD_EMULATION
  return emulated_movmatrix(x);
#else
  uint32_t r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(x));
  return r;
#endif
}

__device__ __forceinline__ uint32_t kv_bf16(float f) { /* to nearest, ties to even; f is finite */
  const uint32_t u = __float_as_uint(f);
  return (u + 0x7FFF + (u >> 16 & 1)) >> 16;
}
__device__ __forceinline__ float kv_exp2(float x) { /* exp2(-inf) is 0 */
#ifdef GLYD_EMULATION
  return exp2f(x);
#else
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#endif
}

__device__ __forceinline__ uint32_t kv_bf16x2(float low, float high) {
#ifdef GLYD_EMULATION
  return kv_bf16(low) | kv_bf16(high) << 16;
#else
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
#endif
}

/* Where a block has 227 KiB of shared memory, and where it has 99. */
template <int D> struct KvForms {
  using Roomy = KvForm<16, 2>;
  using Tight = KvForm<4, 4>;
};
template <> struct KvForms<256> {
  using Roomy = KvForm<8, 2>;
  using Tight = KvForm<2, 2>;
};

/* Shared memory of a block: the table; lists of as many warps together as it has copies; the query as operands B of all
 * blocks of channels; maxima and sums of warps; and of each warp keys and values on their way, and headers of two pages of
 * either. At the end a warp's part has its output as [blocks][32 lanes] of what an mma leaves (channels g, g and g + 8,
 * g + 8 of 16, heads 2 q and 2 q + 1). */
template <int D> __host__ __device__ constexpr int kv_warp_shared() { return 2 * kKvSlot<D> + 4 * (int)GLYD_KV_SLABS_AT(D); }
template <int D, class F> __host__ __device__ constexpr int kv_lists() {
  return (F::kWarps + F::kCopies - 1) / F::kCopies * F::kCopies * (int)kKvListRoom<D> * 4;
}
template <class F> __host__ __device__ constexpr int kv_table() { return (kKvQuadRows * 4 * F::kCopies + 15) / 16 * 16; }
template <int D, class F> __host__ __device__ constexpr int kv_attention_shared() {
  return kv_table<F>() + kv_lists<D, F>() + D / 16 * 256 + F::kWarps * (kKvHeads * 8 + kv_warp_shared<D>());
}

/* Put sums of several parts together: weights of n parts by their maxima, in order; gives the sum. */
__device__ __forceinline__ float kv_merge_weights(const float *parts, int n, int stride, float &most) {
  most = -INFINITY;
  for (int i = 0; i < n; i++) most = fmaxf(most, parts[i * stride]);
  float sum = 0;
  if (most == -INFINITY) return 0;
  for (int i = 0; i < n; i++) sum += kv_exp2(parts[i * stride] - most) * parts[i * stride + 1];
  return sum;
}

/* The query as operands B of all blocks of channels, [blocks][32][2], by all threads of the block: in the order in which
 * pages have channels, the first register c and c + 8 for c = 2 q, the second one for the channel after it. */
template <int D> __device__ __forceinline__ void kv_fill_query(uint32_t *query, const uint16_t *q, int n_heads) {
  for (int i = threadIdx.x; i < D / 16 * 64; i += blockDim.x) {
    const int l = i % 64 / 2;
    const uint16_t *from = q + l / 4 * D + i / 64 * 16 + l % 4 * 2 + i % 2;
    query[i] = l / 4 < n_heads ? from[0] | (uint32_t)from[8] << 16 : 0;
  }
}

/* Maximum, sum and output of a warp's tokens; a lane has those of heads 2 q and 2 q + 1. */
template <int D> struct KvSums {
  float most[2], sum[2], out[D / 16][4];
  __device__ __forceinline__ void begin() {
    most[0] = most[1] = -INFINITY, sum[0] = sum[1] = 0;
#pragma unroll
    for (int i = 0; i < D / 16; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) out[i][j] = 0;
  }
  /* Scores to probabilities as operand B. Of every 16 tokens a lane has 2 g and 2 g + 1; those from `seen` up to n are seen,
   * or all. */
  __device__ __forceinline__ void weigh(uint32_t (&p)[kKvSteps][2], float (&s)[kKvSteps][4], int seen, int n, bool whole,
                                        float scale) {
    const int lane = threadIdx.x % 32;
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float now = -INFINITY;
#pragma unroll
      for (int i = 0; i < kKvSteps; i++)
#pragma unroll
        for (int second = 0; second < 2; second++) {
          const int t = 16 * i + lane / 4 * 2 + second;
          float &score = s[i][2 * second + h];
          score = whole || (t >= seen && t < n) ? score * scale : -INFINITY;
          now = fmaxf(now, score);
        }
#pragma unroll
      for (int d = 4; d < 32; d <<= 1) now = fmaxf(now, __shfl_xor_sync(~0u, now, d));
      now = fmaxf(now, most[h]);
      /* scores of -inf alone: nothing is added, and nothing there is changed */
      const float base = now == -INFINITY ? 0.0f : now;
      factor[h] = kv_exp2(most[h] - base);
      most[h] = now;
      sum[h] *= factor[h];
#pragma unroll
      for (int i = 0; i < kKvSteps; i++)
#pragma unroll
        for (int second = 0; second < 2; second++) {
          float &score = s[i][2 * second + h];
          score = kv_exp2(score - base);
          sum[h] += score;
        }
    }
#pragma unroll
    for (int i = 0; i < kKvSteps; i++) { /* heads g of tokens 4 q, 4 q + 1 and the two after them: operand B */
      const uint32_t even = movmatrix(kv_bf16x2(s[i][0], s[i][1])), odd = movmatrix(kv_bf16x2(s[i][2], s[i][3]));
      p[i][0] = prmt(even, odd, 0x5410), p[i][1] = prmt(even, odd, 0x7632);
    }
    if (__any_sync(~0u, factor[0] != 1.0f || factor[1] != 1.0f)) {
#pragma unroll
      for (int i = 0; i < D / 16; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) out[i][j] *= factor[j % 2];
    }
  }
  /* Maxima and sums [heads][2], and the output, to shared memory. */
  __device__ __forceinline__ void end(float *merge, float *to) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
      for (int d = 4; d < 32; d <<= 1) sum[h] += __shfl_xor_sync(~0u, sum[h], d);
      float *at = merge + (lane % 4 * 2 + h) * 2;
      if (lane < 4) at[0] = most[h], at[1] = sum[h];
    }
#pragma unroll
    for (int i = 0; i < D / 16; i++) *(float4 *)(to + i * 128 + lane * 4) = make_float4(out[i][0], out[i][1], out[i][2], out[i][3]);
  }
};

template <int D, class F>
__global__ void __launch_bounds__(F::kWarps * 32, 1) kv_attention_kernel(const KvAttentionArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(256) uint8_t shared[];
#endif
  constexpr int W = F::kWarps, kHeader = (int)GLYD_KV_SLABS_AT(D);
  static_assert(kKvRowsFit<D>, "rows of a step take no more room than a slab");
  static_assert(kv_warp_shared<D>() >= D / 16 * 512, "nor does the output");
  const int groups_of_heads = (p.heads / p.key_heads + kKvHeads - 1) / kKvHeads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int shared_heads = p.heads / p.key_heads; /* query heads of a key head */

  uint32_t *table = (uint32_t *)shared;
  uint32_t *list = (uint32_t *)(shared + kv_table<F>()) + warp / F::kCopies * F::kCopies * (int)kKvListRoom<D> + warp % F::kCopies;
  uint32_t *query = (uint32_t *)(shared + kv_table<F>() + kv_lists<D, F>()); /* [blocks][32][2]: operand B */
  float *merge = (float *)(query + D / 16 * 64);                          /* [warps][heads][maximum, sum] */
  float *all_out = merge + W * kKvHeads * 2;
  uint8_t *mine = (uint8_t *)all_out + warp * kv_warp_shared<D>(), *headers = mine + 2 * kKvSlot<D>;
  kv_fill_quads<F::kCopies>(table);

  const int64_t n_tasks = (int64_t)p.sequences * p.key_heads * groups_of_heads * p.splits;
#pragma unroll 1
  for (int64_t task = blockIdx.x; task < n_tasks; task += gridDim.x) {
    const int split = (int)(task % p.splits), group = (int)(task / p.splits % groups_of_heads);
    const int64_t head = task / p.splits / groups_of_heads; /* of all key heads of all sequences */
    const int sequence = (int)(head / p.key_heads), key_head = (int)(head % p.key_heads);
    const int first_head = key_head * shared_heads + group * kKvHeads;
    const int n_heads = min(kKvHeads, shared_heads - group * kKvHeads);
    const int start = p.starts ? p.starts[sequence] : 0;
    const int paged = p.pages * GLYD_KV_SLABS, units = paged + (p.tail + kKvSlabTokens - 1) / kKvSlabTokens;
    const int each = (units + p.splits - 1) / p.splits, end = min(units, (split + 1) * each);
    int unit = split * each + warp;
    if (start / kKvSlabTokens > unit) unit += (start / kKvSlabTokens - unit + W - 1) / W * W; /* slabs that nobody sees */
    const uint64_t *pages[2] = {p.k_pages + head * p.pages, p.v_pages + head * p.pages};
    const uint16_t *tails[2] = {p.k_tail + head * p.tail * D, p.v_tail + head * p.tail * D};

    auto address = [&](int u, int which) { return u < min(end, paged) ? (const uint8_t *)pages[which][u / GLYD_KV_SLABS] : nullptr; };
    auto ask_header = [&](const uint8_t *page, int turn, int which) {
      uint8_t *to = headers + (2 * (turn % 2) + which) * kHeader;
      if (page)
        for (int i = lane * 16; i < kHeader; i += 512) copy_async16(to + i, page + i);
    };
    auto slab = [&](int u, int turn, int which, const uint8_t *page) {
      KvSlab<D> x;
      const uint8_t *header = headers + (2 * (turn % 2) + which) * kHeader;
      x.page = page, x.slot = mine + which * kKvSlot<D>;
      x.number = u % GLYD_KV_SLABS;
      x.header = page && kv_is_packed(header) ? header : nullptr;
      x.n = page ? kKvSlabTokens : p.tail - (u - paged) * kKvSlabTokens;
      x.rows = page ? (const uint16_t *)(page + GLYD_KV_HEADER) + (int64_t)x.number * kKvSlabTokens * D
                    : tails[which] + (int64_t)(u - paged) * kKvSlabTokens * D;
      return x;
    };
    /* pages of this turn, the next one, and the one after it */
    const uint8_t *now[2], *next[2], *later[2];
    __syncthreads(); /* nobody reads what the task before left */
#pragma unroll
    for (int which = 0; which < 2; which++) {
      now[which] = address(unit, which), next[which] = address(unit + W, which), later[which] = address(unit + 2 * W, which);
      ask_header(now[which], 0, which);
      ask_header(next[which], 1, which);
    }
    cp_async_commit();
    kv_fill_query<D>(query, p.q + ((int64_t)sequence * p.heads + first_head) * D, n_heads);
    cp_async_wait<0>();
    __syncwarp();
    if (unit < end) {
      slab(unit, 0, 0, now[0]).ask();
      cp_async_commit();
      slab(unit, 0, 1, now[1]).ask();
      cp_async_commit();
    }
    __syncthreads();

    KvSums<D> sums;
    sums.begin();
    int turn = 0;
#pragma unroll 1
    for (; unit < end; unit += W, turn++) {
      const int seen = start - unit * kKvSlabTokens; /* first token of the slab that is seen */
      const KvSlab<D> keys = slab(unit, turn, 0, now[0]), values = slab(unit, turn, 1, now[1]);
      float s[kKvSteps][4];
#pragma unroll
      for (int i = 0; i < kKvSteps; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) s[i][j] = 0;
      cp_async_wait<1>();
      __syncwarp();
      kv_each_block<D, F, false>(keys, shared, list, [&](int block, int step, const uint32_t (&a)[4]) {
        const uint2 b = *(const uint2 *)(query + block * 64 + lane * 2);
        mma_16x8x16(s[step], a, b.x, b.y);
      });
      cp_async_wait<0>(); /* the values are there, and headers of the next turn */
      __syncwarp();
      if (unit + W < end) slab(unit + W, turn + 1, 0, next[0]).ask();
      cp_async_commit();
      uint32_t probabilities[kKvSteps][2];
      sums.weigh(probabilities, s, seen, keys.n, seen <= 0 && keys.n >= kKvSlabTokens, p.scale);
      kv_each_block<D, F, true>(values, shared, list, [&](int block, int step, const uint32_t (&a)[4]) {
        mma_16x8x16(sums.out[block], a, probabilities[step][0], probabilities[step][1]);
      });
      __syncwarp(); /* nobody reads the values and headers any more */
      if (unit + W < end) slab(unit + W, turn + 1, 1, next[1]).ask();
#pragma unroll
      for (int which = 0; which < 2; which++) {
        ask_header(later[which], turn, which);
        now[which] = next[which], next[which] = later[which], later[which] = address(unit + 3 * W, which);
      }
      cp_async_commit();
    }
    cp_async_wait<0>();
    __syncwarp();
    sums.end(merge + warp * kKvHeads * 2, (float *)mine);
    __syncthreads();
    /* warps together, head by head in the order of warps */
    for (int i = threadIdx.x; i < n_heads * D; i += W * 32) {
      const int h = i / D, c = i % D;
      const float *of_head = merge + h * 2;
      constexpr int stride = kKvHeads * 2;
      const float *from = all_out + (c % 8 * 4 + h / 2) * 4 + c / 16 * 128 + c / 8 % 2 * 2 + h % 2;
      float all;
      const float total = kv_merge_weights(of_head, W, stride, all);
      float value = 0;
      if (all != -INFINITY)
        for (int v = 0; v < W; v++) value += kv_exp2(of_head[v * stride] - all) * from[v * (kv_warp_shared<D>() / 4)];
      if (p.splits == 1) {
        p.out[((int64_t)sequence * p.heads + first_head + h) * D + c] = (uint16_t)kv_bf16(total > 0 ? value / total : 0.0f);
      } else {
        float *to = p.partial + ((((int64_t)head * groups_of_heads + group) * p.splits + split) * kKvHeads + h) * (D + 2);
        if (c == 0) to[0] = all, to[1] = total;
        to[2 + c] = value;
      }
    }
  }
}

/* Ranges of pages together, in their order. A block a query head, D threads. */
template <int D> __global__ void __launch_bounds__(D) kv_merge_kernel(const KvAttentionArgs p) {
#if !defined(GLYD_EMULATION) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory"); /* it may be launched before the ranges are done */
#endif
  const int groups_of_heads = (p.heads / p.key_heads + kKvHeads - 1) / kKvHeads;
  const int shared_heads = p.heads / p.key_heads, c = threadIdx.x;
  const int64_t sequence = blockIdx.x / p.heads;
  const int query_head = (int)(blockIdx.x % p.heads), key_head = query_head / shared_heads;
  const int within = query_head % shared_heads;
  const int64_t block = (sequence * p.key_heads + key_head) * groups_of_heads + within / kKvHeads;
  constexpr int stride = kKvHeads * (D + 2);
  const float *of = p.partial + block * p.splits * stride + within % kKvHeads * (D + 2);
  float most, value = 0;
  const float sum = kv_merge_weights(of, p.splits, stride, most);
  if (most != -INFINITY)
    for (int i = 0; i < p.splits; i++) value += kv_exp2(of[i * stride] - most) * of[i * stride + 2 + c];
  p.out[((int64_t)sequence * p.heads + query_head) * D + c] = (uint16_t)kv_bf16(sum > 0 ? value / sum : 0.0f);
}

#endif
