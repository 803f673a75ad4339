/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "deflate/deflate_encode.h"

#include "deflate/deflate_inflate_encode.h"

typedef glyd_arith_writer coder;
#define IS_WRITING 1

static uint32_t code_bit(coder *c, uint32_t chance, uint32_t bit) {
  glyd_arith_writer_put(c, chance, bit);
  return bit;
}

#include "deflate/deflate_describe.h"

#define TRIAL_TOKENS 8192u     /* by which settings are chosen */
#define TRIAL_MATCHES 64u      /* of these at least, or all there are */
#define TRIAL_STEPS (1u << 23) /* candidates that one trial may look at */

struct glyd_deflate_writer {
  glyd_arith_writer code;
  const uint8_t *start;
  glyd_deflate_settings last;
  glyd_deflate_chances chances, chances_before;
  glyd_deflate_model model;
  glyd_inflate inflate;
  glyd_deflate_block block, predicted;
  glyd_deflate_token tokens[GLYD_DEFLATE_TOKENS_MAX];
};

size_t glyd_deflate_encode_workspace(void) { return (sizeof(glyd_deflate_writer) + 63) & ~(size_t)63; }

glyd_deflate_writer *glyd_deflate_encode_begin(void *workspace, uint8_t *out, size_t cap) {
  glyd_deflate_writer *const w = workspace;
  glyd_arith_writer_init(&w->code, out, out + cap);
  w->start = out;
  w->last = (glyd_deflate_settings){6, 0, 8, 15, 0};
  begin_chances(&w->chances);
  glyd_deflate_model_init(&w->model);
  return w;
}

int glyd_deflate_encode_read(glyd_deflate_writer *w, const uint8_t *in, size_t len, uint8_t *content, size_t cap,
                             glyd_deflate_stream *stream) {
  glyd_inflate *const s = &w->inflate;
  if (cap > INT32_MAX) cap = INT32_MAX;
  glyd_inflate_begin(s, in, len, content, cap);
  for (;;) {
    const glyd_inflate_result result = glyd_inflate_block(s, &w->block, NULL);
    stream->content_size = s->at; /* of what is no stream too: it counts as read in vain */
    if (result == GLYD_INFLATE_INVALID) return 0;
    if (result == GLYD_INFLATE_OK && !w->block.is_last) continue;
    stream->is_cut = result != GLYD_INFLATE_OK;
    break;
  }
  /* what is left of a byte after a cut comes with the bytes after it */
  stream->stored_size = (size_t)((s->bit + (stream->is_cut ? 0 : 7)) >> 3);
  stream->len = len;
  return s->at > 0;
}

/* Tokens among the first n at `at` that these settings do not predict; stops at `most`. */
static uint32_t count_errors(glyd_deflate_writer *w, const glyd_deflate_settings *settings, const uint8_t *content,
                             uint32_t size, uint32_t at, uint32_t n, uint32_t most) {
  glyd_deflate_model *const m = &w->model;
  glyd_deflate_model_begin(m, settings, content, size);
  if (at > GLYD_DEFLATE_WINDOW) m->inserted = at - GLYD_DEFLATE_WINDOW;
  uint32_t errors = 0;
  for (uint32_t i = 0; i < n && errors < most && m->steps < TRIAL_STEPS; i++) {
    const glyd_deflate_token token = w->tokens[i], predicted = glyd_deflate_model_predict(m, at);
    errors += predicted != token;
    glyd_deflate_model_accept(m, at, predicted, token);
    at += glyd_deflate_token_size(token);
  }
  glyd_deflate_model_end(m);
  return m->steps < TRIAL_STEPS ? errors : most;
}

/* Keep the settings if they are better; returns the errors of the best. */
static uint32_t try_settings(glyd_deflate_writer *w, glyd_deflate_settings *best, const glyd_deflate_settings *settings,
                             const uint8_t *content, uint32_t size, uint32_t at, uint32_t n, uint32_t least) {
  if (least == 0) return 0;
  const uint32_t errors = count_errors(w, settings, content, size, at, n, least);
  if (errors < least) *best = *settings;
  return errors < least ? errors : least;
}

/* Does the block end where the rule says? */
static int block_fits(const glyd_deflate_settings *s, const glyd_deflate_block *block, const glyd_deflate_token *tokens,
                      uint32_t left) {
  uint64_t size = 0;
  for (uint32_t i = 0; i < block->n_tokens; i++) {
    if (ends_by_rule(s, tokens, i, size, left)) return 0;
    const uint32_t n = glyd_deflate_token_size(tokens[i]);
    size += n;
    left -= n;
  }
  return ends_by_rule(s, tokens, block->n_tokens, size, left);
}

/* The settings that predict the first block with matches best: those of the last stream, if they do without error. */
static void choose_settings(glyd_deflate_writer *w, const uint8_t *in, uint8_t *content,
                            const glyd_deflate_stream *stream, unsigned window_log, glyd_deflate_settings *best) {
  const uint32_t size = (uint32_t)stream->content_size;
  *best = w->last;
  best->window_log = (uint8_t)window_log;
  uint32_t at = 0, n = 0, matches = 0, far = 0;
  glyd_inflate_begin(&w->inflate, in, stream->len, content, size);
  do {
    at = (uint32_t)w->inflate.at;
    if (at == size || glyd_inflate_block(&w->inflate, &w->block, w->tokens) != GLYD_INFLATE_OK) return;
    n = w->block.type == GLYD_DEFLATE_STORED ? 0 : w->block.n_tokens;
    matches = far = 0;
    for (uint32_t i = 0; i < n; i++) {
      matches += w->tokens[i] >= 256;
      far += w->tokens[i] >= 256 && (w->tokens[i] & 0xFFFF) != 1;
    }
  } while (matches < TRIAL_MATCHES && !w->block.is_last);
  const uint32_t block_tokens = w->block.n_tokens, left = size - at;
  const int is_whole = (uint32_t)w->inflate.at == size;
  if (n > TRIAL_TOKENS) n = TRIAL_TOKENS;
  if (n == 0) return;
  /* What the size of the block says. */
  glyd_deflate_settings s = {6, 0, 8, (uint8_t)window_log, 0};
  if (block_tokens > glyd_deflate_model_block_tokens(&s)) s.memory = 9;
  int is_sized = 0;
  for (uint8_t memory = 1; memory <= 9 && !is_whole; memory++)
    if (block_tokens + 1 == 1u << (memory + 6)) {
      s.memory = memory;
      is_sized = 1;
    }
  if (is_sized && s.memory < 9) {
    best->memory = s.memory;
    best->is_gzip = 0;
  }
  const glyd_deflate_settings last = *best;
  uint32_t least = try_settings(w, best, &last, content, size, at, n, UINT32_MAX);
  glyd_deflate_settings gzip = {6, 0, 8, (uint8_t)window_log, 1};
  if (block_tokens > 16383 && block_fits(&gzip, &w->block, w->tokens, left)) {
    gzip.level = w->last.level;
    least = try_settings(w, best, &gzip, content, size, at, n, least);
    for (uint8_t level = 9; level > 0; level--) {
      gzip.level = level;
      least = try_settings(w, best, &gzip, content, size, at, n, least);
    }
  }
  static const uint8_t order[] = {6, 9, 1, 5, 8, 7, 4, 3, 2};
  for (unsigned i = 0; i < sizeof order; i++) {
    s.level = order[i];
    least = try_settings(w, best, &s, content, size, at, n, least);
  }
  if (far == 0) {
    s.level = matches ? GLYD_DEFLATE_RUNS : GLYD_DEFLATE_LITERALS;
    least = try_settings(w, best, &s, content, size, at, n, least);
  }
  s = *best;
  s.is_filtered = 1;
  if (s.level >= 4 && s.level < 10)
    for (uint8_t level = 9; level >= 4; level--) {
      s.level = level;
      least = try_settings(w, best, &s, content, size, at, n, least);
    }
  /* With few errors any memory does; with many, and blocks of no size of zlib's, another may do better. */
  s = *best;
  for (uint8_t memory = 9; memory > 0 && least > n / 64 && !is_sized; memory--) {
    if (memory == best->memory) continue;
    s.memory = memory;
    least = try_settings(w, best, &s, content, size, at, n, least);
  }
}

static uint64_t bits_so_far(const glyd_arith_writer *code, const uint8_t *start) {
  return (uint64_t)(code->at - start) * 8;
}

/* All blocks of a stream; 0: too much of something. */
static int describe_blocks(glyd_deflate_writer *w, const uint8_t *in, uint8_t *content,
                           const glyd_deflate_stream *stream, uint64_t most) {
  coder *const c = &w->code;
  const uint8_t *const start = c->at;
  state s = {&w->chances, &w->model, w->tokens, 0, 0};
  glyd_inflate_begin(&w->inflate, in, stream->len, content, stream->content_size);
  for (;;) {
    if (glyd_inflate_block(&w->inflate, &w->block, w->tokens) != GLYD_INFLATE_OK) return 0;
    const uint32_t left = w->model.n - s.at;
    const int by_rule =
        w->block.type != GLYD_DEFLATE_STORED && block_fits(&w->model.settings, &w->block, w->tokens, left);
    if (!code_block(c, &s, &w->block, &w->predicted, by_rule)) return 0;
    if (c->is_full || bits_so_far(c, start) > most) return 0;
    if (w->block.is_last) break;
    if (s.at == w->model.n) {
      const int is_cut = stream->is_cut && (w->inflate.bit >> 3) >= stream->stored_size;
      if (code_is_cut(c, &w->chances, is_cut)) return 1;
    }
  }
  const unsigned used = (unsigned)(w->inflate.bit & 7);
  (void)code_padding(c, &w->chances, used ? (uint32_t)in[stream->stored_size - 1] >> used : 0);
  return !c->is_full;
}

int glyd_deflate_encode_stream(glyd_deflate_writer *w, uint32_t gap, const uint8_t *in, uint8_t *content,
                               const glyd_deflate_stream *stream, const glyd_deflate_breaks *breaks,
                               unsigned window_log, uint64_t most, uint64_t *cost) {
  if (breaks && breaks->n > BREAKS_MAX) return 0;
  const coder code_before = w->code;
  const glyd_deflate_settings last = w->last;
  memcpy(&w->chances_before, &w->chances, sizeof w->chances);
  opening o = {gap, (uint32_t)stream->content_size, breaks ? breaks->n : 0, last};
  choose_settings(w, in, content, stream, window_log, &o.settings);
  code_opening(&w->code, &w->chances, &w->last, &o);
  uint32_t size = 0;
  for (uint32_t i = 0; i < o.n_breaks; i++) size = code_break(&w->code, &w->chances, size, breaks->sizes[i]);
  glyd_deflate_model_begin(&w->model, &o.settings, content, o.content_size);
  const int done = describe_blocks(w, in, content, stream, most);
  glyd_deflate_model_end(&w->model);
  *cost = bits_so_far(&w->code, code_before.at);
  if (done) return 1;
  w->code = code_before;
  w->last = last;
  memcpy(&w->chances, &w->chances_before, sizeof w->chances);
  return 0;
}

size_t glyd_deflate_encode_end(glyd_deflate_writer *w) {
  glyd_arith_writer_end(&w->code);
  return w->code.is_full ? 0 : (size_t)(w->code.at - w->start);
}
