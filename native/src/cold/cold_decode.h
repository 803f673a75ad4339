/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading the payload of a cold segment.
 */
#ifndef GLYD_COLD_DECODE_H
#define GLYD_COLD_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/status.h"

/* Bytes of workspace, aligned to 64, for content of at most this size. */
uint64_t glyd_cold_decode_workspace(uint64_t content);

/* Decode the payload in[0..in_len) into exactly out_len bytes. Reads only
 * in[0..in_len), writes only out[0..out_len) and the workspace of
 * glyd_cold_decode_workspace(out_len) bytes. GLYD_E_CORRUPT: no payload of
 * this many bytes. */
glyd_status glyd_cold_decode(unsigned cpu, void *workspace, uint8_t *out, size_t out_len, const uint8_t *in,
                             size_t in_len);

/* The same for content that comes after history bytes at out, which the model
 * learns first: decoded to out + history. The workspace is that of
 * history + out_len bytes. */
glyd_status glyd_cold_decode_after(unsigned cpu, void *workspace, uint8_t *out, size_t history, size_t out_len,
                                   const uint8_t *in, size_t in_len);

#endif
