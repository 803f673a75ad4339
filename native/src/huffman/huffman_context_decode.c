/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "huffman/huffman_context_decode.h"

#include "common/cpu.h"
#include "huffman/huffman_code_decode.h"
#include "huffman/huffman_decode_x86.h"
#include "huffman/huffman_kernel.h"

#define TABLE ((size_t)1 << GLYD_HUFFMAN_BITS)

/* Table number k: of one symbol, or a code. */
static glyd_status read_table(glyd_plane_input *in, glyd_context_tables *tables, uint16_t *entries, unsigned k,
                              unsigned singles, int changed, uint32_t *place) {
  uint16_t *const entry = entries + k * TABLE;
  glyd_huffman_lengths *const code = &tables->code[k];
  unsigned bits = 0;
  if (singles >> k & 1) {
    if (in->at == in->end) return GLYD_E_CORRUPT;
    entry[0] = (uint16_t)(*in->at++ << 8);
    code->n = 0;
  } else {
    const glyd_status status = glyd_huffman_read_code(in, changed && code->n != 0, code, entry, &bits);
    if (status != GLYD_OK) return status;
  }
  *place = (uint32_t)(k * TABLE) << 8 | bits;
  return GLYD_OK;
}

/* Tables and map of mode 4. */
static glyd_status read_tables(glyd_plane_input *in, glyd_context_tables *tables, uint16_t *entries, unsigned most,
                               int how) {
  if (in->end - in->at < 2) return GLYD_E_CORRUPT;
  const unsigned some = how == GLYD_CONTEXTS_ARE_MIXED ? GLYD_CONTEXTS_SOME_FLAG : 0;
  const unsigned n = in->at[0] & ~some, singles = in->at[1];
  const int mixed = (in->at[0] & some) != 0;
  in->at += 2;
  if (n == 0 || n > most || singles >> n != 0) return GLYD_E_CORRUPT;
  uint32_t place[GLYD_CONTEXTS_TABLES_MAX];
  uint8_t used[256] = {1}; /* the first byte of a stream has context 0 */
  for (unsigned k = 0; k < n; k++) {
    const glyd_status status = read_table(in, tables, entries, k, singles, 0, &place[k]);
    if (status != GLYD_OK) return status;
    const glyd_huffman_lengths *const code = &tables->code[k];
    if (code->n == 0) used[entries[k * TABLE] >> 8] = 1;
    for (unsigned i = 0; i < code->n; i++) used[code->symbol[i]] = 1;
  }
  unsigned width = 0;
  while (1u << width < n) width++;
  glyd_bit_reader r = {in->at, in->end, 0};
  for (unsigned c = 0; c < GLYD_CONTEXTS_MAX; c++) {
    tables->place[c] = place[0];
    if (c >= GLYD_CONTEXTS_SOME          ? !mixed || !GLYD_CONTEXTS_LISTED(c - GLYD_CONTEXTS_SOME)
        : how == GLYD_CONTEXTS_ARE_GIVEN ? c >= GLYD_CONTEXTS_GIVEN
                                         : used[c] == 0)
      continue;
    const unsigned k = (unsigned)glyd_bit_reader_peek(&r) & ((1u << width) - 1);
    r.pos += width;
    if (k >= n) return GLYD_E_CORRUPT;
    tables->place[c] = place[k];
  }
  const size_t bytes = glyd_bit_reader_bytes(&r);
  if (bytes > (size_t)(in->end - in->at)) return GLYD_E_CORRUPT;
  in->at += bytes;
  tables->n = n;
  tables->mixed = mixed;
  return GLYD_OK;
}

/* The tables that mode 6 has instead of the last ones. */
static glyd_status read_changes(glyd_plane_input *in, glyd_context_tables *tables, uint16_t *entries) {
  if (in->end - in->at < 2) return GLYD_E_CORRUPT;
  const unsigned changed = in->at[0], singles = in->at[1];
  in->at += 2;
  if (changed >> tables->n != 0 || (singles & ~changed) != 0) return GLYD_E_CORRUPT;
  uint32_t place[GLYD_CONTEXTS_TABLES_MAX];
  for (unsigned k = 0; k < tables->n; k++) {
    if ((changed >> k & 1) == 0) continue;
    const glyd_status status = read_table(in, tables, entries, k, singles, 1, &place[k]);
    if (status != GLYD_OK) return status;
  }
  for (unsigned c = 0; c < GLYD_CONTEXTS_MAX; c++) {
    const unsigned k = tables->place[c] >> (8 + GLYD_HUFFMAN_BITS);
    if (changed >> k & 1) tables->place[c] = place[k];
  }
  return GLYD_OK;
}

static void rounds(unsigned cpu, glyd_context_streams *s, int how) {
#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX2) {
    (how == GLYD_CONTEXTS_ARE_GIVEN   ? glyd_huffman_given_bmi2
     : how == GLYD_CONTEXTS_ARE_MIXED ? glyd_huffman_mixed_bmi2
                                      : glyd_huffman_contexts_bmi2)(s);
    return;
  }
#endif
  (void)cpu;
  if (how == GLYD_CONTEXTS_ARE_GIVEN)
    glyd_huffman_rounds_contexts(s, GLYD_CONTEXTS_ARE_GIVEN);
  else if (how == GLYD_CONTEXTS_ARE_MIXED)
    glyd_huffman_rounds_contexts(s, GLYD_CONTEXTS_ARE_MIXED);
  else
    glyd_huffman_rounds_contexts(s, GLYD_CONTEXTS_ARE_BEFORE);
}

/* One symbol of stream j at *out, near the end of the input; 0 when it is used up. */
static int careful_symbol(glyd_context_streams *s, size_t j, uint8_t *out, unsigned context, const uint8_t *end) {
  const uint32_t t = s->place[context];
  const uint64_t e = s->entry[(t >> 8) + (s->word[j] & (((uint64_t)1 << (t & 63)) - 1))];
  *out = (uint8_t)(e >> 8);
  const unsigned used = glyd_huffman_used(s->word[j] >> (e & 63));
  const uint8_t *p = s->p[j] + (used >> 3);
  if (p > end) return 0;
  s->p[j] = p;
  s->word[j] = (glyd_load64_until(p, end) | GLYD_HUFFMAN_MARKER) >> (used & 7);
  return 1;
}

static glyd_status decode_streams(unsigned cpu, const glyd_context_tables *tables, const uint16_t *entries, int how,
                                  glyd_plane_input *in, uint8_t *out, size_t n) {
  glyd_context_streams s;
  const uint8_t *begin[GLYD_HUFFMAN_STREAMS];
  if (in->end - in->at < GLYD_HUFFMAN_SIZES_BYTES) return GLYD_E_CORRUPT;
  const uint8_t *const sizes = in->at, *p = in->at + GLYD_HUFFMAN_SIZES_BYTES;
  for (size_t j = 0; j < GLYD_HUFFMAN_STREAMS; j++) {
    begin[j] = p;
    s.p[j] = p;
    s.word[j] = glyd_load64_until(p, in->readable) | GLYD_HUFFMAN_MARKER;
    if (j + 1 == GLYD_HUFFMAN_STREAMS) break;
    const size_t size = glyd_load16(sizes + 2 * j);
    if (size > (size_t)(in->end - p)) return GLYD_E_CORRUPT;
    p += size;
  }
  s.out = out;
  s.chunk = (n + GLYD_HUFFMAN_STREAMS - 1) / GLYD_HUFFMAN_STREAMS;
  s.entry = entries;
  s.place = tables->place;
  const size_t last = n - (GLYD_HUFFMAN_STREAMS - 1) * s.chunk; /* the last stream is the shortest */
  for (size_t j = 0; j < GLYD_HUFFMAN_STREAMS; j++) {
    uint8_t *const first = out + j * s.chunk;
    if (!careful_symbol(&s, j, first, glyd_huffman_context(how, *first, 0), in->readable)) return GLYD_E_CORRUPT;
  }
  s.out = out + 1;
  for (;;) { /* as many rounds as are safe whatever the input holds */
    ptrdiff_t n_rounds = (out + last - s.out) / GLYD_HUFFMAN_STEPS;
    for (size_t j = 0; j < GLYD_HUFFMAN_STREAMS; j++) {
      const ptrdiff_t safe = (in->readable - s.p[j] - 8) / GLYD_HUFFMAN_ADVANCE;
      if (safe < n_rounds) n_rounds = safe;
    }
    if (n_rounds <= 0) break;
    s.stop = s.out + n_rounds * GLYD_HUFFMAN_STEPS;
    rounds(cpu, &s, how);
  }
  for (size_t j = 0; j < GLYD_HUFFMAN_STREAMS; j++) {
    uint8_t *at = s.out + j * s.chunk, *const end =
                                           out + j * s.chunk + (j + 1 == GLYD_HUFFMAN_STREAMS ? last : s.chunk);
    for (; at < end; at++)
      if (!careful_symbol(&s, j, at, glyd_huffman_context(how, *at, at[-1]), in->readable)) return GLYD_E_CORRUPT;
    const uint8_t *const stop = s.p[j] + ((glyd_huffman_used(s.word[j]) + 7) >> 3);
    if (j + 1 < GLYD_HUFFMAN_STREAMS ? stop != begin[j + 1] : stop > in->end) return GLYD_E_CORRUPT;
    in->at = stop;
  }
  return GLYD_OK;
}

int glyd_huffman_wants_some(const glyd_plane_input *in, const glyd_context_tables *tables, size_t *n) {
  uint64_t head;
  const uint8_t *const at = glyd_get_varint(in->at, in->end, &head);
  if (at == NULL) return 0;
  *n = (size_t)(head >> GLYD_PLANE_FINE_BITS);
  switch (head & ((1u << GLYD_PLANE_FINE_BITS) - 1)) {
  case GLYD_PLANE_CONTEXTS: return at != in->end && (*at & GLYD_CONTEXTS_SOME_FLAG) != 0;
  case GLYD_PLANE_LAST_CONTEXTS:
  case GLYD_PLANE_CHANGED_CONTEXTS: return tables->n != 0 && tables->mixed;
  default: return 0;
  }
}

glyd_status glyd_huffman_decode_fine_plane(unsigned cpu, glyd_huffman_table *table, glyd_context_tables *tables,
                                           uint16_t *entries, unsigned most, int how, size_t n_contexts,
                                           glyd_plane_input *in, uint8_t *out, size_t max_n, size_t slack,
                                           const uint8_t **data, size_t *n) {
  unsigned mode;
  glyd_status status = glyd_huffman_read_head(in, GLYD_PLANE_FINE_BITS, max_n, n, &mode);
  *data = out;
  if (status != GLYD_OK || *n == 0) return status;
  if (mode < GLYD_PLANE_CONTEXTS || mode == GLYD_PLANE_CHANGED)
    return glyd_huffman_decode_mode(cpu, mode, table, in, out, slack, data, *n);
  if (mode > GLYD_PLANE_CHANGED_CONTEXTS || *n < GLYD_CONTEXTS_FROM ||
      (how != GLYD_CONTEXTS_ARE_BEFORE && n_contexts < *n))
    return GLYD_E_CORRUPT;
  if (mode != GLYD_PLANE_CONTEXTS && tables->n == 0) return GLYD_E_CORRUPT;
  if (mode != GLYD_PLANE_LAST_CONTEXTS) {
    status =
        mode == GLYD_PLANE_CONTEXTS ? read_tables(in, tables, entries, most, how) : read_changes(in, tables, entries);
    if (status != GLYD_OK) return status;
  }
  if (how == GLYD_CONTEXTS_ARE_MIXED && !tables->mixed) how = GLYD_CONTEXTS_ARE_BEFORE;
  return decode_streams(cpu, tables, entries, how, in, out, *n);
}
