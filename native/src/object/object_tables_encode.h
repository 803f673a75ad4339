/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing a dictionary: tables from counts, and its bytes.
 */
#ifndef GLYD_OBJECT_TABLES_ENCODE_H
#define GLYD_OBJECT_TABLES_ENCODE_H

#include "object/object_encode.h"

/* Write a dictionary with this content and tables that suit the counts, which do
 * not survive, at most so many of them steps (GLYD_OBJECT_STEPS_FEW or more). out
 * has room for GLYD_DICTIONARY_FIXED_MAX + size bytes. Returns its size. */
#define GLYD_OBJECT_STEPS_FEW 64
#define GLYD_DICTIONARY_FIXED_MAX                                        \
  (GLYD_DICTIONARY_STEPS_AT + GLYD_OBJECT_STEPS_MAX * GLYD_OBJECT_STEP + \
   (GLYD_OBJECT_CONTEXTS + 1) * GLYD_DICTIONARY_TABLE + GLYD_DICTIONARY_CODES + 4)
size_t glyd_object_tables_write(uint8_t *out, const uint8_t *content, uint32_t size, glyd_object_counts *counts,
                                unsigned most_steps, unsigned effort);

#endif
