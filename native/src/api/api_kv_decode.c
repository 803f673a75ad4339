/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Exported functions that read packed pages of keys and values.
 */
#include "glyd/kv.h"
#include "kv/kv_decode.h"

size_t glyd_kv_workspace(void) { return glyd_kv_scratch_size(); }

glyd_status glyd_kv_read_info(const void *in, size_t len, glyd_kv_info *info) {
  return glyd_kv_decode_info(in, len, info);
}

glyd_status glyd_kv_unpack(void *out, size_t cap, size_t stride, const void *in, size_t len, void *workspace,
                           size_t workspace_len, int cpu) {
  return glyd_kv_decode(out, cap, stride, in, len, workspace, workspace_len, cpu);
}
