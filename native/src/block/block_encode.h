/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing the payload of an LZ segment.
 */
#ifndef GLYD_BLOCK_ENCODE_H
#define GLYD_BLOCK_ENCODE_H

#include "block/block_common.h"

/* Bytes of workspace (64-byte aligned memory) that glyd_lz_encode needs for
 * segments of at most config->segment_size bytes; its contents need no
 * initialisation and carry nothing from one call to the next. */
size_t glyd_lz_encode_workspace(const glyd_lz_config *config);

/* Encode in[0..len), 1 to config->segment_size bytes, to the payload of one LZ
 * segment. GLYD_E_BUFFER when it would not fit cap. Reads only in[0..len),
 * writes only out[0..cap). */
glyd_status glyd_lz_encode(const glyd_lz_config *config, void *workspace, const uint8_t *in, size_t len, uint8_t *out,
                           size_t cap, size_t *out_len);

/* The same for in[history..history + len) of content whose first history bytes
 * the reader has: matches may reach back to them. history + len is at most
 * config->segment_size. */
glyd_status glyd_lz_encode_after(const glyd_lz_config *config, void *workspace, const uint8_t *in, size_t history,
                                 size_t len, uint8_t *out, size_t cap, size_t *out_len);

#endif
