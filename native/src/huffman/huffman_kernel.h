/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The loops over Huffman streams, compiled once per CPU variant.
 *
 * A stream's state is a pointer and a word: the word is the 8 bytes at the
 * pointer, bit 63 replaced by a marker, shifted right by what has been used of
 * them. Zeros above the marker count the bits used, so nothing is counted per
 * symbol. 63 - 7 bits are good after a refill: five codes of 11.
 *
 * Table entries are symbol << 8 | length; shifting by the whole entry is
 * shifting by its low six bits, the length.
 */
#ifndef GLYD_HUFFMAN_KERNEL_H
#define GLYD_HUFFMAN_KERNEL_H

#include "bitstream/bit_reader.h"
#include "huffman/huffman_common.h"

#define GLYD_HUFFMAN_MARKER ((uint64_t)1 << 63)
#define GLYD_HUFFMAN_STEPS 5   /* symbols of a stream a refill */
#define GLYD_HUFFMAN_ADVANCE 7 /* most bytes a pointer moves in a refill */
_Static_assert(GLYD_HUFFMAN_STEPS *GLYD_HUFFMAN_BITS + 7 <= 63, "symbols between refills");
_Static_assert((GLYD_HUFFMAN_STEPS * GLYD_HUFFMAN_BITS + 7) / 8 <= GLYD_HUFFMAN_ADVANCE, "advance of a refill");

/* The order is known to the assembly in huffman_decode_x86.c. */
typedef struct glyd_huffman_streams {
  const uint8_t *p[GLYD_HUFFMAN_STREAMS];
  uint64_t word[GLYD_HUFFMAN_STREAMS];
  uint8_t *out;
  const uint16_t *entry;
  uint64_t mask; /* (1 << bits) - 1 */
  uint64_t bits;
  uint8_t *stop; /* a round starts while out is below */
  uint64_t saved;
} glyd_huffman_streams;

GLYD_INLINE unsigned glyd_huffman_used(uint64_t word) { return (unsigned)__builtin_clzll(word); }

/* Rounds of GLYD_HUFFMAN_STEPS symbols of each stream until out reaches stop.
 * All pointers must stay 8 bytes inside what is readable. */
typedef void (*glyd_huffman_loop)(glyd_huffman_streams *s);

/* One or two streams: bound by the latency of the table. */
GLYD_INLINE void glyd_huffman_rounds_few(glyd_huffman_streams *s, const int two) {
  uint64_t w0 = s->word[0], w1 = two ? s->word[1] : 0;
  const uint8_t *p0 = s->p[0], *p1 = two ? s->p[1] : NULL;
  const uint16_t *const entry = s->entry;
  const uint64_t mask = s->mask;
  uint8_t *out = s->out, *const stop = s->stop;
  do {
    for (unsigned k = 0; k < GLYD_HUFFMAN_STEPS; k++) {
      uint64_t e = entry[w0 & mask];
      w0 >>= e & 63;
      *out++ = (uint8_t)(e >> 8);
      if (two) {
        e = entry[w1 & mask];
        w1 >>= e & 63;
        *out++ = (uint8_t)(e >> 8);
      }
    }
    unsigned used = glyd_huffman_used(w0);
    p0 += used >> 3;
    w0 = (glyd_load64(p0) | GLYD_HUFFMAN_MARKER) >> (used & 7);
    if (two) {
      used = glyd_huffman_used(w1);
      p1 += used >> 3;
      w1 = (glyd_load64(p1) | GLYD_HUFFMAN_MARKER) >> (used & 7);
    }
  } while (out < stop);
  s->word[0] = w0;
  s->p[0] = p0;
  if (two) {
    s->word[1] = w1;
    s->p[1] = p1;
  }
  s->out = out;
}

/* Loops over eight streams, whose words are the variables w0 to w7. */
#define GLYD_EIGHT(what) \
  do {                   \
    what(0);             \
    what(1);             \
    what(2);             \
    what(3);             \
    what(4);             \
    what(5);             \
    what(6);             \
    what(7);             \
  } while (0)
#define GLYD_REFILL(j)                                           \
  do {                                                           \
    unsigned used = glyd_huffman_used(w##j);                     \
    const uint8_t *p = s->p[j] + (used >> 3);                    \
    s->p[j] = p;                                                 \
    w##j = (glyd_load64(p) | GLYD_HUFFMAN_MARKER) >> (used & 7); \
  } while (0)
#define GLYD_KEEP(j) s->word[j] = w##j

/* Eight streams: bound by instructions. */
GLYD_INLINE void glyd_huffman_rounds_eight(glyd_huffman_streams *s) {
  uint64_t w0 = s->word[0], w1 = s->word[1], w2 = s->word[2], w3 = s->word[3];
  uint64_t w4 = s->word[4], w5 = s->word[5], w6 = s->word[6], w7 = s->word[7];
  const uint16_t *const entry = s->entry;
  const uint64_t mask = s->mask;
  uint8_t *out = s->out, *const stop = s->stop;
  do {
/* Eight symbols become one store: byte stores would be merged by the compiler
 * into slower vector code. */
#define GLYD_STEP(j)                 \
  do {                               \
    uint64_t e = entry[w##j & mask]; \
    w##j >>= e & 63;                 \
    v = v >> 8 | (e & 0xFF00) << 48; \
  } while (0)
    for (unsigned k = 0; k < GLYD_HUFFMAN_STEPS; k++) {
      uint64_t v = 0;
      GLYD_EIGHT(GLYD_STEP);
      glyd_store64(out, v);
      out += GLYD_HUFFMAN_STREAMS;
    }
#undef GLYD_STEP
    GLYD_EIGHT(GLYD_REFILL);
  } while (out < stop);
  GLYD_EIGHT(GLYD_KEEP);
  s->out = out;
}

/* Streams of a plane with contexts: each has a part of the plane to itself. The
 * context of a byte is the one before it in its stream, or given: it is in the
 * byte's own place then, where 0 may mean that it is the byte before. The order is known to the assembly in huffman_decode_x86.c. */
typedef struct glyd_context_streams {
  const uint8_t *p[GLYD_HUFFMAN_STREAMS];
  uint64_t word[GLYD_HUFFMAN_STREAMS];
  uint8_t *out; /* next byte of the first stream; those of the others are `chunk` apart */
  size_t chunk;
  uint8_t *stop; /* a round starts while out is below */
  uint64_t saved;
  const uint16_t *entry;
  const uint32_t *place; /* of the table of a context: first entry << 8 | bits of its index */
} glyd_context_streams;

/* The context of a byte whose place holds this. */
GLYD_INLINE unsigned glyd_huffman_context(int how, uint8_t given, uint8_t before) {
  if (how == GLYD_CONTEXTS_ARE_GIVEN) return given;
  return how == GLYD_CONTEXTS_ARE_MIXED && given != 0 ? GLYD_CONTEXTS_SOME + given : before;
}

/* Rounds of GLYD_HUFFMAN_STEPS symbols of each stream until out reaches stop. */
GLYD_INLINE void glyd_huffman_rounds_contexts(glyd_context_streams *s, const int how) {
  uint64_t w0 = s->word[0], w1 = s->word[1], w2 = s->word[2], w3 = s->word[3];
  uint64_t w4 = s->word[4], w5 = s->word[5], w6 = s->word[6], w7 = s->word[7];
  const uint16_t *const entry = s->entry;
  const uint32_t *const place = s->place;
  const size_t chunk = s->chunk;
  uint8_t *out = s->out, *const stop = s->stop;
  do {
    for (unsigned k = 0; k < GLYD_HUFFMAN_STEPS; k++) {
      uint8_t *o = out++;
#define GLYD_STEP(j)                                                               \
  do {                                                                             \
    const uint32_t t = place[glyd_huffman_context(how, o[0], o[-1])];              \
    const uint64_t e = entry[(t >> 8) + (w##j & (((uint64_t)1 << (t & 63)) - 1))]; \
    w##j >>= e & 63;                                                               \
    *o = (uint8_t)(e >> 8);                                                        \
    o += chunk;                                                                    \
  } while (0)
      GLYD_EIGHT(GLYD_STEP);
#undef GLYD_STEP
    }
    GLYD_EIGHT(GLYD_REFILL);
  } while (out < stop);
  GLYD_EIGHT(GLYD_KEEP);
  s->out = out;
}

#undef GLYD_KEEP
#undef GLYD_REFILL
#undef GLYD_EIGHT

#endif
