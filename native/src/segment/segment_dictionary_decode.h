/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading the payload of a segment that was stored with a dictionary.
 */
#ifndef GLYD_SEGMENT_DICTIONARY_DECODE_H
#define GLYD_SEGMENT_DICTIONARY_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/dictionary.h"

/* Bytes of workspace, aligned to 64, for a segment of so much content. */
uint64_t glyd_segment_dictionary_decode_workspace(uint64_t len, int has_cold);

/* Decode in[0..in_len) into exactly len bytes. has_cold: the frame may have cold segments. */
glyd_status glyd_segment_dictionary_decode(unsigned cpu, void *workspace, const glyd_dictionary *dictionary,
                                           int has_cold, uint8_t *out, size_t len, const uint8_t *in, size_t in_len);

#endif
