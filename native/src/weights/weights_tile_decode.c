/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * From tiles back to rows, portable.
 */
#include "weights/weights_tile_decode.h"

static const int8_t kTier2[3] = GLYD_WEIGHTS_TIER2;
static const int8_t kTier3[8] = GLYD_WEIGHTS_TIER3;

unsigned glyd_weights_rows_mma12_scalar(uint16_t *out, const uint8_t *tile, const uint8_t *bases) {
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
  return bad;
}

unsigned glyd_weights_rows_tiered_scalar(uint16_t *out, const uint8_t *tile, const uint8_t *symbols,
                                         const uint8_t *bases) {
  unsigned bad = 0;
  for (unsigned t = 0; t < 128; t++) {
    for (unsigned j = 0; j < 64; j++) {
      const unsigned row = glyd_weights_row_of(t, j);
      const unsigned col = 16 * (j / 8) + glyd_weights_col_of(t, j % 8);
      const unsigned symbol = symbols[t * 64 + j];
      const unsigned sm = tile[j / 16 * 2048 + t * 16 + j % 16];
      int exponent = bases[row];
      bad |= exponent == 0 && (symbol | (sm & 0x7F)) != 0;
      if ((symbol & 3) != 3) {
        exponent += (int)(symbol & 3);
      } else if ((symbol & 15) != 15) {
        exponent += kTier2[symbol >> 2 & 3];
      } else if (symbol >> 4 == GLYD_WEIGHTS_TIER3_ZERO) {
        bad |= (sm & 0x7F) != 0;
        exponent = 0;
      } else {
        exponent += kTier3[symbol >> 4 & 7];
      }
      out[row * GLYD_WEIGHTS_TIERED_COLS + col] =
          (uint16_t)((sm & 0x80) << 8 | ((unsigned)exponent & 0xFF) << 7 | (sm & 0x7F));
    }
  }
  return bad;
}

unsigned glyd_weights_symbols_scalar(uint8_t *symbols, const uint8_t *codes, const uint8_t *escapes,
                                     uint32_t escapes_len, uint32_t n_digits) {
  const uint8_t *digits = escapes + GLYD_WEIGHTS_ESCAPE_HEADER;
  uint32_t at2 = 0;
  uint32_t at3 = (n_digits + 1) / 2;
  unsigned bad = 0;
  for (unsigned t = 0; t < 128; t++) {
    if (t % 32 == 0) bad |= glyd_load16(escapes + t / 16) != at2 || glyd_load16(escapes + 8 + t / 16) != at3;
    for (unsigned j = 0; j < 64; j++) {
      unsigned symbol = (unsigned)codes[t * 16 + j / 4] >> (2 * (j % 4)) & 3;
      if (symbol == 3) {
        symbol |= (unsigned)(digits[at2 / 4] >> (2 * (at2 % 4)) & 3) << 2;
        at2++;
        if (symbol == 15) {
          const unsigned code = digits[at3 / 2] >> (4 * (at3 % 2)) & 15;
          at3++;
          bad |= code > GLYD_WEIGHTS_TIER3_ZERO;
          symbol |= code << 4;
        }
      }
      symbols[t * 64 + j] = (uint8_t)symbol;
    }
  }
  return bad | (glyd_weights_escape_bytes(n_digits, at3 - (n_digits + 1) / 2) != escapes_len);
}
