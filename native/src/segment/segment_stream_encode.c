/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_stream_encode.h"

#include "common/mem.h"
#include "huffman/huffman_encode.h"
#include "segment/segment_stream_common.h"

#define MASK_FROM 64u                 /* bytes from which a mask is tried */
#define LZ_FROM 32u                   /* and matches */
#define LZ_SAMPLE ((size_t)32 << 10)  /* at most; else a quarter of the stream */
#define LZ_SAMPLED ((size_t)48 << 10) /* shorter streams are tried as a whole */

/* A stream's planes, its masked form (half the bytes at most, thrice) and its matches. */
uint64_t glyd_segment_stream_scratch(uint64_t n) { return 4 * n + 65536; }

/* Planes of n bytes, all but the last of GLYD_STREAM_PLANE. out has room for n + n / 1024 + 64. */
static uint8_t *put_planes(const glyd_stream_writer *w, uint8_t *out, const uint8_t *in, size_t n) {
  glyd_huffman_code last;
  last.valid = 0;
  for (size_t at = 0; at < n;) {
    const size_t size = n - at < GLYD_STREAM_PLANE ? n - at : GLYD_STREAM_PLANE;
    out = glyd_huffman_encode_plane(w->config->cpu, out, in + at, size, NULL, &last);
    at += size;
  }
  return out;
}

static size_t planes_bound(size_t n) { return n + n / 1024 + 64; }

static uint8_t *put_any(glyd_stream_writer *w, uint8_t *out, const uint8_t *in, size_t n, unsigned depth);

/* Room for the bytes of the stream in the scratch memory. */
static uint8_t *scratch(glyd_stream_writer *w, size_t n) {
  if (n > (size_t)(w->scratch_end - w->scratch)) return NULL;
  uint8_t *const p = w->scratch;
  w->scratch += n;
  return p;
}

/* The masked form at out; NULL: it is not worth trying. */
static uint8_t *put_masked(glyd_stream_writer *w, uint8_t *out, const uint8_t *in, size_t n, unsigned depth) {
  if (n < MASK_FROM || depth == GLYD_STREAM_DEPTH) return NULL;
  uint32_t counts[256] = {0};
  for (size_t at = 0; at < n;) {
    uint32_t some[256];
    const size_t size = n - at < GLYD_STREAM_PLANE ? n - at : GLYD_STREAM_PLANE;
    glyd_huffman_count(in + at, size, some);
    for (unsigned i = 0; i < 256; i++) counts[i] += some[i];
    at += size;
  }
  unsigned common = 0;
  for (unsigned i = 1; i < 256; i++)
    if (counts[i] > counts[common]) common = i;
  if (counts[common] <= n / 2 + n / 20 || counts[common] == n) return NULL;
  const size_t mask_size = (n + 7) / 8;
  uint8_t *const mask = scratch(w, mask_size + 8), *const rest = scratch(w, n - counts[common] + 8);
  if (!mask || !rest) return NULL;
  memset(mask, 0, mask_size);
  size_t k = 0;
  for (size_t i = 0; i < n; i++) {
    const uint8_t differs = in[i] != common;
    mask[i >> 3] |= (uint8_t)(differs << (i & 7));
    rest[k] = in[i];
    k += differs;
  }
  out = glyd_put_varint(out, (uint64_t)n << 2 | GLYD_STREAM_MASKED);
  *out++ = (uint8_t)common;
  out = put_any(w, out, mask, mask_size, depth + 1);
  return out ? put_any(w, out, rest, k, depth + 1) : NULL;
}

/* Do matches gain anything? Judged by a part of a long stream. */
static int lz_pays(glyd_stream_writer *w, uint8_t *scratch_out, const uint8_t *in, size_t n) {
  if (n < LZ_SAMPLED) return 1;
  const size_t sample = n / 4 < LZ_SAMPLE ? n / 4 : LZ_SAMPLE;
  const uint8_t *const part = in + (n - sample) / 2;
  size_t size;
  uint8_t *const end = put_planes(w, scratch_out, part, sample);
  const size_t planes = (size_t)(end - scratch_out);
  return glyd_lz_encode(w->config, w->lz, part, sample, end, planes + planes / 32, &size) == GLYD_OK;
}

/* Matches of in[0..n) at out, if they take less than room: head, size and blocks. NULL: they do not. */
static uint8_t *put_lz(const glyd_lz_config *config, void *lz, uint8_t *out, uint64_t head, const uint8_t *in, size_t n,
                       size_t room) {
  size_t size;
  uint8_t *p = glyd_put_varint(out, head);
  uint8_t *const body = p + 5;
  if (glyd_lz_encode(config, lz, in, n, body, room, &size) != GLYD_OK) return NULL;
  p = glyd_put_varint(p, size);
  if ((size_t)(p - out) + size >= room) return NULL;
  memmove(p, body, size);
  return p + size;
}

static uint64_t lz_head(size_t n) { return (uint64_t)n << 2 | GLYD_STREAM_LZ; }

/* The same by the first of the better levels that may have so many bytes; without one by the level, if given. What gains
 * nothing counts for a quarter. */
static uint8_t *put_better(glyd_stream_writer *w, const glyd_lz_config *level, uint8_t *out, uint64_t head,
                           const uint8_t *in, size_t n, size_t room) {
  for (unsigned i = 0; i < GLYD_STREAM_LEVELS; i++) {
    glyd_stream_level *const better = &w->better[i];
    if (better->config.level == 0 || n > better->left) continue;
    uint8_t *const p = put_lz(&better->config, better->lz, out, head, in, n, room);
    better->left -= p ? n : n / 4;
    return p;
  }
  return level ? put_lz(level, w->lz, out, head, in, n, room) : NULL;
}

/* The stream's shortest form at out, which has room for planes_bound(n) + 16. NULL: no scratch memory. */
static uint8_t *put_any(glyd_stream_writer *w, uint8_t *out, const uint8_t *in, size_t n, unsigned depth) {
  if (n == 0) {
    *out = 0;
    return out + 1;
  }
  uint8_t *end = glyd_put_varint(out, (uint64_t)n << 2 | GLYD_STREAM_PLANES);
  end = put_planes(w, end, in, n);
  uint8_t *const before = w->scratch;
  const int fill = n == 1 || memcmp(in, in + 1, n - 1) == 0;
  if (!fill && (size_t)(end - out) > 24) {
    uint8_t *const other = scratch(w, 2 * planes_bound(n) + 128);
    if (!other) return NULL;
    uint8_t *const masked = put_masked(w, other, in, n, depth);
    if (masked && masked - other < end - out) {
      memcpy(out, other, (size_t)(masked - other));
      end = out + (masked - other);
    }
    if (n >= LZ_FROM && n <= w->config->segment_size && lz_pays(w, other, in, n)) {
      const size_t room = (size_t)(end - out);
      const uint8_t *p = w->text ? put_better(w, w->config, other, lz_head(n), in, n, room)
                                 : put_lz(w->config, w->lz, other, lz_head(n), in, n, room);
      for (unsigned i = 0; p && i < 2; i++) {
        end = out + (p - other);
        memcpy(out, other, (size_t)(p - other));
        p = i == 0 && !w->text ? put_better(w, NULL, other, lz_head(n), in, n, (size_t)(end - out)) : NULL;
      }
    }
  }
  w->scratch = before;
  return end;
}

int glyd_segment_stream_encode(glyd_stream_writer *w, const uint8_t *in, size_t n) {
  if (planes_bound(n) + 16 <= (size_t)(w->end - w->at)) {
    uint8_t *const p = put_any(w, w->at, in, n, 0);
    if (p) w->at = p;
    return p != NULL;
  }
  uint8_t *const before = w->scratch;
  uint8_t *const whole = scratch(w, planes_bound(n) + 16);
  if (!whole) return 0;
  uint8_t *const p = put_any(w, whole, in, n, 0);
  w->scratch = before;
  if (!p || p - whole > w->end - w->at) return 0;
  memcpy(w->at, whole, (size_t)(p - whole));
  w->at += p - whole;
  return 1;
}

int glyd_segment_stream_encode_text(glyd_stream_writer *w, const uint8_t *in, size_t n) {
  w->text = 1;
  const int done = glyd_segment_stream_encode(w, in, n);
  w->text = 0;
  return done;
}

int glyd_segment_stream_encode_pool(glyd_stream_writer *w, const uint8_t *in, size_t n) {
  if (n > w->config->segment_size) return 0;
  const size_t left = (size_t)(w->end - w->at), room = n < left ? n : left;
  uint8_t *const before = w->scratch, *const out = scratch(w, planes_bound(n) + 16);
  if (!out) return 0;
  const uint8_t *const p = put_better(w, w->config, out, n, in, n, room);
  w->scratch = before;
  if (!p) return 0;
  memcpy(w->at, out, (size_t)(p - out));
  w->at += p - out;
  return 1;
}

int glyd_segment_stream_put_pooled(glyd_stream_writer *w, size_t n) {
  if (w->end - w->at < 10) return 0;
  w->at = glyd_put_varint(w->at, (uint64_t)n << 2 | GLYD_STREAM_POOLED);
  return 1;
}
