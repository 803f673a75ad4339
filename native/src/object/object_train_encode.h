/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Training dictionaries from samples.
 */
#ifndef GLYD_OBJECT_TRAIN_ENCODE_H
#define GLYD_OBJECT_TRAIN_ENCODE_H

#include "object/object_common.h"

glyd_status glyd_object_train(uint8_t *out, size_t max_size, const uint8_t *samples, const size_t *sizes, size_t n,
                              const glyd_allocator *allocator, size_t *out_len);

#endif
