/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "cold/cold_context.h"

#define ABOVE_PREFIX 24u /* bytes of the field above that its hash takes in */

static int is_separator(uint8_t byte) {
  return byte == ',' || byte == '\t' || byte == ' ' || byte == ':' || byte == '|' || byte == ';';
}

static void words_advance(glyd_cold_place *p, uint8_t byte, int with_digits) {
  const uint8_t lower = byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + 32) : byte;
  if ((lower >= 'a' && lower <= 'z') || byte >= 128 || (with_digits && byte >= '0' && byte <= '9')) {
    p->word = glyd_cold_join(p->word, lower);
    return;
  }
  if (p->word) {
    p->word2 = p->word1;
    p->word1 = p->word;
    p->word = 0;
  }
  p->marks = p->marks << 8 | byte;
}

static uint32_t field_hash_at(const glyd_cold_model *m, uint32_t at) {
  uint32_t hash = 0;
  for (uint32_t i = 0; i < ABOVE_PREFIX && at + i <= m->pos; i++) {
    const uint8_t byte = m->data[at + i];
    if (byte == '\n' || is_separator(byte)) break;
    hash = glyd_cold_join(hash, byte);
  }
  return hash;
}

static void rows_advance(glyd_cold_model *m, uint8_t byte) {
  glyd_cold_place *const p = &m->place;
  const uint32_t next = m->pos + 1;
  const int is_end = byte == '\n';
  if (!is_end && !is_separator(byte)) {
    p->column++;
    p->field_column++;
    p->field_hash = glyd_cold_join(p->field_hash, byte);
    if (p->above) p->above++;
    return;
  }
  p->hash_of[p->field % GLYD_COLD_FIELDS] = p->field_hash;
  p->field_hash = 0;
  p->field_column = 0;
  if (is_end) {
    p->column = p->field = 0;
    p->parity ^= 1;
  } else {
    p->column++;
    p->field++;
  }
  if (p->field >= GLYD_COLD_FIELDS) {
    if (p->above) p->above++;
    return;
  }
  p->start_of[p->parity][p->field] = next;
  p->above = p->start_of[p->parity ^ 1][p->field];
  p->above_hash = p->above ? field_hash_at(m, p->above) : 0;
}

static void lines_advance(glyd_cold_model *m, uint8_t byte) {
  glyd_cold_place *const p = &m->place;
  if (byte == '\n') {
    p->line_before = p->line;
    p->line = m->pos + 1;
    p->column = 0;
  } else {
    p->column++;
  }
  p->above = p->line_before + p->column;
  if (p->above >= p->line) p->above = 0;
}

static void code_advance(glyd_cold_place *p, uint8_t byte) {
  if (byte == 0xE8 || byte == 0xE9)
    p->code_state = 1;
  else if (p->code_state)
    p->code_state = p->code_state < 4 ? p->code_state + 1 : 0;
  if (!p->code_state) p->code = glyd_cold_join(p->code & 0xFFFFFF, byte & 0xF8);
}

void glyd_cold_context_advance(glyd_cold_model *m, uint8_t byte) {
  glyd_cold_place *const p = &m->place;
  words_advance(p, byte, m->profile == GLYD_COLD_ROWS);
  switch (m->profile) {
  case GLYD_COLD_ROWS: rows_advance(m, byte); break;
  case GLYD_COLD_BINARY: code_advance(p, byte); break;
  default: lines_advance(m, byte); break;
  }
}

/* Hashes of the contexts 1 … n. The first are orders 2 to 6. */
static void hash_text(const glyd_cold_model *m, uint32_t *h, uint32_t above, uint32_t above_next) {
  const glyd_cold_place *const p = &m->place;
  const uint32_t c1 = m->last4 & 255;
  (void)above_next;
  h[6] = glyd_cold_join(p->word, c1);
  h[7] = glyd_cold_join(p->word, p->word1);
  h[8] = glyd_cold_join(p->word, glyd_cold_join(p->word1, p->word2));
  h[9] = glyd_cold_join(c1, above << 8 | (p->column < 255 ? p->column : 255));
  h[10] = glyd_cold_join(p->word, p->marks);
  h[11] = (m->last4 & 0xF0F0FF) | 0x1000000;
  h[12] = glyd_cold_join(m->after2[m->last4 & 0xFFFF] & 0xFFFFFF, c1);
}

static void hash_binary(const glyd_cold_model *m, uint32_t *h) {
  const glyd_cold_place *const p = &m->place;
  const uint32_t c4 = m->last4, c8 = m->last8, c1 = c4 & 255;
  h[6] = c4 & 0xFF00FF00;
  h[7] = c4 & 0x00FFFF00;
  h[8] = glyd_cold_join(c4 & 0xFFFF0000, c8 & 0xFF);
  h[9] = glyd_cold_join(p->code, p->code_state);
  h[10] = glyd_cold_join(p->code, c1);
  h[11] = glyd_cold_join(m->after1[c1] & 0xFFFF, c1);
  h[12] = glyd_cold_join(m->after2[c4 & 0xFFFF] & 0xFFFFFF, c1);
}

static void hash_rows(const glyd_cold_model *m, uint32_t *h, uint32_t above, uint32_t above_next) {
  const glyd_cold_place *const p = &m->place;
  const uint32_t c4 = m->last4, c1 = c4 & 255;
  h[6] = glyd_cold_join(p->word, c1);
  h[7] = glyd_cold_join(p->field, p->field_hash);
  h[8] = glyd_cold_join(glyd_cold_join(p->field, p->field_column), above << 8 | above_next);
  h[9] = glyd_cold_join(h[7], p->hash_of[(p->field - 1) % GLYD_COLD_FIELDS]);
  h[10] = glyd_cold_join(glyd_cold_join(p->field, p->above_hash), p->field_hash);
  h[11] = glyd_cold_join(glyd_cold_join(p->field, above << 8 | above_next), c4 & 0xFFFF);
  h[12] = glyd_cold_join(p->word, p->word1);
}

void glyd_cold_context_hash(glyd_cold_model *m) {
  const glyd_cold_place *const p = &m->place;
  uint32_t *const h = m->hash;
  const uint32_t above = p->above ? m->data[p->above] : 0;
  const uint32_t above_next = p->above && p->above + 1 < m->pos ? m->data[p->above + 1] : 0;
  h[1] = m->last4 & 0xFFFF;
  h[2] = m->last4 & 0xFFFFFF;
  h[3] = m->last4;
  h[4] = glyd_cold_join(m->last4, m->last8 & 0xFF);
  h[5] = glyd_cold_join(m->last4, m->last8 & 0xFFFF);
  switch (m->profile) {
  case GLYD_COLD_ROWS:
    hash_rows(m, h, above, above_next);
    m->select_place = (p->field < 31 ? p->field : 31) << 3 | (p->field_column < 7 ? p->field_column : 7);
    m->select_above = above;
    break;
  case GLYD_COLD_BINARY:
    hash_binary(m, h);
    m->select_place = (m->pos & 3) << 3 | p->code_state;
    m->select_above = m->last4 >> 8 & 255;
    break;
  default:
    hash_text(m, h, above, above_next);
    m->select_place = p->column < 255 ? p->column : 255;
    m->select_above = m->last4 >> 8 & 255;
    break;
  }
  m->kernel->spread(m);
  m->is_hashed = 1;
}
