/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing the payload of a cold segment.
 */
#ifndef GLYD_COLD_ENCODE_H
#define GLYD_COLD_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/status.h"

/* Bytes of workspace, aligned to 64, for content of at most this size. */
uint64_t glyd_cold_encode_workspace(uint64_t content);

/* Encode in[0..len), 1 … 2^26 bytes, into out[0..cap). GLYD_E_BUFFER: it takes
 * more than cap. The same bytes for every cpu. */
glyd_status glyd_cold_encode(unsigned cpu, void *workspace, const uint8_t *in, size_t len, uint8_t *out, size_t cap,
                             size_t *out_len);

/* The same for in[history..history + len) of content whose first history bytes
 * the reader has. The workspace is that of history + len bytes. */
glyd_status glyd_cold_encode_after(unsigned cpu, void *workspace, const uint8_t *in, size_t history, size_t len,
                                   uint8_t *out, size_t cap, size_t *out_len);

#endif
