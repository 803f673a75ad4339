/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading the payload of a weights segment (fields/spec.md).
 */
#ifndef GLYD_SEGMENT_WEIGHTS_DECODE_H
#define GLYD_SEGMENT_WEIGHTS_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/base_source.h"
#include "common/checksum.h"
#include "glyd/status.h"

/* Bytes of workspace (64-byte aligned), a constant of at most 1 MiB - 64 KiB. */
size_t glyd_segment_weights_decode_workspace(void);

/* Decode the payload into exactly out_len bytes; GLYD_E_CORRUPT for anything
 * that breaks a rule. base: NULL, or that of the frame. pass as for
 * glyd_lz_decode. */
glyd_status glyd_segment_weights_decode(unsigned cpu, void *workspace, const glyd_base *base, uint8_t *out,
                                        size_t out_len, const uint8_t *in, size_t in_len, glyd_checksum_pass *pass);

#endif
