/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Launchers of norms, rotations and gates.
 */
#include "layer_parts.cuh"

#include "glyd/status.h"
#include "glyd_gpu.h"

static bool is_aligned(const void *p) { return (uintptr_t)p % 16 == 0; }
static bool is_size(int64_t n) { return n >= 0 && n <= 0x7FFFFFFF; }
static unsigned blocks_of(int64_t n) { return (unsigned)((n + kPartThreads - 1) / kPartThreads); }

/* Rows up to which a kernel may begin before the one ahead has ended. A step of Qwen3-8B's shape in mma12 on an H200, ms
 * with and without: 1 sequence 3.98, 3.99; 8: 4.27, 4.38; 32: 5.12, 5.00. */
constexpr int kEarlyRows = 16;

/* Launch so that it may begin early, where devices can (part_begin waits for the kernel ahead). */
template <class Args> static int launch(void (*kernel)(const Args), unsigned blocks, const Args &p, void *stream) {
  int device = 0, major = 0;
  if (const cudaError_t e = cudaGetDevice(&device)) return (int)e;
  if (const cudaError_t e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)) return (int)e;
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attribute;
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kPartThreads);
  config.stream = (cudaStream_t)stream;
  if (major >= 9 && p.rows <= kEarlyRows) {
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute, config.numAttrs = 1;
  }
  const cudaError_t e = cudaLaunchKernelEx(&config, kernel, p);
  return (int)(e ? e : cudaGetLastError());
}

static int norm(const NormArgs &p, void *stream) {
  const int64_t n = (int64_t)p.rows * p.inner;
  const void *all[] = {p.out, p.x, p.weight, p.add, p.sum}; /* NULL is aligned */
  for (const void *at : all)
    if (!is_aligned(at)) return -GLYD_E_PARAMETER;
  if (!is_size(n) || p.inner < 1 || p.cols < 8 || p.cols % 8 != 0 || p.outer % 8 != 0 || p.within % 8 != 0)
    return -GLYD_E_PARAMETER;
  if (n == 0) return 0;
  return p.cols > 512 ? launch(norm_kernel<true>, (unsigned)n, p, stream)
                      : launch(norm_kernel<false>, blocks_of(n * 32), p, stream);
}

int glyd_gpu_norm(void *out, const void *x, const void *weight, const int64_t *shape, float eps, void *stream) {
  if (!is_size(shape[0]) || !is_size(shape[1]) || !is_size(shape[2])) return -GLYD_E_PARAMETER;
  const NormArgs p = {(uint16_t *)out, (const uint16_t *)x, (const uint16_t *)weight, nullptr,       nullptr, shape[3],
                      shape[4],        (int)shape[0],       (int)shape[1],            (int)shape[2], eps};
  return norm(p, stream);
}

int glyd_gpu_add_norm(void *out, void *sum, const void *x, const void *add, const void *weight, const int64_t *shape,
                      float eps, void *stream) {
  if (!is_size(shape[0]) || !is_size(shape[1]) || add == nullptr || sum == nullptr) return -GLYD_E_PARAMETER;
  const NormArgs p = {(uint16_t *)out, (const uint16_t *)x, (const uint16_t *)weight, (const uint16_t *)add,
                      (uint16_t *)sum, shape[1],            0,                        (int)shape[0],
                      1,               (int)shape[1],       eps};
  return norm(p, stream);
}

int glyd_gpu_place(void *out, void *keys, void *values, const void *const *from, const int64_t *shape, float eps,
                   void *stream) {
  const int64_t rows = shape[0], heads = shape[1], key_heads = shape[2], channels = shape[3];
  bool bad = !is_size(rows) || !is_size(heads) || !is_size(key_heads) || channels < 16 || channels > 512 ||
             (channels & (channels - 1)) != 0 || shape[4] < 1 || (rows != 0 && !is_size((heads + 2 * key_heads) * channels)) ||
             !is_size(rows * (heads + 2 * key_heads)) || !is_aligned(out) || !is_aligned(keys) || !is_aligned(values);
  for (int i = 0; i < 7; i++) bad = bad || !is_aligned(from[i]);
  for (int i = 5; i < 9; i++) bad = bad || shape[i] % 8 != 0;
  if (bad || (uintptr_t)from[7] % 8 != 0) return -GLYD_E_PARAMETER;
  const uint16_t *const *f = (const uint16_t *const *)from;
  const PlaceArgs p = {(uint16_t *)out, (uint16_t *)keys, (uint16_t *)values, f[0], f[1], f[2], f[3], f[4], f[5], f[6],
                       (const int64_t *)from[7], shape[5], shape[6], shape[7], shape[8], shape[4],
                       (int)rows, (int)heads, (int)key_heads, (int)channels, eps};
  const int64_t n = rows * (heads + 2 * key_heads) * (channels / 16);
  if (n == 0) return 0;
  return launch(place_kernel, blocks_of(n), p, stream);
}

int glyd_gpu_rotate(void *out, const void *q, const void *k, const void *cos, const void *sin, const int64_t *shape,
                    void *stream) {
  const int64_t rows = shape[0], heads = shape[1], key_heads = shape[2], channels = shape[3];
  const RotateArgs p = {(uint16_t *)out, (const uint16_t *)q, (const uint16_t *)k, (const uint16_t *)cos,
                        (const uint16_t *)sin, shape[4], shape[5], shape[6], shape[7], shape[8],
                        (int)rows, (int)heads, (int)key_heads, (int)channels};
  bool bad = !is_size(rows) || !is_size(heads) || !is_size(key_heads) || channels < 16 || channels > 4096 || channels % 16 != 0;
  for (int i = 4; i < 9; i++) bad = bad || shape[i] % 8 != 0;
  bad = bad || !is_size(rows * (heads + key_heads)) || !is_aligned(out) || !is_aligned(q) || !is_aligned(k) ||
        !is_aligned(cos) || !is_aligned(sin);
  if (bad) return -GLYD_E_PARAMETER;
  const int64_t n = rows * (heads + key_heads) * (channels / 16);
  if (n == 0) return 0;
  return launch(rotate_kernel, blocks_of(n), p, stream);
}

int glyd_gpu_gate(void *out, const void *gate, const void *up, const int64_t *shape, void *stream) {
  const int64_t rows = shape[0], cols = shape[1];
  const GateArgs p = {(uint16_t *)out, (const uint16_t *)gate, (const uint16_t *)up, shape[2], shape[3],
                      (int)rows,       (int)cols};
  if (!is_size(rows) || !is_size(cols) || cols % 8 != 0 || shape[2] % 8 != 0 || shape[3] % 8 != 0 || !is_aligned(out) ||
      !is_aligned(gate) || !is_aligned(up))
    return -GLYD_E_PARAMETER;
  const int64_t n = rows * (cols / 8);
  if (n == 0) return 0;
  if (n > (int64_t)0x7FFFFFFF * kPartThreads) return -GLYD_E_PARAMETER;
  return launch(gate_kernel, blocks_of(n), p, stream);
}
