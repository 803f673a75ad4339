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
static int literal_bits(const glyd_dictionary *d) {
  uint32_t sum = 0;
  for (unsigned t = 0; t < d->contexts; t++)
    for (unsigned s = 0; s < 256; s++) {
      const unsigned l = d->code[t].length[s];
      if (l != 0) sum += l << (GLYD_OBJECT_BITS - l);
    }
  return (int)(sum * 16 / d->contexts >> GLYD_OBJECT_BITS);
}

glyd_status glyd_object_index_build(glyd_dictionary *d) {
  if (d->index) return GLYD_OK;
  glyd_object_index *const x = glyd_alloc_get(&d->allocator, sizeof *x);
  if (!x) return GLYD_E_MEMORY;
  memset(x, 0, sizeof *x);
  for (unsigned t = 0; t < d->contexts + glyd_object_other_tables(d->n_steps); t++)
    index_table(x, &d->code[t], t < d->contexts, t);
  if (d->n_steps != 0) { /* the escape has no bits after it */
    const glyd_object_code *const code = &d->code[d->contexts + GLYD_OBJECT_STEPS];
    x->step_escape = (uint32_t)code->code[code->escape] << 8 | code->length[code->escape];
  }
  memset(x->step_of, GLYD_OBJECT_NO_STEP, sizeof x->step_of);
  for (unsigned s = 0; s < d->n_steps; s++)
    if (d->steps[s][0] < GLYD_OBJECT_STEP_LITERALS && d->code[d->contexts + GLYD_OBJECT_STEPS].length[s] != 0)
      x->step_of[d->steps[s][2]][d->steps[s][1]][d->steps[s][0]] = (uint8_t)s;
  memset(x->code_of, GLYD_OBJECT_LENGTHS, sizeof x->code_of);
  for (unsigned c = 0; c < GLYD_OBJECT_LENGTHS; c++) x->code_of[d->lengths[c]] = (uint8_t)c;
  x->literal_bits = literal_bits(d);
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
