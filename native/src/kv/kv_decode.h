/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * From a page to tokens.
 */
#ifndef GLYD_KV_DECODE_H
#define GLYD_KV_DECODE_H

#include "kv/kv_common.h"

glyd_status glyd_kv_decode_info(const uint8_t *in, size_t len, glyd_kv_info *info);

glyd_status glyd_kv_decode(uint8_t *out, size_t cap, size_t stride, const uint8_t *in, size_t len, void *workspace,
                           size_t workspace_len, int cpu);

#endif
