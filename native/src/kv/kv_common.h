/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Geometry of pages, and the memory of one thread.
 */
#ifndef GLYD_KV_COMMON_H
#define GLYD_KV_COMMON_H

#include "glyd/kv.h"
#include "weights/weights_common.h"

_Static_assert(GLYD_KV_TOKENS == GLYD_WEIGHTS_TIERED_COLS && GLYD_KV_GROUP == GLYD_WEIGHTS_ROWS, "a tile is a group");
_Static_assert(GLYD_KV_STRIP * 4 == GLYD_WEIGHTS_TIERED_TILE, "four strips are a tile");
_Static_assert(GLYD_KV_GROUPS_MAX *GLYD_KV_GROUP == GLYD_KV_CHANNELS_MAX, "groups of the widest head");
_Static_assert(GLYD_KV_CHANNELS_MAX *GLYD_KV_TOKENS <= 1 << 16, "places are 16 bits");

typedef struct glyd_kv_scratch {
  glyd_weights_scratch weights;
  uint8_t tile[GLYD_WEIGHTS_TIERED_TILE];              /* a group's fixed part in the order of a tile */
  uint16_t exceptions[2 * GLYD_KV_CHANNELS_MAX * 128]; /* place and value of each */
} glyd_kv_scratch;

GLYD_INLINE int glyd_kv_channels_check(uint32_t channels) {
  return channels >= GLYD_KV_CHANNELS_STEP && channels <= GLYD_KV_CHANNELS_MAX && channels % GLYD_KV_CHANNELS_STEP == 0;
}

/* Channels of a group: 64, or what is left for the last one. */
GLYD_INLINE uint32_t glyd_kv_group_channels(uint32_t channels, uint32_t group) {
  const uint32_t left = channels - group * GLYD_KV_GROUP;
  return left < GLYD_KV_GROUP ? left : GLYD_KV_GROUP;
}
GLYD_INLINE uint32_t glyd_kv_groups(uint32_t channels) { return (channels + GLYD_KV_GROUP - 1) / GLYD_KV_GROUP; }

GLYD_INLINE uint64_t glyd_kv_packed_size(uint32_t channels, uint64_t escape_bytes, uint64_t n_exceptions) {
  return (GLYD_KV_ESCAPES_AT(channels) + escape_bytes + 4 * n_exceptions + GLYD_KV_ALIGN - 1) / GLYD_KV_ALIGN *
         GLYD_KV_ALIGN;
}

size_t glyd_kv_scratch_size(void);
glyd_kv_scratch *glyd_kv_scratch_in(void *workspace, size_t len);

#endif
