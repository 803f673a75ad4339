/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * The products with split roles as functions for the CPU;
 * tests/test_split_tiered.py.
 */
#include "cuda_runtime.h"
/* first */
#include "split_tiered_sm90.cuh"

#include "ring_arguments_sm90.cuh"

#define EXPORT extern "C" __attribute__((visibility("default")))

template <int M, int C, int D>
static void run(const CUtensorMap &mx, const glyd::SplitArgs &p, unsigned blocks, int shared) {
  emulation::launch({blocks, 1, 1}, glyd::SplitRegisters<M, C, D>::kThreads, (size_t)shared,
                    [&] { glyd::split_tiered_kernel<M, C, D>(mx, p); });
}

/* y = x . W + bias; config as in kernels/glyd_gpu.h. 0, or a negative glyd_status. */
EXPORT int emulated_split(uint16_t *y, const uint16_t *x, int tokens, const uint16_t *bias, const uint8_t *pack,
                          uint64_t nbytes, const int64_t *meta, float *partials, unsigned *counters,
                          const int32_t *config, uint32_t order) {
  using namespace glyd;
  emulation::order = order;
  emulation::named.clear(), emulation::products.clear();
  const SplitConfig c = {config[0], config[1], config[2], config[3], config[4], config[5]};
  PackView v;
  if (const int status = glyd_gpu_view(&v, pack, nbytes, meta)) return status;
  SplitArgs p = {};
  const SplitRoom room = split_room(c, (int)meta[5], kSharedMaxHopper);
  if (room.shared < 0 || c.cluster > 1) return -GLYD_E_PARAMETER;
  set_arguments(p, v, y, x, (uint64_t)tokens, bias);
  set_room(p, room);
  p.partials = partials, p.counters = counters, p.cluster = c.cluster, p.dependent = c.dependent;
  p.row_tiles = (p.n_blocks + c.consumers - 1) / c.consumers;
  const CUtensorMap mx = {x, tokens, (int64_t)v.cols, c.tokens};
  const int token_tiles = (tokens + c.tokens - 1) / c.tokens, units = p.row_tiles * token_tiles * p.n_tiles;
  const unsigned blocks = (unsigned)(c.cluster ? p.row_tiles * token_tiles : c.workers < units ? c.workers : units);
  if (c.tokens == 128)
    run<128, 2, 3>(mx, p, blocks, room.shared);
  else if (c.tokens == 64)
    run<64, 2, 4>(mx, p, blocks, room.shared);
  else
    return -GLYD_E_PARAMETER;
  return 0;
}
