/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Attention over few pages: where there is not a page for every warp, all warps
 * of a block work at one, a strip each. Scores are summed over the warps in
 * shared memory, in order; every warp weighs all of them and has the output of
 * its own channels. A block has one range of pages.
 */
#ifndef GLYD_GPU_KV_ATTENTION_WIDE_CUH
#define GLYD_GPU_KV_ATTENTION_WIDE_CUH

#include "kv_attention.cuh"

constexpr int kKvWideRing = 2; /* strips of a warp that are on their way */
/* Shared memory of a block: the table, the query, scores of a page; of each warp maxima and sums, its output, a tile, the
 * ring. */
template <int D> __host__ __device__ constexpr int kv_wide_shared() {
  return kKvQuadRows * 4 + D / 16 * 256 + kKvSteps * 512 + D / 16 * (kKvHeads * 8 + 512 + kKvTile + kKvWideRing * GLYD_KV_STRIP);
}

/* What a warp reads ahead of a page besides its strip; of a plain page all but the form may be anything. */
struct KvAhead {
  const uint8_t *page;
  uint4 header;
  uint32_t first, end, last, base; /* corrections before the strip, to its end, of the page */
};
template <int D> __device__ __forceinline__ KvAhead kv_look(const uint8_t *page, int strip) {
  KvAhead a;
  a.page = page;
  a.header = __ldg((const uint4 *)page);
  const uint16_t *ends = (const uint16_t *)(page + GLYD_KV_AT_ENDS);
  a.first = strip ? __ldg(ends + strip - 1) : 0;
  a.end = __ldg(ends + strip);
  a.last = __ldg(ends + D / 16 - 1);
  a.base = __ldg(page + GLYD_KV_BASES_AT(D) + strip * 16 + threadIdx.x % 16);
  return a;
}
/* The same, clamped, with a lane's first two corrections. */
struct KvKnown {
  KvExtras extras;
  uint32_t first, n, base, one, two;
  bool packed;
};
template <int D> __device__ __forceinline__ KvKnown kv_know(const KvAhead &a) {
  KvKnown k;
  k.packed = a.header.x >> 24 == GLYD_KV_PACKED;
  const uint32_t size = a.header.z, lane = threadIdx.x % 32;
  k.extras.most = size > GLYD_KV_CORRECTIONS_AT(D) ? (size - GLYD_KV_CORRECTIONS_AT(D)) / 2 : 0;
  const uint32_t last = min(a.last, k.extras.most), end = min(a.end, k.extras.most);
  k.extras.n_exceptions = min(a.header.w, (k.extras.most - last) / 2);
  k.extras.places = GLYD_KV_CORRECTIONS_AT(D) + 2 * last;
  k.first = min(a.first, end);
  k.n = k.packed ? end - k.first : 0;
  k.base = a.base;
  const uint16_t *corrections = (const uint16_t *)(a.page + GLYD_KV_CORRECTIONS_AT(D)) + k.first + lane;
  k.one = lane < k.n ? __ldg(corrections) : 0;
  k.two = lane + 32 < k.n ? __ldg(corrections + 32) : 0;
  return k;
}

template <int D> __global__ void __launch_bounds__(D * 2, D <= 128 ? 2 : 1) kv_attention_wide_kernel(const KvAttentionArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(256) uint8_t shared[];
#endif
  constexpr int W = D / 16;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t *table = (uint32_t *)shared, *query = table + kKvQuadRows;
  uint8_t *scores = (uint8_t *)(query + W * 64);                         /* [steps][32 lanes][4] floats */
  float *merge = (float *)(scores + kKvSteps * 512) + warp * kKvHeads * 2; /* [heads][maximum, sum] */
  float *out = (float *)(scores + kKvSteps * 512 + W * kKvHeads * 8) + warp * 128;
  uint8_t *tiles = scores + kKvSteps * 512 + W * (kKvHeads * 8 + 512), *tile = tiles + warp * kKvTile;
  uint8_t *ring = tiles + W * kKvTile + warp * kKvWideRing * GLYD_KV_STRIP;

  const int shared_heads = p.heads / p.key_heads, groups = (shared_heads + kKvHeads - 1) / kKvHeads;
  const int split = (int)(blockIdx.x % p.splits), group = (int)(blockIdx.x / p.splits % groups);
  const int64_t head = blockIdx.x / p.splits / groups;
  const int sequence = (int)(head / p.key_heads), key_head = (int)(head % p.key_heads);
  const int first_head = key_head * shared_heads + group * kKvHeads;
  const int n_heads = min(kKvHeads, shared_heads - group * kKvHeads);
  const int start = p.starts ? p.starts[sequence] : 0;
  const int units = p.pages + (p.tail ? 1 : 0), each = (units + p.splits - 1) / p.splits;
  const int end = min(units, (split + 1) * each), first_unit = max(split * each, start / kKvTokens);
  const int n_pages = 2 * max(min(end, p.pages) - first_unit, 0); /* keys and values, each counted */

  const uint64_t *k_pages = p.k_pages + head * p.pages + first_unit, *v_pages = p.v_pages + head * p.pages + first_unit;
  auto address = [&](int q) {
    const int of = min(q, n_pages - 1); /* any page where there is none: it is not used */
    return (const uint8_t *)(of % 2 ? v_pages : k_pages)[of / 2];
  };
  auto ask = [&](int q, const uint8_t *page) { /* whatever its form: a plain page is longer */
    if (q < n_pages) {
      uint8_t *to = ring + q % kKvWideRing * GLYD_KV_STRIP + lane * 16;
      const uint8_t *from = page + GLYD_KV_STRIPS_AT(D) + warp * GLYD_KV_STRIP + lane * 16;
#pragma unroll
      for (uint32_t i = 0; i < GLYD_KV_STRIP; i += 512)
        if (i + 512 <= GLYD_KV_STRIP || lane * 16 < (int)(GLYD_KV_STRIP - i)) copy_async16(to + i, from + i);
    }
    cp_async_commit();
  };
  KvAhead next = {}, later = {};
  KvKnown known = {};
  const uint8_t *after = nullptr;
  if (n_pages > 0) {
    const uint8_t *page0 = address(0), *page1 = address(1);
    after = address(2);
    ask(0, page0);
    ask(1, page1);
    const KvAhead now = kv_look<D>(page0, warp);
    next = kv_look<D>(page1, warp);
    later = next;
    known = kv_know<D>(now);
    next.page = page1;
    later.page = page0;
  }
  kv_fill_quads<1>(table);
  kv_fill_query<D>(query, p.q + ((int64_t)sequence * p.heads + first_head) * D, n_heads);
  *(uint4 *)(out + lane * 4) = make_uint4(0, 0, 0, 0);
  __syncthreads();

  KvUse use;
  use.query = query + warp * 64 + lane * 2, use.out = out + lane * 4;
  use.begin();
  const uint8_t *page = later.page; /* of what is known */
  int q = 0;
#pragma unroll 1
  for (int unit = first_unit; unit < end; unit++) {
    const int seen = start - unit * kKvTokens;
    const bool is_page = unit < p.pages;
    const int n = is_page ? kKvTokens : p.tail;
    use.clear();
#pragma unroll 1
    for (int which = 0; which < 2; which++) {
      use.is_values = which != 0;
      bool tokens = true;
      if (is_page) {
        cp_async_wait<kKvWideRing - 1>();
        __syncwarp();
        const KvStrip w = kv_load_strip(ring + q % kKvWideRing * GLYD_KV_STRIP);
        __syncwarp(); /* nobody reads the slot any more */
        ask(q + 2, after);
        const KvKnown k = known;
        const uint8_t *now = page;
        known = kv_know<D>(next);
        page = next.page;
        next = kv_look<D>(after, warp);
        after = address(q + 3);
        q++;
        tokens = !k.packed;
        if (k.packed) {
          kv_decode_strip<1>(tile, w, table, k.base);
          __syncwarp();
          if (k.n > 0) {
            kv_correct_one(tile, k.one, lane < (int)k.n, k.base);
            if (k.n > 32) kv_correct_one(tile, k.two, lane + 32 < (int)k.n, k.base);
            if (k.n > 64) kv_correct(tile, (const uint16_t *)(now + GLYD_KV_CORRECTIONS_AT(D)) + k.first, 64, k.n, k.base);
          }
          if (k.extras.n_exceptions != 0) kv_put_exceptions(tile, now, k.extras, (uint32_t)warp);
        } else {
          kv_copy_strip<D>(tile, (const uint16_t *)(now + GLYD_KV_HEADER), warp, kKvTokens);
        }
      } else {
        kv_copy_strip<D>(tile, (which ? p.v_tail : p.k_tail) + head * p.tail * D, warp, n);
      }
      __syncwarp();
      if (tokens)
        use.strip<true>(0, tile);
      else
        use.strip<false>(0, tile);
      if (which) break;
      __syncwarp(); /* nobody reads the tile: it has the warp's part of the scores now */
#pragma unroll
      for (int i = 0; i < kKvSteps; i++)
        *(float4 *)(tile + (i * 32 + lane) * 16) = make_float4(use.s[i][0], use.s[i][1], use.s[i][2], use.s[i][3]);
      __syncthreads();
      for (int i = warp; i < kKvSteps; i += W) {
        float4 all = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int v = 0; v < W; v++) {
          const float4 x = *(const float4 *)(tiles + v * kKvTile + (i * 32 + lane) * 16);
          all = make_float4(all.x + x.x, all.y + x.y, all.z + x.z, all.w + x.w);
        }
        *(float4 *)(scores + (i * 32 + lane) * 16) = all;
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kKvSteps; i++) {
        const float4 x = *(const float4 *)(scores + (i * 32 + lane) * 16);
        use.s[i][0] = x.x, use.s[i][1] = x.y, use.s[i][2] = x.z, use.s[i][3] = x.w;
      }
      use.weigh(seen, n, is_page && seen <= 0, p.scale);
    }
    __syncwarp(); /* nobody reads the tile of values any more */
  }
  cp_async_wait<0>();
  use.end(merge);
  __syncwarp();
  for (int i = lane; i < n_heads * 16; i += 32) {
    const int h = i / 16, c = i % 16;
    const float value = out[(c % 8 * 4 + h / 2) * 4 + c / 8 * 2 + h % 2], total = merge[2 * h + 1];
    if (p.splits == 1) {
      p.out[((int64_t)sequence * p.heads + first_head + h) * D + warp * 16 + c] =
          (uint16_t)kv_bf16(total > 0 ? value / total : 0.0f);
    } else {
      float *to = p.partial + ((int64_t)blockIdx.x * kKvHeads + h) * (D + 2);
      if (warp == 0 && c == 0) to[0] = merge[2 * h], to[1] = total;
      to[2 + warp * 16 + c] = value;
    }
  }
}

#endif
