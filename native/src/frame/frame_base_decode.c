/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Of a base segment its copies and its rest are kept, of all others their
 * content; the ones used last stay, as far as KEPT allows. What is read of a
 * base segment is not checked here, as its content is never there as a whole:
 * the segment that is made of it is.
 */
#include "frame/frame_base_decode.h"

#include "common/alloc.h"
#include "common/cpu.h"
#include "common/mem.h"
#include "common/thread.h"
#include "frame/frame_common.h"
#include "frame/frame_decode.h"
#include "frame/progress_decode.h"
#include "frame/segment_decode.h"
#include "segment/segment_base_decode.h"

#define KEPT ((uint64_t)128 << 20)       /* bytes of segments that are kept, beside the one in use */
#define WORK_TIMES 8u                    /* content that is decoded, for each byte of the base … */
#define WORK_LEAST ((uint64_t)512 << 20) /* … and at least: more is for who decodes it as a whole */

/* length bytes of the base below from position on; before them in the segment,
 * covered bytes of copies and start - covered bytes of the rest. */
typedef struct piece {
  uint64_t position;
  uint32_t start;
  uint32_t length;
  uint32_t covered;
} piece;

typedef struct part {
  glyd_segment_info segment;
  uint64_t content; /* where it starts */
  size_t payload;
  uint8_t *bytes; /* content, or the rest; NULL and no pieces: not decoded */
  piece *pieces;
  size_t n;
  size_t last;   /* the piece that was used last: what is asked for next is near, on either side */
  uint64_t used; /* when, by the count of reads */
  glyd_frame_info frame;
  int is_ready;
} part;

typedef struct frames {
  const uint8_t *in;
  glyd_base source; /* the input, to give back its pages */
  const glyd_base *below;
  part *parts;
  size_t n, room;
  uint64_t size, kept, work, time;
  uint64_t max_memory;
  unsigned cpu;
  glyd_allocator allocator;
  glyd_lock lock;
} frames;

static uint64_t held_by(const part *p) {
  if (!p->is_ready) return 0;
  return p->segment.kind == GLYD_KIND_BASE ? p->n * sizeof(piece) : p->segment.content_size;
}

static void drop(frames *f, part *p) {
  f->kept -= held_by(p);
  glyd_alloc_put(&f->allocator, p->bytes);
  glyd_alloc_put(&f->allocator, p->pieces);
  p->bytes = NULL;
  p->pieces = NULL;
  p->is_ready = 0;
}

static void free_frames(void *state) {
  frames *const f = state;
  for (size_t i = 0; i < f->n; i++) drop(f, &f->parts[i]);
  const glyd_allocator a = f->allocator;
  glyd_alloc_put(&a, f->parts);
  (void)pthread_mutex_destroy(&f->lock);
  glyd_alloc_put(&a, f);
}

static glyd_status see(void *arg, const glyd_segment_info *segment, const glyd_frame_info *frame, uint64_t content,
                       size_t payload) {
  frames *const f = arg;
  if (segment->content_size == 0) return GLYD_OK;
  if (f->n == f->room) {
    const size_t room = f->room ? 2 * f->room : 64;
    part *const more = glyd_alloc_get(&f->allocator, room * sizeof *more);
    if (!more) return GLYD_E_MEMORY;
    if (f->n > 0) memcpy(more, f->parts, f->n * sizeof *more);
    glyd_alloc_put(&f->allocator, f->parts);
    f->parts = more;
    f->room = room;
  }
  f->parts[f->n++] = (part){.segment = *segment, .content = content, .payload = payload, .frame = *frame};
  return GLYD_OK;
}

/* Keep copies and rest of a segment of which out holds the rest. */
static glyd_status keep_pieces(frames *f, part *p, const glyd_segment_base_parts *parts, const uint8_t *out) {
  p->pieces = glyd_alloc_get(&f->allocator, parts->n * sizeof *p->pieces);
  p->bytes = glyd_alloc_get(&f->allocator, parts->rest);
  if (!p->pieces || !p->bytes) return GLYD_E_MEMORY;
  if (parts->rest > 0) memcpy(p->bytes, out, parts->rest);
  uint64_t start = 0, covered = 0;
  for (size_t i = 0; i < parts->n; i++) {
    const glyd_base_copy *const copy = &parts->copies[i];
    start += copy->gap;
    p->pieces[i] = (piece){copy->position, (uint32_t)start, copy->length, (uint32_t)covered};
    start += copy->length;
    covered += copy->length;
  }
  p->n = parts->n;
  return GLYD_OK;
}

static glyd_status decode(frames *f, part *p) {
  const size_t len = (size_t)p->segment.content_size;
  const int is_base = p->segment.kind == GLYD_KIND_BASE;
  const uint64_t need = glyd_segment_decode_workspace(&p->frame, p->segment.kind, len);
  /* pieces are of 16 bytes of content at least, and take 24 */
  if (need + (is_base ? 3 : 1) * (uint64_t)len > f->max_memory || len > UINT32_MAX) return GLYD_E_LIMIT_MEMORY;
  f->work += len;
  if (f->work / WORK_TIMES > f->size && f->work > WORK_LEAST) return GLYD_E_LIMIT_OUTPUT;
  void *const workspace = need > 0 ? glyd_alloc_get(&f->allocator, need) : NULL;
  uint8_t *const out = glyd_alloc_get(&f->allocator, len);
  glyd_status status = GLYD_E_MEMORY;
  if (out && (workspace || need == 0)) {
    const uint8_t *const payload = f->in + p->payload;
    if (is_base) {
      glyd_segment_base_parts parts;
      status = glyd_segment_base_read(f->cpu, workspace, f->below, out, len, payload, (size_t)p->segment.payload_size,
                                      &parts);
      if (status == GLYD_OK) status = keep_pieces(f, p, &parts, out);
    } else {
      glyd_alloc_use_whole(out, len);
      const glyd_references references = {f->below, NULL};
      status = glyd_segment_decode(f->cpu, workspace, &references, &p->frame, &p->segment, out, payload, NULL);
      if (status == GLYD_OK) p->bytes = out;
    }
  }
  glyd_alloc_put(&f->allocator, workspace);
  if (p->bytes != out) glyd_alloc_put(&f->allocator, out);
  if (status != GLYD_OK) {
    drop(f, p);
    return status;
  }
  glyd_base_source_release(&f->source, p->payload, p->payload + p->segment.payload_size);
  p->is_ready = 1;
  f->kept += held_by(p);
  return GLYD_OK;
}

/* Let go of what was not used for longest, but for p. */
static void make_room(frames *f, const part *p) {
  while (f->kept > KEPT + held_by(p)) {
    part *oldest = NULL;
    for (size_t i = 0; i < f->n; i++) {
      part *const q = &f->parts[i];
      if (q != p && held_by(q) > 0 && (!oldest || q->used < oldest->used)) oldest = q;
    }
    if (!oldest) return;
    drop(f, oldest);
  }
}

/* Whether piece i ends at place or before. */
static int ends_by(const part *p, size_t i, uint64_t place) {
  return (uint64_t)p->pieces[i].start + p->pieces[i].length <= place;
}

/* The first piece that ends behind place, or the number of pieces: from the last one on in steps that double, then by
 * halves. Whole contents ask for one piece after the other, from their end on. */
static size_t find_piece(const part *p, uint64_t place) {
  size_t low = p->last, high = p->last, step = 1;
  if (low < p->n && ends_by(p, low, place)) {
    for (; high < p->n && ends_by(p, high, place); step *= 2) {
      low = high + 1;
      high = p->n - high > step ? high + step : p->n;
    }
  } else {
    for (; low > 0 && !ends_by(p, low - 1, place); step *= 2) {
      high = low - 1;
      low = high > step ? high - step : 0;
    }
  }
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (ends_by(p, middle, place))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Copy len bytes from place on of a base segment. */
static glyd_status follow(const frames *f, part *p, uint64_t place, uint8_t *out, size_t len) {
  size_t low = find_piece(p, place);
  p->last = low;
  while (len > 0) {
    const piece *const c = low < p->n ? &p->pieces[low] : NULL;
    size_t n = len;
    if (c == NULL || place < c->start) { /* in a gap */
      if (c != NULL && c->start - place < n) n = (size_t)(c->start - place);
      const piece *const last = &p->pieces[p->n - 1];
      const uint64_t covered = c != NULL ? c->covered : (uint64_t)last->covered + last->length;
      memcpy(out, p->bytes + (place - covered), n);
    } else {
      const uint64_t within = place - c->start;
      if (c->length - within < n) n = (size_t)(c->length - within);
      const glyd_status status = glyd_base_source_copy(f->below, c->position + within, out, n);
      if (status != GLYD_OK) return status;
      if (within + n == c->length) low++;
    }
    out += n;
    place += n;
    len -= n;
  }
  return GLYD_OK;
}

static glyd_status read_locked(frames *f, uint64_t position, uint8_t *out, size_t len) {
  size_t low = 0, high = f->n; /* the last segment that starts at position or before */
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (f->parts[middle].content <= position)
      low = middle;
    else
      high = middle;
  }
  for (; len > 0; low++) {
    part *const p = &f->parts[low];
    glyd_status status = p->is_ready ? GLYD_OK : decode(f, p);
    if (status != GLYD_OK) return status;
    p->used = ++f->time;
    make_room(f, p);
    const uint64_t place = position - p->content;
    const uint64_t left = p->segment.content_size - place;
    const size_t n = left < len ? (size_t)left : len;
    if (p->segment.kind == GLYD_KIND_BASE)
      status = follow(f, p, place, out, n);
    else
      memcpy(out, p->bytes + place, n);
    if (status != GLYD_OK) return status;
    position += n;
    out += n;
    len -= n;
  }
  return GLYD_OK;
}

static glyd_status read_frames(void *state, uint64_t position, uint8_t *out, size_t len) {
  frames *const f = state;
  pthread_mutex_lock(&f->lock);
  const glyd_status status = read_locked(f, position, out, len);
  pthread_mutex_unlock(&f->lock);
  return status;
}

glyd_status glyd_frame_base_create(glyd_base **base, const uint8_t *in, size_t len, int is_mapped,
                                   const glyd_base *below, const glyd_limits *limits, const glyd_allocator *allocator,
                                   glyd_error *error) {
  *base = NULL;
  const unsigned depth = below ? below->depth + 1 : 1;
  if (!glyd_alloc_valid(allocator) || (is_mapped & ~1) || depth > GLYD_FRAME_BASE_DEPTH_MAX)
    return glyd_frame_fail(error, GLYD_E_PARAMETER, 0, GLYD_FRAME_BASE_DEPTH_MAX, depth);
  frames *const f = glyd_alloc_get(allocator, sizeof *f);
  if (!f) return glyd_frame_fail(error, GLYD_E_MEMORY, 0, sizeof *f, 0);
  *f = (frames){.in = in, .source = {.data = in, .size = len, .is_mapped = is_mapped}, .below = below};
  if (allocator) f->allocator = *allocator;
  f->cpu = glyd_cpu_select(limits ? limits->cpu : GLYD_CPU_CHOICE_BEST);
  glyd_progress resolved;
  glyd_progress_init(&resolved, limits);
  f->max_memory = resolved.limits.max_memory;
  if (pthread_mutex_init(&f->lock, NULL) != 0) {
    glyd_alloc_put(allocator, f);
    return glyd_frame_fail(error, GLYD_E_MEMORY, 0, sizeof f->lock, 0);
  }
  const glyd_references references = {below, NULL};
  const glyd_status status = glyd_frame_walk(in, len, &references, limits, see, f, &f->size, error);
  if (status != GLYD_OK) {
    free_frames(f);
    return status;
  }
  const glyd_base_reader reader = {read_frames, free_frames, f};
  return glyd_base_source_create_reader(base, f->size, depth, &reader, allocator);
}
