/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Products of the layout tiered for many tokens, with split roles: C warpgroups
 * multiply 64 rows each, D warpgroups decode, one fills. Decoded weights go
 * through shared memory as bf16 at the product's exponents, so who decodes needs
 * no accumulators and who multiplies no tables.
 *
 * Three rings. Packed tiles (64 x 128) with their escapes and exceptions, filled
 * by bulk copies, and decoded ones (two halves of 64 columns, 128-byte swizzle),
 * belong to one decoding warpgroup a slot; activations (64 columns) are read by
 * all that multiply. Tiles are numbered by column step, then by row block.
 *
 * Exceptions are put into the decoded tile, at the product's exponent. Those that
 * it cannot hold (subnormals and the like beside a base far from them) are added
 * in fp32 at the end of a row tile, slowly.
 */
#ifndef GLYD_SPLIT_TIERED_SM90_CUH
#define GLYD_SPLIT_TIERED_SM90_CUH

#include "ring_meet_sm90.cuh"
#include "ring_tiered_sm90.cuh"
#include "search_places.cuh"
#include "split_launch_sm90.h"
#ifndef GLYD_EMULATION
#include "wgmma_shared_sm90.cuh"
#endif

namespace glyd {

struct SplitArgs : RingArgs {
  int packed_slots, decoded_slots, x_slots, packed_slot_bytes;
};
inline void set_room(SplitArgs &p, const SplitRoom &room) {
  p.escape_slot = room.escape_slot, p.packed_slot_bytes = room.packed_slot_bytes;
  p.packed_slots = room.packed_slots, p.decoded_slots = room.decoded_slots, p.x_slots = room.x_slots;
}

/* Registers of the roles. Of the D warpgroups the last warp fills, the one before lists exceptions, the
 * others decode. */
template <int M, int C, int D> struct SplitRegisters {
  static constexpr int kThreads = (C + D) * 128, kLaunched = 65536 / kThreads / 8 * 8,
                       kConsumer = M == 128 ? 104 : kLaunched,
                       kDecoder = (kLaunched * (C + D) - kConsumer * C) / D / 8 * 8;
  static_assert(kConsumer * C + kDecoder * D <= kLaunched * (C + D), "registers of a block");
  static_assert(kLaunched >= M / 2 + 26, "ptxas refuses products of more registers than a thread is launched with");
};
/* A parity says nothing to who has missed a phase, so who waits for a barrier waits for every phase of it: barriers of
 * tiles are not those of slots, but as many as it takes for the same warps to come back. */
struct SplitBars {
  uint32_t at;
  __device__ __forceinline__ uint32_t packed_full(int i) const { return at + 8 * i; }         /* of tile i mod W */
  __device__ __forceinline__ uint32_t packed_empty(int i) const { return at + 160 + 8 * i; }  /* of a slot */
  __device__ __forceinline__ uint32_t decoded_full(int i) const { return at + 288 + 8 * i; }  /* of tile i mod 16 */
  __device__ __forceinline__ uint32_t decoded_empty(int i) const { return at + 416 + 8 * i; } /* for tile i mod 2 W */
  __device__ __forceinline__ uint32_t x_full(int i) const { return at + 736 + 8 * i; }
  __device__ __forceinline__ uint32_t x_empty(int i) const { return at + 800 + 8 * i; }
  __device__ __forceinline__ uint32_t flags() const {
    return at + 864;
  } /* [4] of stream-K, then: far exceptions seen */
};

/* ---- exceptions ------------------------------------------------------------------ */
/* An exception at the product's exponent, or false when bf16 cannot hold it there. */
__device__ __forceinline__ bool at_product(uint32_t value, uint32_t base, uint32_t &out) {
  int e = value >> 7 & 0xFF;
  uint32_t m = value & 0x7F;
  out = value;
  if (e == 255 || (e == 0 && m == 0)) return true;
  if (e == 0) {
    const int up = __clz(m) - 24; /* leading bit to bit 7 */
    e = 1 - up, m = m << up & 0x7F;
  }
  e += 127 - (int)base;
  out = (value & 0x8000u) | (uint32_t)e << 7 | m;
  return e >= 1 && e <= kSplitExponentMax;
}

/* Units of a block: unit u is columns step u % steps of virtual tile u / steps, which is a row tile and a token tile. */
struct SplitWork {
  int u0, n, steps, token_tiles;
  struct Place {
    int tile, token_tile, k;
  };
  __device__ __forceinline__ Place at(int i) const {
    const int u = u0 + i, v = u / steps, tile = v / token_tiles;
    return {tile, v - tile * token_tiles, u - v * steps};
  }
  __device__ __forceinline__ void next(Place &p) const {
    if (++p.k < steps) return;
    p.k = 0;
    if (++p.token_tile == token_tiles) p.token_tile = 0, p.tile++;
  }
};

/* Lists the exceptions of a tile at patches: how many, which is the first, then places in the tile | values << 16 as far
 * as they fit. Of each row block it holds 32, and the next 32 are on their way. */
template <int C> struct ExceptionLister {
  uint32_t places[C], values[C], next_places[C], next_values[C], at[C], end[C], bases[C];
  const uint32_t *all_places[C];
  const uint16_t *all_values[C];

  __device__ __forceinline__ void load(int r, uint32_t from, uint32_t &place, uint32_t &value, int lane) {
    const bool in = from + lane < end[r];
    place = in ? all_places[r][from + lane] : ~0u;
    value = in ? all_values[r][from + lane] : 0;
  }
  __device__ __forceinline__ void start(const SplitArgs &p, int tile, int k, int lane) {
#pragma unroll
    for (int r = 0; r < C; r++) {
      const int block = tile * C + r;
      at[r] = end[r] = 0, bases[r] = 0, all_places[r] = p.places, all_values[r] = p.values;
      if (block < p.n_blocks) {
        const uint8_t *h = p.blocks + (size_t)block * GLYD_WEIGHTS_BLOCK_HEADER;
        const uint32_t count = *(const uint32_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
        const uint64_t first = *(const uint64_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST);
        bases[r] = ((const uint16_t *)(h + GLYD_WEIGHTS_BLOCK_AT_BASES))[lane];
        if (count <= p.n_exceptions && first <= p.n_exceptions - count) { /* else a pack that lies */
          end[r] = count, all_places[r] += first, all_values[r] += first;
          if (k) at[r] = first_at_least(all_places[r], count, (uint64_t)k * 8192, lane);
        }
      }
      load(r, at[r], places[r], values[r], lane);
      load(r, at[r] + 32, next_places[r], next_values[r], lane);
    }
  }
  __device__ __forceinline__ void list(const SplitArgs &p, int r, int k, uint32_t patches, uint32_t far_flag,
                                       int lane) {
    const uint32_t from = (uint32_t)k * 8192, to = from + 8192;
    uint32_t count = 0, begin = at[r];
    while (true) { /* places that do not ascend, which no writer makes, are passed over */
      const bool in = places[r] >= from && places[r] < to && places[r] >> 6 < (uint32_t)p.cols;
      const uint32_t mask = __ballot_sync(~0u, in), slot = count + __popc(mask & ((1u << lane) - 1)),
                     base = __shfl_sync(~0u, bases[r], (places[r] & 63) >> 1) >> (places[r] & 1) * 8 & 0xFF;
      if (in) {
        uint32_t value;
        if (!at_product(values[r], base, value)) value = 0, sts32(far_flag, 1);
        if (slot < kSplitPatches) sts32(patches + 16 + 4 * slot, (places[r] & 8191) | value << 16);
      }
      if (mask && !count) begin = at[r] + __ffs(mask) - 1;
      count += __popc(mask);
      if (at[r] + 32 >= end[r] || __any_sync(~0u, places[r] >= to)) break;
      at[r] += 32, places[r] = next_places[r], values[r] = next_values[r];
      load(r, at[r] + 32, next_places[r], next_values[r], lane);
    }
    if (lane == 0) sts32(patches, count), sts32(patches + 4, begin);
  }
  __device__ __forceinline__ void run(const SplitArgs &p, const SplitWork &w, uint32_t packed, const SplitBars &bars,
                                      int period, int lane) {
    SplitWork::Place place = w.at(0);
    uint32_t phase = 1, patches = packed + GLYD_WEIGHTS_TIERED_TILE + p.escape_slot;
    for (int i = 0, ps = 0, fs = 0; i < w.n; i++, w.next(place)) {
      if (i == 0 || place.k == 0) start(p, place.tile, place.k, lane);
#pragma unroll
      for (int r = 0; r < C; r++) {
        mb_wait(bars.packed_empty(ps), phase);
        list(p, r, place.k, patches + ps * p.packed_slot_bytes, bars.flags() + 16, lane);
        __syncwarp();
        if (lane == 0) mb_arrive(bars.packed_full(fs));
        if (++fs == period) fs = 0;
        if (++ps == p.packed_slots) ps = 0, phase ^= 1;
      }
    }
  }
};

/* A warp's exceptions of a tile, over what it has decoded. */
__device__ __forceinline__ void patch(uint32_t tile_at, uint32_t place, uint32_t value, int strip) {
  const uint32_t row = place & 63, col = place >> 6 & 127;
  if ((int)(row >> 4) == strip)
    sts16(tile_at + (col >> 6) * 8192 + row * 128 + (((col >> 3 & 7) ^ (row & 7)) << 4) + (col & 7) * 2, value);
}
/* more of them than were listed: rare */
__device__ __forceinline__ void patch_many(const SplitArgs &p, uint32_t tile_at, int block, uint32_t begin,
                                           uint32_t from, int strip, int lane) {
  const uint8_t *h = p.blocks + (size_t)block * GLYD_WEIGHTS_BLOCK_HEADER;
  const uint32_t count = *(const uint32_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
  const uint64_t start = *(const uint64_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST);
  if (count > p.n_exceptions || start > p.n_exceptions - count) return;
  for (uint32_t at = begin; at < count; at += 32) {
    const uint32_t place = at + lane < count ? p.places[start + at + lane] : ~0u;
    if (place >= from && place < from + 8192 && place >> 6 < (uint32_t)p.cols) {
      uint32_t value;
      if (!at_product(p.values[start + at + lane], h[GLYD_WEIGHTS_BLOCK_AT_BASES + (place & 63)], value)) value = 0;
      patch(tile_at, place, value, strip);
    }
    if (__any_sync(~0u, place >= from + 8192)) break;
  }
}

/* What bf16 cannot hold at the product's exponent: added in fp32, in the order of the list. */
template <int M>
__device__ __forceinline__ void add_far(float (&acc)[M / 2], const SplitArgs &p, int block, uint32_t from, uint32_t to,
                                        int strip, int tok, int lane) {
  if (block >= p.n_blocks) return;
  const uint8_t *h = p.blocks + (size_t)block * GLYD_WEIGHTS_BLOCK_HEADER;
  const uint32_t count = *(const uint32_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
  const uint64_t start = *(const uint64_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST);
  if (count > p.n_exceptions || start > p.n_exceptions - count) return;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t place = p.places[start + i], value = p.values[start + i], row = place & 63;
    uint32_t unused;
    if (place < from || place >= to || place >> 6 >= (uint32_t)p.cols || (int)(row >> 4) != strip ||
        at_product(value, h[GLYD_WEIGHTS_BLOCK_AT_BASES + row], unused) || (row & 7) != (uint32_t)lane >> 2)
      continue;
    const float w = bf16_float(value);
    const __nv_bfloat16 *x = p.x + (place >> 6);
#pragma unroll
    for (int j = 0; j < M / 8; j++)
#pragma unroll
      for (int q = 0; q < 2; q++) {
        const int t = tok + 8 * j + 2 * (lane & 3) + q;
        const float add = t < p.tokens ? w * __bfloat162float(x[(size_t)t * p.cols]) : 0.f;
        if (row & 8)
          acc[4 * j + 2 + q] += add;
        else
          acc[4 * j + q] += add;
      }
  }
}

/* ---- who fills --------------------------------------------------------------------- */
/* One warp for packed tiles and activations: whichever has room. A tile a lane: what it copies is looked up 32 tiles
 * ahead. */
template <int M, int C, int W> struct SplitFiller {
  uint32_t next_a, next_b, bytes; /* of escapes */
  uint64_t next_first, policy_w, policy_x;
  const uint8_t *next_src, *src, *escapes;

  __device__ __forceinline__ void look_ahead(const SplitArgs &p, const SplitWork &w, int i) {
    next_src = nullptr, next_a = next_b = 0, next_first = 0;
    if (i < w.n * C) {
      const SplitWork::Place at = w.at(i / C);
      const int block = at.tile * C + i % C;
      if (block < p.n_blocks) {
        const uint32_t *entry = p.index + (size_t)block * (p.n_tiles + 1) + at.k;
        next_a = entry[0], next_b = entry[1];
        next_first =
            *(const uint64_t *)(p.blocks + (size_t)block * GLYD_WEIGHTS_BLOCK_HEADER + GLYD_WEIGHTS_BLOCK_AT_ESCAPES);
        next_src = p.tiles + ((size_t)block * p.n_tiles + at.k) * GLYD_WEIGHTS_TIERED_TILE;
      }
    }
  }
  __device__ __forceinline__ void look_up(const SplitArgs &p, const SplitWork &w, int i) {
    const uint64_t first = next_first + next_a;
    const uint32_t units = next_b - next_a;
    const bool lies = !(next_b >= next_a && units * 16 <= (uint32_t)p.escape_slot - 16 && units <= p.n_escape_units &&
                        first <= p.n_escape_units - units); /* such a pack loads nothing */
    src = next_src, bytes = lies ? 0 : units * 16, escapes = p.escapes + (lies ? 0 : first * 16);
    look_ahead(p, w, i + 32);
  }
  __device__ __forceinline__ void run(const SplitArgs &p, const SplitWork &w, const CUtensorMap *mx, uint32_t x_at,
                                      uint32_t packed, const SplitBars &bars, int lane) {
    policy_w = w.token_tiles > 1 ? policy_evict_normal() : policy_evict_first(), policy_x = policy_evict_last();
    if (p.dependent != 2) grid_wait();
    look_ahead(p, w, lane);
    const int tiles = w.n * C;
    int tile = 0, ps = 0, fs = 0, half = 0, xs = 0;
    uint32_t pphase = 1, xphase = 1;
    SplitWork::Place place = w.at(0); /* of activations */
    auto one_tile = [&] {
      if (tile % 32 == 0) look_up(p, w, tile + lane);
      if (lane == tile % 32) {
        const uint32_t full = bars.packed_full(fs), to = packed + ps * p.packed_slot_bytes;
        mb_expect(full, src ? GLYD_WEIGHTS_TIERED_TILE + bytes : 0);
        if (src) {
          bulk(to, src, GLYD_WEIGHTS_TIERED_TILE, full, policy_w);
          if (bytes) bulk(to + GLYD_WEIGHTS_TIERED_TILE, escapes, bytes, full, policy_w);
        }
      }
      __syncwarp();
      tile++;
      if (++fs == W) fs = 0;
      if (++ps == p.packed_slots) ps = 0, pphase ^= 1;
    };
    if (p.dependent == 2)
      while (tile < min(p.packed_slots, tiles)) one_tile();
    grid_wait();
    while (tile < tiles || half < 2 * w.n) {
      if (half < 2 * w.n && __all_sync(~0u, mb_test(bars.x_empty(xs), xphase))) {
        if (elect()) {
          mb_expect(bars.x_full(xs), M * 128);
          tma2d(x_at + xs * (M * 128), mx, place.k * 128 + (half & 1) * 64, place.token_tile * M, bars.x_full(xs),
                policy_x);
        }
        __syncwarp();
        if (half++ & 1) w.next(place);
        if (++xs == p.x_slots) xs = 0, xphase ^= 1;
      }
      if (tile < tiles && __all_sync(~0u, mb_test(bars.packed_empty(ps), pphase))) one_tile();
    }
  }
};

/* ---- who decodes --------------------------------------------------------------------- */
/* Strips of 16 rows go to W warps in turn. */
template <int C, int W>
__device__ __forceinline__ void decode_loop(const SplitArgs &p, uint32_t packed, uint32_t decoded,
                                            const SplitBars &bars, const SplitWork &w, int warp, int lane) {
  const int tiles = w.n * C, rest = p.n_blocks - (p.row_tiles - 1) * C, /* of the last row tile */
      last = ((p.row_tiles - 1) * w.token_tiles * w.steps - w.u0) * C;  /* its first */
  const uint32_t exponents3 = in_register(kTier3Low);
  const uint32_t to = in_register(((lane >> 3 & 1) * 8 + (lane & 7)) * 128 + (((lane >> 4) ^ (lane & 7)) << 4));
  int strip = warp & 3, i = warp >> 2, ps = i % p.packed_slots, ts = i % p.decoded_slots, full = i, empty = i;
  uint32_t full_phase = 0, empty_phase = 0;
  while (i < tiles) {
    const uint32_t at = packed + ps * p.packed_slot_bytes, esc = at + GLYD_WEIGHTS_TIERED_TILE,
                   tile = decoded + ts * 16384, wait_phase = empty_phase ^ (empty < p.decoded_slots);
    mb_wait(bars.packed_full(full), full_phase);
    if (i < last || i % C < rest) {
      const uint32_t out = tile + strip * 2048 + to;
      decode_tiered(at + strip * 512 + lane * 16, esc, esc + p.escape_slot - 12, exponents3, strip * 32, lane,
                    [&](int v, const uint32_t *a) {
                      if (v == 0) mb_wait(bars.decoded_empty(empty), wait_phase);
                      const uint32_t o = (out ^ (v & 1) * 64) + (v >> 1) * 8192;
                      stmatrix4_rows(o, a[0], a[1], a[2], a[3]);
                      stmatrix4_rows(o ^ 32, a[4], a[5], a[6], a[7]);
                    });
      if (p.n_exceptions) {
        const uint32_t patches = esc + p.escape_slot, count = lds32(patches);
        if (count) {
          __syncwarp();
          if (count <= kSplitPatches) {
            for (uint32_t e = lane; e < count; e += 32) {
              const uint32_t v = lds32(patches + 16 + 4 * e);
              patch(tile, v & 8191, v >> 16, strip);
            }
          } else {
            const SplitWork::Place place = w.at(i / C);
            patch_many(p, tile, place.tile * C + i % C, lds32(patches + 4), (uint32_t)place.k * 8192, strip, lane);
          }
        }
      }
    } else {
      mb_wait(bars.decoded_empty(empty), wait_phase);
    }
    proxy_fence();
    __syncwarp();
    if (lane == 0) mb_arrive(bars.decoded_full(i & 15)), mb_arrive(bars.packed_empty(ps));
    strip += W;
    const int step = strip >> 2;
    strip &= 3, i += step, full += step, empty += step, ps += step, ts += step;
    if (full >= W) full -= W, full_phase ^= 1;
    if (empty >= 2 * W) empty -= 2 * W, empty_phase ^= 1;
    if (ps >= p.packed_slots) ps -= p.packed_slots;
    while (ts >= p.decoded_slots) ts -= p.decoded_slots;
  }
}

/* ---- who multiplies ------------------------------------------------------------------ */
struct SplitPlace { /* in the rings; tile i mod 16, its slot, and the tile that will have that slot next mod 2 W */
  int full, ts, next, xs;
  uint32_t tphase, xphase;
};
template <int M, int C, int W>
__device__ __forceinline__ void multiply_split(float (&acc)[M / 2], const SplitArgs &p, int n, SplitPlace &at,
                                               uint32_t x_at, uint32_t decoded, const SplitBars &bars, int lane) {
  const uint64_t descriptor = (1ull << 62) | ((uint64_t)64 << 32) | ((uint64_t)1 << 16); /* 128-byte swizzle */
#pragma unroll
  for (int i = 0; i < M / 2; i++) acc[i] = 0.f;
#pragma unroll
  for (int i = 0; i < M / 2; i++) pin(acc[i]);
#pragma unroll 1
  for (int j = 0; j < n; j++) {
    const int x0 = at.xs;
    const uint64_t a = descriptor | (decoded + at.ts * 16384) >> 4;
    mb_wait(bars.decoded_full(at.full), at.tphase);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      mb_wait(bars.x_full(at.xs), at.xphase);
      const uint64_t b = descriptor | (x_at + at.xs * (M * 128)) >> 4;
      wg_fence();
#pragma unroll
      for (int s = 0; s < 4; s++) WgmmaShared<M>::mma(acc, a + h * 512 + 2 * s, b + 2 * s);
      if (++at.xs == p.x_slots) at.xs = 0, at.xphase ^= 1;
    }
    wg_commit();
    wg_wait<0>();
    if (lane == 0) {
      mb_arrive(bars.decoded_empty(at.next));
      mb_arrive(bars.x_empty(x0));
      mb_arrive(bars.x_empty(x0 + 1 == p.x_slots ? 0 : x0 + 1));
    }
    if ((at.full += C) >= 16) at.full -= 16, at.tphase ^= 1;
    if ((at.ts += C) >= p.decoded_slots) at.ts -= p.decoded_slots;
    if ((at.next += C) >= 2 * W) at.next -= 2 * W;
  }
#pragma unroll
  for (int i = 0; i < M / 2; i++) pin(acc[i]);
}

template <int M, int C, int D>
__global__ void __launch_bounds__(SplitRegisters<M, C, D>::kThreads, 1)
    split_tiered_kernel(const __grid_constant__ CUtensorMap mx, const __grid_constant__ SplitArgs p) {
  using R = SplitRegisters<M, C, D>;
  constexpr int NA = M / 2, NB8 = M / 8, W = D * 4 - 2;
  const uint32_t x_at = (smem_u32(ring_memory) + kRingTables + 1023) & ~1023u, decoded = x_at + p.x_slots * (M * 128),
                 packed = decoded + p.decoded_slots * 16384;
  const SplitBars bars = {packed + p.packed_slots * p.packed_slot_bytes};
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, wg = warp >> 2, tid = threadIdx.x & 127;
  const int steps = p.n_tiles, token_tiles = (p.tokens + M - 1) / M, units = p.row_tiles * token_tiles * steps,
            rank = p.cluster > 1 ? (int)cluster_rank() : 0;
  int u0, u1;
  if (p.cluster) {
    const int first = blockIdx.x / p.cluster * steps;
    u0 = first + rank * steps / p.cluster, u1 = first + (rank + 1) * steps / p.cluster;
  } else {
    u0 = (int)((uint32_t)blockIdx.x * units / gridDim.x), u1 = (int)((uint32_t)(blockIdx.x + 1) * units / gridDim.x);
  }
  const SplitWork work = {u0, u1 - u0, steps, token_tiles};
  grid_release();
  if (threadIdx.x == 0) {
    for (int i = 0; i < W; i++) mb_init(bars.packed_full(i), p.n_exceptions ? 2 : 1);
    for (int i = 0; i < 16; i++) mb_init(bars.packed_empty(i), 4), mb_init(bars.decoded_full(i), 4);
    for (int i = 0; i < 2 * W; i++) mb_init(bars.decoded_empty(i), 4);
    for (int i = 0; i < 8; i++) mb_init(bars.x_full(i), 1), mb_init(bars.x_empty(i), 4 * C);
    sts32(bars.flags() + 16, 0);
    mb_fence_init();
  }
  if (wg < 2) build_table(threadIdx.x, lane);
  __syncthreads();
  if (wg >= C) {
    set_registers<R::kDecoder, R::kLaunched>();
    if (warp == (C + D) * 4 - 1) {
      SplitFiller<M, C, W> filler;
      filler.run(p, work, &mx, x_at, packed, bars, lane);
    } else if (warp == (C + D) * 4 - 2) {
      if (p.n_exceptions) {
        if (p.dependent != 2) grid_wait();
        ExceptionLister<C> exceptions;
        exceptions.run(p, work, packed, bars, W, lane);
      }
    } else {
      decode_loop<C, W>(p, packed, decoded, bars, work, warp - C * 4, lane);
    }
    __syncwarp();
    if (p.cluster > 1) cluster_arrive(), cluster_wait(), cluster_arrive(), cluster_wait();
  } else {
    set_registers<R::kConsumer, R::kLaunched>();
    const int strip = warp & 3;
    const uint32_t out_at = bars.at + kSplitBars + warp * kRingOut, flag = bars.flags() + 4 * wg;
    SplitPlace at = {wg, wg, (wg + p.decoded_slots) % (2 * W), 0, 0, 0};
    float acc[NA];
    if (p.dependent != 2) grid_wait();
    bool more = p.cluster > 0 || u1 > u0; /* a block of a cluster adds its part though it may have none */
    for (int u = u0; more;) {
      const SplitWork::Place place = work.at(u - u0);
      const int v_tile = place.tile * token_tiles + place.token_tile, k0 = place.k, n = min(steps - k0, u1 - u),
                block = place.tile * C + wg, tok = place.token_tile * M;
      const RowBases bases(p, block, strip * 16 + (lane >> 2));
      multiply_split<M, C, W>(acc, p, n, at, x_at, decoded, bars, lane);
      u += n, more = u < u1;
      grid_wait();
      const float f0 = RowBases::factor<GLYD_WEIGHTS_TIERED>(bases.low),
                  f1 = RowBases::factor<GLYD_WEIGHTS_TIERED>(bases.high);
#pragma unroll
      for (int i = 0; i < NB8; i++) acc[4 * i] *= f0, acc[4 * i + 1] *= f0, acc[4 * i + 2] *= f1, acc[4 * i + 3] *= f1;
      if (p.n_exceptions && lds32(bars.flags() + 16))
        add_far<M>(acc, p, block, (uint32_t)k0 * 8192, (uint32_t)(k0 + n) * 8192, strip, tok, lane);
      bool out = block < p.n_blocks;
      if (p.cluster > 1) {
        Output output(p, out_at, (int64_t)block * 64 + strip * 16, tok, lane);
        meet_in_shared<M, C>(acc, p, output, x_at, wg, 1, rank, tid, lane);
        continue;
      }
      if (n < steps) out = meet_in_memory<NA, C>(acc, p, v_tile, k0, steps, units, wg, tid, flag, out);
      if (out) {
        Output output(p, out_at, (int64_t)block * 64 + strip * 16, tok, lane);
#pragma unroll
        for (int i = 0; i < NB8; i += 2) output.sixteen(p, 8 * i, acc + 4 * i);
      }
    }
  }
}

} // namespace glyd

#endif
