/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Launcher of the streaming mma12 product.
 */
#include "stream_mma12.cuh"

#include "glyd/status.h"
#include "glyd_gpu.h"
#include "pack_view.cuh"

namespace {

using namespace glyd;

template <int NT, int RS, int WARPS, int UN> int launch(const StreamArgs &p, bool dependent, cudaStream_t stream) {
  const int64_t blocks = (p.rows + 63) / 64 * (4 / RS);
  if (const int status = glyd_gpu_check_grid(blocks)) return status;
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attribute;
  config.gridDim = dim3((unsigned)blocks);
  config.blockDim = dim3(WARPS * 32);
  config.stream = stream;
  if (dependent) {
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute, config.numAttrs = 1;
  }
  const cudaError_t e = cudaLaunchKernelEx(&config, stream_mma12_kernel<NT, RS, WARPS, UN>, p);
  return e ? e : cudaGetLastError();
}

} // namespace

int glyd_gpu_product_stream(void *y, const void *x, uint64_t tokens, const void *bias, const void *pack,
                            uint64_t pack_nbytes, const int64_t *meta, const int32_t *config, void *stream) {
  if (tokens == 0) return 0;
  PackView v;
  if (const int status = glyd_gpu_view(&v, pack, pack_nbytes, meta)) return status;
  if (v.layout != GLYD_WEIGHTS_MMA12 || tokens > 16 || v.cols % 2 || reinterpret_cast<uintptr_t>(x) % 4)
    return -GLYD_E_PARAMETER;
  StreamArgs p = {};
  p.rows = v.rows, p.cols = (int)v.cols, p.tokens = (int)tokens, p.n_tiles = (int)v.tiles;
  p.blocks = v.base + GLYD_WEIGHTS_HEADER, p.tiles = v.base + v.tiles_at;
  p.places = reinterpret_cast<const uint32_t *>(v.base + v.places_at);
  p.values = reinterpret_cast<const uint16_t *>(v.base + v.values_at);
  p.n_exceptions = (uint64_t)v.n_exceptions;
  p.x = static_cast<const __nv_bfloat16 *>(x), p.bias = static_cast<const __nv_bfloat16 *>(bias);
  p.y = static_cast<__nv_bfloat16 *>(y);
  const bool dependent = config[3] != 0;
  p.dependent = config[3];
  const cudaStream_t s = static_cast<cudaStream_t>(stream);
  switch ((tokens > 8) * 1000 + config[0] * 100 + config[1] * 4 + config[2] - 1) {
#define CASE(RS, WARPS, UN)                                                             \
  case RS * 100 + WARPS * 4 + UN - 1: return launch<1, RS, WARPS, UN>(p, dependent, s); \
  case 1000 + RS * 100 + WARPS * 4 + UN - 1: return launch<2, RS, WARPS, UN>(p, dependent, s);
    CASE(2, 8, 1)
    CASE(2, 16, 1)
    CASE(2, 16, 2)
#undef CASE
  }
  return -GLYD_E_PARAMETER;
}
