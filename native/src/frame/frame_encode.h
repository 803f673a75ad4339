/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A whole frame from content in one place.
 */
#ifndef GLYD_FRAME_ENCODE_H
#define GLYD_FRAME_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/glyd.h"

/* As glyd_compress and glyd_compress_bound of glyd.h. */
glyd_status glyd_frame_encode(uint8_t *out, size_t cap, const uint8_t *in, size_t len, const glyd_params *params,
                              size_t *out_len);
uint64_t glyd_frame_encode_bound(uint64_t len, const glyd_params *params);

#endif
