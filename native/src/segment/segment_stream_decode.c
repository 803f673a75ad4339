/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_stream_decode.h"

#include "block/block_decode.h"
#include "common/mem.h"
#include "record/record_common.h"
#include "segment/segment_stream_common.h"

static glyd_status decode_planes(glyd_stream_reader *r, uint8_t *out, uint64_t n) {
  glyd_plane_input input = {r->at, r->end, r->end};
  r->table->bits = 0;
  for (uint64_t at = 0; at < n;) {
    const size_t want = n - at < GLYD_STREAM_PLANE ? (size_t)(n - at) : GLYD_STREAM_PLANE;
    const uint8_t *data;
    size_t found;
    const glyd_status status =
        glyd_huffman_decode_plane(r->cpu, r->table, &input, out + at, want, SIZE_MAX, &data, &found);
    if (status) return status;
    if (found != want) return GLYD_E_CORRUPT;
    at += want;
  }
  r->at = input.at;
  return GLYD_OK;
}

static glyd_status decode_lz(glyd_stream_reader *r, uint8_t *out, uint64_t n) {
  uint64_t size;
  const uint8_t *const p = glyd_get_varint(r->at, r->end, &size);
  if (!p || size > (uint64_t)(r->end - p)) return GLYD_E_CORRUPT;
  const glyd_status status = glyd_lz_decode(r->cpu, r->lz, out, (size_t)n, p, (size_t)size, NULL);
  r->at = p + size;
  return status;
}

static glyd_status decode_any(glyd_stream_reader *r, unsigned depth, glyd_record_stream *stream);

/* Bytes that a mask marks are taken from a stream of their own, the others are all the same. */
static glyd_status decode_masked(glyd_stream_reader *r, unsigned depth, uint8_t *out, uint64_t n) {
  if (depth == GLYD_STREAM_DEPTH || r->at == r->end) return GLYD_E_CORRUPT;
  const uint8_t value = *r->at++;
  uint8_t *const before = r->arena->at;
  glyd_record_stream mask, rest;
  glyd_status status = decode_any(r, depth + 1, &mask);
  if (!status && mask.n != (n + 7) / 8) status = GLYD_E_CORRUPT;
  if (!status) status = decode_any(r, depth + 1, &rest);
  if (status) return status;
  memset(out, value, (size_t)n);
  uint64_t at = 0;
  for (uint64_t i = 0; i < n; i += 64) {
    uint64_t bits = glyd_load64(mask.data + (i >> 3));
    if (n - i < 64) bits &= ((uint64_t)1 << (n - i)) - 1;
    if (at + (uint64_t)__builtin_popcountll(bits) > rest.n) return GLYD_E_CORRUPT;
    for (; bits; bits &= bits - 1) out[i + glyd_ctz64(bits)] = rest.data[at++];
  }
  r->arena->at = before;
  return at == rest.n ? GLYD_OK : GLYD_E_CORRUPT;
}

static glyd_status decode_any(glyd_stream_reader *r, unsigned depth, glyd_record_stream *stream) {
  uint64_t head;
  const uint8_t *const p = glyd_get_varint(r->at, r->end, &head);
  if (!p) return GLYD_E_CORRUPT;
  r->at = p;
  const uint64_t n = head >> 2;
  if (n > UINT32_MAX || (n == 0 && head != 0)) return GLYD_E_CORRUPT;
  uint8_t *const out = glyd_record_arena_get(r->arena, n + GLYD_RECORD_PAD);
  if (!out) return GLYD_E_CORRUPT;
  memset(out + n, 0, GLYD_RECORD_PAD);
  *stream = (glyd_record_stream){out, (size_t)n, 0};
  if (n == 0) return GLYD_OK;
  switch (head & 3) {
  case GLYD_STREAM_PLANES: return decode_planes(r, out, n);
  case GLYD_STREAM_MASKED: return decode_masked(r, depth, out, n);
  case GLYD_STREAM_LZ: return decode_lz(r, out, n);
  default: return GLYD_E_CORRUPT;
  }
}

/* A stream of the pool takes no memory of its own. */
static glyd_status take_pooled(glyd_stream_reader *r, uint64_t n, glyd_record_stream *stream) {
  if (n == 0 || n > r->pool_n) return GLYD_E_CORRUPT;
  *stream = (glyd_record_stream){r->pool, (size_t)n, 1};
  r->pool += n;
  r->pool_n -= n;
  return GLYD_OK;
}

glyd_status glyd_segment_stream_begin(glyd_stream_reader *r, uint64_t *n_streams) {
  uint64_t head, n;
  r->pool = NULL;
  r->pool_n = r->pool_size = r->pool_stored = 0;
  const uint8_t *p = glyd_get_varint(r->at, r->end, &head);
  if (!p || head >> 1 > (uint64_t)(r->end - p)) return GLYD_E_CORRUPT;
  r->at = p;
  *n_streams = head >> 1;
  if (!(head & 1)) return GLYD_OK;
  p = glyd_get_varint(p, r->end, &n);
  if (!p || n == 0 || n > UINT32_MAX) return GLYD_E_CORRUPT;
  uint8_t *const pool = glyd_record_arena_get(r->arena, n + GLYD_RECORD_PAD);
  if (!pool) return GLYD_E_CORRUPT;
  memset(pool + n, 0, GLYD_RECORD_PAD);
  r->at = p;
  const glyd_status status = decode_lz(r, pool, n);
  r->pool = pool;
  r->pool_n = r->pool_size = n;
  r->pool_stored = (uint64_t)(r->at - p);
  return status;
}

glyd_status glyd_segment_stream_decode(glyd_stream_reader *reader, glyd_record_stream *stream) {
  uint64_t head;
  const uint8_t *const p = glyd_get_varint(reader->at, reader->end, &head);
  if (!p || (head & 3) != GLYD_STREAM_POOLED) return decode_any(reader, 0, stream);
  reader->at = p;
  return take_pooled(reader, head >> 2, stream);
}
