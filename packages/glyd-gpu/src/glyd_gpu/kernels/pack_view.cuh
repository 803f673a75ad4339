/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Sections of a pack, computed on the host from its meta, and its row blocks
 * and tiles as kernels see them. What comes from the pack itself (starts,
 * counts, index) is clamped to the sections before it is used as a place.
 */
#ifndef GLYD_GPU_PACK_VIEW_CUH
#define GLYD_GPU_PACK_VIEW_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "glyd/format_weights.h"
#include "glyd/status.h"

struct PackView {
  const uint8_t *base; /* multiple of 128 */
  int64_t rows, cols;
  int64_t row_blocks, tiles;                                /* tiles of a row block */
  int64_t index_at, tiles_at, escapes_at, places_at, values_at, nbytes;
  int64_t n_units, n_exceptions;
  uint32_t tile_cols, tile_nbytes, tile_escape_max, block_exc_max;
  int layout;
};

inline int64_t glyd_gpu_aligned(int64_t n) { return (n + GLYD_WEIGHTS_ALIGN - 1) / GLYD_WEIGHTS_ALIGN * GLYD_WEIGHTS_ALIGN; }

/* Where the sections of a pack of this meta lie; 0 or a negative glyd_status. */
inline int glyd_gpu_view(PackView *view, const void *pack, uint64_t pack_nbytes, const int64_t *meta) {
  PackView v = {};
  v.base = (const uint8_t *)pack;
  v.layout = (int)meta[0];
  v.rows = meta[1], v.cols = meta[2], v.n_units = meta[3], v.n_exceptions = meta[4];
  const bool tiered = meta[0] == GLYD_WEIGHTS_TIERED;
  if (!(tiered || meta[0] == GLYD_WEIGHTS_MMA12) || v.rows < 1 || v.rows > (int64_t)GLYD_WEIGHTS_ROWS_MAX || v.cols < 1 ||
      v.cols >= (int64_t)GLYD_WEIGHTS_COLS_MAX || v.rows > ((int64_t)1 << 56) / v.cols)
    return -GLYD_E_CORRUPT;
  v.tile_cols = tiered ? GLYD_WEIGHTS_TIERED_COLS : GLYD_WEIGHTS_MMA12_COLS;
  v.tile_nbytes = tiered ? GLYD_WEIGHTS_TIERED_TILE : GLYD_WEIGHTS_MMA12_TILE;
  v.row_blocks = (v.rows + GLYD_WEIGHTS_ROWS - 1) / GLYD_WEIGHTS_ROWS;
  v.tiles = (v.cols + v.tile_cols - 1) / v.tile_cols;
  const int64_t units_max = tiered ? v.row_blocks * v.tiles * (GLYD_WEIGHTS_ESCAPE_TILE_MAX / GLYD_WEIGHTS_ESCAPE_UNIT) : 0;
  if (v.n_units < 0 || v.n_units > units_max || v.n_exceptions < 0 || v.n_exceptions > v.rows * v.cols || meta[5] < 0 ||
      meta[5] > (tiered ? GLYD_WEIGHTS_ESCAPE_TILE_MAX : 0) || meta[5] % GLYD_WEIGHTS_ESCAPE_UNIT != 0 || meta[6] < 0 ||
      meta[6] > (int64_t)UINT32_MAX)
    return -GLYD_E_CORRUPT;
  v.tile_escape_max = (uint32_t)meta[5];
  v.block_exc_max = (uint32_t)meta[6];
  v.index_at = GLYD_WEIGHTS_HEADER + v.row_blocks * GLYD_WEIGHTS_BLOCK_HEADER;
  v.tiles_at = glyd_gpu_aligned(v.index_at + (tiered ? 4 * v.row_blocks * (v.tiles + 1) : 0));
  v.escapes_at = glyd_gpu_aligned(v.tiles_at + v.row_blocks * v.tiles * v.tile_nbytes);
  v.places_at = glyd_gpu_aligned(v.escapes_at + v.n_units * GLYD_WEIGHTS_ESCAPE_UNIT);
  v.values_at = glyd_gpu_aligned(v.places_at + 4 * v.n_exceptions);
  v.nbytes = glyd_gpu_aligned(v.values_at + 2 * v.n_exceptions);
  if (pack_nbytes < (uint64_t)v.nbytes) return -GLYD_E_TRUNCATED;
  if ((uintptr_t)pack % GLYD_WEIGHTS_ALIGN != 0) return -GLYD_E_PARAMETER;
  *view = v;
  return 0;
}

/* A row block: its exceptions and its first escape unit, inside of their sections. */
struct RowBlock {
  const uint8_t *bases;   /* [64] */
  const uint32_t *places; /* [n_exceptions] */
  const uint16_t *values;
  uint32_t n_exceptions;
  uint64_t unit;
};

__device__ __forceinline__ RowBlock row_block(const PackView &v, int64_t block) {
  const uint8_t *header = v.base + GLYD_WEIGHTS_HEADER + block * GLYD_WEIGHTS_BLOCK_HEADER;
  const uint64_t limit = (uint64_t)v.n_exceptions;
  uint64_t first = *(const uint64_t *)(header + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST);
  first = first < limit ? first : limit;
  const uint64_t n = *(const uint32_t *)(header + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
  RowBlock b;
  b.bases = header + GLYD_WEIGHTS_BLOCK_AT_BASES;
  b.places = (const uint32_t *)(v.base + v.places_at) + first;
  b.values = (const uint16_t *)(v.base + v.values_at) + first;
  b.n_exceptions = (uint32_t)(n < limit - first ? n : limit - first);
  b.unit = *(const uint64_t *)(header + GLYD_WEIGHTS_BLOCK_AT_ESCAPES);
  return b;
}

__device__ __forceinline__ const uint8_t *tile_of(const PackView &v, int64_t block, int64_t tile) {
  return v.base + v.tiles_at + (block * v.tiles + tile) * v.tile_nbytes;
}

/* Escapes of a tile: *nbytes is a multiple of 16, at most tile_escape_max. */
__device__ __forceinline__ const uint8_t *escapes_of(const PackView &v, const RowBlock &b, int64_t block, int64_t tile,
                                                     uint32_t *nbytes) {
  const uint32_t *index = (const uint32_t *)(v.base + v.index_at) + block * (v.tiles + 1) + tile;
  const uint32_t from = index[0], to = index[1];
  const uint64_t limit = (uint64_t)v.n_units;
  uint64_t first = (b.unit < limit ? b.unit : limit) + from;
  first = first < limit ? first : limit;
  uint32_t units = to > from ? to - from : 0;
  units = units < v.tile_escape_max / GLYD_WEIGHTS_ESCAPE_UNIT ? units : v.tile_escape_max / GLYD_WEIGHTS_ESCAPE_UNIT;
  units = units < limit - first ? units : (uint32_t)(limit - first);
  *nbytes = units * GLYD_WEIGHTS_ESCAPE_UNIT;
  return v.base + v.escapes_at + first * GLYD_WEIGHTS_ESCAPE_UNIT;
}

/* First of a row block's exceptions with place >= key, found by a whole warp; places ascend. */
__device__ __forceinline__ uint32_t first_place(const RowBlock &b, uint32_t key) {
  const uint32_t lane = threadIdx.x & 31;
  uint64_t low = 0, high = b.n_exceptions; /* the answer is in low … high */
  while (high > low) {
    const uint64_t step = (high - low + 31) / 32, at = low + lane * step;
    const uint32_t below = __popc(__ballot_sync(~0u, at < high && b.places[at] < key));
    if (below == 0) break;
    low += (below - 1) * step + 1;
    high = high < low + step - 1 ? high : low + step - 1;
  }
  return (uint32_t)low;
}

/* Factor of a row's sum: a product decodes to a fixed base (spec, "mma12" and "tiered"). */
__device__ __forceinline__ uint32_t factor_bits(int layout, uint32_t base) { /* sign, exponent; << 23 float, << 7 bf16 */
  return base == 0 ? 0 : layout == GLYD_WEIGHTS_MMA12 ? 2 * base - 1 : base;
}

/* Status of a grid of more blocks than CUDA takes, else 0. */
inline int glyd_gpu_check_grid(int64_t blocks) { return blocks > 0x7FFFFFFF ? -GLYD_E_PARAMETER : 0; }

#endif
