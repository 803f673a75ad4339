/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Excerpts: what the base has around the gaps of a segment, which is nearly
 * always what the new content there was made from (spec.md).
 */
#ifndef GLYD_BASE_EXCERPTS_H
#define GLYD_BASE_EXCERPTS_H

#include "base/base_common.h"
#include "base/base_source.h"

/* Lay the excerpts for n copies and last_gap bytes after them one after the
 * other at out, limit bytes at most; *size: how many. */
glyd_status glyd_base_lay_excerpts(const glyd_base *base, glyd_base_reach reach, const glyd_base_copy *copies, size_t n,
                                   size_t last_gap, size_t limit, uint8_t *out, size_t *size);

#endif
