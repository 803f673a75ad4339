/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Packs back to bf16 matrices. A block of 128 threads takes 256 columns of a
 * row block, 128 at a time: tiles go through registers to rows in shared
 * memory and from there in pieces of 256 bytes to the matrix; at the end the
 * block puts its exceptions over what their places decoded to.
 */
#include "glyd_gpu.h"
#include "tile_rows.cuh"

struct UnpackArgs {
  PackView view;
  uint16_t *out; /* [n_rows, cols] bf16, row-major */
  int64_t first_block, first_row, last_row, chunks;
};

/* Columns of a block. Of 151936 x 4096 on an H200, GB/s moved, mma12 and tiered: 256: 3927, 3742; 512: 3800, 3633;
 * 1024: 3706, 3558 (copy by torch 4262). */
constexpr int kChunkCols = 2 * kSlabCols;

/* Rows of a slab from shared memory to the matrix, by the warp that wrote them. */
__device__ __forceinline__ void rows_to_matrix(const UnpackArgs &p, const uint8_t *rows, int64_t row, int64_t col) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t left = p.view.cols - col, rows_left = p.last_row - row;
  const int n_cols = left < kSlabCols ? (int)left : kSlabCols;
  const int n_rows = rows_left < GLYD_WEIGHTS_ROWS ? (int)rows_left : GLYD_WEIGHTS_ROWS;
  uint16_t *out = p.out + (row - p.first_row) * p.view.cols + col;
  if (p.view.cols % 8 == 0) { /* rows start at multiples of 16 bytes, and so do slabs */
    const int c = lane % 16 * 8;
#pragma unroll
    for (int i = 0; i < 16; i += 2) {
      const int r = warp * 16 + i + lane / 16;
      const uint4 w = *(const uint4 *)(rows + r * kSlabStride + c * 2);
      if (r < n_rows && c < n_cols) *(uint4 *)(out + r * p.view.cols + c) = w;
    }
    return;
  }
  for (int i = 0; i < 16; i++) {
    const int r = warp * 16 + i;
    if (r >= n_rows) break;
    for (int c = lane; c < n_cols; c += 32)
      out[r * p.view.cols + c] = *(const uint16_t *)(rows + r * kSlabStride + c * 2);
  }
}

__device__ __forceinline__ void exceptions_to_matrix(const UnpackArgs &p, const RowBlock &b, int64_t row, int64_t col,
                                                     int64_t col_end) {
  const uint32_t first = first_place(b, (uint32_t)(col * GLYD_WEIGHTS_ROWS));
  const int64_t n_rows = p.last_row - row;
  for (uint64_t i = (uint64_t)first + threadIdx.x; i < b.n_exceptions; i += blockDim.x) {
    const uint32_t place = b.places[i], r = place % GLYD_WEIGHTS_ROWS;
    const int64_t c = place / GLYD_WEIGHTS_ROWS;
    if (c >= col_end) break; /* places ascend; of a pack that lies, each is still checked */
    if (c >= col && r < n_rows) p.out[(row - p.first_row + r) * p.view.cols + c] = b.values[i];
  }
}

extern __shared__ __align__(128) uint8_t shared_escapes[]; /* [2][tile_escape_max + kEscapeRoom]; tiered only */

template <int LAYOUT> __global__ void __launch_bounds__(128) unpack_kernel(const UnpackArgs p) {
  constexpr bool tiered = LAYOUT == GLYD_WEIGHTS_TIERED;
  __shared__ __align__(16) uint8_t rows[kSlabNbytes];
  __shared__ TieredTables tables;
  const int64_t block = p.first_block + blockIdx.x / p.chunks, col = blockIdx.x % p.chunks * kChunkCols;
  const int64_t row = block * GLYD_WEIGHTS_ROWS, end = min(col + kChunkCols, p.view.cols);
  SlabWords<LAYOUT> words;
  if (!tiered) load_slab(words, p.view, block, col / kSlabCols);
  const RowBlock b = row_block(p.view, block);
  const uint32_t room = p.view.tile_escape_max + kEscapeRoom;
  auto fetch = [&](int64_t c, uint32_t buffer) { /* a slab's escapes */
    uint32_t nbytes = 0;
    if (c < end) {
      const uint8_t *from = escapes_of(p.view, b, block, c / kSlabCols, &nbytes);
      for (uint32_t i = threadIdx.x * 16; i < nbytes; i += blockDim.x * 16)
        copy_async16(shared_escapes + buffer * room + i, from + i);
    }
    cp_async_commit();
    return nbytes;
  };
  uint32_t nbytes = 0, buffer = 0;
  if (tiered) {
    nbytes = fetch(col, 0);
    fill_tables(&tables);
  }
  const RowFactors f = row_factors(LAYOUT, b.bases);
  for (int64_t c = col; c < end; c += kSlabCols) {
    if constexpr (tiered) {
      load_slab(words, p.view, block, c / kSlabCols);
      cp_async_wait<0>();
      __syncthreads(); /* this slab's escapes are there, and nobody reads the other buffer any more */
      const SharedEscapes e = {shared_escapes + buffer * room, nbytes};
      buffer ^= 1;
      nbytes = fetch(c + kSlabCols, buffer);
      slab_to_rows(rows, words, f, e, tables);
    } else {
      slab_to_rows(rows, words, f);
      if (c + kSlabCols < end) load_slab(words, p.view, block, c / kSlabCols + 1);
    }
    __syncwarp(); /* of a warp's rows nobody else knows */
    rows_to_matrix(p, rows, row, c);
    __syncwarp();
  }
  if (b.n_exceptions == 0) return;
  __syncthreads();
  exceptions_to_matrix(p, b, row, col, end);
}

int glyd_gpu_unpack(void *out, const void *pack, uint64_t pack_nbytes, const int64_t *meta, int64_t first_row,
                    int64_t n_rows, void *stream) {
  UnpackArgs p;
  const int status = glyd_gpu_view(&p.view, pack, pack_nbytes, meta);
  if (status != 0) return status;
  if (first_row < 0 || first_row % GLYD_WEIGHTS_ROWS != 0 || n_rows < 0 || n_rows > p.view.rows - first_row ||
      (uintptr_t)out % 16 != 0)
    return -GLYD_E_PARAMETER;
  if (n_rows == 0) return 0;
  const int64_t row_blocks = (n_rows + GLYD_WEIGHTS_ROWS - 1) / GLYD_WEIGHTS_ROWS;
  p.out = (uint16_t *)out;
  p.first_block = first_row / GLYD_WEIGHTS_ROWS;
  p.first_row = first_row;
  p.last_row = first_row + n_rows;
  p.chunks = (p.view.cols + kChunkCols - 1) / kChunkCols;
  const int64_t grid = row_blocks * p.chunks;
  if (const int bad = glyd_gpu_check_grid(grid)) return bad;
  if (p.view.layout == GLYD_WEIGHTS_MMA12) {
    unpack_kernel<GLYD_WEIGHTS_MMA12><<<(unsigned)grid, 128, 0, (cudaStream_t)stream>>>(p);
  } else {
    const uint32_t shared = 2 * (p.view.tile_escape_max + kEscapeRoom);
    unpack_kernel<GLYD_WEIGHTS_TIERED><<<(unsigned)grid, 128, shared, (cudaStream_t)stream>>>(p);
  }
  return (int)cudaGetLastError();
}
