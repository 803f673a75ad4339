/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Does a pack on the device keep every rule that the C decoder holds it to?
 * One kernel looks at row blocks, one decodes every tile and looks at what it
 * found. For packs from a file, once, when a model is loaded.
 */
#include "glyd_gpu.h"
#include "tile_rows.cuh"

enum Breach : uint32_t { /* bits of result[0]; _library.py names them */
  kBlockHeader = 1,
  kExceptionList = 2,
  kBase = 4,
  kIndex = 8,
  kEscapes = 16,
  kZeros = 32,
  kExceptionPlace = 64,
};

struct CheckArgs {
  PackView view;
  unsigned *result; /* [2]: breaches, and the first row block with one */
};

__device__ __forceinline__ void breach(const CheckArgs &p, uint32_t bits, int64_t block) {
  if (bits == 0) return;
  atomicOr(p.result, bits);
  atomicMin(p.result + 1, (unsigned)(block < 0x7FFFFFFF ? block : 0x7FFFFFFF));
}

/* A warp a row block: header, bases, index, and the order of its exceptions. */
__global__ void __launch_bounds__(128) check_blocks_kernel(const CheckArgs p) {
  const PackView &v = p.view;
  const int64_t block = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
  const uint32_t lane = threadIdx.x % 32;
  if (block >= v.row_blocks) return;
  const bool tiered = v.layout == GLYD_WEIGHTS_TIERED;
  const uint8_t *header = v.base + GLYD_WEIGHTS_HEADER + block * GLYD_WEIGHTS_BLOCK_HEADER;
  const uint8_t *next = header + GLYD_WEIGHTS_BLOCK_HEADER;
  const bool last = block + 1 == v.row_blocks;
  const int64_t left = v.rows - block * GLYD_WEIGHTS_ROWS;
  const uint32_t used = left < GLYD_WEIGHTS_ROWS ? (uint32_t)left : GLYD_WEIGHTS_ROWS;
  auto first_exception = [](const uint8_t *h) { return *(const uint64_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST); };
  auto first_unit = [](const uint8_t *h) { return *(const uint64_t *)(h + GLYD_WEIGHTS_BLOCK_AT_ESCAPES); };
  uint32_t bad = 0;

  if (header[GLYD_WEIGHTS_BLOCK_AT_LAYOUT] != v.layout || header[GLYD_WEIGHTS_BLOCK_AT_VERSION] != GLYD_WEIGHTS_VERSION ||
      *(const uint16_t *)(header + GLYD_WEIGHTS_BLOCK_AT_ROWS) != used || header[24 + lane] != 0 ||
      (lane < 8 && header[56 + lane] != 0))
    bad |= kBlockHeader;

  const uint64_t n_all = (uint64_t)v.n_exceptions, first = first_exception(header);
  const uint32_t n = *(const uint32_t *)(header + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
  const uint64_t end = last ? n_all : first_exception(next);
  if (first > n_all || n > n_all - first || n > v.block_exc_max || first + n != end || (block == 0 && first != 0))
    bad |= kExceptionList;

  for (uint32_t r = lane; r < GLYD_WEIGHTS_ROWS; r += 32) {
    const uint32_t base = header[GLYD_WEIGHTS_BLOCK_AT_BASES + r];
    const uint32_t low = tiered ? GLYD_WEIGHTS_TIERED_BASE_MIN : 1;
    const uint32_t high = tiered ? GLYD_WEIGHTS_TIERED_BASE_MAX : GLYD_WEIGHTS_MMA12_BASE_MAX;
    if (base != 0 && (r >= used || base < low || base > high)) bad |= kBase;
  }

  const uint64_t unit = first_unit(header), units = (uint64_t)v.n_units;
  if (!tiered) {
    if (unit != 0) bad |= kIndex;
  } else {
    const uint32_t *index = (const uint32_t *)(v.base + v.index_at) + block * (v.tiles + 1);
    if (index[0] != 0 || (block == 0 && unit != 0)) bad |= kIndex;
    for (int64_t t = lane; t < v.tiles; t += 32)
      if (index[t + 1] <= index[t] || (uint64_t)(index[t + 1] - index[t]) * GLYD_WEIGHTS_ESCAPE_UNIT > v.tile_escape_max)
        bad |= kIndex;
    const uint32_t own = index[v.tiles];
    if (unit > units || own > units - unit || unit + own != (last ? units : first_unit(next))) bad |= kIndex;
  }

  const RowBlock b = row_block(v, block);
  for (uint64_t i = lane; i < b.n_exceptions; i += 32) {
    const uint32_t place = b.places[i], r = place % GLYD_WEIGHTS_ROWS;
    if (r >= used || place / GLYD_WEIGHTS_ROWS >= v.cols || b.bases[r] == 0 || (i > 0 && b.places[i - 1] >= place))
      bad |= kExceptionPlace;
  }
  breach(p, bad, block);
}

extern __shared__ __align__(128) uint8_t check_escapes[]; /* tile_escape_max + kEscapeRoom; tiered only */

/* What a thread's escapes say of themselves: starts, unused codes. */
__device__ __forceinline__ uint32_t check_thread_escapes(const SharedEscapes &e, uint4 codes, uint32_t *sums /* [4] */) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const TieredThread t = tiered_thread(e, codes, warp);
  const uint32_t mine = t.n_digits | t.n_codes3 << 16, before = before_in_warp(mine);
  if (lane == 31) sums[warp] = before + mine;
  __syncthreads();
  uint32_t earlier = 0, all = 0;
  for (uint32_t w = 0; w < 4; w++) {
    if (w == warp) earlier = all;
    all += sums[w];
  }
  const uint32_t n2 = all & 0xFFFF, n3 = all >> 16, start3 = (n2 + 1) / 2;
  const uint32_t nbytes = (GLYD_WEIGHTS_ESCAPE_HEADER + (start3 + n3 + 1) / 2 + GLYD_WEIGHTS_ESCAPE_UNIT - 1) /
                          GLYD_WEIGHTS_ESCAPE_UNIT * GLYD_WEIGHTS_ESCAPE_UNIT;
  uint32_t bad = nbytes != e.nbytes ? kEscapes : 0;
  if (lane == 0 && (t.digits != 2 * (earlier & 0xFFFF) || t.codes3 != 4 * (start3 + (earlier >> 16)))) bad |= kEscapes;
  for (uint32_t i = 0; i < t.n_codes3 && bad == 0; i += 8) {
    const uint32_t eight = window32(e, min(t.codes3 + 4 * i, t.last_bit));
    for (uint32_t k = 0; k < 8 && i + k < t.n_codes3; k++)
      if ((eight >> (4 * k) & 15) > GLYD_WEIGHTS_TIER3_ZERO) bad |= kEscapes;
  }
  return bad;
}

template <int LAYOUT> __global__ void __launch_bounds__(128) check_tiles_kernel(const CheckArgs p) {
  __shared__ __align__(16) uint8_t rows[kSlabNbytes];
  __shared__ TieredTables tables;
  __shared__ uint32_t sums[4];
  const PackView &v = p.view;
  const int64_t slabs = (v.cols + kSlabCols - 1) / kSlabCols, block = blockIdx.x / slabs, slab = blockIdx.x % slabs;
  const int64_t col = slab * kSlabCols, end = min(col + kSlabCols, v.cols);
  const RowBlock b = row_block(v, block);
  const RowFactors f = row_factors(LAYOUT, b.bases);
  SlabWords<LAYOUT> words;
  if (LAYOUT == GLYD_WEIGHTS_MMA12 && 2 * slab + 1 >= v.tiles) { /* the second tile, if there is none: zeros */
    for (uint32_t i = threadIdx.x; i < kSlabNbytes / 4; i += 128) ((uint32_t *)rows)[i] = 0;
    __syncthreads();
  }
  load_slab(words, v, block, slab);
  uint32_t bad = 0;
  if constexpr (LAYOUT == GLYD_WEIGHTS_TIERED) {
    fill_tables(&tables);
    SharedEscapes e = {check_escapes, 0};
    const uint8_t *from = escapes_of(v, b, block, slab, &e.nbytes);
    for (uint32_t i = threadIdx.x * 16; i < v.tile_escape_max + kEscapeRoom; i += 128 * 16)
      *(uint4 *)(check_escapes + i) = i < e.nbytes ? *(const uint4 *)(from + i) : make_uint4(0, 0, 0, 0);
    __syncthreads();
    bad |= check_thread_escapes(e, words.codes, sums);
    slab_to_rows(rows, words, f, e, tables);
  } else {
    slab_to_rows(rows, words, f);
  }
  /* rows of zeros hold nothing else, and zeros have no mantissa: both show before the factors are applied */
  const uint32_t row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  const bool empty[2] = {b.bases[row] == 0, b.bases[row + 8] == 0};
#pragma unroll
  for (int k = 0; k < 4; k++) {
    uint32_t a[8];
    uint32_t zero = 0x40004000u;
    if constexpr (LAYOUT == GLYD_WEIGHTS_MMA12) {
      if (2 * slab + k / 2 >= v.tiles) break;
      const uint4 c = words.codes[k / 2];
      decode_mma12(words.low[k], k % 2 ? c.z : c.x, k % 2 ? c.w : c.y, a);
    } else {
      zero = (uint32_t)kBias << 7 | (uint32_t)kBias << 23;
      const SharedEscapes e = {check_escapes, v.tile_escape_max};
      TieredThread t = tiered_thread(e, words.codes, threadIdx.x / 32);
      /* the parts before this one, for their counts: slow, and simple */
      for (int i = 0; i < k; i++) decode_tiered(e, tables, t, i, words.sign_mantissa[i], a);
      decode_tiered(e, tables, t, k, words.sign_mantissa[k], a);
    }
    for (int i = 0; i < 8; i++) {
      if (empty[i & 1] && (a[i] & 0x7FFF7FFFu) != zero) bad |= kZeros;
      if (LAYOUT == GLYD_WEIGHTS_TIERED)
        for (uint32_t w = a[i], half = 0; half < 2; half++, w >>= 16)
          if ((w & 0x7F80) == 0 && (w & 0x7F) != 0) bad |= kZeros;
    }
  }
  __syncthreads();
  if (b.n_exceptions != 0) {
    const uint32_t first = first_place(b, (uint32_t)(col * GLYD_WEIGHTS_ROWS));
    for (uint64_t i = (uint64_t)first + threadIdx.x; i < b.n_exceptions; i += 128) {
      const uint32_t place = b.places[i], r = place % GLYD_WEIGHTS_ROWS;
      const int64_t c = place / GLYD_WEIGHTS_ROWS;
      if (c >= end) break;
      if (c < col) continue;
      const uint32_t there = *(const uint16_t *)(rows + r * kSlabStride + (c - col) * 2);
      if (there != (LAYOUT == GLYD_WEIGHTS_MMA12 ? (uint32_t)b.bases[r] << 8 : 0)) bad |= kExceptionPlace;
    }
  }
  breach(p, bad, block);
}

int glyd_gpu_check_pack(void *result, const void *pack, uint64_t pack_nbytes, const int64_t *meta, void *stream) {
  CheckArgs p;
  const int status = glyd_gpu_view(&p.view, pack, pack_nbytes, meta);
  if (status != 0) return status;
  p.result = (unsigned *)result;
  cudaStream_t s = (cudaStream_t)stream;
  cudaError_t e = cudaMemsetAsync(result, 0, 4, s);
  if (e == cudaSuccess) e = cudaMemsetAsync((unsigned *)result + 1, 0x7F, 4, s);
  if (e != cudaSuccess) return (int)e;
  const int64_t slabs = (p.view.cols + kSlabCols - 1) / kSlabCols, grid = p.view.row_blocks * slabs;
  if (const int bad = glyd_gpu_check_grid(grid)) return bad;
  check_blocks_kernel<<<(unsigned)((p.view.row_blocks + 3) / 4), 128, 0, s>>>(p);
  if (p.view.layout == GLYD_WEIGHTS_MMA12)
    check_tiles_kernel<GLYD_WEIGHTS_MMA12><<<(unsigned)grid, 128, 0, s>>>(p);
  else
    check_tiles_kernel<GLYD_WEIGHTS_TIERED><<<(unsigned)grid, 128, p.view.tile_escape_max + kEscapeRoom, s>>>(p);
  return (int)cudaGetLastError();
}
