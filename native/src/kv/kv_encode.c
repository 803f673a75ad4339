/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A page, a group of 64 channels at a time: the group becomes a tile of
 * weights, channels as rows and tokens as columns.
 */
#include "kv/kv_encode.h"

#include "common/cpu.h"
#include "weights/weights_tiered_encode.h"
#include "weights/weights_tile_encode.h"

size_t glyd_kv_encode_bound(uint32_t channels) {
  return glyd_kv_channels_check(channels) ? GLYD_KV_PLAIN_SIZE(channels) : 0;
}

static void write_header(uint8_t *out, int form, uint32_t channels, uint32_t size, uint32_t n_exceptions) {
  memset(out, 0, GLYD_KV_HEADER);
  glyd_store16(out + GLYD_KV_AT_MAGIC, GLYD_KV_MAGIC);
  out[GLYD_KV_AT_VERSION] = GLYD_KV_VERSION;
  out[GLYD_KV_AT_FORM] = (uint8_t)form;
  glyd_store16(out + GLYD_KV_AT_CHANNELS, (uint16_t)channels);
  glyd_store16(out + GLYD_KV_AT_TOKENS, GLYD_KV_TOKENS);
  glyd_store32(out + GLYD_KV_AT_SIZE, size);
  glyd_store32(out + GLYD_KV_AT_EXCEPTIONS, n_exceptions);
}

static size_t write_plain(uint8_t *out, const uint8_t *in, uint32_t channels, size_t stride) {
  const uint32_t size = GLYD_KV_PLAIN_SIZE(channels);
  write_header(out, GLYD_KV_PLAIN, channels, size, 0);
  uint8_t *to = out + GLYD_KV_HEADER;
  for (unsigned t = 0; t < GLYD_KV_TOKENS; t++, to += 2 * channels) memcpy(to, in + 2 * t * stride, 2 * channels);
  memset(to, 0, size - (size_t)(to - out));
  return size;
}

/* Columns of a group as rows; rows past the last channel are zeros. */
static void transpose(uint16_t *rows, const uint8_t *in, size_t stride, uint32_t used) {
  for (unsigned t = 0; t < GLYD_KV_TOKENS; t += 16)
    for (unsigned c = 0; c < used; c++)
      for (unsigned i = t; i < t + 16; i++) rows[c * GLYD_KV_TOKENS + i] = glyd_load16(in + 2 * (i * stride + c));
  memset(rows + used * GLYD_KV_TOKENS, 0, (GLYD_KV_GROUP - used) * GLYD_KV_TOKENS * sizeof *rows);
}

/* Base of a row, 0 when all of it is zero. */
static uint8_t base_of(const uint16_t *row, uint32_t counts[256]) {
  uint16_t any = 0;
  memset(counts, 0, 256 * sizeof *counts);
  for (unsigned t = 0; t < GLYD_KV_TOKENS; t++) {
    counts[glyd_weights_exponent(row[t])]++;
    any |= row[t] & 0x7FFF;
  }
  return any == 0 ? 0 : glyd_weights_tiered_commonest(counts);
}

/* Places and values of a group's exceptions, channel by channel, from the n-th on. */
static void note_exceptions(glyd_kv_scratch *scratch, const uint16_t *rows, uint32_t group, uint32_t n) {
  const uint64_t *at = scratch->weights.exceptions;
  uint64_t any = 0;
  for (unsigned t = 0; t < GLYD_KV_TOKENS; t++) any |= at[t];
  for (; any != 0; any &= any - 1) {
    const unsigned c = glyd_ctz64(any);
    for (unsigned t = 0; t < GLYD_KV_TOKENS; t++) {
      if ((at[t] >> c & 1) == 0) continue;
      scratch->exceptions[2 * n] = (uint16_t)((group * GLYD_KV_GROUP + c) * GLYD_KV_TOKENS + t);
      scratch->exceptions[2 * n + 1] = rows[c * GLYD_KV_TOKENS + t];
      n++;
    }
  }
}

glyd_status glyd_kv_encode(uint8_t *out, size_t cap, const uint8_t *in, uint32_t channels, size_t stride,
                           void *workspace, size_t workspace_len, int cpu, size_t *out_len) {
  *out_len = 0;
  const size_t bound = glyd_kv_encode_bound(channels);
  if (bound == 0 || stride < channels) return GLYD_E_PARAMETER;
  glyd_kv_scratch *scratch = glyd_kv_scratch_in(workspace, workspace_len);
  if (cap < bound || scratch == NULL) return GLYD_E_BUFFER;
  const int avx2 = cpu == 0 && (glyd_cpu_features() & GLYD_CPU_AVX2) != 0;
  const uint64_t limit = bound / 16 * 15;
  glyd_weights_scratch *tile = &scratch->weights;
  uint8_t *bases = out + GLYD_KV_BASES_AT;
  uint8_t *strip = out + GLYD_KV_STRIPS_AT(channels);
  uint8_t *escapes = out + GLYD_KV_ESCAPES_AT(channels);
  uint16_t ends[GLYD_KV_GROUPS_MAX] = {0};
  uint32_t escape_bytes = 0;
  uint32_t n_exceptions = 0;
  for (uint32_t g = 0; g < glyd_kv_groups(channels); g++) {
    const uint32_t used = glyd_kv_group_channels(channels, g);
    const uint32_t first = n_exceptions;
    uint8_t group_bases[GLYD_KV_GROUP] = {0};
    uint8_t counts[8] = {0}; /* digits and tier 3 codes, then room for the end that sizes writes */
    transpose(tile->tile, in + 2 * g * GLYD_KV_GROUP, stride, used);
    for (uint32_t c = 0; c < used; c++) {
      const uint16_t *row = tile->tile + c * GLYD_KV_TOKENS;
      group_bases[c] = base_of(row, tile->counts[0]);
      if (group_bases[c] != 0)
        n_exceptions +=
            (uint32_t)glyd_weights_tiered_count(counts, (const uint8_t *)row, GLYD_KV_TOKENS, group_bases[c], avx2);
    }
    glyd_weights_tiered_sizes(counts, 1);
    const uint32_t len = glyd_load32(counts + 4) * GLYD_WEIGHTS_ESCAPE_UNIT;
    if (glyd_kv_packed_size(channels, escape_bytes + len, n_exceptions) > limit) {
      *out_len = write_plain(out, in, channels, stride);
      return GLYD_OK;
    }
    memset(tile->exceptions, 0, sizeof tile->exceptions);
    glyd_weights_tiered_encode_tile(scratch->tile, escapes + escape_bytes, len, (const uint8_t *)tile->tile,
                                    GLYD_KV_TOKENS, group_bases, tile, avx2);
    escape_bytes += len;
    ends[g] = (uint16_t)(escape_bytes / GLYD_WEIGHTS_ESCAPE_UNIT);
    note_exceptions(scratch, tile->tile, g, first);
    memcpy(bases + g * GLYD_KV_GROUP, group_bases, used);
    for (uint32_t w = 0; w < used / GLYD_KV_CHANNELS_STEP; w++, strip += GLYD_KV_STRIP)
      for (unsigned part = 0; part < 5; part++) /* the fifth: codes */
        memcpy(strip + 512 * part, scratch->tile + 2048 * part + 512 * w, 512);
  }
  uint8_t *places = escapes + escape_bytes;
  for (uint32_t i = 0; i < n_exceptions; i++) {
    glyd_store16(places + 2 * i, scratch->exceptions[2 * i]);
    glyd_store16(places + 2 * (n_exceptions + i), scratch->exceptions[2 * i + 1]);
  }
  const size_t size = (size_t)glyd_kv_packed_size(channels, escape_bytes, n_exceptions);
  uint8_t *end = places + 4 * n_exceptions;
  memset(end, 0, size - (size_t)(end - out));
  write_header(out, GLYD_KV_TIERED, channels, (uint32_t)size, n_exceptions);
  for (unsigned g = 0; g < GLYD_KV_GROUPS_MAX; g++) glyd_store16(out + GLYD_KV_AT_ESCAPES + 2 * g, ends[g]);
  *out_len = size;
  return GLYD_OK;
}
