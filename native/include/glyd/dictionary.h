/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Dictionaries and objects: small content of one kind (messages, rows, JSON
 * documents), each stored by itself with the help of a dictionary that was
 * trained on samples of it. native/src/object/spec.md has the bytes.
 *
 * A glyd_dictionary is made once and then only read: any number of threads may
 * use it at the same time. An encoder is used by one thread at a time.
 */
#ifndef GLYD_DICTIONARY_H
#define GLYD_DICTIONARY_H

#include "glyd/glyd.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GLYD_DICTIONARY_MAGIC 0x444C479Du /* bytes 9D 47 4C 44, little-endian */
#define GLYD_DICTIONARY_VERSION 3
#define GLYD_DICTIONARY_CONTENT_MAX (1u << 20)
#define GLYD_DICTIONARY_SIZE_MAX (GLYD_DICTIONARY_CONTENT_MAX + 4096u) /* bytes, all of it */
#define GLYD_DICTIONARY_SIZE_DEFAULT (112u << 10)

#define GLYD_OBJECT_MAGIC 0x4F9Du  /* bytes 9D 4F, little-endian */
#define GLYD_OBJECT_MAX (1u << 24) /* most bytes of content */
#define GLYD_OBJECT_HEADER_MAX 19

typedef struct glyd_object_encoder glyd_object_encoder;

typedef struct glyd_object_info {
  uint32_t dictionary_id;
  uint32_t header_size; /* bytes before the payload */
  uint32_t content_size;
  uint32_t payload_size;
  int form;       /* 0 raw, 1 compact, 2 blocks */
  int check_size; /* bytes of check: 0, 2 or 4 */
  uint32_t check;
} glyd_object_info;

/* ---- dictionaries ------------------------------------------------------- */

/* Read a dictionary; the bytes are copied. allocator (NULL: malloc and free) is
 * kept. Errors: MAGIC, VERSION, TRUNCATED, TRAILING, CORRUPT (id, tables), MEMORY. */
GLYD_API glyd_status glyd_dictionary_create(glyd_dictionary **dictionary, const void *in, size_t len,
                                            const glyd_allocator *allocator);
GLYD_API void glyd_dictionary_free(glyd_dictionary *dictionary); /* may be NULL */
GLYD_API uint32_t glyd_dictionary_id(const glyd_dictionary *dictionary);

/* Prepare a dictionary for writing, which reading does not need. Not to be
 * called while others use it; further calls do nothing. Errors: MEMORY. */
GLYD_API glyd_status glyd_dictionary_index(glyd_dictionary *dictionary);

/* Make a dictionary of at most max_size bytes from n samples that lie one after
 * the other at samples, sizes[i] bytes each. Any samples will do: none, empty
 * ones, a single one, noise; with little to learn from the dictionary is small.
 * The same samples give the same bytes on every machine. out has room for
 * max_size bytes, at least GLYD_DICTIONARY_SIZE_MIN. At most the first 64 MiB
 * of samples, evenly drawn from all, are looked at. Errors: PARAMETER, MEMORY. */
#define GLYD_DICTIONARY_SIZE_MIN 2048u
GLYD_API glyd_status glyd_dictionary_train(void *out, size_t max_size, const void *samples, const size_t *sizes,
                                           size_t n, const glyd_allocator *allocator, size_t *out_len);

/* ---- objects ------------------------------------------------------------ */

/* Largest object that len bytes can become; 0 when len is beyond GLYD_OBJECT_MAX. */
GLYD_API size_t glyd_object_bound(size_t len);

/* An encoder for objects with this dictionary, which must be prepared for
 * writing and outlive the encoder. check_size: 0, 2 or 4. Errors: PARAMETER,
 * STATE (not prepared), MEMORY. */
GLYD_API glyd_status glyd_object_encoder_create(glyd_object_encoder **encoder, const glyd_dictionary *dictionary,
                                                int check_size, const glyd_allocator *allocator);
GLYD_API void glyd_object_encoder_free(glyd_object_encoder *encoder); /* may be NULL */

/* Store content as an object. Errors: PARAMETER (content beyond
 * GLYD_OBJECT_MAX), BUFFER (glyd_object_bound always suffices), MEMORY. */
GLYD_API glyd_status glyd_object_compress(glyd_object_encoder *encoder, void *out, size_t cap, const void *in,
                                          size_t len, size_t *out_len);

/* Read the header of the object at in; len may go beyond it. Errors: MAGIC,
 * FEATURE, HEADER, TRUNCATED (header or payload incomplete). */
GLYD_API glyd_status glyd_object_read_header(const void *in, size_t len, glyd_object_info *info);

/* Restore the object at in; len may go beyond it. *used is where it ends.
 * dictionary NULL: only raw objects can be read. limits and error may be NULL;
 * allocator (NULL: malloc and free) is used for objects of blocks only.
 * Errors: those of the header, CORRUPT, CHECKSUM, DICT_MISSING, DICT_WRONG
 * (expected, found: ids), BUFFER, LIMIT_OUTPUT, LIMIT_MEMORY, MEMORY. */
GLYD_API glyd_status glyd_object_decompress(void *out, size_t cap, const void *in, size_t len,
                                            const glyd_dictionary *dictionary, const glyd_limits *limits,
                                            const glyd_allocator *allocator, size_t *out_len, size_t *used,
                                            glyd_error *error);

#ifdef __cplusplus
}
#endif
#endif
