/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "base/base_map_encode.h"

#include "common/alloc.h"

#define WAYS 4u                       /* places of a bucket: of equal blocks the first four are kept */
#define LOAD 3u                       /* blocks a bucket, on average */
#define MAP_MAX ((uint64_t)256 << 20) /* bytes of a map */
#define BLOCK_LOG_MIN 4u
#define LOOK 32u     /* bytes hashed of a block, where it has as many */
#define FAR_MIN 32u  /* shortest copy from anywhere */
#define NEAR_MIN 16u /* and where the copy before would have gone on */
#define AHEAD 16u    /* positions between a look-up's hash and the look-up: a cache miss is about as long */

/* Block size and number of buckets of a map. An entry is the number of a block
 * plus 1, with as many bits of its hash above as there is room for. */
typedef struct map_shape {
  unsigned block_log;
  unsigned number_bits;
  uint64_t buckets;
} map_shape;

static map_shape shape_of(uint64_t size) {
  map_shape s = {BLOCK_LOG_MIN, 1, 0};
  while ((size >> s.block_log) / LOAD * WAYS * sizeof(uint32_t) > MAP_MAX) s.block_log++;
  const uint64_t blocks = size >> s.block_log;
  while ((blocks >> s.number_bits) != 0) s.number_bits++;
  s.buckets = blocks / LOAD + 1;
  return s;
}

uint64_t glyd_base_map_memory(uint64_t base_size) { return shape_of(base_size).buckets * WAYS * sizeof(uint32_t); }

GLYD_INLINE uint64_t mix(uint64_t a, uint64_t b) {
  const unsigned __int128 p = (unsigned __int128)(a ^ 0x9E3779B185EBCA87u) * (b ^ 0xC2B2AE3D27D4EB4Fu);
  return (uint64_t)p ^ (uint64_t)(p >> 64);
}

GLYD_INLINE uint64_t hash_block(const uint8_t *p, int wide) {
  uint64_t h = mix(glyd_load64(p), glyd_load64(p + 8));
  if (wide) h ^= mix(glyd_load64(p + 16) + 1, glyd_load64(p + 24)) * 0x165667919E3779F9u;
  return h * 0x9E3779B185EBCA87u;
}

GLYD_INLINE uint32_t *bucket_of(uint32_t *map, const map_shape *s, uint64_t hash) {
  return map + (uint64_t)(((unsigned __int128)hash * s->buckets) >> 64) * WAYS;
}

/* Bits of the hash above the number; the bucket comes from the other end. */
GLYD_INLINE uint32_t tag_of(const map_shape *s, uint64_t hash) { return (uint32_t)(hash << s->number_bits); }

static size_t look_of(const map_shape *s) {
  return ((size_t)1 << s->block_log) < LOOK ? (size_t)1 << s->block_log : LOOK;
}

GLYD_INLINE void build(const glyd_base *base, uint32_t *map, const map_shape *s, int wide) {
  const size_t block = (size_t)1 << s->block_log;
  const uint64_t blocks = base->size >> s->block_log;
  enum { RING = 16 };
  uint64_t hashes[RING];
  for (uint64_t i = 0; i < blocks + RING; i++) {
    if (i >= RING) {
      const uint64_t h = hashes[i % RING];
      uint32_t *const bucket = bucket_of(map, s, h);
      const uint32_t entry = tag_of(s, h) | (uint32_t)(i - RING + 1);
      unsigned k = 0;
      while (k < WAYS && bucket[k] != 0) k++;
      if (k < WAYS) bucket[k] = entry;
    }
    if (i < blocks) {
      const uint64_t h = hash_block(base->data + i * block, wide);
      hashes[i % RING] = h;
      __builtin_prefetch(bucket_of(map, s, h), 1);
    }
  }
}

glyd_status glyd_base_map_build(glyd_base *base) {
  if (base->map) return GLYD_OK;
  const map_shape s = shape_of(base->size);
  const uint64_t bytes = s.buckets * WAYS * sizeof(uint32_t);
  uint32_t *const map = glyd_alloc_get(&base->allocator, bytes);
  if (!map) return GLYD_E_MEMORY;
  memset(map, 0, (size_t)bytes);
  if (look_of(&s) == LOOK)
    build(base, map, &s, 1);
  else
    build(base, map, &s, 0);
  base->map = map;
  return GLYD_OK;
}

/* How many bytes at a equal those at b, before the end of a and of b. */
GLYD_INLINE size_t count_equal(const uint8_t *a, const uint8_t *a_end, const uint8_t *b, const uint8_t *b_end) {
  const uint8_t *const start = a;
  while (a_end - a >= 16 && b_end - b >= 16) {
    const uint64_t x = glyd_load64(a) ^ glyd_load64(b), y = glyd_load64(a + 8) ^ glyd_load64(b + 8);
    if (x | y) return (size_t)(a - start) + (x ? glyd_ctz64(x) >> 3 : 8 + (glyd_ctz64(y) >> 3));
    a += 16;
    b += 16;
  }
  while (a < a_end && b < b_end && *a == *b) {
    a++;
    b++;
  }
  return (size_t)(a - start);
}

typedef struct finder {
  const uint8_t *in, *end;
  const uint8_t *from; /* where the last copy ends */
  const uint8_t *base, *base_end;
  map_shape shape;
  uint32_t *map;
} finder;

typedef struct candidate {
  const uint8_t *at; /* in the content */
  const uint8_t *base;
  size_t length;
} candidate;

/* All that is equal around two places that start with some equal bytes. */
GLYD_INLINE candidate extend(const finder *f, const uint8_t *at, const uint8_t *base) {
  size_t back = 0;
  const size_t most_back =
      (size_t)(at - f->from) < (size_t)(base - f->base) ? (size_t)(at - f->from) : (size_t)(base - f->base);
  while (back < most_back && at[-1 - (ptrdiff_t)back] == base[-1 - (ptrdiff_t)back]) back++;
  return (candidate){at - back, base - back, back + count_equal(at, f->end, base, f->base_end)};
}

/* The best of a bucket for the content at at; length 0: none. */
static candidate look_up(const finder *f, uint64_t hash, const uint8_t *at, uint64_t expected) {
  const uint32_t *const bucket = bucket_of(f->map, &f->shape, hash);
  const uint32_t number_mask = (uint32_t)(((uint64_t)1 << f->shape.number_bits) - 1), tag = tag_of(&f->shape, hash);
  candidate best = {at, f->base, 0};
  uint64_t best_far = 0;
  for (unsigned k = 0; k < WAYS && bucket[k] != 0; k++) {
    if ((bucket[k] ^ tag) & ~number_mask) continue;
    const uint8_t *const b = f->base + ((uint64_t)((bucket[k] & number_mask) - 1) << f->shape.block_log);
    if (glyd_load64(b) != glyd_load64(at)) continue;
    const candidate c = extend(f, at, b);
    const uint64_t place = (uint64_t)(b - f->base), far = place > expected ? place - expected : expected - place;
    if (c.length > best.length || (c.length == best.length && far < best_far)) {
      best = c;
      best_far = far;
    }
  }
  return best;
}

GLYD_INLINE size_t find(finder *f, glyd_base_copy *copies, int wide) {
  const size_t look = wide ? LOOK : 16;
  const uint64_t size = (uint64_t)(f->base_end - f->base);
  const uint8_t *at = f->in;
  uint64_t diagonal = 0; /* where the base would go on at f->from */
  size_t n = 0;
  uint64_t hashes[AHEAD];
  const uint8_t *hashed = at; /* positions before it have a hash in the ring */
  const uint8_t *const last = f->end - f->in >= (ptrdiff_t)look ? f->end - look : f->in - 1;
  while (at <= last) {
    candidate c = {at, f->base, 0};
    const uint64_t near = diagonal + (uint64_t)(at - f->from);
    if (near + 8 <= size && glyd_load64(f->base + near) == glyd_load64(at)) {
      c = extend(f, at, f->base + near);
      if (c.length < NEAR_MIN) c.length = 0;
    }
    if (c.length == 0) {
      if (hashed < at) hashed = at;
      while (hashed <= last && hashed < at + AHEAD) {
        const uint64_t h = hash_block(hashed, wide);
        hashes[(size_t)(hashed - f->in) % AHEAD] = h;
        __builtin_prefetch(bucket_of(f->map, &f->shape, h));
        hashed++;
      }
      c = look_up(f, hashes[(size_t)(at - f->in) % AHEAD], at, near);
      if (c.length < FAR_MIN) c.length = 0;
    }
    if (c.length == 0) {
      at++;
      continue;
    }
    copies[n++] = (glyd_base_copy){(uint64_t)(c.base - f->base), (uint32_t)(c.at - f->from), (uint32_t)c.length};
    at = f->from = c.at + c.length;
    diagonal = (uint64_t)(c.base - f->base) + c.length;
  }
  return n;
}

size_t glyd_base_map_find(const glyd_base *base, const uint8_t *in, size_t len, glyd_base_copy *copies) {
  finder f = {.in = in,
              .end = in + len,
              .from = in,
              .base = base->data,
              .base_end = base->data + base->size,
              .shape = shape_of(base->size),
              .map = base->map};
  if (base->size < LOOK || len < LOOK) return 0;
  return look_of(&f.shape) == LOOK ? find(&f, copies, 1) : find(&f, copies, 0);
}
