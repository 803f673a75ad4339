/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Attention of one new token a sequence over pages of keys and values.
 *
 * A block takes a range of a sequence's pages for one key head and up to eight
 * of the query heads that share it; its warps take pages, or slices of pages, in
 * turn, each for itself. A strip of 16 channels is decoded to registers, where
 * keys turn around by movmatrix and are the operand of scores (16 tokens, 16
 * channels, times Qᵀ of 8 heads by mma.sync); exponentials turn around in the
 * same way and meet Vᵀ, which is what a strip of values decodes to. Every warp
 * keeps maximum, sum and output of its own tokens; at the end warps, then
 * blocks, are put together in a fixed order. So the bits depend on the division
 * into ranges alone, not on how pages are stored: plain pages go through the
 * same mma in the same order.
 *
 * Never run on a GPU yet: tests run this code on the CPU (tests/emulation).
 */
#ifndef GLYD_GPU_KV_ATTENTION_CUH
#define GLYD_GPU_KV_ATTENTION_CUH

#include <type_traits>

#include "kv_page.cuh"

#ifndef GLYD_EMULATION
#include "mma_sync.cuh"
using glyd::mma_16x8x16;
#endif

constexpr int kKvHeads = 8;  /* query heads of a block: columns of the mma */
constexpr int kKvWarps = 4;  /* of a block */
constexpr int kKvThreads = kKvWarps * 32;
constexpr int kKvParts = 4; /* of a page: 32 tokens each */
static_assert(kKvParts * 32 == kKvTokens, "a page's tokens");

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

/* Shared memory of a warp: output of its tokens as [strips][32 lanes] of what an mma leaves (channels g, g and g + 8, g
 * + 8 of 16, heads 2 q and 2 q + 1), escapes of a page. Of a block: tables, operands of all strips of the query, then
 * maxima and sums. */
__host__ __device__ constexpr int kv_escapes_held(int channels) { return 24 * channels + 64; } /* twice what is usual */
template <int D> __host__ __device__ constexpr int kv_warp_shared() {
  return D / 16 * 32 * 16 + kv_escapes_held(D) + (int)kEscapeRoom;
}
template <int D> __host__ __device__ constexpr int kv_attention_shared() {
  return (int)sizeof(TieredTables) + D / 16 * 32 * 8 + kKvWarps * kKvHeads * 8 + kKvWarps * kv_warp_shared<D>();
}

/* A page, what its header says, and the exceptions that lane i has: number i. */
struct KvOpened {
  const uint8_t *page;
  const uint16_t *places;
  uint32_t n_exceptions;
  uint32_t mine; /* place | value << 16 */
};

/* Escapes to shared memory and exceptions to lanes, by a warp; a packed page. */
template <int D, bool kHeld> __device__ __forceinline__ KvOpened kv_open(uint8_t *escapes, const uint8_t *page) {
  const uint32_t lane = threadIdx.x % 32, all = kv_escapes_end(page, (D + GLYD_KV_GROUP - 1) / GLYD_KV_GROUP - 1);
  __syncwarp(); /* nobody reads the escapes before any more */
  if (kHeld)
    for (uint32_t i = lane * 16; i < all; i += 32 * 16) copy_async16(escapes + i, page + GLYD_KV_ESCAPES_AT(D) + i);
  cp_async_commit();
  KvOpened o;
  o.page = page;
  const uint32_t size = *(const uint32_t *)(page + GLYD_KV_AT_SIZE), at = GLYD_KV_ESCAPES_AT(D) + all;
  const uint32_t most = size > at ? (size - at) / 4 : 0, said = *(const uint32_t *)(page + GLYD_KV_AT_EXCEPTIONS);
  o.n_exceptions = said < most ? said : most;
  o.places = (const uint16_t *)(page + at);
  o.mine = 0;
  if (lane < o.n_exceptions) o.mine = o.places[lane] | (uint32_t)o.places[o.n_exceptions + lane] << 16;
  cp_async_wait<0>();
  __syncwarp();
  return o;
}
/* Exception i: place | value << 16; i is the same in all lanes. */
__device__ __forceinline__ uint32_t kv_exception(const KvOpened &o, uint32_t i) {
  if (i < 32) return __shfl_sync(~0u, o.mine, (int)i);
  return o.places[i] | (uint32_t)o.places[o.n_exceptions + i] << 16;
}

/* Put exceptions from `first` up to `last`, which are of this strip, over 32 tokens of it. */
__device__ __forceinline__ void kv_patch_part(const KvOpened &o, uint32_t first, uint32_t last, int part,
                                              uint32_t (&a)[8]) {
  for (uint32_t i = first; i < last; i++) {
    const uint32_t e = kv_exception(o, i), token = e % kKvTokens, channel = e / kKvTokens % 16;
    if ((int)(token / 32) != part || channel % 8 * 4 + token % 8 / 2 != threadIdx.x % 32) continue;
    const uint32_t at = token / 16 % 2 * 4 + token / 8 % 2 * 2 + channel / 8, shift = token % 2 * 16;
    const uint32_t keep = 0xFFFF0000u >> shift, put = e >> 16 << shift;
#pragma unroll
    for (uint32_t j = 0; j < 8; j++) a[j] = j == at ? (a[j] & keep) | put : a[j];
  }
}

/* Where a thread's escapes start in part `first` of four, as `tiered_thread` says for part 0; codes move to the front. */
template <int P, class Escapes>
__device__ __forceinline__ TieredThread kv_thread(const Escapes &e, uint4 codes, uint32_t warp, int first) {
  TieredThread t = tiered_thread(e, codes, warp);
  if constexpr (P < kKvParts) {
    uint32_t n2 = 0, n3 = 0;
#pragma unroll
    for (int v = 0; v < kKvParts - P; v++) {
      const uint32_t n = 2 * codes_3(t.codes[v]), w = window32(e, min(t.digits + n2, t.last_bit));
      const uint32_t threes = __popc(w & (w >> 1) & __funnelshift_rc(0x55555555u, 0, 32 - n));
      n2 += v < first ? n : 0;
      n3 += v < first ? 4 * threes : 0;
    }
    t.digits += n2;
    t.codes3 += n3;
#pragma unroll
    for (int j = 0; j < P; j++) {
#pragma unroll
      for (int v = P; v < kKvParts; v += P) t.codes[j] = v == first ? t.codes[v + j] : t.codes[j];
    }
  }
  return t;
}

/* A thread's part of a strip, or of a slice of P parts of it. */
template <int P> struct KvSlice {
  uint4 sign_mantissa[P], codes;
  uint32_t factors[2]; /* of channels g and g + 8, twice in a word */
};
template <int D, int P>
__device__ __forceinline__ void kv_load_slice(KvSlice<P> &w, const uint8_t *page, int strip, int first) {
  const uint4 *from = (const uint4 *)(page + GLYD_KV_STRIPS_AT(D) + strip * GLYD_KV_STRIP) + threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < P; k++) w.sign_mantissa[k] = __ldcs(from + 32 * (first + k));
  w.codes = __ldcs(from + 128);
  const uint8_t *bases = page + GLYD_KV_BASES_AT + strip * 16 + threadIdx.x % 32 / 4;
  w.factors[0] = (bases[0] * 0x80u) * 0x10001u; /* bf16 with that exponent; base 0: 0 */
  w.factors[1] = (bases[8] * 0x80u) * 0x10001u;
}

/* Go through P parts, from `first_part` on, of a packed page strip by strip: use(strip, i, a) gets 32 tokens of 16
 * channels, part i of the slice, as two operands A of channels times tokens. */
template <int D, int P, class Escapes, class Use>
__device__ __forceinline__ void kv_each_strip(uint8_t *escapes, const uint8_t *page, const TieredTables &tables,
                                              int first_part, Use &use) {
  constexpr bool kHeld = std::is_same<Escapes, SharedEscapes>::value;
  constexpr uint32_t room = kHeld ? kv_escapes_held(D) / 16 * 16 : kv_escapes_nbytes(D) / 16 * 16;
  KvSlice<P> next;
  kv_load_slice<D, P>(next, page, 0, first_part);
  const KvOpened o = kv_open<D, kHeld>(escapes, page);
  uint32_t exception = 0, place = o.n_exceptions ? kv_exception(o, 0) & 0xFFFF : ~0u;
#pragma unroll 1
  for (int strip = 0; strip < D / 16; strip++) {
    const KvSlice<P> w = next;
    if (strip + 1 < D / 16) kv_load_slice<D, P>(next, page, strip + 1, first_part);
    const int group = strip / 4;
    uint32_t first = group ? kv_escapes_end(page, group - 1) : 0, end = kv_escapes_end(page, group);
    first = first < room - 16 ? first : room - 16;
    end = end < first + 16 ? first + 16 : end < room ? end : room;
    const Escapes e = {kHeld ? escapes + first : page + GLYD_KV_ESCAPES_AT(D) + first, end - first};
    const uint32_t first_exception = exception;
    while (place / (16 * kKvTokens) == (uint32_t)strip) {
      exception++;
      place = exception < o.n_exceptions ? kv_exception(o, exception) & 0xFFFF : ~0u;
    }
    TieredThread t = kv_thread<P>(e, w.codes, strip % 4, first_part);
    use.begin(strip);
#pragma unroll
    for (int i = 0; i < P; i++) {
      uint32_t a[8];
      decode_tiered(e, tables, t, i, w.sign_mantissa[i], a);
#pragma unroll
      for (int j = 0; j < 8; j++) a[j] = kv_times(a[j], w.factors[j & 1]);
      if (first_exception != exception) kv_patch_part(o, first_exception, exception, first_part + i, a);
      use.part(i, a, false);
    }
    use.end();
  }
}

/* Escapes of most pages fit in shared memory; the others are read where they are. */
template <int D, int P, class Use>
__device__ __forceinline__ void kv_each_packed(uint8_t *escapes, const uint8_t *page, const TieredTables &tables,
                                               int first_part, Use &use) {
  if (kv_escapes_end(page, (D + GLYD_KV_GROUP - 1) / GLYD_KV_GROUP - 1) <= kv_escapes_held(D))
    kv_each_strip<D, P, SharedEscapes>(escapes, page, tables, first_part, use);
  else
    kv_each_strip<D, P, GlobalEscapes>(escapes, page, tables, first_part, use);
}

/* The same of plain rows, which give operands of tokens times channels. */
template <int D, int P, class Use>
__device__ __forceinline__ void kv_each_plain(const uint16_t *rows, int n_tokens, int first_part, Use &use) {
  const int lane = threadIdx.x % 32, token = 32 * first_part + lane / 4;
  const uint16_t *from = rows + token * D + lane % 4 * 2;
#pragma unroll 1
  for (int strip = 0; strip < D / 16; strip++) {
    use.begin(strip);
#pragma unroll
    for (int i = 0; i < P; i++) {
      uint32_t a[8];
#pragma unroll
      for (int j = 0; j < 8; j++) { /* channels 8 (j & 1) …, tokens 8 (j >> 1) … */
        const bool there = token + 32 * i + 8 * (j >> 1) < n_tokens;
        a[j] = there ? *(const uint32_t *)(from + (32 * i + 8 * (j >> 1)) * D + strip * 16 + 8 * (j & 1)) : 0;
      }
      use.part(i, a, true);
    }
    use.end();
  }
}

template <int D> __device__ __forceinline__ KvSource kv_source(const KvAttentionArgs &p, int64_t head, int unit, int which) {
  KvSource s = {nullptr, nullptr, kKvTokens};
  if (unit < p.pages) {
    s.page = (const uint8_t *)(which ? p.v_pages : p.k_pages)[head * p.pages + unit];
    s.rows = (const uint16_t *)(s.page + GLYD_KV_HEADER);
  } else {
    s.rows = (which ? p.v_tail : p.k_tail) + head * p.tail * D;
    s.n_tokens = p.tail;
  }
  return s;
}

/* Ask for a page that comes next, by a warp: what every page is longer than. */
template <int D> __device__ __forceinline__ void kv_ask(const uint8_t *page) {
  for (uint32_t i = threadIdx.x % 32 * 128; i < GLYD_KV_ESCAPES_AT(D) + 12 * D; i += 32 * 128) {
#ifndef GLYD_EMULATION
    asm volatile("prefetch.global.L2 [%0];" ::"l"(page + i));
#else
    (void)*(const volatile uint8_t *)(page + i);
#endif
  }
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

/* What is done with operands of keys: scores of 16 tokens each. */
template <int P> struct KvScores {
  float (&s)[2 * P][4];
  const uint32_t *query; /* of the lane */
  uint32_t b0, b1;
  __device__ __forceinline__ void begin(int strip) { b0 = query[strip * 64], b1 = query[strip * 64 + 1]; }
  __device__ __forceinline__ void part(int i, const uint32_t (&a)[8], bool tokens_first) {
#pragma unroll
    for (int j = 0; j < 2; j++) {
      uint32_t x[4] = {a[4 * j], a[4 * j + 2], a[4 * j + 1], a[4 * j + 3]};
#pragma unroll
      for (int k = 0; k < 4; k++) x[k] = tokens_first ? x[k] : movmatrix(x[k]);
      mma_16x8x16(s[2 * i + j], x, b0, b1);
    }
  }
  __device__ __forceinline__ void end() {}
};
/* And of values: output of 16 channels. */
template <int P> struct KvSums {
  const uint32_t (&b)[2 * P][2];
  const float (&factor)[2]; /* of what there is */
  float *out;               /* of the lane */
  float o[4];
  __device__ __forceinline__ void begin(int strip) {
    out += strip ? 128 : 0;
#pragma unroll
    for (int i = 0; i < 4; i++) o[i] = out[i] * factor[i & 1];
  }
  __device__ __forceinline__ void part(int i, const uint32_t (&a)[8], bool tokens_first) {
#pragma unroll
    for (int j = 0; j < 2; j++) {
      uint32_t x[4];
#pragma unroll
      for (int k = 0; k < 4; k++) x[k] = tokens_first ? movmatrix(a[4 * j + k]) : a[4 * j + k];
      mma_16x8x16(o, x, b[2 * i + j][0], b[2 * i + j][1]);
    }
  }
  __device__ __forceinline__ void end() {
#pragma unroll
    for (int i = 0; i < 4; i++) out[i] = o[i];
  }
};

#ifndef GLYD_KV_BLOCKS /* a multiprocessor's */
#define GLYD_KV_BLOCKS(D) ((D) <= 128 ? 4 : 3)
#endif

template <int D, int P>
__global__ void __launch_bounds__(kKvThreads, GLYD_KV_BLOCKS(D)) kv_attention_kernel(const KvAttentionArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(128) uint8_t shared[];
#endif
  constexpr int kSlices = kKvParts / P;
  const int groups_of_heads = (p.heads / p.key_heads + kKvHeads - 1) / kKvHeads;
  const int split = blockIdx.x, key_head = blockIdx.y / groups_of_heads, group = blockIdx.y % groups_of_heads;
  const int sequence = blockIdx.z, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int shared_heads = p.heads / p.key_heads; /* query heads of a key head */
  const int64_t head = (int64_t)sequence * p.key_heads + key_head;
  const int first_head = key_head * shared_heads + group * kKvHeads;
  const int n_heads = min(kKvHeads, shared_heads - group * kKvHeads);

  TieredTables &tables = *(TieredTables *)shared;
  uint32_t *query = (uint32_t *)(shared + sizeof(TieredTables));     /* [strips][32][2]: operand B */
  float *merge = (float *)(query + D / 16 * 32 * 2);                 /* [warps][heads][maximum, sum] */
  uint8_t *warps = (uint8_t *)(merge + kKvWarps * kKvHeads * 2);     /* [warps][kv_warp_shared] */
  float *out = (float *)(warps + warp * kv_warp_shared<D>()) + lane * 4; /* [strips][32][4] */
  uint8_t *escapes = warps + warp * kv_warp_shared<D>() + D / 16 * 32 * 16;
  static_assert(kv_attention_shared<D>() <= 227 * 1024 / GLYD_KV_BLOCKS(D) - 1024, "shared memory");
  fill_tables(&tables);
  for (int i = threadIdx.x; i < D / 16 * 64; i += kKvThreads) {
    const int k = i / 64, l = i % 64 / 2, second = i % 2;
    const uint16_t *from = p.q + ((int64_t)sequence * p.heads + first_head + l / 4) * D + l % 4 * 2 + 16 * k + 8 * second;
    query[i] = l / 4 < n_heads ? *(const uint32_t *)from : 0;
  }
#pragma unroll
  for (int c = 0; c < D / 16; c++) *(uint4 *)(out + c * 128) = make_uint4(0, 0, 0, 0);
  __syncthreads();

  float most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  const int start = p.starts ? p.starts[sequence] : 0;
  const int units = (p.pages + (p.tail ? 1 : 0)) * kSlices, each = (units + p.splits - 1) / p.splits;
  const int end = min(units, (split + 1) * each);
  for (int unit = split * each + warp; unit < end; unit += kKvWarps) {
    const int page = unit / kSlices, part = unit % kSlices * P;
    const int seen = start - page * kKvTokens; /* first token of the page that is seen */
    const int n = page < p.pages ? kKvTokens : p.tail;
    if (seen >= min(n, 32 * (part + P)) || 32 * part >= n) continue; /* all of the warp */
    const KvSource keys = kv_source<D>(p, head, page, 0), values = kv_source<D>(p, head, page, 1);
    if (page < p.pages) kv_ask<D>(values.page);

    float s[2 * P][4];
#pragma unroll
    for (int i = 0; i < 2 * P; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) s[i][j] = 0;
    {
      KvScores<P> scores = {s, query + lane * 2, 0, 0};
      if (kv_is_packed(keys))
        kv_each_packed<D, P>(escapes, keys.page, tables, part, scores);
      else
        kv_each_plain<D, P>(keys.rows, n, part, scores);
    }
    if (unit + kKvWarps < end && (unit + kKvWarps) / kSlices < p.pages)
      kv_ask<D>((const uint8_t *)p.k_pages[head * p.pages + (unit + kKvWarps) / kSlices]);

    /* tokens g and g + 8 of heads 2 q, 2 q + 1 of every 16 tokens */
    float factor[2];
    uint32_t b[2 * P][2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float now = -INFINITY;
#pragma unroll
      for (int i = 0; i < 2 * P; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const int t = 32 * part + 16 * i + lane / 4 + 8 * half;
          float &score = s[i][2 * half + h];
          score = t >= seen && t < n ? score * p.scale : -INFINITY;
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
      for (int i = 0; i < 2 * P; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          float &score = s[i][2 * half + h];
          score = kv_exp2(score - base);
          sum[h] += score;
        }
    }
#pragma unroll
    for (int i = 0; i < 2 * P; i++) /* heads g of tokens 2 q, 2 q + 1 and 8 more: operand B */
#pragma unroll
      for (int half = 0; half < 2; half++)
        b[i][half] = movmatrix(kv_bf16(s[i][2 * half]) | kv_bf16(s[i][2 * half + 1]) << 16);

    KvSums<P> sums = {b, factor, out, {0, 0, 0, 0}};
    if (kv_is_packed(values))
      kv_each_packed<D, P>(escapes, values.page, tables, part, sums);
    else
      kv_each_plain<D, P>(values.rows, n, part, sums);
  }

#pragma unroll
  for (int h = 0; h < 2; h++) {
#pragma unroll
    for (int d = 4; d < 32; d <<= 1) sum[h] += __shfl_xor_sync(~0u, sum[h], d);
    float *to = merge + (warp * kKvHeads + lane % 4 * 2 + h) * 2;
    if (lane < 4) to[0] = most[h], to[1] = sum[h];
  }
  __syncthreads();
  /* warps together, head by head in the order of warps */
  for (int i = threadIdx.x; i < n_heads * D; i += kKvThreads) {
    const int h = i / D, c = i % D;
    const float *of = merge + h * 2;
    constexpr int stride = kKvHeads * 2, wide = kv_warp_shared<D>() / 4;
    const float *from = (const float *)warps + c / 16 * 128 + (c % 8 * 4 + h / 2) * 4 + c / 8 % 2 * 2 + h % 2;
    float all;
    const float total = kv_merge_weights(of, kKvWarps, stride, all);
    float value = 0;
    if (all != -INFINITY)
      for (int w = 0; w < kKvWarps; w++) value += kv_exp2(of[w * stride] - all) * from[w * wide];
    if (p.splits == 1) {
      p.out[((int64_t)sequence * p.heads + first_head + h) * D + c] = (uint16_t)kv_bf16(total > 0 ? value / total : 0.0f);
    } else {
      float *to = p.partial + ((((int64_t)head * groups_of_heads + group) * p.splits + split) * kKvHeads + h) * (D + 2);
      if (c == 0) to[0] = all, to[1] = total;
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
