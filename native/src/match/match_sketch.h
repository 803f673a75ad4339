/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Fingerprints of content, to find out which contents are alike: values that
 * the same bytes have wherever they stand. They are kept by those who compare
 * them, so they never change:
 *
 *   A place p with 64 bytes of content from it on is a mark (match_marks.h) of
 *   spacing 2^12 when (low * 0x9E3779B1 + high * 0x85EBCA77 + 2^31) mod 2^32 is
 *   below 2^20, low and high being its first eight bytes as two numbers of 32 bits.
 *   A mark, when none of the 63 places before it gave one, gives a fingerprint:
 *   h = 0; h = mix(h + w) (mod 2^64) for each number w of 64 bits of its 64 bytes;
 *   mix(x) being x += 0x9E3779B97F4A7C15, x ^= x >> 30, x *= 0xBF58476D1CE4E5B9,
 *   x ^= x >> 27, x *= 0x94D049BB133111EB, x ^= x >> 31.
 */
#ifndef GLYD_MATCH_SKETCH_H
#define GLYD_MATCH_SKETCH_H

#include "glyd/glyd.h"

/* Fingerprints of the next len bytes; their number. out has room for
 * len / GLYD_FINGERPRINT_SPACING + 2. */
size_t glyd_match_sketch(glyd_fingerprint_state *state, const uint8_t *data, size_t len, uint64_t *out);

#endif
