/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing the body of a difference piece.
 */
#ifndef GLYD_FIELDS_DIFFERENCE_ENCODE_H
#define GLYD_FIELDS_DIFFERENCE_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/status.h"

/* Bytes of workspace (64-byte aligned) that one call needs; its contents need
 * no initialisation. */
size_t glyd_fields_difference_encode_workspace(void);

/* Encode what follows the place: numbers of period (1, 2, 4 or 8) bytes,
 * in[0..len), a multiple of it and not 0, less those at older. GLYD_E_BUFFER
 * when it would not fit cap. The bytes depend on neither cpu nor cap. */
glyd_status glyd_fields_difference_encode(unsigned cpu, void *workspace, size_t period, const uint8_t *in,
                                          const uint8_t *older, size_t len, uint8_t *out, size_t cap, size_t *out_len);

/* Differences of numbers of period bytes to older ones, zigzag: len bytes. */
void glyd_fields_difference_subtract(uint8_t *out, const uint8_t *in, const uint8_t *older, size_t len, size_t period);

/* The number of period bytes at p. */
static inline uint64_t glyd_fields_difference_number(const uint8_t *p, size_t period) {
  uint64_t v = 0;
  for (size_t j = 0; j < period; j++) v |= (uint64_t)p[j] << (8 * j);
  return v;
}

#endif
