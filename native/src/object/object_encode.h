/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing objects (spec.md).
 */
#ifndef GLYD_OBJECT_ENCODE_H
#define GLYD_OBJECT_ENCODE_H

#include "object/object_common.h"

#define GLYD_OBJECT_SEQUENCES_MAX (GLYD_OBJECT_COMPACT_MAX / GLYD_OBJECT_MATCH_MIN + 2)

typedef struct glyd_object_sequence {
  uint32_t literals; /* bytes before the match */
  uint32_t length;   /* of the match */
  uint32_t offset;   /* back from where the match is copied to */
  uint32_t slot;     /* of repeats; GLYD_OBJECT_REPEATS: a new offset */
} glyd_object_sequence;

struct glyd_object_encoder {
  glyd_allocator allocator;
  const glyd_dictionary *dictionary;
  unsigned cpu;
  int check_size;
  uint8_t *blocks; /* for form 2: workspace, dictionary and content */
  uint64_t blocks_size;
  uint8_t *content;        /* that of the dictionary, then of the object */
  uint16_t table[1 << 14]; /* of the object */
  glyd_object_sequence sequences[GLYD_OBJECT_SEQUENCES_MAX];
  uint8_t literals[GLYD_OBJECT_COMPACT_MAX + 64];
  uint8_t payload[8 * GLYD_OBJECT_SEQUENCES_MAX + GLYD_OBJECT_COMPACT_MAX]; /* a sequence has less than 8 bytes */
  uint8_t offsets[8 * GLYD_OBJECT_SEQUENCES_MAX];
  uint8_t half[2][3 * (GLYD_OBJECT_COMPACT_MAX / 2 + 1) + 8]; /* literals, less than 3 bytes each */
};

glyd_status glyd_object_encoder_make(glyd_object_encoder **encoder, const glyd_dictionary *dictionary, int check_size,
                                     const glyd_allocator *allocator);
void glyd_object_encoder_drop(glyd_object_encoder *encoder);
size_t glyd_object_encode_bound(size_t len);
glyd_status glyd_object_encode(glyd_object_encoder *encoder, uint8_t *out, size_t cap, const uint8_t *in, size_t len,
                               size_t *out_len);

/* What compact payloads hold: literals by the byte before; sequences by offset
 * (3: a new one), match length and literals, both 255 where they are more;
 * symbols of new offsets. */
typedef struct glyd_object_counts {
  uint32_t literals[256][256];
  uint32_t steps[GLYD_OBJECT_REPEATS + 1][256][256];
  uint32_t offsets[256];
} glyd_object_counts;

/* Add what a payload of in[0..len) would hold. */
void glyd_object_encode_count(glyd_object_encoder *encoder, const uint8_t *in, size_t len, glyd_object_counts *counts);

/* Bytes of the payload of in[0..len), 1 to GLYD_OBJECT_COMPACT_MAX, at
 * encoder->payload; 0 when that is not smaller than len. */
size_t glyd_object_encode_compact(glyd_object_encoder *encoder, const uint8_t *in, size_t len);

#endif
