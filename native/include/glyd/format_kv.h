/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Constants of packed pages of keys and values, as native/src/kv/spec.md
 * defines them. Compiles as C, C++ and CUDA. F: a value here only ever changes
 * with the version of the page.
 */
#ifndef GLYD_FORMAT_KV_H
#define GLYD_FORMAT_KV_H

#include "glyd/format_weights.h"

#define GLYD_KV_MAGIC 0x4B9Du /* bytes 9D 4B, little-endian */
#define GLYD_KV_VERSION 1

#define GLYD_KV_PLAIN 0
#define GLYD_KV_TIERED 1

#define GLYD_KV_TOKENS 128       /* of a page: the columns of a tiered tile */
#define GLYD_KV_CHANNELS_STEP 16 /* channels are a multiple of it: a strip is what one warp holds of a tile */
#define GLYD_KV_CHANNELS_MAX 512
#define GLYD_KV_GROUP 64 /* channels of a tile */
#define GLYD_KV_GROUPS_MAX 8

#define GLYD_KV_HEADER 32
#define GLYD_KV_STRIP 2560 /* 16 channels: sign and mantissa [4][32 threads][16], codes [32][16] */
#define GLYD_KV_ALIGN 64   /* the size of a page is a multiple of it */

/* byte offsets in the header */
#define GLYD_KV_AT_MAGIC 0       /* u16 */
#define GLYD_KV_AT_VERSION 2     /* u8 */
#define GLYD_KV_AT_FORM 3        /* u8 */
#define GLYD_KV_AT_CHANNELS 4    /* u16 */
#define GLYD_KV_AT_TOKENS 6      /* u16, 128 */
#define GLYD_KV_AT_SIZE 8        /* u32, bytes of the page */
#define GLYD_KV_AT_EXCEPTIONS 12 /* u32 */
#define GLYD_KV_AT_ESCAPES 16    /* u16 [8]: end of each group's escapes, in units of 16 bytes */

/* bytes of a page in plain form, and where the parts of a packed one begin */
#define GLYD_KV_PLAIN_SIZE(channels) ((GLYD_KV_HEADER + 2u * GLYD_KV_TOKENS * (channels) + 63u) / 64u * 64u)
#define GLYD_KV_BASES_AT GLYD_KV_HEADER
#define GLYD_KV_STRIPS_AT(channels) (GLYD_KV_HEADER + (channels))
#define GLYD_KV_ESCAPES_AT(channels) (GLYD_KV_HEADER + (channels) + GLYD_KV_STRIP / 16u * (channels))

#endif
