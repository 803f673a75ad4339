/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Limits of opened segments (deflate/spec.md).
 */
#ifndef GLYD_OPENED_COMMON_H
#define GLYD_OPENED_COMMON_H

#include <stdint.h>

#include "glyd/format.h"

/* What is inside a segment of n bytes of content may have so many: a bound for memory and work. */
static inline uint64_t glyd_opened_area_max(uint64_t n) {
  const uint64_t most = n * 64 + (1u << 20);
  return n >= GLYD_OPENED_AREA_MAX || most > GLYD_OPENED_AREA_MAX ? GLYD_OPENED_AREA_MAX : most;
}

/* The most content of a segment inside. */
static inline uint64_t glyd_opened_inner_max(uint64_t n) {
  const uint64_t area = glyd_opened_area_max(n);
  return area < GLYD_OPENED_INNER_MAX ? area : GLYD_OPENED_INNER_MAX;
}

#define GLYD_OPENED_REBUILD_MEMORY ((uint64_t)8 << 20) /* of making streams anew */

#endif
