/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Rows of a packed table by number: only the tiles of the rows asked for are
 * read. A block of four warps writes kRowChunk columns of one row; a warp
 * decodes its 16 rows of a tile and keeps one.
 */
#include <assert.h>

#include "glyd_gpu.h"
#include "tile_rows.cuh"

constexpr int kRowChunk = 4096;

struct EmbeddingArgs {
  PackView view;
  uint16_t *out;   /* [n_ids, cols] bf16 */
  const void *ids; /* [n_ids] i32 or i64 */
  int64_t chunks;
  int wide; /* ids are i64 */
};

/* Two weights of a row, at an even column. */
__device__ __forceinline__ void store_pair(uint16_t *row, int64_t col, int64_t cols, uint32_t pair, bool aligned) {
  if (aligned && col + 1 < cols) {
    *(uint32_t *)(row + col) = pair;
    return;
  }
  if (col < cols) row[col] = (uint16_t)pair;
  if (col + 1 < cols) row[col + 1] = (uint16_t)(pair >> 16);
}

template <int LAYOUT> __global__ void __launch_bounds__(128) embedding_kernel(const EmbeddingArgs p) {
  __shared__ TieredTables tables;
  const int64_t number = blockIdx.x / p.chunks, col = blockIdx.x % p.chunks * kRowChunk;
  const int64_t end = min(col + kRowChunk, p.view.cols);
  const int64_t id = p.wide ? ((const int64_t *)p.ids)[number] : ((const int32_t *)p.ids)[number];
  assert(id >= 0 && id < p.view.rows && "an id is outside of the packed table");
  if (id < 0 || id >= p.view.rows) return; /* where asserts are compiled out: nothing outside is read */
  if (LAYOUT == GLYD_WEIGHTS_TIERED) {
    fill_tables(&tables);
    __syncthreads();
  }
  const int64_t block = id / GLYD_WEIGHTS_ROWS;
  const uint32_t r = (uint32_t)(id % GLYD_WEIGHTS_ROWS), warp_row = r / 16, half = r / 8 % 2, g = r % 8;
  const RowBlock b = row_block(p.view, block);
  const uint32_t factor = (factor_bits(LAYOUT, b.bases[r]) << 7) * 0x10001u;
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, q = lane % 4;
  uint16_t *row = p.out + number * p.view.cols;
  const bool aligned = p.view.cols % 2 == 0;
  if (LAYOUT == GLYD_WEIGHTS_MMA12) {
    /* four lanes have the row's weights of a tile: a warp takes eight tiles at once */
    const uint32_t thread = warp_row * 32 + g * 4 + q;
    for (int64_t c = col + (warp * 8 + lane / 4) * GLYD_WEIGHTS_MMA12_COLS; c < end; c += 32 * GLYD_WEIGHTS_MMA12_COLS) {
      const uint4 *from = (const uint4 *)tile_of(p.view, block, c / GLYD_WEIGHTS_MMA12_COLS) + thread;
      const uint4 codes = from[256];
#pragma unroll
      for (int part = 0; part < 2; part++) {
        uint32_t a[8];
        decode_mma12(from[128 * part], part ? codes.z : codes.x, part ? codes.w : codes.y, a);
#pragma unroll
        for (int i = 0; i < 4; i++)
          store_pair(row, c + (4 * part + i) * 8 + 2 * q, p.view.cols, times(half ? a[2 * i + 1] : a[2 * i], factor), aligned);
      }
    }
  } else {
    for (int64_t c = col + warp * GLYD_WEIGHTS_TIERED_COLS; c < end; c += 4 * GLYD_WEIGHTS_TIERED_COLS) {
      const int64_t tile = c / GLYD_WEIGHTS_TIERED_COLS;
      const uint4 *from = (const uint4 *)tile_of(p.view, block, tile) + warp_row * 32 + lane;
      GlobalEscapes e;
      e.at = escapes_of(p.view, b, block, tile, &e.nbytes);
      TieredThread t = tiered_thread(e, from[512], warp_row);
      if (lane / 4 != g) continue;
#pragma unroll
      for (int part = 0; part < 4; part++) {
        uint32_t a[8];
        decode_tiered(e, tables, t, part, from[128 * part], a);
#pragma unroll
        for (int i = 0; i < 4; i++)
          store_pair(row, c + (4 * part + i) * 8 + 2 * q, p.view.cols, times(half ? a[2 * i + 1] : a[2 * i], factor), aligned);
      }
    }
  }
  if (b.n_exceptions == 0) return;
  __syncthreads();
  const uint32_t first = first_place(b, (uint32_t)(col * GLYD_WEIGHTS_ROWS));
  for (uint64_t i = (uint64_t)first + threadIdx.x; i < b.n_exceptions; i += blockDim.x) {
    const uint32_t place = b.places[i];
    const int64_t c = place / GLYD_WEIGHTS_ROWS;
    if (c >= end) break;
    if (c >= col && place % GLYD_WEIGHTS_ROWS == r) row[c] = b.values[i];
  }
}

int glyd_gpu_embedding(void *out, const void *ids, uint64_t n_ids, int id_nbytes, const void *pack,
                       uint64_t pack_nbytes, const int64_t *meta, void *stream) {
  EmbeddingArgs p;
  const int status = glyd_gpu_view(&p.view, pack, pack_nbytes, meta);
  if (status != 0) return status;
  if ((id_nbytes != 4 && id_nbytes != 8) || (uintptr_t)out % 16 != 0) return -GLYD_E_PARAMETER;
  if (n_ids == 0) return 0;
  p.out = (uint16_t *)out;
  p.ids = ids;
  p.wide = id_nbytes == 8;
  p.chunks = (p.view.cols + kRowChunk - 1) / kRowChunk;
  if (n_ids > 0x7FFFFFFF || (int64_t)n_ids * p.chunks > 0x7FFFFFFF) return -GLYD_E_PARAMETER;
  const unsigned grid = (unsigned)((int64_t)n_ids * p.chunks);
  if (p.view.layout == GLYD_WEIGHTS_MMA12)
    embedding_kernel<GLYD_WEIGHTS_MMA12><<<grid, 128, 0, (cudaStream_t)stream>>>(p);
  else
    embedding_kernel<GLYD_WEIGHTS_TIERED><<<grid, 128, 0, (cudaStream_t)stream>>>(p);
  return (int)cudaGetLastError();
}
