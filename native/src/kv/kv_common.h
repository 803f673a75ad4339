/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Geometry of pages, the order of a strip, and the memory of one thread.
 * Thread l of 32 has channel l % 16 of the strip, and of it the 64 tokens from
 * l / 16 * 64 on.
 */
#ifndef GLYD_KV_COMMON_H
#define GLYD_KV_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "common/mem.h"
#include "glyd/kv.h"
#include "glyd/kv_quads.h"

#define GLYD_KV_STRIP_VALUES (GLYD_KV_CHANNELS_STEP * GLYD_KV_TOKENS)
#define GLYD_KV_THREAD_TOKENS 64
#define GLYD_KV_THREAD_QUADS 16
#define GLYD_KV_THREAD_CODES 22 /* bytes */

_Static_assert(GLYD_KV_CHANNELS_MAX *GLYD_KV_TOKENS <= 1 << 16, "places are 16 bits");
_Static_assert(GLYD_KV_STRIP_VALUES == 1 << GLYD_KV_PLACE_BITS, "places in a strip");
_Static_assert(GLYD_KV_QUADS <= 1 << GLYD_KV_CODE_BITS, "codes");
_Static_assert(GLYD_KV_CODES_AT + 32 * GLYD_KV_THREAD_CODES == GLYD_KV_STRIP, "parts of a strip");
_Static_assert(GLYD_KV_BASE_MIN + GLYD_KV_ABOVE >= GLYD_KV_DISTANCES, "coded exponents are those of normal numbers");
_Static_assert(GLYD_KV_BASE_MIN + GLYD_KV_ABOVE >= 14, "a base is weighed by 15 distances");
_Static_assert(GLYD_KV_BASE_MAX + GLYD_KV_ABOVE <= 254, "and finite ones");

typedef struct glyd_kv_scratch {
  uint16_t rows[GLYD_KV_STRIP_VALUES]; /* a strip, channel by channel */
  uint8_t exponents[GLYD_KV_TOKENS];   /* of a channel */
  uint8_t counts[256];                 /* of a channel's exponents */
  uint16_t ranks[4][GLYD_KV_COST_LIMIT + 1][GLYD_KV_DISTANCES];
  uint16_t corrections[GLYD_KV_CHANNELS_MAX * GLYD_KV_TOKENS];
  uint16_t exceptions[2 * GLYD_KV_CHANNELS_MAX * GLYD_KV_TOKENS]; /* place and value of each */
} glyd_kv_scratch;

GLYD_INLINE int glyd_kv_channels_check(uint32_t channels) {
  return channels >= GLYD_KV_CHANNELS_STEP && channels <= GLYD_KV_CHANNELS_MAX && channels % GLYD_KV_CHANNELS_STEP == 0;
}

GLYD_INLINE uint64_t glyd_kv_packed_size(uint32_t channels, uint64_t n_corrections, uint64_t n_exceptions) {
  return (GLYD_KV_CORRECTIONS_AT(channels) + 2 * n_corrections + 4 * n_exceptions + GLYD_KV_ALIGN - 1) / GLYD_KV_ALIGN *
         GLYD_KV_ALIGN;
}

size_t glyd_kv_scratch_size(void);
glyd_kv_scratch *glyd_kv_scratch_in(void *workspace, size_t len);

#endif
