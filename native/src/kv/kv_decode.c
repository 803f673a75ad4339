/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Everything read from a page is checked against its geometry before it is
 * used as a place or a size.
 */
#include "kv/kv_decode.h"

static const uint32_t quads[GLYD_KV_QUADS] = GLYD_KV_QUAD_TABLE;
static const uint16_t choices[] = GLYD_KV_CHOICES;

static uint32_t list_end(const uint8_t *in, uint32_t list) { return glyd_load16(in + GLYD_KV_AT_ENDS + 2 * list); }

static int is_choice(uint32_t n_codes) {
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
    if (choices[i] == n_codes) return 1;
  return 0;
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
  const uint32_t exceptions = glyd_load16(in + GLYD_KV_AT_EXCEPTIONS);
  const uint32_t n_codes = glyd_load16(in + GLYD_KV_AT_CODES);
  if (!glyd_kv_channels_check(channels) || glyd_load16(in + GLYD_KV_AT_TOKENS) != GLYD_KV_TOKENS) return GLYD_E_HEADER;
  if (form == GLYD_KV_PACKED ? !is_choice(n_codes) : n_codes != 0) return GLYD_E_HEADER;
  const uint32_t lists = form == GLYD_KV_PACKED ? GLYD_KV_SLABS * GLYD_KV_GROUPS(channels) : 0;
  const uint32_t header = form == GLYD_KV_PACKED ? GLYD_KV_BASES_AT(channels) : GLYD_KV_HEADER;
  uint32_t end = 0;
  if (len < header) return GLYD_E_TRUNCATED;
  for (uint32_t i = 0; i < (header - GLYD_KV_AT_ENDS) / 2; i++) {
    const uint32_t next = list_end(in, i);
    if (i >= lists ? next != 0 : next < end || next - end > (1u << GLYD_KV_CODE_BITS) - n_codes) return GLYD_E_HEADER;
    end = i < lists ? next : end;
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
  info->n_codes = n_codes;
  info->n_words = end;
  return len < size ? GLYD_E_TRUNCATED : GLYD_OK;
}

/* The codes of half a piece in all blocks of a slab. */
static void read_codes(glyd_kv_scratch *scratch, const uint8_t *slab, uint32_t channels, uint32_t piece,
                       uint32_t half) {
  const uint32_t words = GLYD_KV_WORDS(channels);
  const uint32_t rest_bits = GLYD_KV_REST_BITS(channels);
  const uint32_t rest = GLYD_KV_REST(channels);
  const uint8_t *codes = slab + GLYD_KV_CODES_AT(channels);
  uint64_t held = 0; /* bits that are not used up */
  uint32_t n_held = 0;
  uint32_t word = 0;
  for (uint32_t i = 0; i < 2 * channels / GLYD_KV_CHANNELS_STEP; i++) {
    if (n_held < GLYD_KV_CODE_BITS) {
      uint64_t next = 0;
      if (word < words) {
        next = glyd_load32(codes + 4 * ((half * words + word) * 32 + GLYD_KV_PLACE(piece, half)));
      } else {
        const uint8_t *at = codes + 4 * 32 * 2 * words + rest * piece;
        for (uint32_t k = 0; k < rest; k++) next |= (uint64_t)at[k] << 8 * k;
        next = next >> rest_bits * half & ((1ull << rest_bits) - 1);
      }
      held |= next << n_held;
      n_held += 32;
      word++;
    }
    scratch->codes[glyd_kv_quad_number(i / 2, piece, i % 2, half)] = held & ((1u << GLYD_KV_CODE_BITS) - 1);
    held >>= GLYD_KV_CODE_BITS;
    n_held -= GLYD_KV_CODE_BITS;
  }
}

/* A list of spelled quads, and the next of it. */
typedef struct word_list {
  const uint8_t *words;
  uint32_t n;
  uint32_t next;
} word_list;

/* Distances of the next quad of a list, GLYD_KV_ZERO for zero; 0 when it breaks a rule. */
#define GLYD_KV_ZERO 100
static int read_spelled(int d[4], word_list *list, uint32_t number) {
  if (number != list->next || number >= list->n) return 0;
  const unsigned word = glyd_load16(list->words + 2 * list->next++);
  unsigned far = 0;
  int is_far = 0;
  for (unsigned i = 0; i < 4; i++) is_far |= (word >> 4 * i & 15) == GLYD_KV_SPELLED_FAR;
  if (is_far) {
    if (list->next >= list->n) return 0;
    far = glyd_load16(list->words + 2 * list->next++);
  }
  for (unsigned i = 0; i < 4; i++) {
    const int x = (int)(word >> 4 * i & 15);
    const int y = (int)(far >> 4 * i & 15);
    if (x != GLYD_KV_SPELLED_FAR && y != 0) return 0;
    d[i] = x == GLYD_KV_SPELLED_ZERO ? GLYD_KV_ZERO : x;
    if (x == GLYD_KV_SPELLED_FAR) d[i] = y < GLYD_KV_FAR_ABOVE ? GLYD_KV_FAR + y : y - 16;
  }
  return 1;
}

/* A value from its parts, by its base; -1 when it breaks a rule. */
static int32_t join(unsigned kept, int d, unsigned base) {
  const unsigned sign = (kept & 0x80) << 8;
  const unsigned mantissa = kept & 0x7F;
  if (base == 0) return d == GLYD_KV_COMMONEST && mantissa == 0 ? (int32_t)sign : -1;
  if (d == GLYD_KV_ZERO) return mantissa == 0 ? (int32_t)sign : -1;
  const int exponent = (int)base + GLYD_KV_ABOVE - d;
  if (exponent < 1 || exponent > 254) return -1;
  return (int32_t)(sign | (unsigned)exponent << 7 | mantissa);
}

/* Where a page goes. */
typedef struct page_out {
  uint8_t *at;
  size_t stride;
} page_out;

/* A quad to its four places; 0 when it breaks a rule. */
static int write_quad(page_out out, const uint8_t *in, uint32_t channels, glyd_kv_quad quad, const uint8_t *kept,
                      const int d[4]) {
  for (unsigned i = 0; i < 4; i++) {
    const uint32_t channel = quad.channel + i % 2 * 8u;
    const int32_t value = join(kept[i], d[i], in[GLYD_KV_BASES_AT(channels) + glyd_kv_base_at(channel)]);
    if (value < 0) return 0;
    glyd_store16(out.at + 2 * ((quad.token + i / 2) * out.stride + channel), (uint16_t)value);
  }
  return 1;
}

/* A group of a slab; 0 when it breaks a rule. */
static int decode_group(page_out out, const uint8_t *in, const glyd_kv_info *info, const glyd_kv_scratch *scratch,
                        uint32_t slab, uint32_t group) {
  const uint8_t *data = in + GLYD_KV_SLABS_AT(info->channels) + (size_t)slab * GLYD_KV_SLAB(info->channels);
  const uint32_t number = slab * GLYD_KV_GROUPS(info->channels) + group;
  const uint32_t begin = number ? list_end(in, number - 1) : 0;
  word_list list = {in + GLYD_KV_LISTS_AT(info->channels) + 2 * (size_t)begin, list_end(in, number) - begin, 0};
  const uint32_t blocks = info->channels / GLYD_KV_CHANNELS_STEP;
  const uint32_t first = group * (GLYD_KV_GROUP / GLYD_KV_CHANNELS_STEP);
  const uint32_t last = first + 4 < blocks ? first + 4 : blocks;
  for (uint32_t piece = 0; piece < GLYD_KV_PIECES; piece++)
    for (uint32_t block = first; block < last; block++)
      for (uint32_t k = 0; k < GLYD_KV_PIECE_QUADS; k++) {
        const unsigned code = scratch->codes[glyd_kv_quad_number(block, piece, k / 2, k % 2)];
        int d[4];
        if (code < info->n_codes)
          for (unsigned i = 0; i < 4; i++) d[i] = (int)(quads[code] >> 8 * i & 0xFF);
        else if (!read_spelled(d, &list, code - info->n_codes))
          return 0;
        if (!write_quad(out, in, info->channels, glyd_kv_quad_at(slab, block, piece, k / 2, k % 2),
                        data + glyd_kv_kept_at(block, piece, k / 2, k % 2), d))
          return 0;
      }
  return list.next == list.n;
}

/* Exceptions to their places, which must hold what packing leaves there. */
static int place_exceptions(page_out out, const uint8_t *in, const glyd_kv_info *info) {
  const uint8_t *places = in + GLYD_KV_LISTS_AT(info->channels) + 2 * (size_t)info->n_words;
  uint32_t least = 0;
  for (uint32_t i = 0; i < info->n_exceptions; i++) {
    const uint32_t place = glyd_load16(places + 2 * i);
    const uint32_t channel = place / GLYD_KV_TOKENS;
    if (place < least || channel >= info->channels) return 0;
    const unsigned base = in[GLYD_KV_BASES_AT(info->channels) + glyd_kv_base_at(channel)];
    uint8_t *at = out.at + 2 * (place % GLYD_KV_TOKENS * out.stride + channel);
    if (base == 0 || glyd_load16(at) != (base + GLYD_KV_ABOVE - GLYD_KV_COMMONEST) << 7) return 0;
    glyd_store16(at, glyd_load16(places + 2 * ((size_t)info->n_exceptions + i)));
    least = place + 1;
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
  const uint8_t *bases = in + GLYD_KV_BASES_AT(channels);
  for (uint32_t c = 0; c < channels; c++)
    if (bases[c] != 0 && (bases[c] < GLYD_KV_BASE_MIN || bases[c] > GLYD_KV_BASE_MAX)) return GLYD_E_CORRUPT;
  const page_out to = {out, stride};
  for (uint32_t slab = 0; slab < GLYD_KV_SLABS; slab++) {
    const uint8_t *data = in + GLYD_KV_SLABS_AT(channels) + (size_t)slab * GLYD_KV_SLAB(channels);
    for (uint32_t piece = 0; piece < GLYD_KV_PIECES; piece++)
      for (uint32_t half = 0; half < 2; half++) read_codes(scratch, data, channels, piece, half);
    for (uint32_t group = 0; group < GLYD_KV_GROUPS(channels); group++)
      if (!decode_group(to, in, &info, scratch, slab, group)) return GLYD_E_CORRUPT;
  }
  return place_exceptions(to, in, &info) ? GLYD_OK : GLYD_E_CORRUPT;
}
