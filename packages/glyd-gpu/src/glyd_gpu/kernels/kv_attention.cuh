/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Attention of one new token a sequence over pages of keys and values.
 *
 * A block takes a range of a sequence's pages for one key head and up to eight
 * of the query heads that share it. Pages come to shared memory decoded; warp w
 * then has tokens 16 w … 16 w + 15 of the page for itself: scores are K (16
 * tokens, 16 channels) times Qᵀ (8 heads) by mma.sync, their exponentials turn
 * around by movmatrix and are multiplied by Vᵀ. Every warp keeps maximum, sum
 * and output of its own tokens; at the end warps, then blocks, are put together
 * in a fixed order. So the bits depend on the division into ranges alone, not
 * on how pages are stored: plain pages go through the same instructions.
 *
 * Never run on a GPU yet: tests run this code on the CPU (tests/emulation).
 */
#ifndef GLYD_GPU_KV_ATTENTION_CUH
#define GLYD_GPU_KV_ATTENTION_CUH

#include "kv_page.cuh"

#ifndef GLYD_EMULATION
#include "mma_sync.cuh"
using glyd::mma_16x8x16;
#endif

constexpr int kKvHeads = 8;  /* query heads of a block: columns of the mma */
constexpr int kKvWarps = 8;  /* of a block: 16 tokens each */
constexpr int kKvThreads = kKvWarps * 32;
static_assert(kKvWarps * 16 == kKvTokens, "a page's tokens");

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

/* Four 8 x 8 matrices of 16-bit values from shared memory; every lane gives the address of a row. */
__device__ __forceinline__ void ldmatrix_rows(uint32_t (&a)[4], const void *row) {
#ifdef GLYD_EMULATION
  emulated_ldmatrix(a, row, false);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"((uint32_t)__cvta_generic_to_shared(row)));
#endif
}
__device__ __forceinline__ void ldmatrix_transposed(uint32_t (&a)[4], const void *row) {
#ifdef GLYD_EMULATION
  emulated_ldmatrix(a, row, true);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"((uint32_t)__cvta_generic_to_shared(row)));
#endif
}
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

/* Operand A, 16 tokens from `token` on times 16 channels from `channel` on, of keys staged either way. */
template <int D>
__device__ __forceinline__ void kv_keys(uint32_t (&a)[4], const uint8_t *rows, bool packed, int token, int channel) {
  const int lane = threadIdx.x % 32, r = lane % 8, one = lane / 8 & 1, two = lane / 16;
  if (packed) /* rows are channels: matrices 0, 1 at channels 0 … 7, tokens 0 and 8; 2, 3 at channels 8 … 15 */
    ldmatrix_transposed(a, rows + (channel + 8 * two + r) * kKvChannelStride + (token + 8 * one) * 2);
  else
    ldmatrix_rows(a, rows + (token + 8 * one + r) * kv_token_stride(D) + (channel + 8 * two) * 2);
}
/* Operand A, 16 channels times 16 tokens, of values staged either way. */
template <int D>
__device__ __forceinline__ void kv_values(uint32_t (&a)[4], const uint8_t *rows, bool packed, int token, int channel) {
  const int lane = threadIdx.x % 32, r = lane % 8, one = lane / 8 & 1, two = lane / 16;
  if (packed)
    ldmatrix_rows(a, rows + (channel + 8 * one + r) * kKvChannelStride + (token + 8 * two) * 2);
  else
    ldmatrix_transposed(a, rows + (token + 8 * two + r) * kv_token_stride(D) + (channel + 8 * one) * 2);
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

/* What a warp knows of its tokens: for heads 2 q and 2 q + 1, channels g and g + 8 of every 16. */
template <int D> struct KvState {
  float most[2], sum[2];
  float out[D / 16][4];
};

/* Pages in shared memory at a time: keys and values of one range of tokens, or, where these need more than the 99 KiB
 * that every architecture has, one after the other. */
template <int D> __host__ __device__ constexpr int kv_pages_held() { return D <= 128 ? 2 : 1; }

/* Bytes of shared memory of a block. */
template <int D> __host__ __device__ constexpr int kv_attention_shared() {
  constexpr int pages = kv_pages_held<D>() * (kv_rows_nbytes(D) + kv_escapes_nbytes(D) + (int)kEscapeRoom);
  constexpr int merge = kKvWarps * kKvHeads * (D + 2) * 4;
  return (pages > merge ? pages : merge) + (int)sizeof(TieredTables);
}

/* A warp's 16 tokens of a page: probabilities as operand B, and what all before them is multiplied with. */
struct KvWeights {
  uint32_t b[2];
  float factor[2];
};

/* Does a warp see any of its tokens? */
__device__ __forceinline__ bool kv_sees(int first_seen, int n_tokens) {
  const int token = threadIdx.x / 32 * 16;
  return token < n_tokens && token + 16 > first_seen;
}

/* Scores and their exponentials. */
template <int D>
__device__ __forceinline__ KvWeights kv_score(KvState<D> &state, const uint32_t (&q)[D / 16][2], const uint8_t *rows,
                                              bool packed, int first_seen, int n_tokens, float scale) {
  const int lane = threadIdx.x % 32, token = threadIdx.x / 32 * 16;
  float s[4] = {0, 0, 0, 0};
#pragma unroll
  for (int k = 0; k < D / 16; k++) {
    uint32_t a[4];
    kv_keys<D>(a, rows, packed, token, 16 * k);
    mma_16x8x16(s, a, q[k][0], q[k][1]);
  }
  KvWeights w;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float most = -INFINITY;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int t = token + lane / 4 + 8 * half;
      float &score = s[2 * half + h];
      score = t >= first_seen && t < n_tokens ? score * scale : -INFINITY;
      most = fmaxf(most, score);
    }
#pragma unroll
    for (int d = 4; d < 32; d <<= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    most = fmaxf(most, state.most[h]);
    /* no token seen yet, or scores of -inf alone: nothing is added, and nothing there is changed */
    const float base = most == -INFINITY ? 0.0f : most;
    w.factor[h] = kv_exp2(state.most[h] - base);
    s[h] = kv_exp2(s[h] - base);
    s[2 + h] = kv_exp2(s[2 + h] - base);
    state.sum[h] = state.sum[h] * w.factor[h] + s[h] + s[2 + h];
    state.most[h] = most;
  }
  /* tokens g and g + 8 of heads 2 q, 2 q + 1 become heads g of tokens 2 q, 2 q + 1 and 8 more: operand B */
  w.b[0] = movmatrix(kv_bf16(s[0]) | kv_bf16(s[1]) << 16);
  w.b[1] = movmatrix(kv_bf16(s[2]) | kv_bf16(s[3]) << 16);
  return w;
}

template <int D>
__device__ __forceinline__ void kv_add(KvState<D> &state, const KvWeights &w, const uint8_t *rows, bool packed) {
#pragma unroll
  for (int c = 0; c < D / 16; c++) {
    float(&o)[4] = state.out[c];
#pragma unroll
    for (int i = 0; i < 4; i++) o[i] *= w.factor[i & 1];
    uint32_t a[4];
    kv_values<D>(a, rows, packed, threadIdx.x / 32 * 16, 16 * c);
    mma_16x8x16(o, a, w.b[0], w.b[1]);
  }
}

template <int D> __device__ __forceinline__ KvSource kv_source(const KvAttentionArgs &p, int64_t head, int unit, int which) {
  KvSource s = {nullptr, nullptr, kKvTokens};
  if (unit < p.pages) {
    s.page = (const uint8_t *)(which ? p.v_pages : p.k_pages)[head * p.pages + unit];
  } else {
    s.rows = (which ? p.v_tail : p.k_tail) + head * p.tail * D;
    s.n_tokens = p.tail;
  }
  return s;
}

/* Put sums of several parts together: weights of n parts by their maxima, in order; gives 1 / sum. */
__device__ __forceinline__ float kv_merge_weights(const float *parts, int n, int stride, float &most) {
  most = -INFINITY;
  for (int i = 0; i < n; i++) most = fmaxf(most, parts[i * stride]);
  float sum = 0;
  if (most == -INFINITY) return 0;
  for (int i = 0; i < n; i++) sum += kv_exp2(parts[i * stride] - most) * parts[i * stride + 1];
  return sum;
}

template <int D> __global__ void __launch_bounds__(kKvThreads, D <= 128 ? 2 : 1) kv_attention_kernel(const KvAttentionArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(128) uint8_t shared[];
#endif
  const int groups_of_heads = (p.heads / p.key_heads + kKvHeads - 1) / kKvHeads;
  const int split = blockIdx.x, key_head = blockIdx.y / groups_of_heads, group = blockIdx.y % groups_of_heads;
  const int sequence = blockIdx.z, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int shared_heads = p.heads / p.key_heads; /* query heads of a key head */
  const int64_t head = (int64_t)sequence * p.key_heads + key_head;
  const int first_head = key_head * shared_heads + group * kKvHeads;
  const int n_heads = min(kKvHeads, shared_heads - group * kKvHeads);

  TieredTables &tables = *(TieredTables *)shared;
  uint8_t *room = shared + sizeof(TieredTables);
  constexpr int held = kv_pages_held<D>();
  static_assert(kv_attention_shared<D>() <= 99 * 1024, "a block's shared memory on every architecture");
  KvShared at[held];
#pragma unroll
  for (int i = 0; i < held; i++) {
    at[i].rows = room + i * kv_rows_nbytes(D);
    at[i].escapes = room + held * kv_rows_nbytes(D) + i * (kv_escapes_nbytes(D) + (int)kEscapeRoom);
  }
  fill_tables(&tables);

  uint32_t q[D / 16][2];
  const uint16_t *from = p.q + ((int64_t)sequence * p.heads + first_head + lane / 4) * D + lane % 4 * 2;
#pragma unroll
  for (int k = 0; k < D / 16; k++)
#pragma unroll
    for (int i = 0; i < 2; i++) q[k][i] = lane / 4 < n_heads ? *(const uint32_t *)(from + 16 * k + 8 * i) : 0;

  KvState<D> state;
#pragma unroll
  for (int h = 0; h < 2; h++) state.most[h] = -INFINITY, state.sum[h] = 0;
#pragma unroll
  for (int c = 0; c < D / 16; c++)
#pragma unroll
    for (int i = 0; i < 4; i++) state.out[c][i] = 0;

  const int start = p.starts ? p.starts[sequence] : 0;
  const int units = p.pages + (p.tail ? 1 : 0), each = (units + p.splits - 1) / p.splits;
  const int end = min(units, (split + 1) * each);
  for (int unit = split * each; unit < end; unit++) {
    const int seen = start - unit * kKvTokens; /* first token of the page that is seen */
    const int n = unit < p.pages ? kKvTokens : p.tail;
    if (seen >= n) continue; /* all threads */
    const KvSource keys = kv_source<D>(p, head, unit, 0), values = kv_source<D>(p, head, unit, 1);
    const bool sees = kv_sees(seen, n);
    if (unit + 1 < min(end, p.pages)) {
      kv_prefetch<D>(kv_source<D>(p, head, unit + 1, 0).page);
      kv_prefetch<D>(kv_source<D>(p, head, unit + 1, 1).page);
    }
    __syncthreads(); /* nobody reads the page before any more, and the tables are filled */
    KvWeights w;
    if constexpr (held == 2) {
      const KvSource both[2] = {keys, values};
      kv_stage<D, 2>(at, both, tables);
      if (sees) w = kv_score<D>(state, q, at[0].rows, kv_is_packed(keys), seen, n, p.scale);
    } else {
      const KvSource first[1] = {keys}, second[1] = {values};
      kv_stage<D, 1>(at, first, tables);
      if (sees) w = kv_score<D>(state, q, at[0].rows, kv_is_packed(keys), seen, n, p.scale);
      __syncthreads(); /* nobody reads the keys any more */
      kv_stage<D, 1>(at, second, tables);
    }
    if (sees) kv_add<D>(state, w, at[held - 1].rows, kv_is_packed(values));
  }

  /* warps together: [warp][head][most, sum, D], head by head in the order of warps */
  __syncthreads();
  float *mine = (float *)room + warp * kKvHeads * (D + 2);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float sum = state.sum[h];
#pragma unroll
    for (int d = 4; d < 32; d <<= 1) sum += __shfl_xor_sync(~0u, sum, d);
    float *to = mine + (lane % 4 * 2 + h) * (D + 2);
    if (lane < 4) to[0] = state.most[h], to[1] = sum;
#pragma unroll
    for (int c = 0; c < D / 16; c++) {
      to[2 + 16 * c + lane / 4] = state.out[c][h];
      to[2 + 16 * c + lane / 4 + 8] = state.out[c][2 + h];
    }
  }
  __syncthreads();
  const float *parts = (const float *)room;
  constexpr int stride = kKvHeads * (D + 2);
  for (int i = threadIdx.x; i < n_heads * D; i += blockDim.x) {
    const int h = i / D, c = i % D;
    const float *of = parts + h * (D + 2);
    float most;
    const float sum = kv_merge_weights(of, kKvWarps, stride, most);
    float value = 0;
    if (most != -INFINITY)
      for (int w = 0; w < kKvWarps; w++) value += kv_exp2(of[w * stride] - most) * of[w * stride + 2 + c];
    if (p.splits == 1) {
      p.out[((int64_t)sequence * p.heads + first_head + h) * D + c] = (uint16_t)kv_bf16(sum > 0 ? value / sum : 0.0f);
    } else {
      float *to = p.partial + ((((int64_t)head * groups_of_heads + group) * p.splits + split) * kKvHeads + h) * (D + 2);
      if (c == 0) to[0] = most, to[1] = sum;
      to[2 + c] = value;
    }
  }
}

/* Ranges of pages together, in their order. A block a query head, D threads. */
template <int D> __global__ void __launch_bounds__(D) kv_merge_kernel(const KvAttentionArgs p) {
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
