/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Describing streams: what, with their content, gives them bit for bit.
 */
#ifndef GLYD_DEFLATE_ENCODE_H
#define GLYD_DEFLATE_ENCODE_H

#include "bitstream/arith_writer.h"
#include "deflate/deflate_model.h"
#include "glyd/status.h"

typedef struct glyd_deflate_writer glyd_deflate_writer;

/* What a stream in some input is. */
typedef struct glyd_deflate_stream {
  size_t len;          /* bytes that were there to read */
  size_t stored_size;  /* whole bytes of the stream that are described */
  size_t content_size; /* what they decompress to */
  int is_cut;          /* 1: it goes on after them */
} glyd_deflate_stream;

/* Bytes of workspace of a writer, aligned to 64. */
size_t glyd_deflate_encode_workspace(void);

/* Where 12 bytes of something else interrupt a stream, as in PNG. */
typedef struct glyd_deflate_breaks {
  const uint32_t *sizes; /* bytes of the stream from one break, or its start, to the next */
  uint32_t n;
} glyd_deflate_breaks;

/* Begin a description in out[0..cap). */
glyd_deflate_writer *glyd_deflate_encode_begin(void *workspace, uint8_t *out, size_t cap);

/* Decompress the stream that begins at in, as far as whole blocks of it fit into cap and are there. 0: not one, or
 * nothing that could be described. */
int glyd_deflate_encode_read(glyd_deflate_writer *w, const uint8_t *in, size_t len, uint8_t *content, size_t cap,
                             glyd_deflate_stream *stream);

/* Describe a stream that read found, after `gap` bytes that are kept as they are.
 * breaks: NULL, or where it is interrupted. window_log: as far as known, or 15.
 * *cost: bits it took. 0: it takes more than `most` bits, or too much time; the description is as before. */
int glyd_deflate_encode_stream(glyd_deflate_writer *w, uint32_t gap, const uint8_t *in, uint8_t *content,
                               const glyd_deflate_stream *stream, const glyd_deflate_breaks *breaks,
                               unsigned window_log, uint64_t most, uint64_t *cost);

/* The end: bytes of the description, or 0 if it did not fit. */
size_t glyd_deflate_encode_end(glyd_deflate_writer *w);

#endif
