/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The states of half a byte, looked up and changed where they are, one by one.
 */
typedef struct nibble {
  uint32_t from[GLYD_COLD_ENTRIES]; /* which entries this bit is coded with */
} nibble;

GLYD_INLINE void begin_nibble(nibble *half, const glyd_cold_model *m) {
  (void)half;
  (void)m;
}

GLYD_INLINE void end_nibble(const nibble *half, const glyd_cold_model *m, uint32_t node) {
  (void)half;
  (void)m;
  (void)node;
}

GLYD_INLINE void keep_learnt(const nibble *half, glyd_cold_model *m, uint32_t node, uint32_t bit,
                             const uint32_t *learnt) {
  const uint8_t *const next = m->next[bit];
#pragma GCC unroll 13
  for (unsigned i = 0; i < GLYD_COLD_CONTEXTS; i++) {
    m->maps[half->from[i]] = learnt[i];
    m->slots[i][node] = next[half->from[i] & 255];
  }
  m->maps[half->from[13]] = learnt[13];
  m->maps[half->from[14]] = learnt[14];
  m->maps[GLYD_COLD_MAP_NONE] = GLYD_COLD_NEUTRAL;
}
