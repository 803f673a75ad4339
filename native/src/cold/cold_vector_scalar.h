/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Inputs, sums of products and learning in plain C, for cold_kernel.h: what
 * the other forms must equal.
 */
#include "cold/cold_vector_plain.h"

typedef union vector {
  uint32_t entry[GLYD_COLD_ENTRIES];
  int16_t of[GLYD_COLD_INPUTS];
} vector;
#define N_VECTORS 1u

typedef struct four {
  int32_t of[GLYD_COLD_SETS];
} four;

GLYD_INLINE vector load_row(const int16_t *row, unsigned i) {
  vector v;
  memcpy(&v, row + i * GLYD_COLD_INPUTS, sizeof v);
  return v;
}
GLYD_INLINE void store_row(int16_t *row, unsigned i, vector v) { memcpy(row + i * GLYD_COLD_INPUTS, &v, sizeof v); }

GLYD_INLINE vector inputs(vector e) {
  vector x;
  for (unsigned i = 0; i < GLYD_COLD_ENTRIES; i++) {
    x.of[2 * i] = (int16_t)((int32_t)(e.entry[i] << 20) >> 20);
    x.of[2 * i + 1] = (int16_t)(((int32_t)(e.entry[i] >> 16) - 32768) >> 5);
  }
  return x;
}

GLYD_INLINE void look_up(nibble *half, const glyd_cold_model *m, uint32_t node, uint32_t one, uint32_t two,
                         vector *entries) {
  for (unsigned i = 0; i < GLYD_COLD_CONTEXTS; i++) half->from[i] = i * GLYD_COLD_STATES + m->slots[i][node];
  half->from[13] = one;
  half->from[14] = two;
  for (unsigned i = 0; i < GLYD_COLD_ENTRIES - 1; i++) entries->entry[i] = m->maps[half->from[i]];
  entries->entry[GLYD_COLD_ENTRIES - 1] = GLYD_COLD_BIAS;
}

GLYD_INLINE int32_t logit_of(const vector *x, const int16_t *w) {
  uint32_t sum = 0;
  for (unsigned i = 0; i < GLYD_COLD_INPUTS; i++) sum += (uint32_t)(x->of[i] * w[i]);
  return glyd_cold_clamp((int32_t)sum >> 14);
}

GLYD_INLINE four dot_four(const vector *x, const vector *w0, const int16_t *w1, const int16_t *w2, const int16_t *w3) {
  return (four){{logit_of(x, w0->of), logit_of(x, w1), logit_of(x, w2), logit_of(x, w3)}};
}

GLYD_INLINE int32_t weigh(four logits, const int32_t *weights) {
  int32_t sum = 0;
  for (unsigned s = 0; s < GLYD_COLD_SETS; s++) sum += logits.of[s] * weights[s];
  return sum;
}

GLYD_INLINE four errors_of(const glyd_cold_model *m, four logits, int32_t target) {
  four errors;
  for (unsigned s = 0; s < GLYD_COLD_SETS; s++)
    errors.of[s] = ((target - m->squash[logits.of[s] + GLYD_COLD_LOGIT_MAX]) * MIXER_RATE) >> 12;
  return errors;
}

GLYD_INLINE int32_t one_of(four v, unsigned i) { return v.of[i]; }

GLYD_INLINE vector trained(vector x, vector w, int32_t error) {
  for (unsigned i = 0; i < GLYD_COLD_INPUTS; i++) {
    const int32_t next = w.of[i] + ((x.of[i] * error + (1 << 14)) >> 15);
    w.of[i] = (int16_t)(next > INT16_MAX ? INT16_MAX : next < INT16_MIN ? INT16_MIN : next);
  }
  return w;
}

GLYD_INLINE void train_row(const vector *x, int16_t *row, int32_t error) {
  store_row(row, 0, trained(*x, load_row(row, 0), error));
}

GLYD_INLINE void train_final(int32_t *weights, four logits, int32_t error) {
  for (unsigned s = 0; s < GLYD_COLD_SETS; s++) {
    const int32_t w = weights[s] + ((logits.of[s] * error + (1 << 15)) >> 16);
    weights[s] = w > FINAL_MAX ? FINAL_MAX : w < -FINAL_MAX ? -FINAL_MAX : w;
  }
}

/* As glyd_cold_log but for a constant: the bits of a float, which numbers below 2^24 are exactly. Compilers make loops
 * of it that take four at a time. */
GLYD_INLINE int32_t log_of(int32_t v) {
  const float f = (float)v;
  int32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

GLYD_INLINE void learn(nibble *half, glyd_cold_model *m, uint32_t node, uint32_t step, uint32_t bit,
                       uint32_t is_expected, uint32_t shift, const vector *entries) {
  (void)step;
  (void)is_expected;
  uint32_t learnt[GLYD_COLD_ENTRIES];
  const int32_t target = bit ? (1 << 20) - 1 : 0;
  for (unsigned i = 0; i < GLYD_COLD_ENTRIES; i++) {
    const int32_t before = (int32_t)(entries->entry[i] >> 12);
    const int32_t p = before + ((target - before) >> shift);
    int32_t logit = ((log_of(2 * p + 1) - log_of((1 << 21) - 2 * p - 1)) >> 11) * 177 >> 12;
    logit = logit > 2047 ? 2047 : logit;
    logit = logit < -2047 ? -2047 : logit;
    learnt[i] = (uint32_t)p << 12 | ((uint32_t)logit & 4095);
  }
  keep_learnt(half, m, node, bit, learnt);
}
