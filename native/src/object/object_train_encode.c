/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The content is segments of samples whose 8-byte strings occur in many
 * samples: for each of as many stretches of the samples as the content has
 * segments, the segment whose strings no earlier one has covered and that are
 * in most samples (the idea of covering a collection by segments: Liao, Petri,
 * Moffat, Wirth, "Effective construction of relative Lempel-Ziv dictionaries",
 * WWW 2016). Several segment lengths are tried on samples that were held back,
 * and the tables come from these as well, since samples that are part of the
 * content say nothing about others.
 */
#include "object/object_train_encode.h"

#include "object/object_dictionary.h"
#include "object/object_encode.h"
#include "object/object_index_encode.h"
#include "object/object_tables_encode.h"

#define SAMPLES_MAX ((size_t)64 << 20) /* bytes looked at */
#define COVER_MAX ((size_t)24 << 20)   /* of them for the content */
#define HELD_MAX ((size_t)3 << 20)     /* of those held back */
#define STRING 8                       /* bytes */
#define FREQUENCY_BITS 20
#define HELD_EVERY 5 /* sample of so many is held back */
#define FEW 10       /* samples: none is held back */
#define SMALL 8192   /* bytes of dictionary, below which it has few steps */

typedef struct piece {
  const uint8_t *at;
  size_t size;
} piece;

typedef struct trainer {
  const glyd_allocator *allocator;
  piece *cover, *held; /* samples */
  size_t n_cover, n_held;
  size_t total; /* bytes of cover */
  uint32_t *frequency, *working;
  uint32_t *last; /* sample in which a string was last seen; later: how often it is in the window */
  uint8_t *content;
  uint8_t *bytes; /* of the dictionary being made */
  unsigned most_steps;
  glyd_object_counts *counts;
} trainer;

GLYD_INLINE uint32_t string_hash(const uint8_t *p) {
  return (uint32_t)(glyd_object_hash_long(glyd_load64(p)) >> (64 - FREQUENCY_BITS));
}

/* In how many samples each string is. */
static void count_strings(trainer *t) {
  memset(t->frequency, 0, sizeof(uint32_t) << FREQUENCY_BITS);
  memset(t->last, 0, sizeof(uint32_t) << FREQUENCY_BITS);
  for (size_t i = 0; i < t->n_cover; i++)
    for (size_t p = 0; p + STRING <= t->cover[i].size; p++) {
      const uint32_t h = string_hash(t->cover[i].at + p);
      if (t->last[h] == i + 1) continue;
      t->last[h] = (uint32_t)i + 1;
      t->frequency[h]++;
    }
}

typedef struct window {
  const uint8_t *at;
  size_t size;
  uint64_t score;
} window;

/* The best segment of at most length bytes in a sample, if better than *best. */
static void best_in_sample(trainer *t, const piece *sample, size_t length, window *best) {
  if (sample->size < STRING) return;
  const uint8_t *const at = sample->at;
  const size_t strings = sample->size - STRING + 1;
  const size_t most = length < STRING ? 1 : length - STRING + 1; /* strings of a segment */
  uint64_t score = 0;
  for (size_t p = 0; p < strings; p++) {
    const uint32_t h = string_hash(at + p);
    if (t->last[h]++ == 0) score += t->working[h];
    if (p >= most) {
      const uint32_t gone = string_hash(at + p - most);
      if (--t->last[gone] == 0) score -= t->working[gone];
    }
    if (score > best->score) {
      const size_t from = p + 1 > most ? p + 1 - most : 0;
      *best = (window){at + from, p + STRING - from, score};
    }
  }
  for (size_t p = strings > most ? strings - most : 0; p < strings; p++) t->last[string_hash(at + p)] = 0;
}

/* Fill t->content with up to size bytes from its end backwards; returns where it starts. */
static size_t choose_content(trainer *t, size_t size, size_t length) {
  memcpy(t->working, t->frequency, sizeof(uint32_t) << FREQUENCY_BITS);
  memset(t->last, 0, sizeof(uint32_t) << FREQUENCY_BITS);
  for (size_t h = 0; h < (size_t)1 << FREQUENCY_BITS; h++)
    if (t->working[h] == 1) t->working[h] = 0; /* strings of a single sample are no help to others */
  /* A segment is at most a sample: the time would grow with the square of their number else. */
  const size_t most = t->n_cover != 0 ? 4 * (t->total / t->n_cover + 1) : 1;
  size_t at = size, stretches = size / (length < most ? length : most) / 4;
  if (stretches < 1) stretches = 1;
  size_t sample = 0, idle = 0;
  const size_t stretch = t->total / stretches + 1;
  while (at > STRING && idle <= stretches && t->n_cover > 0) {
    window best = {NULL, 0, 0};
    for (size_t bytes = 0, seen = 0; bytes < stretch && seen < t->n_cover; seen++) {
      best_in_sample(t, &t->cover[sample], length, &best);
      bytes += t->cover[sample].size;
      sample = sample + 1 == t->n_cover ? 0 : sample + 1;
    }
    if (best.score == 0) {
      idle++;
      continue;
    }
    idle = 0;
    /* Ends that score nothing come off. */
    while (best.size > STRING && t->working[string_hash(best.at)] == 0) {
      best.at++;
      best.size--;
    }
    while (best.size > STRING && t->working[string_hash(best.at + best.size - STRING)] == 0) best.size--;
    for (size_t p = 0; p + STRING <= best.size; p++) t->working[string_hash(best.at + p)] = 0;
    const size_t n = best.size < at ? best.size : at;
    at -= n;
    memcpy(t->content + at, best.at + (best.size - n), n);
  }
  return at;
}

/* Dictionary of the content with tables by t->counts, as t->bytes. */
static glyd_status make(trainer *t, size_t from, size_t size, unsigned effort, size_t *len, glyd_dictionary **d,
                        glyd_object_encoder **e) {
  *len =
      glyd_object_tables_write(t->bytes, t->content + from, (uint32_t)(size - from), t->counts, t->most_steps, effort);
  glyd_status status = glyd_object_dictionary_create(d, t->bytes, *len, t->allocator);
  if (!status) status = glyd_object_index_build(*d);
  if (!status) status = glyd_object_encoder_make(e, *d, 0, t->allocator);
  return status;
}

/* Any literals and offsets alike, before anything is known. */
static void start_counts(glyd_object_counts *counts) {
  memset(counts, 0, sizeof *counts);
  for (unsigned s = 0; s < 256; s++) counts->literals[0][s] = counts->offsets[s] = 1;
}

/* Tables from the samples held back, in rounds, as prices change what is found.
 * The dictionary is at t->bytes then; *cost: bytes those samples take. */
static glyd_status fit_tables(trainer *t, size_t from, size_t size, unsigned effort, size_t *len, uint64_t *cost) {
  const unsigned rounds = 3;
  glyd_status status = GLYD_OK;
  for (unsigned round = 0; round <= rounds && !status; round++) {
    glyd_dictionary *d = NULL;
    glyd_object_encoder *e = NULL;
    if (round == 0) start_counts(t->counts);
    status = make(t, from, size, effort, len, &d, &e);
    *cost = 0;
    if (!status && round < rounds) memset(t->counts, 0, sizeof *t->counts);
    for (size_t i = 0; i < t->n_held && !status; i++) {
      size_t n = t->held[i].size;
      if (n > GLYD_OBJECT_COMPACT_MAX) n = GLYD_OBJECT_COMPACT_MAX;
      if (n == 0) continue;
      if (round < rounds) {
        glyd_object_encode_count(e, t->held[i].at, n, t->counts);
      } else {
        const size_t bytes = glyd_object_encode_compact(e, t->held[i].at, n);
        *cost += bytes != 0 ? bytes : n;
      }
    }
    glyd_object_encoder_drop(e);
    glyd_object_dictionary_free(d);
  }
  return status;
}

static glyd_status train(trainer *t, uint8_t *out, size_t max_size, size_t *out_len) {
  static const size_t lengths[] = {40, 96, 256, 768, 2048};
  t->most_steps = max_size < SMALL ? GLYD_OBJECT_STEPS_FEW : GLYD_OBJECT_STEPS_MAX;
  const size_t fixed = GLYD_DICTIONARY_FIXED_MAX - (GLYD_OBJECT_STEPS_MAX - t->most_steps) * GLYD_OBJECT_STEP;
  size_t size = max_size - fixed;
  if (size > GLYD_DICTIONARY_CONTENT_MAX) size = GLYD_DICTIONARY_CONTENT_MAX;
  if (size > t->total) size = t->total; /* more content than samples is no help */
  count_strings(t);
  uint64_t least = UINT64_MAX;
  size_t best = 0; /* segment length */
  for (unsigned k = 0; k < sizeof lengths / sizeof *lengths; k++) {
    size_t len;
    uint64_t cost;
    const size_t from = choose_content(t, size, lengths[k]);
    const glyd_status status = fit_tables(t, from, size, GLYD_OBJECT_REPEATS_AHEAD, &len, &cost);
    if (status) return status;
    if (cost >= least) continue;
    least = cost;
    best = lengths[k];
    memcpy(out, t->bytes, len);
    *out_len = len;
  }
  /* Where it costs little, the first match is taken, which is written faster; a
   * look for anything better must gain more, as it takes a third more time. */
  const size_t from = choose_content(t, size, best);
  static const struct {
    unsigned effort, of_64; /* so many 64ths of the bytes are as good */
  } others[] = {{GLYD_OBJECT_GREEDY, 66}, {GLYD_OBJECT_LAZY, 60}};
  for (unsigned k = 0; k < sizeof others / sizeof *others; k++) {
    size_t len;
    uint64_t cost;
    const glyd_status status = fit_tables(t, from, size, others[k].effort, &len, &cost);
    if (status) return status;
    if (cost * 64 > least * others[k].of_64) continue;
    memcpy(out, t->bytes, len);
    *out_len = len;
  }
  return GLYD_OK;
}

/* Deal out the samples: few bytes of each kind are all looked at, of more an even share. */
static void deal(trainer *t, const uint8_t *samples, const size_t *sizes, size_t n) {
  uint64_t total = 0;
  for (size_t i = 0; i < n; i++) total += sizes[i];
  const uint64_t cover_all = n < FEW ? total : total - total / HELD_EVERY,
                 held_all = n < FEW ? total : total / HELD_EVERY;
  uint64_t cover = 0, held = 0, cover_seen = 0, held_seen = 0;
  const uint8_t *at = samples;
  for (size_t i = 0; i < n; at += sizes[i], i++) {
    const piece p = {at, sizes[i] < SAMPLES_MAX ? sizes[i] : SAMPLES_MAX};
    if (p.size == 0) continue;
    if (n < FEW || i % HELD_EVERY != 0) {
      cover_seen += p.size;
      if (cover_all <= COVER_MAX || cover * cover_all <= cover_seen * COVER_MAX) {
        t->cover[t->n_cover++] = p;
        cover += p.size;
      }
    }
    if (n < FEW || i % HELD_EVERY == 0) {
      held_seen += p.size;
      if (held_all <= HELD_MAX || held * held_all <= held_seen * HELD_MAX) {
        t->held[t->n_held++] = p;
        held += p.size;
      }
    }
  }
  t->total = (size_t)cover;
}

glyd_status glyd_object_train(uint8_t *out, size_t max_size, const uint8_t *samples, const size_t *sizes, size_t n,
                              const glyd_allocator *allocator, size_t *out_len) {
  *out_len = 0;
  if (max_size < GLYD_DICTIONARY_SIZE_MIN || !glyd_alloc_valid(allocator)) return GLYD_E_PARAMETER;
  if (max_size > GLYD_DICTIONARY_SIZE_MAX) max_size = GLYD_DICTIONARY_SIZE_MAX;
  const uint64_t table = sizeof(uint32_t) << FREQUENCY_BITS;
  trainer t = {.allocator = allocator};
  void *const memory[] = {
      t.cover = glyd_alloc_get(allocator, (n + 1) * sizeof(piece)),
      t.held = glyd_alloc_get(allocator, (n + 1) * sizeof(piece)),
      t.frequency = glyd_alloc_get(allocator, table),
      t.working = glyd_alloc_get(allocator, table),
      t.last = glyd_alloc_get(allocator, table),
      t.content = glyd_alloc_get(allocator, max_size),
      t.bytes = glyd_alloc_get(allocator, max_size),
      t.counts = glyd_alloc_get(allocator, sizeof *t.counts),
  };
  glyd_status status = GLYD_OK;
  for (unsigned i = 0; i < sizeof memory / sizeof *memory; i++)
    if (!memory[i]) status = GLYD_E_MEMORY;
  if (!status) {
    deal(&t, samples, sizes, n);
    status = train(&t, out, max_size, out_len);
  }
  for (unsigned i = 0; i < sizeof memory / sizeof *memory; i++) glyd_alloc_put(allocator, memory[i]);
  return status;
}
