/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Packing in three steps: plan, end of the plan, pack. The functions of
 * glyd/weights.h, which see.
 */
#ifndef GLYD_WEIGHTS_ENCODE_H
#define GLYD_WEIGHTS_ENCODE_H

#include "weights/weights_common.h"

uint64_t glyd_weights_encode_bound(const glyd_weights_shape *shape);
uint64_t glyd_weights_encode_plan_size(const glyd_weights_shape *shape);
glyd_status glyd_weights_encode_plan(uint8_t *out, size_t cap, const glyd_weights_shape *shape, uint64_t first_row,
                                     uint64_t n_rows, const uint8_t *in, void *workspace, size_t workspace_len,
                                     int cpu);
glyd_status glyd_weights_encode_plan_end(uint8_t *out, size_t cap, const glyd_weights_shape *shape, size_t *out_len);
glyd_status glyd_weights_encode_rows(uint8_t *out, size_t cap, const glyd_weights_shape *shape, uint64_t first_row,
                                     uint64_t n_rows, const uint8_t *in, void *workspace, size_t workspace_len,
                                     int cpu);
glyd_status glyd_weights_encode(uint8_t *out, size_t cap, const glyd_weights_shape *shape, const uint8_t *in,
                                void *workspace, size_t workspace_len, int cpu, size_t *out_len);

#endif
