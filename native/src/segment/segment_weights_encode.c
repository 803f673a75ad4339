/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Chunks of one layout become a piece. Fields pieces start and end at an
 * element; what that leaves between two of them, less than an element, is raw.
 */
#include "segment/segment_weights_encode.h"

#include "base/base_map_encode.h"
#include "block/block_encode.h"
#include "common/mem.h"
#include "fields/fields_choose_encode.h"
#include "fields/fields_difference_encode.h"
#include "fields/fields_encode.h"

#define CHUNK_MIN ((size_t)1 << 10)
#define CHUNK_MAX ((size_t)128 << 10)
#define CHUNKS 64u      /* of a segment, unless it is very small or large */
#define REPEATS_MAX 80u /* of 256: fields save a third of bf16 */
#define PIECE_HEAD_MAX 11u
#define PLACE_MAX 10u                   /* a varint */
#define COMMON_WINDOW ((size_t)4 << 10) /* of a chunk, that is looked up in the base */

typedef struct writer {
  const glyd_lz_config *config;
  void *workspace;
  const uint8_t *in;
  uint8_t *out, *end;
  const glyd_base *base;
  size_t n_differences; /* bytes of content */
} writer;

size_t glyd_segment_weights_encode_workspace(const glyd_lz_config *config) {
  const size_t lz = glyd_lz_encode_workspace(config), fields = glyd_fields_encode_workspace();
  const size_t difference = glyd_fields_difference_encode_workspace();
  size_t most = lz > fields ? lz : fields;
  if (most < difference) most = difference;
  return most > GLYD_BASE_FIND_WORKSPACE ? most : GLYD_BASE_FIND_WORKSPACE;
}

/* Put a body of this size, which was encoded PIECE_HEAD_MAX after w->out, behind its head. */
static void put_piece(writer *w, unsigned type, size_t size, size_t body) {
  uint8_t head[PIECE_HEAD_MAX], *p = head;
  *p++ = (uint8_t)type;
  p = glyd_put_varint(p, size);
  p = glyd_put_varint(p, body);
  const size_t n = (size_t)(p - head);
  memmove(w->out + n, w->out + PIECE_HEAD_MAX, body);
  memcpy(w->out, head, n);
  w->out += n + body;
}

static glyd_status put_raw(writer *w, size_t begin, size_t end) {
  const size_t size = end - begin;
  if ((size_t)(w->end - w->out) < PIECE_HEAD_MAX + size) return GLYD_E_BUFFER;
  memcpy(w->out + PIECE_HEAD_MAX, w->in + begin, size);
  put_piece(w, GLYD_PIECE_RAW, size, size);
  return GLYD_OK;
}

/* Bytes that a body may take: what is left behind a head, and at most most. */
static size_t room(const writer *w, size_t most) {
  const size_t left = (size_t)(w->end - w->out);
  if (left <= PIECE_HEAD_MAX) return 0;
  return left - PIECE_HEAD_MAX < most ? left - PIECE_HEAD_MAX : most;
}

static glyd_status put_lz(writer *w, size_t begin, size_t end) {
  size_t body = 0;
  const glyd_status status = glyd_lz_encode(w->config, w->workspace, w->in + begin, end - begin,
                                            w->out + PIECE_HEAD_MAX, room(w, end - begin - 1), &body);
  if (status == GLYD_E_BUFFER) return put_raw(w, begin, end);
  if (status == GLYD_OK) put_piece(w, GLYD_PIECE_LZ, end - begin, body);
  return status;
}

static glyd_status put_fields(writer *w, const glyd_fields_choice *choice, size_t begin, size_t end) {
  const size_t size = end - begin;
  const size_t most = room(w, size - size / 128);
  size_t place_size = 0, body = 0;
  uint8_t *const at = w->out + PIECE_HEAD_MAX;
  glyd_status status;
  if (choice->is_difference) {
    if (most < PLACE_MAX) return put_lz(w, begin, end);
    const uint64_t place = (uint64_t)((int64_t)begin + choice->shift);
    place_size = (size_t)(glyd_put_varint(at, place) - at);
    status = glyd_fields_difference_encode(w->config->cpu, w->workspace, choice->layout.period, w->in + begin,
                                           w->base->data + place, size, at + place_size, most - place_size, &body);
  } else {
    status = glyd_fields_encode(w->config->cpu, w->workspace, &choice->layout, w->in + begin, size, at, most, &body);
  }
  if (status == GLYD_E_BUFFER) return put_lz(w, begin, end); /* the samples promised more */
  if (status != GLYD_OK) return status;
  put_piece(w, choice->is_difference ? GLYD_PIECE_DIFFERENCE : GLYD_PIECE_FIELDS, size, place_size + body);
  if (choice->is_difference) w->n_differences += size;
  return GLYD_OK;
}

static int same_choice(const glyd_fields_choice *a, const glyd_fields_choice *b) {
  if (a->is_fields != b->is_fields) return 0;
  if (!a->is_fields) return 1;
  if (a->is_difference != b->is_difference || a->shift != b->shift) return 0;
  const glyd_fields_layout *l = &a->layout, *m = &b->layout;
  return a->phase == b->phase && l->n_runs == m->n_runs && l->sign_moved == m->sign_moved &&
         memcmp(l->run, m->run, l->n_runs) == 0;
}

/* Try the chunk as a difference to the base: where the tensor of its name is, where
 * the chunk before had it, where it is expected, and where something of it is. */
static void try_base(const writer *w, const glyd_segment_older *older, size_t at, size_t size,
                     const glyd_fields_choice *before, glyd_fields_choice *choice) {
  const glyd_base *b = w->base;
  int64_t named;
  if (glyd_fields_places_shift(older->places, older->at + at + size / 2, &named) &&
      glyd_fields_choose_difference(w->in, at, size, b->data, b->size, named + (int64_t)older->at, choice))
    return;
  if (before->is_difference && glyd_fields_choose_difference(w->in, at, size, b->data, b->size, before->shift, choice))
    return;
  if (glyd_fields_choose_difference(w->in, at, size, b->data, b->size, older->shift, choice)) return;
  glyd_base_copy copies[GLYD_BASE_COPIES_MAX(COMMON_WINDOW)];
  const size_t n = size < COMMON_WINDOW ? size : COMMON_WINDOW;
  const size_t from = at + (size - n) / 2;
  if (glyd_base_map_find(b, w->config->cpu, w->workspace, w->in + from, n, copies) == 0) return;
  const int64_t shift = (int64_t)copies[0].position - (int64_t)(from + copies[0].gap);
  (void)glyd_fields_choose_difference(w->in, at, size, b->data, b->size, shift, choice);
}

/* First place from at on where an element starts. */
static size_t align_up(const glyd_fields_choice *choice, size_t at) {
  const size_t period = choice->layout.period;
  return at + (choice->phase + period - at % period) % period;
}

/* Write the chunks begin … end of one choice; the next fields piece starts at next. Returns in *done
 * where the next piece starts. */
static glyd_status put_run(writer *w, const glyd_fields_choice *choice, size_t begin, size_t end, int next_is_fields,
                           size_t next, size_t *done) {
  if (!choice->is_fields) {
    *done = next_is_fields ? next : end;
    return *done > begin ? put_lz(w, begin, *done) : GLYD_OK;
  }
  const size_t limit = next_is_fields ? next : end; /* begin is at an element */
  const size_t stop = limit > begin ? begin + (limit - begin) / choice->layout.period * choice->layout.period : begin;
  glyd_status status = stop > begin ? put_fields(w, choice, begin, stop) : GLYD_OK;
  *done = stop;
  if (status == GLYD_OK && next_is_fields && next > stop) {
    status = put_raw(w, stop, next);
    *done = next;
  }
  return status;
}

glyd_status glyd_segment_weights_encode(const glyd_lz_config *config, void *workspace, const glyd_segment_older *older,
                                        const uint8_t *in, size_t len, uint8_t *out, size_t cap, size_t *out_len,
                                        size_t *n_differences) {
  writer w = {config, workspace, in, out, out + cap, older->base, 0};
  *out_len = 0;
  *n_differences = 0;
  /* what is there twice costs LZ nothing the second time, fields as much as the first */
  if (!w.base && glyd_fields_repeats(in, len) > REPEATS_MAX) return GLYD_OK;
  size_t chunk = CHUNK_MIN;
  while (chunk < CHUNK_MAX && chunk * CHUNKS < len) chunk *= 2;
  const int coded = config->level >= GLYD_LEVEL_MAX;
  glyd_fields_choice run = {.is_fields = 0}, now;
  size_t begin = 0; /* of the run: all before it is written */
  int any = 0;
  for (size_t at = 0; at < len;) {
    const size_t size = len - at < chunk ? len - at : chunk;
    const glyd_fields_choice none = {.is_fields = 0};
    const glyd_fields_choice *before = at == 0 ? &none : &run;
    glyd_fields_choose(in, at, size, coded, before, &now);
    if (w.base) try_base(&w, older, at, size, before, &now);
    if (at == 0) {
      run = now;
      if (now.is_fields) begin = align_up(&now, 0);
      if (begin > 0) {
        const glyd_status status = begin < len ? put_raw(&w, 0, begin) : GLYD_E_BUFFER;
        if (status) return status;
      }
    } else if (!same_choice(&run, &now)) {
      const size_t next = now.is_fields ? align_up(&now, at > begin ? at : begin) : at;
      const glyd_status status = put_run(&w, &run, begin, at, now.is_fields, next < len ? next : len, &begin);
      if (status) return status;
      run = now;
    }
    run.searched = now.searched;
    any |= now.is_fields;
    at += size;
  }
  if (!any) return GLYD_OK;
  size_t done = begin;
  glyd_status status = begin < len ? put_run(&w, &run, begin, len, 0, len, &done) : GLYD_OK;
  if (status == GLYD_OK && done < len) status = put_raw(&w, done, len);
  if (status) return status;
  *out_len = (size_t)(w.out - out);
  *n_differences = w.n_differences;
  return GLYD_OK;
}
