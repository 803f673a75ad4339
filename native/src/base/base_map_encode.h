/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Finding content of a base, wherever it has moved. A table says where marks of
 * the base are (match/match_marks.h), by a hash of what follows them; marks of the
 * content are looked up in it. That finds what both have in common from some
 * hundred bytes on, and costs the base one hash in 128 bytes. What is near the
 * place where the base goes on is known in detail: there 32 bytes are enough.
 */
#ifndef GLYD_BASE_MAP_ENCODE_H
#define GLYD_BASE_MAP_ENCODE_H

#include "base/base_common.h"
#include "base/base_source.h"

uint64_t glyd_base_map_memory(uint64_t base_size);
glyd_status glyd_base_map_build(glyd_base *base);

/* Room that glyd_base_map_find needs for the copies of len bytes. */
#define GLYD_BASE_COPIES_MAX(len) ((len) / GLYD_BASE_COPY_MIN + 1)

/* Bytes of workspace (64-byte aligned) of glyd_base_map_find. */
#define GLYD_BASE_FIND_WORKSPACE ((size_t)160 << 10)

/* Cover in[0..len) with copies, in order and apart; returns how many. What they
 * leave, the rest, is len less the sum of their lengths. The base is mapped. */
size_t glyd_base_map_find(const glyd_base *base, unsigned cpu, void *workspace, const uint8_t *in, size_t len,
                          glyd_base_copy *copies);

#endif
