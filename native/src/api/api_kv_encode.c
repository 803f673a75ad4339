/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Exported functions that pack pages of keys and values.
 */
#include "glyd/kv.h"
#include "kv/kv_encode.h"

size_t glyd_kv_page_bound(uint32_t channels) { return glyd_kv_encode_bound(channels); }

glyd_status glyd_kv_pack(void *out, size_t cap, const void *in, uint32_t channels, size_t stride, void *workspace,
                         size_t workspace_len, int cpu, size_t *out_len) {
  return glyd_kv_encode(out, cap, in, channels, stride, workspace, workspace_len, cpu, out_len);
}
