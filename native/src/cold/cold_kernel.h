/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The hot loops of a byte, compiled once for each kind of CPU. All forms give
 * the same numbers: sums of products wrap at 32 bits, weights saturate at 16.
 *
 * What decides the speed is the way from one bit to the next: state, entry,
 * inputs, sums, final stages, coder. Nothing on it goes through memory in
 * another width than it came: such a load waits for all stores before it.
 */
#include "cold/cold_common.h"
#include "cold/cold_context.h"

#define MIXER_RATE 750  /* of an error of 16 bits, which is then divided by 4096 */
#define FINAL_MAX 65535 /* of weights of the second layer, in units of 1 / 16384 */
#define FINAL_SHIFT 6   /* how slowly the final stage follows */
#define LINE 64u        /* bytes of a table that one context owns: four slots of a tag and 15 states */
#define SLOT 16u

_Static_assert(2 * GLYD_COLD_LOGIT_MAX * GLYD_COLD_FINAL_SCALE >> 16 < GLYD_COLD_FINAL_STEPS - 1,
               "a step has a next one");
_Static_assert(GLYD_COLD_SETS *(int64_t)GLYD_COLD_LOGIT_MAX *FINAL_MAX < INT32_MAX, "sums of weigh()");

/* vector: inputs or weights of 16 bits, or entries of 32. four: a number of 32 bits for each mixer. */
#if defined(GLYD_COLD_AVX512)
#include "cold/cold_vector_avx512.h"
#elif defined(GLYD_COLD_AVX2)
#include "cold/cold_vector_avx2.h"
#else
#include "cold/cold_vector_scalar.h"
#endif

/* ---- slots ------------------------------------------------------------------ */

/* One store: what is then read at once would wait for two. */
GLYD_INLINE void begin_slot(uint8_t *slot, uint8_t tag) {
  const uint64_t fresh[2] = {tag, 0};
  memcpy(slot, fresh, SLOT);
}

/* The line of a context: itself or its neighbour, whichever has its tag; else
 * the one of them that has been used less begins anew. */
GLYD_INLINE uint8_t *find_line(uint8_t *table, uint32_t shift, uint32_t hash) {
  const uint8_t tag = (uint8_t)(hash | (uint32_t)((hash & 255) == 0));
  const size_t at = (size_t)(hash >> shift);
  uint8_t *const first = table + at * LINE;
  if (first[0] == tag) return first;
  uint8_t *const second = table + (at ^ 1) * LINE;
  if (second[0] == tag) return second;
  uint8_t *const line = second[1] < first[1] ? second : first;
  memset(line + SLOT, 0, LINE - SLOT);
  begin_slot(line, tag);
  return line;
}

/* The slot of the second half of a byte; the tag is its first half. */
GLYD_INLINE uint8_t *find_half(uint8_t *line, uint8_t tag) {
  uint8_t *slot = line + SLOT;
  for (unsigned i = 1; i < 4; i++)
    if (line[i * SLOT] == tag) return line + i * SLOT;
  for (unsigned i = 2; i < 4; i++)
    if (line[i * SLOT + 1] < slot[1]) slot = line + i * SLOT;
  begin_slot(slot, tag);
  return slot;
}

/* Slots of the first half; how many orders have been seen. */
static uint32_t begin_byte(glyd_cold_model *restrict m) {
  uint32_t order = 0;
  const uint32_t shift = 32 - (m->table_log - 6);
  m->slots[0] = m->order1 + (size_t)(m->last4 & 255) * 17 * SLOT;
  for (uint32_t i = 1; i < GLYD_COLD_CONTEXTS; i++) {
    uint8_t *const line = find_line(m->tables + ((size_t)(i - 1) << m->table_log), shift, m->hash[i]);
    m->slots[i] = line;
    if (i < GLYD_COLD_ORDERS && line[1]) order = i;
  }
  return order;
}

static void begin_half(glyd_cold_model *restrict m, uint32_t bits) {
  m->slots[0] += (bits & 15) * SLOT + SLOT;
  for (uint32_t i = 1; i < GLYD_COLD_CONTEXTS; i++) m->slots[i] = find_half(m->slots[i], (uint8_t)bits);
}

/* ---- bits ------------------------------------------------------------------- */

/* What a byte is coded with. */
typedef struct byte_state {
  glyd_cold_model *m;
  glyd_arith_writer writer; /* the one that is used */
  glyd_arith_reader reader;
  uint32_t byte; /* of a writer */
  uint32_t bits; /* a one, then the bits known so far */
  uint32_t failed;
  uint32_t learn_shift; /* how slowly maps follow */
  nibble half;
  int16_t *row0;
  vector weights0[N_VECTORS]; /* of the mixer whose row is the same for all bits: kept here */
} byte_state;

/* What the expected byte says: entries one and two; the row of its mixer. */
GLYD_INLINE uint32_t look_at_expected(const byte_state *s, uint32_t is_expected, uint32_t shift, uint32_t *one,
                                      uint32_t *two) {
  const glyd_cold_model *const m = s->m;
  *one = *two = GLYD_COLD_MAP_NONE;
  if (!is_expected) return s->bits;
  const uint32_t byte = m->expected & 255;
  const uint32_t bit = byte >> shift & 1;
  *one = s->failed ? GLYD_COLD_MAP_FAILED + shift * 2 + bit : GLYD_COLD_MAP_LENGTH + m->length_class * 2 + bit;
  *two = GLYD_COLD_MAP_EXPECTED + ((s->failed << 8 | byte) << 3 | shift);
  return s->failed ? 2048 + (byte << 3 | shift) : s->bits + 256 * (1 + m->grade * 2 + bit);
}

GLYD_INLINE int16_t *row_of(glyd_cold_model *m, uint32_t row) { return m->mixer + (size_t)row * GLYD_COLD_INPUTS; }

GLYD_INLINE void code_bit(byte_state *s, uint32_t shift, uint32_t node, uint32_t step, int decodes) {
  glyd_cold_model *const m = s->m;
  const uint32_t bits = s->bits;

  /* The final stage: what really came when the model said so, after two bytes. Its row is asked for
   * before the rest is done. */
  const uint32_t final_row = ((m->last4 & 0xFFFF) << 8 | bits) * 0x9E3779B1u >> (32 - m->final_log);
  uint16_t *stage = &m->final_stage[(size_t)final_row * GLYD_COLD_FINAL_STEPS];
  __builtin_prefetch(stage);

  uint32_t one, two;
  const uint32_t is_expected = m->expected >> (shift + 1) == bits;
  const uint32_t expected_row = look_at_expected(s, is_expected, shift, &one, &two);
  vector entries[N_VECTORS], x[N_VECTORS];
  look_up(&s->half, m, node, one, two, entries);
  for (unsigned i = 0; i < N_VECTORS; i++) x[i] = inputs(entries[i]);
  int16_t *const row1 = row_of(m, GLYD_COLD_ROW_EXPECTED + expected_row);
  int16_t *const row2 = row_of(m, GLYD_COLD_ROW_PLACE + (m->select_place << 3 | shift));
  int16_t *const row3 = row_of(m, GLYD_COLD_ROW_ABOVE + (m->select_above << 3 | shift));
  int32_t *const final_weights = &m->final_mixer[(is_expected << 8 | bits) * GLYD_COLD_SETS];
  const four logits = dot_four(x, s->weights0, row1, row2, row3);
  const int32_t logit = glyd_cold_clamp(weigh(logits, final_weights) >> 14);
  const uint32_t p_final = m->squash[logit + GLYD_COLD_LOGIT_MAX];
  const uint32_t place = (uint32_t)(logit + GLYD_COLD_LOGIT_MAX) * GLYD_COLD_FINAL_SCALE;
  const uint32_t part = place >> 4 & 4095;
  stage += place >> 16;
  uint32_t p = (p_final + ((stage[0] * (4096 - part) + stage[1] * part) >> 12)) >> 1;
  p += p == 0;

  uint32_t bit;
  if (decodes) {
    bit = glyd_arith_reader_get(&s->reader, p);
  } else {
    bit = s->byte >> shift & 1;
    glyd_arith_writer_put(&s->writer, p, bit);
  }
  s->bits = bits << 1 | bit;

  const int32_t target = (int32_t)(bit << 16);
  const four errors = errors_of(m, logits, target);
  for (unsigned i = 0; i < N_VECTORS; i++) s->weights0[i] = trained(x[i], s->weights0[i], one_of(errors, 0));
  train_row(x, row1, one_of(errors, 1));
  train_row(x, row2, one_of(errors, 2));
  train_row(x, row3, one_of(errors, 3));
  train_final(final_weights, logits, (target - (int32_t)p_final) >> 4);
  learn(&s->half, m, node, step, bit, is_expected, s->learn_shift, entries);
  const int32_t reached = bit ? 65535 : 0;
  const int32_t a = stage[0], b = stage[1];
  stage[0] = (uint16_t)(a + (((reached - a) * (int32_t)(4096 - part)) >> (12 + FINAL_SHIFT)));
  stage[1] = (uint16_t)(b + (((reached - b) * (int32_t)part) >> (12 + FINAL_SHIFT)));
}

GLYD_INLINE void code_half(byte_state *s, uint32_t top, int decodes) {
  uint32_t node = 1;
  begin_nibble(&s->half, s->m);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; i++) {
    code_bit(s, top - i, node, i, decodes);
    node = node << 1 | (s->bits & 1);
  }
  end_nibble(&s->half, s->m, node);
}

GLYD_INLINE uint32_t code_byte(glyd_cold_model *restrict m, glyd_arith_writer *restrict writer,
                               glyd_arith_reader *restrict reader, uint32_t failed, uint32_t byte, int decodes) {
  if (!m->is_hashed) glyd_cold_context_hash(m);
  m->is_hashed = 0;
  byte_state s = {.m = m, .byte = byte, .bits = 1, .failed = failed};
  if (decodes)
    s.reader = *reader;
  else
    s.writer = *writer;
  const uint32_t order = begin_byte(m);
  s.learn_shift = m->pos < 8192 ? 5 : m->pos < 131072 ? 6 : 7;
  s.row0 = row_of(m, GLYD_COLD_ROW_ORDER + (order << 8 | (m->last4 & 255)));
  for (unsigned i = 0; i < N_VECTORS; i++) s.weights0[i] = load_row(s.row0, i);
  for (unsigned i = 0; i < 8; i++) {
    __builtin_prefetch(row_of(m, GLYD_COLD_ROW_PLACE + (m->select_place << 3 | i)));
    __builtin_prefetch(row_of(m, GLYD_COLD_ROW_ABOVE + (m->select_above << 3 | i)));
  }
  code_half(&s, 7, decodes);
  begin_half(m, s.bits);
  code_half(&s, 3, decodes);
  for (unsigned i = 0; i < N_VECTORS; i++) store_row(s.row0, i, s.weights0[i]);
  if (decodes)
    *reader = s.reader;
  else
    *writer = s.writer;
  return s.bits & 255;
}

static void encode(glyd_cold_model *m, glyd_arith_writer *writer, uint32_t failed, uint32_t byte) {
  (void)code_byte(m, writer, NULL, failed, byte, 0);
}

static uint32_t decode(glyd_cold_model *m, glyd_arith_reader *reader, uint32_t failed) {
  return code_byte(m, NULL, reader, failed, 0, 1);
}

static void spread(glyd_cold_model *m) {
  const uint32_t shift = 32 - (m->table_log - 6);
  for (uint32_t i = 0; i < 16; i++) m->hash[i] = glyd_cold_mix(m->hash[i] * 0x9E3779B1u + i * 0x632BE5ABu);
  for (unsigned i = 1; i < GLYD_COLD_CONTEXTS; i++) {
    const size_t line = m->hash[i] >> shift;
    const uint8_t *const table = m->tables + ((size_t)(i - 1) << m->table_log);
    __builtin_prefetch(table + line * LINE);
    __builtin_prefetch(table + (line ^ 1) * LINE);
  }
}
