/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Products through a ring in shared memory: what both kernels share.
 *
 * One warp fills the ring: packed tiles by bulk copies, activations by TMA
 * (128-byte swizzle, zeros past the last token and column). Warpgroups decode
 * their 64 rows to registers, the A operand of wgmma; the activations are B.
 * Meanwhile three more warps follow the ring and gather the exceptions of the row
 * tile into a buffer of their own: row, value - what its place decodes to, and the
 * activations of its column. When a warpgroup has its fp32 sums, it adds those of
 * its rows.
 *
 * A stage: activations [kb * wk tiles][tokens x tile columns], tiles [wr][kb * wk],
 * escapes (tiered) [wr][kb * wk] slots of escape_slot bytes.
 */
#ifndef GLYD_RING_SM90_CUH
#define GLYD_RING_SM90_CUH

#include "glyd/format_weights.h"
#include "ptx_sm90.cuh"
#include "ring_launch_sm90.h"
#include "wgmma_sm90.cuh"

namespace glyd {

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
  uint64_t n_escape_units, n_exceptions;
  int64_t rows;
  int cols, tokens, n_blocks, n_tiles;
  int n_stages, stage_bytes, escape_slot;
  int wr, wk, kb; /* row blocks; warpgroups along the columns; tiles a warpgroup and stage */
  int cluster;    /* blocks along the columns */
  int exc_cap;    /* exceptions of a row block that fit in their buffer */
  int dependent;  /* launched ahead of the end of the kernel before */
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

__device__ __forceinline__ void ring_init(const RingArgs &p, const Bars &b, int consumer_warps, int lane,
                                          const CUtensorMap *mx) {
  if (lane == 0) {
    tma_prefetch_map(mx);
    mb_init(b.exc_full, 1);
    mb_init(b.exc_empty, consumer_warps);
  }
  if (lane < p.n_stages)
    mb_init(b.full + 8 * lane, 1);
  else if (lane >= 16 && lane - 16 < p.n_stages)
    mb_init(b.empty + 8 * (lane - 16), consumer_warps + (p.n_exceptions ? 3 : 0));
  mb_fence_init();
  __syncwarp();
}

/* ---- the warp that fills the ring ------------------------------------------- */
/* Units u0 .. u0 + n: unit u is columns step u % steps of row tile u / steps. Every lane has the copies of one tile
 * of one of the next stages (index entries are read for a warp's worth of tiles at a time). */
template <int L, int M> struct RingProducer {
  using T = Tile<L>;
  static constexpr int kBox = M * 128;
  uint32_t ring, bytes, esc_bytes, total;
  const uint8_t *src, *esc_src;
  uint64_t policy_w, policy_a;
  int u0, n, steps, tok, at, batch, group, row, chunk, slot, kstep;
  uint32_t lap;

  __device__ __forceinline__ void start(const RingArgs &p, uint32_t ring_at, int first, int count, int steps_of_tile,
                                        int token, bool reread) {
    ring = ring_at, u0 = first, n = count, steps = steps_of_tile, tok = token;
    at = 0, batch = 32, slot = 0, lap = 0, kstep = first % steps_of_tile;
    policy_w = reread ? policy_evict_normal() : policy_evict_first();
    policy_a = policy_evict_last();
  }
  __device__ __forceinline__ void look_up(const RingArgs &p, int lane) { /* copies of the stages at .. at + 32 / per */
    const int ks = p.wk * p.kb, split = T::kTiered ? ks : 1, per = p.wr * split;
    batch = 0;
    group = lane / per;
    const int sub = lane - group * per, i = at + group;
    row = sub / split, chunk = sub - row * split;
    bytes = esc_bytes = 0;
    if (group < 32 / per && i < n) {
      const int u = u0 + i, tile = u / steps, k = (u - tile * steps) * ks + chunk, block = tile * p.wr + row;
      if (block < p.n_blocks && k < p.n_tiles) {
        bytes = (uint32_t)(T::kTiered ? 1 : min(ks, p.n_tiles - k)) * T::kBytes;
        src = p.tiles + ((size_t)block * p.n_tiles + k) * T::kBytes;
        if (T::kTiered) {
          const uint32_t *entry = p.index + (size_t)block * (p.n_tiles + 1) + k;
          const uint32_t a = entry[0], b = entry[1];
          const uint64_t unit = *(const uint64_t *)(p.blocks + (size_t)block * GLYD_WEIGHTS_BLOCK_HEADER +
                                                    GLYD_WEIGHTS_BLOCK_AT_ESCAPES) +
                                a;
          const uint32_t units = b - a;
          if (b >= a && units * 16 <= (uint32_t)p.escape_slot - 16 && units <= p.n_escape_units &&
              unit <= p.n_escape_units - units) { /* a pack that lies loads nothing */
            esc_bytes = units * 16;
            esc_src = p.escapes + unit * 16;
          }
        }
      }
    }
    const uint32_t mine = bytes + esc_bytes;
    total = 0;
    for (int k = 0; k < per; k++) total += __shfl_sync(~0u, mine, min(group * per + k, 31));
  }
  __device__ __forceinline__ void fill(const RingArgs &p, const CUtensorMap *mx, const Bars &bars, int lane,
                                       int limit) {
    const int ks = p.wk * p.kb, split = T::kTiered ? ks : 1, in_batch = 32 / (p.wr * split);
    constexpr int boxes = T::kCols / 64;
    for (; at < n && at < limit; at++, batch++) {
      const int s = slot;
      if (lap) mb_wait(bars.empty + 8 * s, (lap - 1) & 1);
      if (batch >= in_batch) look_up(p, lane);
      if (group == batch) {
        const uint32_t full = bars.full + 8 * s, stage = ring + s * p.stage_bytes, tiles_at = stage + ks * boxes * kBox;
        if (row == 0 && chunk == 0) {
          mb_expect(full, total + ks * boxes * kBox);
          for (int c = 0; c < ks * boxes; c++) /* columns past the matrix arrive as zeros */
            tma2d(stage + c * kBox, mx, (kstep * ks * boxes + c) * 64, tok, full, policy_a);
        }
        const int to = row * ks + chunk;
        if (bytes) bulk(tiles_at + to * T::kBytes, src, bytes, full, policy_w);
        if (T::kTiered && esc_bytes)
          bulk(tiles_at + p.wr * ks * T::kBytes + to * p.escape_slot, esc_src, esc_bytes, full, policy_w);
      }
      __syncwarp();
      if (++slot == p.n_stages) slot = 0, lap++;
      if (++kstep == steps) kstep = 0;
    }
  }
  /* ahead of a dependent launch's wait: what the first stages need, into L2 */
  __device__ __forceinline__ void prefetch(const RingArgs &p, int lane) {
    const int ks = p.wk * p.kb;
    for (int i = lane; i < min(p.n_stages, n) * p.wr; i += 32) {
      const int u = u0 + i / p.wr, tile = u / steps, k = (u - tile * steps) * ks, block = tile * p.wr + i % p.wr;
      if (block < p.n_blocks && k < p.n_tiles)
        bulk_prefetch(p.tiles + ((size_t)block * p.n_tiles + k) * T::kBytes, min(ks, p.n_tiles - k) * T::kBytes);
    }
  }
};

/* ---- exceptions ------------------------------------------------------------------ */
/* Buffer: u32 counts[4], u32 more, at 64: u32 place [wr][cap], fp32 delta [wr][cap], bf16 activations [wr][cap][M].
 * Columns come by in ascending order, as exceptions do, so their activations are taken from the stages. What does not
 * fit is gathered from global memory when the buffer has been read: slow, but any number of exceptions is right. */
/* First of n ascending places that is at least bound; all lanes take part. */
__device__ __forceinline__ uint32_t first_at_least(const uint32_t *places, uint32_t n, uint64_t bound, int lane) {
  uint32_t lo = 0, hi = n;
  while (lo < hi) {
    const uint32_t step = (hi - lo + 31) / 32;
    const uint64_t i = lo + (uint64_t)lane * step;
    const int below = __popc(__ballot_sync(~0u, i < hi && places[i < hi ? i : lo] < bound));
    if (below == 0) return lo;
    const uint64_t next = lo + (uint64_t)below * step;
    lo += (below - 1) * step + 1;
    hi = (uint32_t)min((uint64_t)hi, next);
  }
  return lo;
}

/* The exceptions of one row block in a range of columns; a warp at work on 32 of them. */
struct ExceptionList {
  const uint32_t *places;
  const uint16_t *values;
  uint32_t at, end, batch; /* next, end; first of the 32 in registers */
  uint32_t place, value;

  __device__ __forceinline__ void load(int lane) {
    batch = at;
    place = at + lane < end ? places[at + lane] : ~0u;
    value = at + lane < end ? values[at + lane] : 0u;
  }
  __device__ __forceinline__ void open(const RingArgs &p, int block, uint64_t from, uint64_t to, int lane) {
    at = end = batch = 0, place = ~0u, value = 0;
    if (block >= p.n_blocks) return;
    const uint8_t *h = p.blocks + (size_t)block * GLYD_WEIGHTS_BLOCK_HEADER;
    const uint32_t count = *(const uint32_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
    const uint64_t first = *(const uint64_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST);
    if (count > p.n_exceptions || first > p.n_exceptions - count) return; /* a pack that lies */
    places = p.places + first, values = p.values + first;
    if (to < (uint64_t)p.cols * 64 || from > 0) {
      end = first_at_least(places, count, to, lane);
      at = first_at_least(places, end, from, lane);
    } else {
      end = count;
    }
    load(lane);
  }
};

/* value - what its place decodes to; 0 for a place outside of the matrix, which no writer makes */
template <int L>
__device__ __forceinline__ float exception_delta(const RingArgs &p, int block, uint32_t place, uint32_t value) {
  if (place >> 6 >= (uint32_t)p.cols) return 0.f;
  float delta = bf16_float(value);
  if (!Tile<L>::kTiered)
    delta -= bf16_float(
        (uint32_t)p.blocks[(size_t)block * GLYD_WEIGHTS_BLOCK_HEADER + GLYD_WEIGHTS_BLOCK_AT_BASES + (place & 63)]
        << 8);
  return delta;
}

template <int L, int M>
__device__ __forceinline__ void gather_exceptions(const RingArgs &p, uint32_t ring, uint32_t buffer, const Bars &bars,
                                                  int u0, int n, int steps, int tok, int gatherer, int lane) {
  constexpr int kBox = M * 128;
  const uint32_t cap = p.exc_cap, width = Tile<L>::kCols * p.wk * p.kb, places_at = buffer + kExceptionHeader,
                 deltas_at = places_at + 4 * cap * p.wr, xs_at = deltas_at + 4 * cap * p.wr;
  uint32_t rounds = 0, phase = 0;
  int s = 0;
  for (int i = 0; i < n;) {
    const int u = u0 + i, tile = u / steps, k0 = u - tile * steps, len = min(steps - k0, n - i);
    i += len;
    ExceptionList list[2]; /* row blocks gatherer and gatherer + 3 */
    uint32_t done[2] = {0, 0};
#pragma unroll
    for (int h = 0; h < 2; h++)
      list[h].open(p, gatherer + 3 * h < p.wr ? tile * p.wr + gatherer + 3 * h : p.n_blocks, (uint64_t)k0 * width * 64,
                   (uint64_t)(k0 + len) * width * 64, lane);
    if (rounds) mb_wait(bars.exc_empty, (rounds - 1) & 1);
    for (int j = 0; j < len; j++) {
      const uint32_t stage = ring + s * p.stage_bytes, col0 = (uint32_t)(k0 + j) * width;
      mb_wait(bars.full + 8 * s, phase);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        ExceptionList &l = list[h];
        while (l.at < l.end && done[h] < cap) {
          const uint32_t place = __shfl_sync(~0u, l.place, l.at - l.batch), col = (place >> 6) - col0;
          if (col >= width) break; /* of a later stage, or of none */
          const uint32_t value = __shfl_sync(~0u, l.value, l.at - l.batch), r = gatherer + 3 * h, e = r * cap + done[h];
          if (lane == 0) {
            sts32(places_at + 4 * e, place);
            sts32(deltas_at + 4 * e, __float_as_uint(exception_delta<L>(p, tile * p.wr + r, place, value)));
          }
          for (int t = lane; t < M; t += 32) { /* 128-byte swizzle: chunk c of 16 bytes is at c ^ (row mod 8) */
            const uint32_t x = stage + (col >> 6) * kBox + t * 128 + (((col >> 3) ^ t) & 7) * 16 + (col & 7) * 2;
            sts16(xs_at + e * 2 * M + t * 2, (uint16_t)lds16(x));
          }
          done[h]++;
          if (++l.at - l.batch == 32) l.load(lane);
        }
      }
      __syncwarp();
      if (lane == 0) mb_arrive(bars.empty + 8 * s);
      if (++s == p.n_stages) s = 0, phase ^= 1;
    }
    for (bool first = true, more = true; more; first = false, rounds++) {
      if (!first) {
        mb_wait(bars.exc_empty, (rounds - 1) & 1);
#pragma unroll
        for (int h = 0; h < 2; h++) {
          ExceptionList &l = list[h];
          const uint32_t r = gatherer + 3 * h, now = min(l.end - l.at, cap);
          for (uint32_t k = 0; k < now; k++) {
            const uint32_t place = l.places[l.at + k], value = l.values[l.at + k], e = r * cap + k,
                           col = min(place >> 6, (uint32_t)p.cols - 1);
            if (lane == 0) {
              sts32(places_at + 4 * e, place);
              sts32(deltas_at + 4 * e, __float_as_uint(exception_delta<L>(p, tile * p.wr + r, place, value)));
            }
            const uint16_t *x = reinterpret_cast<const uint16_t *>(p.x) + (size_t)tok * p.cols + col;
            for (int t = lane; t < M; t += 32)
              sts16(xs_at + e * 2 * M + t * 2, tok + t < p.tokens ? x[(size_t)t * p.cols] : (uint16_t)0);
          }
          done[h] = now, l.at += now;
        }
      }
      __syncwarp();
      bar_sync(15, 96); /* all have seen the last round's more */
      if (gatherer == 0 && lane == 0) sts32(buffer + 16, 0);
      __syncwarp();
      bar_sync(15, 96);
#pragma unroll
      for (int h = 0; h < 2; h++)
        if (lane == 0 && gatherer + 3 * h < p.wr) {
          sts32(buffer + 4 * (gatherer + 3 * h), done[h]);
          if (list[h].at < list[h].end) sts32(buffer + 16, 1); /* more than fits: all say the same */
        }
      __syncwarp();
      bar_sync(15, 96);
      more = lds32(buffer + 16);
      if (gatherer == 0 && lane == 0) mb_arrive(bars.exc_full);
    }
  }
}

/* Adds the exceptions of a row tile to the sums of a warpgroup, in the order of the list. */
template <int M>
__device__ __forceinline__ void add_exceptions(float (&acc)[M / 2], const RingArgs &p, uint32_t buffer,
                                               const Bars &bars, int r, bool mine, int strip, int lane,
                                               uint32_t &rounds) {
  const uint32_t cap = p.exc_cap, places_at = buffer + kExceptionHeader + 4 * r * cap,
                 deltas_at = places_at + 4 * cap * p.wr,
                 xs = buffer + kExceptionHeader + 8 * cap * p.wr + r * cap * 2 * M + 4 * (lane & 3);
  for (uint32_t more = 1; more; rounds++) {
    mb_wait(bars.exc_full, rounds & 1);
    const uint32_t end = lds32(buffer + 4 * r);
    more = lds32(buffer + 16);
    for (uint32_t e0 = 0; mine && e0 < end; e0 += 32) {
      const uint32_t row = e0 + lane < end ? lds32(places_at + 4 * (e0 + lane)) & 63 : ~0u;
      uint32_t todo = __ballot_sync(~0u, (int)(row >> 4) == strip);
      while (todo) {
        const int k = __ffs(todo) - 1;
        todo &= todo - 1;
        const uint32_t at = __shfl_sync(~0u, row, k);
        if ((at & 7) == (uint32_t)lane >> 2) {
          const float d = __uint_as_float(lds32(deltas_at + 4 * (e0 + k)));
          const uint32_t xe = xs + (e0 + k) * 2 * M;
          if (at & 8) {
#pragma unroll
            for (int i = 0; i < M / 8; i++) {
              const uint32_t v = lds32(xe + 16 * i);
              acc[4 * i + 2] += d * bf16_float(v & 0xFFFFu), acc[4 * i + 3] += d * __uint_as_float(v & 0xFFFF0000u);
            }
          } else {
#pragma unroll
            for (int i = 0; i < M / 8; i++) {
              const uint32_t v = lds32(xe + 16 * i);
              acc[4 * i] += d * bf16_float(v & 0xFFFFu), acc[4 * i + 1] += d * __uint_as_float(v & 0xFFFF0000u);
            }
          }
        }
        __syncwarp();
      }
    }
    __syncwarp();
    if (lane == 0) mb_arrive(bars.exc_empty);
  }
}

/* Factors of the rows 16 strip + g and + 8 of a row block, as bits of floats. */
template <int L> __device__ __forceinline__ float row_factor(const RingArgs &p, int block, int row) {
  if (block >= p.n_blocks) return 0.f;
  const uint32_t b = p.blocks[(size_t)block * GLYD_WEIGHTS_BLOCK_HEADER + GLYD_WEIGHTS_BLOCK_AT_BASES + row];
  return b == 0 ? 0.f : __uint_as_float(Tile<L>::kTiered ? b << 23 : (2 * b - 1) << 23);
}

/* One n8 block of a warp's 16 rows: 8 tokens from t0 on, rows from row0 on, through 256 bytes of shared memory. */
__device__ __forceinline__ void store_block(const RingArgs &p, uint32_t stage, const float *f, int64_t row0, int t0,
                                            int lane, float bias0, float bias1) {
  stmatrix2(stage + (lane & 7) * 32 + ((lane >> 3) & 1) * 16, bf16_pair(f[0] + bias0, f[1] + bias0),
            bf16_pair(f[2] + bias1, f[3] + bias1));
  __syncwarp();
  const int t = t0 + (lane >> 1);
  const int64_t row = row0 + (lane & 1) * 8;
  if (lane < 16 && t < p.tokens && row < p.rows) {
    const uint4 v = lds128(stage + lane * 16);
    __nv_bfloat16 *y = p.y + (size_t)t * p.rows + row;
    if (p.rows % 8 == 0) {
      *reinterpret_cast<uint4 *>(y) = v;
    } else {
      const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int k = 0; k < 8; k++)
        if (row + k < p.rows) reinterpret_cast<uint16_t *>(y)[k] = (uint16_t)(w[k / 2] >> (k % 2 * 16));
    }
  }
}
__device__ __forceinline__ float bias_of(const RingArgs &p, int64_t row) {
  return p.bias && row < p.rows ? __bfloat162float(p.bias[row]) : 0.f;
}

} // namespace glyd

#endif
