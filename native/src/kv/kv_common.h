/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Geometry of pages, and the memory of one thread. Quads of a slab are numbered
 * in the order of their lists: groups of four blocks, pieces, blocks, halves of
 * the slab's tokens, halves of the piece.
 */
#ifndef GLYD_KV_COMMON_H
#define GLYD_KV_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "common/mem.h"
#include "glyd/kv.h"
#include "glyd/kv_quads.h"

#define GLYD_KV_PIECES 32
#define GLYD_KV_PIECE_QUADS 4 /* of a block */
#define GLYD_KV_QUADS_MAX (GLYD_KV_PIECES * GLYD_KV_PIECE_QUADS * GLYD_KV_CHANNELS_MAX / GLYD_KV_CHANNELS_STEP)

_Static_assert(GLYD_KV_CHANNELS_MAX *GLYD_KV_TOKENS <= 1 << 16, "places are 16 bits");
_Static_assert(GLYD_KV_QUADS <= 1 << GLYD_KV_CODE_BITS, "codes");
_Static_assert(GLYD_KV_BASE_MIN + GLYD_KV_ABOVE >= GLYD_KV_DISTANCES, "coded exponents are those of normal numbers");
_Static_assert(GLYD_KV_BASE_MIN + GLYD_KV_ABOVE >= 14, "a base is weighed by 15 distances");
_Static_assert(GLYD_KV_BASE_MAX + GLYD_KV_ABOVE <= 254, "and finite ones");
_Static_assert(GLYD_KV_SLAB(GLYD_KV_CHANNELS_STEP) % GLYD_KV_ALIGN == 0, "slabs and lists are aligned");

/* A quad's four values: the token, the channel of the first two, which are 8 apart; the next two are a token later. */
typedef struct glyd_kv_quad {
  uint16_t token;
  uint16_t channel;
} glyd_kv_quad;

typedef struct glyd_kv_scratch {
  uint16_t codes[GLYD_KV_QUADS_MAX];      /* of a slab: [blocks][pieces][slab's halves][piece's halves] */
  uint8_t counts[256];                    /* of a channel's exponents */
  uint16_t first[GLYD_KV_COST_LIMIT + 1]; /* code of the first quad of a cost */
  uint16_t ranks[4][GLYD_KV_COST_LIMIT + 1][GLYD_KV_DISTANCES];
  uint16_t words[GLYD_KV_SLABS][GLYD_KV_QUADS_MAX][2]; /* of quads as they are spelled; the second one 0: it has one */
  uint16_t ranked[GLYD_KV_SLABS][GLYD_KV_QUADS_MAX];   /* code among all, or more than there are */
  uint16_t column[GLYD_KV_TOKENS];                     /* of a channel */
  uint16_t exceptions[2 * GLYD_KV_CHANNELS_MAX * GLYD_KV_TOKENS]; /* place and value of each */
} glyd_kv_scratch;

GLYD_INLINE int glyd_kv_channels_check(uint32_t channels) {
  return channels >= GLYD_KV_CHANNELS_STEP && channels <= GLYD_KV_CHANNELS_MAX && channels % GLYD_KV_CHANNELS_STEP == 0;
}

GLYD_INLINE uint64_t glyd_kv_packed_size(uint32_t channels, uint64_t n_words, uint64_t n_exceptions) {
  return (GLYD_KV_LISTS_AT(channels) + 2 * n_words + 4 * n_exceptions + GLYD_KV_ALIGN - 1) / GLYD_KV_ALIGN *
         GLYD_KV_ALIGN;
}

/* Number of a quad in glyd_kv_scratch's arrays, and where it is. */
GLYD_INLINE uint32_t glyd_kv_quad_number(uint32_t block, uint32_t piece, uint32_t step, uint32_t half) {
  return (block * GLYD_KV_PIECES + piece) * GLYD_KV_PIECE_QUADS + 2 * step + half;
}
GLYD_INLINE glyd_kv_quad glyd_kv_quad_at(uint32_t slab, uint32_t block, uint32_t piece, uint32_t step, uint32_t half) {
  const uint32_t token = slab * GLYD_KV_SLAB_TOKENS + 16 * step + piece % 4 * 4 + 2 * half;
  const glyd_kv_quad quad = {(uint16_t)token, (uint16_t)(block * GLYD_KV_CHANNELS_STEP + piece / 4)};
  return quad;
}
/* Where a block has sign and mantissa of a quad. */
GLYD_INLINE size_t glyd_kv_kept_at(uint32_t block, uint32_t piece, uint32_t step, uint32_t half) {
  return GLYD_KV_BLOCK * (size_t)block + 256 * half + 8 * GLYD_KV_PLACE(piece, half) + 4 * step;
}
/* Where the base of a channel stands among all: those of two channels of a quad together. */
GLYD_INLINE uint32_t glyd_kv_base_at(uint32_t channel) { return channel / 16 * 16 + channel % 8 * 2 + channel / 8 % 2; }

size_t glyd_kv_scratch_size(void);
glyd_kv_scratch *glyd_kv_scratch_in(void *workspace, size_t len);

#endif
