/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Products with split roles: the configurations that are compiled.
 */
#include "ring_arguments_sm90.cuh"
#include "split_tiered_sm90.cuh"

namespace glyd {
namespace {

template <int M, int C, int D>
int launch(const CUtensorMap &mx, SplitArgs p, const SplitConfig &c, const SplitRoom &room, cudaStream_t stream) {
  p.row_tiles = (p.n_blocks + C - 1) / C;
  const int64_t token_tiles = (p.tokens + M - 1) / M, units = (int64_t)p.row_tiles * token_tiles * p.n_tiles;
  const int64_t blocks = c.cluster ? p.row_tiles * token_tiles * c.cluster : (c.workers < units ? c.workers : units);
  /* places in the work are products of 32 bits */
  if (blocks > 0x7FFFFFFF || units > 0x7FFFFFFF || units * (blocks + 1) > 0xFFFFFFFF) return -GLYD_E_PARAMETER;
  return launch_blocks(split_tiered_kernel<M, C, D>, mx, p, blocks, SplitRegisters<M, C, D>::kThreads, room.shared,
                       c.cluster, c.dependent, stream);
}

} // namespace

int split_launch_tiered(const CUtensorMap &mx, const SplitArgs &p, const SplitConfig &c, const SplitRoom &room,
                        cudaStream_t stream) {
  switch (c.tokens * 64 + c.consumers * 8 + c.decoders) {
#define CASE(M, C, D) \
  case M * 64 + C * 8 + D: return launch<M, C, D>(mx, p, c, room, stream);
    CASE(64, 2, 4)
    CASE(128, 2, 3)
#undef CASE
  }
  return -GLYD_E_PARAMETER;
}

} // namespace glyd
