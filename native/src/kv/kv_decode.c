/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Everything read from a page is checked against its geometry before it is
 * used as a place or a size.
 */
#include "kv/kv_decode.h"

static const uint32_t quads[GLYD_KV_QUADS] = GLYD_KV_QUAD_TABLE;

static uint32_t corrections_end(const uint8_t *in, uint32_t strip) {
  return glyd_load16(in + GLYD_KV_AT_ENDS + 2 * strip);
}

glyd_status glyd_kv_decode_info(const uint8_t *in, size_t len, glyd_kv_info *info) {
  memset(info, 0, sizeof *info);
  if (len < 2) return GLYD_E_TRUNCATED;
  if (glyd_load16(in + GLYD_KV_AT_MAGIC) != GLYD_KV_MAGIC) return GLYD_E_MAGIC;
  if (len < GLYD_KV_HEADER) return GLYD_E_TRUNCATED;
  if (in[GLYD_KV_AT_VERSION] != GLYD_KV_VERSION) return GLYD_E_VERSION;
  const int form = in[GLYD_KV_AT_FORM];
  if (form != GLYD_KV_PLAIN && form != GLYD_KV_PACKED) return GLYD_E_FEATURE;
  const uint32_t channels = glyd_load16(in + GLYD_KV_AT_CHANNELS);
  const uint32_t size = glyd_load32(in + GLYD_KV_AT_SIZE);
  const uint32_t exceptions = glyd_load32(in + GLYD_KV_AT_EXCEPTIONS);
  if (!glyd_kv_channels_check(channels) || glyd_load16(in + GLYD_KV_AT_TOKENS) != GLYD_KV_TOKENS) return GLYD_E_HEADER;
  const uint32_t strips = form == GLYD_KV_PACKED ? channels / GLYD_KV_CHANNELS_STEP : 0;
  const uint32_t header = form == GLYD_KV_PACKED ? GLYD_KV_BASES_AT(channels) : GLYD_KV_HEADER;
  uint32_t end = 0;
  if (len < header) return GLYD_E_TRUNCATED;
  for (uint32_t s = 0; s < (header - GLYD_KV_AT_ENDS) / 2; s++) {
    const uint32_t next = corrections_end(in, s);
    if (s >= strips ? next != 0 : next < end || next - end > GLYD_KV_STRIP_VALUES) return GLYD_E_HEADER;
    end = s < strips ? next : end;
  }
  const uint64_t expected =
      form == GLYD_KV_PACKED ? glyd_kv_packed_size(channels, end, exceptions) : (uint64_t)GLYD_KV_PLAIN_SIZE(channels);
  if (size != expected || size > GLYD_KV_PLAIN_SIZE(channels) || (form == GLYD_KV_PLAIN && exceptions != 0))
    return GLYD_E_HEADER;
  info->version = GLYD_KV_VERSION;
  info->form = form;
  info->channels = channels;
  info->size = size;
  info->n_exceptions = exceptions;
  info->n_corrections = end;
  return len < size ? GLYD_E_TRUNCATED : GLYD_OK;
}

/* Exponents of 64 tokens of a channel; nonzero when there is a code without a quad. */
static int decode_codes(uint8_t *exponents, const uint8_t *strip, unsigned thread, unsigned base) {
  uint8_t codes[GLYD_KV_THREAD_CODES + 4] = {0};
  unsigned bad = 0;
  memcpy(codes, strip + GLYD_KV_CODES_AT + thread * 16, 16);
  memcpy(codes + 16, strip + GLYD_KV_CODES_AT + 512 + thread * 4, 4);
  memcpy(codes + 20, strip + GLYD_KV_CODES_AT + 640 + thread * 2, 2);
  const uint32_t first = (base + GLYD_KV_ABOVE) * 0x01010101u;
  for (unsigned j = 0; j < GLYD_KV_THREAD_QUADS; j++) {
    const unsigned bit = GLYD_KV_CODE_BITS * j;
    const unsigned code = glyd_load32(codes + bit / 8) >> bit % 8 & ((1u << GLYD_KV_CODE_BITS) - 1);
    bad |= code >= GLYD_KV_QUADS;
    glyd_store32(exponents + 4 * j, first - quads[code < GLYD_KV_QUADS ? code : 0]);
  }
  return bad != 0;
}

static void join(uint16_t *restrict row, const uint8_t *restrict exponents, const uint8_t *restrict sign_mantissa) {
  for (unsigned i = 0; i < 16; i++) {
    const unsigned s = sign_mantissa[i];
    row[i] = (uint16_t)((s & 0x80) << 8 | (unsigned)exponents[i] << 7 | (s & 0x7F));
  }
}

/* A channel of a strip; 0 when it breaks a rule. */
static int decode_channel(uint16_t *row, uint8_t *exponents, const uint8_t *strip, unsigned channel, unsigned base) {
  for (unsigned half = 0; half < 2; half++) {
    const unsigned thread = 16 * half + channel;
    uint16_t *to = row + GLYD_KV_THREAD_TOKENS * half;
    if (base == 0)
      memset(exponents, 0, GLYD_KV_THREAD_TOKENS);
    else if (decode_codes(exponents, strip, thread, base))
      return 0;
    for (unsigned part = 0; part < 4; part++)
      join(to + 16 * part, exponents + 16 * part, strip + part * 512 + thread * 16);
  }
  unsigned any = 0;
  if (base == 0)
    for (unsigned t = 0; t < GLYD_KV_TOKENS; t++) any |= row[t] & 0x7FFF;
  return any == 0;
}

/* Give corrected places of a strip their exponents; 0 when a correction breaks a rule. */
static int correct(uint16_t *rows, const uint8_t *bases, const uint8_t *corrections, uint32_t n) {
  uint32_t least = 0;
  for (uint32_t i = 0; i < n; i++) {
    const unsigned x = glyd_load16(corrections + 2 * i);
    const unsigned place = x & (GLYD_KV_STRIP_VALUES - 1);
    const unsigned below = x >> GLYD_KV_PLACE_BITS;
    const unsigned base = bases[place / GLYD_KV_TOKENS];
    const unsigned exponent = below == GLYD_KV_CORRECTED_ZERO ? 0 : base + GLYD_KV_CORRECTED_ABOVE - below;
    if (place < least || base == 0 || exponent > 255 || (exponent == 0) != (below == GLYD_KV_CORRECTED_ZERO)) return 0;
    rows[place] = (uint16_t)((rows[place] & 0x807F) | exponent << 7);
    least = place + 1;
  }
  return 1;
}

/* The exceptions that are still to come, and the least place that the next may have. */
typedef struct exception_list {
  const uint8_t *places;
  uint32_t n;
  uint32_t next;
  uint32_t least;
} exception_list;

/* Put a strip's exceptions in their places, which must hold what packing leaves there. */
static int place_exceptions(uint16_t *rows, const uint8_t *bases, uint32_t strip, exception_list *list) {
  for (; list->next < list->n; list->next++) {
    const uint32_t place = glyd_load16(list->places + 2 * list->next);
    if (place < list->least) return 0;
    if (place >= (strip + 1) * GLYD_KV_STRIP_VALUES) break;
    const uint32_t within = place - strip * GLYD_KV_STRIP_VALUES;
    const unsigned base = bases[within / GLYD_KV_TOKENS];
    if (base == 0 || rows[within] != (base + GLYD_KV_ABOVE - GLYD_KV_COMMONEST) << 7) return 0;
    rows[within] = glyd_load16(list->places + 2 * (list->n + list->next));
    list->least = place + 1;
  }
  return 1;
}

glyd_status glyd_kv_decode(uint8_t *out, size_t cap, size_t stride, const uint8_t *in, size_t len, void *workspace,
                           size_t workspace_len, int cpu) {
  (void)cpu; /* there is one variant */
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
  const uint8_t *strip = in + GLYD_KV_STRIPS_AT(channels);
  const uint8_t *corrections = in + GLYD_KV_CORRECTIONS_AT(channels);
  exception_list list = {corrections + 2 * (size_t)info.n_corrections, info.n_exceptions, 0, 0};
  uint32_t at = 0;
  for (uint32_t s = 0; s < channels / GLYD_KV_CHANNELS_STEP; s++, strip += GLYD_KV_STRIP) {
    const uint32_t first = s * GLYD_KV_CHANNELS_STEP;
    const uint8_t *bases = in + GLYD_KV_BASES_AT(channels) + first;
    for (unsigned c = 0; c < GLYD_KV_CHANNELS_STEP; c++) {
      if (bases[c] != 0 && (bases[c] < GLYD_KV_BASE_MIN || bases[c] > GLYD_KV_BASE_MAX)) return GLYD_E_CORRUPT;
      if (!decode_channel(scratch->rows + c * GLYD_KV_TOKENS, scratch->exponents, strip, c, bases[c]))
        return GLYD_E_CORRUPT;
    }
    const uint32_t end = corrections_end(in, s);
    if (!correct(scratch->rows, bases, corrections + 2 * (size_t)at, end - at)) return GLYD_E_CORRUPT;
    at = end;
    if (!place_exceptions(scratch->rows, bases, s, &list)) return GLYD_E_CORRUPT;
    for (unsigned t = 0; t < GLYD_KV_TOKENS; t++)
      for (unsigned c = 0; c < GLYD_KV_CHANNELS_STEP; c++)
        glyd_store16(out + 2 * (t * stride + first + c), scratch->rows[c * GLYD_KV_TOKENS + t]);
  }
  return list.next == list.n ? GLYD_OK : GLYD_E_CORRUPT;
}
