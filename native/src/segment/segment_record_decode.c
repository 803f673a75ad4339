/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_record_decode.h"

#include "block/block_decode.h"
#include "common/mem.h"
#include "record/record_common.h"
#include "segment/segment_stream_decode.h"

#define TABLE_SIZE GLYD_RECORD_ALIGN(sizeof(glyd_huffman_table))

uint64_t glyd_segment_record_decode_workspace(uint64_t content) {
  return GLYD_RECORD_ALIGN(glyd_lz_decode_workspace()) + TABLE_SIZE + glyd_record_decode_memory(content);
}

glyd_status glyd_segment_record_decode(unsigned cpu, void *workspace, uint8_t *out, size_t out_len, const uint8_t *in,
                                       size_t in_len) {
  uint8_t *const base = workspace;
  uint8_t *const table = base + GLYD_RECORD_ALIGN(glyd_lz_decode_workspace());
  glyd_record_arena arena = {table + TABLE_SIZE, table + TABLE_SIZE + glyd_record_decode_memory(out_len)};
  glyd_stream_reader reader = {cpu, in, in + in_len, base, (glyd_huffman_table *)(void *)table, &arena, NULL, 0, 0, 0};
  uint64_t n;
  const glyd_status begun = glyd_segment_stream_begin(&reader, &n);
  if (begun) return begun;
  glyd_record_stream *const streams = glyd_record_arena_get(&arena, n * sizeof *streams);
  if (!streams) return GLYD_E_CORRUPT;
  for (uint64_t i = 0; i < n; i++) {
    const glyd_status status = glyd_segment_stream_decode(&reader, &streams[i]);
    if (status) return status;
  }
  if (reader.at != reader.end || reader.pool_n > 0) return GLYD_E_CORRUPT;
  return glyd_record_decode(cpu, &arena, streams, (size_t)n, out, out_len);
}
