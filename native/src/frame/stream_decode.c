/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A batch is the complete segments that a call finds, up to `threads` of them:
 * decoded together, straight into the output as far as it has room, delivered
 * in order. Every batch is decoded before the call returns, so nothing that
 * could be delivered waits for more input. States follow spec.md.
 */
#include "frame/stream_decode.h"

#include <stdatomic.h>

#include "common/alloc.h"
#include "common/checksum.h"
#include "common/cpu.h"
#include "common/mem.h"
#include "common/thread.h"
#include "frame/frame_common.h"
#include "frame/header_decode.h"
#include "frame/opened_decode.h"
#include "frame/progress_decode.h"
#include "frame/segment_decode.h"

/* Payload memory grows with the data: this much is given on a header's word,
 * then at most GROWTH times what has arrived. */
#define PAYLOAD_START ((size_t)64 << 10)
#define PAYLOAD_GROWTH 16u

#define SMALL_SIZE 32u
_Static_assert(SMALL_SIZE >= GLYD_HEADER_FIXED_MAX && SMALL_SIZE >= GLYD_SEGMENT_HEADER_MAX &&
                   SMALL_SIZE >= GLYD_SKIPPABLE_HEADER_SIZE && SMALL_SIZE >= GLYD_TAIL_SIZE,
               "every small structure fits");

typedef struct slot {
  glyd_segment_info segment;
  uint64_t at; /* offset of the segment header in all input */
  const uint8_t *payload;
  uint8_t *to; /* the caller's output, or content */
  uint8_t *content;
  size_t content_cap;
  void *workspace;
  uint64_t workspace_cap;
  glyd_error error;
} slot;

typedef enum state {
  STATE_BOUNDARY, /* no frame begun */
  STATE_HEADER,
  STATE_EXTENSIONS,
  STATE_CHECK,
  STATE_SKIP,
  STATE_SEGMENT,
  STATE_PAYLOAD,
  STATE_TRAILER,
  STATE_ENTRIES,
  STATE_TAIL,
  STATE_FAILED
} state;

typedef enum outcome {
  GO_ON,
  NEED_INPUT,
  DECODE, /* the batch, before anything else */
  FRAME_END,
  FAILED /* ctx->error says why */
} outcome;

struct glyd_dctx {
  glyd_allocator allocator;
  glyd_limits limits;
  glyd_references references;
  unsigned cpu;
  int threads;
  int active; /* slots used for this frame: threads, or fewer to stay below the memory limit */
  state state;
  glyd_error error;    /* set while delivery goes on: raised after it */
  glyd_error reported; /* last failure that a call returned */
  uint64_t taken;      /* input bytes so far */
  uint64_t at;         /* where the structure being read starts */
  glyd_progress progress;
  uint8_t small[SMALL_SIZE];
  size_t small_size;
  glyd_header_prefix prefix;
  glyd_extension_reader extensions;
  glyd_checksum_state hash;         /* of the header, later of the trailer */
  glyd_checksum_state entries_hash; /* of the index entries in the trailer */
  uint64_t left;                    /* bytes of a long structure still to come */
  glyd_segment_info segment;        /* whose payload is being read */
  uint8_t *payload;
  size_t payload_cap;
  size_t payload_have;
  int n_slots; /* complete segments */
  int delivered;
  size_t delivered_bytes; /* of the slot being delivered */
  int decoded;            /* they are, and wait for delivery */
  slot slots[];           /* threads */
};

static uint64_t payload_max(uint64_t content_max) { return content_max + GLYD_PAYLOAD_SLACK; }

static uint64_t content_max(const glyd_frame_info *info) {
  return info->content_size < info->segment_size ? info->content_size : info->segment_size;
}

static uint64_t memory_of(const glyd_frame_info *info, int slots, int active) {
  const uint64_t base = sizeof(glyd_dctx) + (uint64_t)slots * sizeof(slot) + GLYD_ALLOC_OVERHEAD;
  const uint64_t most = content_max(info);
  if (info->is_skippable || most == 0) return base;
  uint64_t one = most + GLYD_ALLOC_OVERHEAD;
  const uint64_t workspace = glyd_segment_decode_workspace_max(info, most);
  if (workspace) one += workspace + GLYD_ALLOC_OVERHEAD;
  return base + payload_max(most) + GLYD_ALLOC_OVERHEAD + (uint64_t)active * one;
}

uint64_t glyd_stream_decode_memory(const glyd_frame_info *info, int threads) {
  if (threads < 0) return 0;
  const int n = glyd_thread_count(threads);
  return memory_of(info, n, n);
}

static void free_payload(glyd_dctx *c) {
  glyd_alloc_put(&c->allocator, c->payload);
  c->payload = NULL;
  c->payload_cap = 0;
}

static void free_content(glyd_dctx *c, slot *s) {
  glyd_alloc_put(&c->allocator, s->content);
  s->content = NULL;
  s->content_cap = 0;
}

static void free_workspace(glyd_dctx *c, slot *s) {
  glyd_alloc_put(&c->allocator, s->workspace);
  s->workspace = NULL;
  s->workspace_cap = 0;
}

/* A workspace for the slot's segment. */
static glyd_status get_workspace(glyd_dctx *c, slot *s, const glyd_frame_info *frame, const glyd_segment_info *segment,
                                 glyd_error *error) {
  const uint64_t need = glyd_segment_decode_workspace(frame, segment->kind, segment->content_size);
  if (need <= s->workspace_cap) return GLYD_OK;
  free_workspace(c, s);
  s->workspace = glyd_alloc_get(&c->allocator, need);
  if (!s->workspace) return glyd_frame_fail(error, GLYD_E_MEMORY, 0, need, 0);
  if (need >= GLYD_LARGE_WORKSPACE) glyd_alloc_use_whole(s->workspace, need);
  s->workspace_cap = need;
  return GLYD_OK;
}

void glyd_stream_decode_free(glyd_dctx *ctx) {
  if (!ctx) return;
  free_payload(ctx);
  for (int i = 0; i < ctx->threads; i++) {
    free_content(ctx, &ctx->slots[i]);
    free_workspace(ctx, &ctx->slots[i]);
  }
  const glyd_allocator a = ctx->allocator;
  glyd_alloc_put(&a, ctx);
}

glyd_status glyd_stream_decode_reset(glyd_dctx *ctx) {
  glyd_progress_init(&ctx->progress, &ctx->limits);
  ctx->state = STATE_BOUNDARY;
  ctx->error = (glyd_error){.status = GLYD_OK};
  ctx->reported = ctx->error;
  ctx->taken = 0;
  ctx->small_size = 0;
  ctx->n_slots = 0;
  ctx->decoded = 0;
  return GLYD_OK;
}

glyd_status glyd_stream_decode_create(glyd_dctx **ctx, int threads, const glyd_limits *limits,
                                      const glyd_allocator *allocator) {
  *ctx = NULL;
  if (threads < 0 || !glyd_alloc_valid(allocator)) return GLYD_E_PARAMETER;
  if (limits && (limits->cpu < GLYD_CPU_CHOICE_BEST || limits->cpu > GLYD_CPU_CHOICE_AVX2)) return GLYD_E_PARAMETER;
  const int n = glyd_thread_count(threads);
  const size_t size = sizeof(glyd_dctx) + (size_t)n * sizeof(slot);
  glyd_dctx *c = glyd_alloc_get(allocator, size);
  if (!c) return GLYD_E_MEMORY;
  memset(c, 0, size);
  c->threads = n;
  if (limits) c->limits = *limits;
  if (allocator) c->allocator = *allocator;
  c->cpu = glyd_cpu_select(c->limits.cpu);
  *ctx = c;
  return glyd_stream_decode_reset(c);
}

void glyd_stream_decode_set_base(glyd_dctx *ctx, const glyd_base *base) { ctx->references.base = base; }

void glyd_stream_decode_set_dictionary(glyd_dctx *ctx, const glyd_dictionary *dictionary) {
  ctx->references.dictionary = dictionary;
}

void glyd_stream_decode_error(const glyd_dctx *ctx, glyd_error *error) { *error = ctx->reported; }

/* ---- input ------------------------------------------------------------- */

static size_t input_left(const glyd_in *in) { return in->size - in->pos; }
static const uint8_t *input_at(const glyd_in *in) { return (const uint8_t *)in->data + in->pos; }

static void take(glyd_dctx *c, glyd_in *in, size_t n) {
  in->pos += n;
  c->taken += n;
}

/* Gather a small structure up to size bytes; 1 when it has them. */
static int fill_small(glyd_dctx *c, glyd_in *in, uint64_t size) {
  const size_t want = (size_t)size - c->small_size;
  const size_t n = want < input_left(in) ? want : input_left(in);
  if (n > 0) {
    memcpy(c->small + c->small_size, input_at(in), n);
    c->small_size += n;
    take(c, in, n);
  }
  return c->small_size == size;
}

static void begin_structure(glyd_dctx *c, state next) {
  c->state = next;
  c->at = c->taken;
  c->small_size = 0;
}

/* ---- frame header -------------------------------------------------------- */

static outcome begin_frame(glyd_dctx *c, const glyd_frame_info *info) {
  if (glyd_progress_frame(&c->progress, info, &c->error)) return FAILED;
  if (info->is_skippable) {
    c->left = info->skip_size;
    c->state = STATE_SKIP;
    return GO_ON;
  }
  if (glyd_segment_decode_check(info, &c->references, &c->error)) return FAILED;
  const uint64_t most = c->progress.limits.max_memory;
  if (info->decoder_memory > most) {
    glyd_frame_fail(&c->error, GLYD_E_LIMIT_MEMORY, 0, most, info->decoder_memory);
    return FAILED;
  }
  c->active = c->threads;
  while (c->active > 1 && memory_of(info, c->threads, c->active) > most) c->active--;
  /* What a larger frame left behind must not add to what this one may use. */
  const uint64_t content = content_max(info);
  const uint64_t workspace = glyd_segment_decode_workspace_max(info, content);
  if (c->payload_cap > payload_max(content)) free_payload(c);
  for (int i = 0; i < c->threads; i++) {
    if (c->slots[i].content_cap > content || i >= c->active) free_content(c, &c->slots[i]);
    if (c->slots[i].workspace_cap > workspace || i >= c->active) free_workspace(c, &c->slots[i]);
  }
  begin_structure(c, STATE_SEGMENT);
  return GO_ON;
}

static outcome read_header(glyd_dctx *c, glyd_in *in) {
  /* One look at what is there, so that a wrong magic number fails at its first byte. */
  for (;;) {
    const glyd_status status = glyd_header_decode_prefix(c->small, c->small_size, &c->prefix, &c->error);
    if (status == GLYD_OK) break;
    if (status != GLYD_E_TRUNCATED) {
      if (status == GLYD_E_MAGIC && c->progress.frames > 0) c->error.status = GLYD_E_TRAILING;
      return FAILED;
    }
    /* Byte by byte up to the version, then as much as the lengths ask for. Four
     * bytes of what is asked for are the check, which does not belong here. */
    const uint64_t need = c->small_size < 5                               ? c->small_size + 1
                          : glyd_load32(c->small) == GLYD_SKIPPABLE_MAGIC ? c->error.expected
                          : c->small_size < 9                             ? 9
                                                                          : c->small_size + 1;
    c->error.status = GLYD_OK;
    if (!fill_small(c, in, need)) return NEED_INPUT;
  }
  if (c->prefix.info.is_skippable) return begin_frame(c, &c->prefix.info);
  glyd_checksum_init(&c->hash);
  glyd_checksum_update(&c->hash, c->small, c->prefix.size);
  c->extensions = (glyd_extension_reader){.value = 0};
  c->left = c->prefix.extensions_size;
  c->state = STATE_EXTENSIONS;
  return GO_ON;
}

static outcome read_extensions(glyd_dctx *c, glyd_in *in) {
  const size_t n = c->left < input_left(in) ? (size_t)c->left : input_left(in);
  if (n > 0) {
    glyd_header_decode_extensions(&c->extensions, input_at(in), n);
    glyd_checksum_update(&c->hash, input_at(in), n);
    c->left -= n;
    take(c, in, n);
  }
  if (c->left > 0) return NEED_INPUT;
  c->state = STATE_CHECK;
  c->small_size = 0;
  return GO_ON;
}

static outcome read_check(glyd_dctx *c, glyd_in *in) {
  if (!fill_small(c, in, 4)) return NEED_INPUT;
  const uint64_t hash = glyd_checksum_digest(&c->hash);
  if (glyd_header_decode_finish(&c->prefix, &c->extensions, hash, glyd_load32(c->small), &c->error)) return FAILED;
  c->prefix.info.segment_size = (uint64_t)1 << c->prefix.segment_log;
  c->prefix.info.decoder_memory = glyd_frame_memory_value(c->prefix.memory_code);
  return begin_frame(c, &c->prefix.info);
}

static outcome skip(glyd_dctx *c, glyd_in *in) {
  const size_t n = c->left < input_left(in) ? (size_t)c->left : input_left(in);
  take(c, in, n);
  c->left -= n;
  return c->left > 0 ? NEED_INPUT : FRAME_END;
}

/* ---- segments ------------------------------------------------------------ */

static void add_slot(glyd_dctx *c, const uint8_t *payload) {
  slot *s = &c->slots[c->n_slots++];
  s->segment = c->segment;
  s->at = c->at;
  s->payload = payload;
  begin_structure(c, STATE_SEGMENT);
}

static outcome read_segment(glyd_dctx *c, glyd_in *in) {
  if (c->n_slots == c->active) return DECODE;
  glyd_progress *g = &c->progress;
  if (!g->frame.has_trailer && glyd_progress_complete(g)) return c->n_slots > 0 ? DECODE : FRAME_END;
  for (;;) {
    const glyd_status status = glyd_header_decode_segment(c->small, c->small_size, &g->frame, &c->segment, &c->error);
    if (status == GLYD_OK) break;
    if (status != GLYD_E_TRUNCATED) return FAILED;
    const uint64_t need = c->error.expected;
    c->error.status = GLYD_OK;
    if (!fill_small(c, in, need)) return NEED_INPUT;
  }
  if (c->segment.kind == GLYD_KIND_END) {
    if (c->n_slots > 0) return DECODE; /* and read the byte in small again */
    if (glyd_progress_trailer(g, &c->error)) return FAILED;
    c->state = STATE_TRAILER; /* small keeps the 0 byte */
    return GO_ON;
  }
  if (glyd_progress_segment(g, &c->segment, &c->error)) return FAILED;
  c->payload_have = 0;
  c->state = STATE_PAYLOAD;
  return GO_ON;
}

/* Room for the payload being read, in step with what has arrived of it. */
static glyd_status grow_payload(glyd_dctx *c) {
  const size_t size = (size_t)c->segment.payload_size;
  const size_t base = c->payload_cap > PAYLOAD_START ? c->payload_cap : PAYLOAD_START;
  size_t cap = size / PAYLOAD_GROWTH <= base ? size : c->payload_have > 0 ? 4 * base : base;
  if (cap > size) cap = size;
  if (c->payload_have == 0) {
    free_payload(c);
  } else {
    /* The old and the new buffer exist together: no batch is waiting, so the
     * content buffer can make room within the promised memory. */
    free_content(c, &c->slots[0]);
  }
  uint8_t *buffer = glyd_alloc_get(&c->allocator, cap);
  if (!buffer) return glyd_frame_fail(&c->error, GLYD_E_MEMORY, 0, cap, 0);
  if (c->payload_have > 0) memcpy(buffer, c->payload, c->payload_have);
  free_payload(c);
  c->payload = buffer;
  c->payload_cap = cap;
  return GLYD_OK;
}

static outcome read_payload(glyd_dctx *c, glyd_in *in) {
  const size_t size = (size_t)c->segment.payload_size;
  if (c->payload_have == 0 && input_left(in) >= size) {
    const uint8_t *payload = input_at(in);
    take(c, in, size);
    add_slot(c, payload);
    return GO_ON;
  }
  if (c->n_slots > 0) return DECODE; /* frees the one payload buffer */
  while (c->payload_have < size && input_left(in) > 0) {
    if (c->payload_have == c->payload_cap || (c->payload_have == 0 && c->payload_cap < size))
      if (grow_payload(c)) return FAILED;
    const size_t room = (c->payload_cap < size ? c->payload_cap : size) - c->payload_have;
    const size_t n = room < input_left(in) ? room : input_left(in);
    memcpy(c->payload + c->payload_have, input_at(in), n);
    c->payload_have += n;
    take(c, in, n);
  }
  if (c->payload_have < size) return NEED_INPUT;
  add_slot(c, c->payload);
  return GO_ON;
}

typedef struct batch {
  glyd_dctx *ctx;
  _Atomic int next;
} batch;

static void decode_slots(void *arg, int worker) {
  batch *b = arg;
  glyd_dctx *c = b->ctx;
  (void)worker;
  for (int i = atomic_fetch_add(&b->next, 1); i < c->n_slots; i = atomic_fetch_add(&b->next, 1)) {
    slot *s = &c->slots[i];
    (void)glyd_segment_decode(c->cpu, s->workspace, &c->references, &c->progress.frame, &s->segment, s->to, s->payload,
                              &s->error);
  }
}

/* Memory that the slot needs to be decoded. */
static glyd_status prepare_slot(glyd_dctx *c, slot *s, int direct) {
  if (get_workspace(c, s, &c->progress.frame, &s->segment, &s->error)) return s->error.status;
  const size_t size = (size_t)s->segment.content_size;
  if (!direct && s->content_cap < size) {
    const uint64_t most = content_max(&c->progress.frame);
    const uint64_t cap = size > most / 2 ? most : 2 * (uint64_t)size;
    free_content(c, s);
    s->content = glyd_alloc_get(&c->allocator, cap);
    if (!s->content) return glyd_frame_fail(&s->error, GLYD_E_MEMORY, 0, cap, 0);
    s->content_cap = (size_t)cap;
  }
  return GLYD_OK;
}

/* Decode the batch. The first error cuts it short and is kept until what
 * comes before it is delivered. */
static void decode_batch(glyd_dctx *c, glyd_out *out) {
  size_t room = out->size - out->pos;
  int direct = 1;
  int n_direct = 0;
  uint64_t total = 0;
  for (int i = 0; i < c->n_slots; i++) {
    slot *s = &c->slots[i];
    const size_t size = (size_t)s->segment.content_size;
    s->error = (glyd_error){.status = GLYD_OK};
    direct = direct && size <= room;
    total += size;
    if (prepare_slot(c, s, direct)) {
      c->error = s->error;
      c->error.offset += s->at;
      c->n_slots = i;
      break;
    }
    s->to = direct ? (uint8_t *)out->data + (out->size - room) : s->content;
    if (direct) {
      room -= size;
      n_direct++;
    }
  }
  if (c->n_slots > 0) {
    batch b = {.ctx = c};
    atomic_init(&b.next, 0);
    glyd_thread_team(glyd_thread_worth(c->n_slots, total, GLYD_DECODE_GRAIN), decode_slots, &b);
  }
  for (int i = 0; i < c->n_slots; i++) {
    const slot *s = &c->slots[i];
    if (s->error.status) {
      c->error = s->error;
      c->error.offset += s->at;
      c->n_slots = i;
    }
  }
  c->delivered = n_direct < c->n_slots ? n_direct : c->n_slots;
  for (int i = 0; i < c->delivered; i++) out->pos += (size_t)c->slots[i].segment.content_size;
  c->delivered_bytes = 0;
  c->decoded = 1;
}

/* Hand decoded content over; 1 when all of the batch is delivered. */
static int deliver(glyd_dctx *c, glyd_out *out) {
  for (; c->delivered < c->n_slots; c->delivered++, c->delivered_bytes = 0) {
    const slot *s = &c->slots[c->delivered];
    const size_t rest = (size_t)s->segment.content_size - c->delivered_bytes;
    const size_t room = out->size - out->pos;
    const size_t n = rest < room ? rest : room;
    if (n > 0) memcpy((uint8_t *)out->data + out->pos, s->content + c->delivered_bytes, n);
    out->pos += n;
    c->delivered_bytes += n;
    if (n < rest) return 0;
  }
  c->n_slots = 0;
  c->decoded = 0;
  return 1;
}

/* ---- trailer --------------------------------------------------------------- */

static outcome read_trailer(glyd_dctx *c, glyd_in *in) {
  uint64_t n = 0;
  const uint8_t *end = c->small;
  while (!(end = glyd_get_varint(c->small + 1, c->small + c->small_size, &n))) {
    if (n == 0) {
      glyd_frame_fail(&c->error, GLYD_E_CORRUPT, 0, c->progress.segments, 0);
      return FAILED;
    }
    if (!fill_small(c, in, c->small_size + 1)) return NEED_INPUT;
  }
  if (glyd_progress_check_count(&c->progress, n, &c->error)) return FAILED;
  glyd_checksum_init(&c->hash);
  glyd_checksum_init(&c->entries_hash);
  glyd_checksum_update(&c->hash, c->small, c->small_size);
  c->left = c->progress.index_size;
  c->state = STATE_ENTRIES;
  return GO_ON;
}

static outcome read_entries(glyd_dctx *c, glyd_in *in) {
  const size_t n = c->left < input_left(in) ? (size_t)c->left : input_left(in);
  if (n > 0) {
    glyd_checksum_update(&c->hash, input_at(in), n);
    glyd_checksum_update(&c->entries_hash, input_at(in), n);
    c->left -= n;
    take(c, in, n);
  }
  if (c->left > 0) return NEED_INPUT;
  c->small_size = 0;
  c->state = STATE_TAIL;
  return GO_ON;
}

static outcome read_tail(glyd_dctx *c, glyd_in *in) {
  if (!fill_small(c, in, GLYD_TAIL_SIZE)) return NEED_INPUT;
  glyd_checksum_update(&c->hash, c->small, GLYD_TAIL_SIZE - 4);
  if (glyd_progress_check_tail(&c->progress, glyd_checksum_digest(&c->entries_hash), c->small,
                               glyd_checksum_digest(&c->hash), &c->error))
    return FAILED;
  return FRAME_END;
}

/* ---- the loop --------------------------------------------------------------- */

static outcome step(glyd_dctx *c, glyd_in *in) {
  switch (c->state) {
  case STATE_BOUNDARY:
    if (input_left(in) == 0) return FRAME_END;
    begin_structure(c, STATE_HEADER);
    return GO_ON;
  case STATE_HEADER: return read_header(c, in);
  case STATE_EXTENSIONS: return read_extensions(c, in);
  case STATE_CHECK: return read_check(c, in);
  case STATE_SKIP: return skip(c, in);
  case STATE_SEGMENT: return read_segment(c, in);
  case STATE_PAYLOAD: return read_payload(c, in);
  case STATE_TRAILER: return read_trailer(c, in);
  case STATE_ENTRIES: return read_entries(c, in);
  case STATE_TAIL: return read_tail(c, in);
  case STATE_FAILED:
  default: return FAILED;
  }
}

glyd_status glyd_stream_decode_run(glyd_dctx *ctx, glyd_out *out, glyd_in *in, int *at_end) {
  glyd_dctx *c = ctx;
  *at_end = 0;
  if (out->pos > out->size || in->pos > in->size) return GLYD_E_PARAMETER;
  if (c->state == STATE_FAILED) return GLYD_E_STATE;
  for (;;) {
    if (c->decoded && !deliver(c, out)) return GLYD_OK;
    if (c->error.status) {
      c->state = STATE_FAILED;
      c->reported = c->error;
      return c->error.status;
    }
    const outcome next = step(c, in);
    if (next == FAILED) c->error.offset += c->at;
    if (c->n_slots > 0 && next != GO_ON) {
      const glyd_error later = c->error;
      c->error.status = GLYD_OK;
      decode_batch(c, out);
      if (c->error.status == GLYD_OK) c->error = later;
      continue;
    }
    if (next == NEED_INPUT) return GLYD_OK;
    if (next == FRAME_END) {
      c->state = STATE_BOUNDARY;
      *at_end = 1;
      return GLYD_OK;
    }
  }
}

/* The header of one whole segment. */
static void read_one_segment(const glyd_frame_info *frame, const uint8_t *in, size_t len, glyd_segment_info *segment,
                             glyd_error *e) {
  (void)glyd_header_decode_segment(in, len, frame, segment, e);
  if (e->status != GLYD_OK) return;
  const uint64_t size = segment->header_size + segment->payload_size;
  if (segment->kind == GLYD_KIND_END || len > size)
    (void)glyd_frame_fail(e, GLYD_E_CORRUPT, 0, size, len);
  else if (len < size)
    (void)glyd_frame_fail(e, GLYD_E_TRUNCATED, 0, size, len);
}

glyd_status glyd_stream_decode_segment(glyd_dctx *ctx, const glyd_frame_info *frame, uint8_t *out, size_t cap,
                                       const uint8_t *in, size_t len, size_t *out_len) {
  glyd_segment_info segment;
  glyd_error e = {.status = GLYD_OK};
  *out_len = 0;
  read_one_segment(frame, in, len, &segment, &e);
  if (e.status == GLYD_OK && segment.content_size > cap)
    (void)glyd_frame_fail(&e, GLYD_E_BUFFER, 0, segment.content_size, cap);
  slot *s = &ctx->slots[0];
  if (e.status == GLYD_OK) (void)glyd_segment_decode_check(frame, &ctx->references, &e);
  if (e.status == GLYD_OK) (void)get_workspace(ctx, s, frame, &segment, &e);
  if (e.status == GLYD_OK)
    (void)glyd_segment_decode(ctx->cpu, s->workspace, &ctx->references, frame, &segment, out, in + segment.header_size,
                              &e);
  if (e.status == GLYD_OK)
    *out_len = (size_t)segment.content_size;
  else
    ctx->reported = e;
  return e.status;
}

glyd_status glyd_stream_decode_inside(glyd_dctx *ctx, const glyd_frame_info *frame, uint8_t *out, size_t cap,
                                      const uint8_t *in, size_t len, size_t *out_len) {
  glyd_segment_info segment;
  glyd_opened_info info = {.n_streams = 0};
  glyd_error e = {.status = GLYD_OK};
  *out_len = 0;
  read_one_segment(frame, in, len, &segment, &e);
  if (e.status == GLYD_OK && segment.kind != GLYD_KIND_OPENED)
    (void)glyd_frame_fail(&e, GLYD_E_PARAMETER, 0, GLYD_KIND_OPENED, (uint64_t)segment.kind);
  if (e.status == GLYD_OK) {
    const glyd_status status =
        glyd_opened_decode_info(in + segment.header_size, (size_t)segment.payload_size, segment.content_size, &info);
    const uint64_t memory = glyd_segment_decode_workspace(frame, segment.kind, segment.content_size);
    const glyd_limits *const limits = &ctx->progress.limits;
    if (status)
      (void)glyd_frame_fail(&e, status, 0, segment.content_size, info.inside_size);
    else if (info.inside_size > limits->max_output)
      (void)glyd_frame_fail(&e, GLYD_E_LIMIT_OUTPUT, 0, limits->max_output, info.inside_size);
    else if (memory > limits->max_memory)
      (void)glyd_frame_fail(&e, GLYD_E_LIMIT_MEMORY, 0, limits->max_memory, memory);
  }
  slot *s = &ctx->slots[0];
  if (e.status == GLYD_OK) (void)get_workspace(ctx, s, frame, &segment, &e);
  if (e.status == GLYD_OK) {
    const glyd_status status =
        glyd_opened_decode_inside(ctx->cpu, s->workspace, frame, out, cap, in + segment.header_size,
                                  (size_t)segment.payload_size, segment.content_size, &info);
    if (status) (void)glyd_frame_fail(&e, status, 0, info.inside_size, cap);
  }
  if (e.status == GLYD_OK)
    *out_len = (size_t)info.inside_size;
  else
    ctx->reported = e;
  return e.status;
}

glyd_status glyd_stream_decode_opened_info(const glyd_frame_info *frame, const uint8_t *in, size_t len,
                                           glyd_opened_info *info) {
  glyd_segment_info segment;
  glyd_error e = {.status = GLYD_OK};
  read_one_segment(frame, in, len, &segment, &e);
  if (e.status) return e.status;
  if (segment.kind != GLYD_KIND_OPENED) return GLYD_E_PARAMETER;
  return glyd_opened_decode_info(in + segment.header_size, (size_t)segment.payload_size, segment.content_size, info);
}
