/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Layout mma12: a tile back to rows.
 */
#include "weights/weights_mma12_decode.h"

#include "weights/weights_tile_decode.h"

glyd_status glyd_weights_mma12_decode_tile(uint16_t *out, const uint8_t *tile, const uint8_t *bases, int avx2) {
  const unsigned bad =
      avx2 ? glyd_weights_rows_mma12_avx2(out, tile, bases) : glyd_weights_rows_mma12_scalar(out, tile, bases);
  return bad ? GLYD_E_CORRUPT : GLYD_OK;
}
