/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "base/base_map_encode.h"

#include "common/alloc.h"

#define WAYS 4u                       /* places of a bucket: of equal blocks the first four are kept */
#define LOAD 3u                       /* blocks a bucket, on average */
#define MAP_MAX ((uint64_t)256 << 20) /* bytes of a map */
#define BLOCK_LOG_MIN 5u
#define LOOK 32u          /* bytes hashed of a block */
#define FAR_MIN 32u       /* shortest copy from anywhere */
#define NEAR_MIN 16u      /* and where the copy before would have gone on */
#define FAR_COST 24u      /* what a copy from elsewhere must save at the place where the base goes on */
#define SAME_LOOK 4096u   /* bytes of a copy compared with the place where the base goes on */
#define RECENT_BELOW 512u /* copies below this are compared with recent content */
#define RECENT_FAR ((ptrdiff_t)256 << 10)
#define RECENT_BITS 15u
#define NOTED 512u /* bytes at the end of a copy that are noted as recent */
#define AHEAD 16u  /* positions between a look-up's hash and the look-up: a cache miss is about as long */

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

GLYD_INLINE uint64_t hash_block(const uint8_t *p) {
  const uint64_t h = mix(glyd_load64(p), glyd_load64(p + 8));
  return (h ^ mix(glyd_load64(p + 16) + 1, glyd_load64(p + 24)) * 0x165667919E3779F9u) * 0x9E3779B185EBCA87u;
}

GLYD_INLINE uint32_t *bucket_of(uint32_t *map, const map_shape *s, uint64_t hash) {
  return map + (uint64_t)(((unsigned __int128)hash * s->buckets) >> 64) * WAYS;
}

/* Bits of the hash above the number; the bucket comes from the other end. */
GLYD_INLINE uint32_t tag_of(const map_shape *s, uint64_t hash) { return (uint32_t)(hash << s->number_bits); }

static void build(const glyd_base *base, uint32_t *map, const map_shape *s) {
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
    if (i % (GLYD_BASE_PIECE / block) == 0 && i > 0 && i < blocks)
      glyd_base_source_release(base, i * block - GLYD_BASE_PIECE, i * block);
    if (i < blocks) {
      const uint64_t h = hash_block(base->data + i * block);
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
  build(base, map, &s);
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

_Static_assert(sizeof(uint32_t) << RECENT_BITS == GLYD_BASE_FIND_WORKSPACE, "the table of recent content");

GLYD_INLINE size_t recent_of(const uint8_t *p) {
  return (size_t)(mix(glyd_load64(p), glyd_load64(p + 8)) * 0x9E3779B185EBCA87u >> (64 - RECENT_BITS));
}

/* What is known while content is covered. */
typedef struct finder {
  const uint8_t *in, *end;
  const uint8_t *from; /* where the last copy ends */
  const uint8_t *base;
  uint64_t size; /* of the base */
  map_shape shape;
  uint32_t *map;
  glyd_base_shifts shifts;
  uint32_t *recent; /* positions of content by hash: what LZ would find */
} finder;

typedef struct candidate {
  const uint8_t *at;
  uint64_t place;
  size_t length;
} candidate;

/* All that is equal around two places that start with some equal bytes. */
GLYD_INLINE candidate extend(const finder *f, const uint8_t *at, uint64_t place) {
  const uint8_t *const b = f->base + place;
  size_t back = 0;
  const size_t free_back = at > f->from ? (size_t)(at - f->from) : 0; /* the copy before has the rest */
  const size_t most_back = free_back < place ? free_back : (size_t)place;
  while (back < most_back && at[-1 - (ptrdiff_t)back] == b[-1 - (ptrdiff_t)back]) back++;
  return (candidate){at - back, place - back, back + count_equal(at, f->end, b, f->base + f->size)};
}

/* The best of a bucket for the content at at; length 0: none. */
static candidate look_up(const finder *f, uint64_t hash, const uint8_t *at, uint64_t expected) {
  const uint32_t *const bucket = bucket_of(f->map, &f->shape, hash);
  const uint32_t number_mask = (uint32_t)(((uint64_t)1 << f->shape.number_bits) - 1), tag = tag_of(&f->shape, hash);
  candidate best = {at, 0, 0};
  uint64_t best_far = 0;
  for (unsigned k = 0; k < WAYS && bucket[k] != 0; k++) {
    if ((bucket[k] ^ tag) & ~number_mask) continue;
    const uint64_t place = (uint64_t)((bucket[k] & number_mask) - 1) << f->shape.block_log;
    if (glyd_load64(f->base + place) != glyd_load64(at)) continue;
    const candidate c = extend(f, at, place);
    const uint64_t far = place > expected ? place - expected : expected - place;
    if (c.length > best.length || (c.length == best.length && far < best_far)) {
      best = c;
      best_far = far;
    }
  }
  return best;
}

/* Where content at at would be in the base by a shift; size: nowhere. */
GLYD_INLINE uint64_t place_by(const finder *f, unsigned slot, const uint8_t *at) {
  const uint64_t place = (uint64_t)(at - f->in) + f->shifts.slot[slot];
  return place < f->size && f->size - place >= 8 ? place : f->size;
}

/* What it costs, about, to say the n bytes of content at at by the base at place
 * on: bytes that differ, and two for each run of them. */
static size_t cost_of(const finder *f, const uint8_t *at, uint64_t place, size_t n) {
  if (place >= f->size) return n;
  const size_t there = n < f->size - place ? n : (size_t)(f->size - place);
  const uint8_t *const b = f->base + place;
  size_t cost = n - there;
  unsigned differed = 0;
  for (size_t i = 0; i < there; i++) {
    const unsigned differs = at[i] != b[i];
    cost += differs + 2 * (differs & ~differed);
    differed = differs;
  }
  return cost;
}

/* Whether a copy from elsewhere is worth its place: not if nearly all of it is
 * where the base goes on anyway, nor if it is short and recent content has as
 * much of it, which LZ says in fewer bits. */
static int is_worth(const finder *f, candidate c) {
  if (c.length < FAR_MIN) return 0;
  const size_t looked = c.length < SAME_LOOK ? c.length : SAME_LOOK;
  if (cost_of(f, c.at, (uint64_t)(c.at - f->in) + f->shifts.slot[0], looked) < FAR_COST) return 0;
  if (c.length >= RECENT_BELOW) return 1;
  for (size_t i = 0; i < c.length && f->end - (c.at + i) >= 16 && i < 32; i += 8) {
    const uint8_t *const at = c.at + i;
    const uint32_t before = f->recent[recent_of(at)];
    if (before == 0) continue;
    const uint8_t *const old = f->in + before - 1;
    if (old < at && at - old <= RECENT_FAR && count_equal(at, f->end, old, f->end) + i + 16 >= c.length) return 0;
  }
  return 1;
}

/* Where a copy has just ended: the best of the places that have the bytes around
 * this one, at and those before it. Where lines are alike, content goes on nearly
 * as the base does at the old place as well, and only these bytes tell. */
GLYD_INLINE candidate look_around(const finder *f, const uint8_t *at) {
  candidate best = {at, 0, 0};
  if (f->end - at < (ptrdiff_t)LOOK) return best;
  uint64_t hashes[LOOK];
  const size_t n = (size_t)(at - f->in) < LOOK - 1 ? (size_t)(at - f->in) + 1 : LOOK;
  for (size_t k = 0; k < n; k++) {
    hashes[k] = hash_block(at - k);
    __builtin_prefetch(bucket_of(f->map, &f->shape, hashes[k]));
  }
  const uint64_t near = (uint64_t)(at - f->in) + f->shifts.slot[0];
  for (size_t k = 0; k < n; k++) {
    candidate c = look_up(f, hashes[k], at - k, near - k);
    if (c.length <= k) continue;
    const size_t skip = (size_t)(at - c.at); /* the copy before has them */
    if (skip >= c.length) continue;
    c = (candidate){at, c.place + skip, c.length - skip};
    if (c.length > best.length) best = c;
  }
  return best;
}

GLYD_INLINE void note_recent(finder *f, const uint8_t *at) { f->recent[recent_of(at)] = (uint32_t)(at - f->in) + 1; }

/* A copy by one of the last shifts; length 0: none. */
GLYD_INLINE candidate look_near(const finder *f, const uint8_t *at) {
  for (unsigned slot = 0; slot < GLYD_BASE_SHIFTS; slot++) {
    const uint64_t place = place_by(f, slot, at);
    if (place == f->size || glyd_load64(f->base + place) != glyd_load64(at)) continue;
    const candidate c = extend(f, at, place);
    if (c.length >= NEAR_MIN) return c;
  }
  return (candidate){at, 0, 0};
}

/* Hashes of the next positions, for which the map is fetched meanwhile. */
typedef struct ring {
  uint64_t hashes[AHEAD];
  const uint8_t *end; /* positions before it are in */
} ring;

GLYD_INLINE uint64_t next_hash(const finder *f, ring *r, const uint8_t *at, const uint8_t *last) {
  if (r->end < at) r->end = at;
  for (; r->end <= last && r->end < at + AHEAD; r->end++) {
    const uint64_t h = hash_block(r->end);
    r->hashes[(size_t)(r->end - f->in) % AHEAD] = h;
    __builtin_prefetch(bucket_of(f->map, &f->shape, h));
  }
  return r->hashes[(size_t)(at - f->in) % AHEAD];
}

/* The copy that content at at is to be part of; length 0: none. */
GLYD_INLINE candidate choose(finder *f, ring *r, const uint8_t *at, const uint8_t *last, int after_copy) {
  if (after_copy) {
    const candidate c = look_around(f, at);
    if (is_worth(f, c)) return c;
  }
  candidate c = look_near(f, at);
  if (c.length > 0) return c;
  c = look_up(f, next_hash(f, r, at, last), at, (uint64_t)(at - f->in) + f->shifts.slot[0]);
  if (!is_worth(f, c)) c.length = 0;
  note_recent(f, at);
  return c;
}

size_t glyd_base_map_find(const glyd_base *base, void *workspace, const uint8_t *in, size_t len,
                          glyd_base_copy *copies) {
  if (base->size < LOOK || len < LOOK) return 0;
  finder f = {.in = in,
              .end = in + len,
              .from = in,
              .base = base->data,
              .size = base->size,
              .shape = shape_of(base->size),
              .map = base->map,
              .recent = workspace};
  memset(f.recent, 0, GLYD_BASE_FIND_WORKSPACE);
  ring r = {.end = in};
  const uint8_t *const last = f.end - LOOK;
  size_t n = 0;
  for (const uint8_t *at = in; at <= last;) {
    const candidate c = choose(&f, &r, at, last, at == f.from && n > 0);
    if (c.length == 0) {
      at++;
      continue;
    }
    copies[n++] = (glyd_base_copy){c.place, (uint32_t)(c.at - f.from), (uint32_t)c.length};
    glyd_base_shifts_use(&f.shifts, c.place - (uint64_t)(c.at - f.in));
    at = f.from = c.at + c.length;
    for (const uint8_t *p = c.length > NOTED ? at - NOTED : c.at; p < at && f.end - p >= 16; p += 4) note_recent(&f, p);
  }
  return n;
}
