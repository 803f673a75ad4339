/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * From the streams of a record segment to its content.
 */
#ifndef GLYD_RECORD_DECODE_H
#define GLYD_RECORD_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/status.h"

/* n bytes and GLYD_RECORD_PAD readable ones after them. */
typedef struct glyd_record_stream {
  const uint8_t *data;
  size_t n;
  int pooled; /* beside others: only texts may be */
} glyd_record_stream;

/* Memory that is handed out once, from the front. */
typedef struct glyd_record_arena {
  uint8_t *at; /* aligned to 64 */
  uint8_t *end;
} glyd_record_arena;

/* n bytes aligned to 64; NULL when there is no room. */
void *glyd_record_arena_get(glyd_record_arena *arena, uint64_t n);

/* Rebuild exactly len bytes. GLYD_E_CORRUPT for whatever breaks a rule of
 * spec.md, the bound on memory included. Writes only out[0..len) and the arena. */
glyd_status glyd_record_decode(unsigned cpu, glyd_record_arena *arena, const glyd_record_stream *streams,
                               size_t n_streams, uint8_t *out, size_t len);

#endif
