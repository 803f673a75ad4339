/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "match/match_tree.h"

#include "common/cpu.h"

#define BITS_MIN 10
#define BITS_MAX 22
#define SHORT_BITS_MAX 16
#define SHORT_FAR 16384u /* three bytes from farther off are not worth it */
#define NICE GLYD_MATCH_TREE_NICE
#define HASHED 4 /* bytes that a hash takes */
#define OFFSET_MAX (((size_t)1 << 28) - 8)
#define AHEAD 8u     /* positions for which roots of trees are fetched, after another AHEAD what they stand for */
#define SKIP_ENDS 64 /* of a nice match only so many places at either end go into trees */

static unsigned table_bits(unsigned most, uint64_t len) {
  unsigned bits = BITS_MIN;
  while (bits < most && (uint64_t)1 << bits < len) bits++;
  return bits;
}

uint64_t glyd_match_tree_workspace(uint64_t segment_size) {
  return ((((uint64_t)1 << table_bits(BITS_MAX, segment_size)) +
           ((uint64_t)1 << table_bits(SHORT_BITS_MAX, segment_size))) +
          2 * segment_size) *
         sizeof(uint32_t);
}

void glyd_match_tree_reset(glyd_match_tree *m, unsigned cpu, void *memory, size_t len, unsigned depth) {
  m->cpu = cpu;
  m->bits = table_bits(BITS_MAX, len);
  m->short_bits = table_bits(SHORT_BITS_MAX, len);
  m->depth = depth;
  m->roots = memory;
  m->short_table = m->roots + ((size_t)1 << m->bits);
  m->children = m->short_table + ((size_t)1 << m->short_bits);
  memset(memory, 0, (((size_t)1 << m->bits) + ((size_t)1 << m->short_bits)) * sizeof(uint32_t));
  m->end = len;
}

GLYD_INLINE size_t hash4(uint32_t v, unsigned bits) { return v * 0x9E3779B1u >> (32 - bits); }
GLYD_INLINE size_t hash3(uint32_t v, unsigned bits) { return (v << 8) * 0x9E3779B1u >> (32 - bits); }

/* Equal bytes at a and b, of which known are so; a's end at most. */
GLYD_INLINE size_t count_from(const uint8_t *a, const uint8_t *b, size_t known, const uint8_t *end) {
  return known + glyd_match_count(a + known, b + known, end);
}

/* Make pos, with at least HASHED bytes after it, the root of its tree. Matches
 * longer than those before go to out, room of them at most; returns how many.
 *
 * Bytes are compared up to NICE or the end of the segment, never of a block: what
 * two places of a tree have in common is known from where they stand in it. */
GLYD_INLINE size_t walk(const glyd_match_tree *m, const uint8_t *segment, size_t pos, glyd_tree_match *out,
                        size_t room) {
  const uint8_t *const ip = segment + pos, *const end = segment + m->end;
  const uint8_t *const stop = end - ip > NICE ? ip + NICE : end;
  const uint32_t v = glyd_load32(ip);
  uint32_t *const root = m->roots + hash4(v, m->bits);
  uint32_t *const children = m->children;
  uint32_t *smaller = children + 2 * pos, *larger = smaller + 1;
  uint32_t at = *root;
  *root = (uint32_t)pos + 1;
  size_t n = 0, best = 3, below = 0, above = 0; /* bytes shared with the nearest on either side */
  const size_t lowest = pos > OFFSET_MAX ? pos - OFFSET_MAX : 0;
  if (room != 0) {
    uint32_t *const place = m->short_table + hash3(v, m->short_bits);
    const uint32_t near = *place;
    *place = (uint32_t)pos + 1;
    if (near != 0 && pos - (near - 1) <= SHORT_FAR && ((glyd_load32(segment + near - 1) ^ v) & 0xFFFFFFu) == 0 &&
        glyd_load32(segment + near - 1) != v)
      out[n++] = (glyd_tree_match){3, (uint32_t)(pos - (near - 1))};
  }
  for (unsigned left = m->depth;; left--) {
    if (at == 0 || left == 0 || at - 1 < lowest) {
      *smaller = *larger = 0;
      return n;
    }
    const size_t from = at - 1;
    const uint8_t *const mp = segment + from;
    uint32_t *const pair = children + 2 * from;
    for (unsigned k = 0; k < 2; k++) { /* which of them is next is known after the bytes are here */
      const size_t next = pair[k] - (size_t)(pair[k] != 0);
      __builtin_prefetch(children + 2 * next, 1);
      __builtin_prefetch(segment + next);
    }
    const size_t len = count_from(ip, mp, below < above ? below : above, stop);
    if (len > best) {
      best = len;
      if (room != 0) {
        if (n == room) n--;
        out[n++] = (glyd_tree_match){(uint32_t)len, (uint32_t)(pos - from)};
      }
    }
    if (ip + len == stop) { /* as good as equal: this place takes over its children */
      *smaller = pair[0];
      *larger = pair[1];
      if (room != 0) out[n - 1].length = (uint32_t)count_from(ip, mp, len, end);
      return n;
    }
    if (mp[len] < ip[len]) {
      *smaller = at;
      smaller = pair + 1;
      at = *smaller;
      below = len;
    } else {
      *larger = at;
      larger = pair;
      at = *larger;
      above = len;
    }
  }
}

GLYD_INLINE void find(const glyd_match_tree *m, const uint8_t *segment, size_t start, size_t end,
                      glyd_tree_match *matches, size_t most, uint32_t *at) {
  size_t n = 0, nice = start, covered = start; /* where the last nice match begins and ends */
  for (size_t pos = start; pos < end; pos++) {
    at[pos - start] = (uint32_t)n;
    if (m->end - pos < HASHED) continue;
    if (m->end - pos >= 2 * AHEAD + HASHED) { /* trees are far larger than caches */
      __builtin_prefetch(m->roots + hash4(glyd_load32(segment + pos + 2 * AHEAD), m->bits), 1);
      const uint32_t root = m->roots[hash4(glyd_load32(segment + pos + AHEAD), m->bits)];
      __builtin_prefetch(m->children + 2 * (size_t)(root - (root != 0)), 1);
      __builtin_prefetch(segment + (root - (root != 0)), 1);
    }
    if (pos < covered) {
      if (pos - nice < SKIP_ENDS || covered - pos <= SKIP_ENDS) walk(m, segment, pos, NULL, 0);
      continue;
    }
    size_t room = most - n - (end - pos) + 1; /* one is left for each position to come */
    if (room > GLYD_MATCH_TREE_MOST) room = GLYD_MATCH_TREE_MOST;
    const size_t before = n, left = end - pos;
    n += walk(m, segment, pos, matches + n, room);
    if (n == before) continue;
    if (matches[n - 1].length > left) { /* of those that reach over the end the nearest, cut */
      while (n - before > 1 && matches[n - 2].length >= left) n--;
      matches[n - 1].length = (uint32_t)left;
    }
    if (matches[n - 1].length >= NICE) {
      nice = pos;
      covered = pos + matches[n - 1].length;
    }
  }
  at[end - start] = (uint32_t)n;
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2,lzcnt"))) static void find_bmi2(const glyd_match_tree *m, const uint8_t *segment,
                                                                size_t start, size_t end, glyd_tree_match *matches,
                                                                size_t most, uint32_t *at) {
  find(m, segment, start, end, matches, most, at);
}
#endif

void glyd_match_tree_find(const glyd_match_tree *m, const uint8_t *segment, size_t start, size_t end,
                          glyd_tree_match *matches, size_t most, uint32_t *at) {
#if defined(__x86_64__)
  if (m->cpu & GLYD_CPU_AVX2) {
    find_bmi2(m, segment, start, end, matches, most, at);
    return;
  }
#endif
  find(m, segment, start, end, matches, most, at);
}

void glyd_match_tree_prime(const glyd_match_tree *m, const uint8_t *segment, size_t to) {
  for (size_t pos = 0; pos + HASHED <= to; pos++) walk(m, segment, pos, NULL, 0);
}
