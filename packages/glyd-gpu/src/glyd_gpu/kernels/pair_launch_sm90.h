/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * How a product by pairs of blocks is set up: between the public launcher and the
 * kernel. Tiles are 256 rows, half of them for each block, x 128, 192 or 256 tokens.
 */
#ifndef GLYD_PAIR_LAUNCH_SM90_H
#define GLYD_PAIR_LAUNCH_SM90_H

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "ring_arguments_sm90.cuh"

namespace glyd {

struct PairArgs;

constexpr int kPairBlocks = 4;   /* 64-row blocks of a tile */
constexpr int kPairLag = 2 * 512; /* clocks, two stages of one warpgroup, by which the second one begins later */

struct PairConfig {
  int tokens;    /* of a tile */
  int workers;   /* blocks: two for each tile at a time */
  int parts;     /* along the columns, of tiles that do not fill a last round; 1: those are whole, too */
  int group;     /* tiles of tokens that follow one another */
  int dependent; /* as of a ring */
};

struct PairWork {
  int steps, row_tiles, token_tiles, group;
  int tile_tokens; /* from one tile of tokens to the next; half of it is a box of x */
  int pairs;
  int whole, rest, parts; /* tiles that are whole; others, each in so many parts */
};

/* Depends on configuration and shape alone, and decides the order of sums. False: places in it would not fit 32 bits. */
inline bool pair_divide(PairWork &work, const PairConfig &c, int64_t rows, int64_t cols, uint64_t tokens) {
  const int64_t row_tiles = (rows + kPairBlocks * 64 - 1) / (kPairBlocks * 64),
                token_tiles = ((int64_t)tokens + c.tokens - 1) / c.tokens, steps = (cols + 63) / 64;
  const int64_t tiles = row_tiles * token_tiles, pairs = c.workers / 2;
  const int64_t group = c.group < token_tiles ? c.group : token_tiles;
  if (tiles > 0x3FFFFFFF || row_tiles * group > 0x3FFFFFFF) return false;
  int64_t parts = c.parts < steps ? c.parts : steps, rest = parts > 1 ? tiles % pairs : 0;
  work = {(int)steps,
          (int)row_tiles,
          (int)token_tiles,
          (int)group,
          (ring_tile_tokens(tokens, c.tokens) + 15) & ~15,
          (int)(pairs < tiles * parts ? pairs : tiles * parts),
          (int)(tiles - rest),
          (int)rest,
          (int)parts};
  return steps * parts < 0x7FFFFFFF;
}

/* GLYD_E_PARAMETER for what it does not take. Null in a library without sm_90a. */
__attribute__((weak)) int pair_launch_mma12(const CUtensorMap &mx, const PairArgs &p, int tokens, int shared,
                                            cudaStream_t stream);

} // namespace glyd

#endif
