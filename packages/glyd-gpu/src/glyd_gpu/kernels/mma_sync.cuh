/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * mma.sync m16n8k16: 16 rows of weights (A) times 8 tokens (B), added to d.
 */
#ifndef GLYD_MMA_SYNC_CUH
#define GLYD_MMA_SYNC_CUH

#include <cstdint>

namespace glyd {

__device__ __forceinline__ void mma_16x8x16(float *d, const uint32_t *a, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

} // namespace glyd

#endif
