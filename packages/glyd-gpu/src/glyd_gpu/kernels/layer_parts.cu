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

int glyd_gpu_norm(void *out, const void *x, const void *weight, const int64_t *shape, float eps, void *stream) {
  const int64_t rows = shape[0], inner = shape[1], cols = shape[2];
  const NormArgs p = {(uint16_t *)out, (const uint16_t *)x, (const uint16_t *)weight, shape[3], shape[4],
                      (int)rows,       (int)inner,          (int)cols,                eps};
  if (!is_size(rows) || !is_size(inner) || !is_size(cols) || inner < 1 || cols < 8 || cols % 8 != 0 || shape[3] % 8 != 0 ||
      shape[4] % 8 != 0 || !is_size(rows * inner) || !is_aligned(out) || !is_aligned(x) || !is_aligned(weight))
    return -GLYD_E_PARAMETER;
  if (rows == 0) return 0;
  if (cols > 512)
    norm_kernel<true><<<(unsigned)(rows * inner), kPartThreads, 0, (cudaStream_t)stream>>>(p);
  else
    norm_kernel<false><<<blocks_of(rows * inner * 32), kPartThreads, 0, (cudaStream_t)stream>>>(p);
  return (int)cudaGetLastError();
}

int glyd_gpu_rotate(void *out, const void *q, const void *k, const void *cos, const void *sin, const int64_t *shape,
                    void *stream) {
  const int64_t rows = shape[0], heads = shape[1], key_heads = shape[2], channels = shape[3];
  const RotateArgs p = {(uint16_t *)out, (const uint16_t *)q, (const uint16_t *)k, (const uint16_t *)cos,
                        (const uint16_t *)sin, shape[4], shape[5], shape[6], shape[7],
                        (int)rows, (int)heads, (int)key_heads, (int)channels};
  bool bad = !is_size(rows) || !is_size(heads) || !is_size(key_heads) || channels < 16 || channels > 4096 || channels % 16 != 0;
  for (int i = 4; i < 8; i++) bad = bad || shape[i] % 8 != 0;
  bad = bad || !is_size(rows * (heads + key_heads)) || !is_aligned(out) || !is_aligned(q) || !is_aligned(k) ||
        !is_aligned(cos) || !is_aligned(sin);
  if (bad) return -GLYD_E_PARAMETER;
  const int64_t n = rows * (heads + key_heads) * (channels / 16);
  if (n == 0) return 0;
  rotate_kernel<<<blocks_of(n), kPartThreads, 0, (cudaStream_t)stream>>>(p);
  return (int)cudaGetLastError();
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
  gate_kernel<<<blocks_of(n), kPartThreads, 0, (cudaStream_t)stream>>>(p);
  return (int)cudaGetLastError();
}
