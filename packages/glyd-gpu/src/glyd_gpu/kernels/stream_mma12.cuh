/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Product of an mma12 pack with 1 to 16 tokens, straight from global memory to
 * registers: a block owns 16 or 32 rows, its warps split the columns. No ring,
 * no clusters, nothing to set up, so it starts fast; for small matrices and few
 * tokens. Runs on every architecture.
 *
 * Partial sums of the warps meet in shared memory and are added in warp order;
 * every warp takes its exceptions 32 at a time in the order of the list, so
 * the same bits come out of every run.
 */
#ifndef GLYD_STREAM_MMA12_CUH
#define GLYD_STREAM_MMA12_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "glyd/format_weights.h"
#include "mma_sync.cuh"

namespace glyd {

struct StreamArgs {
  const uint8_t *blocks;     /* [n_blocks, 128] row block headers */
  const uint8_t *tiles;      /* [n_blocks, n_tiles, 6144] */
  const uint32_t *places;    /* [n_exceptions] */
  const uint16_t *values;    /* [n_exceptions] bf16 */
  const __nv_bfloat16 *x;    /* [tokens, cols] bf16, row-major */
  const __nv_bfloat16 *bias; /* [rows] bf16, or null */
  __nv_bfloat16 *y;          /* [tokens, rows] bf16, row-major */
  uint64_t n_exceptions;
  int64_t rows;
  int cols, tokens, n_tiles;
  int dependent; /* 1: launched ahead of the end of the kernel before; 2: and the pack is older than that kernel */
};

__device__ __forceinline__ uint4 load_once(const uint8_t *p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}
/* 8 weights: the four A registers of one k16 step, high bytes biased as the spec says */
__device__ __forceinline__ void stream_decode(uint32_t codes, uint32_t low0, uint32_t low1, uint32_t *a) {
  const uint32_t h0 = (codes & 0x87878787u) | 0x40404040u,
                 h1 = (__funnelshift_l(codes, codes, 4) & 0x87878787u) | 0x40404040u;
  a[0] = __byte_perm(low0, h0, 0x5140), a[1] = __byte_perm(low0, h0, 0x7362);
  a[2] = __byte_perm(low1, h1, 0x5140), a[3] = __byte_perm(low1, h1, 0x7362);
}

/* NT: n8 blocks of tokens; RS: strips of 16 rows of a block; UN: tiles in flight of a warp */
template <int NT, int RS, int WARPS, int UN>
__global__ void __launch_bounds__(WARPS * 32) stream_mma12_kernel(const StreamArgs p) {
  constexpr int ROWS = 16 * RS, PITCH = NT * 8 + 1;
  __shared__ float sums[WARPS][ROWS][PITCH];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
  const int64_t block = blockIdx.x / (4 / RS);
  const int strip = blockIdx.x % (4 / RS) * RS; /* first of the block's strips in its row block */
  const uint8_t *header = p.blocks + block * GLYD_WEIGHTS_BLOCK_HEADER;
  const uint8_t *tiles = p.tiles + (size_t)block * p.n_tiles * GLYD_WEIGHTS_MMA12_TILE + strip * 512 + lane * 16;
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  if (p.dependent != 2) asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  /* Two tiles and more are on their way at any time: a tile's registers are loaded again as soon as they have been
   * multiplied. One at a time: two blocks a multiprocessor hide its latency, and need the registers. */
  uint4 low[UN][RS][2], code[UN][RS];
  auto load = [&](int u, int c) {
    if (c >= p.n_tiles) return;
    const uint8_t *t = tiles + (size_t)c * GLYD_WEIGHTS_MMA12_TILE;
#pragma unroll
    for (int r = 0; r < RS; r++) {
      low[u][r][0] = load_once(t + r * 512);
      low[u][r][1] = load_once(t + 2048 + r * 512);
      code[u][r] = load_once(t + 4096 + r * 512);
    }
  };
  if (UN > 1)
#pragma unroll
    for (int u = 0; u < UN; u++) load(u, warp + u * WARPS);
  float acc[RS][NT][4];
#pragma unroll
  for (int r = 0; r < RS; r++)
#pragma unroll
    for (int i = 0; i < NT; i++) acc[r][i][0] = acc[r][i][1] = acc[r][i][2] = acc[r][i][3] = 0.f;
  /* the first exceptions of every warp are on their way while it multiplies */
  uint32_t count = 0, place = ~0u, value = 0;
  const uint32_t *places = nullptr;
  const uint16_t *values = nullptr;
  if (p.n_exceptions) {
    count = *(const uint32_t *)(header + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
    const uint64_t first = *(const uint64_t *)(header + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST);
    if (count > p.n_exceptions || first > p.n_exceptions - count) count = 0; /* a pack that lies */
    places = p.places + first, values = p.values + first;
    if (threadIdx.x < count) place = places[threadIdx.x], value = values[threadIdx.x];
  }
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  for (int c0 = warp; c0 < p.n_tiles; c0 += WARPS * UN) {
#pragma unroll
    for (int u = 0; u < UN; u++) {
      const int tile = c0 + u * WARPS;
      if (tile >= p.n_tiles) break;
      if (UN == 1) load(u, tile);
      const int col = tile * 64 + 2 * q;
      uint32_t b[NT][8]; /* columns col + 8 m and the next */
#pragma unroll
      for (int i = 0; i < NT; i++) {
        const int t = i * 8 + g;
        const uint32_t *x = reinterpret_cast<const uint32_t *>(p.x + (size_t)t * p.cols + col);
        const bool whole = t < p.tokens && (tile + 1) * 64 <= p.cols;
#pragma unroll
        for (int m = 0; m < 8; m++) b[i][m] = whole || (t < p.tokens && col + 8 * m < p.cols) ? __ldg(x + 4 * m) : 0u;
      }
#pragma unroll
      for (int r = 0; r < RS; r++) {
        const uint4 l0 = low[u][r][0], l1 = low[u][r][1], c = code[u][r];
        uint32_t a[4][4];
        stream_decode(c.x, l0.x, l0.y, a[0]), stream_decode(c.y, l0.z, l0.w, a[1]);
        stream_decode(c.z, l1.x, l1.y, a[2]), stream_decode(c.w, l1.z, l1.w, a[3]);
#pragma unroll
        for (int i = 0; i < NT; i++)
#pragma unroll
          for (int s = 0; s < 4; s++) mma_16x8x16(acc[r][i], a[s], b[i][2 * s], b[i][2 * s + 1]);
      }
      if (UN > 1) load(u, tile + WARPS * UN);
    }
  }
  const uint8_t *bases = header + GLYD_WEIGHTS_BLOCK_AT_BASES + strip * 16;
#pragma unroll
  for (int r = 0; r < RS; r++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = r * 16 + h * 8 + g;
      const uint32_t base = bases[row];
      const float f = base == 0 ? 0.f : __uint_as_float((2 * base - 1) << 23);
#pragma unroll
      for (int i = 0; i < NT; i++)
#pragma unroll
        for (int k = 0; k < 2; k++) sums[warp][row][i * 8 + 2 * q + k] = acc[r][i][2 * h + k] * f;
    }
  __syncwarp();
  for (uint32_t e0 = warp * 32; e0 < count; e0 += WARPS * 32) {
    if (e0 >= WARPS * 32) { /* not the first round, which is in registers */
      place = e0 + lane < count ? places[e0 + lane] : ~0u;
      value = e0 + lane < count ? values[e0 + lane] : 0;
    }
    const uint32_t row = (place & 63) - strip * 16, col = place >> 6;
    const bool mine = place != ~0u && row < ROWS && col < (uint32_t)p.cols;
    /* lanes with the same row take turns */
    const uint32_t same = __match_any_sync(~0u, mine ? row : 64u + lane), turn = __popc(same & ((1u << lane) - 1));
    float delta = 0;
    if (mine) delta = __uint_as_float(value << 16) - __uint_as_float((uint32_t)bases[row] << 24);
    for (uint32_t k = 0; __any_sync(~0u, mine && turn >= k); k++) {
      if (mine && turn == k)
#pragma unroll 4
        for (int t = 0; t < p.tokens; t++)
          sums[warp][row][t] += delta * __bfloat162float(p.x[(size_t)t * p.cols + col]);
      __syncwarp();
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < ROWS * p.tokens; i += WARPS * 32) {
    const int r = i % ROWS, t = i / ROWS;
    const int64_t row = block * 64 + strip * 16 + r;
    float v = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) v += sums[w][r][t];
    if (row < p.rows) p.y[(size_t)t * p.rows + row] = __float2bfloat16(p.bias ? v + __bfloat162float(p.bias[row]) : v);
  }
}

} // namespace glyd

#endif
