/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * How a ring product is set up: between the public launcher and the files that
 * hold the kernels of one layout.
 */
#ifndef GLYD_RING_LAUNCH_SM90_H
#define GLYD_RING_LAUNCH_SM90_H

#include <cuda.h>
#include <cuda_runtime.h>

#include "glyd/format_weights.h"
#include "glyd/status.h"

namespace glyd {

struct RingArgs;

struct RingConfig {
  int tokens;    /* of a tile: 8, 16, 32, 64, 128, 192 or 256 */
  int wr, wk;    /* 64-row blocks of a tile, warpgroups along the columns; 2 to 4 warpgroups */
  int kb;        /* tiles of a warpgroup in a stage */
  int cluster;   /* blocks along the columns; 0: stream-K */
  int workers;   /* stream-K: blocks */
  int dependent; /* programmatic dependent launch; 2: of a pack that is older than the kernel before */
};

/* Bytes of shared memory: barriers full[16], empty[16], exceptions full, empty and flags[4]; staging of the output of a
 * warp; the look-up table of tiered, one copy a bank; start of the buffer of exceptions. */
constexpr int kRingStagesMax = 16, kRingBars = 320, kRingOut = 512, kRingTables = 256 * 128, kExceptionHeader = 32;

/* Stages that are asked for at once at the start (1, 2, 3 and all were measured). */
__host__ __device__ constexpr int ring_early(bool tiered) { return tiered ? 2 : 3; }

/* of the activations of an exception's column: different exceptions begin in different banks */
__host__ __device__ constexpr int ring_x_pitch(int tokens) { return tokens / 8 % 2 ? 2 * tokens : 2 * tokens + 16; }

/* Kernels for large products of many tokens: they take any number of token tiles by stream-K, and exceptions' activations
 * from a transposed x where a buffer would take a stage from the ring. Short products are faster without. */
__host__ __device__ constexpr bool ring_many(bool tiered, int tokens, int warpgroups) {
  return !tiered && tokens >= 64 && (warpgroups == 3 || tokens == 256);
}
constexpr int kRingListed = 1024; /* exceptions of a row block in a list without activations */

struct RingRoom {
  int stage_bytes, n_stages, escape_slot;
  int exc_cap;     /* exceptions of a row block that fit */
  int shared;      /* bytes in all; negative: this does not fit */
  bool transposes; /* activations of exceptions are taken from a transposed x in the workspace, not from a buffer */
};

/* How shared memory is divided. Room for the exceptions of a row block comes before stages beyond the third. many: x may be
 * transposed. */
inline RingRoom ring_room(bool tiered, const RingConfig &c, int escape_max, int64_t block_exc_max, int shared_max,
                          bool many) {
  const int tile = tiered ? GLYD_WEIGHTS_TIERED_TILE : GLYD_WEIGHTS_MMA12_TILE, warpgroups = c.wr * c.wk,
            cols = tiered ? GLYD_WEIGHTS_TIERED_COLS : GLYD_WEIGHTS_MMA12_COLS, ks = c.wk * c.kb,
            fixed = 1024 + (tiered ? kRingTables : 0) + kRingBars + warpgroups * 4 * kRingOut,
            room = shared_max - fixed;
  RingRoom r = {};
  r.escape_slot = tiered ? escape_max + 16 : 0; /* windows of 64 bits read up to 12 bytes past the end */
  r.stage_bytes = (ks * c.tokens * 2 * cols + c.wr * ks * (tile + r.escape_slot) + 1023) & ~1023;
  int64_t want = block_exc_max;
  if (want > 0 && c.cluster > 1) /* those of a block's columns; more than this are gathered in a second round */
    want = (want + want / 4) / c.cluster + 8 < want ? (want + want / 4) / c.cluster + 8 : want;
  int one = c.wr * (8 + ring_x_pitch(c.tokens)); /* place, delta, activations of a column */
  if (many && want * one > room % r.stage_bytes - kExceptionHeader - 16) {
    r.transposes = want > 0;
    one = c.wr * 8;
    if (want > kRingListed) want = kRingListed;
  }
  const int header = want > 0 ? kExceptionHeader + 16 : 0;
  const int64_t bytes = want > 0 ? header + want * one : 0;
  int stages = (int)(((int64_t)room - bytes) / r.stage_bytes);
  if (stages < 3) stages = (room - header - 8 * one) / r.stage_bytes; /* 8 must fit */
  if (stages > 3 && bytes > room - 3 * r.stage_bytes) stages = 3;
  r.n_stages = stages < kRingStagesMax ? stages : kRingStagesMax;
  const int left = room - r.n_stages * r.stage_bytes;
  r.exc_cap = want > 0 ? (int)(bytes < left ? want : (left - header) / one) : 0;
  r.shared = fixed + r.n_stages * r.stage_bytes + (want > 0 ? header + r.exc_cap * one : 0);
  const bool partials_fit = c.cluster == 0 || warpgroups * 64 * c.tokens * 4 <= r.n_stages * r.stage_bytes;
  if (r.n_stages < 2 || (want > 0 && r.exc_cap < 1) || !partials_fit) r.shared = -1;
  return r;
}

inline RingRoom ring_room(bool tiered, const RingConfig &c, int escape_max, int64_t block_exc_max, int shared_max) {
  return ring_room(tiered, c, escape_max, block_exc_max, shared_max, ring_many(tiered, c.tokens, c.wr * c.wk));
}

/* GLYD_E_PARAMETER for a configuration that was not compiled. Null in a library without sm_90a. */
__attribute__((weak)) int ring_launch_mma12(const CUtensorMap &mx, const RingArgs &p, const RingConfig &c,
                                            const RingRoom &room, cudaStream_t stream);
__attribute__((weak)) int ring_launch_tiered(const CUtensorMap &mx, const RingArgs &p, const RingConfig &c,
                                             const RingRoom &room, cudaStream_t stream);

} // namespace glyd

#endif
