/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_filter_encode.h"

#include "common/mem.h"
#include "filter/filter_encode.h"

#define TRIAL ((size_t)256 << 10)
/* Level high is meant to be read fast, and changing content back is a quarter of the
 * time it takes to read programs: there parts all over the content must take fewer. */
#define PARTS 8
#define PART ((size_t)32 << 10)
#define GAIN_ULTRA 100u /* one byte in so many must be saved */
#define GAIN_HIGH 28u

uint64_t glyd_segment_filter_encode_workspace(const glyd_lz_config *config) {
  return config->level >= GLYD_LEVEL_HIGH ? (config->segment_size + 63) & ~(uint64_t)63 : 0;
}

/* Add the bytes that a part of the content takes to *sum. */
static glyd_status try_part(const glyd_lz_config *config, void *lz, const uint8_t *in, size_t len, uint8_t *out,
                            size_t cap, size_t *sum) {
  size_t size;
  const size_t room = len < cap ? len : cap;
  const glyd_status status = glyd_lz_encode(config, lz, in, len, out, room, &size);
  if (status != GLYD_OK && status != GLYD_E_BUFFER) return status;
  *sum += status == GLYD_OK ? size : room;
  return GLYD_OK;
}

/* Whether the changed content, or the part from where on, takes so many fewer bytes. */
static glyd_status try_parts(const glyd_lz_config *config, void *lz, const uint8_t *in, const uint8_t *changed,
                             size_t len, size_t where, uint8_t *out, size_t cap, int *pays) {
  const int high = config->level == GLYD_LEVEL_HIGH && len >= PARTS * PART;
  const size_t part = high ? PART : len < TRIAL ? len : TRIAL, parts = high ? PARTS : 1;
  size_t without = 0, with = 0;
  for (size_t k = 0; k < parts; k++) {
    const size_t at = high ? (len - part) / (parts - 1) * k : len - where < part ? len - part : where;
    glyd_status status = try_part(config, lz, in + at, part, out, cap, &without);
    if (status == GLYD_OK) status = try_part(config, lz, changed + at, part, out, cap, &with);
    if (status != GLYD_OK) return status;
  }
  *pays = with + without / (config->level == GLYD_LEVEL_HIGH ? GAIN_HIGH : GAIN_ULTRA) < without;
  return GLYD_OK;
}

glyd_status glyd_segment_filter_encode(const glyd_lz_config *config, void *lz, void *workspace, const uint8_t *in,
                                       size_t len, uint8_t *out, size_t cap, size_t *out_len) {
  glyd_filter filter;
  size_t where;
  *out_len = 0;
  if (config->level < GLYD_LEVEL_HIGH || !glyd_filter_suggest(in, len, &filter, &where)) return GLYD_OK;
  uint8_t *const changed = workspace;
  memcpy(changed, in, len);
  glyd_filter_apply(&filter, changed, len);
  int pays;
  glyd_status status = try_parts(config, lz, in, changed, len, where, out, cap, &pays);
  if (status != GLYD_OK || !pays) return status;
  uint8_t head[GLYD_FILTER_HEAD_MAX];
  const size_t head_len = (size_t)(glyd_filter_write(&filter, head) - head);
  if (cap <= head_len) return GLYD_OK;
  size_t size;
  status = glyd_lz_encode(config, lz, changed, len, out + head_len, cap - head_len, &size);
  if (status == GLYD_E_BUFFER) return GLYD_OK;
  if (status != GLYD_OK) return status;
  memcpy(out, head, head_len);
  *out_len = head_len + size;
  return GLYD_OK;
}
