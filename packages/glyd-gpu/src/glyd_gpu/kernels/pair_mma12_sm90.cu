/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Launch of products by pairs of blocks.
 */
#include "pair_mma12_sm90.cuh"

namespace glyd {

int pair_launch_mma12(const CUtensorMap &mx, const PairArgs &p, int shared, cudaStream_t stream) {
  return launch_blocks(pair_mma12_kernel<kPairTokens>, mx, p, 2 * (int64_t)p.work.pairs, 384, shared, 2, p.ring.dependent, stream);
}

} // namespace glyd
