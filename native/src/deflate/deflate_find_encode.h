/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Where streams begin: in gzip and zip files, PNG images and whatever holds
 * streams of zlib.
 */
#ifndef GLYD_DEFLATE_FIND_ENCODE_H
#define GLYD_DEFLATE_FIND_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#define GLYD_FOUND_NONE 0
#define GLYD_FOUND_GZIP 1
#define GLYD_FOUND_ZIP 2
#define GLYD_FOUND_PNG 3
#define GLYD_FOUND_ZLIB 4 /* two bytes say little: the check after the stream must agree */

/* A place where a stream may begin. */
typedef struct glyd_deflate_place {
  int kind; /* GLYD_FOUND_* */
  size_t at;
  unsigned window_log;
} glyd_deflate_place;

/* The first place at or after `from`; kind NONE: there is none. */
glyd_deflate_place glyd_deflate_find(const uint8_t *in, size_t len, size_t from);

/* Gather the data of PNG chunks from the place on that find gave: into out[0..cap), with the sizes of the parts into
 * sizes[0..n_sizes), of which *n are used. */
size_t glyd_deflate_find_gather(const uint8_t *in, size_t len, size_t at, uint8_t *out, size_t cap, uint32_t *sizes,
                                uint32_t n_sizes, uint32_t *n);

/* The check at the end of a stream of zlib (RFC 1950). */
uint32_t glyd_deflate_find_check(const uint8_t *content, size_t n);

#endif
