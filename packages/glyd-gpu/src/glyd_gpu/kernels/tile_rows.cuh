/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * A tile into shared memory as rows of exact weights, by 128 threads. Warp w
 * writes rows 16 w … 16 w + 15 and nobody else reads or writes them before the
 * next barrier of the block.
 */
#ifndef GLYD_GPU_TILE_ROWS_CUH
#define GLYD_GPU_TILE_ROWS_CUH

#include <cuda_bf16.h>

#include "tile_decode.cuh"

template <int LAYOUT> struct Tile {
  static constexpr int cols = LAYOUT == GLYD_WEIGHTS_TIERED ? GLYD_WEIGHTS_TIERED_COLS : GLYD_WEIGHTS_MMA12_COLS;
  static constexpr int stride = cols * 2 + 16; /* bytes of a row: four banks further each, so that neither words of
                                                  eight rows nor 16 bytes of eight lanes meet in a bank */
  static constexpr int nbytes = GLYD_WEIGHTS_ROWS * stride;
};

__device__ __forceinline__ uint32_t times(uint32_t pair, uint32_t factor) { /* two bf16 by two bf16, exact here */
  __nv_bfloat162 a, b;
  *(uint32_t *)&a = pair;
  *(uint32_t *)&b = factor;
  a = __hmul2(a, b);
  return *(uint32_t *)&a;
}

/* The two factors of a thread's rows, each twice in a word. */
struct RowFactors {
  uint32_t of[2];
};
__device__ __forceinline__ RowFactors row_factors(int layout, const uint8_t *bases) {
  const uint32_t row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  RowFactors f;
  f.of[0] = (factor_bits(layout, bases[row]) << 7) * 0x10001u;
  f.of[1] = (factor_bits(layout, bases[row + 8]) << 7) * 0x10001u;
  return f;
}

/* Eight words (two k16 steps) to their places in the rows; at: the thread's word of row g, step 0. */
template <int LAYOUT>
__device__ __forceinline__ void store_words(uint8_t *at, int part, const uint32_t (&a)[8], const RowFactors &f) {
#pragma unroll
  for (int i = 0; i < 8; i++)
    *(uint32_t *)(at + (i & 1) * 8 * Tile<LAYOUT>::stride + (4 * part + i / 2) * 16) = times(a[i], f.of[i & 1]);
}

template <int LAYOUT> __device__ __forceinline__ uint8_t *word_place(uint8_t *rows) {
  const uint32_t lane = threadIdx.x % 32;
  return rows + (threadIdx.x / 32 * 16 + lane / 4) * Tile<LAYOUT>::stride + lane % 4 * 4;
}

__device__ __forceinline__ void mma12_to_rows(uint8_t *rows, const uint8_t *tile, const RowFactors &f) {
  const uint4 *from = (const uint4 *)tile + threadIdx.x;
  const uint4 low0 = __ldcs(from), low1 = __ldcs(from + 128), codes = __ldcs(from + 256);
  uint8_t *at = word_place<GLYD_WEIGHTS_MMA12>(rows);
  uint32_t a[8];
  decode_mma12(low0, codes.x, codes.y, a);
  store_words<GLYD_WEIGHTS_MMA12>(at, 0, a, f);
  decode_mma12(low1, codes.z, codes.w, a);
  store_words<GLYD_WEIGHTS_MMA12>(at, 1, a, f);
}

struct TieredWords { /* a thread's part of a tile, loaded ahead */
  uint4 sign_mantissa[4], codes;
};
__device__ __forceinline__ TieredWords load_tiered(const uint8_t *tile) {
  const uint4 *from = (const uint4 *)tile + threadIdx.x;
  TieredWords w;
#pragma unroll
  for (int v = 0; v < 4; v++) w.sign_mantissa[v] = __ldcs(from + 128 * v);
  w.codes = __ldcs(from + 512);
  return w;
}
template <class Escapes>
__device__ __forceinline__ void tiered_to_rows(uint8_t *rows, const TieredWords &w, const Escapes &e,
                                               const TieredTables &tables, const RowFactors &f) {
  uint8_t *at = word_place<GLYD_WEIGHTS_TIERED>(rows);
  TieredThread t = tiered_thread(e, w.codes, threadIdx.x / 32);
#pragma unroll
  for (int v = 0; v < 4; v++) {
    uint32_t a[8];
    decode_tiered(e, tables, t, v, w.sign_mantissa[v], a);
    store_words<GLYD_WEIGHTS_TIERED>(at, v, a, f);
  }
}

#endif
