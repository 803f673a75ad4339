/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Readers of the fixed structures of a frame. Offsets in errors are relative
 * to the start of the structure; callers add where it is.
 */
#ifndef GLYD_HEADER_DECODE_H
#define GLYD_HEADER_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "common/checksum.h"
#include "glyd/glyd.h"

/* The header up to (not including) extension records and check. */
typedef struct glyd_header_prefix {
  glyd_frame_info info; /* header_size is set: all lengths are known */
  uint32_t size;        /* bytes of the prefix */
  uint32_t extensions_size;
  uint8_t flags;
  uint8_t segment_log;
  uint8_t memory_code;
} glyd_header_prefix;

/* TRUNCATED: error.expected says how many bytes are needed at least. Only
 * magic number, version and lengths are checked. For a skippable frame the
 * whole header is read and checked. */
glyd_status glyd_header_decode_prefix(const uint8_t *in, size_t len, glyd_header_prefix *prefix, glyd_error *error);

/* Extension records, in pieces. */
typedef struct glyd_extension_reader {
  uint8_t base[GLYD_RECORD_BASE_MAX]; /* data of the base record, if there is one */
  uint32_t base_size;
  uint32_t dictionary_id;
  int has_base;
  int has_dictionary;
  int has_records;
  int has_cold;
  int has_opened;
  uint64_t value; /* of the varint being read */
  uint64_t skip;  /* bytes left of the record's data */
  uint64_t type;
  uint64_t required; /* first odd type met, 0: none (type 0 is even) */
  unsigned shift;
  int in_length;
  int malformed;
} glyd_extension_reader;

void glyd_header_decode_extensions(glyd_extension_reader *reader, const uint8_t *in, size_t len);

/* The checks that come after the header's check matched: hash is XXH3-64 over
 * all header bytes before stored_check. extensions: the reader after all records.
 * What they say of the frame goes into prefix->info. */
glyd_status glyd_header_decode_finish(glyd_header_prefix *prefix, const glyd_extension_reader *extensions,
                                      uint64_t hash, uint32_t stored_check, glyd_error *error);

/* All of the above for a header in one place: glyd_read_frame_header. */
glyd_status glyd_header_decode_frame(const uint8_t *in, size_t len, glyd_frame_info *info, glyd_error *error);

glyd_status glyd_header_decode_segment(const uint8_t *in, size_t len, const glyd_frame_info *frame,
                                       glyd_segment_info *segment, glyd_error *error);

glyd_status glyd_header_decode_tail(const uint8_t *in, size_t len, glyd_tail *tail);

glyd_status glyd_header_decode_trailer(const uint8_t *in, size_t len, const glyd_frame_info *frame,
                                       glyd_index_entry *entries, uint64_t *n, glyd_error *error);

#endif
