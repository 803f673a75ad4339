/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Exported functions that read packed weights.
 */
#include "glyd/weights.h"
#include "weights/weights_decode.h"

size_t glyd_weights_workspace(void) { return glyd_weights_scratch_size(); }

glyd_status glyd_weights_read_info(const void *in, size_t len, glyd_weights_info *info) {
  return glyd_weights_decode_info(in, len, info);
}

glyd_status glyd_weights_unpack_rows(void *out, size_t cap, const void *in, size_t len, uint64_t first_row,
                                     uint64_t n_rows, void *workspace, size_t workspace_len, int cpu) {
  return glyd_weights_decode_rows(out, cap, in, len, first_row, n_rows, workspace, workspace_len, cpu);
}
