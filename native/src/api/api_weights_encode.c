/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Exported functions that pack weights.
 */
#include "glyd/weights.h"
#include "weights/weights_encode.h"

uint64_t glyd_weights_pack_bound(const glyd_weights_shape *shape) { return glyd_weights_encode_bound(shape); }

glyd_status glyd_weights_pack(void *out, size_t cap, const glyd_weights_shape *shape, const void *in, void *workspace,
                              size_t workspace_len, int cpu, size_t *out_len) {
  return glyd_weights_encode(out, cap, shape, in, workspace, workspace_len, cpu, out_len);
}

uint64_t glyd_weights_plan_size(const glyd_weights_shape *shape) { return glyd_weights_encode_plan_size(shape); }

glyd_status glyd_weights_plan_rows(void *out, size_t cap, const glyd_weights_shape *shape, uint64_t first_row,
                                   uint64_t n_rows, const void *in, void *workspace, size_t workspace_len, int cpu) {
  return glyd_weights_encode_plan(out, cap, shape, first_row, n_rows, in, workspace, workspace_len, cpu);
}

glyd_status glyd_weights_plan_end(void *out, size_t cap, const glyd_weights_shape *shape, size_t *out_len) {
  return glyd_weights_encode_plan_end(out, cap, shape, out_len);
}

glyd_status glyd_weights_pack_rows(void *out, size_t cap, const glyd_weights_shape *shape, uint64_t first_row,
                                   uint64_t n_rows, const void *in, void *workspace, size_t workspace_len, int cpu) {
  return glyd_weights_encode_rows(out, cap, shape, first_row, n_rows, in, workspace, workspace_len, cpu);
}
