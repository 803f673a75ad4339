/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_filter_encode.h"

#include "common/mem.h"
#include "filter/filter_encode.h"

#define TRIAL ((size_t)256 << 10)

uint64_t glyd_segment_filter_encode_workspace(const glyd_lz_config *config) {
  return config->level >= GLYD_LEVEL_HIGH ? (config->segment_size + 63) & ~(uint64_t)63 : 0;
}

/* Bytes that a part of the content takes. */
static glyd_status try_part(const glyd_lz_config *config, void *lz, const uint8_t *in, size_t len, uint8_t *out,
                            size_t cap, size_t *size) {
  const glyd_status status = glyd_lz_encode(config, lz, in, len, out, cap, size);
  if (status != GLYD_E_BUFFER) return status;
  *size = cap;
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
  const size_t part = len < TRIAL ? len : TRIAL, at = len - where < part ? len - part : where,
               room = part < cap ? part : cap;
  size_t without, with;
  glyd_status status = try_part(config, lz, in + at, part, out, room, &without);
  if (status == GLYD_OK) status = try_part(config, lz, changed + at, part, out, room, &with);
  if (status != GLYD_OK || with + without / 100 >= without) return status;
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
