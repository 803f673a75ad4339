/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Launchers of packing and unpacking pages of keys and values.
 */
#include "glyd_gpu.h"
#include "kv_launch.cuh"
#include "kv_pack.cuh"

template <int D> static int launch_pack(const KvPackArgs &p, unsigned n, cudaStream_t stream) {
  return kv_launch(kv_pack_kernel<D>, dim3(n), kv_pack_threads(D), kv_pack_shared<D>(), stream, p);
}
constexpr unsigned kKvUnpackBlocks = 4096; /* each may have several slabs a warp */
template <int D> static int launch_unpack(const KvUnpackArgs &p, unsigned n, cudaStream_t stream) {
  const unsigned blocks = (n * GLYD_KV_SLABS + kKvUnpackWarps - 1) / kKvUnpackWarps;
  return kv_launch(kv_unpack_kernel<D>, dim3(blocks < kKvUnpackBlocks ? blocks : kKvUnpackBlocks), kKvUnpackWarps * 32, kv_unpack_shared<D>(), stream, p);
}

int glyd_gpu_kv_pack(void *out, void *sizes, const void *in, uint64_t n_pages, int channels, void *stream) {
  const KvPackArgs p = {(const uint16_t *)in, (int64_t *)sizes, (uint8_t *)out};
  if ((uintptr_t)out % GLYD_KV_ALIGN != 0 || (uintptr_t)in % 16 != 0) return -GLYD_E_PARAMETER;
  if (const int bad = glyd_gpu_check_grid((int64_t)n_pages)) return bad;
  if (n_pages == 0) return 0;
  GLYD_GPU_KV_CHANNELS(channels, launch_pack, p, (unsigned)n_pages, (cudaStream_t)stream);
}

int glyd_gpu_kv_place(void *out, const void *places, const void *in, uint64_t n_pages, int channels, void *stream) {
  if ((uintptr_t)out % GLYD_KV_ALIGN != 0 || (uintptr_t)in % GLYD_KV_ALIGN != 0 || channels < 1 ||
      channels > GLYD_KV_CHANNELS_MAX)
    return -GLYD_E_PARAMETER;
  const KvPlaceArgs p = {(uint8_t *)out, (const int64_t *)places, (const uint8_t *)in, GLYD_KV_PLAIN_SIZE((uint32_t)channels)};
  if (const int bad = glyd_gpu_check_grid((int64_t)n_pages)) return bad;
  if (n_pages == 0) return 0;
  return kv_launch(kv_place_kernel, dim3((unsigned)n_pages), kKvPlaceThreads, 0, (cudaStream_t)stream, p);
}

int glyd_gpu_kv_unpack(void *out, const void *pages, uint64_t n_pages, int channels, void *stream) {
  const KvUnpackArgs p = {(uint16_t *)out, (const uint64_t *)pages, (int64_t)n_pages};
  if ((uintptr_t)out % 16 != 0) return -GLYD_E_PARAMETER;
  if (const int bad = glyd_gpu_check_grid((int64_t)n_pages)) return bad;
  if (n_pages == 0) return 0;
  GLYD_GPU_KV_CHANNELS(channels, launch_unpack, p, (unsigned)n_pages, (cudaStream_t)stream);
}
