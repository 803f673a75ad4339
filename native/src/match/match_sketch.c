/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "match/match_sketch.h"

#include "common/cpu.h"
#include "match/match_marks.h"

#define SPACING_LOG 12u
#define WINDOW ((size_t)GLYD_FINGERPRINT_SPACING) /* bytes that a fingerprint depends on */
_Static_assert(GLYD_FINGERPRINT_SPACING == GLYD_MARKS_AT_ONCE, "places of a call are as far as the window reaches");
_Static_assert(sizeof(((glyd_fingerprint_state *)0)->tail) == GLYD_FINGERPRINT_SPACING - 1, "places yet to be seen");

static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static uint64_t fingerprint(const uint8_t *p) {
  uint64_t h = 0;
  for (size_t i = 0; i < WINDOW; i += 8) h = mix(h + glyd_load64(p + i));
  return h;
}

/* What is found, in the order of places. */
typedef struct walk {
  unsigned cpu;
  uint64_t *out;
  size_t n;
  size_t wait; /* places that may give none */
} walk;

/* Places data[0 … places), after each of which WINDOW - 1 bytes follow. */
static void walk_places(walk *w, const uint8_t *data, size_t places) {
  size_t next = w->wait;
  for (size_t at = 0; at < places; at += GLYD_MARKS_AT_ONCE) {
    /* a whole look reads 72 bytes, which are there: the last place has 63 behind it */
    uint64_t marks = places - at >= GLYD_MARKS_AT_ONCE
                         ? glyd_match_marks(w->cpu, data + at, SPACING_LOG)
                         : glyd_match_marks_first(data + at, (unsigned)(places - at), SPACING_LOG);
    for (; marks; marks &= marks - 1) {
      const size_t place = at + glyd_ctz64(marks);
      if (place < next) continue;
      w->out[w->n++] = fingerprint(data + place);
      next = place + WINDOW;
    }
  }
  w->wait = next > places ? next - places : 0;
}

size_t glyd_match_sketch(glyd_fingerprint_state *state, const uint8_t *data, size_t len, uint64_t *out) {
  walk w = {.cpu = glyd_cpu_features(), .out = out, .wait = state->wait};
  uint8_t seam[2 * (GLYD_FINGERPRINT_SPACING - 1)]; /* the end of the content so far, and the start of this piece */
  const size_t old = state->tail_size, taken = len < WINDOW - 1 ? len : WINDOW - 1;
  memcpy(seam, state->tail, old);
  if (taken > 0) memcpy(seam + old, data, taken);
  const size_t in_seam = old + taken >= WINDOW ? old + taken - (WINDOW - 1) : 0; /* places to see there */
  walk_places(&w, seam, in_seam);
  if (taken == len) { /* all of it is in the seam */
    state->tail_size = (uint32_t)(old + taken - in_seam);
    memcpy(state->tail, seam + in_seam, state->tail_size);
  } else { /* the seam has seen all places of the tail, which has WINDOW - 1 bytes behind it now */
    const size_t places = len - (WINDOW - 1);
    walk_places(&w, data, places);
    state->tail_size = WINDOW - 1;
    memcpy(state->tail, data + places, WINDOW - 1);
  }
  state->wait = (uint32_t)w.wait;
  return w.n;
}
