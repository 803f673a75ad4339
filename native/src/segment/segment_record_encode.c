/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_record_encode.h"

#include "common/mem.h"
#include "record/record_common.h"
#include "record/record_encode.h"
#include "segment/segment_pool_encode.h"
#include "segment/segment_stream_encode.h"

#define TRIED ((size_t)16 << 10) /* bytes of the pool up to which it is compared with streams of their own */
#define SMALL ((size_t)4 << 20)  /* content: there bytes count for more than the rate */

/* Where matches help, a level above the one asked for finds more of them: it
 * takes longer, but columns are few bytes. The shares, of the content, keep the
 * speed of writing (record/spec.md). */
static void better_levels(const glyd_lz_config *config, glyd_stream_level *better) {
  static const struct {
    int level;
    unsigned share;
  } rules[GLYD_STREAM_LEVELS] = {{GLYD_LEVEL_ULTRA, 512}, {GLYD_LEVEL_HIGH, 2}};
  for (unsigned i = 0; i < GLYD_STREAM_LEVELS; i++) {
    better[i] = (glyd_stream_level){.config = *config};
    better[i].config.level = 0;
    if (config->level < GLYD_LEVEL_MAX || config->level >= rules[i].level) continue;
    better[i].config.level = rules[i].level;
    const int whole = rules[i].level == GLYD_LEVEL_HIGH && config->segment_size <= SMALL;
    better[i].config.segment_size = config->segment_size / (whole ? 1 : rules[i].share);
  }
}

static uint64_t level_workspace(const glyd_stream_level *level) {
  return level->config.level == 0 ? 0 : GLYD_RECORD_ALIGN(glyd_lz_encode_workspace(&level->config));
}

uint64_t glyd_segment_record_encode_workspace(const glyd_lz_config *config) {
  glyd_stream_level better[GLYD_STREAM_LEVELS];
  better_levels(config, better);
  uint64_t size = glyd_record_encode_memory(config->segment_size) +
                  GLYD_RECORD_ALIGN(glyd_segment_stream_scratch(config->segment_size)) +
                  glyd_segment_pool_memory(config->segment_size);
  for (unsigned i = 0; i < GLYD_STREAM_LEVELS; i++) size += level_workspace(&better[i]);
  return size;
}

typedef struct payload {
  glyd_stream_writer w;
  glyd_text_pool pool;
  uint8_t *out;
  size_t n_streams;
} payload;

/* Texts are kept for the end, when all of them are known. */
static int put_stream(void *arg, const uint8_t *data, size_t n, int text) {
  payload *const p = arg;
  if (!data) {
    p->n_streams = n;
    return 1;
  }
  if (text) return glyd_segment_pool_add(&p->pool, data, n, (size_t)(p->w.at - p->out));
  return glyd_segment_stream_encode(&p->w, data, n);
}

/* The texts' bytes that are pooled, one after the other, in scratch memory or where they are. NULL: no room. */
static const uint8_t *join_pooled(payload *p, size_t n) {
  if (n == p->pool.n) return p->pool.bytes;
  if (n > (size_t)(p->w.scratch_end - p->w.scratch)) return NULL;
  uint8_t *const joined = p->w.scratch;
  uint8_t *to = joined;
  for (uint32_t t = 0; t < p->pool.n_texts; t++) {
    const glyd_pool_text *const text = &p->pool.texts[t];
    if (!text->pooled) continue;
    memcpy(to, text->data, text->n);
    to += text->n;
  }
  p->w.scratch = to;
  return joined;
}

/* Bytes that the texts of the pool take on their own; SIZE_MAX: no room to see. */
static size_t size_apart(const payload *p, size_t n) {
  glyd_stream_writer w = p->w;
  const size_t room = 2 * n + (size_t)64 * p->pool.n_texts;
  if (room > (size_t)(w.scratch_end - w.scratch)) return SIZE_MAX;
  uint8_t *const from = w.scratch;
  w.at = from;
  w.end = w.scratch = from + room;
  for (uint32_t t = 0; t < p->pool.n_texts; t++) {
    const glyd_pool_text *const text = &p->pool.texts[t];
    if (text->pooled && !glyd_segment_stream_encode_text(&w, text->data, text->n)) return SIZE_MAX;
  }
  return (size_t)(w.at - from);
}

/* Write the pool, if there is something to pool. */
static int put_pool(payload *p) {
  glyd_stream_writer *const w = &p->w;
  uint8_t *const scratch = w->scratch, *const from = w->at;
  const size_t n = glyd_segment_pool_choose(&p->pool);
  const uint8_t *const joined = n > 0 ? join_pooled(p, n) : NULL;
  if (!joined) return 0;
  const size_t apart = n < TRIED ? size_apart(p, n) : SIZE_MAX;
  int put = glyd_segment_stream_encode_pool(w, joined, n);
  if (put && apart < (size_t)(w->at - from) + (size_t)2 * p->pool.n_texts) {
    w->at = from;
    put = 0;
  }
  w->scratch = scratch;
  return put;
}

/* The payload, of the streams at out and the texts: the former make room at the end and come back one after the other. */
static int put_payload(payload *p, uint8_t *end) {
  glyd_stream_writer *const w = &p->w;
  const size_t others = (size_t)(w->at - p->out);
  const uint8_t *from = end - others;
  memmove(end - others, p->out, others);
  w->at = p->out;
  w->end = end - others;
  if (w->end - w->at < 10) return 0;
  uint8_t *const head = w->at;
  w->at = glyd_put_varint(head, (uint64_t)p->n_streams << 1 | 1);
  const int pooled = put_pool(p);
  head[0] = (uint8_t)(head[0] - !pooled);
  size_t done = 0;
  for (uint32_t t = 0; t < p->pool.n_texts; t++) {
    const glyd_pool_text *const text = &p->pool.texts[t];
    const size_t size = text->before - done;
    memmove(w->at, from, size);
    w->at += size;
    from += size;
    done += size;
    w->end = end - (others - done);
    const int put = pooled && text->pooled ? glyd_segment_stream_put_pooled(w, text->n)
                                           : glyd_segment_stream_encode_text(w, text->data, text->n);
    if (!put) return 0;
  }
  memmove(w->at, from, others - done);
  w->at += others - done;
  return 1;
}

/* One way to cut the content into rows. bests: spend time on levels above the one asked for. */
static int encode_way(const glyd_lz_config *config, void *lz, void *workspace, const uint8_t *in, size_t len,
                      glyd_record_way way, int bests, uint8_t *out, size_t cap, size_t *out_len) {
  const uint64_t memory = glyd_record_encode_memory(config->segment_size);
  const uint64_t scratch_size = GLYD_RECORD_ALIGN(glyd_segment_stream_scratch(config->segment_size));
  uint8_t *at = (uint8_t *)workspace + memory;
  payload p = {.w = {.config = config, .lz = lz, .at = out, .end = out + cap, .scratch = at}, .out = out};
  at += scratch_size;
  p.w.scratch_end = at;
  glyd_segment_pool_init(&p.pool, at, config->segment_size);
  at += glyd_segment_pool_memory(config->segment_size);
  better_levels(config, p.w.better);
  for (unsigned i = 0; i < GLYD_STREAM_LEVELS; i++) {
    glyd_stream_level *const better = &p.w.better[i];
    better->lz = at;
    const glyd_lz_config *const level = &better->config;
    better->left = level->level == 0 || !bests ? 0 : len * level->segment_size / config->segment_size;
    if (level->level == GLYD_LEVEL_HIGH && len <= SMALL && bests)
      better->left = len < level->segment_size ? len : level->segment_size;
    at += level_workspace(better);
  }
  if (!glyd_record_encode(workspace, memory, in, len, way, put_stream, &p) || !put_payload(&p, out + cap)) return 0;
  *out_len = (size_t)(p.w.at - out);
  return 1;
}

#define SAMPLE_LEAST ((size_t)64 << 10) /* of content that several ways are tried on */
#define SAMPLE_MOST ((size_t)256 << 10)
#define SAMPLE_SHARE 16u /* one byte in so many */

/* Put the way that makes the smallest payload of a sample first. */
static void choose_way(const glyd_lz_config *config, void *lz, void *workspace, const uint8_t *in, size_t len,
                       uint8_t *out, size_t cap, unsigned n, glyd_record_way *ways) {
  size_t size = len / SAMPLE_SHARE, best = SIZE_MAX;
  unsigned first = 0;
  size = size < SAMPLE_LEAST ? SAMPLE_LEAST : size > SAMPLE_MOST ? SAMPLE_MOST : size;
  if (size > len) size = len;
  const uint8_t *from = in + (len - size) / 2, *const end = from + size;
  if (from > in) {
    const uint8_t *const line = memchr(from, '\n', size);
    if (line) from = line + 1;
  }
  for (unsigned i = 0; i < n; i++) {
    size_t got;
    if (!encode_way(config, lz, workspace, from, (size_t)(end - from), ways[i], 0, out, cap, &got) || got >= best)
      continue;
    best = got;
    first = i;
  }
  const glyd_record_way way = ways[first];
  for (; first > 0; first--) ways[first] = ways[first - 1];
  ways[0] = way;
}

int glyd_segment_record_encode(const glyd_lz_config *config, void *lz, void *workspace, const uint8_t *in, size_t len,
                               uint8_t *out, size_t cap, size_t *out_len) {
  glyd_record_way ways[GLYD_RECORD_WAYS];
  int compare;
  const unsigned n = glyd_record_ways(in, len, ways, &compare);
  if (compare) choose_way(config, lz, workspace, in, len, out, cap, n, ways);
  for (unsigned i = 0; i < n; i++)
    if (encode_way(config, lz, workspace, in, len, ways[i], 1, out, cap, out_len)) return 1;
  return 0;
}
