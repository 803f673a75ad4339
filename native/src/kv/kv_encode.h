/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * From tokens to a page.
 */
#ifndef GLYD_KV_ENCODE_H
#define GLYD_KV_ENCODE_H

#include "kv/kv_common.h"

size_t glyd_kv_encode_bound(uint32_t channels);

glyd_status glyd_kv_encode(uint8_t *out, size_t cap, const uint8_t *in, uint32_t channels, size_t stride,
                           void *workspace, size_t workspace_len, int cpu, size_t *out_len);

#endif
