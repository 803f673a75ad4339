/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing planes (spec.md).
 */
#ifndef GLYD_HUFFMAN_ENCODE_H
#define GLYD_HUFFMAN_ENCODE_H

#include <stddef.h>
#include <stdint.h>

/* A code; also the "last table" of a kind of plane. */
typedef struct glyd_huffman_code {
  uint16_t code[256]; /* bit-reversed */
  uint8_t length[256];
  int valid; /* 0: no table yet; set it at the start of a segment */
} glyd_huffman_code;

/* Most bytes a plane of n bytes is stored in, plus what is written past its end. */
#define GLYD_HUFFMAN_PLANE_BOUND(n) ((n) + 32)

/* Write the plane of n (at most 2^18) bytes at in; returns the end. counts says
 * how often each byte occurs, or is NULL. out has room for
 * GLYD_HUFFMAN_PLANE_BOUND(n). last is the code of the last mode-2 plane of this
 * kind, and becomes this one's if it has a table. cpu: GLYD_CPU_*; the bytes do
 * not depend on it. A plane that would gain less than 3% stays raw. */
uint8_t *glyd_huffman_encode_plane(unsigned cpu, uint8_t *out, const uint8_t *in, size_t n, const uint32_t *counts,
                                   glyd_huffman_code *last);

/* The same, for a least gain of n >> gain_shift bytes. */
uint8_t *glyd_huffman_encode_plane_above(unsigned cpu, uint8_t *out, const uint8_t *in, size_t n,
                                         const uint32_t *counts, glyd_huffman_code *last, unsigned gain_shift);

/* Code lengths, at most GLYD_HUFFMAN_BITS, for the counts (total below 2^20) of
 * at least two symbols. */
void glyd_huffman_make_lengths(const uint32_t counts[256], uint8_t length[256]);

/* The same, for code lengths of at most bits, 8 to GLYD_HUFFMAN_BITS. */
void glyd_huffman_make_lengths_within(const uint32_t counts[256], uint8_t length[256], unsigned bits);

/* log2 of v in 1/256, from a table of the upper bits: integers only, so that
 * decisions are the same everywhere. */
uint32_t glyd_huffman_log2_256(uint32_t v);

/* Bits, in 1/256, that each symbol would take in a code made for these counts. */
void glyd_huffman_price_symbols(const uint32_t counts[256], uint32_t price[256]);

/* Number of times each byte occurs. */
void glyd_huffman_count(const uint8_t *in, size_t n, uint32_t counts[256]);

#endif
