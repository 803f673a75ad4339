/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "match/match_sketch.h"

#define MARK_LOG 12 /* one place in 2^12 */
_Static_assert(GLYD_FINGERPRINT_SPACING == 64, "h forgets a byte after 64 more");

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

size_t glyd_match_sketch(glyd_fingerprint_state *state, const uint8_t *data, size_t len, uint64_t *out) {
  uint64_t gear[256]; /* 0.3 us to make: nothing beside a piece worth a sketch */
  for (uint64_t i = 0; i < 256; i++) gear[i] = mix((i + 1) * 0x9E3779B97F4A7C15u);
  uint64_t h = state->hash;
  size_t n = 0;
  size_t next = state->wait; /* bytes of this call that may not end in a mark */
  for (size_t i = 0; i < len; i++) {
    h = (h << 1) + gear[data[i]];
    if (h >> (64 - MARK_LOG) != 0 || i < next) continue;
    out[n++] = mix(h);
    next = i + GLYD_FINGERPRINT_SPACING;
  }
  state->hash = h;
  state->wait = next > len ? (uint32_t)(next - len) : 0;
  return n;
}
