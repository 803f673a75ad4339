/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Constants of Huffman planes (spec.md).
 */
#ifndef GLYD_HUFFMAN_COMMON_H
#define GLYD_HUFFMAN_COMMON_H

#define GLYD_HUFFMAN_BITS 11 /* longest code */
#define GLYD_HUFFMAN_STREAMS 8
#define GLYD_HUFFMAN_TWO_FROM 256      /* planes of this many bytes have two streams */
#define GLYD_HUFFMAN_EIGHT_FROM 1024   /* and of this many, eight */
#define GLYD_HUFFMAN_SIZES_BYTES 14    /* seven u16 */
#define GLYD_HUFFMAN_FIRST_LENGTH 7    /* "previous length" of the first symbol */
#define GLYD_HUFFMAN_LENGTHS_BYTES 768 /* no code length table takes more: see huffman_encode.c */

enum {
  GLYD_PLANE_RAW = 0,
  GLYD_PLANE_FILL = 1,
  GLYD_PLANE_OWN = 2,
  GLYD_PLANE_LAST = 3,
  GLYD_PLANE_CONTEXTS = 4,         /* fine planes only: own tables by context */
  GLYD_PLANE_LAST_CONTEXTS = 5,    /* and the last ones */
  GLYD_PLANE_CHANGED_CONTEXTS = 6, /* the last ones, but for some tables */
  GLYD_PLANE_CHANGED = 7           /* own table, as differences from the last one */
};

#define GLYD_PLANE_BITS 2             /* of the mode in the head of a plane */
#define GLYD_PLANE_FINE_BITS 3        /* and of a fine plane */
#define GLYD_CONTEXTS_FROM 256        /* fine planes of fewer bytes have no contexts */
#define GLYD_CONTEXTS_TABLES_MAX 8    /* tables of a plane */
#define GLYD_CONTEXTS_GIVEN 64u       /* contexts, where they are not the byte before */
#define GLYD_CONTEXTS_MAX 512u        /* contexts: bytes before, then those that are given for some bytes */
#define GLYD_CONTEXTS_SOME 256u       /* the first of the latter */
#define GLYD_CONTEXTS_SOME_FLAG 0x80u /* of the number of tables: some contexts are given */
#define GLYD_CONTEXTS_LISTED(given) (((given)&3) != 0 && ((given)&4) == 0) /* such a context may be given */

/* Where the context of a byte comes from: it is the byte before, or given, or given where it is not 0. */
enum { GLYD_CONTEXTS_ARE_BEFORE, GLYD_CONTEXTS_ARE_GIVEN, GLYD_CONTEXTS_ARE_MIXED };

#endif
