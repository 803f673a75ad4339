/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Search in a sorted list by a warp.
 */
#ifndef GLYD_SEARCH_PLACES_CUH
#define GLYD_SEARCH_PLACES_CUH

#include <cuda_runtime.h>

#include <cstdint>

namespace glyd {

/* First of n ascending places that is at least bound; all lanes take part. */
__device__ __forceinline__ uint32_t first_at_least(const uint32_t *places, uint32_t n, uint64_t bound, int lane) {
  uint32_t lo = 0, hi = n;
  while (lo < hi) {
    const uint32_t step = (hi - lo + 31) / 32;
    const uint64_t i = lo + (uint64_t)lane * step;
    const int below = __popc(__ballot_sync(~0u, i < hi && places[i < hi ? i : lo] < bound));
    if (below == 0) return lo;
    const uint64_t next = lo + (uint64_t)below * step;
    lo += (below - 1) * step + 1;
    hi = next < hi ? (uint32_t)next : hi;
  }
  return lo;
}

} // namespace glyd

#endif
