/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Finding content of a base, wherever it has moved. The base is cut into blocks
 * of 2^k bytes, and a table says where a block with a given hash is; content is
 * looked up at each of its positions. So what both have in common is found when
 * it is about two blocks long, however far it moved, and the map costs the base
 * one hash a block.
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
#define GLYD_BASE_FIND_WORKSPACE ((size_t)128 << 10)

/* Cover in[0..len) with copies, in order and apart; returns how many. What they
 * leave, the rest, is len less the sum of their lengths. The base is mapped. */
size_t glyd_base_map_find(const glyd_base *base, void *workspace, const uint8_t *in, size_t len,
                          glyd_base_copy *copies);

#endif
