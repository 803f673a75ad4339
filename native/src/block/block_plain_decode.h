/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Decoder of plain blocks.
 */
#ifndef GLYD_BLOCK_PLAIN_DECODE_H
#define GLYD_BLOCK_PLAIN_DECODE_H

#include "block/block_common.h"

/* Bytes of workspace (64-byte aligned) that one call needs. */
size_t glyd_plain_decode_workspace(void);

/* Decode the body of one plain block: len content bytes to op. seg is where the
 * segment starts in the output, out_end where writable output ends (bytes
 * between op + len and out_end may be overwritten), flags are bits 2-7 of the
 * block byte in place (not shifted), in_slack says how many bytes after the
 * body may be read. GLYD_E_CORRUPT for anything that breaks a rule. */
glyd_status glyd_plain_block_decode(unsigned cpu, void *workspace, uint8_t *seg, uint8_t *op, size_t len,
                                    uint8_t *out_end, unsigned flags, const uint8_t *in, size_t in_len,
                                    size_t in_slack);

#endif
