/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Everything read from a page is checked against its geometry before it is
 * used as a place or a size.
 */
#include "kv/kv_decode.h"

#include "common/cpu.h"
#include "weights/weights_tiered_decode.h"

static uint32_t escapes_end(const uint8_t *in, uint32_t group) {
  return glyd_load16(in + GLYD_KV_AT_ESCAPES + 2 * group) * (uint32_t)GLYD_WEIGHTS_ESCAPE_UNIT;
}

glyd_status glyd_kv_decode_info(const uint8_t *in, size_t len, glyd_kv_info *info) {
  memset(info, 0, sizeof *info);
  if (len < 2) return GLYD_E_TRUNCATED;
  if (glyd_load16(in + GLYD_KV_AT_MAGIC) != GLYD_KV_MAGIC) return GLYD_E_MAGIC;
  if (len < GLYD_KV_HEADER) return GLYD_E_TRUNCATED;
  if (in[GLYD_KV_AT_VERSION] != GLYD_KV_VERSION) return GLYD_E_VERSION;
  const int form = in[GLYD_KV_AT_FORM];
  if (form != GLYD_KV_PLAIN && form != GLYD_KV_TIERED) return GLYD_E_FEATURE;
  const uint32_t channels = glyd_load16(in + GLYD_KV_AT_CHANNELS);
  const uint32_t size = glyd_load32(in + GLYD_KV_AT_SIZE);
  const uint32_t exceptions = glyd_load32(in + GLYD_KV_AT_EXCEPTIONS);
  if (!glyd_kv_channels_check(channels) || glyd_load16(in + GLYD_KV_AT_TOKENS) != GLYD_KV_TOKENS) return GLYD_E_HEADER;
  const uint32_t groups = form == GLYD_KV_TIERED ? glyd_kv_groups(channels) : 0;
  uint32_t end = 0;
  for (uint32_t g = 0; g < GLYD_KV_GROUPS_MAX; g++) {
    const uint32_t next = escapes_end(in, g);
    if (g >= groups ? next != 0 : next < end + GLYD_WEIGHTS_ESCAPE_HEADER || next - end > GLYD_WEIGHTS_ESCAPE_TILE_MAX)
      return GLYD_E_HEADER;
    end = g < groups ? next : end;
  }
  const uint64_t expected =
      form == GLYD_KV_TIERED ? glyd_kv_packed_size(channels, end, exceptions) : (uint64_t)GLYD_KV_PLAIN_SIZE(channels);
  if (size != expected || size > GLYD_KV_PLAIN_SIZE(channels) || (form == GLYD_KV_PLAIN && exceptions != 0))
    return GLYD_E_HEADER;
  info->version = GLYD_KV_VERSION;
  info->form = form;
  info->channels = channels;
  info->size = size;
  info->n_exceptions = exceptions;
  info->escape_bytes = end;
  return len < size ? GLYD_E_TRUNCATED : GLYD_OK;
}

/* The exceptions that are still to come, and the least place that the next may have. */
typedef struct exception_list {
  const uint8_t *places;
  uint32_t n;
  uint32_t next;
  uint32_t least;
} exception_list;

/* Put a group's exceptions in their places, which must hold what packing leaves there. */
static int place_exceptions(uint16_t *rows, const uint8_t *bases, uint32_t first, uint32_t used, exception_list *list) {
  for (; list->next < list->n; list->next++) {
    const uint32_t place = glyd_load16(list->places + 2 * list->next);
    if (place < list->least) return 0;
    if (place >= (first + used) * GLYD_KV_TOKENS) break;
    uint16_t *at = rows + (place - first * GLYD_KV_TOKENS);
    if (bases[place / GLYD_KV_TOKENS - first] == 0 || *at != 0) return 0;
    *at = glyd_load16(list->places + 2 * (list->n + list->next));
    list->least = place + 1;
  }
  return 1;
}

glyd_status glyd_kv_decode(uint8_t *out, size_t cap, size_t stride, const uint8_t *in, size_t len, void *workspace,
                           size_t workspace_len, int cpu) {
  glyd_kv_info info;
  const glyd_status status = glyd_kv_decode_info(in, len, &info);
  if (status != GLYD_OK) return status;
  const uint32_t channels = info.channels;
  if (stride < channels) return GLYD_E_PARAMETER;
  glyd_kv_scratch *scratch = glyd_kv_scratch_in(workspace, workspace_len);
  if (scratch == NULL || cap / 2 < channels || (cap / 2 - channels) / stride < GLYD_KV_TOKENS - 1) return GLYD_E_BUFFER;
  if (info.form == GLYD_KV_PLAIN) {
    for (unsigned t = 0; t < GLYD_KV_TOKENS; t++)
      memcpy(out + 2 * t * stride, in + GLYD_KV_HEADER + 2 * t * channels, 2 * channels);
    return GLYD_OK;
  }
  const int avx2 = cpu == 0 && (glyd_cpu_features() & GLYD_CPU_AVX2) != 0;
  const uint8_t *strip = in + GLYD_KV_STRIPS_AT(channels);
  const uint8_t *escapes = in + GLYD_KV_ESCAPES_AT(channels);
  exception_list list = {escapes + info.escape_bytes, info.n_exceptions, 0, 0};
  uint32_t at = 0;
  for (uint32_t g = 0; g < glyd_kv_groups(channels); g++) {
    const uint32_t first = g * GLYD_KV_GROUP;
    const uint32_t used = glyd_kv_group_channels(channels, g);
    const uint32_t strips = used / GLYD_KV_CHANNELS_STEP;
    uint8_t bases[GLYD_KV_GROUP] = {0};
    memcpy(bases, in + GLYD_KV_BASES_AT + first, used);
    for (uint32_t c = 0; c < used; c++)
      if (bases[c] != 0 && (bases[c] < GLYD_WEIGHTS_TIERED_BASE_MIN || bases[c] > GLYD_WEIGHTS_TIERED_BASE_MAX))
        return GLYD_E_CORRUPT;
    for (unsigned part = 0; part < 5; part++) {
      uint8_t *to = scratch->tile + 2048 * part;
      for (uint32_t w = 0; w < strips; w++) memcpy(to + 512 * w, strip + GLYD_KV_STRIP * w + 512 * part, 512);
      memset(to + 512 * strips, 0, 2048 - 512 * strips);
    }
    strip += GLYD_KV_STRIP * strips;
    const uint32_t end = escapes_end(in, g);
    const glyd_status bad =
        glyd_weights_tiered_decode_tile(&scratch->weights, scratch->tile, escapes + at, end - at, bases, avx2);
    if (bad != GLYD_OK) return bad;
    at = end;
    uint16_t *rows = scratch->weights.tile;
    if (!place_exceptions(rows, bases, first, used, &list)) return GLYD_E_CORRUPT;
    for (uint32_t c = 0; c < used; c += 16)
      for (unsigned t = 0; t < GLYD_KV_TOKENS; t++)
        for (uint32_t i = c; i < c + 16; i++)
          glyd_store16(out + 2 * (t * stride + first + i), rows[i * GLYD_KV_TOKENS + t]);
  }
  return list.next == list.n ? GLYD_OK : GLYD_E_CORRUPT;
}
