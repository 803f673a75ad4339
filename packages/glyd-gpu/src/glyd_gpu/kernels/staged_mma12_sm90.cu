/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Staged products: the configurations that are compiled.
 */
#include "staged_sm90.cuh"

namespace glyd {

template <int M, int B, bool PLAIN>
static int launch(const CUtensorMap &mx, const CUtensorMap &mw, const StagedArgs &p, const StagedConfig &c, int shared,
                  cudaStream_t stream) {
  auto kernel = staged_kernel<M, B, PLAIN>;
  cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  if (e) return e;
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attributes[2];
  config.gridDim = dim3((unsigned)p.work.workers);
  config.blockDim = dim3(kStagedThreads);
  config.dynamicSmemBytes = (size_t)shared;
  config.stream = stream;
  config.attrs = attributes;
  if (c.cluster > 1) {
    cudaLaunchAttribute &a = attributes[config.numAttrs++];
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = (unsigned)c.cluster, a.val.clusterDim.y = a.val.clusterDim.z = 1;
  }
  if (c.dependent) {
    cudaLaunchAttribute &a = attributes[config.numAttrs++];
    a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    a.val.programmaticStreamSerializationAllowed = 1;
  }
  e = cudaLaunchKernelEx(&config, kernel, mx, mw, p);
  return e ? e : cudaGetLastError();
}

int staged_launch(const CUtensorMap &mx, const CUtensorMap &mw, const StagedArgs &p, const StagedConfig &c, bool plain,
                  int shared, cudaStream_t stream) {
  switch (c.tokens * 10 + c.blocks) {
#define CASE(M, B)                                                      \
  case M * 10 + B:                                                      \
    return plain ? launch<M, B, true>(mx, mw, p, c, shared, stream)     \
                 : launch<M, B, false>(mx, mw, p, c, shared, stream);
    CASE(32, 2)
    CASE(64, 2)
    CASE(128, 2)
    CASE(256, 2)
#undef CASE
  }
  return -GLYD_E_PARAMETER;
}

} // namespace glyd
