/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "frame/opened_encode.h"

#include "common/alloc.h"
#include "common/mem.h"
#include "deflate/deflate_encode.h"
#include "deflate/deflate_find_encode.h"
#include "deflate/deflate_inflate_encode.h"
#include "deflate/deflate_rebuild.h"
#include "frame/opened_common.h"
#include "frame/segment_encode.h"

#define STREAM_MIN 24u /* bytes of a stream worth a description */
#define ZLIB_MIN 64u   /* of one that only two bytes announced */
#define COST_SHARE 6u  /* a description takes at most this part of a stream */
#define VAIN_SHARE 8u  /* bytes read of what cannot be opened: at most this many times the content */
#define VAIN_SLACK (16u << 20)
#define LEAST_SHARE 64u /* of the content in streams, where nobody asked for opening: less gains less than it costs */
#define SNIFF_CONTENT 16384u /* read of a stream to know that it is one */
#define SNIFF_TRIES 4096u
#define HEAD_MAX 40u

/* Bytes being opened. */
typedef struct opener {
  const uint8_t *in;
  size_t len;
  const glyd_allocator *allocator;
  uint8_t *area; /* content of streams */
  size_t area_size, area_cap;
  uint8_t *kept;
  size_t kept_size;
  size_t done; /* bytes of the input that are in kept or streams */
  uint8_t *gathered;
  uint32_t *sizes; /* of a stream's parts */
  uint8_t *description;
  size_t description_cap;
  void *workspace;
  glyd_deflate_writer *writer;
  uint64_t n_streams, opened; /* bytes of the input that became streams */
  uint64_t vain;
  int is_cut; /* 1: one of them goes on after what was opened */
} opener;

#define BREAKS_MAX 65536u

static void release(opener *o) {
  glyd_alloc_put(o->allocator, o->area);
  glyd_alloc_put(o->allocator, o->kept);
  glyd_alloc_put(o->allocator, o->gathered);
  glyd_alloc_put(o->allocator, o->sizes);
  glyd_alloc_put(o->allocator, o->description);
  glyd_alloc_put(o->allocator, o->workspace);
}

static size_t description_max(size_t len) { return len / 4 + 64; }

static uint64_t opener_workspace(void) {
  const uint64_t writing = glyd_deflate_encode_workspace(), making = glyd_deflate_rebuild_workspace();
  return writing > making ? writing : making;
}

static glyd_status begin(opener *o, const uint8_t *in, size_t len, const glyd_allocator *allocator) {
  *o = (opener){.in = in, .len = len, .allocator = allocator};
  o->area_cap = (size_t)glyd_opened_area_max(len);
  o->description_cap = description_max(len);
  o->area = glyd_alloc_get(allocator, o->area_cap);
  o->kept = glyd_alloc_get(allocator, len);
  o->description = glyd_alloc_get(allocator, o->description_cap);
  o->workspace = glyd_alloc_get(allocator, opener_workspace());
  if (!o->area || !o->kept || !o->description || !o->workspace) return GLYD_E_MEMORY;
  o->writer = glyd_deflate_encode_begin(o->workspace, o->description, o->description_cap);
  return GLYD_OK;
}

static void keep(opener *o, size_t n) {
  if (n > 0) memcpy(o->kept + o->kept_size, o->in + o->done, n);
  o->kept_size += n;
  o->done += n;
}

/* The stream at this place: it goes into the area and the description. info: what became of it. */
static glyd_status open_stream(opener *o, const glyd_deflate_place *place, glyd_stream_info *info) {
  const uint8_t *from = o->in + place->at;
  size_t left = o->len - place->at;
  glyd_deflate_breaks breaks = {NULL, 0};
  *info = (glyd_stream_info){.kind = place->kind, .offset = place->at, .outcome = GLYD_STREAM_INVALID};
  if (place->kind == GLYD_FOUND_PNG) {
    if (!o->gathered) o->gathered = glyd_alloc_get(o->allocator, o->len);
    if (!o->sizes) o->sizes = glyd_alloc_get(o->allocator, BREAKS_MAX * sizeof *o->sizes);
    if (!o->gathered || !o->sizes) return GLYD_E_MEMORY;
    left = glyd_deflate_find_gather(o->in, o->len, place->at, o->gathered, o->len, o->sizes, BREAKS_MAX, &breaks.n);
    breaks.sizes = o->sizes;
    from = o->gathered;
  }
  uint8_t *const content = o->area + o->area_size;
  /* What is kept comes into the area as well. */
  const size_t room = o->area_cap - o->area_size, reserved = o->len - o->done + o->kept_size;
  glyd_deflate_stream stream;
  if (room <= reserved) return GLYD_OK;
  const int is_read = glyd_deflate_encode_read(o->writer, from, left, content, room - reserved, &stream);
  o->vain += stream.content_size;
  if (!is_read) return GLYD_OK;
  info->stored_size = stream.stored_size;
  info->content_size = stream.content_size;
  info->is_cut = stream.is_cut;
  const int is_zlib = place->kind == GLYD_FOUND_ZLIB;
  if (stream.stored_size < (is_zlib ? ZLIB_MIN : STREAM_MIN)) {
    info->outcome = is_zlib ? GLYD_STREAM_INVALID : GLYD_STREAM_SMALL;
    return GLYD_OK;
  }
  if (is_zlib && (stream.is_cut || left - stream.stored_size < 4 ||
                  __builtin_bswap32(glyd_load32(from + stream.stored_size)) !=
                      glyd_deflate_find_check(content, stream.content_size)))
    return GLYD_OK;
  size_t sum = 0;
  uint32_t n = 0;
  while (n < breaks.n && sum + breaks.sizes[n] < stream.stored_size) sum += breaks.sizes[n++];
  breaks.n = n;
  o->vain += stream.content_size;
  info->outcome = GLYD_STREAM_UNLIKE;
  if (!glyd_deflate_encode_stream(o->writer, (uint32_t)(place->at - o->done), from, content, &stream, &breaks,
                                  place->window_log, (uint64_t)stream.stored_size * 8 / COST_SHARE + 64,
                                  &info->description_bits))
    return GLYD_OK;
  o->vain -= 2 * stream.content_size;
  info->outcome = GLYD_STREAM_OPENED;
  keep(o, place->at - o->done);
  size_t before = 0;
  for (uint32_t i = 0; i < n; i++) {
    o->done += breaks.sizes[i];
    before += breaks.sizes[i];
    keep(o, GLYD_DEFLATE_BREAK);
  }
  o->done += stream.stored_size - before;
  o->opened += stream.stored_size;
  o->area_size += stream.content_size;
  o->n_streams++;
  o->is_cut |= stream.is_cut;
  return GLYD_OK;
}

/* Open all streams there are; streams: NULL, or room for what becomes of `cap` of them. */
static glyd_status open_all(opener *o, glyd_stream_info *streams, size_t cap, size_t *n) {
  size_t from = 0, count = 0;
  const uint64_t most = (uint64_t)o->len * VAIN_SHARE + VAIN_SLACK;
  for (;;) {
    const glyd_deflate_place place = glyd_deflate_find(o->in, o->len, from);
    if (place.kind == GLYD_FOUND_NONE || o->vain > most) break;
    glyd_stream_info info;
    const glyd_status status = open_stream(o, &place, &info);
    if (status) return status;
    from = info.outcome == GLYD_STREAM_OPENED ? o->done : place.at;
    if (info.outcome == GLYD_STREAM_INVALID && info.kind == GLYD_FOUND_ZLIB) {
      from = place.at - 1; /* another may begin with the second byte */
      continue;
    }
    if (streams && count < cap) streams[count] = info;
    count++;
  }
  keep(o, o->len - o->done);
  *n = count;
  return GLYD_OK;
}

/* Is the input what its parts give? Uses the memory of the writer. */
static glyd_status verify(opener *o, size_t description_size, int *is_same) {
  uint8_t *const again = glyd_alloc_get(o->allocator, o->len);
  if (!again) return GLYD_E_MEMORY;
  const glyd_deflate_parts parts = {o->area,      o->area_size,   o->area + o->area_size,
                                    o->kept_size, o->description, description_size};
  *is_same = glyd_deflate_rebuild(o->workspace, o->n_streams, &parts, again, o->len) == GLYD_OK &&
             memcmp(again, o->in, o->len) == 0;
  glyd_alloc_put(o->allocator, again);
  return GLYD_OK;
}

/* Most bytes of a segment inside. */
static uint64_t inner_max(const glyd_plan *plan) {
  return plan->inner_segment < GLYD_OPENED_INNER_MAX ? plan->inner_segment : GLYD_OPENED_INNER_MAX;
}

/* The plan of segments of so many bytes inside. */
static glyd_plan inner_plan(const glyd_plan *plan, uint64_t part) {
  glyd_plan inner = *plan;
  inner.containers = GLYD_CONTAINERS_OFF;
  inner.dictionary = NULL;
  inner.content_size = GLYD_SIZE_UNKNOWN;
  inner.segment_size = inner.lz.segment_size = part;
  return inner;
}

uint64_t glyd_opened_encode_memory(const glyd_plan *plan) {
  const uint64_t len = plan->segment_size, area = glyd_opened_area_max((size_t)len);
  const uint64_t part = area < inner_max(plan) ? area : inner_max(plan);
  const glyd_plan inner = inner_plan(plan, part);
  /* what opening has until it ends, then either of what proving and what encoding take */
  const uint64_t opening = area + 2 * len + description_max((size_t)len) + opener_workspace() +
                           BREAKS_MAX * sizeof(uint32_t) + 6 * GLYD_ALLOC_OVERHEAD;
  const uint64_t proving = len + GLYD_ALLOC_OVERHEAD;
  const uint64_t encoding = GLYD_SEGMENT_BUFFER(part) + glyd_segment_encode_workspace(&inner) + 2 * GLYD_ALLOC_OVERHEAD;
  return opening + (proving > encoding ? proving : encoding);
}

/* The area as segments at out. */
static glyd_status encode_area(const glyd_plan *plan, const uint8_t *area, size_t n, uint8_t *out, size_t cap,
                               size_t *size) {
  /* Parts of the same size. */
  const uint64_t most = inner_max(plan);
  const size_t parts = (size_t)((n + most - 1) / most), part = (n + parts - 1) / parts;
  const glyd_plan inner = inner_plan(plan, part);
  uint8_t *const buffer = glyd_alloc_get(&plan->allocator, GLYD_SEGMENT_BUFFER(part));
  void *const workspace = glyd_alloc_get(&plan->allocator, glyd_segment_encode_workspace(&inner));
  glyd_status status = buffer && workspace ? GLYD_OK : GLYD_E_MEMORY;
  *size = 0;
  for (size_t at = 0; status == GLYD_OK && at < n; at += part) {
    const uint8_t *start;
    size_t stored;
    const size_t len = n - at < part ? n - at : part;
    status = glyd_segment_encode(&inner, workspace, GLYD_SIZE_UNKNOWN, area + at, len, buffer + GLYD_SEGMENT_HEADER_MAX,
                                 &start, &stored);
    if (status) break;
    if (stored > cap - *size) {
      status = GLYD_E_BUFFER;
      break;
    }
    memcpy(out + *size, start, stored);
    *size += stored;
  }
  glyd_alloc_put(&plan->allocator, buffer);
  glyd_alloc_put(&plan->allocator, workspace);
  return status;
}

/* Open the input: then its parts are in the area, what is kept last, and in the description; *described 0: there are
 * no streams. */
static glyd_status open_parts(opener *o, size_t *described) {
  size_t n;
  *described = 0;
  const glyd_status status = open_all(o, NULL, 0, &n);
  if (status || o->n_streams == 0) return status;
  const size_t size = glyd_deflate_encode_end(o->writer);
  if (size == 0) return GLYD_OK;
  memcpy(o->area + o->area_size, o->kept, o->kept_size);
  *described = size;
  return GLYD_OK;
}

static uint8_t *put_head(const opener *o, size_t described, uint8_t *p) {
  p = glyd_put_varint(p, o->n_streams << 1 | (uint64_t)o->is_cut);
  p = glyd_put_varint(p, o->area_size);
  p = glyd_put_varint(p, o->kept_size);
  return glyd_put_varint(p, described);
}

static glyd_status encode(const glyd_plan *plan, opener *o, uint8_t *out, size_t cap, size_t *size) {
  size_t described;
  int is_same;
  glyd_status status = open_parts(o, &described);
  if (status || described == 0) return status;
  if (plan->opens_by_itself && o->opened < o->len / LEAST_SHARE) return GLYD_OK;
  status = verify(o, described, &is_same);
  if (status || !is_same) return status;
  uint8_t head[HEAD_MAX];
  const size_t head_size = (size_t)(put_head(o, described, head) - head);
  if (head_size + described >= cap) return GLYD_OK;
  size_t segments;
  status =
      encode_area(plan, o->area, o->area_size + o->kept_size, out + head_size, cap - head_size - described, &segments);
  if (status == GLYD_E_BUFFER) return GLYD_OK;
  if (status) return status;
  memcpy(out, head, head_size);
  memcpy(out + head_size + segments, o->description, described);
  *size = head_size + segments + described;
  return GLYD_OK;
}

glyd_status glyd_opened_encode(const glyd_plan *plan, const uint8_t *in, size_t len, uint8_t *out, size_t cap,
                               size_t *size, size_t *opened) {
  opener o;
  *size = 0;
  *opened = 0;
  glyd_deflate_place place = glyd_deflate_find(in, len, 0);
  if (place.kind == GLYD_FOUND_NONE) return GLYD_OK;
  glyd_status status = begin(&o, in, len, &plan->allocator);
  if (status == GLYD_OK) status = encode(plan, &o, out, cap, size);
  *opened = (size_t)o.opened;
  release(&o);
  return status;
}

#define MAGIC_SIZE (sizeof GLYD_OPENED_CONTENT_MAGIC - 1)
#define CONTENT_HEAD_MAX (MAGIC_SIZE + HEAD_MAX + 10)

uint64_t glyd_opened_encode_content_bound(uint64_t len) {
  const uint64_t most = len < GLYD_OPENED_CONTENT_MAX ? len : GLYD_OPENED_CONTENT_MAX;
  return CONTENT_HEAD_MAX + glyd_opened_area_max(most) + description_max((size_t)most);
}

static glyd_status put_content(opener *o, uint8_t *out, size_t cap, size_t *size) {
  size_t described;
  const glyd_status status = open_parts(o, &described);
  if (status || described == 0) return status;
  uint8_t head[CONTENT_HEAD_MAX];
  memcpy(head, GLYD_OPENED_CONTENT_MAGIC, MAGIC_SIZE);
  const size_t head_size = (size_t)(put_head(o, described, glyd_put_varint(head + MAGIC_SIZE, o->len)) - head);
  const size_t area = o->area_size + o->kept_size;
  if (head_size + area + described > cap) return GLYD_E_BUFFER;
  memcpy(out, head, head_size);
  memcpy(out + head_size, o->area, area);
  memcpy(out + head_size + area, o->description, described);
  *size = head_size + area + described;
  return GLYD_OK;
}

glyd_status glyd_opened_encode_content(const uint8_t *in, size_t len, const glyd_allocator *allocator, uint8_t *out,
                                       size_t cap, size_t *size) {
  opener o;
  *size = 0;
  if (glyd_deflate_find(in, len, 0).kind == GLYD_FOUND_NONE) return GLYD_OK;
  glyd_status status = begin(&o, in, len, allocator);
  if (status == GLYD_OK) status = put_content(&o, out, cap, size);
  release(&o);
  return status;
}

glyd_status glyd_opened_encode_survey(const uint8_t *in, size_t len, const glyd_allocator *allocator,
                                      glyd_stream_info *streams, size_t cap, size_t *n) {
  opener o;
  *n = 0;
  glyd_status status = begin(&o, in, len, allocator);
  if (status == GLYD_OK) status = open_all(&o, streams, cap, n);
  release(&o);
  return status;
}

int glyd_opened_encode_sniff(const uint8_t *in, size_t len) {
  uint8_t content[SNIFF_CONTENT];
  glyd_inflate inflate;
  glyd_deflate_block block;
  size_t from = 0;
  for (unsigned i = 0; i < SNIFF_TRIES; i++) {
    const glyd_deflate_place place = glyd_deflate_find(in, len, from);
    if (place.kind == GLYD_FOUND_NONE) return 0;
    glyd_inflate_begin(&inflate, in + place.at, len - place.at, content, sizeof content);
    glyd_inflate_result result;
    size_t before;
    do {
      before = inflate.at;
      result = glyd_inflate_block(&inflate, &block, NULL);
    } while (result == GLYD_INFLATE_OK && !block.is_last && inflate.at > before);
    const int is_sure = place.kind != GLYD_FOUND_ZLIB;
    if (result == GLYD_INFLATE_FULL || (result == GLYD_INFLATE_OK && is_sure && inflate.at >= ZLIB_MIN)) return 1;
    if (result == GLYD_INFLATE_OK && inflate.bit >> 3 >= ZLIB_MIN) return 1;
    if (result == GLYD_INFLATE_SHORT && is_sure) return 1;
    from = place.at - (is_sure ? 0 : 1);
  }
  return 0;
}
