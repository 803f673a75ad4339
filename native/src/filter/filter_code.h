/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Addresses in machine code, relative (as it has them) or absolute (as they
 * repeat): the walks are the same in both directions (spec.md), and compiled
 * into the encoder and the decoder.
 */
#ifndef GLYD_FILTER_CODE_H
#define GLYD_FILTER_CODE_H

#include "common/mem.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

GLYD_INLINE uint32_t glyd_filter_load_be(const uint8_t *p) { return __builtin_bswap32(glyd_load32(p)); }
GLYD_INLINE void glyd_filter_store_be(uint8_t *p, uint32_t v) { glyd_store32(p, __builtin_bswap32(v)); }

/* Bytes before the address of the x86 instruction at p, which has 3 bytes at least; 0: none is known here. */
GLYD_INLINE unsigned glyd_filter_x86_opcode(const uint8_t *p) {
  if ((p[0] & 0xFE) == 0xE8) return 1;                                                            /* call, jmp */
  if (p[0] == 0x0F && (p[1] & 0xF0) == 0x80) return 2;                                            /* jcc */
  if ((p[0] & 0xFB) == 0x48 && (p[1] == 0x8B || p[1] == 0x8D) && (p[2] & 0xC7) == 0x05) return 3; /* mov, lea */
  return 0;
}

/* The address of an instruction whose next one is at `next` of n bytes. Relative
 * ones that lead into the n bytes become absolute, the absolute numbers that this
 * frees become those that these took: every 32 bits have a partner. No branches:
 * which it is cannot be predicted. */
GLYD_INLINE void glyd_filter_x86_turn(uint8_t *p, uint32_t next, uint32_t n, int to_absolute) {
  if (to_absolute) {
    const uint32_t v = glyd_load32(p);
    uint32_t a = v + next < n ? v + next : v;
    a = v - (n - next) < next ? v - n : a;
    glyd_filter_store_be(p, a);
  } else {
    const uint32_t a = glyd_filter_load_be(p);
    uint32_t v = a < n ? a - next : a;
    v = a + next < next ? a + n : v;
    glyd_store32(p, v);
  }
}

#define GLYD_FILTER_X86_STEP 64 /* places that are looked at together */
#define GLYD_FILTER_X86_CHUNK ((size_t)4096)
#define GLYD_FILTER_X86_AT_ONCE 4 /* places written to a list at once, wanted or not */

/* Where instructions may begin in a chunk: place << 2 | bytes of the opcode. */
typedef struct glyd_filter_x86_list {
  uint32_t place[GLYD_FILTER_X86_CHUNK + GLYD_FILTER_X86_AT_ONCE];
} glyd_filter_x86_list;

/* Bit i: an instruction may begin at p + i; its opcode has 2 bytes, or 3. */
typedef struct glyd_filter_x86_places {
  uint64_t all, two, three;
} glyd_filter_x86_places;

/* 66 bytes are readable. */
GLYD_INLINE glyd_filter_x86_places glyd_filter_x86_look(const uint8_t *p) {
  glyd_filter_x86_places m = {0, 0, 0};
#ifdef __SSE2__
  for (unsigned i = 0; i < GLYD_FILTER_X86_STEP; i += 16) {
    const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(p + i + 1));
    const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(p + i + 2));
#define EQUAL(v, bits, value) \
  _mm_cmpeq_epi8(_mm_and_si128(v, _mm_set1_epi8((char)(bits))), _mm_set1_epi8((char)(value)))
#define MASK(v) ((uint64_t)(uint32_t)_mm_movemask_epi8(v) << i)
    const __m128i moves = _mm_or_si128(EQUAL(b, 0xFF, 0x8B), EQUAL(b, 0xFF, 0x8D));
    m.all |= MASK(EQUAL(a, 0xFE, 0xE8));
    m.two |= MASK(_mm_and_si128(EQUAL(a, 0xFF, 0x0F), EQUAL(b, 0xF0, 0x80)));
    m.three |= MASK(_mm_and_si128(EQUAL(a, 0xFB, 0x48), _mm_and_si128(moves, EQUAL(c, 0xC7, 0x05))));
#undef MASK
#undef EQUAL
  }
#else
  for (unsigned i = 0; i < GLYD_FILTER_X86_STEP; i++) {
    const unsigned opcode = glyd_filter_x86_opcode(p + i);
    m.all |= (uint64_t)(opcode == 1) << i;
    m.two |= (uint64_t)(opcode == 2) << i;
    m.three |= (uint64_t)(opcode == 3) << i;
  }
#endif
  m.all |= m.two | m.three;
  return m;
}

/* Append the places of m, which start at `at` of the chunk. Most steps have no
 * more than AT_ONCE, so that how many there are is seldom a branch. */
GLYD_INLINE size_t glyd_filter_x86_append(glyd_filter_x86_places m, uint32_t at, uint32_t *list, size_t n) {
  uint32_t *out = list + n;
  for (uint64_t left = m.all;;) {
    for (unsigned i = 0; i < GLYD_FILTER_X86_AT_ONCE; i++) {
      const unsigned k = glyd_ctz64(left | (uint64_t)1 << 63);
      out[i] = (at + k) << 2 | (1 + (unsigned)(m.two >> k & 1) + 2 * (unsigned)(m.three >> k & 1));
      left &= left - 1;
    }
    if (GLYD_LIKELY(left == 0)) return n + (size_t)__builtin_popcountll(m.all);
    out += GLYD_FILTER_X86_AT_ONCE;
  }
}

/* The places in `steps` steps from p on; 2 bytes more are readable. Returns how many. */
typedef size_t (*glyd_filter_x86_find)(const uint8_t *p, size_t steps, glyd_filter_x86_list *list);

GLYD_INLINE size_t glyd_filter_x86_find_plain(const uint8_t *p, size_t steps, glyd_filter_x86_list *list) {
  size_t n = 0;
  for (uint32_t at = 0; at < steps * GLYD_FILTER_X86_STEP; at += GLYD_FILTER_X86_STEP)
    n = glyd_filter_x86_append(glyd_filter_x86_look(p + at), at, list->place, n);
  return n;
}

/* A chunk's places are found before any of its addresses turn: those that turn
 * are looked at as opcodes in neither direction. */
GLYD_INLINE void glyd_filter_x86_walk(uint8_t *data, size_t n, int to_absolute, glyd_filter_x86_find find) {
  size_t at = 0, from = 0; /* no instruction begins before from: there are addresses */
  glyd_filter_x86_list list;
  while (n - at >= GLYD_FILTER_X86_STEP + 8) {
    size_t size = n - at - 8;
    size = size < GLYD_FILTER_X86_CHUNK ? size & ~(size_t)(GLYD_FILTER_X86_STEP - 1) : GLYD_FILTER_X86_CHUNK;
    const size_t found = find(data + at, size / GLYD_FILTER_X86_STEP, &list);
    for (size_t i = 0; i < found; i++) {
      const size_t place = at + (list.place[i] >> 2);
      if (GLYD_UNLIKELY(place < from)) continue;
      from = place + (list.place[i] & 3) + 4;
      glyd_filter_x86_turn(data + from - 4, (uint32_t)from, (uint32_t)n, to_absolute);
    }
    at += size;
  }
  for (size_t i = at > from ? at : from; i + 5 <= n; i++) {
    const unsigned opcode = glyd_filter_x86_opcode(data + i);
    if (opcode == 0 || i + opcode + 4 > n) continue;
    glyd_filter_x86_turn(data + i + opcode, (uint32_t)(i + opcode + 4), (uint32_t)n, to_absolute);
    i += opcode + 3;
  }
}

/* ARM64: words of 4 bytes from the start. bl has 26 bits, in words; adrp 21, in
 * pages: their place is added, or taken away. */
GLYD_INLINE void glyd_filter_arm64_walk(uint8_t *data, size_t n, int to_absolute) {
  for (size_t at = 0; n - at >= 4; at += 4) {
    uint32_t w = glyd_load32(data + at);
    if ((w & 0xFC000000u) == 0x94000000u) {
      const uint32_t place = (uint32_t)(at >> 2);
      w = 0x94000000u | ((to_absolute ? w + place : w - place) & 0x03FFFFFFu);
      glyd_store32(data + at, w);
    } else if ((w & 0x9F000000u) == 0x90000000u) {
      const uint32_t page = (uint32_t)(at >> 12);
      uint32_t v = (w >> 29 & 3) | (w >> 3 & 0x1FFFFCu);
      v = to_absolute ? v + page : v - page;
      w = (w & 0x9F00001Fu) | (v & 3) << 29 | (v & 0x1FFFFCu) << 3;
      glyd_store32(data + at, w);
    }
  }
}

#endif
