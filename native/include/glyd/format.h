/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Constants of the glyd frame, as docs/format.md defines them. Compiles as C,
 * C++ and CUDA. F: a value here only ever changes with the format version.
 */
#ifndef GLYD_FORMAT_H
#define GLYD_FORMAT_H

#define GLYD_FRAME_MAGIC 0x594C479Du     /* bytes 9D 47 4C 59, little-endian */
#define GLYD_SKIPPABLE_MAGIC 0x534C479Du /* bytes 9D 47 4C 53 */
#define GLYD_FORMAT_VERSION 1

#define GLYD_HEADER_MIN 13       /* bytes: fixed part 9 + check 4 */
#define GLYD_HEADER_FIXED_MAX 27 /* with content size (10) and an extension length (4) */
#define GLYD_EXTENSIONS_MAX (1u << 20)
#define GLYD_SEGMENT_HEADER_MAX 19 /* kind 1 + two varints of at most 5 + check 8 */
#define GLYD_TAIL_SIZE 24
#define GLYD_SKIPPABLE_HEADER_SIZE 20

#define GLYD_FLAG_CHECK_MASK 0x03u
#define GLYD_FLAG_CONTENT_SIZE 0x04u
#define GLYD_FLAG_TRAILER 0x08u
#define GLYD_FLAG_EXTENSIONS 0x10u
#define GLYD_FLAG_RESERVED 0xE0u

#define GLYD_CHECK_NONE 0
#define GLYD_CHECK_XXH3_32 1 /* low 32 bits of XXH3-64, seed 0 */
#define GLYD_CHECK_XXH3_64 2

#define GLYD_SEGMENT_LOG_MIN 10
#define GLYD_SEGMENT_LOG_MAX 30

/* segment kinds; 0 ends the segments, values from 128 on are reserved */
#define GLYD_KIND_END 0
#define GLYD_KIND_RAW 1
#define GLYD_KIND_FILL 2
#define GLYD_KIND_LZ 3
#define GLYD_KIND_RECORD 4
#define GLYD_KIND_BASE 5

/* extension records; odd ones are required */
#define GLYD_RECORD_BASE 1
#define GLYD_RECORD_DICTIONARY 3      /* id of the dictionary; the frame may have segments of kind 10 */
#define GLYD_RECORD_RECORDS 5         /* no data: the frame may have segments of kind 4 */
#define GLYD_RECORD_DICTIONARY_SIZE 4 /* bytes of its data */
#define GLYD_RECORD_BASE_MAX 26       /* bytes: id 16, size of the base as a varint */
#define GLYD_RECORD_COLD 7            /* no data: the frame may have segments of kind 7 */
#define GLYD_KIND_WEIGHTS 6
#define GLYD_KIND_COLD 7
#define GLYD_COLD_CONTENT_MAX (1u << 26) /* most content bytes of a cold segment */
#define GLYD_KIND_FILTERED 8
#define GLYD_KIND_OPENED 9
#define GLYD_KIND_DICTIONARY 10
#define GLYD_RECORD_OPENED 9                        /* no data: the frame may have segments of kind 9 */
#define GLYD_OPENED_AREA_MAX ((uint64_t)1 << 28)    /* most bytes inside an opened segment */
#define GLYD_OPENED_INNER_MAX ((uint64_t)1 << 26)   /* and of one of the segments there */
#define GLYD_OPENED_CONTENT_MAGIC "glydopnd"        /* opened content, without frame and segments */
#define GLYD_OPENED_CONTENT_MAX ((uint64_t)1 << 28) /* most bytes that are opened so */

/* piece types inside a GLYD_KIND_WEIGHTS segment */
#define GLYD_PIECE_RAW 0
#define GLYD_PIECE_LZ 1
#define GLYD_PIECE_FIELDS 2
#define GLYD_PIECE_DIFFERENCE 3

/* block types inside a GLYD_KIND_LZ segment */
#define GLYD_BLOCK_RAW 0
#define GLYD_BLOCK_FILL 1
#define GLYD_BLOCK_PLAIN 2
#define GLYD_BLOCK_CODED 3
#define GLYD_BLOCK_MAX (1u << 18) /* most content bytes of a block */

/* level ids; informational in a frame, a parameter in the API */
#define GLYD_LEVEL_UNKNOWN 0
#define GLYD_LEVEL_TURBO 1
#define GLYD_LEVEL_FAST 2
#define GLYD_LEVEL_DEFAULT 3
#define GLYD_LEVEL_MAX 4
#define GLYD_LEVEL_HIGH 5
#define GLYD_LEVEL_ULTRA 6
#define GLYD_LEVEL_COLD 7

#endif
