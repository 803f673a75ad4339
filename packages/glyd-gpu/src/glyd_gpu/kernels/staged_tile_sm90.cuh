/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * A packed mma12 tile to exact bf16 weights in shared memory, 64 rows of 128 bytes in
 * the order that wgmma reads (128-byte swizzle), and exceptions into their places.
 * tests/test_staged_tiles.py runs it on the CPU.
 */
#ifndef GLYD_STAGED_TILE_SM90_CUH
#define GLYD_STAGED_TILE_SM90_CUH

#ifdef GLYD_EMULATION /* on the CPU, in tests */
#include "emulated_sm90.h"
#else
#include "ptx_sm90.cuh"
#endif

#include "glyd/format_weights.h"
#include "search_places.cuh"

namespace glyd {

constexpr uint32_t kStagedTile = 8192; /* bytes of 64 x 64 weights */

/* Place of a weight's 16 bytes: a row's pieces are swizzled by the row. */
__device__ __forceinline__ uint32_t staged_piece(uint32_t row, uint32_t piece) {
  return row * 128 + ((piece ^ (row & 7)) << 4);
}

/* Of a warp: where the lane's row of a k16 step goes by stmatrix; step s is at this ^ 32 s. */
__device__ __forceinline__ uint32_t staged_rows(int strip, int lane) {
  return staged_piece(strip * 16 + (lane >> 3 & 1) * 8 + (lane & 7), lane >> 4);
}

/* A thread's part of a tile. */
struct PackedWords {
  uint4 low0, low1, codes;
  __device__ __forceinline__ void load(uint32_t at) { /* the tile's start + 16 * thread */
    low0 = lds128(at), low1 = lds128(at + 2048), codes = lds128(at + 4096);
  }
};

/* The bases of rows g and g + 8, in the bytes that their weights have in a word of codes. */
__device__ __forceinline__ uint32_t staged_bases(const uint8_t *header, int row) {
  return header[GLYD_WEIGHTS_BLOCK_AT_BASES + row] * 0x0101u +
         header[GLYD_WEIGHTS_BLOCK_AT_BASES + row + 8] * 0x01010000u;
}

/* 8 weights, the four A registers of one k16 step, to shared memory. A base plus a code is below 128: no carry. */
__device__ __forceinline__ void staged_store(uint32_t at, uint32_t codes, uint32_t low0, uint32_t low1,
                                             uint32_t bases) {
  const uint32_t h0 = (codes & 0x87878787u) + bases, h1 = (__funnelshift_l(codes, codes, 4) & 0x87878787u) + bases;
  stmatrix4_rows(at, prmt(low0, h0, 0x5140), prmt(low0, h0, 0x7362), prmt(low1, h1, 0x5140), prmt(low1, h1, 0x7362));
}
__device__ __forceinline__ void staged_store(uint32_t at, const PackedWords &w, uint32_t bases) {
  staged_store(at, w.codes.x, w.low0.x, w.low0.y, bases), staged_store(at ^ 32, w.codes.y, w.low0.z, w.low0.w, bases);
  staged_store(at ^ 64, w.codes.z, w.low1.x, w.low1.y, bases),
      staged_store(at ^ 96, w.codes.w, w.low1.z, w.low1.w, bases);
}

/* The exceptions of a row block that are still to come: a window of 32, one a lane. A lane without one has a place after
 * all others. Of P: blocks, places, values, n_exceptions, n_blocks. */
template <class P> struct PatchList {
  uint32_t first, at, end; /* of the row block in the sections; start of the window; number */
  uint32_t place, value;

  __device__ __forceinline__ void window(const P &p, int lane) {
    const uint32_t i = at + lane;
    place = ~0u, value = 0;
    if (i < end) place = p.places[first + i], value = p.values[first + i];
  }
  /* from tile k0 on */
  __device__ __forceinline__ void open(const P &p, int block, int k0, int lane) {
    first = at = end = 0;
    if (p.n_exceptions && block < p.n_blocks) {
      const uint8_t *h = p.blocks + (size_t)block * GLYD_WEIGHTS_BLOCK_HEADER;
      const uint32_t count = *(const uint32_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
      const uint64_t begin = *(const uint64_t *)(h + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST);
      if (count <= p.n_exceptions && begin <= p.n_exceptions - count) /* else a pack that lies */
        first = (uint32_t)begin, end = count;
      if (k0 && end) at = first_at_least(p.places + first, end, (uint64_t)k0 * 4096, lane);
    }
    window(p, lane);
  }
  /* those of tile k and of the warp's 16 rows into the weights at `tile` */
  __device__ __forceinline__ void apply(const P &p, int k, uint32_t tile, int strip, int lane) {
    const uint32_t from = (uint32_t)k * 4096, to = from + 4096;
    while (true) {
      const bool in = place >= from && place < to;
      if (__any_sync(~0u, in)) {
        __syncwarp(); /* other lanes wrote what lies in their places */
        const uint32_t row = place & 63, col = place >> 6 & 63;
        if (in && (int)(row >> 4) == strip) sts16(tile + staged_piece(row, col >> 3) + (col & 7) * 2, (uint16_t)value);
      }
      if (__any_sync(~0u, place >= to)) break;
      at += 32;
      window(p, lane);
    }
  }
};

} // namespace glyd

#endif
