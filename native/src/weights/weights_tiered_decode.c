/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Layout tiered: a tile back to rows.
 */
#include "weights/weights_tiered_decode.h"

static const int8_t kTier2[3] = GLYD_WEIGHTS_TIER2;
static const int8_t kTier3[8] = GLYD_WEIGHTS_TIER3;

/* Codes of tier 1 that are 3. */
static uint32_t count_escapes(const uint8_t *codes) {
  uint32_t n = 0;
  for (unsigned i = 0; i < 2048; i += 8) {
    const uint64_t x = glyd_load64(codes + i);
    n += (uint32_t)__builtin_popcountll(x & (x >> 1) & 0x5555555555555555u);
  }
  return n;
}

glyd_status glyd_weights_tiered_decode_tile(uint16_t *out, const uint8_t *tile, const uint8_t *escapes,
                                            uint32_t escapes_len, const uint8_t *bases) {
  const uint8_t *codes = tile + 8192;
  const uint8_t *digits = escapes + GLYD_WEIGHTS_ESCAPE_HEADER;
  const uint32_t n_digits = count_escapes(codes);
  /* escapes_len is at least one unit, the header */
  if (glyd_weights_escape_bytes(n_digits, 0) > escapes_len) return GLYD_E_CORRUPT;
  const uint32_t nibbles = (escapes_len - GLYD_WEIGHTS_ESCAPE_HEADER) * 2;
  uint32_t at2 = 0;
  uint32_t at3 = (n_digits + 1) / 2;
  for (unsigned t = 0; t < 128; t++) {
    if (t % 32 == 0 && (glyd_load16(escapes + t / 16) != at2 || glyd_load16(escapes + 8 + t / 16) != at3))
      return GLYD_E_CORRUPT;
    const unsigned row0 = glyd_weights_row_of(t, 0);
    for (unsigned v = 0; v < 4; v++) {
      const uint8_t *sm = tile + v * 2048 + t * 16;
      uint32_t word = glyd_load32(codes + t * 16 + v * 4);
      for (unsigned j = 0; j < 16; j++, word >>= 2) {
        const unsigned row = row0 + (j / 2 % 2) * 8;
        int exponent = bases[row];
        if ((word & 3) != 3) {
          if (exponent == 0 && ((word & 3) != 0 || (sm[j] & 0x7F) != 0)) return GLYD_E_CORRUPT;
          exponent += (int)(word & 3);
        } else {
          if (exponent == 0) return GLYD_E_CORRUPT;
          const unsigned digit = digits[at2 / 4] >> (2 * (at2 % 4)) & 3;
          at2++;
          if (digit != 3) {
            exponent += kTier2[digit];
          } else {
            if (at3 >= nibbles) return GLYD_E_CORRUPT;
            const unsigned code = digits[at3 / 2] >> (4 * (at3 % 2)) & 15;
            at3++;
            if (code > GLYD_WEIGHTS_TIER3_ZERO) return GLYD_E_CORRUPT;
            if (code == GLYD_WEIGHTS_TIER3_ZERO) {
              if ((sm[j] & 0x7F) != 0) return GLYD_E_CORRUPT;
              exponent = 0;
            } else {
              exponent += kTier3[code];
            }
          }
        }
        const unsigned col = 32 * v + 16 * (j / 8) + glyd_weights_col_of(t, j % 8);
        out[row * GLYD_WEIGHTS_TIERED_COLS + col] =
            (uint16_t)((sm[j] & 0x80u) << 8 | (unsigned)exponent << 7 | (sm[j] & 0x7Fu));
      }
    }
  }
  return glyd_weights_escape_bytes(n_digits, at3 - (n_digits + 1) / 2) == escapes_len ? GLYD_OK : GLYD_E_CORRUPT;
}
