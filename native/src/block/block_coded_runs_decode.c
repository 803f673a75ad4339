/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "block/block_coded_runs_decode.h"

#include "common/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* What has been read of the planes, and written. */
typedef struct runs_state {
  const uint8_t *command, *literal_escape, *match_escape;
  const uint32_t *longs;
  size_t at;
} runs_state;

/* One command after the other, up to end. */
static glyd_status mark_slowly(const glyd_coded_planes *p, runs_state *s, const uint8_t *end, uint8_t *out, size_t n) {
  for (; s->command < end; s->command++) {
    const unsigned c = *s->command;
    size_t ll = c & 3;
    out[s->at] = ll != 0 ? GLYD_CODED_RUN_CONTEXT(c) : 0;
    if (ll == GLYD_CODED_LITERALS_ESCAPE) {
      if (s->literal_escape == p->literal_escapes_end) return GLYD_E_CORRUPT;
      ll += *s->literal_escape++;
      if (ll >= GLYD_CODED_LONG) {
        if (s->longs == p->longs_end) return GLYD_E_CORRUPT;
        ll = *s->longs++;
      }
    }
    if ((c >> 2 & 15) == GLYD_CODED_LENGTHS) {
      if (s->match_escape == p->match_escapes_end) return GLYD_E_CORRUPT;
      if ((size_t)p->lengths[GLYD_CODED_LENGTHS] + *s->match_escape++ >= GLYD_CODED_LONG) {
        if (s->longs == p->longs_end) return GLYD_E_CORRUPT;
        s->longs++;
      }
    }
    if (ll > n - s->at) return GLYD_E_CORRUPT;
    s->at += ll;
  }
  return GLYD_OK;
}

#if defined(__x86_64__)
#define EACH(byte) ((byte)*0x0101010101010101u)

/* Eight commands at a time where none of their lengths is large: branches on lengths
 * are hard to foresee, and took four times as long. */
__attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt"))) static glyd_status
mark_bmi2(const glyd_coded_planes *p, runs_state *s, uint8_t *out, size_t n) {
  const uint8_t *command = s->command;
  while (p->commands_end - command >= 8) {
    const uint64_t c = glyd_load64(command), field = c & EACH(3u);
    const uint64_t escaped = field & field >> 1 & EACH(1u), some = (field | field >> 1) & EACH(1u);
    const uint64_t match_escaped = c >> 2 & c >> 3 & c >> 4 & c >> 5 & EACH(1u);
    const unsigned n_escaped = (unsigned)_mm_popcnt_u64(escaped), n_matches = (unsigned)_mm_popcnt_u64(match_escaped);
    uint64_t escapes = 0;
    int slow = p->literal_escapes_end - s->literal_escape < 8 || p->match_escapes_end - s->match_escape < 8;
    if (GLYD_LIKELY(!slow)) {
      escapes = _pdep_u64(glyd_load64(s->literal_escape), (escaped << 8) - escaped);
      slow = ((escapes & EACH(0xF0u)) | (_bzhi_u64(glyd_load64(s->match_escape), n_matches * 8) & EACH(0x80u))) != 0;
    }
    if (GLYD_UNLIKELY(slow)) {
      s->command = command;
      const glyd_status status = mark_slowly(p, s, command + 8, out, n);
      if (status != GLYD_OK) return status;
      command += 8;
      continue;
    }
    const uint64_t ends = (field + escapes) * EACH(1u); /* at most 8 · 18 */
    if (GLYD_UNLIKELY(ends >> 56 > n - s->at)) return GLYD_E_CORRUPT;
    s->literal_escape += n_escaped;
    s->match_escape += n_matches;
    uint64_t contexts = c & EACH(0xFBu) & ((some << 8) - some);
    uint64_t starts = ends << 8;
    uint8_t *const to = out + s->at;
    for (unsigned k = 0; k < 8; k++) { /* where one has no literals the next one writes there as well */
      to[starts & 255] = (uint8_t)contexts;
      starts >>= 8;
      contexts >>= 8;
    }
    s->at += ends >> 56;
    command += 8;
  }
  s->command = command;
  return mark_slowly(p, s, p->commands_end, out, n);
}
#endif

_Static_assert(GLYD_CODED_RUN_CONTEXT(0xFF) == 0xFB && GLYD_CODED_LITERALS_ESCAPE == 3 && GLYD_CODED_LENGTHS == 15,
               "as in mark_bmi2");

glyd_status glyd_coded_mark_runs(unsigned cpu, const glyd_coded_planes *planes, uint8_t *out, size_t n) {
  runs_state s = {planes->commands, planes->literal_escapes, planes->match_escapes, planes->longs, 0};
  memset(out, 0, n);
#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX2) return mark_bmi2(planes, &s, out, n);
#endif
  (void)cpu;
  return mark_slowly(planes, &s, planes->commands_end, out, n);
}
