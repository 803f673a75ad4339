/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * What launchers of kernels for pages share: head sizes, and more than 48 KiB
 * of shared memory.
 */
#ifndef GLYD_GPU_KV_LAUNCH_CUH
#define GLYD_GPU_KV_LAUNCH_CUH

#include "pack_view.cuh"

template <class Kernel, class Args>
inline int kv_launch(Kernel *kernel, dim3 grid, unsigned threads, int shared, cudaStream_t stream, const Args &args) {
  if (shared > 48 * 1024)
    if (const cudaError_t bad = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared))
      return (int)bad;
  kernel<<<grid, threads, (size_t)shared, stream>>>(args);
  return (int)cudaGetLastError();
}

/* Head sizes that are compiled. */
#define GLYD_GPU_KV_CHANNELS(channels, call, ...) \
  switch (channels) {                             \
  case 64: return call<64>(__VA_ARGS__);          \
  case 96: return call<96>(__VA_ARGS__);          \
  case 128: return call<128>(__VA_ARGS__);        \
  case 256: return call<256>(__VA_ARGS__);        \
  default: return -GLYD_E_PARAMETER;              \
  }

#endif
