/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A payload has no headers and no tables of its own, so that small objects cost
 * no set-up. Four strings of bits are read beside each other, from both ends of
 * two halves, so that none waits for another; what they took must be the payload.
 */
#include "object/object_decode.h"

#include "block/block_decode.h"
#include "common/cpu.h"

glyd_status glyd_object_decode_header(const uint8_t *in, size_t len, glyd_object_info *info, uint64_t *expected) {
  *info = (glyd_object_info){.form = 0};
  uint8_t magic[2];
  glyd_store16(magic, GLYD_OBJECT_MAGIC);
  if (memcmp(in, magic, len < 2 ? len : 2) != 0) return GLYD_E_MAGIC;
  *expected = 8;
  if (len < 8) return GLYD_E_TRUNCATED;
  const unsigned flags = in[2];
  const int check = flags & 3;
  info->form = flags >> 2 & 3;
  if (flags >> 4 != 0 || check == 3 || info->form == 3) return GLYD_E_FEATURE;
  info->check_size = 2 * check;
  info->dictionary_id = glyd_load32(in + 3);
  const uint8_t *const end = in + len;
  uint64_t size, payload;
  const uint8_t *p = glyd_get_varint(in + 7, end, &size);
  *expected = len + 1;
  if (!p) return size == 1 && len < 11 ? GLYD_E_TRUNCATED : GLYD_E_HEADER;
  if (size > (info->form == GLYD_OBJECT_FORM_COMPACT ? GLYD_OBJECT_COMPACT_MAX : GLYD_OBJECT_MAX)) return GLYD_E_HEADER;
  payload = size;
  if (info->form != GLYD_OBJECT_FORM_RAW) {
    const uint8_t *const from = p;
    p = glyd_get_varint(p, end, &payload);
    if (!p) return payload == 1 && end - from < 4 ? GLYD_E_TRUNCATED : GLYD_E_HEADER;
    if (payload == 0 || payload > size) return GLYD_E_HEADER;
  }
  info->content_size = (uint32_t)size;
  info->payload_size = (uint32_t)payload;
  info->header_size = (uint32_t)(p - in) + (uint32_t)info->check_size;
  *expected = (uint64_t)info->header_size + payload;
  if (len < *expected) return GLYD_E_TRUNCATED;
  if (info->check_size == 2) info->check = glyd_load16(p);
  if (info->check_size == 4) info->check = glyd_load32(p);
  return GLYD_OK;
}

#define COPY 32 /* bytes */
typedef uint8_t copied __attribute__((vector_size(COPY), aligned(1), may_alias));
GLYD_INLINE void copy(uint8_t *to, const uint8_t *from) { *(copied *)to = *(const copied *)from; }

/* The next bits of a string that goes forwards, at least 57; past the payload,
 * whose last 8 bytes start at in + last, whatever they are. There are 8 readable
 * bytes before it. */
GLYD_INLINE uint64_t next_bits(const uint8_t *in, ptrdiff_t last, size_t pos) {
  const ptrdiff_t at = (ptrdiff_t)(pos >> 3);
  if (GLYD_LIKELY(at <= last)) return glyd_load64(in + at) >> (pos & 7);
  return glyd_load64(in + last) >> ((pos - 8 * (size_t)last) & 63);
}

GLYD_INLINE uint64_t low_bits(uint64_t v, uint64_t n) { return v & (((uint64_t)1 << (n & 63)) - 1); }

/* The next bits of a string that goes backwards from end, at least 57, first
 * ones on top; readable bytes before the payload stand for what is not there. */
GLYD_INLINE uint64_t next_literal_bits(const uint8_t *end, size_t pos) {
  return glyd_load64(end - (pos >> 3) - 8) << (pos & 7);
}

/* What stays the same while half of the literals is decoded. */
typedef struct literal_source {
  const uint32_t *tables;
  const uint8_t *context;
  const uint8_t *end; /* of its bits */
  size_t most;        /* bits there are */
  uint8_t *stop;      /* bytes before it are written */
} literal_source;

/* What changes; in registers, as nothing that is called takes it. */
typedef struct literal_state {
  uint8_t *op;
  size_t pos;    /* bits taken */
  uint32_t base; /* start of the table of the next one */
} literal_state;

/* One literal, with the bits of an escape. */
GLYD_INLINE literal_state decode_literal(const literal_source *r, literal_state s) {
  const uint64_t word = next_literal_bits(r->end, s.pos);
  const uint32_t e = r->tables[s.base + (word >> (64 - GLYD_OBJECT_LITERAL_BITS))], length = e >> 24 & 15;
  uint8_t literal = (uint8_t)(e >> 8);
  s.pos += length;
  if (GLYD_UNLIKELY(e & GLYD_OBJECT_ENTRY_ESCAPE)) {
    literal = (uint8_t)(word << length >> 56);
    s.pos += 8;
  }
  *s.op++ = literal;
  s.base = (uint32_t)r->context[literal] << GLYD_OBJECT_LITERAL_BITS;
  return s;
}

/* Decode literals by n (at most 5) entries, of which each may have two. */
GLYD_INLINE literal_state decode_entries(const literal_source *r, literal_state s, unsigned n) {
  uint64_t word = next_literal_bits(r->end, s.pos);
  uint8_t *op = s.op;
  uint32_t base = s.base, escape = 0;
  size_t used = 0;
#pragma GCC unroll 5
  for (unsigned i = 0; i < n; i++) {
    const uint32_t e = r->tables[base + (word >> (64 - GLYD_OBJECT_LITERAL_BITS))];
    word <<= e & GLYD_OBJECT_ENTRY_BITS;
    used += e; /* bits of entries: below 64 in all */
    base = (e >> 28) << GLYD_OBJECT_LITERAL_BITS;
    glyd_store16(op, (uint16_t)(e >> 8));
    op += 1 + (e >> 7 & 1);
    escape |= e;
  }
  if (GLYD_UNLIKELY(escape & GLYD_OBJECT_ENTRY_ESCAPE)) return decode_literal(r, s);
  return (literal_state){op, s.pos + (used & GLYD_OBJECT_ENTRY_BITS), base};
}

/* Decode what is left of half of the literals; pos is beyond most where its bits are not so many. */
GLYD_INLINE literal_state decode_half(const literal_source *r, literal_state s) {
  while (s.op < r->stop && GLYD_LIKELY(s.pos <= r->most)) {
    if (r->stop - s.op >= 2)
      s = decode_entries(r, s, 1);
    else
      s = decode_literal(r, s);
  }
  return s;
}

/* Copy n bytes, and up to 7 more, from a place distance (1 to COPY - 1) bytes before or not touching them. */
GLYD_INLINE void copy_near(uint8_t *op, const uint8_t *from, size_t distance, size_t n) {
  static const uint64_t repeat[8] = {0,
                                     0x0101010101010101u,
                                     0x0001000100010001u,
                                     1 + ((uint64_t)1 << 24) + ((uint64_t)1 << 48),
                                     1 + ((uint64_t)1 << 32),
                                     1 + ((uint64_t)1 << 40),
                                     1 + ((uint64_t)1 << 48),
                                     1 + ((uint64_t)1 << 56)};
  if (distance >= 8) {
    for (size_t i = 0; i < n; i += 8) glyd_store64(op + i, glyd_load64(from + i));
    return;
  }
  const uint64_t v = (glyd_load64(from) & (((uint64_t)1 << 8 * distance) - 1)) * repeat[distance];
  const size_t step = 8 - 8 % distance;
  for (size_t i = 0; i < n; i += step) glyd_store64(op + i, v);
}

/* Copy n bytes to op, and no more, from a place distance before it or not touching it. */
static void copy_exactly(uint8_t *op, const uint8_t *from, size_t distance, size_t n) {
  if (distance == 1) {
    memset(op, *from, n);
    return;
  }
  size_t i = 0;
  if (distance >= 8)
    for (; i + 8 <= n; i += 8) glyd_store64(op + i, glyd_load64(from + i));
  for (; i < n; i++) op[i] = from[i];
}

_Static_assert(5 * GLYD_OBJECT_LITERAL_BITS <= 57 && 5 * GLYD_OBJECT_LITERAL_BITS <= GLYD_OBJECT_ENTRY_BITS,
               "entries of one load, and their sum in its field");
_Static_assert(GLYD_OBJECT_BITS + 2 * GLYD_OBJECT_EXTRA_BITS <= 57, "a step is in one load");

#define APART 4096 /* bytes of literals, and of content, that are made on the stack, with room behind them */
#define BATCH 96   /* sequences read before they are carried out */
#define ROOM (2 * COPY)

/* A sequence as it was read. */
typedef struct sequence {
  uint64_t lengths; /* match << 48, literals << 32, slot << 6 */
  uint64_t offset;  /* where it is a new one: a distance, or GLYD_OBJECT_PLACE and where it is copied from */
} sequence;

/* The two strings of bits of sequences. */
typedef struct sequence_source {
  const glyd_dictionary *d;
  const uint8_t *steps, *offsets;
  ptrdiff_t last_step, last_offset; /* their last 8 bytes, and those of the payload */
} sequence_source;

/* Read one; returns its match length. */
GLYD_INLINE ptrdiff_t read_sequence(const sequence_source *r, size_t *pos, size_t *pos_offsets, sequence *to) {
  const uint64_t mask = (1u << GLYD_OBJECT_BITS) - 1;
  const uint64_t word = next_bits(r->steps, r->last_step, *pos), step = r->d->step_table[word & mask];
  *pos += step & GLYD_OBJECT_ENTRY_BITS;
  const uint64_t extra = word >> (step >> 8 & 63), literals = low_bits(extra, step >> 16 & 255);
  const uint64_t length = low_bits(extra >> (step >> 16 & 63), step >> 24 & 255);
  to->lengths = step + (literals << 32) + (length << 48);
  /* Whether there is a new offset is hard to predict: no branch. */
  const uint64_t ahead = next_bits(r->offsets, r->last_offset, *pos_offsets);
  uint64_t entry = r->d->offset_table[ahead & mask];
  if (GLYD_UNLIKELY(entry & GLYD_OBJECT_ENTRY_ESCAPE)) {
    const uint32_t code = entry >> 8 & 63;
    entry = glyd_object_offset_entry(r->d, (uint32_t)(ahead >> code) & 255, code + 8);
  }
  const uint64_t taken = entry & GLYD_OBJECT_ENTRY_BITS;
  *pos_offsets += (step & GLYD_OBJECT_ENTRY_SLOT) == GLYD_OBJECT_ENTRY_SLOT ? taken : 0;
  to->offset = (entry >> 32) + low_bits(ahead >> (entry >> 8 & 63), entry >> 16 & 255);
  return (ptrdiff_t)(to->lengths >> 48);
}

/* The four strings of bits (literals in two halves, sequences up to their
 * offsets, new offsets) are read beside each other, as each waits for itself
 * only, some sequences ahead of being carried out. Small objects (small is a
 * constant) and few literals are made where there is room behind them. Many
 * literals are decoded to the end of the output; sequences then never overtake
 * them, since what is left of the output holds what is left of the literals. */
GLYD_INLINE glyd_status decode_compact(const glyd_dictionary *d, const int small, uint8_t *to, size_t size,
                                       const uint8_t *in, size_t len) {
  const ptrdiff_t dictionary_size = d->size;
  static const uint32_t start[GLYD_OBJECT_REPEATS] = GLYD_OBJECT_REPEAT_START;
  ptrdiff_t r0 = start[0], r1 = start[1], r2 = start[2];
  const unsigned count_bits = glyd_object_count_bits((uint32_t)size);
  const ptrdiff_t last = (ptrdiff_t)len - 8;
  const uint64_t counts = next_bits(in, last, 0);
  const size_t n_literals = (size_t)counts & (((size_t)1 << count_bits) - 1);
  const size_t split = (size_t)(counts >> count_bits) & (((size_t)1 << count_bits) - 1);
  if (n_literals > size || split > len) return GLYD_E_CORRUPT;
  uint8_t made[APART + ROOM], apart[APART + ROOM];
  sequence sequences[BATCH];
  const int few = small || n_literals <= APART;
  uint8_t *const out = small ? made : to;
  uint8_t *op = out;
  uint8_t *const end = out + size;
  const uint8_t *const there = d->content + dictionary_size;
  uint8_t *const literals = few ? apart : end - n_literals, *const middle = literals + (n_literals + 1) / 2;
  const uint8_t *literal = literals;
  const uint8_t *const literals_end = literals + n_literals, *const offsets = in + split;
  const literal_source half[2] = {
      {d->literal_table, d->context, in + len, (len - split) * 8, middle},
      {d->literal_table, d->context, offsets, split * 8, literals + n_literals},
  };
  literal_state l0 = {literals, 0, (uint32_t)d->context[0] << GLYD_OBJECT_LITERAL_BITS};
  literal_state l1 = {middle, 0, (uint32_t)d->context[0] << GLYD_OBJECT_LITERAL_BITS};
  const sequence_source source = {d, in, offsets, last, last - (ptrdiff_t)split};
  size_t pos = 2 * count_bits, pos_offsets = 0;
  ptrdiff_t to_read = (ptrdiff_t)(size - n_literals), room = to_read; /* bytes of matches */
  while (to_read > 0) {
    sequence *next = sequences;
    do {
      if (middle - l0.op >= 4 && literals_end - l1.op >= 4 && GLYD_LIKELY(l0.pos <= half[0].most) &&
          GLYD_LIKELY(l1.pos <= half[1].most)) {
        l0 = decode_entries(&half[0], l0, 2);
        l1 = decode_entries(&half[1], l1, 2);
      }
      to_read -= read_sequence(&source, &pos, &pos_offsets, next++);
      if (GLYD_UNLIKELY(to_read <= 0)) break;
      to_read -= read_sequence(&source, &pos, &pos_offsets, next++);
    } while (to_read > 0 && next < sequences + BATCH);
    if (GLYD_UNLIKELY(to_read < 0)) return GLYD_E_CORRUPT;
    while (middle - l0.op >= 10 && literals_end - l1.op >= 10 && l0.pos <= half[0].most && l1.pos <= half[1].most) {
      l0 = decode_entries(&half[0], l0, 5);
      l1 = decode_entries(&half[1], l1, 5);
    }
    l0 = decode_half(&half[0], l0);
    l1 = decode_half(&half[1], l1);
    if (GLYD_UNLIKELY(l0.pos > half[0].most || l1.pos > half[1].most)) return GLYD_E_CORRUPT;
    for (const sequence *q = sequences; q < next; q++) {
      const size_t n = q->lengths >> 32 & 0xFFFF, m = q->lengths >> 48;
      const unsigned slot = q->lengths >> 6 & 3;
      const ptrdiff_t done = op - out + (ptrdiff_t)n; /* bytes before the match */
      const ptrdiff_t number = (ptrdiff_t)(q->offset & (GLYD_OBJECT_PLACE - 1));
      const ptrdiff_t found = q->offset & GLYD_OBJECT_PLACE ? done + dictionary_size - number : number;
      const ptrdiff_t is_new = 0 - (ptrdiff_t)(slot == GLYD_OBJECT_REPEATS);
      const ptrdiff_t past0 = 0 - (ptrdiff_t)(slot >= 1), past1 = 0 - (ptrdiff_t)(slot >= 2);
      const ptrdiff_t kept = r0 ^ (past0 & (r0 ^ r1)) ^ (past1 & (r1 ^ r2));
      const ptrdiff_t distance = kept ^ (is_new & (kept ^ found));
      r2 ^= past1 & (r2 ^ r1);
      r1 ^= past0 & (r1 ^ r0);
      r0 = distance;
      /* Where it is copied from: negative in the dictionary, in which it must start and end then. */
      const ptrdiff_t place = done - distance, left = literals_end - literal - (ptrdiff_t)n;
      if (GLYD_UNLIKELY(((place + dictionary_size) | (place ^ (place + (ptrdiff_t)m - 1)) | (distance - 1) | left) < 0))
        return GLYD_E_CORRUPT;
      const uint8_t *const from = (place < 0 ? there : out) + place;
      room -= (ptrdiff_t)m;
      if (small || (GLYD_LIKELY(room >= ROOM) && GLYD_LIKELY(few || end - literal >= COPY))) {
        copy(op, literal);
        if (GLYD_UNLIKELY(n > COPY)) memmove(op + COPY, literal + COPY, n - COPY);
        op += n;
        literal += n;
        if (GLYD_LIKELY(distance >= COPY)) {
          copy(op, from); /* the dictionary is padded */
          copy(op + COPY, from + COPY);
          if (GLYD_UNLIKELY(m > ROOM))
            for (size_t k = ROOM; k < m; k += COPY) copy(op + k, from + k);
        } else {
          copy_near(op, from, (size_t)distance, m);
        }
      } else {
        memmove(op, literal, n);
        op += n;
        literal += n;
        copy_exactly(op, from, (size_t)distance, m);
      }
      op += m;
    }
  }
  if (size == n_literals) { /* no sequence has brought the literals about */
    l0 = decode_half(&half[0], l0);
    l1 = decode_half(&half[1], l1);
    if (l0.pos > half[0].most || l1.pos > half[1].most) return GLYD_E_CORRUPT;
  }
  memmove(op, literal, (size_t)(literals_end - literal));
  if (small) memcpy(to, made, size);
  const size_t first = pos + l1.pos, second = pos_offsets + l0.pos;
  return first <= split * 8 && first + 8 > split * 8 && second <= half[0].most && second + 8 > half[0].most
             ? GLYD_OK
             : GLYD_E_CORRUPT;
}

static glyd_status decode_compact_portable(const glyd_dictionary *d, uint8_t *out, size_t size, const uint8_t *in,
                                           size_t len) {
  return size <= APART ? decode_compact(d, 1, out, size, in, len) : decode_compact(d, 0, out, size, in, len);
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi,bmi2"))) static glyd_status
decode_compact_avx2(const glyd_dictionary *d, uint8_t *out, size_t size, const uint8_t *in, size_t len) {
  return size <= APART ? decode_compact(d, 1, out, size, in, len) : decode_compact(d, 0, out, size, in, len);
}
#endif

uint64_t glyd_object_decode_workspace(const glyd_object_info *info, const glyd_dictionary *dictionary) {
  if (info->form != GLYD_OBJECT_FORM_BLOCKS) return 0;
  return glyd_lz_decode_workspace() + (uint64_t)dictionary->size + info->content_size;
}

glyd_status glyd_object_decode(unsigned cpu, const glyd_object_info *info, const glyd_dictionary *dictionary,
                               void *blocks, uint8_t *out, const uint8_t *payload) {
  const size_t size = info->content_size;
  if (info->form == GLYD_OBJECT_FORM_RAW) {
    if (size > 0) memcpy(out, payload, size);
    return GLYD_OK;
  }
  if (info->form == GLYD_OBJECT_FORM_COMPACT) {
#if defined(__x86_64__)
    if (cpu & GLYD_CPU_AVX2) return decode_compact_avx2(dictionary, out, size, payload, info->payload_size);
#endif
    return decode_compact_portable(dictionary, out, size, payload, info->payload_size);
  }
  uint8_t *const both = (uint8_t *)blocks + glyd_lz_decode_workspace();
  memcpy(both, dictionary->content, dictionary->size);
  const glyd_status status =
      glyd_lz_decode_after(cpu, blocks, both, dictionary->size, size, payload, info->payload_size);
  if (status == GLYD_OK) memcpy(out, both + dictionary->size, size);
  return status;
}
