/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Workers share a cursor that hops from segment header to segment header; each
 * takes the next segment under the lock and decodes it straight to its place
 * in the output. The error reported is the first in the input, whichever
 * worker meets it and however many there are.
 */
#include "frame/frame_decode.h"

#include "common/alloc.h"
#include "common/checksum.h"
#include "common/cpu.h"
#include "common/mem.h"
#include "common/thread.h"
#include "frame/frame_common.h"
#include "frame/header_decode.h"
#include "frame/progress_decode.h"
#include "frame/segment_decode.h"

typedef struct cursor {
  const uint8_t *in;
  size_t len;
  size_t pos;
  uint64_t frame_start;
  int in_frame;
  unsigned cpu;
  int sizes_only; /* bases are not asked for */
  glyd_references references;
  glyd_progress progress;
} cursor;

typedef struct item {
  glyd_segment_info segment; /* kind END: the input is at its end */
  glyd_frame_info frame;
  size_t at;        /* of the segment header */
  uint64_t content; /* where its content starts */
} item;

/* Move an error from its structure's start to the input's. */
static glyd_status fail_at(glyd_error *error, size_t at) {
  error->offset += at;
  return error->status;
}

static glyd_status hop_trailer(cursor *c, glyd_error *error) {
  const uint8_t *p = c->in + c->pos;
  const size_t left = c->len - c->pos;
  glyd_progress *g = &c->progress;
  glyd_status status = glyd_progress_trailer(g, error);
  if (status) return status;
  uint64_t n = 0;
  const uint8_t *entries = glyd_get_varint(p + 1, p + left, &n);
  const uint64_t size = glyd_progress_trailer_size(g);
  if (!entries && n == 1) return glyd_frame_fail(error, GLYD_E_TRUNCATED, 0, size, left);
  if (!entries) return glyd_frame_fail(error, GLYD_E_CORRUPT, 0, g->segments, 0);
  status = glyd_progress_check_count(g, n, error);
  if (status) return status;
  if (left < size) return glyd_frame_fail(error, GLYD_E_TRUNCATED, 0, size, left);
  const uint64_t entries_hash = glyd_checksum_xxh3(c->cpu, entries, (size_t)g->index_size);
  const uint64_t trailer_hash = glyd_checksum_xxh3(c->cpu, p, (size_t)size - 4);
  status = glyd_progress_check_tail(g, entries_hash, p + size - GLYD_TAIL_SIZE, trailer_hash, error);
  if (status) return status;
  c->pos += (size_t)size;
  c->in_frame = 0;
  return GLYD_OK;
}

static glyd_status hop_header(cursor *c, glyd_error *error) {
  const size_t left = c->len - c->pos;
  glyd_frame_info info;
  glyd_status status = glyd_header_decode_frame(c->in + c->pos, left, &info, error);
  if (status == GLYD_E_MAGIC && c->progress.frames > 0) error->status = status = GLYD_E_TRAILING;
  if (status) return status;
  status = glyd_progress_frame(&c->progress, &info, error);
  if (status == GLYD_OK && !c->sizes_only) status = glyd_segment_decode_check(&info, &c->references, error);
  if (status) return status;
  c->frame_start = c->pos;
  if (info.is_skippable) {
    if (left - info.header_size < info.skip_size)
      return glyd_frame_fail(error, GLYD_E_TRUNCATED, 0, info.skip_size, left - info.header_size);
    c->pos += info.header_size + (size_t)info.skip_size;
  } else {
    c->pos += info.header_size;
    c->in_frame = 1;
  }
  return GLYD_OK;
}

/* Find the next segment and step over it; headers and trailers on the way are
 * checked. */
static glyd_status hop(cursor *c, item *next, glyd_error *error) {
  glyd_progress *g = &c->progress;
  for (;;) {
    const size_t at = c->pos;
    glyd_status status;
    if (c->in_frame && !g->frame.has_trailer && glyd_progress_complete(g)) c->in_frame = 0;
    if (!c->in_frame) {
      if (c->pos == c->len && g->frames > 0) {
        next->segment.kind = GLYD_KIND_END;
        return GLYD_OK;
      }
      if (hop_header(c, error)) return fail_at(error, at);
      continue;
    }
    status = glyd_header_decode_segment(c->in + at, c->len - at, &g->frame, &next->segment, error);
    if (status) return fail_at(error, at);
    if (next->segment.kind == GLYD_KIND_END) {
      if (hop_trailer(c, error)) return fail_at(error, at);
      continue;
    }
    next->content = g->total_content;
    next->frame = g->frame;
    next->at = at;
    if (glyd_progress_segment(g, &next->segment, error)) return fail_at(error, at);
    const size_t left = c->len - at - next->segment.header_size;
    if (left < next->segment.payload_size) {
      glyd_frame_fail(error, GLYD_E_TRUNCATED, 0, next->segment.payload_size, left);
      return fail_at(error, at);
    }
    c->pos = at + next->segment.header_size + (size_t)next->segment.payload_size;
    return GLYD_OK;
  }
}

static void cursor_init(cursor *c, const uint8_t *in, size_t len, const glyd_limits *limits) {
  *c = (cursor){.in = in, .len = len};
  glyd_progress_init(&c->progress, limits);
  c->cpu = glyd_cpu_select(c->progress.limits.cpu);
}

static int arguments_valid(const glyd_limits *limits, const glyd_allocator *allocator, int threads) {
  if (limits && (limits->cpu < GLYD_CPU_CHOICE_BEST || limits->cpu > GLYD_CPU_CHOICE_AVX2)) return 0;
  return threads >= 0 && glyd_alloc_valid(allocator);
}

glyd_status glyd_frame_decode_size(const uint8_t *in, size_t len, const glyd_limits *limits, uint64_t *size,
                                   glyd_error *error) {
  glyd_error e = {.status = GLYD_OK};
  *size = 0;
  if (!arguments_valid(limits, NULL, 1)) {
    (void)glyd_frame_fail(&e, GLYD_E_PARAMETER, 0, GLYD_CPU_CHOICE_AVX2, 0);
  } else {
    cursor c;
    cursor_init(&c, in, len, limits);
    c.sizes_only = 1;
    item next;
    do {
      if (hop(&c, &next, &e)) break;
    } while (next.segment.kind != GLYD_KIND_END);
    if (e.status == GLYD_OK) *size = c.progress.total_content;
  }
  if (error) *error = e;
  return e.status;
}

glyd_status glyd_frame_walk(const uint8_t *in, size_t len, const glyd_references *references, const glyd_limits *limits,
                            glyd_frame_see *see, void *arg, uint64_t *content_size, glyd_error *error) {
  glyd_error e = {.status = GLYD_OK};
  *content_size = 0;
  if (!arguments_valid(limits, NULL, 1)) {
    (void)glyd_frame_fail(&e, GLYD_E_PARAMETER, 0, GLYD_CPU_CHOICE_AVX2, 0);
  } else {
    cursor c;
    cursor_init(&c, in, len, limits);
    c.references = *references;
    item next = {.at = 0};
    while (hop(&c, &next, &e) == GLYD_OK && next.segment.kind != GLYD_KIND_END) {
      const size_t payload = next.at + next.segment.header_size;
      const glyd_status status = see(arg, &next.segment, &next.frame, next.content, payload);
      if (glyd_frame_fail(&e, status, next.at, 0, 0) != GLYD_OK) break;
    }
    if (e.status == GLYD_OK) *content_size = c.progress.total_content;
  }
  if (error) *error = e;
  return e.status;
}

typedef struct job {
  cursor c;
  uint8_t *out;
  size_t cap;
  const glyd_allocator *allocator;
  int stop; /* no segment is handed out any more */
  glyd_error first;
  uint64_t memory; /* bytes allocated for workspaces */
  glyd_lock lock;
} job;

static void note_error(job *j, const glyd_error *error) {
  j->stop = 1;
  if (j->first.status == GLYD_OK || error->offset < j->first.offset) j->first = *error;
}

/* Next segment that fits the output; 0 when there is none. */
static int take(job *j, item *next) {
  if (j->stop) return 0;
  glyd_error error = {.status = GLYD_OK};
  if (hop(&j->c, next, &error) == GLYD_OK) {
    if (next->segment.kind == GLYD_KIND_END) {
      j->stop = 1;
      return 0;
    }
    if (next->segment.content_size <= j->cap - next->content) return 1;
    (void)glyd_frame_fail(&error, GLYD_E_BUFFER, next->at, j->cap, next->content + next->segment.content_size);
  }
  note_error(j, &error);
  return 0;
}

/* A workspace within the memory limit, made when the first segment needs it. */
static glyd_status get_workspace(job *j, uint64_t size, void **workspace, glyd_error *error) {
  const uint64_t cost = size + GLYD_ALLOC_OVERHEAD;
  const uint64_t most = j->c.progress.limits.max_memory;
  if (j->memory + cost > most) return glyd_frame_fail(error, GLYD_E_LIMIT_MEMORY, 0, most, j->memory + cost);
  *workspace = glyd_alloc_get(j->allocator, size);
  if (!*workspace) return glyd_frame_fail(error, GLYD_E_MEMORY, 0, cost, 0);
  if (size >= GLYD_LARGE_WORKSPACE) glyd_alloc_use_whole(*workspace, size);
  j->memory += cost;
  return GLYD_OK;
}

static void work(void *arg, int worker) {
  job *j = arg;
  void *workspace = NULL;
  uint64_t have = 0; /* bytes of it */
  item next;
  pthread_mutex_lock(&j->lock);
  while (take(j, &next)) {
    glyd_error error = {.status = GLYD_OK};
    const uint64_t need = glyd_segment_decode_workspace(&next.frame, next.segment.kind, next.segment.content_size);
    if (need > have) {
      if (workspace) j->memory -= have + GLYD_ALLOC_OVERHEAD;
      glyd_alloc_put(j->allocator, workspace);
      workspace = NULL;
      have = 0;
      if (get_workspace(j, need, &workspace, &error)) {
        error.offset = next.at;
        note_error(j, &error);
        break;
      }
      have = need;
    }
    pthread_mutex_unlock(&j->lock);
    const glyd_status status =
        glyd_segment_decode(j->c.cpu, workspace, &j->c.references, &next.frame, &next.segment, j->out + next.content,
                            j->c.in + next.at + next.segment.header_size, &error);
    pthread_mutex_lock(&j->lock);
    if (status) {
      error.offset += next.at;
      note_error(j, &error);
    }
  }
  pthread_mutex_unlock(&j->lock);
  glyd_alloc_put(j->allocator, workspace);
  (void)worker;
}

/* Workers that pay: none for small content, no more than segments, as far as
 * the first header tells, and as the memory limit allows. */
static int worker_count(const job *j, int threads) {
  int n = glyd_thread_worth(glyd_thread_count(threads), j->cap, GLYD_DECODE_GRAIN);
  if (n == 1) return 1;
  glyd_frame_info info = {.is_skippable = 1};
  if (glyd_header_decode_frame(j->c.in, j->c.len, &info, NULL) == GLYD_OK && info.header_size < j->c.len) {
    glyd_segment_info segment;
    const size_t left = j->c.len - info.header_size;
    if (!info.is_skippable &&
        glyd_header_decode_segment(j->c.in + info.header_size, left, &info, &segment, NULL) == GLYD_OK &&
        left <= segment.header_size + segment.payload_size)
      return 1; /* the only segment */
  }
  /* What the largest segment of the first frame takes: later frames may fail for want of memory. */
  const uint64_t content = info.content_size < info.segment_size ? info.content_size : info.segment_size;
  const uint64_t workspace = glyd_segment_decode_workspace_max(&info, content) + GLYD_ALLOC_OVERHEAD;
  const uint64_t affordable = j->c.progress.limits.max_memory / workspace;
  if (affordable < (uint64_t)n) n = affordable > 1 ? (int)affordable : 1;
  return n;
}

glyd_status glyd_frame_decode(uint8_t *out, size_t cap, const uint8_t *in, size_t len,
                              const glyd_references *references, int threads, const glyd_limits *limits,
                              const glyd_allocator *allocator, size_t *out_len, glyd_error *error) {
  *out_len = 0;
  if (!arguments_valid(limits, allocator, threads)) return glyd_frame_fail(error, GLYD_E_PARAMETER, 0, 0, 0);
  job j = {.out = out, .cap = cap, .allocator = allocator};
  cursor_init(&j.c, in, len, limits);
  if (references) j.c.references = *references;
  if (pthread_mutex_init(&j.lock, NULL) != 0) return glyd_frame_fail(error, GLYD_E_MEMORY, 0, sizeof j.lock, 0);
  glyd_thread_team(worker_count(&j, threads), work, &j);
  (void)pthread_mutex_destroy(&j.lock);
  if (error) *error = j.first;
  if (j.first.status == GLYD_OK) *out_len = (size_t)j.c.progress.total_content;
  return j.first.status;
}
