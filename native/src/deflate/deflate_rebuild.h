/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Making streams of RFC 1951 from their content and description.
 */
#ifndef GLYD_DEFLATE_REBUILD_H
#define GLYD_DEFLATE_REBUILD_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/status.h"

#define GLYD_DEFLATE_BREAK 12u /* bytes that interrupt a stream at a break */

/* What bytes with streams in them are made of. */
typedef struct glyd_deflate_parts {
  const uint8_t *inside; /* what the streams decompress to, one after the other */
  size_t inside_size;
  const uint8_t *kept; /* the bytes between and in them that are no part of a stream */
  size_t kept_size;
  const uint8_t *description;
  size_t description_size;
} glyd_deflate_parts;

/* Bytes of workspace, aligned to 64. */
size_t glyd_deflate_rebuild_workspace(void);

/* Make out[0..out_len), exactly. */
glyd_status glyd_deflate_rebuild(void *workspace, uint64_t n_streams, const glyd_deflate_parts *parts, uint8_t *out,
                                 size_t out_len);

#endif
