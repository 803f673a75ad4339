/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading objects (spec.md).
 */
#ifndef GLYD_OBJECT_DECODE_H
#define GLYD_OBJECT_DECODE_H

#include "object/object_common.h"

/* expected: bytes that the header or the object needs, where TRUNCATED. */
glyd_status glyd_object_decode_header(const uint8_t *in, size_t len, glyd_object_info *info, uint64_t *expected);

/* Restore the payload of an object to out, info->content_size bytes; nothing is
 * checked against it. blocks: memory that form 2 needs, as
 * glyd_object_decode_workspace says. */
glyd_status glyd_object_decode(unsigned cpu, const glyd_object_info *info, const glyd_dictionary *dictionary,
                               void *blocks, uint8_t *out, const uint8_t *payload);

uint64_t glyd_object_decode_workspace(const glyd_object_info *info, const glyd_dictionary *dictionary);

#endif
