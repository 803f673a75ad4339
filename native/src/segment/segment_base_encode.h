/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Segments written against a base.
 */
#ifndef GLYD_SEGMENT_BASE_ENCODE_H
#define GLYD_SEGMENT_BASE_ENCODE_H

#include "base/base_source.h"
#include "block/block_common.h"

/* Bytes of workspace (64-byte aligned) for segments of at most config->segment_size bytes. */
uint64_t glyd_segment_base_encode_workspace(const glyd_lz_config *config);

/* Encode in[0..len) to the payload of a base segment. *size 0: there is nothing
 * in common with the base. BUFFER when the payload does not fit cap, or copies
 * leave more than most_rest bytes of content. */
glyd_status glyd_segment_base_encode(const glyd_lz_config *config, void *workspace, const glyd_base *base,
                                     const uint8_t *in, size_t len, size_t most_rest, uint8_t *payload, size_t cap,
                                     size_t *size);

/* How much of in[0..len) copies of the base cover, judged by samples: 0 … WHOLE.
 * The workspace is that of glyd_segment_base_encode or of glyd_base_map_find. */
#define GLYD_SEGMENT_BASE_WHOLE 16u
unsigned glyd_segment_base_share(const glyd_lz_config *config, void *workspace, const glyd_base *base,
                                 const uint8_t *in, size_t len);

#endif
