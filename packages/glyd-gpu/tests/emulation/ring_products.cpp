/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * The ring products as functions for the CPU; tests/test_ring_products.py.
 */
#include "cuda_runtime.h"
/* first */
#include "ring_arguments_sm90.cuh"
#include "ring_kernels_sm90.cuh"

#define EXPORT extern "C" __attribute__((visibility("default")))

template <int L, int M, int WGS>
static void run(const CUtensorMap &mx, const glyd::RingArgs &p, unsigned blocks, int shared) {
  emulation::launch({blocks, 1, 1}, WGS * 128 + 128, (size_t)shared, [&] {
    if (p.cluster)
      glyd::ring_cluster_kernel<L, M, WGS>(mx, p);
    else
      glyd::ring_streamk_kernel<L, M, WGS>(mx, p);
  });
}

/* y = x . W + bias; config as in kernels/glyd_gpu.h. 0, or a negative glyd_status. */
EXPORT int emulated_ring(uint16_t *y, const uint16_t *x, int tokens, const uint16_t *bias, const uint8_t *pack,
                         uint64_t nbytes, const int64_t *meta, float *partials, unsigned *counters,
                         const int32_t *config, uint32_t order) {
  using namespace glyd;
  emulation::order = order;
  emulation::named.clear(), emulation::products.clear();
  const RingConfig c = {config[0], config[1], config[2], config[3], config[4], config[5], config[6]};
  PackView v;
  if (const int status = glyd_gpu_view(&v, pack, nbytes, meta)) return status;
  const bool tiered = v.layout == GLYD_WEIGHTS_TIERED;
  const RingRoom room = ring_room(tiered, c, (int)meta[5], v.n_exceptions ? meta[6] : 0, kSharedMaxHopper);
  if (room.shared < 0 || room.transposes || c.cluster > 1) return -GLYD_E_PARAMETER;
  RingArgs p = {};
  set_arguments(p, v, y, x, (uint64_t)tokens, bias);
  p.tile_tokens = ring_tile_tokens((uint64_t)tokens, c.tokens);
  p.wr = c.wr, p.wk = c.wk, p.kb = c.kb, p.cluster = c.cluster, p.dependent = c.dependent, p.early = ring_early(tiered);
  p.partials = partials, p.counters = counters;
  p.stage_bytes = room.stage_bytes, p.n_stages = room.n_stages, p.escape_slot = room.escape_slot;
  p.exc_cap = room.exc_cap;
  p.row_tiles = (p.n_blocks + c.wr - 1) / c.wr;
  const CUtensorMap mx = {x, tokens, (int64_t)v.cols, p.tile_tokens};
  const int units = p.row_tiles * ((p.n_tiles + c.kb - 1) / c.kb);
  const unsigned blocks = (unsigned)(c.cluster           ? p.row_tiles * ((tokens + c.tokens - 1) / c.tokens)
                                     : c.workers < units ? c.workers
                                                         : units);
  if (tiered && c.tokens == 8 && c.wr * c.wk == 3)
    run<GLYD_WEIGHTS_TIERED, 8, 3>(mx, p, blocks, room.shared);
  else if (tiered && c.tokens == 64)
    run<GLYD_WEIGHTS_TIERED, 64, 3>(mx, p, blocks, room.shared);
  else if (!tiered && c.tokens == 32)
    run<GLYD_WEIGHTS_MMA12, 32, 2>(mx, p, blocks, room.shared);
  else if (!tiered && c.tokens == 64)
    run<GLYD_WEIGHTS_MMA12, 64, 2>(mx, p, blocks, room.shared);
  else
    return -GLYD_E_PARAMETER;
  return 0;
}
