/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_record_encode.h"

#include "common/mem.h"
#include "record/record_common.h"
#include "record/record_encode.h"
#include "segment/segment_stream_encode.h"

#define SMALL ((size_t)1 << 20) /* content: there bytes count for more than the rate */

/* Where matches help, a level above the one asked for finds more of them: it
 * takes longer, but columns are few bytes. The shares, of the content, keep the
 * speed of writing (record/spec.md). */
static void better_levels(const glyd_lz_config *config, glyd_stream_level *better) {
  static const struct {
    int level;
    unsigned share;
  } rules[GLYD_STREAM_LEVELS] = {{GLYD_LEVEL_ULTRA, 512}, {GLYD_LEVEL_HIGH, 2}};
  for (unsigned i = 0; i < GLYD_STREAM_LEVELS; i++) {
    better[i] = (glyd_stream_level){.config = *config};
    better[i].config.level = 0;
    if (config->level < GLYD_LEVEL_MAX || config->level >= rules[i].level) continue;
    better[i].config.level = rules[i].level;
    const int whole = rules[i].level == GLYD_LEVEL_HIGH && config->segment_size <= SMALL;
    better[i].config.segment_size = config->segment_size / (whole ? 1 : rules[i].share);
  }
}

static uint64_t level_workspace(const glyd_stream_level *level) {
  return level->config.level == 0 ? 0 : GLYD_RECORD_ALIGN(glyd_lz_encode_workspace(&level->config));
}

uint64_t glyd_segment_record_encode_workspace(const glyd_lz_config *config) {
  glyd_stream_level better[GLYD_STREAM_LEVELS];
  better_levels(config, better);
  uint64_t size = glyd_record_encode_memory(config->segment_size) +
                  GLYD_RECORD_ALIGN(glyd_segment_stream_scratch(config->segment_size));
  for (unsigned i = 0; i < GLYD_STREAM_LEVELS; i++) size += level_workspace(&better[i]);
  return size;
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
  glyd_stream_writer w = {.config = config,
                          .lz = lz,
                          .at = out,
                          .end = out + cap,
                          .scratch = scratch,
                          .scratch_end = scratch + glyd_segment_stream_scratch(config->segment_size)};
  uint8_t *at = scratch + GLYD_RECORD_ALIGN(glyd_segment_stream_scratch(config->segment_size));
  better_levels(config, w.better);
  for (unsigned i = 0; i < GLYD_STREAM_LEVELS; i++) {
    w.better[i].lz = at;
    const glyd_lz_config *const level = &w.better[i].config;
    w.better[i].left = level->level == 0 ? 0 : len * level->segment_size / config->segment_size;
    if (level->level == GLYD_LEVEL_HIGH && len <= SMALL)
      w.better[i].left = len < level->segment_size ? len : level->segment_size;
    at += level_workspace(&w.better[i]);
  }
  if (!glyd_record_encode(workspace, memory, in, len, put_stream, &w)) return 0;
  *out_len = (size_t)(w.at - out);
  return 1;
}
