/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_base_encode.h"

#include "base/base_copies_encode.h"
#include "base/base_excerpts.h"
#include "base/base_map_encode.h"
#include "block/block_encode.h"

#define REACH_AROUND_MIN 4
#define REACH_AROUND_MAX 12
#define REACH_GAP 14
#define NOISE_MIN ((size_t)64 << 10) /* bytes of gaps of which it is asked whether they are noise */
#define NOISE_STEP 512u              /* by NOISE_TAKEN bytes of each of so many */
#define NOISE_TAKEN 64u
#define WINDOWS 32u           /* parts of a segment that are looked at */
#define WINDOW ((size_t)2048) /* bytes of each */

typedef struct parts {
  glyd_base_copy *copies;
  uint8_t *work; /* excerpts, then the rest */
  glyd_base_copies_encoder *numbers;
  void *lz;
} parts;

static uint64_t round_up(uint64_t n) { return (n + 63) & ~(uint64_t)63; }

/* The rest is small where a base is of use: it is worth level max at least
 * then, which costs readers nothing they would notice. */
static glyd_lz_config config_of_rest(const glyd_lz_config *config, size_t len, size_t rest) {
  glyd_lz_config c = *config;
  c.long_distance = 0;
  if (rest <= len / 8 && c.level < GLYD_LEVEL_MAX) c.level = GLYD_LEVEL_MAX;
  return c;
}

static uint64_t lz_workspace(const glyd_lz_config *config) {
  const glyd_lz_config strong = config_of_rest(config, 1, 0), own = config_of_rest(config, 0, 1);
  const size_t a = glyd_lz_encode_workspace(&strong), b = glyd_lz_encode_workspace(&own);
  const uint64_t most = a > b ? a : b;
  return most > GLYD_BASE_FIND_WORKSPACE ? most : GLYD_BASE_FIND_WORKSPACE; /* copies are found before */
}

static uint64_t lay_parts(const glyd_lz_config *config, uint8_t *workspace, parts *p) {
  uint64_t at = 0;
  const uint64_t len = config->segment_size;
  const uint64_t sizes[4] = {GLYD_BASE_COPIES_MAX(len) * sizeof(glyd_base_copy), len, sizeof(glyd_base_copies_encoder),
                             lz_workspace(config)};
  uint64_t starts[4];
  for (unsigned i = 0; i < 4; i++) {
    starts[i] = at;
    at += round_up(sizes[i]);
  }
  if (p)
    *p = (parts){(void *)(workspace + starts[0]), workspace + starts[1], (void *)(workspace + starts[2]),
                 workspace + starts[3]};
  return at;
}

uint64_t glyd_segment_base_encode_workspace(const glyd_lz_config *config) { return lay_parts(config, NULL, NULL); }

/* Whether the gaps hold noise, as content that was compressed or encrypted is: no text around them is of use. Of what
 * is uniform the squares of n counts sum up to n + n^2 / 256, of what has a sixteenth of text in it to 5% more. */
static int is_noise(const uint8_t *in, const glyd_base_copy *copies, size_t n, size_t rest) {
  if (rest < NOISE_MIN) return 0;
  uint32_t counts[256] = {0};
  uint64_t taken = 0, squares = 0;
  for (size_t k = 0; k < n; k++) {
    for (size_t at = 0; at + NOISE_TAKEN <= copies[k].gap; at += NOISE_STEP, taken += NOISE_TAKEN)
      for (size_t i = 0; i < NOISE_TAKEN; i++) counts[in[at + i]]++;
    in += (size_t)copies[k].gap + copies[k].length;
  }
  for (unsigned s = 0; s < 256; s++) squares += (uint64_t)counts[s] * counts[s];
  return taken >= NOISE_MIN / NOISE_STEP * NOISE_TAKEN / 2 && squares <= taken + taken * taken / 256 / 20 * 21;
}

/* As much around each gap as is worth the time to look at it. */
static uint8_t choose_around(size_t len, size_t rest, size_t gaps) {
  const size_t budget = len / 64 + 2 * rest;
  unsigned around = REACH_AROUND_MIN;
  while (around < REACH_AROUND_MAX && gaps << (around + 2) <= budget) around++;
  return (uint8_t)around;
}

unsigned glyd_segment_base_share(const glyd_lz_config *config, void *workspace, const glyd_base *base,
                                 const uint8_t *in, size_t len) {
  if (len < WINDOWS * WINDOW) return 0;
  size_t covered = 0;
  glyd_base_copy copies[GLYD_BASE_COPIES_MAX(WINDOW)];
  for (size_t i = 0; i < WINDOWS; i++) {
    const uint8_t *const window = in + (len - WINDOW) / (WINDOWS - 1) * i;
    const size_t n = glyd_base_map_find(base, config->cpu, workspace, window, WINDOW, copies);
    for (size_t k = 0; k < n; k++) covered += copies[k].length;
  }
  return (unsigned)(covered * GLYD_SEGMENT_BASE_WHOLE / (WINDOWS * WINDOW));
}

glyd_status glyd_segment_base_encode(const glyd_lz_config *config, void *workspace, const glyd_base *base,
                                     const uint8_t *in, size_t len, size_t most_rest, uint8_t *payload, size_t cap,
                                     size_t *size) {
  parts p;
  lay_parts(config, workspace, &p);
  *size = 0;
  const size_t n = glyd_base_map_find(base, config->cpu, p.lz, in, len, p.copies);
  if (n == 0) return GLYD_OK;
  size_t rest = len, last_gap = len, gaps = 1;
  for (size_t i = 0; i < n; i++) {
    gaps += p.copies[i].gap > 0;
    rest -= p.copies[i].length;
    last_gap -= p.copies[i].gap + p.copies[i].length;
  }
  if (rest > most_rest) return GLYD_E_BUFFER;
  uint8_t head[12];
  const int alone = is_noise(in, p.copies, n, rest);
  const glyd_base_reach reach = alone ? (glyd_base_reach){0, 0} /* readers lay out less, too */
                                      : (glyd_base_reach){choose_around(len, rest, gaps), REACH_GAP};
  uint8_t *h = glyd_put_varint(head, n);
  *h++ = reach.around;
  *h++ = reach.gap;
  size_t at = (size_t)(h - head), part;
  if (at > cap) return GLYD_E_BUFFER;
  memcpy(payload, head, at);
  glyd_status status = glyd_base_copies_encode(p.numbers, config->cpu, p.copies, n, payload + at, cap - at, &part);
  if (status != GLYD_OK) return status;
  at += part;
  if (rest > 0) {
    size_t excerpts = 0; /* what matches nothing before it needs nothing there */
    if (!alone) status = glyd_base_lay_excerpts(base, reach, p.copies, n, last_gap, len - rest, p.work, &excerpts);
    if (status != GLYD_OK) return status;
    uint8_t *to = p.work + excerpts;
    const uint8_t *from = in;
    for (size_t i = 0; i < n; i++) {
      memcpy(to, from, p.copies[i].gap);
      to += p.copies[i].gap;
      from += (size_t)p.copies[i].gap + p.copies[i].length;
    }
    memcpy(to, from, last_gap);
    const glyd_lz_config lz = config_of_rest(config, len, rest);
    status = glyd_lz_encode_after(&lz, p.lz, p.work, excerpts, rest, payload + at, cap - at, &part);
    if (status != GLYD_OK) return status;
    at += part;
  }
  *size = at;
  return GLYD_OK;
}
