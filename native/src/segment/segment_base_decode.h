/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The payload of a base segment: copies of the base, and LZ blocks of the rest.
 */
#ifndef GLYD_SEGMENT_BASE_DECODE_H
#define GLYD_SEGMENT_BASE_DECODE_H

#include "base/base_common.h"
#include "base/base_source.h"

/* Bytes of workspace (64-byte aligned) for content of len bytes. */
uint64_t glyd_segment_base_decode_workspace(uint64_t len);

/* Decode in[0..in_len) into exactly len bytes at out, which is used as memory on
 * the way. CORRUPT for anything that breaks a rule. */
glyd_status glyd_segment_base_decode(unsigned cpu, void *workspace, const glyd_base *base, uint8_t *out, size_t len,
                                     const uint8_t *in, size_t in_len);

/* What a payload says. */
typedef struct glyd_segment_base_parts {
  const glyd_base_copy *copies; /* in the workspace */
  size_t n;
  size_t rest;     /* bytes that no copy covers, one after the other */
  size_t last_gap; /* those behind the last copy */
} glyd_segment_base_parts;

/* As glyd_segment_base_decode, but copies are not carried out: out holds the rest. */
glyd_status glyd_segment_base_read(unsigned cpu, void *workspace, const glyd_base *base, uint8_t *out, size_t len,
                                   const uint8_t *in, size_t in_len, glyd_segment_base_parts *parts);

#endif
