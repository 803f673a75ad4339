/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "object/object_index_encode.h"

static void index_table(glyd_object_index *x, const glyd_object_code *code, int literals, unsigned t) {
  const uint32_t escape = code->code[code->escape], length = code->length[code->escape];
  for (uint32_t s = 0; s < 256; s++) {
    if (s == code->escape || code->length[s] == 0)
      x->put[t][s] = (literals ? escape << 8 | s : escape | s << length) << 8 | (length + 8);
    else
      x->put[t][s] = (uint32_t)code->code[s] << 8 | code->length[s];
  }
}

/* Average bits of a literal as the codes expect them, in 1/16: sum of
 * length * 2^-length over the symbols, over all contexts. */
static int32_t literal_bits(const glyd_dictionary *d) {
  uint32_t sum = 0;
  for (unsigned t = 0; t < d->contexts; t++)
    for (unsigned s = 0; s < 256; s++) {
      const unsigned l = d->code[t].length[s];
      if (l != 0) sum += l << (GLYD_OBJECT_LITERAL_BITS - l);
    }
  return (int32_t)(sum * 16 / d->contexts >> GLYD_OBJECT_LITERAL_BITS);
}

/* The step that takes least bits for each few literals and short match. */
static void index_steps(const glyd_dictionary *d, glyd_object_index *x) {
  const glyd_object_code *const code = &d->code[d->contexts + GLYD_OBJECT_STEPS];
  memset(x->step_of, GLYD_OBJECT_NO_STEP, sizeof x->step_of);
  for (unsigned s = 0; s < d->n_steps; s++) {
    const glyd_object_step *const step = &d->steps[s];
    if (code->length[s] == 0) continue;
    const unsigned before_match = code->length[s] + (unsigned)step->literals_bits;
    x->step_put[s] = (uint64_t)step->length << 48 | (uint64_t)step->literals << 40 |
                     (uint64_t)(before_match + step->length_bits) << 32 | before_match << 24 |
                     (uint32_t)code->length[s] << 16 | code->code[s];
    const uint32_t literals = step->literals + (1u << step->literals_bits),
                   length = step->length + (1u << step->length_bits);
    if (literals > GLYD_OBJECT_STEP_LITERALS || length > 256) x->wide[x->n_wide++] = (uint8_t)s;
    const uint32_t m_end = length >= GLYD_OBJECT_LONG_LENGTH ? 257 : length < 256 ? length : 256;
    for (uint32_t m = step->length; m < m_end; m++)
      for (uint32_t l = step->literals; l < literals && l < GLYD_OBJECT_STEP_LITERALS; l++) {
        uint8_t *const best = &x->step_of[step->slot][m][l];
        if (*best == GLYD_OBJECT_NO_STEP || glyd_object_step_bits(d, s) < glyd_object_step_bits(d, *best))
          *best = (uint8_t)s;
      }
  }
}

/* What new offsets cost, weighted as the codes expect them. */
static void price_offsets(const glyd_dictionary *d, glyd_object_index *x) {
  const uint32_t *const put = x->put[d->contexts + GLYD_OBJECT_OFFSETS];
  const int32_t fixed = 16 * (GLYD_OBJECT_COMMAND_BITS + GLYD_OBJECT_NEW_OFFSET_BITS);
  for (unsigned k = 0; k < 32; k++) { /* distance and bias: of 2^k about; 8 symbols for each power of 2 from 8 on */
    const unsigned bits = k < 3 ? 0 : k - 3;
    int32_t sum = 0;
    for (unsigned s = 0; s < 8; s++) sum += (int32_t)(put[(bits * 8 + s) & 255] & 255);
    x->near_cost[k] = fixed + 2 * sum + 16 * (int32_t)bits;
  }
  uint32_t weight = 0, bits = 0;
  for (unsigned s = GLYD_OBJECT_SYMBOLS_HERE; s < 256; s++) {
    const unsigned l = put[s] & 255;
    weight += 1u << (20 - l);
    bits += l << (20 - l);
  }
  x->place_cost = fixed + 16 * (int32_t)d->shift + (int32_t)(bits * 16 / weight);
}

glyd_status glyd_object_index_build(glyd_dictionary *d) {
  if (d->index) return GLYD_OK;
  glyd_object_index *const x = glyd_alloc_get(&d->allocator, sizeof *x);
  if (!x) return GLYD_E_MEMORY;
  memset(x, 0, sizeof *x);
  for (unsigned t = 0; t <= d->contexts; t++) index_table(x, &d->code[t], t < d->contexts, t);
  index_steps(d, x);
  x->literal_bits = literal_bits(d);
  price_offsets(d, x);
  for (uint32_t at = 0; at + 8 <= d->size; at++) {
    const uint64_t v = glyd_load64(d->content + at);
    uint64_t hash = glyd_object_hash_long(v);
    x->long_table[hash >> (64 - GLYD_OBJECT_LONG_BITS)] =
        glyd_object_entry(at, glyd_object_tag(hash, GLYD_OBJECT_LONG_BITS));
    hash = glyd_object_hash_short(v);
    x->short_table[hash >> (64 - GLYD_OBJECT_SHORT_BITS)] =
        glyd_object_entry(at, glyd_object_tag(hash, GLYD_OBJECT_SHORT_BITS));
  }
  d->index = x;
  return GLYD_OK;
}
