/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Setting up the model, its slots and the gate. All in integers: the same on
 * every machine.
 */
#include "cold/cold_common.h"
#include "cold/cold_context.h"
#include "common/alloc.h"
#include "common/cpu.h"

#define ORDER1_SIZE (256u * 17u * 16u)

static uint64_t aligned(uint64_t n) { return (n + 63) & ~(uint64_t)63; }

_Static_assert(((sizeof(glyd_cold_model) + 63) & ~(size_t)63) + ORDER1_SIZE <= GLYD_COLD_FIXED_MEMORY, "all fits");
_Static_assert(GLYD_COLD_TABLES == GLYD_COLD_CONTEXTS - 1, "but for the first, each context has a table");

/* ---- tables that do not change --------------------------------------------- */

/* A state stands for what has come after a context: up to three bits exactly,
 * then how many zeros and ones, and the last bit. */
typedef struct state {
  uint8_t zeros, ones, bits, n_bits; /* n_bits 4: bits is the last one */
} state;

#define COUNTED 4u
#define TOTAL_MAX 48u

typedef struct states {
  state of[GLYD_COLD_STATES];
  unsigned n;
  uint8_t counted[TOTAL_MAX + 1][TOTAL_MAX + 1][2]; /* where a state is, by zeros, ones and the last bit */
} states;

/* Which pairs of counts there are: the more of one, the fewer of the other. */
static int state_allowed(unsigned zeros, unsigned ones) {
  static const uint8_t most[5] = {44, 16, 10, 6, 5};
  const unsigned less = zeros < ones ? zeros : ones;
  return less < 5 && zeros + ones - less <= most[less];
}

static void states_make(states *all) {
  all->n = 0;
  for (unsigned bits = 0; bits < COUNTED; bits++)
    for (unsigned h = 0; h < 1u << bits; h++) {
      const unsigned ones = (unsigned)__builtin_popcount(h);
      all->of[all->n++] = (state){(uint8_t)(bits - ones), (uint8_t)ones, (uint8_t)h, (uint8_t)bits};
    }
  for (unsigned total = COUNTED; total <= TOTAL_MAX; total++)
    for (unsigned ones = 0; ones <= total; ones++)
      for (unsigned last = 0; last < 2; last++)
        if (state_allowed(total - ones, ones) && (last ? ones : total - ones) > 0) {
          all->counted[total - ones][ones][last] = (uint8_t)all->n;
          all->of[all->n++] = (state){(uint8_t)(total - ones), (uint8_t)ones, (uint8_t)last, COUNTED};
        }
}

static uint8_t state_after(const states *all, state s, unsigned bit) {
  static const uint8_t kept[13] = {0, 1, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5, 5};
  if (s.n_bits < COUNTED - 1u) return (uint8_t)((2u << s.n_bits) - 1 + 2u * s.bits + bit);
  unsigned same = (bit ? s.ones : s.zeros) + 1u;
  unsigned other = bit ? s.zeros : s.ones;
  other = other < sizeof kept ? kept[other] : 6;
  while (!state_allowed(same, other)) {
    if (state_allowed(same - 1, other) || other == 0)
      same--;
    else
      other--;
  }
  while (same + other < COUNTED) same++;
  return bit ? all->counted[other][same][1] : all->counted[same][other][0];
}

static void make_states(glyd_cold_model *m) {
  states all;
  states_make(&all);
  for (unsigned i = 0; i < all.n; i++) {
    const state s = all.of[i];
    m->next[0][i] = state_after(&all, s, 0);
    m->next[1][i] = state_after(&all, s, 1);
    /* (ones + 0.4) / (zeros + ones + 0.8) */
    const uint32_t p = ((5u * s.ones + 2u) * ((1u << 20) - 1)) / (5u * (s.zeros + s.ones) + 4u);
    const uint32_t entry = i ? glyd_cold_entry(p) : GLYD_COLD_NEUTRAL;
    for (unsigned c = 0; c < GLYD_COLD_CONTEXTS; c++) m->maps[c * GLYD_COLD_STATES + i] = entry;
  }
}

/* squash(x) = 65536 / (1 + e^(-x/256)); stretch is its inverse. */
static void make_curves(glyd_cold_model *m) {
  uint64_t t = (uint64_t)1 << 32; /* e^(-x/256) · 2^32 */
  for (int32_t x = 0; x <= GLYD_COLD_LOGIT_MAX; x++) {
    uint32_t p = (uint32_t)((t << 16) / (((uint64_t)1 << 32) + t)); /* of a one at -x */
    if (p < 1) p = 1;
    m->squash[GLYD_COLD_LOGIT_MAX - x] = (uint16_t)p;
    m->squash[GLYD_COLD_LOGIT_MAX + x] = (uint16_t)(65536 - p);
    t = t * 2139111478u >> 31; /* e^(-1/256) · 2^31 */
  }
  int32_t x = -GLYD_COLD_LOGIT_MAX;
  for (uint32_t p = 0; p < 1u << 16; p += p < 1024 || p >= 65536 - 1024 ? 1 : 16) { /* between the ends by 16 */
    while (x < GLYD_COLD_LOGIT_MAX && m->squash[x + GLYD_COLD_LOGIT_MAX] < p) x++;
    if (p < 1024) m->stretch_low[p] = (int16_t)x;
    if (p >= 65536 - 1024) m->stretch_high[p - (65536 - 1024)] = (int16_t)x;
    m->stretch[p >> 4] = (int16_t)(x > 2047 ? 2047 : x < -2047 ? -2047 : x);
  }
  for (uint32_t n = 0; n < 1024; n++) m->rate[n] = (uint16_t)(655360u / (10u * n + 16u)); /* 1 / (n + 1.6) */
}

static void make_learnt(glyd_cold_model *m) {
  for (unsigned i = GLYD_COLD_MAP_LENGTH; i < GLYD_COLD_MAP_EXPECTED; i++)
    m->maps[i] = glyd_cold_entry(i & 1 ? 3u << 18 : 1u << 18);
  for (unsigned i = GLYD_COLD_MAP_EXPECTED; i < GLYD_COLD_MAP_END; i++) m->maps[i] = GLYD_COLD_NEUTRAL;
  m->maps[GLYD_COLD_MAP_BIAS] = GLYD_COLD_BIAS;
  for (unsigned i = 0; i < sizeof m->gate_length / sizeof m->gate_length[0]; i++) m->gate_length[i] = 0xF8000000u;
  for (unsigned t = 0; t < GLYD_COLD_GATE_INPUTS - 2; t++)
    for (unsigned i = 0; i < 1u << m->final_log; i++) m->gate_map[t][i] = 0xF8000000u;
  for (unsigned i = 0; i < sizeof m->gate_mixer / sizeof m->gate_mixer[0]; i++) m->gate_mixer[i] = 1 << 14;
  for (unsigned i = 0; i < sizeof m->final_mixer / sizeof m->final_mixer[0]; i++)
    m->final_mixer[i] = (1 << 14) / (int32_t)GLYD_COLD_SETS;
  int16_t weights[GLYD_COLD_INPUTS];
  for (unsigned i = 0; i < GLYD_COLD_INPUTS; i++) weights[i] = i & 1 ? 0 : 2600;
  for (unsigned i = 0; i < GLYD_COLD_ROW_END; i++) memcpy(&m->mixer[i * GLYD_COLD_INPUTS], weights, sizeof weights);
  uint16_t steps[GLYD_COLD_FINAL_STEPS];
  for (unsigned i = 0; i < GLYD_COLD_FINAL_STEPS; i++)
    steps[i] = m->squash[GLYD_COLD_LOGIT_MAX +
                         glyd_cold_clamp((int32_t)(i * 65536 / GLYD_COLD_FINAL_SCALE) - GLYD_COLD_LOGIT_MAX)];
  for (unsigned i = 0; i < 1u << m->final_log; i++)
    memcpy(&m->final_stage[i * GLYD_COLD_FINAL_STEPS], steps, sizeof steps);
}

static const glyd_cold_kernel *kernel_for(unsigned cpu) {
#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX512) return &glyd_cold_kernel_avx512;
  if (cpu & GLYD_CPU_AVX2) return &glyd_cold_kernel_avx2;
#endif
  (void)cpu;
  return &glyd_cold_kernel_scalar;
}

glyd_cold_model *glyd_cold_model_begin(unsigned cpu, void *workspace, unsigned profile, const uint8_t *data,
                                       size_t len) {
  if (profile >= GLYD_COLD_PROFILES) return NULL;
  glyd_cold_model *const m = workspace;
  glyd_alloc_use_whole(workspace, glyd_cold_memory(len));
  memset(m, 0, offsetof(glyd_cold_model, mixer));
  m->kernel = kernel_for(cpu);
  m->data = data;
  m->profile = profile;
  m->table_log = glyd_cold_table_log(len);
  m->match_log = glyd_cold_match_log(len);
  m->final_log = m->table_log < GLYD_COLD_FINAL_LOG_MAX + 6 ? m->table_log - 6 : GLYD_COLD_FINAL_LOG_MAX;
  uint8_t *p = (uint8_t *)workspace + aligned(sizeof *m);
  m->match_short = (uint32_t *)(void *)p;
  m->match_long = m->match_short + ((size_t)1 << m->match_log);
  m->match_line = m->match_short;
  m->far_line = m->match_long;
  m->order1 = p + ((size_t)8 << m->match_log);
  m->tables = m->order1 + ORDER1_SIZE;
  memset(p, 0, (size_t)(m->tables - p) + ((size_t)(GLYD_COLD_CONTEXTS - 1) << m->table_log));
  make_curves(m);
  make_states(m);
  make_learnt(m);
  return m;
}

void glyd_cold_model_learn(glyd_cold_model *m, size_t n) {
  glyd_arith_writer nowhere; /* without room: what is written is dropped */
  glyd_arith_writer_init(&nowhere, NULL, NULL);
  const uint8_t *const data = m->data + m->pos;
  for (size_t i = 0; i < n; i++) {
    const uint32_t gate = glyd_cold_match_gate(m);
    if (!gate || (m->expected & 255) != data[i]) m->kernel->encode(m, &nowhere, gate != 0, data[i]);
    glyd_cold_match_advance(m);
  }
}
