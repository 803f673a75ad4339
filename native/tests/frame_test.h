/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What the tests of frames share: memory that faults outside its bounds, an
 * allocator that counts and fails on request, content, whole streams.
 */
#ifndef GLYD_FRAME_TEST_H
#define GLYD_FRAME_TEST_H

#include <sys/mman.h>
#include <unistd.h>

#include "glyd/glyd.h"
#include "test.h"

/* size bytes that end (or with at_start begin) at a page nobody may touch. */
typedef struct guard {
  uint8_t *map;
  size_t map_size;
  uint8_t *p;
} guard;

static inline guard guard_new(size_t size, int at_start) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t body = (size + page - 1) / page * page;
  guard g = {.map_size = body + 2 * page};
  g.map = mmap(NULL, g.map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (g.map == MAP_FAILED) abort();
  if (body > 0 && mprotect(g.map + page, body, PROT_READ | PROT_WRITE) != 0) abort();
  g.p = at_start ? g.map + page : g.map + page + body - size;
  return g;
}

static inline guard guard_copy(const void *data, size_t size, int at_start) {
  guard g = guard_new(size, at_start);
  if (size > 0) memcpy(g.p, data, size);
  return g;
}

static inline void guard_free(guard g) { (void)munmap(g.map, g.map_size); }

/* An allocator that counts what is allocated and fails at call number fail_at. */
typedef struct counter {
  uint64_t now;
  uint64_t peak;
  uint64_t calls;
  uint64_t fail_at; /* 1 is the first call; 0 never */
} counter;

static inline void *counter_alloc(void *opaque, size_t size) {
  counter *c = opaque;
  if (++c->calls == c->fail_at) return NULL;
  uint64_t *p = malloc(size + 16);
  if (!p) return NULL;
  p[0] = size;
  c->now += size;
  if (c->now > c->peak) c->peak = c->now;
  return p + 2;
}

static inline void counter_free(void *opaque, void *ptr) {
  counter *c = opaque;
  uint64_t *p = (uint64_t *)ptr - 2;
  c->now -= p[0];
  free(p);
}

static inline glyd_allocator counter_allocator(counter *c) {
  *c = (counter){.now = 0};
  return (glyd_allocator){counter_alloc, counter_free, c};
}

/* Text-like content with repeats near and far, noise, and runs. */
static inline uint8_t *make_content(size_t size, uint64_t seed) {
  uint8_t *p = malloc(size + 1);
  if (!p) abort();
  uint64_t s = seed * 2654435769u + 1;
  for (size_t i = 0; i < size;) {
    const uint64_t r = test_random(&s);
    size_t n = 1 + (r >> 8) % 60;
    if (n > size - i) n = size - i;
    if (i > 300 && r % 4 == 0) {
      const size_t back = 1 + (size_t)(r >> 20) % (i < 100000 ? i : 100000);
      for (size_t k = 0; k < n; k++) p[i + k] = p[i + k - back];
    } else if (r % 37 == 1) {
      for (size_t k = 0; k < n; k++) p[i + k] = (uint8_t)test_random(&s);
    } else {
      for (size_t k = 0; k < n; k++) p[i + k] = (uint8_t) "etaoin shrdlu\n0123,"[test_random(&s) % 19];
    }
    i += n;
  }
  return p;
}

typedef struct buffer {
  uint8_t *p;
  size_t len;
  size_t cap;
} buffer;

static inline void buffer_add(buffer *b, const void *data, size_t n) {
  if (b->len + n > b->cap) {
    b->cap = 2 * (b->len + n);
    b->p = realloc(b->p, b->cap);
    if (!b->p) abort();
  }
  if (n > 0) memcpy(b->p + b->len, data, n);
  b->len += n;
}

/* Compress in one call to a buffer of its own. */
static inline buffer compress_all(const void *data, size_t n, const glyd_params *params) {
  buffer b = {.cap = (size_t)glyd_compress_bound(n, params)};
  b.p = malloc(b.cap);
  if (!b.p) abort();
  CHECK_EQ(glyd_compress(b.p, b.cap, data, n, params, &b.len), GLYD_OK);
  return b;
}

/* Decompress a stream in pieces of at most in_step and out_step bytes. */
static inline glyd_status stream_decode(glyd_dctx *ctx, const uint8_t *data, size_t n, size_t in_step, size_t out_step,
                                        buffer *out, int *at_end) {
  uint8_t *piece = malloc(out_step);
  if (!piece) abort();
  glyd_in in = {data, 0, 0};
  glyd_status status = GLYD_OK;
  size_t written;
  *at_end = 1;
  do {
    if (in.pos == in.size && in.size < n) in.size += in_step < n - in.size ? in_step : n - in.size;
    const size_t before = in.pos;
    glyd_out o = {piece, out_step, 0};
    status = glyd_decompress_stream(ctx, &o, &in, at_end);
    buffer_add(out, piece, o.pos);
    written = o.pos + (in.pos - before);
  } while (status == GLYD_OK && (in.size < n || written > 0));
  free(piece);
  return status;
}

/* Compress a stream in pieces. */
static inline glyd_status stream_encode(glyd_cctx *ctx, const uint8_t *data, size_t n, size_t in_step, size_t out_step,
                                        glyd_op op, buffer *out) {
  uint8_t *piece = malloc(out_step);
  if (!piece) abort();
  glyd_in in = {data, 0, 0};
  glyd_status status = GLYD_OK;
  size_t pending = 0;
  do {
    if (in.pos == in.size && in.size < n) in.size += in_step < n - in.size ? in_step : n - in.size;
    glyd_out o = {piece, out_step, 0};
    status = glyd_compress_stream(ctx, &o, &in, in.size == n ? op : GLYD_CONTINUE, &pending);
    buffer_add(out, piece, o.pos);
  } while (status == GLYD_OK && (in.pos < n || pending > 0));
  free(piece);
  return status;
}

#endif
