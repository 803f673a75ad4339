/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Packing on the GPU, byte for byte what the C packer writes. Plan: a base for
 * every row, then the sizes of every tile's escapes and exceptions, then their
 * places (three kernels); the caller reads the totals, allocates, and the pack
 * kernel writes a tile a block.
 */
#include "glyd_gpu.h"
#include "tile_decode.cuh"

struct PlanArgs {
  PackView view;           /* of the plan: no escapes and exceptions yet */
  const uint16_t *weights; /* [rows, cols] bf16, row-major */
  uint8_t *plan;           /* what the pack starts with, up to tiles_at */
  uint32_t *exc_index;     /* [row_blocks][tiles + 1]: exceptions of a tile, then before it in the row block */
  unsigned long long *totals; /* escape units, exceptions, units of the largest tile, most exceptions of a row block */
};

__device__ __forceinline__ uint8_t *header_of(const PlanArgs &p, int64_t block) {
  return p.plan + GLYD_WEIGHTS_HEADER + block * GLYD_WEIGHTS_BLOCK_HEADER;
}
__device__ __forceinline__ uint32_t *index_of(const PlanArgs &p, int64_t block) {
  return (uint32_t *)(p.plan + p.view.index_at) + block * (p.view.tiles + 1);
}

template <class T> __device__ __forceinline__ T warp_sum(T v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
  return v;
}

/* ---- bases ------------------------------------------------------------------ */

__device__ __forceinline__ uint32_t sum_of(const uint32_t *counts, uint32_t n) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += counts[i];
  return sum;
}

/* A block a row: counts of exponents, then the base that saves most; of equals the smallest. */
template <int LAYOUT> __global__ void __launch_bounds__(128) row_bases_kernel(const PlanArgs p) {
  __shared__ uint32_t counts[4][256];
  __shared__ unsigned long long best;
  __shared__ uint32_t any;
  const uint32_t warp = threadIdx.x / 32;
  constexpr uint32_t low = LAYOUT == GLYD_WEIGHTS_TIERED ? GLYD_WEIGHTS_TIERED_BASE_MIN : 1;
  constexpr uint32_t high = LAYOUT == GLYD_WEIGHTS_TIERED ? GLYD_WEIGHTS_TIERED_BASE_MAX : GLYD_WEIGHTS_MMA12_BASE_MAX;
  for (int64_t row = blockIdx.x; row < p.view.rows; row += gridDim.x) {
    for (uint32_t i = threadIdx.x; i < 4 * 256; i += 128) counts[i / 256][i % 256] = 0;
    if (threadIdx.x == 0) best = 0, any = 0;
    __syncthreads();
    const uint16_t *from = p.weights + row * p.view.cols;
    uint32_t bits = 0;
    for (int64_t c = threadIdx.x; c < p.view.cols; c += 128) {
      const uint32_t w = from[c];
      bits |= w & 0x7FFF;
      atomicAdd(&counts[warp][(w >> 7) & 0xFF], 1u);
    }
    if (bits) atomicOr(&any, 1u);
    __syncthreads();
    for (uint32_t e = threadIdx.x; e < 256; e += 128) counts[0][e] += counts[1][e] + counts[2][e] + counts[3][e];
    __syncthreads();
    for (uint32_t base = low + threadIdx.x; base <= high; base += 128) {
      unsigned long long saved;
      if (LAYOUT == GLYD_WEIGHTS_TIERED) {
        const unsigned long long first = sum_of(counts[0] + base, 3);
        const unsigned long long second =
            sum_of(counts[0] + base - GLYD_WEIGHTS_TIER2_BELOW, GLYD_WEIGHTS_TIER2_SPAN);
        const unsigned long long all = sum_of(counts[0] + base - GLYD_WEIGHTS_BELOW, GLYD_WEIGHTS_SPAN);
        saved = GLYD_WEIGHTS_TIERED_SAVED(first, second, all);
      } else {
        saved = sum_of(counts[0] + 2 * base, 16);
      }
      atomicMax(&best, saved << 8 | (255 - base));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      uint8_t *header = header_of(p, row / GLYD_WEIGHTS_ROWS);
      header[GLYD_WEIGHTS_BLOCK_AT_BASES + row % GLYD_WEIGHTS_ROWS] = any ? (uint8_t)(255 - (best & 0xFF)) : 0;
      if (row % GLYD_WEIGHTS_ROWS == 0) {
        const int64_t left = p.view.rows - row;
        header[GLYD_WEIGHTS_BLOCK_AT_LAYOUT] = (uint8_t)LAYOUT;
        header[GLYD_WEIGHTS_BLOCK_AT_VERSION] = GLYD_WEIGHTS_VERSION;
        *(uint16_t *)(header + GLYD_WEIGHTS_BLOCK_AT_ROWS) = (uint16_t)(left < GLYD_WEIGHTS_ROWS ? left : GLYD_WEIGHTS_ROWS);
      }
    }
    __syncthreads();
  }
}

/* ---- sizes ------------------------------------------------------------------ */

/* Which escapes a weight of a row with a base has. */
struct Kind {
  bool digit, code3, exception;
};
template <int LAYOUT> __device__ __forceinline__ Kind kind_of(uint32_t w, uint32_t base) {
  Kind k = {false, false, false};
  if (LAYOUT == GLYD_WEIGHTS_MMA12) {
    k.exception = ((w >> 8) & 0x7F) - base > 7;
  } else if (base != 0) {
    const uint32_t place = ((w >> 7) & 0xFF) - base + GLYD_WEIGHTS_BELOW;
    k.digit = place - 9 > 2;
    k.code3 = place - 7 > 5;
    k.exception = place >= GLYD_WEIGHTS_SPAN && (w & 0x7FFF) != 0;
  }
  return k;
}

/* A warp a tile. */
template <int LAYOUT> __global__ void __launch_bounds__(128) tile_counts_kernel(const PlanArgs p) {
  const int64_t number = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
  if (number >= p.view.row_blocks * p.view.tiles) return;
  const int64_t block = number / p.view.tiles, tile = number % p.view.tiles;
  const uint8_t *bases = header_of(p, block) + GLYD_WEIGHTS_BLOCK_AT_BASES;
  const int64_t col = tile * p.view.tile_cols, end = min(col + p.view.tile_cols, p.view.cols);
  const int64_t row = block * GLYD_WEIGHTS_ROWS, left = p.view.rows - row;
  const int n_rows = left < GLYD_WEIGHTS_ROWS ? (int)left : GLYD_WEIGHTS_ROWS;
  uint32_t n2 = 0, n3 = 0, exceptions = 0;
  for (int r = 0; r < n_rows; r++) {
    const uint32_t base = bases[r];
    const uint16_t *from = p.weights + (row + r) * p.view.cols;
    for (int64_t c = col + threadIdx.x % 32; c < end; c += 32) {
      const Kind k = kind_of<LAYOUT>(from[c], base);
      n2 += k.digit, n3 += k.code3, exceptions += k.exception;
    }
  }
  n2 = warp_sum(n2), n3 = warp_sum(n3), exceptions = warp_sum(exceptions);
  if (threadIdx.x % 32 != 0) return;
  p.exc_index[block * (p.view.tiles + 1) + tile] = exceptions;
  if (LAYOUT == GLYD_WEIGHTS_TIERED)
    index_of(p, block)[tile] = (GLYD_WEIGHTS_ESCAPE_HEADER + ((n2 + 1) / 2 + n3 + 1) / 2 + GLYD_WEIGHTS_ESCAPE_UNIT - 1) /
                               GLYD_WEIGHTS_ESCAPE_UNIT;
}

/* ---- places ----------------------------------------------------------------- */

/* Sizes [n] to places [n + 1] by one warp; the largest size to *most. */
__device__ __forceinline__ void sizes_to_places(uint32_t *sizes, int64_t n, unsigned long long *most) {
  const uint32_t lane = threadIdx.x % 32;
  uint32_t at = 0, max = 0;
  for (int64_t i = 0; i < n; i += 32) {
    const uint32_t size = i + lane < n ? sizes[i + lane] : 0, before = before_in_warp(size);
    if (i + lane < n) sizes[i + lane] = at + before;
    at += __shfl_sync(~0u, before + size, 31);
    max = max > size ? max : size;
  }
  if (lane == 0) sizes[n] = at;
  if (most) {
    max = __reduce_max_sync(~0u, max);
    if (lane == 0) atomicMax(most, (unsigned long long)max);
  }
}

/* A warp a row block: places of its tiles' escapes and exceptions. */
__global__ void __launch_bounds__(128) row_block_places_kernel(const PlanArgs p) {
  const int64_t block = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
  if (block >= p.view.row_blocks) return;
  uint32_t *exceptions = p.exc_index + block * (p.view.tiles + 1);
  sizes_to_places(exceptions, p.view.tiles, nullptr);
  if (p.view.layout == GLYD_WEIGHTS_TIERED) sizes_to_places(index_of(p, block), p.view.tiles, p.totals + 2);
  __syncwarp();
  if (threadIdx.x % 32 == 0)
    *(uint32_t *)(header_of(p, block) + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT) = exceptions[p.view.tiles];
}

/* One block: places of the row blocks. */
__global__ void __launch_bounds__(1024) plan_end_kernel(const PlanArgs p) {
  __shared__ unsigned long long sums[2][32];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned long long exceptions = 0, units = 0, most = 0;
  for (int64_t first = 0; first < p.view.row_blocks; first += 1024) {
    const int64_t block = first + threadIdx.x;
    const bool there = block < p.view.row_blocks;
    unsigned long long mine[2] = {0, 0}, before[2];
    if (there) {
      mine[0] = *(const uint32_t *)(header_of(p, block) + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
      if (p.view.layout == GLYD_WEIGHTS_TIERED) mine[1] = index_of(p, block)[p.view.tiles];
    }
    most = most > mine[0] ? most : mine[0];
#pragma unroll
    for (int k = 0; k < 2; k++) {
      unsigned long long sum = mine[k];
      for (int d = 1; d < 32; d <<= 1) {
        const unsigned long long u = __shfl_up_sync(~0u, sum, d);
        if (lane >= (uint32_t)d) sum += u;
      }
      before[k] = sum - mine[k];
      if (lane == 31) sums[k][warp] = sum;
    }
    __syncthreads();
    unsigned long long all[2] = {0, 0};
    for (uint32_t w = 0; w < 32; w++)
      for (int k = 0; k < 2; k++) {
        if (w == warp) before[k] += all[k];
        all[k] += sums[k][w];
      }
    if (there) {
      uint8_t *header = header_of(p, block);
      *(unsigned long long *)(header + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST) = exceptions + before[0];
      *(unsigned long long *)(header + GLYD_WEIGHTS_BLOCK_AT_ESCAPES) = units + before[1];
    }
    exceptions += all[0], units += all[1];
    __syncthreads();
  }
  atomicMax(p.totals + 3, most);
  if (threadIdx.x == 0) p.totals[0] = units, p.totals[1] = exceptions;
}

/* ---- tiles ------------------------------------------------------------------ */

struct PackArgs {
  PackView view;
  uint8_t *out;
  const uint16_t *weights;
  const uint32_t *exc_index;
};

/* Header, and the gaps between sections. */
__global__ void pack_header_kernel(const PackArgs p) {
  if (threadIdx.x == 0) {
    *(uint32_t *)(p.out + GLYD_WEIGHTS_AT_MAGIC) = GLYD_WEIGHTS_MAGIC;
    p.out[GLYD_WEIGHTS_AT_VERSION] = GLYD_WEIGHTS_VERSION;
    p.out[GLYD_WEIGHTS_AT_LAYOUT] = (uint8_t)p.view.layout;
    *(int64_t *)(p.out + GLYD_WEIGHTS_AT_ROWS) = p.view.rows;
    *(int64_t *)(p.out + GLYD_WEIGHTS_AT_COLS) = p.view.cols;
    *(int64_t *)(p.out + GLYD_WEIGHTS_AT_SIZE) = p.view.nbytes;
    *(int64_t *)(p.out + GLYD_WEIGHTS_AT_ESCAPES) = p.view.n_units;
    *(int64_t *)(p.out + GLYD_WEIGHTS_AT_EXCEPTIONS) = p.view.n_exceptions;
    *(uint32_t *)(p.out + GLYD_WEIGHTS_AT_TILE_ESCAPE_MAX) = p.view.tile_escape_max;
    *(uint32_t *)(p.out + GLYD_WEIGHTS_AT_BLOCK_EXC_MAX) = p.view.block_exc_max;
  }
  const int64_t index_nbytes = p.view.layout == GLYD_WEIGHTS_TIERED ? 4 * p.view.row_blocks * (p.view.tiles + 1) : 0;
  const int64_t gaps[4][2] = {{p.view.index_at + index_nbytes, p.view.tiles_at},
                              {p.view.escapes_at + p.view.n_units * GLYD_WEIGHTS_ESCAPE_UNIT, p.view.places_at},
                              {p.view.places_at + 4 * p.view.n_exceptions, p.view.values_at},
                              {p.view.values_at + 2 * p.view.n_exceptions, p.view.nbytes}};
  for (int k = 0; k < 4; k++)
    for (int64_t i = gaps[k][0] + threadIdx.x; i < gaps[k][1]; i += blockDim.x) p.out[i] = 0;
}

/* Symbol of exponent − base + 9 for 0 … 13: code | digit << 2 | tier 3 code << 4. */
__constant__ uint8_t kSymbols[16] = {0x7F, 0x6F, 0x5F, 0x4F, 0x3F, 0x2F, 0x0F, 0x0B, 0x03, 0, 1, 2, 0x07, 0x1F, 0x8F, 0x8F};

__device__ __forceinline__ uint32_t symbol_of(uint32_t w, uint32_t base, bool *exception) {
  const uint32_t place = ((w >> 7) & 0xFF) - base + GLYD_WEIGHTS_BELOW;
  if (place >= GLYD_WEIGHTS_SPAN) *exception = (w & 0x7FFF) != 0;
  return kSymbols[place < GLYD_WEIGHTS_SPAN ? place : GLYD_WEIGHTS_SPAN];
}

/* Exclusive sum over the 128 threads of two numbers under 2^16 each; *all gets the sums. */
__device__ __forceinline__ uint32_t before_in_block(uint32_t v, uint32_t *shared /* [4] */, uint32_t *all, uint32_t *warps_before) {
  const uint32_t before = before_in_warp(v), warp = threadIdx.x / 32;
  __syncthreads();
  if (threadIdx.x % 32 == 31) shared[warp] = before + v;
  __syncthreads();
  uint32_t earlier = 0, sum = 0;
  for (uint32_t w = 0; w < 4; w++) {
    if (w == warp) earlier = sum;
    sum += shared[w];
  }
  *all = sum;
  *warps_before = earlier;
  return earlier + before;
}

template <int LAYOUT> __global__ void __launch_bounds__(128) pack_tiles_kernel(const PackArgs p) {
  constexpr int cols = LAYOUT == GLYD_WEIGHTS_TIERED ? GLYD_WEIGHTS_TIERED_COLS : GLYD_WEIGHTS_MMA12_COLS;
  constexpr int parts = cols / 32;
  __shared__ __align__(16) uint32_t escapes[LAYOUT == GLYD_WEIGHTS_TIERED ? GLYD_WEIGHTS_ESCAPE_TILE_MAX / 4 : 4];
  __shared__ uint32_t masks[cols][2]; /* exceptions of a column, a bit a row */
  __shared__ uint32_t scratch[4];
  const int64_t block = blockIdx.x / p.view.tiles, tile = blockIdx.x % p.view.tiles;
  const uint32_t t = threadIdx.x, warp = t / 32, g = t % 32 / 4, q = t % 4;
  const RowBlock b = row_block(p.view, block);
  for (uint32_t i = t; i < cols * 2; i += 128) masks[i / 2][i % 2] = 0;
  uint8_t *out_escapes = nullptr;
  uint32_t escape_nbytes = 0;
  if (LAYOUT == GLYD_WEIGHTS_TIERED) {
    out_escapes = (uint8_t *)escapes_of(p.view, b, block, tile, &escape_nbytes);
    for (uint32_t i = t; i < escape_nbytes / 4; i += 128) escapes[i] = 0;
  }
  __syncthreads();
  uint8_t *out = p.out + (tile_of(p.view, block, tile) - p.view.base);
  const int64_t col0 = tile * cols, row0 = block * GLYD_WEIGHTS_ROWS;
  uint32_t symbols[LAYOUT == GLYD_WEIGHTS_TIERED ? 16 : 1], codes[4] = {0, 0, 0, 0};
  uint32_t counts = 0; /* digits | tier 3 codes << 16 */
#pragma unroll
  for (int v = 0; v < parts; v++) {
    uint32_t bytes[4] = {0, 0, 0, 0};
#pragma unroll
    for (int s = 0; s < 2; s++) {
      uint32_t half[2] = {0, 0};
#pragma unroll
      for (int j = 0; j < 8; j++) {
        const uint32_t h = j / 2 % 2, row = warp * 16 + h * 8 + g, col = (2 * v + s) * 16 + j / 4 * 8 + 2 * q + j % 2;
        const bool there = row0 + row < p.view.rows && col0 + col < p.view.cols;
        const uint32_t base = b.bases[row];
        uint32_t byte = 0, code = 0;
        if (there) {
          const uint32_t w = p.weights[(row0 + row) * p.view.cols + col0 + col];
          bool exception = false;
          if (LAYOUT == GLYD_WEIGHTS_MMA12) {
            code = ((w >> 8) & 0x7F) - base;
            exception = code > 7;
            code |= w >> 15 << 7;
            byte = w & 0xFF;
            if (exception) code = byte = 0;
          } else {
            if (base != 0) code = symbol_of(w, base, &exception);
            byte = exception ? 0 : (w >> 8 & 0x80) | (w & 0x7F);
          }
          if (exception) atomicOr(&masks[col][row / 32], 1u << row % 32);
        }
        const int at = 8 * s + j; /* of the part's 16 */
        bytes[at / 4] |= byte << 8 * (at % 4);
        if (LAYOUT == GLYD_WEIGHTS_MMA12) {
          half[j / 4] |= code << 8 * (j % 4);
        } else {
          codes[v] |= (code & 3) << 2 * at;
          if (at % 4 == 0) symbols[4 * v + at / 4] = 0;
          symbols[4 * v + at / 4] |= code << 8 * (at % 4);
          counts += ((code & 3) == 3) + ((code & 15) == 15 ? 0x10000u : 0);
        }
      }
      if (LAYOUT == GLYD_WEIGHTS_MMA12) codes[2 * v + s] = half[0] | __funnelshift_r(half[1], half[1], 4);
    }
    ((uint4 *)out)[128 * v + t] = make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
  }
  ((uint4 *)out)[128 * parts + t] = make_uint4(codes[0], codes[1], codes[2], codes[3]);

  uint32_t all, earlier;
  if (LAYOUT == GLYD_WEIGHTS_TIERED) {
    const uint32_t before = before_in_block(counts, scratch, &all, &earlier);
    const uint32_t start3 = ((all & 0xFFFF) + 1) / 2;
    const uint32_t limit = escape_nbytes / 4;
    if (t % 32 == 0) {
      atomicOr(&escapes[warp / 2], (earlier & 0xFFFF) << 16 * (warp % 2));
      atomicOr(&escapes[2 + warp / 2], (start3 + (earlier >> 16)) << 16 * (warp % 2));
    }
    uint32_t at2 = before & 0xFFFF, at3 = start3 + (before >> 16);
#pragma unroll
    for (int i = 0; i < 64; i++) {
      const uint32_t s = symbols[i / 4] >> 8 * (i % 4) & 0xFF;
      if ((s & 3) != 3) continue;
      const uint32_t word2 = 4 + at2 / 16, word3 = 4 + at3 / 8;
      if (word2 < limit) atomicOr(&escapes[word2], (s >> 2 & 3) << 2 * (at2 % 16));
      at2++;
      if ((s & 15) != 15) continue;
      if (word3 < limit) atomicOr(&escapes[word3], (s >> 4) << 4 * (at3 % 8));
      at3++;
    }
    __syncthreads();
    for (uint32_t i = t; i < escape_nbytes / 16; i += 128) ((uint4 *)out_escapes)[i] = ((const uint4 *)escapes)[i];
  }

  const uint32_t *index = p.exc_index + block * (p.view.tiles + 1) + tile;
  if (index[0] == index[1]) return;
  __syncthreads();
  uint64_t mask = 0;
  if (t < cols) mask = (uint64_t)masks[t][1] << 32 | masks[t][0];
  uint64_t at = (uint64_t)index[0] + before_in_block((uint32_t)__popcll(mask), scratch, &all, &earlier);
  uint32_t *places = (uint32_t *)b.places;
  uint16_t *values = (uint16_t *)b.values;
  for (; mask != 0; mask &= mask - 1, at++) {
    const uint32_t row = (uint32_t)__ffsll((long long)mask) - 1;
    if (at >= b.n_exceptions) break; /* weights that changed since the plan */
    places[at] = (uint32_t)(col0 + t) * GLYD_WEIGHTS_ROWS + row;
    values[at] = p.weights[(row0 + row) * p.view.cols + col0 + t];
  }
}

/* ---- launchers -------------------------------------------------------------- */

int64_t glyd_gpu_plan_nbytes(const int64_t *meta) {
  PackView v;
  const int status = glyd_gpu_view(&v, nullptr, UINT64_MAX, meta);
  return status != 0 ? status : v.tiles_at;
}

int glyd_gpu_plan(void *plan, uint64_t plan_nbytes, void *exc_index, uint64_t exc_index_nbytes, void *totals,
                  const void *weights, const int64_t *meta, void *stream) {
  PlanArgs p;
  const int64_t start[7] = {meta[0], meta[1], meta[2], 0, 0, 0, 0};
  const int status = glyd_gpu_view(&p.view, plan, UINT64_MAX, start);
  if (status != 0) return status;
  if ((uint64_t)p.view.tiles_at > plan_nbytes ||
      exc_index_nbytes < 4 * (uint64_t)p.view.row_blocks * (uint64_t)(p.view.tiles + 1))
    return -GLYD_E_BUFFER;
  p.weights = (const uint16_t *)weights;
  p.plan = (uint8_t *)plan;
  p.exc_index = (uint32_t *)exc_index;
  p.totals = (unsigned long long *)totals;
  cudaStream_t s = (cudaStream_t)stream;
  const int64_t n_tiles = p.view.row_blocks * p.view.tiles, groups = (n_tiles + 3) / 4, fours = (p.view.row_blocks + 3) / 4;
  if (const int bad = glyd_gpu_check_grid(groups)) return bad;
  cudaError_t e = cudaMemsetAsync(plan, 0, (size_t)p.view.tiles_at, s);
  if (e == cudaSuccess) e = cudaMemsetAsync(totals, 0, 4 * sizeof(unsigned long long), s);
  if (e != cudaSuccess) return (int)e;
  const unsigned rows = (unsigned)(p.view.rows < (1 << 20) ? p.view.rows : (1 << 20));
  if (p.view.layout == GLYD_WEIGHTS_MMA12) {
    row_bases_kernel<GLYD_WEIGHTS_MMA12><<<rows, 128, 0, s>>>(p);
    tile_counts_kernel<GLYD_WEIGHTS_MMA12><<<(unsigned)groups, 128, 0, s>>>(p);
  } else {
    row_bases_kernel<GLYD_WEIGHTS_TIERED><<<rows, 128, 0, s>>>(p);
    tile_counts_kernel<GLYD_WEIGHTS_TIERED><<<(unsigned)groups, 128, 0, s>>>(p);
  }
  row_block_places_kernel<<<(unsigned)fours, 128, 0, s>>>(p);
  plan_end_kernel<<<1, 1024, 0, s>>>(p);
  return (int)cudaGetLastError();
}

int glyd_gpu_pack(void *out, uint64_t out_nbytes, const void *plan, const void *exc_index, const void *weights,
                  const int64_t *meta, void *stream) {
  PackArgs p;
  const int status = glyd_gpu_view(&p.view, out, out_nbytes, meta);
  if (status != 0) return status;
  p.out = (uint8_t *)out;
  p.weights = (const uint16_t *)weights;
  p.exc_index = (const uint32_t *)exc_index;
  cudaStream_t s = (cudaStream_t)stream;
  if (const int bad = glyd_gpu_check_grid(p.view.row_blocks * p.view.tiles)) return bad;
  const cudaError_t e = cudaMemcpyAsync(out, plan, (size_t)p.view.tiles_at, cudaMemcpyDeviceToDevice, s);
  if (e != cudaSuccess) return (int)e;
  pack_header_kernel<<<1, 128, 0, s>>>(p);
  const unsigned grid = (unsigned)(p.view.row_blocks * p.view.tiles);
  if (p.view.layout == GLYD_WEIGHTS_MMA12)
    pack_tiles_kernel<GLYD_WEIGHTS_MMA12><<<grid, 128, 0, s>>>(p);
  else
    pack_tiles_kernel<GLYD_WEIGHTS_TIERED><<<grid, 128, 0, s>>>(p);
  return (int)cudaGetLastError();
}
