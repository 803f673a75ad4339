/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Workers take segments in order, encode each into a slot, and whoever finds
 * the next slot in line complete moves it to its place in the output. Where the
 * output has room for the worst case, a slot is the part of it in which the
 * segment will lie if all before it stay raw: moves then go towards the start,
 * never past what is written or being encoded. Else slots have buffers. Twice
 * as many slots as workers let a fast worker go on while a slow one is awaited.
 * The bytes depend on the segments alone, never on the number of workers.
 */
#include "frame/frame_encode.h"

#include "common/alloc.h"
#include "common/checksum.h"
#include "common/cpu.h"
#include "common/mem.h"
#include "common/thread.h"
#include "frame/frame_common.h"
#include "frame/header_encode.h"
#include "frame/segment_encode.h"

typedef struct slot {
  uint8_t *buffer; /* NULL: in the output */
  const uint8_t *start;
  size_t size;
  size_t content;
  int done;
} slot;

typedef struct job {
  glyd_plan plan;
  const uint8_t *in;
  size_t len;
  uint8_t *out;
  size_t cap;
  size_t pos;     /* bytes written to out */
  int in_place;   /* segments are encoded in the output */
  size_t first;   /* where the first of them starts */
  size_t room;    /* header bytes of a raw segment that is full */
  uint64_t n;     /* segments */
  uint64_t next;  /* segment to encode */
  uint64_t ready; /* segment to write */
  int has_record; /* one of those written is a record segment, or an opened one, which may hold some */
  int workers;
  uint64_t n_slots;
  slot *slots;
  void **workspaces;
  uint8_t *index; /* index entries, when there is a trailer */
  uint8_t *index_end;
  uint64_t last_content;
  uint64_t last_stored;
  glyd_status status;
  glyd_lock lock;
  glyd_condition changed;
} job;

static int append(job *j, const uint8_t *data, size_t size) {
  if (size > j->cap - j->pos) {
    j->status = GLYD_E_BUFFER;
    return 0;
  }
  if (data != j->out + j->pos) memmove(j->out + j->pos, data, size);
  j->pos += size;
  return 1;
}

/* Write all slots that are complete and next in line. Holds the lock: a slot's
 * copy takes a hundredth of the time its encoding took. */
static void write_ready(job *j) {
  while (j->status == GLYD_OK && j->ready < j->next) {
    slot *s = &j->slots[j->ready % j->n_slots];
    if (!s->done) return;
    j->has_record |= glyd_segment_may_be_record(s->start); /* moving it may write over its start */
    if (!append(j, s->start, s->size)) return;
    if (j->index) {
      j->index_end = glyd_frame_put_index_entry(j->index_end, s->content, j->last_content, s->size, j->last_stored);
      j->last_content = s->content;
      j->last_stored = s->size;
    }
    s->done = 0;
    j->ready++;
  }
}

static void work(void *arg, int worker) {
  job *j = arg;
  pthread_mutex_lock(&j->lock);
  for (;;) {
    while (j->status == GLYD_OK && j->next < j->n && j->next - j->ready >= j->n_slots)
      pthread_cond_wait(&j->changed, &j->lock);
    if (j->status != GLYD_OK || j->next >= j->n) break;
    const uint64_t i = j->next++;
    slot *s = &j->slots[i % j->n_slots];
    const size_t from = (size_t)(i * j->plan.segment_size);
    const size_t left = j->len - from;
    s->content = left < j->plan.segment_size ? left : (size_t)j->plan.segment_size;
    pthread_mutex_unlock(&j->lock);
    uint8_t *payload;
    if (j->in_place)
      payload = j->out + j->first + i * (j->room + (size_t)j->plan.segment_size) +
                glyd_header_encode_segment_room(&j->plan, s->content);
    else
      payload = s->buffer + GLYD_SEGMENT_HEADER_MAX;
    const glyd_status status = glyd_segment_encode(&j->plan, j->workspaces[worker], from, j->in + from, s->content,
                                                   payload, &s->start, &s->size);
    pthread_mutex_lock(&j->lock);
    s->done = 1;
    if (status && j->status == GLYD_OK) j->status = status;
    write_ready(j);
    pthread_cond_broadcast(&j->changed);
  }
  pthread_cond_broadcast(&j->changed);
  pthread_mutex_unlock(&j->lock);
}

static glyd_status write_trailer(job *j) {
  uint8_t prefix[GLYD_TRAILER_PREFIX_MAX];
  uint8_t tail[GLYD_TAIL_SIZE];
  const size_t start = j->pos;
  const size_t prefix_size = glyd_header_encode_trailer_prefix(j->n, prefix);
  const size_t index_size = (size_t)(j->index_end - j->index);
  const uint64_t size = prefix_size + index_size + GLYD_TAIL_SIZE;
  if (size > UINT32_MAX) return GLYD_E_LIMIT_SEGMENTS;
  glyd_header_encode_tail(j->len, start + size, (uint32_t)size, tail);
  if (!append(j, prefix, prefix_size) || !append(j, j->index, index_size) || !append(j, tail, GLYD_TAIL_SIZE))
    return j->status;
  uint8_t *check = j->out + j->pos - 4;
  glyd_store32(check, (uint32_t)glyd_checksum_xxh3(j->plan.lz.cpu, j->out + start, (size_t)(check - (j->out + start))));
  return GLYD_OK;
}

/* Without a record segment the header need not say that there may be some: fewer bytes, and less memory for its
 * reader. */
static void drop_records(job *j) {
  uint8_t header[GLYD_HEADER_ENCODE_MAX];
  if (!j->plan.records || j->has_record) return;
  j->plan.records = 0;
  const size_t size = glyd_header_encode_frame(&j->plan, header), rest = j->pos - j->first;
  memmove(j->out + size, j->out + j->first, rest);
  memcpy(j->out, header, size);
  j->pos = size + rest;
}

/* Pointers in one block: the job, its slots and workspaces. */
static glyd_status allocate(job *j) {
  const glyd_allocator *a = &j->plan.allocator;
  const uint64_t segment = j->plan.lz.segment_size;
  j->slots = glyd_alloc_get(a, j->n_slots * sizeof(slot) + (uint64_t)j->workers * sizeof(void *));
  if (!j->slots) return GLYD_E_MEMORY;
  memset(j->slots, 0, (size_t)j->n_slots * sizeof(slot));
  j->workspaces = (void **)(j->slots + j->n_slots);
  memset(j->workspaces, 0, (size_t)j->workers * sizeof(void *));
  for (uint64_t i = 0; i < j->n_slots && !j->in_place; i++)
    if (!(j->slots[i].buffer = glyd_alloc_get(a, GLYD_SEGMENT_BUFFER(segment)))) return GLYD_E_MEMORY;
  const uint64_t workspace = glyd_segment_encode_workspace(&j->plan);
  for (int i = 0; workspace && i < j->workers; i++) {
    if (!(j->workspaces[i] = glyd_alloc_get(a, workspace))) return GLYD_E_MEMORY;
    if (j->plan.records) glyd_alloc_use_whole(j->workspaces[i], workspace);
  }
  if (j->plan.has_trailer) {
    j->index = glyd_alloc_get(a, j->n * GLYD_INDEX_ENTRY_MAX);
    if (!j->index) return GLYD_E_MEMORY;
    j->index_end = j->index;
  }
  return GLYD_OK;
}

static void release(job *j) {
  const glyd_allocator *a = &j->plan.allocator;
  for (uint64_t i = 0; j->slots && i < j->n_slots; i++) glyd_alloc_put(a, j->slots[i].buffer);
  for (int i = 0; j->slots && i < j->workers; i++) glyd_alloc_put(a, j->workspaces[i]);
  glyd_alloc_put(a, j->slots);
  glyd_alloc_put(a, j->index);
  glyd_plan_encode_free(&j->plan);
}

/* A frame as params say, but for the level that its header states. *has_plan: it is as its plan was, no record segment
 * having been looked for in vain. */
static glyd_status encode_frame(uint8_t *out, size_t cap, const uint8_t *in, size_t len, const glyd_params *params,
                                int level, size_t *out_len, int *has_plan) {
  job j = {.in = in, .len = len, .out = out, .cap = cap};
  *out_len = 0;
  *has_plan = 1;
  glyd_status status = glyd_plan_encode(&j.plan, params, len);
  if (status) return status;
  glyd_plan_encode_content(&j.plan, params, in, len);
  glyd_plan_encode_containers(&j.plan, in, len);
  j.plan.level = level;
  uint8_t header[GLYD_HEADER_ENCODE_MAX];
  if (!append(&j, header, glyd_header_encode_frame(&j.plan, header))) return GLYD_E_BUFFER;
  j.first = j.pos;
  if (len == 0) {
    drop_records(&j);
    *out_len = j.pos;
    return GLYD_OK;
  }
  status = glyd_plan_encode_weights(&j.plan, in, len);
  if (status) return status;

  j.n = (len + j.plan.segment_size - 1) / j.plan.segment_size;
  j.workers = (uint64_t)j.plan.threads < j.n ? j.plan.threads : (int)j.n;
  j.workers = glyd_thread_worth(j.workers, len, GLYD_ENCODE_GRAIN);
  j.n_slots = j.workers == 1 ? 1 : 2 * (uint64_t)j.workers;
  if (j.n_slots > j.n) j.n_slots = j.n;
  j.room = glyd_header_encode_segment_room(&j.plan, j.plan.lz.segment_size);
  j.in_place = j.cap - j.pos >= len && (j.cap - j.pos - len) / j.room >= j.n;
  j.last_content = (uint64_t)1 << j.plan.segment_log;
  status = allocate(&j);
  if (status == GLYD_OK) {
    if (pthread_mutex_init(&j.lock, NULL) != 0) {
      status = GLYD_E_MEMORY;
    } else {
      if (pthread_cond_init(&j.changed, NULL) != 0) {
        status = GLYD_E_MEMORY;
      } else {
        glyd_thread_team(j.workers, work, &j);
        (void)pthread_cond_destroy(&j.changed);
        status = j.status;
      }
      (void)pthread_mutex_destroy(&j.lock);
    }
  }
  if (status == GLYD_OK) {
    *has_plan = !j.plan.records || j.has_record;
    drop_records(&j);
  }
  if (status == GLYD_OK && j.plan.has_trailer) status = write_trailer(&j);
  release(&j);
  if (status == GLYD_OK) *out_len = j.pos;
  return status;
}

/* The frame in out[0..*out_len), if there is one, or that with other params if it is smaller. */
static glyd_status keep_smaller(uint8_t *out, size_t cap, const uint8_t *in, size_t len, const glyd_params *other,
                                int level, glyd_status status, size_t *out_len) {
  if (status != GLYD_OK && status != GLYD_E_BUFFER) return status;
  const size_t room = status == GLYD_OK ? *out_len : cap;
  uint8_t *const frame = glyd_alloc_get(&other->allocator, room);
  if (!frame) return GLYD_E_MEMORY;
  size_t size;
  int has_plan;
  const glyd_status other_status = encode_frame(frame, room, in, len, other, level, &size, &has_plan);
  if (other_status == GLYD_OK && (status != GLYD_OK || size < *out_len)) {
    memcpy(out, frame, size);
    *out_len = size;
    status = GLYD_OK;
  } else if (other_status != GLYD_OK && other_status != GLYD_E_BUFFER) {
    status = other_status;
  }
  glyd_alloc_put(&other->allocator, frame);
  return status;
}

/* Would segments have another size without records? */
static int has_other_segments(const glyd_params *params, const glyd_params *without, size_t len) {
  glyd_plan plan, other;
  return glyd_plan_encode(&plan, params, len) == GLYD_OK && glyd_plan_encode(&other, without, len) == GLYD_OK &&
         plan.segment_size != other.segment_size && len > other.segment_size;
}

glyd_status glyd_frame_encode(uint8_t *out, size_t cap, const uint8_t *in, size_t len, const glyd_params *params,
                              size_t *out_len) {
  int has_plan;
  const int level = params ? params->level : 0;
  const glyd_status status = encode_frame(out, cap, in, len, params, level, out_len, &has_plan);
  if (!params) return status;
  glyd_params other = *params;
  if (level == GLYD_LEVEL_COLD) {
    /* a model that starts from nothing is behind a search where there is little to learn from */
    if (len > GLYD_SMALL_CONTENT) return status;
    other.level = GLYD_LEVEL_ULTRA;
    return keep_smaller(out, cap, in, len, &other, level, status, out_len);
  }
  /* segments of the size that suits records need not suit what has none */
  other.records = GLYD_RECORDS_OFF;
  if (status != GLYD_OK || has_plan || !has_other_segments(params, &other, len)) return status;
  return keep_smaller(out, cap, in, len, &other, level, status, out_len);
}

uint64_t glyd_frame_encode_bound(uint64_t len, const glyd_params *params) {
  glyd_plan plan;
  if (glyd_plan_encode(&plan, params, len) != GLYD_OK) return 0;
  const uint64_t segment =
      plan.records && GLYD_SEGMENT_SIZE_DEFAULT < plan.segment_size ? GLYD_SEGMENT_SIZE_DEFAULT : plan.segment_size;
  const uint64_t n = len / segment + 2; /* without records, segments may be smaller */
  const uint64_t fixed = GLYD_HEADER_ENCODE_MAX + GLYD_TRAILER_PREFIX_MAX + GLYD_TAIL_SIZE;
  return len + n * (GLYD_SEGMENT_HEADER_MAX + GLYD_INDEX_ENTRY_MAX) + fixed;
}
