/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Cache-line aligned memory from the caller's allocator.
 */
#ifndef GLYD_COMMON_ALLOC_H
#define GLYD_COMMON_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/glyd.h"

#define GLYD_ALLOC_ALIGN 64u
#define GLYD_ALLOC_OVERHEAD (GLYD_ALLOC_ALIGN + 8u) /* what a block costs beyond its size */

/* Both functions set, or neither. */
int glyd_alloc_valid(const glyd_allocator *allocator);

/* NULL when the allocator says so or size is beyond the address space. */
void *glyd_alloc_get(const glyd_allocator *allocator, uint64_t size);

/* Advice that memory, of which nothing was touched yet, is to be used as a whole:
 * few large pages where the system has them. Changes nothing but the time it takes. */
void glyd_alloc_use_whole(void *ptr, uint64_t size);

void glyd_alloc_put(const glyd_allocator *allocator, void *ptr); /* ptr may be NULL */

#endif
