/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Dictionaries as both sides use them.
 */
#ifndef GLYD_OBJECT_DICTIONARY_H
#define GLYD_OBJECT_DICTIONARY_H

#include "object/object_common.h"

glyd_status glyd_object_dictionary_create(glyd_dictionary **dictionary, const uint8_t *in, size_t len,
                                          const glyd_allocator *allocator);
void glyd_object_dictionary_free(glyd_dictionary *dictionary);

#endif
