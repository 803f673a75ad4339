/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * What the library is, and what its return values mean.
 */
#include <cuda_runtime.h>

#include "glyd/status.h"
#include "glyd_gpu.h"

#ifndef GLYD_GPU_ARCHITECTURES
#error "build_kernels.py names the architectures"
#endif

int glyd_gpu_abi_version(void) { return GLYD_GPU_ABI_VERSION; }

const char *glyd_gpu_architectures(void) { return GLYD_GPU_ARCHITECTURES; }

const char *glyd_gpu_error_text(int code) {
  if (code >= 0) return cudaGetErrorString((cudaError_t)code);
  switch (-code) {
  case GLYD_E_CORRUPT: return "meta is no meta of a pack";
  case GLYD_E_TRUNCATED: return "the pack is cut short";
  case GLYD_E_PARAMETER: return "an argument is outside of its range or not aligned";
  case GLYD_E_BUFFER: return "a buffer is too small";
  default: return "unknown status";
  }
}

uint64_t glyd_gpu_capture_id(void *stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  if (cudaStreamGetCaptureInfo((cudaStream_t)stream, &status, &id)) return 0;
  return status == cudaStreamCaptureStatusActive ? (uint64_t)id : 0;
}
