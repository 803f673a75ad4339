/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing coded byte streams (record/spec.md).
 */
#ifndef GLYD_SEGMENT_STREAM_ENCODE_H
#define GLYD_SEGMENT_STREAM_ENCODE_H

#include "block/block_encode.h"

typedef struct glyd_stream_writer {
  const glyd_lz_config *config;
  void *lz; /* workspace of glyd_lz_encode */
  uint8_t *at, *end;
  uint8_t *scratch, *scratch_end;
} glyd_stream_writer;

/* Bytes of scratch memory for streams of at most n bytes. */
uint64_t glyd_segment_stream_scratch(uint64_t n);

/* Write a stream at writer->at, which is moved on, in the form that takes
 * fewest bytes. 0: no room. */
int glyd_segment_stream_encode(glyd_stream_writer *writer, const uint8_t *in, size_t n);

#endif
