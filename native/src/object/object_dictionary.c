/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "object/object_dictionary.h"

#include "common/checksum.h"
#include "common/cpu.h"
#include "huffman/huffman_codes.h"
#include "huffman/huffman_common.h"

_Static_assert(GLYD_OBJECT_BITS <= GLYD_HUFFMAN_BITS && GLYD_OBJECT_LITERAL_BITS >= 8, "codes are made in one place");

/* Codes of the lengths; 0 when their Kraft sum is not 1. */
static int make_codes(glyd_object_code *code, int literals) {
  const unsigned bits = literals ? GLYD_OBJECT_LITERAL_BITS : GLYD_OBJECT_BITS;
  uint32_t kraft = 0;
  for (unsigned s = 0; s < 256; s++) {
    if (code->length[s] > bits) return 0;
    if (code->length[s] != 0) kraft += 1u << (bits - code->length[s]);
  }
  if (kraft != 1u << bits) return 0;
  glyd_huffman_make_codes(code->length, code->code);
  for (unsigned s = 0; s < 256 && literals; s++) { /* theirs have the first bit on top */
    uint32_t v = code->code[s], reversed = 0;
    for (unsigned b = code->length[s]; b > 0; b--, v >>= 1) reversed = reversed << 1 | (v & 1);
    code->code[s] = (uint16_t)reversed;
  }
  return 1;
}

/* One literal or two for each number of bits; the codes have their first bit on top. */
static void make_literal_table(glyd_dictionary *d, unsigned t) {
  const glyd_object_code *const code = &d->code[t];
  uint32_t *const table = d->literal_table + ((size_t)t << GLYD_OBJECT_LITERAL_BITS);
  for (uint32_t s = 0; s < 256; s++) {
    const unsigned l = code->length[s];
    if (l == 0) continue;
    const uint32_t context = d->context[s], escape = s == code->escape ? GLYD_OBJECT_ENTRY_ESCAPE : 0;
    const uint32_t entry = context << 28 | l << 24 | s << 8 | escape | l;
    const unsigned first = (unsigned)code->code[s] << (GLYD_OBJECT_LITERAL_BITS - l);
    for (unsigned i = 0; i < 1u << (GLYD_OBJECT_LITERAL_BITS - l); i++) table[first + i] = entry;
    if (escape) continue;
    const glyd_object_code *const after = &d->code[context];
    for (uint32_t s2 = 0; s2 < 256; s2++) {
      const unsigned l2 = after->length[s2], both = l + l2;
      if (l2 == 0 || both > GLYD_OBJECT_LITERAL_BITS || s2 == after->escape) continue;
      const uint32_t two = (uint32_t)d->context[s2] << 28 | l << 24 | s2 << 16 | s << 8 | GLYD_OBJECT_ENTRY_TWO | both;
      const unsigned at = first + ((unsigned)after->code[s2] << (GLYD_OBJECT_LITERAL_BITS - both));
      for (unsigned i = 0; i < 1u << (GLYD_OBJECT_LITERAL_BITS - both); i++) table[at + i] = two;
    }
  }
}

static void make_offset_table(glyd_dictionary *d) {
  const glyd_object_code *const code = &d->code[d->contexts + GLYD_OBJECT_OFFSETS];
  for (uint32_t s = 0; s < 256; s++) {
    const uint32_t l = code->length[s];
    if (l == 0) continue;
    uint64_t entry = glyd_object_offset_entry(d, s, l);
    if (s == code->escape) entry |= GLYD_OBJECT_ENTRY_ESCAPE;
    for (unsigned i = code->code[s]; i < 1u << GLYD_OBJECT_BITS; i += 1u << l) d->offset_table[i] = entry;
  }
}

static void make_step_table(glyd_dictionary *d) {
  const glyd_object_code *const code = &d->code[d->contexts + GLYD_OBJECT_STEPS];
  for (unsigned s = 0; s < d->n_steps; s++) {
    const unsigned l = code->length[s];
    if (l == 0) continue;
    const glyd_object_step *const step = &d->steps[s];
    const uint64_t entry = (uint64_t)step->length << 48 | (uint64_t)step->literals << 32 |
                           (uint32_t)step->length_bits << 24 | (uint32_t)step->literals_bits << 16 | l << 8 |
                           (uint32_t)step->slot << 6 | (l + step->literals_bits + step->length_bits);
    for (unsigned i = code->code[s]; i < 1u << GLYD_OBJECT_BITS; i += 1u << l) d->step_table[i] = entry;
  }
}

static void get_nibbles(const uint8_t *in, uint8_t out[256]) {
  for (unsigned s = 0; s < 256; s++) out[s] = in[s / 2] >> (s % 2 * 4) & 15;
}

static int read_step(glyd_object_step *step, const uint8_t *in) {
  *step = (glyd_object_step){in[0], in[1], in[2] & 31, in[3] & 31, in[3] >> 5};
  return step->literals_bits <= GLYD_OBJECT_EXTRA_BITS && step->length_bits <= GLYD_OBJECT_EXTRA_BITS && in[2] < 32 &&
         step->literals + (1u << step->literals_bits) <= 65536 && step->length + (1u << step->length_bits) <= 65536 &&
         step->length >= GLYD_OBJECT_MATCH_MIN && step->slot <= GLYD_OBJECT_REPEATS;
}

/* Everything between the sizes and the content. */
static glyd_status read_tables(glyd_dictionary *d, const uint8_t *in) {
  get_nibbles(in + GLYD_DICTIONARY_CONTEXTS_AT, d->context);
  for (unsigned s = 0; s < 256; s++)
    if (d->context[s] >= d->contexts) return GLYD_E_CORRUPT;
  in += GLYD_DICTIONARY_STEPS_AT;
  for (unsigned s = 0; s < d->n_steps; s++, in += GLYD_OBJECT_STEP)
    if (!read_step(&d->steps[s], in)) return GLYD_E_CORRUPT;
  for (unsigned t = 0; t <= d->contexts; t++, in += GLYD_DICTIONARY_TABLE) {
    glyd_object_code *const code = &d->code[t];
    code->escape = in[0];
    get_nibbles(in + 1, code->length);
    if (code->length[code->escape] == 0 || !make_codes(code, t < d->contexts)) return GLYD_E_CORRUPT;
  }
  glyd_object_code *const code = &d->code[d->contexts + GLYD_OBJECT_STEPS];
  get_nibbles(in, code->length);
  for (unsigned s = d->n_steps; s < 256; s++)
    if (code->length[s] != 0) return GLYD_E_CORRUPT;
  if (!make_codes(code, 0)) return GLYD_E_CORRUPT;
  for (unsigned t = 0; t < d->contexts; t++) make_literal_table(d, t);
  make_offset_table(d);
  make_step_table(d);
  return GLYD_OK;
}

glyd_status glyd_object_dictionary_create(glyd_dictionary **dictionary, const uint8_t *in, size_t len,
                                          const glyd_allocator *allocator) {
  *dictionary = NULL;
  if (!glyd_alloc_valid(allocator)) return GLYD_E_PARAMETER;
  uint8_t magic[4];
  glyd_store32(magic, GLYD_DICTIONARY_MAGIC);
  if (len == 0) return GLYD_E_TRUNCATED;
  if (memcmp(in, magic, len < 4 ? len : 4) != 0) return GLYD_E_MAGIC;
  if (len >= 5 && in[4] != GLYD_DICTIONARY_VERSION) return GLYD_E_VERSION;
  if (len < GLYD_DICTIONARY_STEPS_AT) return GLYD_E_TRUNCATED;
  const unsigned contexts = in[5], n_steps = in[6];
  const uint32_t size = glyd_load32(in + 8);
  if (contexts == 0 || contexts > GLYD_OBJECT_CONTEXTS || size > GLYD_DICTIONARY_CONTENT_MAX) return GLYD_E_CORRUPT;
  const size_t content_at = GLYD_DICTIONARY_STEPS_AT + n_steps * GLYD_OBJECT_STEP +
                            (contexts + 1) * GLYD_DICTIONARY_TABLE + GLYD_DICTIONARY_CODES;
  const size_t whole = content_at + size + 4;
  if (len < whole) return GLYD_E_TRUNCATED;
  if (len > whole) return GLYD_E_TRAILING;
  const uint32_t id = (uint32_t)glyd_checksum_xxh3(glyd_cpu_features(), in, whole - 4);
  if (id != glyd_load32(in + whole - 4)) return GLYD_E_CORRUPT;
  glyd_dictionary *const d = glyd_alloc_get(allocator, sizeof *d + size + GLYD_DICTIONARY_PAD);
  if (!d) return GLYD_E_MEMORY;
  memset(d, 0, sizeof *d);
  if (allocator) d->allocator = *allocator;
  d->id = id;
  d->size = size;
  d->shift = glyd_object_shift(size);
  d->contexts = contexts;
  d->n_steps = n_steps;
  d->effort = in[7];
  const glyd_status status = read_tables(d, in);
  if (status) {
    glyd_object_dictionary_free(d);
    return status;
  }
  memcpy(d->content, in + content_at, size);
  memset(d->content + size, 0, GLYD_DICTIONARY_PAD);
  *dictionary = d;
  return GLYD_OK;
}

void glyd_object_dictionary_free(glyd_dictionary *dictionary) {
  if (!dictionary) return;
  const glyd_allocator a = dictionary->allocator;
  glyd_alloc_put(&a, dictionary->index);
  glyd_alloc_put(&a, dictionary);
}
