/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What the contexts of the next byte are made of.
 */
#ifndef GLYD_COLD_CONTEXT_H
#define GLYD_COLD_CONTEXT_H

#include "cold/cold_common.h"

/* The byte at pos is known: words, rows and fields move on. */
void glyd_cold_context_advance(glyd_cold_model *m, uint8_t byte);

/* Hashes of all contexts of the next byte; their lines are asked for. */
void glyd_cold_context_hash(glyd_cold_model *m);

#endif
