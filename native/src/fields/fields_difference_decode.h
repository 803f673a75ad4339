/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading the body of a difference piece.
 */
#ifndef GLYD_FIELDS_DIFFERENCE_DECODE_H
#define GLYD_FIELDS_DIFFERENCE_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "common/checksum.h"
#include "glyd/status.h"

/* Bytes of workspace (64-byte aligned) that one call needs. Nothing is carried
 * from call to call. */
size_t glyd_fields_difference_decode_workspace(void);

/* Decode what follows the place, in[0..in_len), into exactly len bytes (1 or
 * more) at out; older are the len bytes of the base. in_slack bytes after the
 * body may be read. GLYD_E_CORRUPT for anything that breaks a rule of spec.md.
 * pass (NULL: no check is wanted) is advanced block by block; out is at pass_at
 * in its data. */
glyd_status glyd_fields_difference_decode(unsigned cpu, void *workspace, uint8_t *out, size_t len, const uint8_t *older,
                                          const uint8_t *in, size_t in_len, size_t in_slack, glyd_checksum_pass *pass,
                                          size_t pass_at);

#endif
