/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Bases: older content that a frame is stored against (docs/format.md, base
 * record and base segments). A frame names its base by the XXH3-128 of all of
 * its bytes and by its size, and no reader gives content before both agree.
 * The hash guards against mistakes, not against someone who makes collisions.
 *
 * A glyd_base is made once and then only read: any number of threads, contexts
 * and calls may use it at the same time. The memory it was made from must stay
 * as it is until glyd_base_free.
 */
#ifndef GLYD_BASE_H
#define GLYD_BASE_H

#include "glyd/glyd.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GLYD_BASE_ID_SIZE 16 /* XXH3-128, seed 0, in its canonical order: what xxh128sum prints */

/* Make a base of size bytes at data (NULL when size is 0) and hash it. allocator
 * (NULL: malloc and free) is kept. is_mapped 1: data is a read-only mapping of a
 * file, whose pages are given back to the system as they have been used, so that
 * a base of any size takes little memory. Errors: PARAMETER, MEMORY. */
GLYD_API glyd_status glyd_base_create(glyd_base **base, const void *data, uint64_t size, int is_mapped,
                                      const glyd_allocator *allocator);

/* Make a base of the content of frames, len bytes at in, which is decoded as far
 * as it is asked for: frames that are stored against it are then read without
 * making all of it. is_mapped: as above. below: the base of these frames, or NULL; it and in must
 * outlive the base. Such a base is for reading alone (glyd_base_index:
 * PARAMETER) and has no id (zeros): a frame with checks takes it if its size is
 * right, and CHECKSUM says that it was another one. Segments used last are kept,
 * up to 128 MiB. Reads that go back and forth so often that all of it would have
 * been decoded eight times fail with LIMIT_OUTPUT: decode it as a whole for
 * them. Threads take turns. Errors: as glyd_decompress_base, PARAMETER: more
 * than 16 of them one below the other. */
GLYD_API glyd_status glyd_base_create_frames(glyd_base **base, const void *in, size_t len, int is_mapped,
                                             const glyd_base *below, const glyd_limits *limits,
                                             const glyd_allocator *allocator, glyd_error *error);
GLYD_API void glyd_base_free(glyd_base *base); /* base may be NULL */

/* Map the base, which writing against it needs and reading does not. The map
 * takes glyd_base_index_memory bytes. Not to be called while others use the
 * base; further calls do nothing. Errors: MEMORY. */
GLYD_API glyd_status glyd_base_index(glyd_base *base);

/* Bytes of the map of a base of this size: a 24th of it, but at most 256 MiB. */
GLYD_API uint64_t glyd_base_index_memory(uint64_t size);

GLYD_API uint64_t glyd_base_size(const glyd_base *base);
GLYD_API void glyd_base_get_id(const glyd_base *base, uint8_t id[GLYD_BASE_ID_SIZE]);

/* glyd_decompress for frames that may name a base. base may be NULL. Bases given
 * for frames that name none are not used. Errors: also BASE_MISSING,
 * BASE_WRONG (expected, found: the first 8 bytes of the ids as a big-endian
 * number), before anything of the frame is decoded. */
GLYD_API glyd_status glyd_decompress_base(void *out, size_t cap, const void *in, size_t len, const glyd_base *base,
                                          int threads, const glyd_limits *limits, const glyd_allocator *allocator,
                                          size_t *out_len, glyd_error *error);

/* The base of the frames that the context reads from now on; it must outlive
 * that use, and reset keeps it. NULL: none. */
GLYD_API void glyd_dctx_set_base(glyd_dctx *ctx, const glyd_base *base);

#ifdef __cplusplus
}
#endif
#endif
