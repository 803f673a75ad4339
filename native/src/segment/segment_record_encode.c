/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_record_encode.h"

#include "common/mem.h"
#include "record/record_common.h"
#include "record/record_encode.h"
#include "segment/segment_stream_encode.h"

uint64_t glyd_segment_record_encode_workspace(const glyd_lz_config *config) {
  return glyd_record_encode_memory(config->segment_size) +
         GLYD_RECORD_ALIGN(glyd_segment_stream_scratch(config->segment_size));
}

static int put_stream(void *arg, const uint8_t *data, size_t n) {
  glyd_stream_writer *const w = arg;
  if (data) return glyd_segment_stream_encode(w, data, n);
  if ((size_t)(w->end - w->at) < 10) return 0;
  w->at = glyd_put_varint(w->at, n);
  return 1;
}

int glyd_segment_record_encode(const glyd_lz_config *config, void *lz, void *workspace, const uint8_t *in, size_t len,
                               uint8_t *out, size_t cap, size_t *out_len) {
  const uint64_t memory = glyd_record_encode_memory(config->segment_size);
  uint8_t *const scratch = (uint8_t *)workspace + memory;
  glyd_stream_writer w = {config,    lz,      out,
                          out + cap, scratch, scratch + glyd_segment_stream_scratch(config->segment_size)};
  if (!glyd_record_encode(workspace, memory, in, len, put_stream, &w)) return 0;
  *out_len = (size_t)(w.at - out);
  return 1;
}
