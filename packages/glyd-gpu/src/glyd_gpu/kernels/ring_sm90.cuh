/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Products through a ring in shared memory: what both kernels share.
 *
 * One warp fills the ring: packed tiles by bulk copies, activations by TMA
 * (128-byte swizzle, zeros past the last token and column). Warpgroups decode
 * their 64 rows to registers, the A operand of wgmma; the activations are B.
 * Exceptions: ring_exceptions_sm90.cuh.
 *
 * A stage: activations [kb * wk tiles][tokens x tile columns], tiles [wr][kb * wk],
 * escapes (tiered) [wr][kb * wk] slots of escape_slot bytes.
 */
#ifndef GLYD_RING_SM90_CUH
#define GLYD_RING_SM90_CUH

#include "glyd/format_weights.h"
#include "ring_launch_sm90.h"
#ifdef GLYD_EMULATION /* on the CPU, in tests */
#include "emulated_ring_sm90.h"
#else
#include "ptx_sm90.cuh"
#include "wgmma_sm90.cuh"
#endif

namespace glyd {

#ifndef GLYD_EMULATION
extern __shared__ __align__(1024) uint8_t ring_memory[];
#endif

struct RingArgs {
  const uint8_t *blocks;     /* [n_blocks, 128] row block headers */
  const uint8_t *tiles;      /* [n_blocks, n_tiles, tile bytes] */
  const uint8_t *escapes;    /* [n_escape_units, 16] */
  const uint32_t *index;     /* [n_blocks, n_tiles + 1] */
  const uint32_t *places;    /* [n_exceptions] */
  const uint16_t *values;    /* [n_exceptions] bf16 */
  const __nv_bfloat16 *x;    /* [tokens, cols] bf16, row-major */
  const __nv_bfloat16 *bias; /* [rows] bf16, or null */
  __nv_bfloat16 *y;          /* [tokens, rows] bf16, row-major */
  float *partials;           /* stream-K: [workers][2][wr][64 * M] */
  unsigned *counters;        /* stream-K: [n_blocks + wr], zero between launches */
  uint16_t *transposed;      /* null, or [token tiles][cols][tokens of a tile] x, in the order of a thread's sums */
  unsigned *transposing;     /* parts of it that are there, blocks that need it no more: both zero between launches */
  uint64_t n_escape_units, n_exceptions;
  int64_t rows;
  int cols, tokens, n_blocks, n_tiles;
  int tile_tokens; /* from one tile of tokens to the next: as many as a box of x has rows */
  int n_stages, stage_bytes, escape_slot;
  int wr, wk, kb; /* row blocks; warpgroups along the columns; tiles a warpgroup and stage */
  int cluster;    /* blocks along the columns */
  int stride;     /* stream-K over several tiles of tokens: workers, each with every stride-th tile; else 0 */
  int row_tiles;
  int exc_cap;          /* exceptions of a row block that fit in their buffer */
  int transposed_parts; /* of 16 columns and 64 tokens */
  int early;            /* stages that are filled before any is waited for */
  int dependent; /* 1: launched ahead of the end of the kernel before; 2: and the pack is older than that kernel */
};

template <int L> struct Tile {
  static constexpr bool kTiered = L == GLYD_WEIGHTS_TIERED;
  static constexpr int kBytes = kTiered ? GLYD_WEIGHTS_TIERED_TILE : GLYD_WEIGHTS_MMA12_TILE;
  static constexpr int kCols = kTiered ? GLYD_WEIGHTS_TIERED_COLS : GLYD_WEIGHTS_MMA12_COLS;
  static constexpr int kTables = kTiered ? kRingTables : 0;
};

struct Bars {
  uint32_t full, empty, exc_full, exc_empty, flags;
  __device__ __forceinline__ explicit Bars(uint32_t at)
      : full(at), empty(at + 128), exc_full(at + 256), exc_empty(at + 264), flags(at + 272) {}
};

/* blocks: whose warps read a stage */
__device__ __forceinline__ void ring_init(const RingArgs &p, const Bars &b, int consumer_warps, int lane,
                                          const CUtensorMap *mx, int blocks = 1) {
  if (lane == 0) {
    tma_prefetch_map(mx);
    mb_init(b.exc_full, 96);
    mb_init(b.exc_empty, consumer_warps * 32);
  }
  if (lane < p.n_stages)
    mb_init(b.full + 8 * lane, 1);
  else if (lane >= 16 && lane - 16 < p.n_stages)
    mb_init(b.empty + 8 * (lane - 16), blocks * consumer_warps);
  mb_fence_init();
  __syncwarp();
}

/* ---- order of tiles of several tiles of tokens ------------------------------- */
/* Whole tiles: worker w has w, w + stride, ... Up to eight tiles of tokens of a row tile come one after the other, so that
 * those that are multiplied at the same time read a part of the matrix and of x from L2. */
struct Place {
  int tile, tok;
};
template <int M> __device__ __forceinline__ Place place_of(const RingArgs &p, int at) {
  constexpr int kGroup = 8;
  const int token_tiles = (p.tokens + M - 1) / M, group = at / (p.row_tiles * kGroup),
            size = max(1, min(kGroup, token_tiles - group * kGroup)), rest = at - group * p.row_tiles * kGroup;
  return {rest / size, (group * kGroup + rest % size) * p.tile_tokens};
}

/* ---- the warp that fills the ring ------------------------------------------- */
/* Units u0 .. u0 + n: unit u is columns step u % steps of row tile u / steps. One lane issues every copy; addresses are
 * advanced, not computed, because a refill waits for this warp. Of tiered, every lane knows the escapes of one tile of
 * one of the next stages: index entries are read for a warp's worth of tiles at a time, and a batch ahead. */
template <int L, int M, bool MANY> struct RingProducer {
  using T = Tile<L>;
  static constexpr int kBox = M * 128, kBoxes = T::kCols / 64;
  uint32_t ring;
  uint32_t unit, units, total; /* of a lane: first escape unit of its tile, their number, bytes of its stage */
  uint32_t next_a, next_b;     /* of the batch ahead: entries of the index */
  uint64_t next_first;
  const uint8_t *src; /* tile of the first row block */
  uint64_t policy_w, policy_a;
  int u0, n, steps, tok, tile, k, ka, batch, ahead;
  int at, at_a; /* places of weights and activations, where they have a stride */

  __device__ __forceinline__ void start(const RingArgs &p, uint32_t ring_at, int first, int count, int steps_of_tile,
                                        int token, bool reread, int lane) {
    ring = ring_at, u0 = first, n = count, steps = steps_of_tile, tok = token;
    if (MANY && p.stride) {
      at = at_a = first, k = ka = 0;
      const Place place = place_of<M>(p, first);
      tile = place.tile, tok = place.tok, u0 = tile * steps;
    } else {
      tile = first / steps, k = ka = (first - tile * steps) * p.wk * p.kb;
    }
    src = p.tiles + ((size_t)tile * p.wr * p.n_tiles + k) * T::kBytes;
    if (p.dependent == 1) prefetch(p, lane);
    if (p.dependent != 2) grid_wait(); /* else a pack may be what the kernel before writes */
    policy_w = reread ? policy_evict_normal() : policy_evict_first();
    policy_a = policy_evict_last();
    if (T::kTiered) {
      batch = 32, ahead = 0;
      look_ahead(p, lane, p.wr * p.wk * p.kb);
    }
  }
  __device__ __forceinline__ void look_ahead(const RingArgs &p, int lane, int per) { /* stages ahead .. + 32 / per */
    const int ks = p.wk * p.kb, group = lane / per, sub = lane - group * per, row = sub / ks, i = ahead + group;
    next_a = next_b = 0, next_first = 0;
    if (group < 32 / per && i < n) {
      const int u = u0 + i, t = u / steps, tile_k = (u - t * steps) * ks + sub - row * ks, block = t * p.wr + row;
      if (block < p.n_blocks && tile_k < p.n_tiles) {
        const uint32_t *entry = p.index + (size_t)block * (p.n_tiles + 1) + tile_k;
        next_a = entry[0], next_b = entry[1];
        next_first =
            *(const uint64_t *)(p.blocks + (size_t)block * GLYD_WEIGHTS_BLOCK_HEADER + GLYD_WEIGHTS_BLOCK_AT_ESCAPES);
      }
    }
    ahead += 32 / per;
  }
  __device__ __forceinline__ void look_up(const RingArgs &p, int lane, int per) {
    const uint64_t first = next_first + next_a;
    const uint32_t count = next_b - next_a;
    batch = 0;
    unit = units = 0;
    if (next_b >= next_a && count * 16 <= (uint32_t)p.escape_slot - 16 && count <= p.n_escape_units &&
        first <= p.n_escape_units - count) /* a pack that lies loads nothing */
      unit = (uint32_t)first, units = count;
    total = 0;
    const int group = lane / per;
    for (int c = 0; c < per; c++) total += __shfl_sync(~0u, units * 16, min(group * per + c, 31));
    look_ahead(p, lane, per);
  }
  /* columns past the matrix arrive as zeros */
  __device__ __forceinline__ void activations(const RingArgs &p, const CUtensorMap *mx, const Bars &bars, int slot) {
    const int ks = p.wk * p.kb;
    if (elect()) {
      const uint32_t full = bars.full + 8 * slot;
      uint32_t to = ring + slot * p.stage_bytes;
      int col = ka * T::kCols;
#pragma unroll 1
      for (int c = 0; c < ks * kBoxes; c++, to += kBox, col += 64) tma2d(to, mx, col, tok, full, policy_a);
    }
    if ((ka += ks) >= steps * ks) {
      ka = 0;
      if (MANY && p.stride) tok = place_of<M>(p, at_a += p.stride).tok;
    }
  }
  __device__ __forceinline__ void tiles(const RingArgs &p, const Bars &bars, int slot) {
    const int ks = p.wk * p.kb;
    const size_t row_bytes = (size_t)p.n_tiles * T::kBytes;
    if (elect()) {
      const uint32_t full = bars.full + 8 * slot;
      const int rows = min(p.wr, p.n_blocks - tile * p.wr);
      const uint32_t bytes = min(ks, p.n_tiles - k) * T::kBytes;
      mb_announce(full, rows * bytes + ks * kBoxes * p.tile_tokens * 128);
      const uint8_t *from = src;
      uint32_t to = ring + slot * p.stage_bytes + ks * kBoxes * kBox;
#pragma unroll 1
      for (int r = 0; r < rows; r++, from += row_bytes, to += ks * T::kBytes) bulk(to, from, bytes, full, policy_w);
    }
    k += ks, src += ks * T::kBytes;
    if (k >= steps * ks) {
      k = 0, tile++;
      if (MANY && p.stride) tile = place_of<M>(p, at += p.stride).tile;
      src = p.tiles + (size_t)tile * p.wr * row_bytes;
    }
  }
  __device__ __forceinline__ void escapes(const RingArgs &p, const Bars &bars, int lane, int slot) {
    const int ks = p.wk * p.kb, per = p.wr * ks;
    const uint32_t full = bars.full + 8 * slot,
                   escapes_at = ring + slot * p.stage_bytes + ks * kBoxes * kBox + per * T::kBytes;
    uint32_t escape_bytes = 0;
    if (T::kTiered) {
      if ((batch + 1) * per > 32) look_up(p, lane, per);
      escape_bytes = __shfl_sync(~0u, total, batch * per);
    }
    if (elect()) mb_expect(full, escape_bytes);
    if (T::kTiered) {
#pragma unroll 1
      for (int c = 0; c < per; c++) {
        const uint32_t count = __shfl_sync(~0u, units, batch * per + c),
                       first = __shfl_sync(~0u, unit, batch * per + c);
        if (count && elect())
          bulk(escapes_at + c * p.escape_slot, p.escapes + (uint64_t)first * 16, count * 16, full, policy_w);
      }
      batch++;
    }
  }
  /* The first filling: a few stages, the others when these are there. All at once would be served together, and come
   * late together. Tiles go ahead of escapes, whose places are still on their way; activations ahead of both. A launch that
   * is ahead of the kernel before takes the weights, then waits for x. */
  __device__ __forceinline__ void fill(const RingArgs &p, const CUtensorMap *mx, const Bars &bars, int lane) {
    const int early = min(min(p.n_stages, n), p.early);
    for (int i = 0; i < early; i++) {
      if (p.dependent != 2) activations(p, mx, bars, i);
      tiles(p, bars, i);
    }
    for (int i = 0; i < early; i++) escapes(p, bars, lane, i);
    if (p.dependent == 2) {
      grid_wait();
      for (int i = 0; i < early; i++) activations(p, mx, bars, i);
    }
    int slot = early == p.n_stages ? 0 : early;
    uint32_t phase = 0;
    for (int i = early; i < n; i++) {
      if (i < p.n_stages)
        mb_wait(bars.full + 8 * (i - early), 0);
      else
        mb_wait(bars.empty + 8 * slot, phase);
      activations(p, mx, bars, slot);
      tiles(p, bars, slot), escapes(p, bars, lane, slot);
      if (++slot == p.n_stages) {
        slot = 0;
        if (i >= p.n_stages) phase ^= 1;
      }
    }
  }
  /* ahead of a dependent launch's wait: what the first stages need, into L2 */
  __device__ __forceinline__ void prefetch(const RingArgs &p, int lane) {
    const int ks = p.wk * p.kb;
    for (int i = lane; i < min(p.n_stages, min(n, steps)) * p.wr; i += 32) {
      const int u = u0 + i / p.wr, t = u / steps, tile_k = (u - t * steps) * ks, block = t * p.wr + i % p.wr;
      if (block < p.n_blocks && tile_k < p.n_tiles)
        bulk_prefetch(p.tiles + ((size_t)block * p.n_tiles + tile_k) * T::kBytes,
                      min(ks, p.n_tiles - tile_k) * T::kBytes);
    }
  }
};

/* Bases of the rows 16 strip + g and + 8 of a row block: read ahead, because the first use of a load waits for it. */
struct RowBases {
  uint32_t low, high;
  __device__ __forceinline__ RowBases(const RingArgs &p, int block, int row) {
    const uint8_t *h = p.blocks + (size_t)min(block, p.n_blocks - 1) * GLYD_WEIGHTS_BLOCK_HEADER;
    low = h[GLYD_WEIGHTS_BLOCK_AT_BASES + row], high = h[GLYD_WEIGHTS_BLOCK_AT_BASES + row + 8];
  }
  template <int L> __device__ __forceinline__ static float factor(uint32_t base) {
    return base == 0 ? 0.f : __uint_as_float(Tile<L>::kTiered ? base << 23 : (2 * base - 1) << 23);
  }
};

/* A warp's 16 rows from row0 on, tokens from tok on, as bf16 through 512 bytes of shared memory. */
struct Output {
  __nv_bfloat16 *y; /* of the lane: token lane / 2, rows 8 (lane mod 2) on */
  uint32_t to, from;
  int tokens, rows; /* that are left */
  float bias0, bias1;
  bool whole; /* 16 bytes at a time */

  __device__ __forceinline__ Output(const RingArgs &p, uint32_t stage, int64_t row0, int tok, int lane) {
    const int64_t row = row0 + (lane & 1) * 8;
    y = p.y + (size_t)(tok + (lane >> 1)) * p.rows + row;
    to = stage + ((lane >> 4) * 8 + (lane & 7)) * 32 + ((lane >> 3) & 1) * 16;
    from = stage + lane * 16;
    tokens = min(p.tokens - tok, p.tile_tokens) - (lane >> 1);
    rows = (int)min((int64_t)8, p.rows - row);
    whole = p.rows % 8 == 0;
    const int64_t g = row0 + (lane >> 2);
    bias0 = p.bias && g < p.rows ? __bfloat162float(p.bias[g]) : 0.f;
    bias1 = p.bias && g + 8 < p.rows ? __bfloat162float(p.bias[g + 8]) : 0.f;
  }
  __device__ __forceinline__ void write(const RingArgs &p, int t, bool mine) { /* t: a multiple of 8 */
    __syncwarp();
    if (mine && t < tokens && rows > 0) store(y + (size_t)t * p.rows, lds128(from));
    __syncwarp();
  }
  __device__ __forceinline__ void store(__nv_bfloat16 *at, uint4 v) const { /* the lane's rows of one token */
    if (whole) {
      stg128(at, v); /* the compiler makes four stores of an assignment here */
    } else {
#pragma unroll 1
      for (int k = 0; k < rows; k++) {
        reinterpret_cast<uint16_t *>(at)[k] = (uint16_t)v.x;
        v.x = __funnelshift_r(v.x, v.y, 16), v.y = __funnelshift_r(v.y, v.z, 16), v.z = __funnelshift_r(v.z, v.w, 16),
        v.w >>= 16;
      }
    }
  }
  __device__ __forceinline__ void eight(const RingArgs &p, int t, const float *f, int lane) {
    stmatrix2(to, bf16_pair(f[0] + bias0, f[1] + bias0), bf16_pair(f[2] + bias1, f[3] + bias1));
    write(p, t, lane < 16);
  }
  __device__ __forceinline__ void sixteen(const RingArgs &p, int t, const float *f) {
    stmatrix4(to, bf16_pair(f[0] + bias0, f[1] + bias0), bf16_pair(f[2] + bias1, f[3] + bias1),
              bf16_pair(f[4] + bias0, f[5] + bias0), bf16_pair(f[6] + bias1, f[7] + bias1));
    write(p, t, true);
  }
};

} // namespace glyd

#endif
