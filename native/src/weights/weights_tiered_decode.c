/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Layout tiered: a tile back to rows.
 */
#include "weights/weights_tiered_decode.h"

#include "weights/weights_tile_decode.h"

/* Codes of tier 1 that are 3. */
static uint32_t count_escapes(const uint8_t *codes) {
  uint32_t n = 0;
  for (unsigned i = 0; i < 2048; i += 8) {
    const uint64_t x = glyd_load64(codes + i);
    n += (uint32_t)__builtin_popcountll(x & (x >> 1) & 0x5555555555555555u);
  }
  return n;
}

_Static_assert(GLYD_WEIGHTS_ESCAPE_ROOM <= sizeof((glyd_weights_scratch *)0)->bytes, "room for a tile's escapes");

glyd_status glyd_weights_tiered_decode_tile(glyd_weights_scratch *scratch, const uint8_t *tile, const uint8_t *escapes,
                                            uint32_t escapes_len, const uint8_t *bases, int avx2) {
  const uint8_t *codes = tile + 8192;
  const uint32_t n_digits = count_escapes(codes);
  /* a copy with room: whatever the counts, the kernels stay inside it; a length that is wrong shows at their end */
  memcpy(scratch->bytes, escapes, escapes_len);
  memset(scratch->bytes + escapes_len, 0, GLYD_WEIGHTS_ESCAPE_ROOM - escapes_len);
  unsigned bad;
  if (avx2) {
    bad = glyd_weights_symbols_avx2(scratch->symbols, codes, scratch->bytes, escapes_len, n_digits);
    bad |= glyd_weights_rows_tiered_avx2(scratch->tile, tile, scratch->symbols, bases);
  } else {
    bad = glyd_weights_symbols_scalar(scratch->symbols, codes, scratch->bytes, escapes_len, n_digits);
    bad |= glyd_weights_rows_tiered_scalar(scratch->tile, tile, scratch->symbols, bases);
  }
  return bad ? GLYD_E_CORRUPT : GLYD_OK;
}
