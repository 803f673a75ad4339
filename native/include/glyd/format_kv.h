/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Constants of packed pages of keys and values, as native/src/kv/spec.md
 * defines them. Compiles as C, C++ and CUDA. F: a value here only ever changes
 * with the version of the page.
 */
#ifndef GLYD_FORMAT_KV_H
#define GLYD_FORMAT_KV_H

#define GLYD_KV_MAGIC 0x4B9Du /* bytes 9D 4B, little-endian */
#define GLYD_KV_VERSION 2

#define GLYD_KV_PLAIN 0
#define GLYD_KV_PACKED 1

#define GLYD_KV_TOKENS 128       /* of a page */
#define GLYD_KV_CHANNELS_STEP 16 /* channels of a strip */
#define GLYD_KV_CHANNELS_MAX 512

#define GLYD_KV_HEADER 32 /* of a plain page; a packed one's goes on with where corrections end, and bases */
#define GLYD_KV_ALIGN 16  /* the size of a page is a multiple of it */

/* byte offsets in the header */
#define GLYD_KV_AT_MAGIC 0       /* u16 */
#define GLYD_KV_AT_VERSION 2     /* u8 */
#define GLYD_KV_AT_FORM 3        /* u8 */
#define GLYD_KV_AT_CHANNELS 4    /* u16 */
#define GLYD_KV_AT_TOKENS 6      /* u16, 128 */
#define GLYD_KV_AT_SIZE 8        /* u32, bytes of the page */
#define GLYD_KV_AT_EXCEPTIONS 12 /* u32 */
#define GLYD_KV_AT_ENDS 16 /* u16 [strips]: corrections up to the end of each strip; zeros to a multiple of 16 bytes */

/* a strip: sign and mantissa [4][32 threads][16 bytes]; codes of a thread's 16 quads, 11 bits each, in bytes 0 to 15,
 * 16 to 19, 20 and 21: [32][16], [32][4], [32][2] */
#define GLYD_KV_STRIP 2752
#define GLYD_KV_CODES_AT 2048
#define GLYD_KV_CODE_BITS 11

/* an exponent is base + 4 - distance, distances 0 to 10; which four may stand together says glyd/kv_quads.h */
#define GLYD_KV_ABOVE 4
#define GLYD_KV_DISTANCES 11
#define GLYD_KV_COMMONEST 3 /* the distance that costs nothing: what a quad has in place of what no code has */
/* of choosing a base: by distance, four bits each, 15 past the last */
#define GLYD_KV_WEIGHTS 0xFFFFECCA8632224Fu
#define GLYD_KV_BASE_MIN 10
#define GLYD_KV_BASE_MAX 250

/* a correction: channel of the strip * 128 + token, and in the five high bits how far the exponent is below base + 8, or
 * 31 for exponent 0 */
#define GLYD_KV_PLACE_BITS 11
#define GLYD_KV_CORRECTED_ABOVE 8
#define GLYD_KV_CORRECTED_ZERO 31

/* bytes of a page in plain form, and where the parts of a packed one begin */
#define GLYD_KV_PLAIN_SIZE(channels) ((GLYD_KV_HEADER + 2u * GLYD_KV_TOKENS * (channels) + 63u) / 64u * 64u)
#define GLYD_KV_BASES_AT(channels) (GLYD_KV_AT_ENDS + ((channels) / 8u + 15u) / 16u * 16u)
#define GLYD_KV_STRIPS_AT(channels) (GLYD_KV_BASES_AT(channels) + (channels))
#define GLYD_KV_CORRECTIONS_AT(channels) (GLYD_KV_STRIPS_AT(channels) + GLYD_KV_STRIP / 16u * (channels))

#endif
