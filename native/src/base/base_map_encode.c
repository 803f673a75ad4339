/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "base/base_map_encode.h"

#include "base/base_members_encode.h"
#include "common/alloc.h"
#include "common/cpu.h"
#include "match/match_marks.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* The map */
#define WAYS 4u                       /* places of a bucket: of equal keys the first four are kept */
#define LOAD 3u                       /* marks a bucket, on average */
#define MAP_MAX ((uint64_t)256 << 20) /* bytes of a map */
#define SPACING_MIN 7u                /* log of the bytes from mark to mark */
#define GRAIN_MIN 3u                  /* log of what places are rounded to */
#define GRAIN_MAX 6u
#define NUMBER_BITS 26u /* of a rounded place, as long as grains may grow */
#define KEY 24u         /* bytes hashed at a mark */
#define LISTED 512u     /* bytes of the base whose marks are listed before they are entered */
#define RING 16u        /* marks between a hash and its use: a cache miss is about as long */
#define LOOK 32u        /* bytes left where nothing is looked up any more */

/* What is near */
#define NEIGHBOURS ((uint64_t)1 << 10) /* bytes on either side of a place that are known in detail */
#define BLOCK_LOG 4u                   /* of blocks of 16 bytes */
#define AROUND 16u                     /* places up to the end of a copy from where blocks are looked up */
#define NEAR_BITS 12u
#define SPARSER 256u /* bytes without a copy from which on every second place is looked up, then every third … */
#define SPARSEST 31u
#define RECENT_BITS 13u
#define NOTED 64u /* bytes at the end of a copy that are noted as recent */

/* What is a copy */
#define EXTENDED ((ptrdiff_t)64 << 10) /* bytes from which a candidate is long, however long it is */
#define FAR_MIN 32u                    /* shortest copy from anywhere */
#define NEAR_MIN 16u                   /* and where the copy before would have gone on */
#define FAR_COST 24u                   /* what a copy from elsewhere must save at the place where the base goes on */
#define SAME_LOOK 4096u                /* bytes of a copy compared with the place where the base goes on */
#define RECENT_BELOW 512u              /* copies below this are compared with recent content */
#define RECENT_FAR ((ptrdiff_t)256 << 10)
#define CHANGED 192u   /* content that was changed in place differs within so many bytes at most */
#define UNCHANGED 256u /* and then is the same for so many */
#define TRUSTED 5u     /* of so many changes in place one is looked into all the same */

/* An entry is the place of a mark in grains of 2^grain_log bytes, plus 1, with as
 * many bits of its hash above as there is room for. */
typedef struct map_shape {
  unsigned spacing_log, grain_log;
  unsigned number_bits;
  uint64_t buckets;
} map_shape;

static map_shape shape_of(uint64_t size) {
  map_shape s = {SPACING_MIN, GRAIN_MIN, 1, 0};
  while ((size >> s.spacing_log) / LOAD * WAYS * sizeof(uint32_t) > MAP_MAX) s.spacing_log++;
  while (size >> (s.grain_log + (s.grain_log < GRAIN_MAX ? NUMBER_BITS : 31)) != 0) s.grain_log++;
  while ((((size >> s.grain_log) + 1) >> s.number_bits) != 0) s.number_bits++;
  s.buckets = (size >> s.spacing_log) / LOAD + 1;
  return s;
}

_Static_assert(GLYD_BASE_PIECE % LISTED == 0 && LISTED % GLYD_BASE_MEMBER_BLOCK == 0,
               "pieces end at the end of a list");

uint64_t glyd_base_map_memory(uint64_t base_size) { return shape_of(base_size).buckets * WAYS * sizeof(uint32_t); }

GLYD_INLINE uint64_t mix(uint64_t a, uint64_t b) {
  const unsigned __int128 p = (unsigned __int128)(a ^ 0x9E3779B185EBCA87u) * (b ^ 0xC2B2AE3D27D4EB4Fu);
  return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Of KEY bytes. */
GLYD_INLINE uint64_t hash_key(const uint8_t *p) {
  const uint64_t first = mix(glyd_load64(p), glyd_load64(p + 8));
  return (first ^ glyd_load64(p + 16) * 0x165667919E3779F9u) * 0x9E3779B185EBCA87u;
}

GLYD_INLINE uint32_t *bucket_of(uint32_t *map, const map_shape *s, uint64_t hash) {
  return map + (uint64_t)(((unsigned __int128)hash * s->buckets) >> 64) * WAYS;
}

/* Bits of the hash above the number; the bucket comes from the other end. */
GLYD_INLINE uint32_t tag_of(const map_shape *s, uint64_t hash) { return (uint32_t)(hash << s->number_bits); }

/* Marks of the 64 places from at on, as far as a key fits before size. */
GLYD_INLINE uint64_t marks_before(unsigned cpu, const uint8_t *data, uint64_t at, uint64_t size, unsigned spacing_log) {
  if (size - at >= GLYD_MARKS_AT_ONCE + LOOK) return glyd_match_marks(cpu, data + at, spacing_log);
  if (size - at < LOOK) return 0;
  const uint64_t n = size - at - LOOK + 1;
  return glyd_match_marks_first(data + at, (unsigned)(n < 64 ? n : 64), spacing_log);
}

GLYD_INLINE void put(uint32_t *map, const map_shape *s, uint64_t hash, uint32_t number) {
  uint32_t *const bucket = bucket_of(map, s, hash);
#if defined(__SSE2__)
  const __m128i all = _mm_load_si128((const void *)bucket);
  const unsigned free = (unsigned)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(all, _mm_setzero_si128())));
  const unsigned k = glyd_ctz64(free | 1u << WAYS);
#else
  unsigned k = 0;
  while (k < WAYS && bucket[k] != 0) k++;
#endif
  if (k < WAYS) bucket[k] = tag_of(s, hash) | number;
}

/* Entries on their way into the map: what they need of it is fetched meanwhile. */
typedef struct pending {
  uint64_t hashes[RING];
  uint32_t numbers[RING];
  uint64_t n; /* so far */
} pending;

GLYD_INLINE void put_later(pending *ring, uint32_t *map, const map_shape *s, uint64_t hash, uint64_t place) {
  const uint64_t i = ring->n++ % RING;
  if (ring->n > RING) put(map, s, ring->hashes[i], ring->numbers[i]);
  ring->hashes[i] = hash;
  ring->numbers[i] = (uint32_t)(place >> s->grain_log) + 1;
  __builtin_prefetch(bucket_of(map, s, hash), 1);
}

/* Enter the members whose headers start at at and before end by their names, as marks are by what follows them. */
static void put_members(const glyd_base *base, uint64_t at, uint64_t end, pending *ring, uint32_t *map,
                        const map_shape *s) {
  glyd_base_member member;
  for (; at < end && base->size - at >= GLYD_BASE_MEMBER_HEADERS; at += GLYD_BASE_MEMBER_BLOCK)
    if (glyd_base_is_header(base->data + at) && glyd_base_member_read(base->data + at, &member) >= 0)
      put_later(ring, map, s, member.hash, at);
}

static void build(const glyd_base *base, uint32_t *map, const map_shape *s) {
  const unsigned cpu = glyd_cpu_features();
  pending ring = {.n = 0};
  uint16_t places[LISTED];
  uint64_t at = 0;
  for (; base->size - at >= LISTED + LOOK; at += LISTED) {
    if (at % GLYD_BASE_PIECE == 0 && at > 0) glyd_base_source_release(base, at - GLYD_BASE_PIECE, at);
    const uint8_t *const data = base->data + at;
    put_members(base, at, at + LISTED, &ring, map, s);
    const size_t n = glyd_match_marks_list(cpu, data, LISTED / GLYD_MARKS_AT_ONCE, s->spacing_log, places);
    for (size_t i = 0; i < n; i++) put_later(&ring, map, s, hash_key(data + places[i]), at + places[i]);
  }
  put_members(base, at, base->size, &ring, map, s);
  for (; at < base->size; at += GLYD_MARKS_AT_ONCE) {
    for (uint64_t marks = marks_before(cpu, base->data, at, base->size, s->spacing_log); marks; marks &= marks - 1) {
      const uint64_t place = at + glyd_ctz64(marks);
      put_later(&ring, map, s, hash_key(base->data + place), place);
    }
  }
  for (uint64_t i = ring.n > RING ? ring.n - RING : 0; i < ring.n; i++)
    put(map, s, ring.hashes[i % RING], ring.numbers[i % RING]);
}

glyd_status glyd_base_map_build(glyd_base *base) {
  if (base->map) return GLYD_OK;
  const map_shape s = shape_of(base->size);
  const uint64_t bytes = s.buckets * WAYS * sizeof(uint32_t);
  uint32_t *const map = glyd_alloc_get(&base->allocator, bytes);
  if (!map) return GLYD_E_MEMORY;
  glyd_alloc_use_whole(map, bytes);
  memset(map, 0, (size_t)bytes);
  build(base, map, &s);
  base->map = map;
  return GLYD_OK;
}

/* Bit i: a[i] equals b[i], of 64 bytes. */
GLYD_INLINE uint64_t equal_bytes(const uint8_t *a, const uint8_t *b) {
  uint64_t equal = 0;
#if defined(__SSE2__)
  for (unsigned i = 0; i < 64; i += 16) {
    const __m128i x = _mm_loadu_si128((const void *)(a + i)), y = _mm_loadu_si128((const void *)(b + i));
    equal |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, y)) << i;
  }
#else
  for (unsigned i = 0; i < 64; i += 8) {
    const uint64_t x = glyd_load64(a + i) ^ glyd_load64(b + i), low = 0x7F7F7F7F7F7F7F7Fu;
    const uint64_t zero = ~(((x & low) + low) | x | low); /* the top bit of each byte that is 0 */
    equal |= ((zero >> 7) * 0x0102040810204080u >> 56) << i;
  }
#endif
  return equal;
}

/* Bit i: bits i … i + 15 are set. */
GLYD_INLINE uint64_t runs_of_16(uint64_t bits) {
  bits &= bits >> 1;
  bits &= bits >> 2;
  bits &= bits >> 4;
  return bits & bits >> 8;
}

#define AHEAD 2048 /* bytes that are fetched ahead: copies start anywhere, and the processor takes a while to notice */

/* How many bytes at a equal those at b, before the end of a and of b. */
GLYD_INLINE size_t count_equal(const uint8_t *a, const uint8_t *a_end, const uint8_t *b, const uint8_t *b_end) {
  const uint8_t *const start = a;
  while (a_end - a >= 64 && b_end - b >= 64) {
    const uint64_t differ = ~equal_bytes(a, b);
    if (differ != 0) return (size_t)(a - start) + glyd_ctz64(differ);
    __builtin_prefetch(a + AHEAD);
    __builtin_prefetch(b + AHEAD);
    a += 64;
    b += 64;
  }
  while (a < a_end && b < b_end && *a == *b) {
    a++;
    b++;
  }
  return (size_t)(a - start);
}

/* What was near lately, by a hash of 16 bytes. */
typedef struct find_tables {
  uint32_t recent[1u << RECENT_BITS]; /* content that no copy covers, or the end of one: places + 1 */
  uint32_t near[2u << NEAR_BITS];     /* the base around the place where it goes on: blocks + 1, modulo 2^32 */
} find_tables;
_Static_assert(sizeof(find_tables) <= GLYD_BASE_FIND_WORKSPACE, "room for the tables");

GLYD_INLINE uint64_t hash16(const uint8_t *p) { return mix(glyd_load64(p), glyd_load64(p + 8)) * 0x9E3779B185EBCA87u; }

/* What is known while content is covered. */
typedef struct finder {
  const uint8_t *in, *end;
  const uint8_t *from;  /* where the last copy ends */
  unsigned in_place;    /* changes in place so far */
  const uint8_t *known; /* content before it was changed in place: it is not looked up */
  const uint8_t *base;
  uint64_t size;               /* of the base */
  uint64_t near_from, near_to; /* part of the base that is in tables->near: */
  uint32_t near_first;         /* what is entered there for near_from, */
  uint32_t near_count;         /* and how many blocks it has */
  map_shape shape;
  uint32_t *map;
  unsigned cpu;
  glyd_base_shifts shifts;
  find_tables *tables;
  const uint8_t *marks_at; /* 64 places, */
  uint64_t marks;          /* and which of them are marks */
  const uint8_t *blocks;   /* headers of members were looked for so far, */
  const uint8_t *member;   /* this is the last, */
  const uint8_t *hinted;   /* and this the last that was looked up: */
  uint64_t hint;           /* its shift */
  int has_hint;
} finder;

typedef struct candidate {
  const uint8_t *at;
  uint64_t place;
  size_t length;
} candidate;

/* All that is equal around two places that start with some equal bytes, as far as
 * it matters for a choice. */
GLYD_INLINE candidate extend(const finder *f, const uint8_t *at, uint64_t place) {
  const uint8_t *const b = f->base + place;
  size_t back = 0;
  const size_t free_back = at > f->from ? (size_t)(at - f->from) : 0; /* the copy before has the rest */
  const size_t most_back = free_back < place ? free_back : (size_t)place;
  while (back < most_back && at[-1 - (ptrdiff_t)back] == b[-1 - (ptrdiff_t)back]) back++;
  const uint8_t *const end = f->end - at > EXTENDED ? at + EXTENDED : f->end;
  return (candidate){at - back, place - back, back + count_equal(at, end, b, f->base + f->size)};
}

/* The best of a bucket for the content at at, a mark; length 0: none. */
static candidate look_up(const finder *f, const uint8_t *at) {
  const uint64_t hash = hash_key(at), expected = (uint64_t)(at - f->in) + f->shifts.slot[0], v = glyd_load64(at);
  const uint32_t *const bucket = bucket_of(f->map, &f->shape, hash);
  const uint32_t number_mask = (uint32_t)(((uint64_t)1 << f->shape.number_bits) - 1), tag = tag_of(&f->shape, hash);
  candidate best = {at, 0, 0};
  uint64_t best_far = 0;
  for (unsigned k = 0; k < WAYS && bucket[k] != 0; k++) {
    if ((bucket[k] ^ tag) & ~number_mask) continue;
    const uint64_t grain = (uint64_t)((bucket[k] & number_mask) - 1) << f->shape.grain_log;
    for (uint64_t place = grain; place < grain + ((uint64_t)1 << f->shape.grain_log) && place + LOOK <= f->size;
         place++) {
      if (glyd_load64(f->base + place) != v) continue;
      const candidate c = extend(f, at, place);
      const uint64_t far = place > expected ? place - expected : expected - place;
      if (c.length > best.length || (c.length == best.length && far < best_far)) {
        best = c;
        best_far = far;
      }
    }
  }
  return best;
}

/* Find the first header of the member that the content at at belongs to. */
GLYD_INLINE void find_member(finder *f, const uint8_t *at) {
  while (f->blocks <= at && f->end - f->blocks >= (ptrdiff_t)GLYD_BASE_MEMBER_HEADERS) {
    const uint8_t *const block = f->blocks;
    f->blocks += GLYD_BASE_MEMBER_BLOCK;
    if (!glyd_base_is_header(block)) continue;
    f->member = block;
    const size_t left = (size_t)(f->end - f->blocks);
    if (!glyd_base_is_member(block)) {
      f->blocks = block + GLYD_BASE_MEMBER_HEADERS;
    } else {
      const uint64_t size = glyd_base_member_blocks(block);
      f->blocks += size < left ? size : left;
    }
  }
}

/* Look up the member in the base by its name. */
static void look_up_member(finder *f) {
  glyd_base_member member, other;
  f->hinted = f->member;
  const int header = glyd_base_member_read(f->member, &member);
  if (header < 0) return;
  f->has_hint = 0;
  const uint32_t *const bucket = bucket_of(f->map, &f->shape, member.hash);
  const uint32_t number_mask = (uint32_t)(((uint64_t)1 << f->shape.number_bits) - 1);
  const uint32_t tag = tag_of(&f->shape, member.hash);
  for (unsigned k = 0; k < WAYS && bucket[k] != 0 && !f->has_hint; k++) {
    if ((bucket[k] ^ tag) & ~number_mask) continue;
    const uint64_t place = (uint64_t)((bucket[k] & number_mask) - 1) << f->shape.grain_log;
    if (place > f->size || f->size - place < GLYD_BASE_MEMBER_HEADERS) continue;
    if (!glyd_base_is_header(f->base + place)) continue;
    const int header_there = glyd_base_member_read(f->base + place, &other);
    if (header_there < 0 || member.size != other.size || memcmp(member.path, other.path, member.size) != 0) continue;
    f->hint = place + (uint64_t)header_there - (uint64_t)(f->member + header - f->in);
    f->has_hint = 1;
  }
}

/* What content from at on has in common with the member of its name, unless one
 * of the last shifts is that of the member; length 0: nothing near. */
GLYD_INLINE candidate look_in_member(finder *f, const uint8_t *at) {
  const candidate none = {at, 0, 0};
  find_member(f, at);
  if (f->member != f->hinted) look_up_member(f);
  const uint64_t *const slot = f->shifts.slot;
  if (!f->has_hint || f->hint == slot[0] || f->hint == slot[1] || f->hint == slot[2]) return none;
  const uint64_t place = (uint64_t)(at - f->in) + f->hint;
  if (f->end - at < 64 || place >= f->size || f->size - place < 64) return none;
  const uint64_t runs = runs_of_16(equal_bytes(at, f->base + place));
  return runs ? extend(f, at + glyd_ctz64(runs), place + glyd_ctz64(runs)) : none;
}

/* Put blocks of the base into the table of what is near. */
static void learn(finder *f, uint64_t from, uint64_t to) {
  for (uint64_t at = from; at < to && f->size - at >= 16; at += (uint64_t)1 << BLOCK_LOG) {
    uint32_t *const pair = f->tables->near + 2 * (hash16(f->base + at) >> (64 - NEAR_BITS));
    pair[1] = pair[0];
    pair[0] = (uint32_t)(at >> BLOCK_LOG) + 1;
  }
}

/* Learn what is near place and not known yet. */
static void learn_at(finder *f, uint64_t place) {
  const uint64_t mask = ~(((uint64_t)1 << BLOCK_LOG) - 1);
  const uint64_t from = (place < NEIGHBOURS ? 0 : place - NEIGHBOURS) & mask;
  const uint64_t to = f->size - place < NEIGHBOURS ? f->size : (place + NEIGHBOURS) & mask;
  if (from > f->near_to || to < f->near_from) {
    learn(f, from, to);
    f->near_from = from;
    f->near_to = to;
  } else {
    if (from < f->near_from) {
      learn(f, from, f->near_from);
      f->near_from = from;
    }
    if (to > f->near_to) {
      learn(f, f->near_to & mask, to);
      f->near_to = to;
      if (from > f->near_from) f->near_from = from;
    }
  }
  f->near_first = (uint32_t)(f->near_from >> BLOCK_LOG) + 1;
  f->near_count = (uint32_t)((f->near_to - f->near_from + ~mask) >> BLOCK_LOG);
}

/* Know what of the base is near the place where it goes on from content at at. */
GLYD_INLINE void learn_around(finder *f, const uint8_t *at) {
  const uint64_t place = (uint64_t)(at - f->in) + f->shifts.slot[0];
  if (place >= f->size) return;
  const uint64_t least = place < NEIGHBOURS / 2 ? 0 : place - NEIGHBOURS / 2;
  const uint64_t most = f->size - place < NEIGHBOURS / 2 ? f->size : place + NEIGHBOURS / 2;
  if (f->near_from > least || most > f->near_to) learn_at(f, place);
}

/* What of the base may be near for content of this hash, in blocks from near_from on: what was near before is passed
 * over, as it costs a cache miss. Nearly always there is none, of both at once. */
typedef struct near_blocks {
  uint32_t of[2];
} near_blocks;

GLYD_INLINE near_blocks blocks_near(const finder *f, uint64_t hash) {
  const uint32_t *const pair = f->tables->near + 2 * (hash >> (64 - NEAR_BITS));
  return (near_blocks){{pair[0] - f->near_first, pair[1] - f->near_first}};
}

GLYD_INLINE int has_near(const finder *f, near_blocks near) {
  return (near.of[0] < f->near_count) | (near.of[1] < f->near_count);
}

/* The best of them for the content at at; length 0: none. */
static candidate look_up_near(const finder *f, const uint8_t *at, near_blocks near) {
  candidate best = {at, 0, 0};
  for (unsigned k = 0; k < 2; k++) {
    if (near.of[k] >= f->near_count) continue;
    const uint64_t place = f->near_from + ((uint64_t)near.of[k] << BLOCK_LOG);
    if (f->size - place < 16 || glyd_load64(f->base + place) != glyd_load64(at)) continue;
    const candidate c = extend(f, at, place);
    if (c.length > best.length) best = c;
  }
  return best;
}

/* Where content at at would be in the base by a shift; size: nowhere, or too near the end. */
GLYD_INLINE uint64_t place_by(const finder *f, unsigned slot, const uint8_t *at, unsigned n) {
  const uint64_t place = (uint64_t)(at - f->in) + f->shifts.slot[slot];
  return place < f->size && f->size - place >= n ? place : f->size;
}

/* What it costs, about, to say the n bytes of content at at by the base at place
 * on: bytes that differ, and two for each run of them. */
static size_t cost_of(const finder *f, const uint8_t *at, uint64_t place, size_t n) {
  if (place >= f->size) return n;
  const size_t there = n < f->size - place ? n : (size_t)(f->size - place);
  const uint8_t *const b = f->base + place;
  size_t cost = n - there, i = 0;
  uint64_t before = 1; /* equal */
  for (; there - i >= 64 && cost < FAR_COST; i += 64) {
    const uint64_t equal = equal_bytes(at + i, b + i), runs = ~equal & (equal << 1 | before);
    cost += (size_t)__builtin_popcountll(~equal) + 2 * (size_t)__builtin_popcountll(runs);
    before = equal >> 63;
  }
  unsigned differed = !before;
  for (; i < there && cost < FAR_COST; i++) {
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
    const uint32_t before = f->tables->recent[hash16(at) >> (64 - RECENT_BITS)];
    if (before == 0) continue;
    const uint8_t *const old = f->in + before - 1;
    if (old >= at || at - old > RECENT_FAR) continue;
    const uint8_t *const enough = f->end - at > (ptrdiff_t)c.length ? at + c.length : f->end; /* runs are long */
    if (count_equal(at, enough, old, f->end) + i + 16 >= c.length) return 0;
  }
  return 1;
}

/* The first marked place from at on and before stop, or stop. Marks are made for 64 places at once, those around at. */
GLYD_INLINE const uint8_t *next_mark(finder *f, const uint8_t *at, const uint8_t *stop) {
  while (at < stop) {
    const size_t within = (size_t)(at - f->in) % GLYD_MARKS_AT_ONCE;
    const uint8_t *const start = at - within;
    if (f->marks_at != start) {
      f->marks_at = start;
      f->marks =
          marks_before(f->cpu, f->in, (uint64_t)(start - f->in), (uint64_t)(f->end - f->in), f->shape.spacing_log);
      for (uint64_t marks = f->marks >> within << within; marks; marks &= marks - 1)
        __builtin_prefetch(bucket_of(f->map, &f->shape, hash_key(start + glyd_ctz64(marks))));
    }
    const uint64_t left = f->marks >> within;
    if (left != 0) {
      const uint8_t *const mark = at + glyd_ctz64(left);
      return mark < stop ? mark : stop;
    }
    at = start + GLYD_MARKS_AT_ONCE;
  }
  return stop;
}

/* Where a copy has just ended: the best of the places that have the bytes around
 * this one, at and those before it. Where lines are alike, content goes on nearly
 * as the base does at the old place as well, and only these bytes tell. */
static candidate look_around(finder *f, const uint8_t *at) {
  candidate best = {at, 0, 0};
  learn_around(f, at);
  const size_t n = (size_t)(at - f->in) < AROUND ? (size_t)(at - f->in) + 1 : AROUND;
  const uint8_t *p = at - (n - 1), *mark = next_mark(f, p, at + 1);
  for (; p <= at; p++) {
    const near_blocks near = blocks_near(f, hash16(p));
    if (!has_near(f, near) && p != mark) continue;
    candidate c = look_up_near(f, p, near);
    if (p == mark) {
      const candidate far = look_up(f, p);
      if (far.length > c.length) c = far;
      mark = next_mark(f, p + 1, at + 1);
    }
    if (c.length == 0 || c.at + c.length <= at) continue;
    const size_t skip = (size_t)(at > c.at ? at - c.at : 0); /* the copy before has them */
    c = (candidate){at, c.place + skip, c.length - skip};
    if (c.length >= best.length) best = c;
  }
  return best;
}

GLYD_INLINE void note_recent(finder *f, const uint8_t *at, uint64_t hash) {
  f->tables->recent[hash >> (64 - RECENT_BITS)] = (uint32_t)(at - f->in) + 1;
}

/* A copy at at by one of the last shifts; length 0: none. */
GLYD_INLINE candidate look_near(const finder *f, const uint8_t *at) {
  for (unsigned slot = 0; slot < GLYD_BASE_SHIFTS; slot++) {
    const uint64_t place = place_by(f, slot, at, 8);
    if (place == f->size || glyd_load64(f->base + place) != glyd_load64(at)) continue;
    const candidate c = extend(f, at, place);
    if (c.length >= NEAR_MIN) return c;
  }
  return (candidate){at, 0, 0};
}

/* The first of the places from at on, NEAR_AHEAD at most, where one of the last
 * shifts gives a copy; NEAR_AHEAD: there is none. */
#define NEAR_AHEAD 48u /* more bytes than a near copy takes */
_Static_assert(NEAR_AHEAD + NEAR_MIN == 64, "what equal_bytes looks at");

GLYD_INLINE unsigned find_near(const finder *f, const uint8_t *at) {
  unsigned first = NEAR_AHEAD;
  for (unsigned slot = 0; slot < GLYD_BASE_SHIFTS; slot++) {
    if (slot > 0 && f->shifts.slot[slot] == f->shifts.slot[slot - 1]) continue;
    const uint64_t place = (uint64_t)(at - f->in) + f->shifts.slot[slot];
    if (place >= f->size || f->size - place < 64) {
      if (place < f->size || 0 - place < 64) /* the base ends or starts within these places */
        for (unsigned i = 0; i < first; i++)
          if (look_near(f, at + i).length > 0) first = i;
      continue;
    }
    const uint64_t runs = runs_of_16(equal_bytes(at, f->base + place));
    if (runs && glyd_ctz64(runs) < first) first = glyd_ctz64(runs);
  }
  return first;
}

/* Whether content from at on was changed in place: after a few bytes that differ
 * it is as the base for long. Sets where that is. Content whose rows are alike
 * would look so at a wrong place as well, hence not every time. */
GLYD_INLINE int is_in_place(finder *f, const uint8_t *at) {
  const uint64_t place = place_by(f, 0, at, CHANGED + UNCHANGED);
  if (place == f->size || f->end - at < (ptrdiff_t)(CHANGED + UNCHANGED) || ++f->in_place % TRUSTED == 0) return 0;
  const uint8_t *const b = f->base + place;
  unsigned changed = 0;
  for (unsigned i = 0; i < CHANGED; i += 64) {
    const uint64_t differ = ~equal_bytes(at + i, b + i);
    if (differ != 0) changed = i + 64 - (unsigned)__builtin_clzll(differ);
  }
  if (cost_of(f, at, place, CHANGED) >= FAR_COST) return 0;
  const uint8_t *const on = at + changed;
  if (count_equal(on, on + UNCHANGED, b + changed, b + changed + UNCHANGED) < UNCHANGED) return 0;
  f->known = on;
  return 1;
}

/* The next copy for content from at on; length 0: there is none before *next. */
GLYD_INLINE candidate choose(finder *f, const uint8_t *at, const uint8_t *last, int after_copy, const uint8_t **next) {
  if (!after_copy || !is_in_place(f, at)) {
    const candidate c = look_in_member(f, at);
    if (is_worth(f, c)) return c;
    if (after_copy) {
      const candidate around = look_around(f, at);
      if (is_worth(f, around)) return around;
    }
  }
  const unsigned ahead = f->end - at >= 64 ? NEAR_AHEAD : 1; /* places looked at */
  const unsigned near = ahead > 1 ? find_near(f, at) : look_near(f, at).length == 0;
  const uint8_t *const stop =
      at + near <= last ? at + near : last + 1; /* a near copy starts, or it goes on from here */
  const uint8_t *p = at > f->known ? at : f->known;
  if (p < stop) learn_around(f, p);
  const uint8_t *mark = next_mark(f, p, stop);
  while (p < stop) {
    const uint64_t hash = hash16(p);
    const near_blocks blocks = blocks_near(f, hash);
    if (has_near(f, blocks)) {
      const candidate c = look_up_near(f, p, blocks);
      if (is_worth(f, c)) return c;
    }
    note_recent(f, p, hash);
    /* content that has nothing in common with the base for long may go on like that */
    const size_t gap = (size_t)(p - f->from) / SPARSER;
    p += 1 + (gap < SPARSEST ? gap : SPARSEST);
    for (const uint8_t *const to = p < stop ? p : stop; mark < to; mark = next_mark(f, mark + 1, stop)) {
      const candidate c = look_up(f, mark);
      if (is_worth(f, c)) return c;
    }
  }
  *next = stop;
  if (near < ahead && at + near <= last) return look_near(f, at + near);
  return (candidate){at, 0, 0};
}

size_t glyd_base_map_find(const glyd_base *base, unsigned cpu, void *workspace, const uint8_t *in, size_t len,
                          glyd_base_copy *copies) {
  if (base->size < LOOK || len < LOOK) return 0;
  finder f = {.in = in,
              .end = in + len,
              .from = in,
              .known = in,
              .blocks = in,
              .base = base->data,
              .size = base->size,
              .shape = shape_of(base->size),
              .map = base->map,
              .cpu = cpu,
              .tables = workspace};
  memset(f.tables, 0, sizeof *f.tables);
  const uint8_t *const last = f.end - LOOK;
  size_t n = 0;
  for (const uint8_t *at = in; at <= last;) {
    candidate c = choose(&f, at, last, at == f.from && n > 0, &at);
    if (c.length == 0) continue;
    c.length += count_equal(c.at + c.length, f.end, f.base + c.place + c.length, f.base + f.size);
    copies[n++] = (glyd_base_copy){c.place, (uint32_t)(c.at - f.from), (uint32_t)c.length};
    glyd_base_shifts_use(&f.shifts, c.place - (uint64_t)(c.at - f.in));
    at = f.from = c.at + c.length;
    for (const uint8_t *p = c.length > NOTED ? at - NOTED : c.at; p < at && f.end - p >= 16; p += 4)
      note_recent(&f, p, hash16(p));
  }
  return n;
}
