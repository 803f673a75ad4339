/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Which layout a chunk of a segment has, from samples of its bytes.
 */
#ifndef GLYD_FIELDS_CHOOSE_ENCODE_H
#define GLYD_FIELDS_CHOOSE_ENCODE_H

#include "fields/fields_common.h"

typedef struct glyd_fields_choice {
  int is_fields; /* 0: LZ is expected to do better */
  glyd_fields_layout layout;
  size_t phase;      /* elements start at this offset in the segment, modulo the period */
  uint32_t cost;     /* expected bits a byte, times 4096 */
  int is_difference; /* to a base: fields of numbers */
  int64_t shift;     /* of the part of the base: its place less that in the segment */
  unsigned searched; /* chunks since block formats were looked for in vain */
} glyd_fields_choice;

/* Whether content that begins so is a model: safetensors, GGUF, a zip of
 * PyTorch or NumPy, .npy, a pickle of PyTorch. At most
 * GLYD_FIELDS_SNIFF_MAX bytes are looked at. */
#define GLYD_FIELDS_SNIFF_MAX ((size_t)512)
int glyd_fields_sniff(const uint8_t *in, size_t len);

/* Where the tensors of a safetensors file that begins so start, by its own word; 0: it is none. */
uint64_t glyd_fields_safetensors_data(const uint8_t *in, size_t len);

/* What part of a segment, in 1/256, is there twice: words of 8 bytes at every
 * 64th that are elsewhere at such a place too, and differ from the words beside
 * them. So tensors that are stored twice show, which no chunk knows of. */
uint32_t glyd_fields_repeats(const uint8_t *segment, size_t len);

/* Choose for the chunk segment[at..at + len), 1 byte or more. before: the
 * choice for the chunk before it, or zeros. coded: LZ codes its literals. */
void glyd_fields_choose(const uint8_t *segment, size_t at, size_t len, int coded, const glyd_fields_choice *before,
                        glyd_fields_choice *choice);

/* Make the choice for segment[at..at + len) a difference to the base, of which
 * older has size bytes, at this shift, if that is expected to take less. Returns
 * whether it does. */
int glyd_fields_choose_difference(const uint8_t *segment, size_t at, size_t len, const uint8_t *older, uint64_t size,
                                  int64_t shift, glyd_fields_choice *choice);

#endif
