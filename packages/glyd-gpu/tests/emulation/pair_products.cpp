/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * The products by pairs of blocks as a function for the CPU; tests/test_ring_products.py.
 */
#include "cuda_runtime.h"
/* first */
#include "pair_mma12_sm90.cuh"

/* y = x . W + bias; config as in kernels/glyd_gpu.h. The workspace is its own; what is left of its counters comes out in
 * counters. 0, or a negative glyd_status. */
extern "C" __attribute__((visibility("default"))) int
emulated_pair(uint16_t *y, const uint16_t *x, int tokens, const uint16_t *bias, const uint8_t *pack, uint64_t nbytes,
              const int64_t *meta, float *, unsigned *counters, const int32_t *config, uint32_t order) {
  using namespace glyd;
  emulation::order = order;
  emulation::named.clear(), emulation::products.clear();
  PackView v;
  if (const int status = glyd_gpu_view(&v, pack, nbytes, meta)) return status;
  PairSetup s;
  if (const int status = pair_set_up(s, meta, (uint64_t)tokens, config)) return status;
  std::vector<uint4> workspace((size_t)s.nbytes / 16 + 1);
  memset(workspace.data(), 0xFF, workspace.size() * 16);
  if (s.nbytes) memset(workspace.data(), 0, kCounterBytes);
  PairArgs a = {};
  set_arguments(a.ring, v, y, x, (uint64_t)tokens, bias);
  pair_arguments(a, s, workspace.data());
  const CUtensorMap mx = {x, tokens, (int64_t)v.cols, s.work.tile_tokens / 2};
  void (*const kernel)(CUtensorMap, PairArgs) = s.config.tokens == 128   ? pair_mma12_kernel<128>
                                                : s.config.tokens == 192 ? pair_mma12_kernel<192>
                                                                         : pair_mma12_kernel<256>;
  emulation::launch({2u * (unsigned)s.work.pairs, 1, 1}, 384, (size_t)s.room.shared, [&] { kernel(mx, a); }, 2);
  for (size_t i = 0; s.nbytes && i < (size_t)kCounterBytes / 16; i++)
    counters[0] |= workspace[i].x | workspace[i].y | workspace[i].z | workspace[i].w;
  return 0;
}
