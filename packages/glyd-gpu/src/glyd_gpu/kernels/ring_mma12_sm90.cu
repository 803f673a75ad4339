/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Ring products of the layout mma12: the configurations that are compiled.
 */
#include "ring_kernels_sm90.cuh"

namespace glyd {

int ring_launch_mma12(const CUtensorMap &mx, const RingArgs &p, const RingConfig &c, const RingRoom &room,
                      cudaStream_t stream) {
  switch (c.tokens * 8 + c.wr * c.wk) {
#define CASE(M, WGS) \
  case M * 8 + WGS: return ring_launch<GLYD_WEIGHTS_MMA12, M, WGS>(mx, p, c, room, stream);
    CASE(8, 2)
    CASE(8, 3)
    CASE(16, 2)
    CASE(16, 3)
    CASE(32, 2)
    CASE(32, 3)
    CASE(64, 2)
    CASE(64, 3)
    CASE(128, 2)
    CASE(128, 3)
    CASE(192, 2)
    CASE(192, 3)
    CASE(256, 2)
#undef CASE
  }
  return -GLYD_E_PARAMETER;
}

} // namespace glyd
