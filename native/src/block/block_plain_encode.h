/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Encoder of segments of plain blocks: levels turbo, fast and default.
 */
#ifndef GLYD_BLOCK_PLAIN_ENCODE_H
#define GLYD_BLOCK_PLAIN_ENCODE_H

#include "block/block_common.h"

/* Bytes of workspace for segments of up to config->segment_size bytes. */
size_t glyd_plain_encode_workspace(const glyd_lz_config *config);

/* Encode a whole segment as raw, fill and plain blocks, as glyd_lz_encode_after. The workspace (64-byte
 * aligned) needs no initialisation. GLYD_E_BUFFER when the payload does not fit
 * cap. Reads only in[0..history + len), writes only out[0..cap). */
glyd_status glyd_plain_segment_encode(const glyd_lz_config *config, void *workspace, const uint8_t *in, size_t history,
                                      size_t len, uint8_t *out, size_t cap, size_t *out_len);

#endif
