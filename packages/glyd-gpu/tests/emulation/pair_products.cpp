/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * The products by pairs of blocks as a function for the CPU; tests/test_pair_products.py.
 */
#include "cuda_runtime.h"
/* first */
#include "pair_mma12_sm90.cuh"

#define EXPORT extern "C" __attribute__((visibility("default")))

/* y = x . W + bias; config as in kernels/glyd_gpu.h; workspace: nbytes, its counters zero. The bytes that it needs, or a
 * negative glyd_status; nothing is multiplied with less. */
EXPORT int64_t emulated_pair(uint16_t *y, const uint16_t *x, int tokens, const uint16_t *bias, const uint8_t *pack,
                             uint64_t nbytes, const int64_t *meta, uint8_t *workspace, int64_t workspace_nbytes,
                             const int32_t *config, uint32_t order) {
  using namespace glyd;
  emulation::order = order;
  emulation::named.clear(), emulation::products.clear();
  PackView v;
  if (const int status = glyd_gpu_view(&v, pack, nbytes, meta)) return status;
  PairSetup s;
  if (const int status = pair_set_up(s, meta, (uint64_t)tokens, config)) return status;
  if (workspace_nbytes < s.nbytes) return s.nbytes;
  PairArgs a = {};
  set_arguments(a.ring, v, y, x, (uint64_t)tokens, bias);
  pair_arguments(a, s, workspace);
  const CUtensorMap mx = {x, tokens, (int64_t)v.cols, s.config.tokens / 2};
  void (*const kernel)(CUtensorMap, PairArgs) = s.config.tokens == 128   ? pair_mma12_kernel<128>
                                                : s.config.tokens == 192 ? pair_mma12_kernel<192>
                                                                         : pair_mma12_kernel<256>;
  emulation::launch({2u * (unsigned)s.work.pairs, 1, 1}, 384, (size_t)s.room.shared, [&] { kernel(mx, a); }, 2);
  return s.nbytes;
}
