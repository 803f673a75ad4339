/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Layout mma12: a tile back to rows.
 */
#include "weights/weights_mma12_decode.h"

glyd_status glyd_weights_mma12_decode_tile(uint16_t *out, const uint8_t *tile, const uint8_t *bases) {
  unsigned bad = 0;
  for (unsigned t = 0; t < 128; t++) {
    for (unsigned s = 0; s < 4; s++) {
      const uint8_t *low = tile + (s / 2) * 2048 + t * 16 + (s % 2) * 8;
      const uint32_t word = glyd_load32(tile + 4096 + t * 16 + s * 4);
      const uint32_t half[2] = {word & 0x87878787u, (word << 4 | word >> 28) & 0x87878787u};
      for (unsigned j = 0; j < 8; j++) {
        const unsigned row = glyd_weights_row_of(t, j);
        const unsigned base = bases[row];
        const uint32_t code = half[j / 4] >> (8 * (j % 4)) & 0x87;
        const uint32_t w = (code & 0x80) << 8 | ((code & 7) + base) << 8 | low[j];
        bad |= base == 0 && (w & 0x7FFF) != 0;
        out[row * GLYD_WEIGHTS_MMA12_COLS + 16 * s + glyd_weights_col_of(t, j)] = (uint16_t)w;
      }
    }
  }
  return bad ? GLYD_E_CORRUPT : GLYD_OK;
}
