/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing coded byte streams (record/spec.md).
 */
#ifndef GLYD_SEGMENT_STREAM_ENCODE_H
#define GLYD_SEGMENT_STREAM_ENCODE_H

#include "block/block_encode.h"

/* A level above the writer's own, for a part of the bytes. */
typedef struct glyd_stream_level {
  glyd_lz_config config;
  void *lz;      /* workspace of glyd_lz_encode */
  uint64_t left; /* bytes it may still be tried on */
} glyd_stream_level;

#define GLYD_STREAM_LEVELS 2u

typedef struct glyd_stream_writer {
  const glyd_lz_config *config;
  void *lz; /* workspace of glyd_lz_encode */
  /* what takes longer: the one that takes longest first; config.level 0: none */
  glyd_stream_level better[GLYD_STREAM_LEVELS];
  int text; /* the stream in hand is text */
  uint8_t *at, *end;
  uint8_t *scratch, *scratch_end;
} glyd_stream_writer;

/* Bytes of scratch memory for streams of at most n bytes. */
uint64_t glyd_segment_stream_scratch(uint64_t n);

/* Write a stream at writer->at, which is moved on, in the form that takes
 * fewest bytes. 0: no room. */
int glyd_segment_stream_encode(glyd_stream_writer *writer, const uint8_t *in, size_t n);

/* The same of text, in which matches are common: by the better level at once, if it may have so many bytes. */
int glyd_segment_stream_encode_text(glyd_stream_writer *writer, const uint8_t *in, size_t n);

/* Write the pool, in[0..n). 0: no room, or matches gain nothing. */
int glyd_segment_stream_encode_pool(glyd_stream_writer *writer, const uint8_t *in, size_t n);

/* Write what stands for a stream of n bytes of the pool. 0: no room. */
int glyd_segment_stream_put_pooled(glyd_stream_writer *writer, size_t n);

#endif
