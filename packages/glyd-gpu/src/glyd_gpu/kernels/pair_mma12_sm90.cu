/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Products by pairs of blocks: the tiles that are compiled.
 */
#include "pair_mma12_sm90.cuh"

namespace glyd {

int pair_launch_mma12(const CUtensorMap &mx, const PairArgs &p, int tokens, int shared, cudaStream_t stream) {
  void (*kernel)(CUtensorMap, PairArgs) = tokens == 128   ? pair_mma12_kernel<128>
                                          : tokens == 192 ? pair_mma12_kernel<192>
                                                          : pair_mma12_kernel<256>;
  return launch_blocks(kernel, mx, p, 2 * (int64_t)p.work.pairs, 384, shared, 2, p.ring.dependent, stream);
}

} // namespace glyd
