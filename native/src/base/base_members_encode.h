/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Members of tar archives, known by their names: a hint for writers, wherever
 * a member has moved.
 */
#ifndef GLYD_BASE_MEMBERS_ENCODE_H
#define GLYD_BASE_MEMBERS_ENCODE_H

#include "common/mem.h"

#define GLYD_BASE_MEMBER_BLOCK 512u /* headers are such blocks, and lie at multiples of it */

/* What one member may have before its content: attributes or a long name, which
 * take two blocks, and its header. */
#define GLYD_BASE_MEMBER_HEADERS (3 * GLYD_BASE_MEMBER_BLOCK)

/* Whether block, so many bytes, looks like a header. */
GLYD_INLINE int glyd_base_is_header(const uint8_t *block) {
  return glyd_load32(block + 257) == 0x61747375u && block[261] == 'r'; /* "ustar" */
}

/* Whether a header is that of a member: they have types of digits, attributes and
 * long names have letters. */
GLYD_INLINE int glyd_base_is_member(const uint8_t *header) {
  const uint8_t type = header[156];
  return type == 0 || (type >= '0' && type <= '7');
}

/* Bytes of a member's content, in whole blocks; 0 where its header does not say it in octal digits. */
uint64_t glyd_base_member_blocks(const uint8_t *header);

/* The path of a member less its first part, which names the version where whole
 * trees are released. Of long paths the end. */
#define GLYD_BASE_MEMBER_PATH 256u
typedef struct glyd_base_member {
  uint64_t hash;
  size_t size;
  uint8_t path[GLYD_BASE_MEMBER_PATH + 8]; /* zeros follow up to a multiple of 8 */
} glyd_base_member;

/* Read what starts with a header: GLYD_BASE_MEMBER_HEADERS bytes at blocks are
 * there. Returns where the header of the member is, from blocks on, or -1: this
 * is no member. */
int glyd_base_member_read(const uint8_t *blocks, glyd_base_member *member);

#endif
