/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Fingerprints of content, to find out which contents are alike: values that
 * the same bytes have wherever they stand. They are kept by those who compare
 * them, so they never change:
 *
 *   h = 2h + gear[b] (mod 2^64) for each byte b, h = 0 before the first;
 *   gear[b] = mix((b + 1) * 0x9E3779B97F4A7C15), mix being
 *     x ^= x >> 30, x *= 0xBF58476D1CE4E5B9, x ^= x >> 27,
 *     x *= 0x94D049BB133111EB, x ^= x >> 31;
 *   after a byte where the top 12 bits of h are 0, and none of the 63 bytes
 *   before gave one, mix(h) is a fingerprint.
 */
#ifndef GLYD_MATCH_SKETCH_H
#define GLYD_MATCH_SKETCH_H

#include "glyd/glyd.h"

/* Most fingerprints that len more bytes give. */
static inline size_t glyd_match_sketch_bound(size_t len) { return len / GLYD_FINGERPRINT_SPACING + 1; }

/* Fingerprints of the next len bytes; their number. out has room for the bound. */
size_t glyd_match_sketch(glyd_fingerprint_state *state, const uint8_t *data, size_t len, uint64_t *out);

#endif
