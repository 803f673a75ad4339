/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading coded blocks (level max).
 */
#ifndef GLYD_BLOCK_CODED_DECODE_H
#define GLYD_BLOCK_CODED_DECODE_H

#include "block/block_common.h"

/* Bytes of workspace (64-byte aligned); it carries tables and repeat slots from block to block. */
size_t glyd_coded_decode_workspace(void);

/* How many of them, from the first on, are carried; a multiple of 64. The rest
 * may be used for something else between two blocks. */
size_t glyd_coded_decode_carried(void);

/* Forget what earlier blocks left in the workspace: at the start of a segment. */
void glyd_coded_decode_reset(void *workspace);

/* Decode one body of in_len bytes into len bytes at op. The segment's content
 * starts at segment, its memory ends at out_end: bytes after op + len may be
 * written up to there. in_slack bytes after the body are readable. flags: the
 * block byte without its type. */
glyd_status glyd_coded_block_decode(unsigned cpu, void *workspace, uint8_t *segment, uint8_t *op, size_t len,
                                    uint8_t *out_end, unsigned flags, const uint8_t *in, size_t in_len,
                                    size_t in_slack);

#endif
