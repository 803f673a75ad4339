/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading packs. The functions of glyd/weights.h, which see.
 */
#ifndef GLYD_WEIGHTS_DECODE_H
#define GLYD_WEIGHTS_DECODE_H

#include "weights/weights_common.h"

glyd_status glyd_weights_decode_info(const uint8_t *in, size_t len, glyd_weights_info *info);
glyd_status glyd_weights_decode_rows(uint8_t *out, size_t cap, const uint8_t *in, size_t len, uint64_t first_row,
                                     uint64_t n_rows, void *workspace, size_t workspace_len, int cpu);

#endif
