/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Norms, rotations and gates as functions for the CPU; tests/test_layer_parts.py.
 */
#include "layer_parts.cuh"

#define EXPORT extern "C" __attribute__((visibility("default")))

static unsigned blocks_of(int64_t n) { return (unsigned)((n + kPartThreads - 1) / kPartThreads); }

EXPORT void emulated_norm(void *out, const void *x, const void *weight, const int64_t *shape, float eps, uint32_t order) {
  emulation::order = order;
  const NormArgs p = {(uint16_t *)out, (const uint16_t *)x, (const uint16_t *)weight, nullptr, nullptr, shape[3], shape[4],
                      (int)shape[0],   (int)shape[1],       (int)shape[2],            eps};
  const int64_t rows = shape[0] * shape[1];
  if (shape[2] > 512)
    emulation::launch({(unsigned)rows, 1, 1}, kPartThreads, 64, [&] { norm_kernel<true>(p); });
  else
    emulation::launch({blocks_of(rows * 32), 1, 1}, kPartThreads, 64, [&] { norm_kernel<false>(p); });
}

EXPORT void emulated_rotate(void *out, const void *q, const void *k, const void *cos, const void *sin,
                            const int64_t *shape, uint32_t order) {
  emulation::order = order;
  const RotateArgs p = {(uint16_t *)out, (const uint16_t *)q, (const uint16_t *)k, (const uint16_t *)cos,
                        (const uint16_t *)sin, shape[4], shape[5], shape[6], shape[7], shape[8],
                        (int)shape[0], (int)shape[1], (int)shape[2], (int)shape[3]};
  const int64_t n = shape[0] * (shape[1] + shape[2]) * (shape[3] / 16);
  emulation::launch({blocks_of(n), 1, 1}, kPartThreads, 0, [&] { rotate_kernel(p); });
}

EXPORT void emulated_gate(void *out, const void *gate, const void *up, const int64_t *shape, uint32_t order) {
  emulation::order = order;
  const GateArgs p = {(uint16_t *)out, (const uint16_t *)gate, (const uint16_t *)up, shape[2], shape[3],
                      (int)shape[0],   (int)shape[1]};
  emulation::launch({blocks_of(shape[0] * (shape[1] / 8)), 1, 1}, kPartThreads, 0, [&] { gate_kernel(p); });
}

EXPORT void emulated_add_norm(void *out, void *sum, const void *x, const void *add, const void *weight, const int64_t *shape,
                              float eps, uint32_t order) {
  emulation::order = order;
  const NormArgs p = {(uint16_t *)out, (const uint16_t *)x, (const uint16_t *)weight, (const uint16_t *)add,
                      (uint16_t *)sum, shape[1],            0,                        (int)shape[0],
                      1,               (int)shape[1],       eps};
  if (p.cols > 512)
    emulation::launch({(unsigned)p.rows, 1, 1}, kPartThreads, 64, [&] { norm_kernel<true>(p); });
  else
    emulation::launch({blocks_of(shape[0] * 32), 1, 1}, kPartThreads, 64, [&] { norm_kernel<false>(p); });
}

EXPORT void emulated_place(void *out, void *keys, void *values, const void *const *from, const int64_t *shape, float eps,
                           uint32_t order) {
  emulation::order = order;
  const uint16_t *const *f = (const uint16_t *const *)from;
  const PlaceArgs p = {(uint16_t *)out, (uint16_t *)keys, (uint16_t *)values, f[0], f[1], f[2], f[3], f[4], f[5], f[6],
                       (const int64_t *)from[7], shape[5], shape[6], shape[7], shape[8], shape[4],
                       (int)shape[0], (int)shape[1], (int)shape[2], (int)shape[3], eps};
  const int64_t n = shape[0] * (shape[1] + 2 * shape[2]) * (shape[3] / 16);
  emulation::launch({blocks_of(n), 1, 1}, kPartThreads, 0, [&] { place_kernel(p); });
}
