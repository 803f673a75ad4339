/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_dictionary_encode.h"

#include "block/block_encode.h"
#include "cold/cold_encode.h"
#include "common/mem.h"
#include "object/object_common.h"
#include "segment/segment_dictionary_common.h"

#define FIRST_SIZE 3u /* most bytes of the varint that says how long the first blocks are: less than 2^21 */

_Static_assert(GLYD_SEGMENT_DICTIONARY_FIRST < 1u << 21, "its blocks are smaller");

static uint64_t round_up(uint64_t n) { return (n + 63) & ~(uint64_t)63; }

/* Of the blocks that come after the dictionary. */
static glyd_lz_config first_config(const glyd_lz_config *config, const glyd_dictionary *dictionary) {
  glyd_lz_config c = *config;
  c.long_distance = 0;
  c.segment_size = dictionary->size + glyd_segment_dictionary_first(config->segment_size);
  return c;
}

static uint64_t coder_workspace(const glyd_lz_config *config, const glyd_dictionary *dictionary, int cold) {
  const glyd_lz_config first = first_config(config, dictionary);
  uint64_t most = glyd_lz_encode_workspace(&first);
  const uint64_t others[2] = {glyd_lz_encode_workspace(config),
                              cold ? glyd_cold_encode_workspace(first.segment_size) : 0};
  for (unsigned i = 0; i < 2; i++)
    if (others[i] > most) most = others[i];
  return round_up(most);
}

uint64_t glyd_segment_dictionary_encode_workspace(const glyd_lz_config *config, const glyd_dictionary *dictionary,
                                                  int cold) {
  const uint64_t first = glyd_segment_dictionary_first(config->segment_size);
  return coder_workspace(config, dictionary, cold) + dictionary->size + round_up(first) + (cold ? first : 0);
}

/* Blocks: those of the first bytes after the dictionary, then those of the rest after them. */
static glyd_status encode_blocks(const glyd_lz_config *config, uint8_t *workspace, const glyd_dictionary *dictionary,
                                 const uint8_t *both, const uint8_t *in, size_t len, uint8_t *out, size_t cap,
                                 size_t *out_len) {
  const size_t first = (size_t)glyd_segment_dictionary_first(len), head = 1 + (first < len ? FIRST_SIZE : 0);
  if (cap <= head) return GLYD_E_BUFFER;
  out[0] = GLYD_SEGMENT_DICTIONARY_BLOCKS;
  glyd_lz_config c = first_config(config, dictionary);
  size_t size, rest;
  glyd_status status =
      glyd_lz_encode_after(&c, workspace, both, dictionary->size, first, out + head, cap - head, &size);
  *out_len = head + size;
  if (status != GLYD_OK || first == len) return status;
  uint8_t *const at = glyd_put_varint(out + 1, size);
  memmove(at, out + head, size);
  uint8_t *const second = at + size;
  status = glyd_lz_encode_after(config, workspace, in, first, len - first, second, cap - (size_t)(second - out), &rest);
  *out_len = (size_t)(second - out) + rest;
  return status;
}

static int may_learn(const glyd_dictionary *dictionary, size_t len) {
  return dictionary->size / GLYD_SEGMENT_DICTIONARY_LEARNT_MAX <= len;
}

glyd_status glyd_segment_dictionary_encode(const glyd_lz_config *config, uint8_t *workspace,
                                           const glyd_dictionary *dictionary, int cold, const uint8_t *in, size_t len,
                                           uint8_t *out, size_t cap, size_t *out_len) {
  const size_t history = dictionary->size, first = (size_t)glyd_segment_dictionary_first(len);
  if (cold && first < len) return GLYD_E_PARAMETER;
  uint8_t *const both = workspace + coder_workspace(config, dictionary, cold);
  memcpy(both, dictionary->content, history);
  memcpy(both + history, in, first);
  glyd_status status = encode_blocks(config, workspace, dictionary, both, in, len, out, cap, out_len);
  if ((status != GLYD_OK && status != GLYD_E_BUFFER) || !cold || !may_learn(dictionary, len)) return status;
  const size_t most = status == GLYD_OK ? *out_len - 1 : cap;
  uint8_t *const other = both + history + round_up(first);
  size_t size;
  if (most < 2) return status;
  const glyd_status learnt = glyd_cold_encode_after(config->cpu, workspace, both, history, len, other, most - 1, &size);
  if (learnt == GLYD_E_BUFFER) return status;
  if (learnt != GLYD_OK) return learnt;
  out[0] = GLYD_SEGMENT_DICTIONARY_COLD;
  memcpy(out + 1, other, size);
  *out_len = 1 + size;
  return GLYD_OK;
}
