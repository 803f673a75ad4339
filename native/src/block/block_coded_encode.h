/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Segments of coded blocks (level max).
 */
#ifndef GLYD_BLOCK_CODED_ENCODE_H
#define GLYD_BLOCK_CODED_ENCODE_H

#include "block/block_common.h"

size_t glyd_coded_encode_workspace(const glyd_lz_config *config);

/* Whole segment: blocks with their envelopes. As glyd_lz_encode_after. */
glyd_status glyd_coded_segment_encode(const glyd_lz_config *config, void *workspace, const uint8_t *in, size_t history,
                                      size_t len, uint8_t *out, size_t cap, size_t *out_len);

#endif
