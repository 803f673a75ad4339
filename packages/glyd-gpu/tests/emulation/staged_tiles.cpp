/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * What the staged products decode to and how they divide their work, as functions for
 * the CPU; tests/test_staged_tiles.py.
 */
#include "emulated_sm90.h"

#include "staged_tile_sm90.cuh"
#include "staged_work.cuh"

#define EXPORT extern "C" __attribute__((visibility("default")))

struct Pack {
  const uint8_t *blocks;
  const uint32_t *places;
  const uint16_t *values;
  uint64_t n_exceptions;
  int n_blocks;
};

/* Tiles k0 … k0 + n - 1 of a row block as rows of weights [n][64][64], at their places in shared memory. */
EXPORT void emulated_staged_tiles(uint16_t *out, const uint8_t *blocks, const uint8_t *tiles, const uint32_t *places,
                                  const uint16_t *values, uint64_t n_exceptions, int n_blocks, int n_tiles, int block,
                                  int k0, int n, uint32_t order) {
  using namespace glyd;
  constexpr uint32_t kTo = kStagedTile;
  emulation::order = order;
  emulation::launch({1, 1, 1}, 128, 2 * kStagedTile, [&] {
    const int thread = (int)threadIdx.x, lane = thread % 32, strip = thread / 32;
    const Pack p = {blocks, places, values, n_exceptions, n_blocks};
    const uint32_t bases =
        staged_bases(blocks + (size_t)block * GLYD_WEIGHTS_BLOCK_HEADER, strip * 16 + (lane >> 2));
    PatchList<Pack> list;
    list.open(p, block, k0, lane);
    for (int k = k0; k < k0 + n; k++) {
      const uint8_t *tile = tiles + ((size_t)block * (size_t)n_tiles + (size_t)k) * GLYD_WEIGHTS_MMA12_TILE;
      for (int i = thread; i < GLYD_WEIGHTS_MMA12_TILE; i += 128) emulated_shared()[i] = tile[i];
      __syncthreads();
      PackedWords words;
      words.load((uint32_t)thread * 16);
      staged_store(kTo + staged_rows(strip, lane), words, bases);
      list.apply(p, k, kTo, strip, lane);
      __syncthreads();
      for (int i = thread; i < 4096; i += 128) {
        const uint32_t row = (uint32_t)i / 64, col = (uint32_t)i % 64;
        memcpy(out + (size_t)(k - k0) * 4096 + i, emulated_shared() + kTo + row * 128 + ((col / 8 ^ row % 8) * 16) + col % 8 * 2, 2);
      }
      __syncthreads();
    }
  });
}

/* The segments of a worker: tile, row tile, first token, first step, steps. Returns their number, -1 for work that cannot
 * be. work: what is divided, as StagedWork has it. */
EXPORT int64_t emulated_staged_work(int32_t *segments, int64_t most, int32_t *work, const int32_t *config, int64_t rows,
                                    int64_t cols, uint64_t tokens, int worker) {
  using namespace glyd;
  const StagedConfig c = {config[0], config[1], config[2], config[3], config[4], config[5], config[6],
                          config[7]};
  StagedWork w;
  if (!staged_divide(w, c, rows, cols, tokens)) return -1;
  memcpy(work, &w, sizeof w);
  int64_t n = 0;
  auto walk = [&](auto schedule) {
    Segment s;
    for (; schedule.next(w, s); n++)
      if (n < most) memcpy(segments + 5 * n, &s, sizeof s);
  };
  if (c.tokens == 128)
    walk(Schedule<128>(w, worker));
  else
    walk(Schedule<256>(w, worker));
  return n;
}
