/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The match model: which byte came after the longest context that was found
 * before, and the gate, which codes that it comes again in one bit.
 */
#include "cold/cold_context.h"

#define SHORT_MIN 6u     /* bytes of the short context */
#define LONG_MIN 16u     /* of the long one */
#define VERIFY_MAX 32u   /* a found context is compared so far */
#define SEARCH_BELOW 16u /* a match that agreed in fewer bytes is given up for a longer one */
#define LENGTH_MAX 65535u
#define MISSES_MAX 8u /* after so many the match is over */
#define GATE_LENGTH 64u
/* bytes that agreed before the gate is asked */
#define GATE_P_MIN 65300u /* of 65536: the gate is used from this chance on */
#define GATE_LIMIT 255u

/* Classes of lengths, 0 … 63: exact, then four a doubling. */
static uint32_t length_class(uint32_t len) {
  if (len < 16) return len;
  const uint32_t log = glyd_log2_32(len);
  return 16 + (log - 4) * 4 + (len >> (log - 2) & 3);
}

_Static_assert(LENGTH_MAX < 65536, "class 63 is the last one");

uint32_t glyd_cold_match_gate(glyd_cold_model *m) {
  m->expected = m->gate_p = m->length_class = 0;
  if (m->match.at == 0) return 0;
  const uint32_t byte = m->data[m->match.at];
  const uint32_t misses = m->match.misses < 3 ? m->match.misses : 3;
  const uint32_t class = length_class(m->match.len);
  m->expected = byte + 256;
  m->length_class = class * 4 + misses;
  m->grade = class < 16 ? 0 : class < 24 ? 1 : 2;
  if (m->match.len < GATE_LENGTH) return 0;
  const glyd_cold_place *const place = &m->place;
  const uint32_t column = place->field_column < 255 ? place->field_column : 255;
  m->gate_entry[0] = &m->gate_length[m->length_class];
  const uint32_t shift = 32 - m->final_log;
  m->gate_entry[1] = &m->gate_map[0][glyd_cold_mix((m->last4 & 255) << 8 | byte) >> shift];
  m->gate_entry[2] = &m->gate_map[1][glyd_cold_mix((m->last4 & 0xFFFFFF) << 8 | byte) >> shift];
  m->gate_entry[3] =
      &m->gate_map[2][glyd_cold_mix(glyd_cold_join(place->field << 8 | column, misses << 8 | byte)) >> shift];
  m->gate_weights = &m->gate_mixer[class * 8];
  int64_t sum = 0;
  for (unsigned i = 0; i < GLYD_COLD_GATE_INPUTS - 1; i++) {
    m->gate_x[i] = glyd_cold_stretch(m, *m->gate_entry[i] >> 16);
    sum += (int64_t)m->gate_x[i] * m->gate_weights[i];
  }
  sum >>= 16;
  const int32_t logit = sum > GLYD_COLD_LOGIT_MAX ? GLYD_COLD_LOGIT_MAX : sum < 0 ? 0 : (int32_t)sum;
  m->gate_p = m->squash[logit + GLYD_COLD_LOGIT_MAX];
  return m->gate_p >= GATE_P_MIN ? m->gate_p : 0;
}

static void gate_learn(glyd_cold_model *m, uint32_t hit) {
  const int32_t error = ((int32_t)(hit << 16) - (int32_t)m->gate_p) >> 4;
  for (unsigned i = 0; i < GLYD_COLD_GATE_INPUTS - 1; i++) {
    const int32_t w = m->gate_weights[i] + ((m->gate_x[i] * error + (1 << 13)) >> 14);
    m->gate_weights[i] = w > 1 << 20 ? 1 << 20 : w < -(1 << 20) ? -(1 << 20) : w;
    glyd_cold_learn(m, m->gate_entry[i], hit, GATE_LIMIT);
  }
}

/* Bytes before a and b that agree, at most VERIFY_MAX. */
static uint32_t common_before(const uint8_t *data, uint32_t a, uint32_t b) {
  uint32_t n = 0;
  while (n < VERIFY_MAX && n < a && data[a - 1 - n] == data[b - 1 - n]) n++;
  return n;
}

static void consider(const uint8_t *data, glyd_cold_match *match, uint32_t at, uint32_t next, uint32_t least) {
  if (at == 0) return;
  const uint32_t len = common_before(data, at, next);
  if (len >= least && len > match->len) *match = (glyd_cold_match){at, len, 0};
}

void glyd_cold_match_advance(glyd_cold_model *m) {
  const uint8_t byte = m->data[m->pos];
  const uint32_t next = m->pos + 1;
  glyd_cold_match *const match = &m->match;
  if (m->gate_p) gate_learn(m, match->at && m->data[match->at] == byte);
  m->after2[m->last4 & 0xFFFF] = m->after2[m->last4 & 0xFFFF] << 8 | byte;
  m->after1[m->last4 & 255] = m->after1[m->last4 & 255] << 8 | byte;
  m->last8 = m->last8 << 8 | m->last4 >> 24;
  m->last4 = m->last4 << 8 | byte;
  glyd_cold_context_advance(m, byte);
  if (match->at) {
    if (m->data[match->at] == byte) {
      match->len += match->len < LENGTH_MAX;
      if (match->len >= LONG_MIN) match->misses = 0;
    } else {
      match->len = 0;
      match->misses++;
    }
    match->at = match->misses > MISSES_MAX ? 0 : match->at + 1;
  }
  m->pos = next;
  if (match->len < GATE_LENGTH) glyd_cold_context_hash(m);
  m->long_hash = (m->long_hash + byte + 1) * (0x2F0B4C47u << 2);
  uint32_t *const far = &m->far_line[(uint32_t)(byte * 0x9E3779B1u) >> 28];
  uint32_t *const near = &m->match_line[(uint32_t)(byte * 0x9E3779B1u) >> 28];
  if (match->len < SEARCH_BELOW) {
    consider(m->data, match, *far, next, LONG_MIN);
    consider(m->data, match, *near, next, SHORT_MIN);
  }
  *far = *near = next;
  const uint32_t five = glyd_cold_mix(m->last4 * 0x9E3779B1u + (m->last8 & 255));
  m->match_line = m->match_short + ((size_t)(five >> (32 - (m->match_log - 4))) << 4);
  m->far_line = m->match_long + ((size_t)((m->long_hash * 0x9E3779B1u) >> (32 - (m->match_log - 4))) << 4);
  __builtin_prefetch(m->match_line);
  __builtin_prefetch(m->far_line);
}
