/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * From content to the streams of a record segment.
 */
#ifndef GLYD_RECORD_ENCODE_H
#define GLYD_RECORD_ENCODE_H

#include <stddef.h>
#include <stdint.h>

/* Takes the next stream, or the number of streams first (data NULL); text: it may
 * be pooled (spec.md). 0: stop. */
typedef int (*glyd_record_sink)(void *arg, const uint8_t *data, size_t n, int text);

/* Bytes of memory, aligned to 64, for segments of at most so much content. */
uint64_t glyd_record_encode_memory(uint64_t content);

/* A way to cut content into rows: a shape, and what separates its fields. */
typedef struct glyd_record_way {
  unsigned shape;
  uint8_t separator;
} glyd_record_way;

#define GLYD_RECORD_WAYS 3u

/* Ways to cut in[0..len) into rows, the likeliest first: the first that can be taken, unless
 * *compare is set: then only their sizes tell which is best. Their number, 0: it is no table or log. */
unsigned glyd_record_ways(const uint8_t *in, size_t len, glyd_record_way *ways, int *compare);

/* Give the streams of in[0..len), cut in this way, to the sink. 0: it cannot be, it would
 * need more memory than there is on one of the sides, or the sink stopped. */
int glyd_record_encode(void *memory, uint64_t memory_len, const uint8_t *in, size_t len, glyd_record_way way,
                       glyd_record_sink sink, void *arg);

#endif
