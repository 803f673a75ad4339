/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Canonical codes (spec.md), for whoever writes them or builds tables of them.
 */
#ifndef GLYD_HUFFMAN_CODES_H
#define GLYD_HUFFMAN_CODES_H

#include "common/mem.h"

/* Codes of these lengths, 11 bits at most, bit-reversed; those of length 0 stay
 * as they are.
 *
 * Never inlined: where both arrays are seen to be one
 * object, gcc 12 for aarch64 addresses code by a multiple of where length is, and
 * then takes its stores for stores to something else (bits lost from -O1 on). */
GLYD_NOINLINE void glyd_huffman_make_codes(const uint8_t length[256], uint16_t code[256]);

#endif
