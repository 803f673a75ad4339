/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * How the work of a staged product is divided: tiles of rows x tokens, in groups of
 * tiles of tokens, so that what runs at the same time shares rows and tokens in L2.
 * Whole tiles go round the workers; of those that do not fill a last round, parts
 * along the columns go evenly to all workers.
 */
#ifndef GLYD_STAGED_WORK_CUH
#define GLYD_STAGED_WORK_CUH

#include <cuda_runtime.h>

#include <cstdint>

namespace glyd {

struct StagedConfig {
  int tokens; /* of a tile: 32, 64, 128 or 256 */
  int blocks; /* 64-row blocks of a tile: 2 */
  int cluster; /* blocks along the columns of every tile, which add in shared memory; 0: workers */
  int workers;
  int group;                      /* tiles of tokens that follow one another */
  int weight_slots, packed_slots; /* of activations: one more than of weights */
  int dependent;                  /* as of a ring */
};

struct StagedWork {
  int steps; /* of 64 columns */
  int row_tiles, token_tiles, group;
  int split, split_workers; /* the first tiles, of which several workers take parts; how many workers do */
  int cluster;              /* above 1: all are split, each among the blocks of a cluster */
  int workers;
};

constexpr int kStagedPartMin = 4; /* steps of a part of a tile, at least */

/* Depends on configuration and shape alone, and decides the order of sums. False: places in it would not fit 32 bits. */
inline bool staged_divide(StagedWork &work, const StagedConfig &c, int64_t rows, int64_t cols, uint64_t tokens) {
  const int64_t row_tiles = (rows + c.blocks * 64 - 1) / (c.blocks * 64),
                token_tiles = (int64_t)((tokens + c.tokens - 1) / c.tokens), steps = (cols + 63) / 64;
  const int64_t group = c.group < token_tiles ? c.group : token_tiles;
  if (row_tiles * token_tiles > 0x3FFFFFFF || row_tiles * group > 0x3FFFFFFF) return false;
  if (c.cluster) {
    const int64_t tiles = row_tiles * token_tiles, blocks = tiles * c.cluster;
    if (steps < c.cluster || blocks * tiles * steps > 0x7FFFFFFF) return false;
    work = {(int)steps, (int)row_tiles, (int)token_tiles, (int)group, (int)tiles, (int)blocks, c.cluster, (int)blocks};
    return true;
  }
  const int64_t rest = row_tiles * token_tiles % c.workers;
  int64_t parts = c.workers;
  if (rest && c.workers / rest * rest * 10 >= parts * 9) parts = c.workers / rest * rest; /* as many to every tile */
  while (parts > rest && rest * steps / parts < kStagedPartMin) parts--;
  const bool splits = rest > 0 && parts > rest;
  if (splits && rest * steps * parts > 0x7FFFFFFF) return false;
  work = {(int)steps,           (int)row_tiles, (int)token_tiles, (int)group, splits ? (int)rest : 0,
          splits ? (int)parts : 0, 1, c.workers};
  return true;
}

/* A part of a worker's work: n steps from k0 on of a tile. */
struct Segment {
  int tile, row_tile, tok, k0, n;
};
template <int M> struct Schedule {
  uint32_t unit, last; /* of tiles that are split */
  int tile;            /* next whole tile */
  __device__ __forceinline__ Schedule(const StagedWork &p, int worker) {
    const uint32_t units = (uint32_t)p.split * p.steps, w = worker, n = p.split_workers;
    unit = w < n ? w * units / n : 0, last = w < n ? (w + 1) * units / n : 0;
    tile = p.split + worker;
  }
  __device__ __forceinline__ bool next(const StagedWork &p, Segment &s) {
    if (unit < last) {
      s.tile = unit / p.steps, s.k0 = unit - s.tile * p.steps, s.n = min(p.steps - s.k0, (int)(last - unit));
      unit += s.n;
    } else if (tile < p.row_tiles * p.token_tiles) {
      s.tile = tile, s.k0 = 0, s.n = p.steps;
      tile += p.workers;
    } else {
      return false;
    }
    const int of_group = p.row_tiles * p.group, group = s.tile / of_group,
              size = min(p.group, p.token_tiles - group * p.group), rest = s.tile - group * of_group;
    s.row_tile = rest / size, s.tok = (group * p.group + rest % size) * M;
    return true;
  }
};

/* A place in a ring. */
struct Slot {
  uint32_t at = 0, phase = 0;
  __device__ __forceinline__ void next(int slots) {
    if (++at == (uint32_t)slots) at = 0, phase ^= 1;
  }
};

/* What fills a ring runs ahead of what empties it: the steps of a worker's work, one by one. */
template <int M> struct Steps {
  Schedule<M> schedule;
  Segment s;
  Slot slot;
  int i;
  bool more;
  __device__ __forceinline__ Steps(const StagedWork &p, int worker) : schedule(p, worker), i(0) {
    more = schedule.next(p, s);
  }
  __device__ __forceinline__ void next(const StagedWork &p, int slots) {
    slot.next(slots);
    if (++i == s.n) i = 0, more = schedule.next(p, s);
  }
};

} // namespace glyd

#endif
