/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Layout mma12: bases and tiles.
 */
#ifndef GLYD_WEIGHTS_MMA12_ENCODE_H
#define GLYD_WEIGHTS_MMA12_ENCODE_H

#include "weights/weights_common.h"

/* Base of a row from its exponent counts; adds the weights outside its window to exceptions. */
uint8_t glyd_weights_mma12_base(const uint32_t *counts, uint64_t cols, uint64_t *exceptions);

void glyd_weights_mma12_encode_tile(uint8_t *tile, const uint8_t *src, size_t stride, const uint8_t *bases,
                                    uint64_t *exceptions, int avx2);

#endif
