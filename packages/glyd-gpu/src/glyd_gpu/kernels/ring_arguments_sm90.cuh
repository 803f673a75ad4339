/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * What the launchers of products with rings fill in alike, on the host.
 */
#ifndef GLYD_RING_ARGUMENTS_SM90_CUH
#define GLYD_RING_ARGUMENTS_SM90_CUH

#include "pack_view.cuh"
#include "ring_sm90.cuh"

namespace glyd {

constexpr int kSharedMaxHopper = 227 * 1024;
constexpr uint64_t kTokensMax = 0x3FFFFFFF;
constexpr int64_t kCounterBytes = 1 << 20; /* the start of the workspace: zero between launches */
constexpr int64_t kTransposingBytes = 64;  /* at the end of the counters, those of the transposed activations */

inline bool aligned(const void *p, uintptr_t n) { return reinterpret_cast<uintptr_t>(p) % n == 0; }

/* what such a product takes of sizes and addresses */
inline bool takes(const PackView &v, const void *y, const void *x, uint64_t tokens) {
  return v.rows <= 0x7FFFFFFF && v.n_units <= 0xFFFFFFFFll && tokens <= kTokensMax && v.cols % 8 == 0 &&
         aligned(x, 16) && aligned(y, 16);
}

/* Tiles of tokens are of one size, whatever the last would have: rows outside of x cost the copy engine more than rows of
 * it (a box with 44 of 256 rows of x: products of 300 tokens took 1.7 times as long). At most `most`, as many tiles. */
inline int ring_tile_tokens(uint64_t tokens, int most) {
  const uint64_t tiles = (tokens + most - 1) / most;
  return (int)(((tokens + tiles - 1) / tiles + 7) & ~7ull);
}

/* sections of the pack, and the tensors */
inline void set_arguments(RingArgs &p, const PackView &v, void *y, const void *x, uint64_t tokens, const void *bias) {
  p.rows = v.rows, p.cols = (int)v.cols, p.tokens = p.tile_tokens = (int)tokens;
  p.n_blocks = (int)v.row_blocks, p.n_tiles = (int)v.tiles;
  p.blocks = v.base + GLYD_WEIGHTS_HEADER, p.tiles = v.base + v.tiles_at, p.escapes = v.base + v.escapes_at;
  p.index = reinterpret_cast<const uint32_t *>(v.base + v.index_at);
  p.places = reinterpret_cast<const uint32_t *>(v.base + v.places_at);
  p.values = reinterpret_cast<const uint16_t *>(v.base + v.values_at);
  p.n_escape_units = (uint64_t)v.n_units, p.n_exceptions = (uint64_t)v.n_exceptions;
  p.x = static_cast<const __nv_bfloat16 *>(x), p.bias = static_cast<const __nv_bfloat16 *>(bias);
  p.y = static_cast<__nv_bfloat16 *>(y);
}

#ifndef GLYD_EMULATION
/* Whether a block of the current device can have so much shared memory; 0 or an error. */
inline int check_shared(int nbytes) {
  int device = 0, most = 0;
  cudaError_t e = cudaGetDevice(&device);
  if (!e) e = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return e ? (int)e : most < nbytes ? -GLYD_E_PARAMETER : 0;
}

template <class A>
int launch_blocks(void (*kernel)(CUtensorMap, A), const CUtensorMap &mx, const A &p, int64_t blocks, int threads,
                  int shared, int cluster, int dependent, cudaStream_t stream) {
  cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  if (e) return e;
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attributes[2];
  config.gridDim = dim3((unsigned)blocks);
  config.blockDim = dim3((unsigned)threads);
  config.dynamicSmemBytes = (size_t)shared;
  config.stream = stream;
  config.attrs = attributes;
  if (cluster > 1) {
    cudaLaunchAttribute &a = attributes[config.numAttrs++];
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = (unsigned)cluster, a.val.clusterDim.y = a.val.clusterDim.z = 1;
  }
  if (dependent) {
    cudaLaunchAttribute &a = attributes[config.numAttrs++];
    a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    a.val.programmaticStreamSerializationAllowed = 1;
  }
  e = cudaLaunchKernelEx(&config, kernel, mx, p);
  return e ? e : cudaGetLastError();
}
#endif

} // namespace glyd

#endif
