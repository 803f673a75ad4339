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

#define LINE 64u /* bytes of a table that one context owns: four slots of a tag and 15 states */
#define SLOT 16u
#define FINAL_LOG_MAX 16u
#define ORDER1_SIZE (256u * 17u * SLOT)

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

static unsigned state_find(const state *states, unsigned n, state wanted) {
  for (unsigned i = 0; i < n; i++)
    if (states[i].ones == wanted.ones && states[i].zeros == wanted.zeros && states[i].bits == wanted.bits &&
        states[i].n_bits == wanted.n_bits)
      return i;
  return n;
}

/* Which pairs of counts there are: the more of one, the fewer of the other. */
static int state_allowed(unsigned zeros, unsigned ones) {
  static const uint8_t most[5] = {44, 16, 10, 6, 5};
  const unsigned less = zeros < ones ? zeros : ones;
  return less < 5 && zeros + ones - less <= most[less];
}

static unsigned states_make(state *states) {
  unsigned n = 0;
  for (unsigned bits = 0; bits < COUNTED; bits++)
    for (unsigned h = 0; h < 1u << bits; h++) {
      const unsigned ones = (unsigned)__builtin_popcount(h);
      states[n++] = (state){(uint8_t)(bits - ones), (uint8_t)ones, (uint8_t)h, (uint8_t)bits};
    }
  for (unsigned total = COUNTED; total <= 48; total++)
    for (unsigned ones = 0; ones <= total; ones++)
      for (unsigned last = 0; last < 2; last++)
        if (state_allowed(total - ones, ones) && (last ? ones : total - ones) > 0)
          states[n++] = (state){(uint8_t)(total - ones), (uint8_t)ones, (uint8_t)last, COUNTED};
  return n;
}

static unsigned state_after(const state *states, unsigned n, state s, unsigned bit) {
  static const uint8_t kept[13] = {0, 1, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5, 5};
  if (s.n_bits < COUNTED - 1u) {
    const state longer = {(uint8_t)(s.zeros + !bit), (uint8_t)(s.ones + bit), (uint8_t)(2u * s.bits + bit),
                          (uint8_t)(s.n_bits + 1)};
    return state_find(states, n, longer);
  }
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
  state next = {(uint8_t)(bit ? other : same), (uint8_t)(bit ? same : other), (uint8_t)bit, COUNTED};
  return state_find(states, n, next);
}

static void make_states(glyd_cold_model *m) {
  state states[GLYD_COLD_STATES];
  const unsigned n = states_make(states);
  for (unsigned i = 0; i < n; i++) {
    m->next[0][i] = (uint8_t)state_after(states, n, states[i], 0);
    m->next[1][i] = (uint8_t)state_after(states, n, states[i], 1);
    /* (ones + 0.4) / (zeros + ones + 0.8) */
    const uint32_t p = ((5u * states[i].ones + 2u) * ((1u << 20) - 1)) / (5u * (states[i].zeros + states[i].ones) + 4u);
    for (unsigned c = 0; c < GLYD_COLD_CONTEXTS; c++)
      m->maps[c * GLYD_COLD_STATES + i] = i ? glyd_cold_entry(m, p) : GLYD_COLD_NEUTRAL;
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
  for (uint32_t p = 0; p < 1u << 16; p++) {
    while (x < GLYD_COLD_LOGIT_MAX && m->squash[x + GLYD_COLD_LOGIT_MAX] < p) x++;
    if (p < 1024) m->stretch_low[p] = (int16_t)x;
    if (p >= 65536 - 1024) m->stretch_high[p - (65536 - 1024)] = (int16_t)x;
    if ((p & 15) == 8) m->stretch[p >> 4] = (int16_t)(x > 2047 ? 2047 : x < -2047 ? -2047 : x);
  }
  for (uint32_t n = 0; n < 1024; n++) m->rate[n] = (uint16_t)(655360u / (10u * n + 16u)); /* 1 / (n + 1.6) */
}

static void make_learnt(glyd_cold_model *m) {
  for (unsigned i = GLYD_COLD_MAP_LENGTH; i < GLYD_COLD_MAP_EXPECTED; i++)
    m->maps[i] = glyd_cold_entry(m, i & 1 ? 3u << 18 : 1u << 18);
  for (unsigned i = GLYD_COLD_MAP_EXPECTED; i < GLYD_COLD_MAP_END; i++) m->maps[i] = GLYD_COLD_NEUTRAL;
  for (unsigned i = 0; i < sizeof m->gate_length / sizeof m->gate_length[0]; i++) m->gate_length[i] = 0xF8000000u;
  for (unsigned t = 0; t < GLYD_COLD_GATE_INPUTS - 2; t++)
    for (unsigned i = 0; i < 1u << m->final_log; i++) m->gate_map[t][i] = 0xF8000000u;
  for (unsigned i = 0; i < sizeof m->gate_mixer / sizeof m->gate_mixer[0]; i++) m->gate_mixer[i] = 1 << 14;
  for (unsigned i = 0; i < sizeof m->final_mixer / sizeof m->final_mixer[0]; i++)
    m->final_mixer[i] = (1 << 14) / (int32_t)GLYD_COLD_SETS;
  for (unsigned i = 0; i < sizeof m->mixer / sizeof m->mixer[0]; i++) m->mixer[i] = i & 1 ? 0 : 2600;
  uint16_t steps[GLYD_COLD_SSE_STEPS];
  for (unsigned i = 0; i < GLYD_COLD_SSE_STEPS; i++)
    steps[i] = m->squash[GLYD_COLD_LOGIT_MAX + glyd_cold_clamp(((int32_t)i - 16) * 178)];
  for (unsigned s = 0; s < GLYD_COLD_SSE; s++)
    for (unsigned i = 0; i < 1u << m->final_log; i++) memcpy(&m->sse[s][i * GLYD_COLD_SSE_STEPS], steps, sizeof steps);
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
  m->final_log = m->table_log < FINAL_LOG_MAX + 6 ? m->table_log - 6 : FINAL_LOG_MAX;
  uint8_t *p = (uint8_t *)workspace + aligned(sizeof *m);
  m->match_short = (uint32_t *)(void *)p;
  m->match_long = m->match_short + ((size_t)1 << m->match_log);
  m->match_line = m->match_short;
  m->far_line = m->match_long;
  for (unsigned i = 0; i < GLYD_COLD_ENTRIES; i++) m->entries[i] = GLYD_COLD_NEUTRAL;
  m->entries[GLYD_COLD_CONTEXTS + 2] = GLYD_COLD_NEUTRAL | 256; /* a bias */
  m->order1 = p + ((size_t)8 << m->match_log);
  m->tables = m->order1 + ORDER1_SIZE;
  memset(p, 0, (size_t)(m->tables - p) + ((size_t)(GLYD_COLD_CONTEXTS - 1) << m->table_log));
  make_curves(m);
  make_states(m);
  make_learnt(m);
  return m;
}

/* ---- slots ------------------------------------------------------------------ */

/* The line of a context: itself or its neighbour, whichever has its tag; else
 * the one of them that has been used less begins anew. */
static uint8_t *find_line(uint8_t *table, uint32_t log, uint32_t hash) {
  const uint8_t tag = (uint8_t)(hash | (uint32_t)((hash & 255) == 0));
  const size_t at = (size_t)(hash >> (32 - (log - 6)));
  uint8_t *const first = table + at * LINE;
  if (first[0] == tag) return first;
  uint8_t *const second = table + (at ^ 1) * LINE;
  if (second[0] == tag) return second;
  uint8_t *const line = second[1] < first[1] ? second : first;
  memset(line, 0, LINE);
  line[0] = tag;
  return line;
}

/* The slot of the second half of a byte; the tag is its first half. */
static uint8_t *find_half(uint8_t *line, uint8_t tag) {
  uint8_t *slot = line + SLOT;
  for (unsigned i = 1; i < 4; i++)
    if (line[i * SLOT] == tag) return line + i * SLOT;
  for (unsigned i = 2; i < 4; i++)
    if (line[i * SLOT + 1] < slot[1]) slot = line + i * SLOT;
  memset(slot, 0, SLOT);
  slot[0] = tag;
  return slot;
}

void glyd_cold_model_byte(glyd_cold_model *m, uint32_t failed) {
  if (!m->is_hashed) glyd_cold_context_hash(m);
  m->is_hashed = 0;
  m->order = 0;
  m->slots[0] = m->order1 + (size_t)(m->last4 & 255) * 17 * SLOT;
  for (uint32_t i = 1; i < GLYD_COLD_CONTEXTS; i++) {
    uint8_t *const line = find_line(m->tables + ((size_t)(i - 1) << m->table_log), m->table_log, m->hash[i]);
    m->slots[i] = line;
    if (i < GLYD_COLD_ORDERS && line[1]) m->order = i;
  }
  m->learn_shift = m->pos < 8192 ? 5 : m->pos < 131072 ? 6 : 7;
  m->failed = failed;
  m->bits = m->node = 1;
  m->shift = 7;
}

void glyd_cold_model_half(glyd_cold_model *m) {
  m->slots[0] += (m->bits & 15) * SLOT + SLOT;
  for (uint32_t i = 1; i < GLYD_COLD_CONTEXTS; i++) m->slots[i] = find_half(m->slots[i], (uint8_t)m->bits);
  m->node = 1;
}
