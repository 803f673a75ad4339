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
#define GLYD_KV_VERSION 3

#define GLYD_KV_PLAIN 0
#define GLYD_KV_PACKED 1

#define GLYD_KV_TOKENS 128       /* of a page */
#define GLYD_KV_SLAB_TOKENS 32   /* of a slab */
#define GLYD_KV_SLABS 4          /* of a page */
#define GLYD_KV_CHANNELS_STEP 16 /* channels of a block */
#define GLYD_KV_CHANNELS_MAX 512
#define GLYD_KV_GROUP 64 /* channels of a slab that share a list of spelled quads, or as many as are left */

#define GLYD_KV_HEADER 32 /* of a plain page; a packed one's goes on with where lists end, and bases */
#define GLYD_KV_ALIGN 16  /* the size of a page is a multiple of it */

/* byte offsets in the header */
#define GLYD_KV_AT_MAGIC 0       /* u16 */
#define GLYD_KV_AT_VERSION 2     /* u8 */
#define GLYD_KV_AT_FORM 3        /* u8 */
#define GLYD_KV_AT_CHANNELS 4    /* u16 */
#define GLYD_KV_AT_TOKENS 6      /* u16, 128 */
#define GLYD_KV_AT_SIZE 8        /* u32, bytes of the page */
#define GLYD_KV_AT_EXCEPTIONS 12 /* u16 */
#define GLYD_KV_AT_CODES 14      /* u16: codes from here on are numbers in lists */
#define GLYD_KV_AT_ENDS \
  16 /* u16 [slabs][groups]: words of lists up to the end of each; zeros to a multiple of 16 bytes */

/* Pieces: of the 32 of a block, piece l has channels l / 4 and l / 4 + 8, and tokens 4 (l % 4) to 4 (l % 4) + 3 of either
 * half of the slab, in two halves of two tokens each. Where its half h stands among those of the others: */
#define GLYD_KV_PLACE(piece, h) ((piece) ^ (piece) >> 4 << 2 ^ 6u * (h))
#define GLYD_KV_BLOCK 512 /* bytes of signs and mantissas: [2 halves][32 places][2 quads][4] */
#define GLYD_KV_CODE_BITS 11
#define GLYD_KV_HALF_BITS(channels) (22u * ((channels) / 16u))      /* codes of half a piece, in all blocks of a slab */
#define GLYD_KV_WORDS(channels) (GLYD_KV_HALF_BITS(channels) / 32u) /* of them in whole words: [2][words][32 places] */
#define GLYD_KV_REST_BITS(channels) \
  (GLYD_KV_HALF_BITS(channels) % 32u) /* and the others, of both halves: [32 pieces] */
#define GLYD_KV_REST(channels) ((2u * GLYD_KV_REST_BITS(channels) + 7u) / 8u) /* bytes */

/* an exponent is base + 4 - distance, distances 0 to 10; which four may stand together says glyd/kv_quads.h */
#define GLYD_KV_ABOVE 4
#define GLYD_KV_DISTANCES 11
#define GLYD_KV_COMMONEST 3 /* the distance that costs nothing: of exceptions, and of channels of zeros */
/* of choosing a base: by distance, four bits each, 15 past the last */
#define GLYD_KV_WEIGHTS 0xFFFFECCA8632224Fu
#define GLYD_KV_BASE_MIN 10
#define GLYD_KV_BASE_MAX 250

/* a spelled quad: four bits a value: a distance, or zero, or one that the next word has */
#define GLYD_KV_SPELLED_ZERO 14
#define GLYD_KV_SPELLED_FAR 15
#define GLYD_KV_FAR 14       /* the distance of 0 there, and on to that of 11; */
#define GLYD_KV_FAR_ABOVE 12 /* 12 to 15: -4 to -1 */
#define GLYD_KV_DISTANCE_MIN (-4)
#define GLYD_KV_DISTANCE_MAX 25
/* numbers of codes that a page may have: the first with which no list is too long */
#define GLYD_KV_CHOICES \
  { 2016, 1984, 1920, 1792 }

/* bytes of a page in plain form, of a slab, and where the parts of a packed page begin */
#define GLYD_KV_PLAIN_SIZE(channels) ((GLYD_KV_HEADER + 2u * GLYD_KV_TOKENS * (channels) + 63u) / 64u * 64u)
#define GLYD_KV_GROUPS(channels) (((channels) + GLYD_KV_GROUP - 1u) / GLYD_KV_GROUP)
#define GLYD_KV_CODES_AT(channels) (32u * (channels)) /* in a slab */
#define GLYD_KV_SLAB(channels) (32u * ((channels) + (11u * ((channels) / 16u) + 1u) / 2u))
#define GLYD_KV_BASES_AT(channels) (GLYD_KV_AT_ENDS + (8u * GLYD_KV_GROUPS(channels) + 15u) / 16u * 16u)
#define GLYD_KV_SLABS_AT(channels) (GLYD_KV_BASES_AT(channels) + (channels))
#define GLYD_KV_LISTS_AT(channels) (GLYD_KV_SLABS_AT(channels) + GLYD_KV_SLABS * GLYD_KV_SLAB(channels))

#endif
