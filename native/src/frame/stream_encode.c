/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A batch is up to `threads` segments: gathered, encoded together, written in
 * order. Content is gathered in the slots' own buffers, or stays where it is
 * when the caller's input holds a whole batch. States follow spec.md.
 */
#include "frame/stream_encode.h"

#include <stdatomic.h>

#include "common/alloc.h"
#include "common/checksum.h"
#include "common/cpu.h"
#include "common/mem.h"
#include "common/thread.h"
#include "frame/frame_common.h"
#include "frame/header_encode.h"
#include "frame/opened_encode.h"
#include "frame/segment_encode.h"

#define INDEX_CHUNK (64u << 10)

typedef struct index_chunk {
  struct index_chunk *next;
  size_t size;
  uint8_t bytes[INDEX_CHUNK - 2 * sizeof(void *)];
} index_chunk;

_Static_assert(sizeof(index_chunk) == INDEX_CHUNK, "the size that memory queries count");

typedef struct slot {
  uint8_t *content; /* own buffer of segment_size bytes */
  uint8_t *buffer;
  void *workspace;
  const uint8_t *from; /* content, or the caller's input */
  size_t len;
  const uint8_t *start; /* encoded segment inside buffer */
  size_t size;
  glyd_status status;
} slot;

typedef enum state {
  STATE_IDLE,    /* no frame begun */
  STATE_GATHER,  /* in a frame, taking content */
  STATE_DRAIN,   /* a batch is encoded and being written */
  STATE_TRAILER, /* the trailer is being written */
  STATE_END,     /* the last bytes are being written */
  STATE_FAILED
} state;

struct glyd_cctx {
  glyd_params params;
  glyd_plan plan;
  state state;
  int n_full;  /* slots with all their content; the one after them may be partly filled */
  int drained; /* slots written */
  uint64_t content;
  uint64_t stored; /* bytes of the frame so far, header included */
  uint64_t segments;
  uint64_t last_content;
  uint64_t last_stored;
  uint64_t index_size;
  index_chunk *index; /* first chunk, kept over frames */
  index_chunk *index_end;
  /* bytes waiting to be written, and how many of them are */
  const uint8_t *pending;
  size_t pending_size;
  index_chunk *trailer_chunk;                             /* next to write */
  uint8_t small[GLYD_HEADER_ENCODE_MAX + GLYD_TAIL_SIZE]; /* header, trailer prefix, tail */
  uint8_t tail[GLYD_TAIL_SIZE];
  slot slots[]; /* plan.threads */
};

_Static_assert(GLYD_HEADER_ENCODE_MAX + GLYD_TAIL_SIZE >= GLYD_TRAILER_PREFIX_MAX, "small holds each of them");

static uint64_t context_size(const glyd_plan *plan) {
  return sizeof(glyd_cctx) + (uint64_t)plan->threads * sizeof(slot);
}

uint64_t glyd_stream_encode_memory(const glyd_params *params) {
  glyd_plan plan;
  if (glyd_plan_encode(&plan, params, GLYD_SIZE_UNKNOWN) != GLYD_OK) return 0;
  const uint64_t workspace = glyd_segment_encode_workspace(&plan);
  uint64_t one = plan.segment_size + GLYD_SEGMENT_BUFFER(plan.segment_size) + 2 * GLYD_ALLOC_OVERHEAD;
  if (workspace) one += workspace + GLYD_ALLOC_OVERHEAD;
  if (plan.containers != GLYD_CONTAINERS_OFF) /* beside the choice between both */
    one += glyd_opened_encode_memory(&plan) + plan.segment_size + GLYD_ALLOC_OVERHEAD;
  const uint64_t all = context_size(&plan) + INDEX_CHUNK + 2 * GLYD_ALLOC_OVERHEAD + (uint64_t)plan.threads * one;
  return all + glyd_plan_encode_memory(&plan);
}

void glyd_stream_encode_free(glyd_cctx *ctx) {
  if (!ctx) return;
  const glyd_allocator a = ctx->plan.allocator;
  glyd_plan_encode_free(&ctx->plan);
  for (int i = 0; i < ctx->plan.threads; i++) {
    glyd_alloc_put(&a, ctx->slots[i].content);
    glyd_alloc_put(&a, ctx->slots[i].buffer);
    glyd_alloc_put(&a, ctx->slots[i].workspace);
  }
  while (ctx->index) {
    index_chunk *next = ctx->index->next;
    glyd_alloc_put(&a, ctx->index);
    ctx->index = next;
  }
  glyd_alloc_put(&a, ctx);
}

static void free_index_growth(glyd_cctx *ctx) {
  while (ctx->index->next) {
    index_chunk *next = ctx->index->next->next;
    glyd_alloc_put(&ctx->plan.allocator, ctx->index->next);
    ctx->index->next = next;
  }
  ctx->index->size = 0;
  ctx->index_end = ctx->index;
}

glyd_status glyd_stream_encode_reset(glyd_cctx *ctx, uint64_t content_size) {
  const int threads = ctx->plan.threads;
  glyd_plan plan;
  const glyd_status status = glyd_plan_encode(&plan, &ctx->params, content_size);
  if (status) return status;
  plan.threads = threads; /* of the slots there are, should the affinity have changed */
  glyd_plan_encode_free(&ctx->plan);
  ctx->plan = plan;
  free_index_growth(ctx);
  ctx->state = STATE_IDLE;
  ctx->n_full = 0;
  for (int i = 0; i < threads; i++) ctx->slots[i].len = 0;
  ctx->pending_size = 0;
  return GLYD_OK;
}

glyd_status glyd_stream_encode_create(glyd_cctx **ctx, const glyd_params *params) {
  *ctx = NULL;
  glyd_plan plan;
  /* The workspace must do for frames of any size that reset may announce. */
  const glyd_status status = glyd_plan_encode(&plan, params, GLYD_SIZE_UNKNOWN);
  if (status) return status;
  const glyd_allocator *a = &plan.allocator;
  glyd_cctx *c = glyd_alloc_get(a, context_size(&plan));
  if (!c) return GLYD_E_MEMORY;
  memset(c, 0, (size_t)context_size(&plan));
  c->params = *params;
  c->plan = plan;
  const uint64_t workspace = glyd_segment_encode_workspace(&plan);
  int complete = (c->index = glyd_alloc_get(a, INDEX_CHUNK)) != NULL;
  if (complete) c->index->next = NULL;
  for (int i = 0; complete && i < plan.threads; i++) {
    slot *s = &c->slots[i];
    s->content = glyd_alloc_get(a, plan.segment_size);
    s->buffer = glyd_alloc_get(a, GLYD_SEGMENT_BUFFER(plan.segment_size));
    if (workspace) s->workspace = glyd_alloc_get(a, workspace);
    if (s->workspace && plan.records) glyd_alloc_use_whole(s->workspace, workspace);
    complete = s->content && s->buffer && (s->workspace || !workspace);
  }
  const glyd_status reset = complete ? glyd_stream_encode_reset(c, params->content_size) : GLYD_E_MEMORY;
  if (reset) {
    glyd_stream_encode_free(c);
    return reset;
  }
  *ctx = c;
  return GLYD_OK;
}

/* has_records: segments may be records. */
static void put_header(glyd_cctx *c, int has_records) {
  glyd_plan plan = c->plan;
  plan.records = has_records;
  c->pending = c->small;
  c->pending_size = glyd_header_encode_frame(&plan, c->small);
  c->stored = c->pending_size;
}

static void begin_frame(glyd_cctx *c) {
  c->plan.weights = c->params.weights;
  c->content = 0;
  c->segments = 0;
  c->last_content = (uint64_t)1 << c->plan.segment_log;
  c->last_stored = 0;
  c->index_size = 0;
  c->plan.containers = c->plan.base ? GLYD_CONTAINERS_OFF : c->params.containers;
  c->plan.opens_by_itself = 0;
  c->stored = 0;
  c->state = STATE_GATHER;
  /* else the content decides about it */
  if (c->plan.containers != GLYD_CONTAINERS_AUTO && !c->plan.records) put_header(c, 0);
}

/* Write what waits; 1 when all of it is written. */
static int drain(glyd_cctx *c, glyd_out *out) {
  const size_t room = out->size - out->pos;
  const size_t n = c->pending_size < room ? c->pending_size : room;
  if (n > 0) {
    memcpy((uint8_t *)out->data + out->pos, c->pending, n);
    out->pos += n;
    c->pending += n;
    c->pending_size -= n;
  }
  return c->pending_size == 0;
}

static glyd_status record_segment(glyd_cctx *c, const slot *s) {
  if (c->plan.has_trailer) {
    index_chunk *chunk = c->index_end;
    if (chunk->size + GLYD_INDEX_ENTRY_MAX > sizeof chunk->bytes) {
      chunk = glyd_alloc_get(&c->plan.allocator, INDEX_CHUNK);
      if (!chunk) return GLYD_E_MEMORY;
      chunk->next = NULL;
      chunk->size = 0;
      c->index_end->next = chunk;
      c->index_end = chunk;
    }
    uint8_t *at = chunk->bytes + chunk->size;
    const uint8_t *end = glyd_frame_put_index_entry(at, s->len, c->last_content, s->size, c->last_stored);
    chunk->size += (size_t)(end - at);
    c->index_size += (uint64_t)(end - at);
    if (c->index_size > UINT32_MAX - GLYD_TRAILER_PREFIX_MAX - GLYD_TAIL_SIZE) return GLYD_E_LIMIT_SEGMENTS;
  }
  c->last_content = s->len;
  c->last_stored = s->size;
  c->stored += s->size;
  c->segments++;
  return GLYD_OK;
}

typedef struct batch {
  glyd_cctx *ctx;
  uint64_t first; /* where its content starts in that of the frame */
  _Atomic int next;
} batch;

static void encode_slots(void *arg, int worker) {
  batch *b = arg;
  glyd_cctx *c = b->ctx;
  (void)worker;
  for (int i = atomic_fetch_add(&b->next, 1); i < c->n_full; i = atomic_fetch_add(&b->next, 1)) {
    slot *s = &c->slots[i];
    s->status = glyd_segment_encode(&c->plan, s->workspace, b->first + (uint64_t)i * c->plan.segment_size, s->from,
                                    s->len, s->buffer + GLYD_SEGMENT_HEADER_MAX, &s->start, &s->size);
  }
}

static void wait_for_slot(glyd_cctx *c) {
  c->pending = c->slots[c->drained].start;
  c->pending_size = c->slots[c->drained].size;
}

/* Do segments say that they may be records? Without one, the header need not: but that is known only of content that
 * is one segment. */
static int has_records(const glyd_cctx *c, int is_all) {
  return c->plan.records && !(is_all && c->n_full == 1 && !glyd_segment_may_be_record(c->slots[0].start));
}

/* Encode the slots that have content and start to write them. ends: it is the last of the frame. */
static glyd_status encode_batch(glyd_cctx *c, int ends) {
  const uint64_t total = (uint64_t)(c->n_full - 1) * c->plan.segment_size + c->slots[c->n_full - 1].len;
  batch b = {.ctx = c, .first = c->content - total};
  atomic_init(&b.next, 0);
  const int has_header = c->stored > 0, is_all = ends || c->content == c->plan.content_size;
  if (c->segments == 0) {
    const glyd_status status = glyd_plan_encode_weights(&c->plan, c->slots[0].from, c->slots[0].len);
    if (status) return status;
  }
  if (!has_header) glyd_plan_encode_containers(&c->plan, c->slots[0].from, c->slots[0].len);
  glyd_thread_team(glyd_thread_worth(c->n_full, total, GLYD_ENCODE_GRAIN), encode_slots, &b);
  for (int i = 0; i < c->n_full; i++)
    if (c->slots[i].status) return c->slots[i].status;
  if (!has_header) put_header(c, has_records(c, is_all));
  for (int i = 0; i < c->n_full; i++) {
    const glyd_status status = record_segment(c, &c->slots[i]);
    if (status) return status;
  }
  c->drained = has_header ? 0 : -1;
  c->state = STATE_DRAIN;
  if (has_header) wait_for_slot(c);
  return GLYD_OK;
}

/* Take content until the input is used up or a batch is complete. */
static glyd_status gather(glyd_cctx *c, glyd_in *in) {
  const size_t left = in->size - in->pos;
  if (c->plan.content_size != GLYD_SIZE_UNKNOWN && left > c->plan.content_size - c->content) return GLYD_E_PARAMETER;
  const size_t segment = (size_t)c->plan.segment_size;
  const size_t start = in->pos;
  if (c->n_full == 0 && c->slots[0].len == 0 && left / segment >= (size_t)c->plan.threads) {
    for (; c->n_full < c->plan.threads; c->n_full++) {
      slot *s = &c->slots[c->n_full];
      s->from = (const uint8_t *)in->data + in->pos;
      s->len = segment;
      in->pos += segment;
    }
  }
  while (in->pos < in->size && c->n_full < c->plan.threads) {
    slot *s = &c->slots[c->n_full];
    const size_t rest = in->size - in->pos;
    const size_t n = rest < segment - s->len ? rest : segment - s->len;
    memcpy(s->content + s->len, (const uint8_t *)in->data + in->pos, n);
    s->from = s->content;
    s->len += n;
    in->pos += n;
    if (s->len == segment) c->n_full++;
  }
  c->content += in->pos - start;
  return GLYD_OK;
}

/* All segments are written: go on to the trailer, or to the end. */
static glyd_status begin_trailer(glyd_cctx *c) {
  if (c->plan.content_size != GLYD_SIZE_UNKNOWN && c->content != c->plan.content_size) return GLYD_E_PARAMETER;
  c->state = STATE_END;
  if (!c->plan.has_trailer) return GLYD_OK;
  c->pending = c->small;
  c->pending_size = glyd_header_encode_trailer_prefix(c->segments, c->small);
  const uint64_t size = c->pending_size + c->index_size + GLYD_TAIL_SIZE;
  glyd_header_encode_tail(c->content, c->stored + size, (uint32_t)size, c->tail);
  glyd_checksum_state hash;
  glyd_checksum_init(&hash);
  glyd_checksum_update(&hash, c->small, c->pending_size);
  for (const index_chunk *i = c->index; i; i = i->next) glyd_checksum_update(&hash, i->bytes, i->size);
  glyd_checksum_update(&hash, c->tail, GLYD_TAIL_SIZE - 4);
  glyd_store32(c->tail + GLYD_TAIL_SIZE - 4, (uint32_t)glyd_checksum_digest(&hash));
  c->trailer_chunk = c->index;
  c->state = STATE_TRAILER;
  return GLYD_OK;
}

/* With nothing left to write: what comes next. *done is set when the op is complete. */
static glyd_status advance(glyd_cctx *c, glyd_in *in, glyd_op op, int *done) {
  const int has_input = in->pos < in->size;
  switch (c->state) {
  case STATE_IDLE:
    *done = !has_input && op != GLYD_END;
    if (!*done) begin_frame(c);
    return GLYD_OK;
  case STATE_GATHER: {
    const glyd_status status = has_input ? gather(c, in) : GLYD_OK;
    if (status) return status;
    if (op != GLYD_CONTINUE && in->pos == in->size && c->n_full < c->plan.threads && c->slots[c->n_full].len > 0)
      c->n_full++;
    if (c->n_full == c->plan.threads || (c->n_full > 0 && op != GLYD_CONTINUE)) {
      const int ends = op == GLYD_END && in->pos == in->size && c->slots[c->n_full - 1].len < c->plan.segment_size;
      return encode_batch(c, ends);
    }
    *done = op != GLYD_END;
    if (op != GLYD_END) return GLYD_OK;
    if (c->stored == 0) { /* no content has come */
      c->plan.containers = GLYD_CONTAINERS_OFF;
      put_header(c, 0);
      return GLYD_OK;
    }
    return begin_trailer(c);
  }
  case STATE_DRAIN:
    if (++c->drained < c->n_full) {
      wait_for_slot(c);
      return GLYD_OK;
    }
    for (int i = 0; i < c->n_full; i++) c->slots[i].len = 0;
    c->n_full = 0;
    c->state = STATE_GATHER;
    return GLYD_OK;
  case STATE_TRAILER:
    if (c->trailer_chunk) {
      c->pending = c->trailer_chunk->bytes;
      c->pending_size = c->trailer_chunk->size;
      c->trailer_chunk = c->trailer_chunk->next;
    } else {
      c->pending = c->tail;
      c->pending_size = GLYD_TAIL_SIZE;
      c->state = STATE_END;
    }
    return GLYD_OK;
  case STATE_END:
    free_index_growth(c);
    c->state = STATE_IDLE;
    *done = 1;
    return GLYD_OK;
  case STATE_FAILED:
  default: return GLYD_E_STATE;
  }
}

glyd_status glyd_stream_encode_run(glyd_cctx *ctx, glyd_out *out, glyd_in *in, glyd_op op, size_t *pending) {
  *pending = 0;
  if (out->pos > out->size || in->pos > in->size || op < GLYD_CONTINUE || op > GLYD_END) return GLYD_E_PARAMETER;
  if (ctx->state == STATE_FAILED) return GLYD_E_STATE;
  for (int done = 0; !done;) {
    if (!drain(ctx, out)) {
      *pending = ctx->pending_size;
      for (int i = ctx->drained + 1; ctx->state == STATE_DRAIN && i < ctx->n_full; i++) *pending += ctx->slots[i].size;
      return GLYD_OK;
    }
    const glyd_status status = advance(ctx, in, op, &done);
    if (status) {
      ctx->state = STATE_FAILED;
      return status;
    }
  }
  return GLYD_OK;
}

glyd_status glyd_stream_encode_segment(glyd_cctx *ctx, uint8_t *out, size_t cap, const uint8_t *in, size_t len,
                                       size_t *out_len) {
  *out_len = 0;
  if (ctx->state != STATE_IDLE) return GLYD_E_STATE;
  if (len < 1 || len > ctx->plan.lz.segment_size) return GLYD_E_PARAMETER;
  const uint8_t *start;
  size_t size;
  slot *s = &ctx->slots[0];
  glyd_plan plan = ctx->plan;
  plan.weights = ctx->params.weights;
  plan.places = NULL;
  glyd_status status = glyd_plan_encode_weights(&plan, in, len); /* of each segment: nobody knows what was before it */
  if (status) return status;
  status = glyd_segment_encode(&plan, s->workspace, GLYD_SIZE_UNKNOWN, in, len, s->buffer + GLYD_SEGMENT_HEADER_MAX,
                               &start, &size);
  glyd_plan_encode_free(&plan);
  if (status) return status;
  if (size > cap) return GLYD_E_BUFFER;
  memcpy(out, start, size);
  *out_len = size;
  return GLYD_OK;
}
