/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading coded byte streams (record/spec.md).
 */
#ifndef GLYD_SEGMENT_STREAM_DECODE_H
#define GLYD_SEGMENT_STREAM_DECODE_H

#include "huffman/huffman_decode.h"
#include "record/record_decode.h"

typedef struct glyd_stream_reader {
  unsigned cpu;
  const uint8_t *at, *end;
  void *lz; /* workspace of glyd_lz_decode */
  glyd_huffman_table *table;
  glyd_record_arena *arena;
  const uint8_t *pool;  /* what is left of it */
  uint64_t pool_n;      /* bytes left */
  uint64_t pool_size;   /* bytes in all, */
  uint64_t pool_stored; /* and as they were stored */
} glyd_stream_reader;

/* Read what a payload begins with: the number of streams and, if there is one, the pool. */
glyd_status glyd_segment_stream_begin(glyd_stream_reader *reader, uint64_t *n_streams);

/* Read the next stream into memory of the arena. */
glyd_status glyd_segment_stream_decode(glyd_stream_reader *reader, glyd_record_stream *stream);

#endif
