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
  int tokens;    /* of a tile: 8, 16, 32, 64, 128 or 256 */
  int wr, wk;    /* 64-row blocks of a tile, warpgroups along the columns; 2 to 4 warpgroups */
  int kb;        /* tiles of a warpgroup in a stage */
  int cluster;   /* blocks along the columns; 0: stream-K */
  int workers;   /* stream-K: blocks */
  int dependent; /* programmatic dependent launch */
};

/* Bytes of shared memory: barriers full[16], empty[16], exceptions full, empty and flags[4]; staging of the output of a
 * warp; look-up tables of tiered, one copy a bank; start of the buffer of exceptions. */
constexpr int kRingStagesMax = 16, kRingBars = 320, kRingOut = 512, kRingTables = 256 * 256, kExceptionHeader = 64;

struct RingRoom {
  int stage_bytes, n_stages, escape_slot;
  int exc_cap; /* exceptions of a row block that fit */
  int shared;  /* bytes in all; negative: this does not fit */
};

/* How shared memory is divided. Up to 10 KiB for exceptions may cost a stage; beyond that they take what is left. */
inline RingRoom ring_room(bool tiered, const RingConfig &c, int escape_max, int64_t block_exc_max, int shared_max) {
  const int tile = tiered ? GLYD_WEIGHTS_TIERED_TILE : GLYD_WEIGHTS_MMA12_TILE, warpgroups = c.wr * c.wk,
            cols = tiered ? GLYD_WEIGHTS_TIERED_COLS : GLYD_WEIGHTS_MMA12_COLS, ks = c.wk * c.kb,
            one = 8 + 2 * c.tokens, /* place, delta, activations of a column */
      fixed = 1024 + (tiered ? kRingTables : 0) + kRingBars + warpgroups * 4 * kRingOut, room = shared_max - fixed;
  RingRoom r = {};
  r.escape_slot = tiered ? escape_max + 16 : 0; /* windows of 64 bits read up to 12 bytes past the end */
  r.stage_bytes = (ks * c.tokens * 2 * cols + c.wr * ks * (tile + r.escape_slot) + 1023) & ~1023;
  const int64_t want = block_exc_max > 0 ? kExceptionHeader + c.wr * block_exc_max * one : 0;
  const int reserved = (int)(want < 10240 ? want : 10240);
  r.n_stages = (room - reserved) / r.stage_bytes;
  if (r.n_stages > kRingStagesMax) r.n_stages = kRingStagesMax;
  const int left = room - r.n_stages * r.stage_bytes;
  r.exc_cap = want ? ((int)(want < left ? want : left) - kExceptionHeader) / (c.wr * one) : 0;
  r.shared = fixed + r.n_stages * r.stage_bytes + (want ? kExceptionHeader + r.exc_cap * c.wr * one : 0);
  const bool partials_fit = c.cluster == 0 || warpgroups * 64 * c.tokens * 4 <= r.n_stages * r.stage_bytes;
  if (r.n_stages < 2 || (want && r.exc_cap < 1) || !partials_fit) r.shared = -1;
  return r;
}

/* GLYD_E_PARAMETER for a configuration that was not compiled. Null in a library without sm_90a. */
__attribute__((weak)) int ring_launch_mma12(const CUtensorMap &mx, const RingArgs &p, const RingConfig &c,
                                            const RingRoom &room, cudaStream_t stream);
__attribute__((weak)) int ring_launch_tiered(const CUtensorMap &mx, const RingArgs &p, const RingConfig &c,
                                             const RingRoom &room, cudaStream_t stream);

} // namespace glyd

#endif
