/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Tiles into shared memory as rows of exact weights, by 128 threads. Warp w
 * writes rows 16 w … 16 w + 15 and nobody else reads or writes them before the
 * next barrier of the block.
 */
#ifndef GLYD_GPU_TILE_ROWS_CUH
#define GLYD_GPU_TILE_ROWS_CUH

#include <cuda_bf16.h>

#include "tile_decode.cuh"

/* A slab: 64 rows of 128 columns, one tile tiered or two of mma12. */
constexpr int kSlabCols = GLYD_WEIGHTS_TIERED_COLS;
constexpr int kSlabStride = kSlabCols * 2 + 16; /* bytes of a row: four banks further each, so that neither words of
                                                   eight rows nor 16 bytes of eight lanes meet in a bank */
constexpr int kSlabNbytes = GLYD_WEIGHTS_ROWS * kSlabStride;
static_assert(kSlabCols == 2 * GLYD_WEIGHTS_MMA12_COLS, "two tiles of mma12");

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
__device__ __forceinline__ void store_words(uint8_t *at, int part, const uint32_t (&a)[8], const RowFactors &f) {
#pragma unroll
  for (int i = 0; i < 8; i++)
    *(uint32_t *)(at + (i & 1) * 8 * kSlabStride + (4 * part + i / 2) * 16) = times(a[i], f.of[i & 1]);
}
__device__ __forceinline__ uint8_t *word_place(uint8_t *rows) {
  const uint32_t lane = threadIdx.x % 32;
  return rows + (threadIdx.x / 32 * 16 + lane / 4) * kSlabStride + lane % 4 * 4;
}

/* A thread's part of a slab, loaded ahead of its use. */
template <int LAYOUT> struct SlabWords;
template <> struct SlabWords<GLYD_WEIGHTS_MMA12> {
  uint4 low[4], codes[2];
};
template <> struct SlabWords<GLYD_WEIGHTS_TIERED> {
  uint4 sign_mantissa[4], codes;
};
__device__ __forceinline__ void load_slab(SlabWords<GLYD_WEIGHTS_MMA12> &w, const PackView &v, int64_t block, int64_t slab) {
  const uint4 *from = (const uint4 *)tile_of(v, block, 2 * slab) + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 2; k++) {
    if (k == 1 && 2 * slab + 1 >= v.tiles) break; /* its words are not stored either */
    w.low[2 * k] = __ldcs(from + 384 * k);
    w.low[2 * k + 1] = __ldcs(from + 384 * k + 128);
    w.codes[k] = __ldcs(from + 384 * k + 256);
  }
}
__device__ __forceinline__ void load_slab(SlabWords<GLYD_WEIGHTS_TIERED> &w, const PackView &v, int64_t block, int64_t slab) {
  const uint4 *from = (const uint4 *)tile_of(v, block, slab) + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 4; k++) w.sign_mantissa[k] = __ldcs(from + 128 * k);
  w.codes = __ldcs(from + 512);
}

__device__ __forceinline__ void slab_to_rows(uint8_t *rows, const SlabWords<GLYD_WEIGHTS_MMA12> &w, const RowFactors &f) {
  uint8_t *at = word_place(rows);
#pragma unroll
  for (int k = 0; k < 4; k++) {
    uint32_t a[8];
    const uint4 c = w.codes[k / 2];
    decode_mma12(w.low[k], k % 2 ? c.z : c.x, k % 2 ? c.w : c.y, a);
    store_words(at, k, a, f);
  }
}
template <class Escapes>
__device__ __forceinline__ void slab_to_rows(uint8_t *rows, const SlabWords<GLYD_WEIGHTS_TIERED> &w, const RowFactors &f,
                                             const Escapes &e, const TieredTables &tables) {
  uint8_t *at = word_place(rows);
  TieredThread t = tiered_thread(e, w.codes, threadIdx.x / 32);
#pragma unroll
  for (int k = 0; k < 4; k++) {
    uint32_t a[8];
    decode_tiered(e, tables, t, k, w.sign_mantissa[k], a);
    store_words(at, k, a, f);
  }
}

#endif
