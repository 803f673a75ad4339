/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "cold/cold_decode.h"

#include "cold/cold_common.h"

uint64_t glyd_cold_decode_workspace(uint64_t content) { return glyd_cold_memory(content); }

glyd_status glyd_cold_decode(unsigned cpu, void *workspace, uint8_t *out, size_t out_len, const uint8_t *in,
                             size_t in_len) {
  return glyd_cold_decode_after(cpu, workspace, out, 0, out_len, in, in_len);
}

glyd_status glyd_cold_decode_after(unsigned cpu, void *workspace, uint8_t *out, size_t history, size_t out_len,
                                   const uint8_t *in, size_t in_len) {
  if (in_len < GLYD_COLD_HEADER + GLYD_COLD_CODE_TAIL || out_len > GLYD_COLD_CONTENT_MAX) return GLYD_E_CORRUPT;
  glyd_cold_model *const m = glyd_cold_model_begin(cpu, workspace, in[0], out, history + out_len);
  if (!m) return GLYD_E_CORRUPT;
  glyd_cold_model_learn(m, history);
  out += history;
  glyd_arith_reader r;
  glyd_arith_reader_init(&r, in + GLYD_COLD_HEADER, in + in_len);
  for (size_t i = 0; i < out_len; i++) {
    const uint32_t gate = glyd_cold_match_gate(m);
    if (gate && glyd_arith_reader_get(&r, gate))
      out[i] = (uint8_t)m->expected;
    else
      out[i] = (uint8_t)m->kernel->decode(m, &r, gate != 0);
    glyd_cold_match_advance(m);
    if (r.is_short) return GLYD_E_CORRUPT;
  }
  return r.at == r.end ? GLYD_OK : GLYD_E_CORRUPT;
}
