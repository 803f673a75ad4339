/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Exceptions of the ring products: lists of those of a row tile, gathered beside
 * the ring by three warps, and the fp32 sums that they are added to.
 *
 * Their activations lie in a buffer of the block, gathered from x, or, where such
 * a buffer would take a stage from the ring (mma12, 64 tokens and more), in a
 * transposed copy of x in the workspace, which all blocks write together. Which
 * of the two depends on configuration and pack alone, and the sums on neither.
 */
#ifndef GLYD_RING_EXCEPTIONS_SM90_CUH
#define GLYD_RING_EXCEPTIONS_SM90_CUH

#include "ring_sm90.cuh"
#include "search_places.cuh"

namespace glyd {

/* Buffer: u32 counts[4], u32 more[4], u32 place [wr][cap], fp32 delta [wr][cap], and bf16 activations of the columns, if
 * they are not transposed. What does not fit is gathered when the buffer has been read: slow, but any number is right. */
template <int L, int M, bool MANY> struct ExceptionBuffer {
  uint32_t header, places, deltas, xs;
  __device__ __forceinline__ ExceptionBuffer(const RingArgs &p, uint32_t at)
      : header(at), places(at + kExceptionHeader), deltas(places + 4 * p.exc_cap * p.wr),
        xs((deltas + 4 * p.exc_cap * p.wr + 15) & ~15u) {}
  /* of token t of exception e */
  __device__ __forceinline__ uint32_t x(uint32_t e, uint32_t t) const {
    return xs + e * ring_x_pitch(M) + 2 * (MANY ? place_of_token(t) : t);
  }
  /* Many tokens: 32 are 64 bytes, 16 of each lane of four (lane mod 4): tokens 8 i + 2 (lane mod 4) and the next, i < 4 */
  __device__ __forceinline__ static uint32_t place_of_token(uint32_t t) {
    return (t & ~31u) + (t >> 1 & 3) * 8 + (t >> 3 & 3) * 2 + (t & 1);
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

/* The exceptions of one row block in a range of places. */
struct ExceptionList {
  static constexpr uint32_t kScan = 512; /* fewer are read from the first on, more are searched */
  const uint32_t *places;
  const uint16_t *values;
  uint32_t at, end;

  __device__ __forceinline__ void open(const RingArgs &p, int block, uint32_t from, uint32_t to, int lane) {
    at = end = 0;
    if (block >= p.n_blocks) return;
    const uint8_t *h = p.blocks + (size_t)block * GLYD_WEIGHTS_BLOCK_HEADER;
    const uint32_t count = *(const uint32_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
    const uint64_t first = *(const uint64_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST);
    if (count > p.n_exceptions || first > p.n_exceptions - count) return; /* a pack that lies */
    places = p.places + first, values = p.values + first, end = count;
    if (count > kScan) {
      end = first_at_least(places, count, to, lane);
      at = first_at_least(places, end, from, lane);
    }
  }
  /* up to cap of them to the buffer; returns how many */
  template <int L>
  __device__ __forceinline__ uint32_t take(const RingArgs &p, int block, uint32_t from, uint32_t to, uint32_t places_at,
                                           uint32_t deltas_at, int lane) {
    const uint32_t cap = p.exc_cap;
    uint32_t done = 0;
    while (at < end && done < cap) {
      const uint32_t place = at + lane < end ? places[at + lane] : ~0u,
                     value = at + lane < end ? values[at + lane] : 0u;
      const bool in = place >= from && place < to;
      const uint32_t mask = __ballot_sync(~0u, in), rank = done + __popc(mask & ((1u << lane) - 1));
      if (in && rank < cap) {
        sts32(places_at + 4 * rank, place);
        sts32(deltas_at + 4 * rank, __float_as_uint(exception_delta<L>(p, block, place, value)));
      }
      const uint32_t left = __ballot_sync(~0u, in && rank >= cap);
      done = min(done + __popc(mask), cap);
      at = left ? at + __ffs(left) - 1 : __any_sync(~0u, place >= to) ? end : at + 32;
    }
    return done;
  }
};

/* ---- x transposed ---------------------------------------------------------------- */
/* 16 columns and 64 tokens at a time, in the order of ExceptionBuffer::place_of_token; blocks share the work. */
template <int M> __device__ __forceinline__ void transpose_share(const RingArgs &p, int gatherer, int lane) {
  const int groups = (p.cols + 15) / 16;
  const uint16_t *x = reinterpret_cast<const uint16_t *>(p.x);
  unsigned done = 0;
  for (int u = blockIdx.x * 3 + gatherer; u < p.transposed_parts; u += gridDim.x * 3, done++) {
    const int part = u / groups, col = (u - part * groups) * 16, tile = part / (M / 64),
              t = tile * p.tile_tokens + part % (M / 64) * 64 + 2 * lane;
    uint32_t *to = reinterpret_cast<uint32_t *>(p.transposed) + ((size_t)tile * p.cols + col) * (M / 2) +
                   part % (M / 64) * 32 + (lane >> 4) * 16 + (lane & 3) * 4 + ((lane >> 2) & 3);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      if (col + h * 8 >= p.cols) break;
      uint4 v[2]; /* of tokens t and t + 1 */
#pragma unroll
      for (int i = 0; i < 2; i++)
        v[i] = t + i < p.tokens ? *reinterpret_cast<const uint4 *>(x + (size_t)(t + i) * p.cols + col + h * 8)
                                : make_uint4(0, 0, 0, 0);
      const uint32_t a[4] = {v[0].x, v[0].y, v[0].z, v[0].w}, b[4] = {v[1].x, v[1].y, v[1].z, v[1].w};
#pragma unroll
      for (int c = 0; c < 8; c++) to[(h * 8 + c) * (M / 2)] = prmt(a[c / 2], b[c / 2], c % 2 ? 0x7632 : 0x5410);
    }
  }
  __threadfence();
  __syncwarp();
  if (lane == 0 && done) atomicAdd(p.transposing, done), __threadfence();
}
/* Whether all of it is there. */
__device__ __forceinline__ bool transposed(const RingArgs &p) {
  return __all_sync(~0u, load_acquire(p.transposing) == (unsigned)p.transposed_parts);
}
/* A block does not wait for others, which may not have begun: it writes a column that it needs, as they do. */
template <int M> __device__ __forceinline__ void transpose_column(const RingArgs &p, uint32_t col, int tok, int lane) {
  uint16_t *to = p.transposed + ((size_t)(tok / p.tile_tokens) * p.cols + col) * M;
  const uint16_t *x = reinterpret_cast<const uint16_t *>(p.x) + (size_t)tok * p.cols + col;
#pragma unroll 1
  for (int t = lane; t < M; t += 32)
    to[ExceptionBuffer<GLYD_WEIGHTS_MMA12, M, true>::place_of_token(t)] =
        t < p.tokens - tok ? x[(size_t)t * p.cols] : 0;
  __threadfence();
}
/* The end of a block that needs it no more; the last one leaves zeros. */
__device__ __forceinline__ void transpose_end(const RingArgs &p, int gatherer, int lane) {
  if (gatherer || lane) return;
  __threadfence();
  if (atomicAdd(p.transposing + 1, 1u) == gridDim.x - 1) p.transposing[0] = p.transposing[1] = 0;
}

/* ---- gathering ------------------------------------------------------------------- */
/* len steps from k0 on of a row tile, tokens from tok on. */
struct Part {
  int tile, tok, k0, len;
};
/* Those of a block's units, in order. */
template <int M, bool MANY> struct RingParts {
  int u0, n, steps, tok, i;
  __device__ __forceinline__ bool next(const RingArgs &p, Part &part) {
    if (i >= n) return false;
    const int u = u0 + i;
    part = {u / steps, tok, u - u / steps * steps, 0};
    if (MANY && p.stride) {
      const Place place = place_of<M>(p, u0 + i / steps * p.stride);
      part = {place.tile, place.tok, 0, 0};
    }
    part.len = min(steps - part.k0, n - i);
    i += part.len;
    return true;
  }
};

template <int L, int M, bool MANY, class Parts>
__device__ __forceinline__ void gather_exceptions(const RingArgs &p, uint32_t buffer_at, const Bars &bars, Parts parts,
                                                  int gatherer, int lane) {
  constexpr int kBatch = 8;
  const ExceptionBuffer<L, M, MANY> buffer(p, buffer_at);
  const uint32_t cap = p.exc_cap, thread = gatherer * 32 + lane;
  uint32_t rounds = 0;
  const bool transposes = MANY && p.transposed;
  if (p.dependent != 2) {
    grid_wait();
    if constexpr (MANY)
      if (transposes) transpose_share<M>(p, gatherer, lane);
  }
  for (Part part; parts.next(p, part);) {
    const int tile = part.tile, tok = part.tok, k0 = part.k0, len = part.len;
    const uint16_t *x = reinterpret_cast<const uint16_t *>(p.x) + (size_t)tok * p.cols;
    const uint64_t width = Tile<L>::kCols * 64 * p.wk * p.kb;
    const uint32_t from = (uint32_t)(k0 * width), to = (uint32_t)min((k0 + len) * width, (uint64_t)~0u);
    uint32_t begin[2] = {0, 0}; /* of row blocks gatherer and gatherer + 3 */
    for (bool first = true, more = true; more; first = false, rounds++) {
      if (rounds) mb_wait(bars.exc_empty, (rounds - 1) & 1);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int r = gatherer + 3 * h, block = tile * p.wr + r;
        if (r >= 4) continue;
        uint32_t done = 0;
        bool rest = false;
        if (r < p.wr) {
          ExceptionList list;
          list.open(p, block, from, to, lane);
          if (!first) list.at = begin[h];
          done =
              list.template take<L>(p, block, from, to, buffer.places + 4 * r * cap, buffer.deltas + 4 * r * cap, lane);
          begin[h] = list.at, rest = list.at < list.end;
        }
        if (lane == 0) sts32(buffer.header + 4 * r, done), sts32(buffer.header + 16 + 4 * r, rest);
      }
      __syncwarp();
      bar_sync(15, 96);
      if (rounds == 0 && p.dependent == 2) {
        grid_wait();
        if constexpr (MANY)
          if (transposes) transpose_share<M>(p, gatherer, lane);
      }
      const uint4 counts = lds128(buffer.header);
      const uint32_t c1 = counts.x + counts.y, c2 = c1 + counts.z, total = transposes ? 0 : (c2 + counts.w) * M;
      auto slot = [&](uint32_t e) { /* of the e-th exception, in the order of row blocks */
                                    return e < counts.x ? e
                                           : e < c1     ? cap + e - counts.x
                                           : e < c2     ? 2 * cap + e - c1
                                                        : 3 * cap + e - c2;
      };
      for (uint32_t item = thread; item < total; item += 96 * kBatch) {
        uint16_t v[kBatch];
#pragma unroll
        for (int j = 0; j < kBatch; j++) {
          const uint32_t at = item + 96 * j, t = at % M;
          v[j] = 0;
          if (at < total && (int)t < p.tokens - tok)
            v[j] = x[(size_t)t * p.cols + min(lds32(buffer.places + 4 * slot(at / M)) >> 6, (uint32_t)p.cols - 1)];
        }
#pragma unroll
        for (int j = 0; j < kBatch; j++) {
          const uint32_t at = item + 96 * j;
          if (at < total) sts16(buffer.x(slot(at / M), at % M), v[j]);
        }
      }
      const uint4 mores = lds128(buffer.header + 16);
      more = mores.x | mores.y | mores.z | mores.w;
      mb_arrive(bars.exc_full); /* every thread for what it has written */
    }
  }
  if (transposes) { /* transpose_end comes after all of the block */
    if (gatherer == 0 && rounds) mb_wait(bars.exc_empty, (rounds - 1) & 1);
    __syncwarp();
    bar_sync(15, 96);
  }
}

/* Adds the exceptions of a row tile to the sums of a warpgroup: those of a row in the order of the list, rows side by
 * side. */
template <int L, int M, bool MANY>
__device__ __forceinline__ void add_exceptions(float (&acc)[M / 2], const RingArgs &p, uint32_t buffer_at,
                                               const Bars &bars, int r, bool mine, int strip, int tok, int lane,
                                               uint32_t &rounds) {
  const ExceptionBuffer<L, M, MANY> buffer(p, buffer_at);
  const uint32_t first = r * p.exc_cap;
  for (uint32_t more = 1; more; rounds++) {
    mb_wait(bars.exc_full, rounds & 1);
    const uint32_t end = lds32(buffer.header + 4 * r);
    const uint4 mores = lds128(buffer.header + 16);
    more = mores.x | mores.y | mores.z | mores.w;
    const int token_tile = MANY && p.transposed ? tok / p.tile_tokens : 0;
    const bool all_there = MANY && p.transposed && mine && end && transposed(p);
    for (uint32_t e0 = 0; mine && e0 < end; e0 += 32) {
      const uint32_t row = e0 + lane < end ? lds32(buffer.places + 4 * (first + e0 + lane)) & 63 : ~0u;
      uint32_t todo = 0; /* those of the lane's rows g and g + 8 */
#pragma unroll
      for (uint32_t g = 0; g < 8; g++) {
        const uint32_t of_g = __ballot_sync(~0u, (int)(row >> 4) == strip && (row & 7) == g);
        if ((uint32_t)lane >> 2 == g) todo = of_g;
      }
      if constexpr (MANY) {
        if (p.transposed && !all_there) {
          for (uint32_t of_strip = __ballot_sync(~0u, (int)(row >> 4) == strip); of_strip; of_strip &= of_strip - 1) {
            const uint32_t place = lds32(buffer.places + 4 * (first + e0 + __ffs(of_strip) - 1));
            transpose_column<M>(p, min(place >> 6, (uint32_t)p.cols - 1), tok, lane);
          }
          __syncwarp();
        }
        /* A share of an exception's tokens at a time, the next share on its way meanwhile: the next of `left` */
        constexpr int kShares = M > 128 ? 2 : 1, kWords = M / 32 / kShares;
        auto fetch = [&](uint4(&v)[kWords], uint32_t left, int share) {
          if (left == 0) return;
          const uint32_t e = first + e0 + __ffs(left) - 1;
          if (p.transposed) {
            const uint32_t col = min(lds32(buffer.places + 4 * e) >> 6, (uint32_t)p.cols - 1);
            const uint4 *from = reinterpret_cast<const uint4 *>(p.transposed) +
                                ((size_t)token_tile * p.cols + col) * (M / 8) + share * kWords * 4 + (lane & 3);
#pragma unroll
            for (int g = 0; g < kWords; g++) v[g] = __ldcg(from + 4 * g);
          } else {
            const uint32_t from = buffer.xs + e * ring_x_pitch(M) + share * kWords * 64 + 16 * (lane & 3);
#pragma unroll
            for (int g = 0; g < kWords; g++) v[g] = lds128(from + 64 * g);
          }
        };
        uint4 v[kWords], next[kWords];
        fetch(v, todo, 0);
        while (todo) {
          const uint32_t e = first + e0 + __ffs(todo) - 1, rest = todo & (todo - 1);
          const float d = __uint_as_float(lds32(buffer.deltas + 4 * e));
          const bool upper = lds32(buffer.places + 4 * e) & 8;
#pragma unroll
          for (int share = 0; share < kShares; share++) {
            if (share + 1 < kShares)
              fetch(next, todo, share + 1);
            else
              fetch(next, rest, 0);
#pragma unroll
            for (int g = 0; g < kWords; g++) {
              const uint32_t w[4] = {v[g].x, v[g].y, v[g].z, v[g].w};
#pragma unroll
              for (int i = 0; i < 4; i++) {
                const float a = bf16_float(w[i] & 0xFFFFu), b = __uint_as_float(w[i] & 0xFFFF0000u);
                float *sum = acc + 16 * (share * kWords + g) + 4 * i;
                if (upper)
                  sum[2] += d * a, sum[3] += d * b;
                else
                  sum[0] += d * a, sum[1] += d * b;
              }
            }
#pragma unroll
            for (int g = 0; g < kWords; g++) v[g] = next[g];
          }
          todo = rest;
        }
      } else
        while (todo) {
          const uint32_t e = first + e0 + __ffs(todo) - 1;
          todo &= todo - 1;
          const float d = __uint_as_float(lds32(buffer.deltas + 4 * e));
          const bool upper = lds32(buffer.places + 4 * e) & 8;
#pragma unroll
          for (int i = 0; i < M / 8; i++) {
            const uint32_t v = lds32(buffer.x(e, 8 * i + 2 * (lane & 3)));
            const float a = bf16_float(v & 0xFFFFu), b = __uint_as_float(v & 0xFFFF0000u);
            if (upper)
              acc[4 * i + 2] += d * a, acc[4 * i + 3] += d * b;
            else
              acc[4 * i] += d * a, acc[4 * i + 1] += d * b;
          }
        }
      __syncwarp();
    }
    mb_arrive(bars.exc_empty); /* every lane for what it has read */
  }
}

} // namespace glyd

#endif
