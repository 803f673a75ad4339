/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Marks: places that content chooses by its own bytes, so that they are the same
 * in a base and in what was made from it, wherever that has moved.
 */
#ifndef GLYD_MATCH_MARKS_H
#define GLYD_MATCH_MARKS_H

#include "common/mem.h"

#define GLYD_MARK_BYTES 8u    /* a mark depends on so many bytes from its place on */
#define GLYD_MARKS_AT_ONCE 64 /* places that one call looks at */

/* Bit i of the answer: place p + i is a mark, one in 2^spacing_log. p[0 .. 64 +
 * GLYD_MARK_BYTES) is read. spacing_log: 1 … 31. */
uint64_t glyd_match_marks(unsigned cpu, const uint8_t *p, unsigned spacing_log);

/* The same for the first n places only (n < 64), where less can be read: p[0 ..
 * n + GLYD_MARK_BYTES - 1). */
uint64_t glyd_match_marks_first(const uint8_t *p, unsigned n, unsigned spacing_log);

/* List the marks of blocks times 64 places from p on, at most 2^16, as bytes from p, and return how many they are.
 * places has room for all places; p[0 .. 64 blocks + GLYD_MARK_BYTES) is read. */
size_t glyd_match_marks_list(unsigned cpu, const uint8_t *p, size_t blocks, unsigned spacing_log, uint16_t *places);

#endif
