/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The dictionary's content is laid before the first bytes of the segment, which
 * are then moved to their place; the others are decoded where they belong.
 */
#include "segment/segment_dictionary_decode.h"

#include "block/block_decode.h"
#include "cold/cold_decode.h"
#include "common/mem.h"
#include "object/object_common.h"
#include "segment/segment_dictionary_common.h"

static uint64_t round_up(uint64_t n) { return (n + 63) & ~(uint64_t)63; }

static uint64_t coder_workspace(uint64_t len, int has_cold) {
  const uint64_t blocks = round_up(glyd_lz_decode_workspace());
  if (!has_cold) return blocks;
  const uint64_t cold = glyd_cold_decode_workspace(GLYD_DICTIONARY_CONTENT_MAX + glyd_segment_dictionary_first(len));
  return round_up(cold > blocks ? cold : blocks);
}

uint64_t glyd_segment_dictionary_decode_workspace(uint64_t len, int has_cold) {
  return coder_workspace(len, has_cold) + GLYD_DICTIONARY_CONTENT_MAX + glyd_segment_dictionary_first(len);
}

glyd_status glyd_segment_dictionary_decode(unsigned cpu, void *workspace, const glyd_dictionary *dictionary,
                                           int has_cold, uint8_t *out, size_t len, const uint8_t *in, size_t in_len) {
  const size_t history = dictionary->size, first = (size_t)glyd_segment_dictionary_first(len);
  uint8_t *const both = (uint8_t *)workspace + coder_workspace(len, has_cold);
  const uint8_t *const end = in + in_len;
  const unsigned form = *in++; /* no payload is empty */
  if (form == GLYD_SEGMENT_DICTIONARY_COLD) {
    if (!has_cold || first < len || history / GLYD_SEGMENT_DICTIONARY_LEARNT_MAX > len) return GLYD_E_CORRUPT;
    memcpy(both, dictionary->content, history);
    const glyd_status status = glyd_cold_decode_after(cpu, workspace, both, history, len, in, (size_t)(end - in));
    if (status == GLYD_OK) memcpy(out, both + history, len);
    return status;
  }
  if (form != GLYD_SEGMENT_DICTIONARY_BLOCKS) return GLYD_E_CORRUPT;
  uint64_t size = (uint64_t)(end - in);
  if (first < len) {
    in = glyd_get_varint(in, end, &size);
    if (!in || size > (uint64_t)(end - in)) return GLYD_E_CORRUPT;
  }
  memcpy(both, dictionary->content, history);
  const glyd_status status = glyd_lz_decode_after(cpu, workspace, both, history, first, in, (size_t)size);
  if (status != GLYD_OK) return status;
  memcpy(out, both + history, first);
  in += size;
  return first == len ? GLYD_OK : glyd_lz_decode_after(cpu, workspace, out, first, len - first, in, (size_t)(end - in));
}
