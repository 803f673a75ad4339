/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Exported functions that write dictionaries and objects.
 */
#include "object/object_encode.h"
#include "object/object_index_encode.h"
#include "object/object_train_encode.h"

glyd_status glyd_dictionary_index(glyd_dictionary *dictionary) { return glyd_object_index_build(dictionary); }

glyd_status glyd_dictionary_train(void *out, size_t max_size, const void *samples, const size_t *sizes, size_t n,
                                  const glyd_allocator *allocator, size_t *out_len) {
  return glyd_object_train(out, max_size, samples, sizes, n, allocator, out_len);
}

size_t glyd_object_bound(size_t len) { return glyd_object_encode_bound(len); }

glyd_status glyd_object_encoder_create(glyd_object_encoder **encoder, const glyd_dictionary *dictionary, int check_size,
                                       const glyd_allocator *allocator) {
  return glyd_object_encoder_make(encoder, dictionary, check_size, allocator);
}

void glyd_object_encoder_free(glyd_object_encoder *encoder) { glyd_object_encoder_drop(encoder); }

glyd_status glyd_object_compress(glyd_object_encoder *encoder, void *out, size_t cap, const void *in, size_t len,
                                 size_t *out_len) {
  return glyd_object_encode(encoder, out, cap, in, len, out_len);
}
