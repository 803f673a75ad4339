/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Layout mma12: a tile back to rows.
 */
#ifndef GLYD_WEIGHTS_MMA12_DECODE_H
#define GLYD_WEIGHTS_MMA12_DECODE_H

#include "weights/weights_common.h"

/* out: [64][64] weights. CORRUPT when a row of zeros holds anything else. */
glyd_status glyd_weights_mma12_decode_tile(uint16_t *out, const uint8_t *tile, const uint8_t *bases, int avx2);

#endif
