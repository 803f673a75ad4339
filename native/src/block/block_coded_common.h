/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Constants of coded blocks (spec.md, "Coded blocks").
 */
#ifndef GLYD_BLOCK_CODED_COMMON_H
#define GLYD_BLOCK_CODED_COMMON_H

#include "common/mem.h"
#include "glyd/format.h"

#define GLYD_CODED_FLAG_LENGTHS 0x04u /* a match-length table is in the body */
#define GLYD_CODED_FLAG_LONG 0x08u    /* long-length planes are in the body */
#define GLYD_CODED_FLAG_LOW 0x10u     /* low offset bytes have a plane */
#define GLYD_CODED_FLAG_FINE 0x20u    /* fine planes, shorter matches */
#define GLYD_CODED_FLAG_NEAR 0x40u    /* offsets near those of repeat slots; fine blocks only */
#define GLYD_CODED_FLAGS \
  (GLYD_CODED_FLAG_LENGTHS | GLYD_CODED_FLAG_LONG | GLYD_CODED_FLAG_LOW | GLYD_CODED_FLAG_FINE | GLYD_CODED_FLAG_NEAR)

#define GLYD_CODED_MATCH_MIN 4
#define GLYD_CODED_SEQUENCES_MAX (GLYD_BLOCK_MAX / 4)
#define GLYD_CODED_PARSED_MAX (GLYD_BLOCK_MAX / GLYD_CODED_FINE_MATCH_MIN) /* a block of more sequences is cut */
#define GLYD_CODED_LONG 255u                                               /* lengths from here on are long lengths */
#define GLYD_CODED_LONGS_MAX (GLYD_BLOCK_MAX / GLYD_CODED_LONG)
#define GLYD_CODED_LENGTHS 15       /* entries of the match-length table */
#define GLYD_CODED_FINE_MATCH_MIN 2 /* of fine blocks: only by a match-length table */
#define GLYD_CODED_FINE_LENGTH 3    /* what codes begin with, without one */
#define GLYD_CODED_LITERALS_ESCAPE 3u
#define GLYD_CODED_OFFSET_CODES 200u /* codes from here on are corrupt */
#define GLYD_CODED_LOW_FROM 64u      /* codes from here on have 8 extra bits or more, and so a low byte */
#define GLYD_CODED_OFFSET_BIAS 7u
/* Codes of offsets near a slot: GLYD_CODED_OFFSET_CODES + NEAR_SLOT * slot + NEAR_SIGN if below it + class */
#define GLYD_CODED_NEAR_SLOT 18u
#define GLYD_CODED_NEAR_SIGN 9u
#define GLYD_CODED_NEAR_MOST 256u /* farthest */
#define GLYD_CODED_NEAR_CODES 54u
#define GLYD_CODED_NEAR_BITS(class) ((class) > 1 ? (class) - 1 : 0)
/* such an offset before its slot is known: slot + 1 above, distance + NEAR_MOST below */
#define GLYD_CODED_NEAR_SHIFT 30
#define GLYD_CODED_REPEATS 3
#define GLYD_CODED_REPEAT_START \
  { 1, 4, 8 }

/* Fine planes: most tables of each, and contexts of offset codes. */
#define GLYD_CODED_LITERAL_TABLES 8u
#define GLYD_CODED_COMMAND_TABLES 6u
#define GLYD_CODED_OFFSET_TABLES 5u
#define GLYD_CODED_OFFSET_CONTEXT(command) ((uint8_t)((command)&63))
#define GLYD_CODED_RUN_CONTEXT(command) ((uint8_t)((command)&0xFB)) /* of the first literal of a run */
enum { GLYD_CODED_FINE_LITERALS, GLYD_CODED_FINE_COMMANDS, GLYD_CODED_FINE_OFFSETS, GLYD_CODED_FINE_PLANES };

_Static_assert(GLYD_CODED_LONGS_MAX == 1028, "as spec.md says");
_Static_assert(GLYD_CODED_SEQUENCES_MAX == 65536, "as spec.md says");

/* planes, by kind: each has its own last table */
enum {
  GLYD_CODED_PLANE_LITERALS,
  GLYD_CODED_PLANE_COMMANDS,
  GLYD_CODED_PLANE_LITERAL_ESCAPES,
  GLYD_CODED_PLANE_MATCH_ESCAPES,
  GLYD_CODED_PLANE_OFFSETS,
  GLYD_CODED_PLANE_LOW,
  GLYD_CODED_PLANE_LONG, /* three: low, middle, high bytes */
  GLYD_CODED_PLANES = GLYD_CODED_PLANE_LONG + 3
};

#endif
