/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing the payload of a weights segment (fields/spec.md).
 */
#ifndef GLYD_SEGMENT_WEIGHTS_ENCODE_H
#define GLYD_SEGMENT_WEIGHTS_ENCODE_H

#include "base/base_source.h"
#include "block/block_common.h"
#include "fields/fields_places_encode.h"

/* Bytes of workspace (64-byte aligned) for segments of config->segment_size. */
size_t glyd_segment_weights_encode_workspace(const glyd_lz_config *config);

/* What a segment is stored against. */
typedef struct glyd_segment_older {
  const glyd_base *base;            /* or NULL */
  int64_t shift;                    /* expected place in the base less that in the segment */
  const glyd_fields_places *places; /* of tensors, or NULL */
  uint64_t at;                      /* of the segment in the content, if places are given */
} glyd_segment_older;

/* Encode in[0..len). *out_len is 0 with GLYD_OK when no part of it gains by
 * fields: LZ is the better kind. *n_differences: bytes of content stored as
 * differences to the base. GLYD_E_BUFFER when the payload would not fit cap.
 * Reads only in[0..len), writes only out[0..cap). */
glyd_status glyd_segment_weights_encode(const glyd_lz_config *config, void *workspace, const glyd_segment_older *older,
                                        const uint8_t *in, size_t len, uint8_t *out, size_t cap, size_t *out_len,
                                        size_t *n_differences);

#endif
