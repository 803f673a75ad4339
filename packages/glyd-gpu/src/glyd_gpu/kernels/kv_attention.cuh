/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Attention of one new token a sequence over pages of keys and values.
 *
 * A block takes a range of a sequence's pages for one key head and up to eight
 * of the query heads that share it; its warps take pages in turn, each for
 * itself. A warp has a ring of strips, 16 channels each, that are copied to
 * shared memory ahead; it decodes one to a tile, puts corrections over it, and
 * reads operands of mma.sync by ldmatrix: K, tokens by channels, times Q of
 * eight heads; then V transposed, channels by tokens, times the probabilities,
 * which turn around by movmatrix. Every warp keeps maximum, sum and output of
 * its own tokens; at the end warps, then blocks, are put together in a fixed
 * order. So the bits depend on the division into ranges alone, not on how pages
 * are stored: plain pages go through the same mma in the same order.
 * Tests run this code on the CPU as well (tests/emulation).
 */
#ifndef GLYD_GPU_KV_ATTENTION_CUH
#define GLYD_GPU_KV_ATTENTION_CUH

#include "kv_page.cuh"

#ifndef GLYD_EMULATION
#include "mma_sync.cuh"
using glyd::mma_16x8x16;
#endif

constexpr int kKvHeads = 8;             /* query heads of a block: columns of the mma */
constexpr int kKvSteps = kKvTokens / 16; /* of a page: tokens of an mma */

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

/* Four 8 x 8 matrices of 16-bit values; a lane has the address of row lane % 8 of matrix lane / 8. */
template <bool Transposed> __device__ __forceinline__ void kv_ldmatrix(uint32_t (&a)[4], const uint8_t *row) {
#ifdef GLYD_EMULATION
  emulated_ldmatrix(a, row, Transposed);
#else
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
  if constexpr (Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(at)
                 : "memory");
#endif
}

/* How a block works: its warps, strips of a warp's ring, copies of the table of quads. */
template <int Warps, int Ring, int Copies> struct KvForm {
  static constexpr int kWarps = Warps, kRing = Ring, kCopies = Copies;
};
/* Where a block has 227 KiB of shared memory, and where it has 99. */
template <int D> struct KvForms {
  using Roomy = KvForm<12, 2, 4>;
  using Tight = KvForm<4, 3, 1>;
};
template <> struct KvForms<256> {
  using Roomy = KvForm<8, 3, 2>;
  using Tight = KvForm<4, 2, 1>;
};
/* What a slot of the ring has: a strip, and the first corrections of it, from a multiple of 16 bytes on; the others are
 * read where they are. */
constexpr uint32_t kKvHeld = 64; /* corrections: two a lane */
constexpr int kKvSlot = GLYD_KV_STRIP + kKvHeld * 2 + 16;
constexpr int kKvHeadersHeld = 3; /* of the page that is at work and of two to come */

/* Shared memory of a block: the table; the query as operands B of all strips; maxima and sums of warps; and of each warp
 * its output as [strips][32 lanes] of what an mma leaves (channels g, g and g + 8, g + 8 of 16, heads 2 q and 2 q + 1), a
 * tile, the ring, and headers of pages. */
template <int D> __host__ __device__ constexpr int kv_warp_shared(int ring) {
  return D / 16 * 512 + kKvTile + ring * kKvSlot + kKvHeadersHeld * (int)GLYD_KV_STRIPS_AT(D);
}
template <int D, class F> __host__ __device__ constexpr int kv_attention_shared() {
  return kKvQuadRows * 4 * F::kCopies + D / 16 * 256 + F::kWarps * (kKvHeads * 8 + kv_warp_shared<D>(F::kRing));
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

/* The pages of a warp: keys, then values, of every W-th page from one on; and what is on its way. */
template <int D, class F> struct KvStream {
  static_assert(2 * F::kRing < 2 * (D / 16), "a page's header is there when its first strip is asked for");
  const uint64_t *k_pages, *v_pages; /* of the first page */
  int n;                             /* keys and values, each counted */
  uint8_t *ring, *headers;
  const uint8_t *now, *next, *later; /* addresses: at work, and the two after it */
  int page, slot;                    /* that is at work */
  /* what is copied next: a strip of a page, by a lane; corrections before it */
  const uint8_t *asked, *asked_strip;
  int asked_page, asked_number, asked_slot;
  uint32_t asked_end, asked_most;
  bool asked_packed;

  __device__ __forceinline__ const uint8_t *address(int q) const {
    const int of = min(q, n - 1); /* any page where there is none: it is not used */
    return (const uint8_t *)(of % 2 ? v_pages : k_pages)[(int64_t)(of / 2) * F::kWarps];
  }
  __device__ __forceinline__ const uint8_t *header(int q) const { return headers + q % kKvHeadersHeld * GLYD_KV_STRIPS_AT(D); }
  __device__ __forceinline__ void ask_header(int q, const uint8_t *from) {
    if (q >= n) return;
    uint8_t *to = headers + q % kKvHeadersHeld * GLYD_KV_STRIPS_AT(D);
    for (uint32_t i = threadIdx.x % 32 * 16; i < GLYD_KV_STRIPS_AT(D); i += 512) copy_async16(to + i, from + i);
  }
  /* Turn to a page whose header is there. */
  __device__ __forceinline__ void turn(int q, const uint8_t *from) {
    asked_page = q, asked_number = 0;
    if (q >= n) return;
    const uint8_t *of = header(q);
    asked = from;
    asked_strip = from + GLYD_KV_STRIPS_AT(D) + threadIdx.x % 32 * 16;
    asked_packed = kv_is_packed(of);
    asked_most = kv_most_corrections<D>(of);
    asked_end = 0;
  }
  __device__ __forceinline__ void ask() {
    if (asked_page < n) {
      if (asked_packed) {
        const uint32_t lane = threadIdx.x % 32;
        uint8_t *to = ring + asked_slot * kKvSlot + lane * 16;
#pragma unroll
        for (uint32_t i = 0; i < GLYD_KV_STRIP; i += 512)
          if (i + 512 <= GLYD_KV_STRIP || lane * 16 < GLYD_KV_STRIP - i) copy_async16(to + i, asked_strip + i);
        const uint32_t first = asked_end / 8 * 8 + lane * 8;
        asked_end = kv_corrections_end<D>(header(asked_page), asked_most, asked_number);
        if (lane <= kKvHeld / 8 && first < asked_end) copy_async16(to + GLYD_KV_STRIP, asked + GLYD_KV_CORRECTIONS_AT(D) + 2 * first);
      }
      if constexpr (F::kRing > 1) asked_slot = asked_slot + 1 == F::kRing ? 0 : asked_slot + 1;
      asked_strip += GLYD_KV_STRIP;
      if (++asked_number == D / 16) turn(asked_page + 1, asked_page == page ? next : later);
    }
    cp_async_commit(); /* an empty one counts as well */
  }
  __device__ __forceinline__ void begin() {
    page = slot = asked_slot = 0;
    if (n == 0) return;
    now = address(0), next = address(1), later = address(2);
    ask_header(0, now);
    ask_header(1, next);
    cp_async_commit();
    cp_async_wait<0>();
    __syncwarp();
    turn(0, now);
#pragma unroll
    for (int i = 0; i < F::kRing; i++) ask();
  }
};

/* What is done with operands of keys, scores of 16 tokens each, and of values, output of 16 channels. */
struct KvUse {
  float s[kKvSteps][4];  /* scores; then two words each of the probabilities as operand B */
  const uint32_t *query; /* of the lane */
  float *out;            /* of the lane */
  float factor[2];       /* of the output that there is */
  float most[2], sum[2]; /* of heads 2 q and 2 q + 1 */
  bool is_values;
  __device__ __forceinline__ void begin() { most[0] = most[1] = -INFINITY, sum[0] = sum[1] = 0; }
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kKvSteps; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) s[i][j] = 0;
  }
  /* Scores to probabilities. Tokens g and g + 8 of heads 2 q, 2 q + 1 of every 16 tokens; those from `seen` up to n are
   * seen, or all. */
  __device__ __forceinline__ void weigh(int seen, int n, bool whole, float scale) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float now = -INFINITY;
#pragma unroll
      for (int i = 0; i < kKvSteps; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const int t = 16 * i + lane / 4 + 8 * half;
          float &score = s[i][2 * half + h];
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
        for (int half = 0; half < 2; half++) {
          float &score = s[i][2 * half + h];
          score = kv_exp2(score - base);
          sum[h] += score;
        }
    }
#pragma unroll
    for (int i = 0; i < kKvSteps; i++) { /* heads g of tokens 2 q, 2 q + 1 and 8 more: operand B */
      const uint32_t first = movmatrix(kv_bf16x2(s[i][0], s[i][1]));
      const uint32_t second = movmatrix(kv_bf16x2(s[i][2], s[i][3]));
      s[i][0] = __uint_as_float(first), s[i][1] = __uint_as_float(second);
    }
  }
  /* Maxima and sums [heads][2] of the warp's tokens. */
  __device__ __forceinline__ void end(float *merge) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
      for (int d = 4; d < 32; d <<= 1) sum[h] += __shfl_xor_sync(~0u, sum[h], d);
      float *to = merge + (lane % 4 * 2 + h) * 2;
      if (lane < 4) to[0] = most[h], to[1] = sum[h];
    }
  }
  /* A tile of 16 channels and 128 tokens; rows of tokens, or of channels. */
  template <bool Tokens> __device__ __forceinline__ void strip(int strip, const uint8_t *tile) {
    const uint32_t lane = threadIdx.x % 32;
    /* by which of two orders matrices stand: (8 rows further, 8 columns further) or the other way around */
    const uint32_t one = lane % 16, one_half = lane / 16, two = lane % 8 + lane / 16 * 8, two_half = lane / 8 % 2;
    constexpr int kStep = Tokens ? 512 : 32; /* to the next 16 tokens */
    if (is_values) {
      const uint8_t *at = tile + (Tokens ? kv_token_at((int)two, (int)two_half) : (int)(one * kKvRow + one_half * 16));
      float *to = out + strip * 128;
      const float4 old = *(const float4 *)to;
      float o[2][4] = {{old.x * factor[0], old.y * factor[1], old.z * factor[0], old.w * factor[1]}, {0, 0, 0, 0}};
#pragma unroll
      for (int i = 0; i < kKvSteps; i++) {
        uint32_t a[4];
        kv_ldmatrix<Tokens>(a, at + i * kStep);
        mma_16x8x16(o[i & 1], a, __float_as_uint(s[i][0]), __float_as_uint(s[i][1]));
      }
      *(float4 *)to = make_float4(o[0][0] + o[1][0], o[0][1] + o[1][1], o[0][2] + o[1][2], o[0][3] + o[1][3]);
    } else {
      const uint8_t *at = tile + (Tokens ? kv_token_at((int)one, (int)one_half) : (int)(two * kKvRow + two_half * 16));
      const uint32_t b0 = query[strip * 64], b1 = query[strip * 64 + 1];
#pragma unroll
      for (int i = 0; i < kKvSteps; i++) {
        uint32_t a[4];
        kv_ldmatrix<!Tokens>(a, at + i * kStep);
        mma_16x8x16(s[i], a, b0, b1);
      }
    }
  }
};

/* The query as operands B of all strips, [strips][32][2], by all threads of the block. */
template <int D> __device__ __forceinline__ void kv_fill_query(uint32_t *query, const uint16_t *q, int n_heads) {
  for (int i = threadIdx.x; i < D / 16 * 64; i += blockDim.x) {
    const int k = i / 64, l = i % 64 / 2, second = i % 2;
    query[i] = l / 4 < n_heads ? *(const uint32_t *)(q + l / 4 * D + l % 4 * 2 + 16 * k + 8 * second) : 0;
  }
}

/* A packed page at work, strip by strip. */
template <int D, class F>
__device__ __forceinline__ void kv_each_packed(KvStream<D, F> &of, uint8_t *tile, const uint32_t *table, KvUse &use) {
  const uint8_t *header = of.header(of.page), *bases = header + GLYD_KV_BASES_AT(D) + threadIdx.x % 16;
  const KvExtras extras = kv_extras<D>(header);
  const uint16_t *corrections = (const uint16_t *)(of.now + GLYD_KV_CORRECTIONS_AT(D));
  uint32_t first = 0;
#pragma unroll 1
  for (int strip = 0; strip < D / 16; strip++) {
    cp_async_wait<F::kRing - 1>();
    __syncwarp(); /* all copies are there, and nobody reads the tile any more */
    const uint8_t *slot = of.ring + of.slot * kKvSlot;
    const KvStrip w = kv_load_strip(slot);
    const uint16_t *held = (const uint16_t *)(slot + GLYD_KV_STRIP) + first % 8 + threadIdx.x % 32;
    const uint32_t one = held[0], two = held[32];
    const uint32_t base = bases[strip * 16];
    const uint32_t end = kv_corrections_end<D>(header, extras.most, strip), n = end > first ? end - first : 0;
    __syncwarp(); /* nobody reads the slot any more */
    of.ask();
    kv_decode_strip<F::kCopies>(tile, w, table, base);
    __syncwarp();
    if (n > 0) {
      kv_correct_one(tile, one, threadIdx.x % 32 < n, base);
      if (n > 32) kv_correct_one(tile, two, threadIdx.x % 32 + 32 < n, base);
      if (n > kKvHeld) kv_correct(tile, corrections + first, kKvHeld, n, base);
    }
    if (extras.n_exceptions != 0) kv_put_exceptions(tile, of.now, extras, (uint32_t)strip);
    first = end;
    if constexpr (F::kRing > 1) of.slot = of.slot + 1 == F::kRing ? 0 : of.slot + 1;
    __syncwarp();
    use.strip<false>(strip, tile);
  }
}

/* The same of plain rows; of a page, what comes after it goes on being asked for. */
template <int D, class F>
__device__ __forceinline__ void kv_each_plain(KvStream<D, F> *of, uint8_t *tile, const uint16_t *rows, int n, KvUse &use) {
#pragma unroll 1
  for (int strip = 0; strip < D / 16; strip++) {
    if (of) {
      cp_async_wait<F::kRing - 1>();
      __syncwarp();
      of->ask();
      if constexpr (F::kRing > 1) of->slot = of->slot + 1 == F::kRing ? 0 : of->slot + 1;
    }
    __syncwarp();
    kv_copy_strip<D>(tile, rows, strip, n);
    __syncwarp();
    use.strip<true>(strip, tile);
  }
}

/* The page at work, whatever it is. */
template <int D, class F>
__device__ __forceinline__ void kv_each_strip(KvStream<D, F> &of, uint8_t *tile, const uint32_t *table, KvUse &use) {
  of.ask_header(of.page + 2, of.later); /* goes with the next strip */
  const uint8_t *after = of.address(of.page + 3);
  if (kv_is_packed(of.header(of.page)))
    kv_each_packed<D, F>(of, tile, table, use);
  else
    kv_each_plain<D, F>(&of, tile, (const uint16_t *)(of.now + GLYD_KV_HEADER), kKvTokens, use);
  of.now = of.next, of.next = of.later, of.later = after;
  of.page++;
}

template <int D, class F>
__global__ void __launch_bounds__(F::kWarps * 32, 1) kv_attention_kernel(const KvAttentionArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(256) uint8_t shared[];
#endif
  constexpr int W = F::kWarps;
  const int groups_of_heads = (p.heads / p.key_heads + kKvHeads - 1) / kKvHeads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int shared_heads = p.heads / p.key_heads; /* query heads of a key head */

  uint32_t *table = (uint32_t *)shared;
  uint32_t *query = table + kKvQuadRows * F::kCopies; /* [strips][32][2]: operand B */
  float *merge = (float *)(query + D / 16 * 32 * 2);  /* [warps][heads][maximum, sum] */
  float *all_out = merge + W * kKvHeads * 2;
  constexpr int kOut = D / 16 * 128; /* floats of a warp */
  uint8_t *tile = (uint8_t *)(all_out + W * kOut) + warp * (kv_warp_shared<D>(F::kRing) - D / 16 * 512);
  float *out = all_out + warp * kOut + lane * 4;
  kv_fill_quads<F::kCopies>(table);

  KvStream<D, F> of;
  of.ring = tile + kKvTile;
  of.headers = of.ring + F::kRing * kKvSlot;
  const int64_t n_tasks = (int64_t)p.sequences * p.key_heads * groups_of_heads * p.splits;
#pragma unroll 1
  for (int64_t task = blockIdx.x; task < n_tasks; task += gridDim.x) {
    const int split = (int)(task % p.splits), group = (int)(task / p.splits % groups_of_heads);
    const int64_t head = task / p.splits / groups_of_heads; /* of all key heads of all sequences */
    const int sequence = (int)(head / p.key_heads), key_head = (int)(head % p.key_heads);
    const int first_head = key_head * shared_heads + group * kKvHeads;
    const int n_heads = min(kKvHeads, shared_heads - group * kKvHeads);
    const int start = p.starts ? p.starts[sequence] : 0;
    const int units = p.pages + (p.tail ? 1 : 0), each = (units + p.splits - 1) / p.splits;
    const int end = min(units, (split + 1) * each), end_pages = min(end, p.pages);
    int unit = split * each + warp;
    if (start / kKvTokens > unit) unit += (start / kKvTokens - unit + W - 1) / W * W; /* pages that nobody sees */
    of.n = unit < end_pages ? 2 * ((end_pages - unit + W - 1) / W) : 0;
    of.k_pages = p.k_pages + head * p.pages + unit, of.v_pages = p.v_pages + head * p.pages + unit;
    of.begin();
    __syncthreads(); /* nobody reads what the task before left */
    kv_fill_query<D>(query, p.q + ((int64_t)sequence * p.heads + first_head) * D, n_heads);
#pragma unroll
    for (int c = 0; c < D / 16; c++) *(uint4 *)(out + c * 128) = make_uint4(0, 0, 0, 0);
    __syncthreads();

    KvUse use;
    use.query = query + lane * 2, use.out = out;
    use.begin();
#pragma unroll 1
    for (; unit < end; unit += W) {
      const int seen = start - unit * kKvTokens; /* first token of the page that is seen */
      const bool is_page = unit < p.pages;       /* else the newest tokens */
      const int n = is_page ? kKvTokens : p.tail;
      const bool whole = is_page && seen <= 0; /* all of its tokens are seen */
      use.clear();
#pragma unroll 1
      for (int which = 0; which < 2; which++) {
        use.is_values = which != 0;
        if (is_page) {
          kv_each_strip<D, F>(of, tile, table, use);
        } else {
          const uint16_t *rows = (which ? p.v_tail : p.k_tail) + head * p.tail * D;
          kv_each_plain<D, F>(nullptr, tile, rows, n, use);
        }
        if (which) break;
        use.weigh(seen, n, whole, p.scale);
      }
    }
    cp_async_wait<0>();
    use.end(merge + warp * kKvHeads * 2);
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
        for (int v = 0; v < W; v++) value += kv_exp2(of_head[v * stride] - all) * from[v * kOut];
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
