/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Tile kernels, portable.
 */
#include "weights/weights_tile_encode.h"

/* Exponent - base:                        -9    -8    -7    -6    -5    -4    -3   -2   -1   0  1  2  3    4 */
const uint8_t glyd_weights_symbols[16] = {0x7F, 0x6F, 0x5F, 0x4F, 0x3F, 0x2F, 0x0F, 0x0B,
                                          0x03, 0,    1,    2,    0x07, 0x1F, 0x8F, 0x8F};

GLYD_INLINE uint16_t weight_at(const uint8_t *src, size_t stride, unsigned row, unsigned col) {
  return glyd_load16(src + 2 * (row * stride + col));
}

void glyd_weights_tile_mma12_scalar(uint8_t *out, const uint8_t *src, size_t stride, const uint8_t *base,
                                    uint64_t *exceptions) {
  for (unsigned t = 0; t < 128; t++) {
    for (unsigned s = 0; s < 4; s++) {
      uint32_t half[2] = {0, 0};
      for (unsigned j = 0; j < 8; j++) {
        const unsigned row = glyd_weights_row_of(t, j);
        const unsigned col = 16 * s + glyd_weights_col_of(t, j);
        const uint16_t w = weight_at(src, stride, row, col);
        const unsigned code = (unsigned)glyd_weights_high(w) - base[row];
        uint8_t low = (uint8_t)w;
        uint32_t bits = (uint32_t)(w >> 15 << 7) | code;
        if (code > 7) {
          exceptions[col] |= (uint64_t)1 << row;
          low = 0;
          bits = 0;
        }
        out[(s / 2) * 2048 + t * 16 + (s % 2) * 8 + j] = low;
        half[j / 4] |= bits << (8 * (j % 4));
      }
      glyd_store32(out + 4096 + t * 16 + s * 4, half[0] | half[1] >> 4 | half[1] << 28);
    }
  }
}

void glyd_weights_tile_tiered_scalar(uint8_t *out, uint8_t *symbols, const uint8_t *src, size_t stride,
                                     const uint8_t *base, uint64_t *exceptions) {
  for (unsigned t = 0; t < 128; t++) {
    for (unsigned v = 0; v < 4; v++) {
      uint32_t codes = 0;
      for (unsigned j = 0; j < 16; j++) {
        const unsigned row = glyd_weights_row_of(t, j);
        const unsigned col = 32 * v + 16 * (j / 8) + glyd_weights_col_of(t, j % 8);
        const uint16_t w = weight_at(src, stride, row, col);
        const unsigned place = (unsigned)glyd_weights_exponent(w) - base[row] + GLYD_WEIGHTS_BELOW;
        uint8_t sm = glyd_weights_sign_mantissa(w);
        uint8_t symbol = GLYD_WEIGHTS_SYMBOL_ZERO;
        if (place < GLYD_WEIGHTS_SPAN) {
          symbol = glyd_weights_symbols[place];
        } else if ((w & 0x7FFF) != 0) {
          exceptions[col] |= (uint64_t)1 << row;
          sm = 0;
        }
        out[v * 2048 + t * 16 + j] = sm;
        symbols[t * 64 + v * 16 + j] = symbol;
        codes |= (uint32_t)(symbol & 3) << (2 * j);
      }
      glyd_store32(out + 8192 + t * 16 + v * 4, codes);
    }
  }
}

uint64_t glyd_weights_tile_count_scalar(uint8_t *counts, const uint8_t *row, size_t cols, uint8_t base) {
  uint64_t exceptions = 0;
  for (size_t c = 0; c < cols; c += GLYD_WEIGHTS_TIERED_COLS) {
    const size_t end = cols - c < GLYD_WEIGHTS_TIERED_COLS ? cols : c + GLYD_WEIGHTS_TIERED_COLS;
    uint32_t n2 = 0;
    uint32_t n3 = 0;
    for (size_t i = c; i < end; i++) {
      const uint16_t w = glyd_load16(row + 2 * i);
      const unsigned place = (unsigned)glyd_weights_exponent(w) - base + GLYD_WEIGHTS_BELOW;
      n2 += place - 9 > 2;
      n3 += place - 7 > 5;
      exceptions += place >= GLYD_WEIGHTS_SPAN && (w & 0x7FFF) != 0;
    }
    uint8_t *at = counts + 4 * (c / GLYD_WEIGHTS_TIERED_COLS);
    glyd_store32(at, glyd_load32(at) + n2 + (n3 << 16));
  }
  return exceptions;
}

void glyd_weights_tile_escapes_scalar(uint8_t *out, size_t out_len, const uint8_t *symbols, uint8_t *codes3) {
  memset(out, 0, out_len);
  uint8_t *digits = out + GLYD_WEIGHTS_ESCAPE_HEADER;
  uint32_t n2 = 0;
  uint32_t n3 = 0;
  uint32_t first3[4];
  for (unsigned w = 0; w < 4; w++) {
    glyd_store16(out + 2 * w, (uint16_t)n2);
    first3[w] = n3;
    for (unsigned i = 0; i < 2048; i++) {
      const uint8_t s = symbols[w * 2048 + i];
      if ((s & 3) != 3) continue;
      digits[n2 / 4] = (uint8_t)(digits[n2 / 4] | (s >> 2 & 3) << (2 * (n2 % 4)));
      n2++;
      if ((s & 15) == 15) codes3[n3++] = s >> 4;
    }
  }
  const uint32_t start3 = (n2 + 1) / 2;
  for (unsigned w = 0; w < 4; w++) glyd_store16(out + 8 + 2 * w, (uint16_t)(start3 + first3[w]));
  for (uint32_t i = 0; i < n3; i++) {
    uint8_t *at = digits + (start3 + i) / 2;
    *at = (uint8_t)(*at | codes3[i] << (4 * ((start3 + i) % 2)));
  }
}
