/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Segments stored with a dictionary (docs/format.md): what both sides share.
 */
#ifndef GLYD_SEGMENT_DICTIONARY_COMMON_H
#define GLYD_SEGMENT_DICTIONARY_COMMON_H

#include <stdint.h>

#include "glyd/dictionary.h"

/* The content of the dictionary comes before so many bytes of a segment; what is
 * after them has enough of the segment itself to copy from. */
#define GLYD_SEGMENT_DICTIONARY_FIRST ((uint64_t)1 << 20)

/* Bytes that readers of frames with a dictionary may take for both. */
#define GLYD_SEGMENT_DICTIONARY_MEMORY (GLYD_SEGMENT_DICTIONARY_FIRST + GLYD_DICTIONARY_CONTENT_MAX)

#define GLYD_SEGMENT_DICTIONARY_BLOCKS 0
#define GLYD_SEGMENT_DICTIONARY_COLD 1 /* of at most FIRST bytes */

/* A model learns about as fast as it decodes: so many times the content that is made, at most. */
#define GLYD_SEGMENT_DICTIONARY_LEARNT_MAX 128u

static inline uint64_t glyd_segment_dictionary_first(uint64_t content) {
  return content < GLYD_SEGMENT_DICTIONARY_FIRST ? content : GLYD_SEGMENT_DICTIONARY_FIRST;
}

#endif
