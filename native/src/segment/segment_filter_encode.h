/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing the payload of a filtered segment.
 */
#ifndef GLYD_SEGMENT_FILTER_ENCODE_H
#define GLYD_SEGMENT_FILTER_ENCODE_H

#include "block/block_encode.h"

/* Bytes of workspace beside that of glyd_lz_encode, for segments of at most config->segment_size. */
uint64_t glyd_segment_filter_encode_workspace(const glyd_lz_config *config);

/* Encode in[0..len) into out[0..cap), if a filter pays; *out_len 0: none does. lz: workspace of glyd_lz_encode. */
glyd_status glyd_segment_filter_encode(const glyd_lz_config *config, void *lz, void *workspace, const uint8_t *in,
                                       size_t len, uint8_t *out, size_t cap, size_t *out_len);

#endif
