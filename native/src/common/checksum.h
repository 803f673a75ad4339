/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * XXH3-64 and XXH3-128 with seed 0, as the public xxHash specification defines it: in one
 * call, and piece by piece for data that is never in one place.
 */
#ifndef GLYD_COMMON_CHECKSUM_H
#define GLYD_COMMON_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* cpu: GLYD_CPU_* bits. data may be NULL when len is 0. */
uint64_t glyd_checksum_xxh3(unsigned cpu, const void *data, size_t len);

typedef struct glyd_hash128 {
  uint64_t low, high;
} glyd_hash128;

/* The 128-bit form, which names bases. */
glyd_hash128 glyd_checksum_xxh3_128(unsigned cpu, const void *data, size_t len);

/* One hash over len bytes at data that are written bit by bit, each part hashed
 * while it is in the cache. data may be NULL when len is 0. */
typedef struct glyd_checksum_pass {
  uint64_t acc[8];
  const uint8_t *data;
  size_t len;
  size_t done; /* bytes hashed, whole KiBs */
  unsigned cpu;
} glyd_checksum_pass;

void glyd_checksum_pass_begin(glyd_checksum_pass *pass, unsigned cpu, const void *data, size_t len);

/* data[0..upto) is final. upto must not go back. */
void glyd_checksum_pass_advance(glyd_checksum_pass *pass, size_t upto);

/* Copy n bytes from in to out in pieces that are hashed while hot. One of the
 * two is data + at; data[0..at) is final. */
void glyd_checksum_pass_copy(glyd_checksum_pass *pass, void *out, const void *in, size_t at, size_t n);

/* The hash, once all of data is final. */
uint64_t glyd_checksum_pass_end(glyd_checksum_pass *pass);
glyd_hash128 glyd_checksum_pass_end_128(glyd_checksum_pass *pass);

#define GLYD_CHECKSUM_BUFFER 256 /* four stripes: 240 bytes must fit, and be told from more */

typedef struct glyd_checksum_state {
  uint64_t acc[8];
  uint8_t buffer[GLYD_CHECKSUM_BUFFER]; /* keeps the last stripe after it was used */
  size_t buffered;
  unsigned stripe; /* of the block of 16 */
  uint64_t total;
} glyd_checksum_state;

/* Plain C only: meant for headers and indexes, some bytes at a time. */
void glyd_checksum_init(glyd_checksum_state *state);
void glyd_checksum_update(glyd_checksum_state *state, const void *data, size_t len);
uint64_t glyd_checksum_digest(const glyd_checksum_state *state);
glyd_hash128 glyd_checksum_digest_128(const glyd_checksum_state *state);

#endif
