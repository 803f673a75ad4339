/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A payload has no headers and no tables of its own, so that small objects cost
 * no set-up. Sequences are read from its start, literals from its end, so that
 * neither waits for the other; what both took must be the payload.
 */
#include "object/object_decode.h"

#include "bitstream/bit_reader.h"
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

#define COPY 16
/* The next bits of the sequences, at least 56; zeros past the end. */
GLYD_INLINE uint64_t next_bits(const uint8_t *in, size_t len, size_t pos) {
  const size_t at = pos >> 3;
  if (GLYD_LIKELY(at + 8 <= len)) return glyd_load64(in + at) >> (pos & 7);
  return at < len ? glyd_load64_until(in + at, in + len) >> (pos & 7) : 0;
}

/* A symbol of a table of 2^bits entries with the bits of an escape, 19 at most; *taken grows by them. */
GLYD_INLINE unsigned take_symbol(uint64_t word, const uint32_t *table, unsigned bits, size_t *taken) {
  const uint32_t e = table[word & ((1u << bits) - 1)], length = e & GLYD_OBJECT_ENTRY_BITS;
  *taken += length;
  if (GLYD_LIKELY(!(e & GLYD_OBJECT_ENTRY_ESCAPE))) return e >> 8 & 255;
  *taken += 8;
  return (unsigned)(word >> length) & 255;
}

/* The next bits of the literals, at least 57, from the end backwards, first
 * ones on top; readable bytes before the payload stand for what is not there. */
GLYD_INLINE uint64_t next_literal_bits(const uint8_t *end, size_t pos) {
  return glyd_load64(end - (pos >> 3) - 8) << (pos & 7);
}

/* What stays the same while literals are decoded. */
typedef struct literal_source {
  const uint32_t *tables;
  const uint8_t *context;
  const uint8_t *end; /* of the payload */
  size_t most;        /* bits of the payload */
  unsigned bits;      /* of table entries */
  uint8_t *stop;      /* bytes before it are written */
} literal_source;

/* Passed by value: what changes stays in registers (of different types, which
 * compilers do not join in one vector register). */
typedef struct literal_state {
  uint8_t *op;
  uint32_t pos; /* bits taken */
  size_t base;  /* start of the table of the next one */
} literal_state;

/* One literal, with the bits of an escape. */
GLYD_NOINLINE static literal_state decode_literal(const literal_source *r, literal_state s) {
  uint64_t word = next_literal_bits(r->end, s.pos);
  const uint32_t e = r->tables[s.base + (word >> (64 - r->bits))], length = e >> 24 & 15;
  uint8_t literal = (uint8_t)(e >> 8);
  s.pos += length;
  if (GLYD_UNLIKELY(e & GLYD_OBJECT_ENTRY_ESCAPE)) {
    literal = (uint8_t)(word << length >> 56);
    s.pos += 8;
  }
  *s.op++ = literal;
  s.base = (size_t)r->context[literal] << r->bits;
  return s;
}

/* Decode literals by n (at most 5) entries, of which each may have two. */
GLYD_INLINE literal_state decode_entries(const literal_source *r, literal_state s, unsigned n) {
  uint64_t word = next_literal_bits(r->end, s.pos);
  uint8_t *op = s.op;
  size_t base = s.base;
  uint32_t escape = 0, used = 0;
#pragma GCC unroll 5
  for (unsigned i = 0; i < n; i++) {
    const uint32_t e = r->tables[base + (word >> (64 - r->bits))];
    word <<= e & GLYD_OBJECT_ENTRY_BITS;
    used += e; /* bits of entries: below 64 in all */
    base = (size_t)(e >> 28) << r->bits;
    glyd_store16(op, (uint16_t)(e >> 8));
    op += 1 + (e >> 7 & 1);
    escape |= e;
  }
  if (GLYD_UNLIKELY(escape & GLYD_OBJECT_ENTRY_ESCAPE)) return decode_literal(r, s);
  return (literal_state){op, s.pos + (used & GLYD_OBJECT_ENTRY_BITS), base};
}

/* The last 1 to 3 literals, each by an entry; bytes behind them may be written. */
GLYD_INLINE literal_state decode_last(const literal_source *r, literal_state s) {
  uint64_t word = next_literal_bits(r->end, s.pos);
  const size_t left = (size_t)(r->stop - s.op);
  size_t base = s.base;
  uint32_t escape = 0, used = 0;
#pragma GCC unroll 3
  for (unsigned i = 0; i < 3; i++) {
    const uint32_t there = 0 - (uint32_t)(i < left);
    const uint32_t e = r->tables[base + (word >> (64 - r->bits))], length = e >> 24 & 15 & there;
    word <<= length;
    used += length;
    base = (size_t)r->context[e >> 8 & 255] << r->bits;
    s.op[i] = (uint8_t)(e >> 8);
    escape |= e & there;
  }
  if (GLYD_UNLIKELY(escape & GLYD_OBJECT_ENTRY_ESCAPE)) return decode_literal(r, s);
  return (literal_state){s.op + left, s.pos + used, base};
}

/* Decode literals until to, and perhaps some more; pos is beyond most where the payload has not so many. */
GLYD_NOINLINE static literal_state decode_literals(const literal_source *r, literal_state s, const uint8_t *to) {
  while (s.op < to) {
    if (GLYD_UNLIKELY(s.pos > r->most)) break;
    if (GLYD_LIKELY(r->stop - s.op >= 10))
      s = decode_entries(r, s, 5);
    else if (r->stop - s.op >= 2)
      s = decode_entries(r, s, 1);
    else
      s = decode_literal(r, s);
  }
  return s;
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

_Static_assert(5 * GLYD_OBJECT_BITS <= GLYD_OBJECT_ENTRY_BITS, "sums of bits stay in their field");

#define APART 4096 /* bytes of literals, and of content, that are made on the stack, with room behind them */
#define BATCH 96   /* sequences read before they are carried out */
#define ROOM (4 * COPY)

/* A sequence as it was read. */
typedef struct sequence {
  uint64_t lengths; /* GLYD_OBJECT_SEQUENCE */
  uint32_t offset;  /* where it is a new one: the number read, IS_PLACE for a place */
} sequence;

#define IS_PLACE 0x80000000u

/* A match length by itself, as a sequence with the bits taken; 0 when it is wrong. */
GLYD_INLINE uint64_t read_match_length(const glyd_dictionary *d, const uint8_t *in, size_t len, size_t pos) {
  const uint64_t word = next_bits(in, len, pos);
  size_t taken = 0;
  const unsigned e = take_symbol(word, d->table[GLYD_OBJECT_MATCH_ESCAPES], d->bits, &taken);
  uint64_t m = GLYD_OBJECT_MATCH_MIN + e;
  if (GLYD_UNLIKELY(e == GLYD_OBJECT_ESCAPE)) {
    m = word >> taken & 0xFFFF;
    taken += 16;
    if (m < GLYD_OBJECT_MATCH_MIN + GLYD_OBJECT_ESCAPE) return 0;
  }
  return GLYD_OBJECT_SEQUENCE(0, m, 0) | taken;
}

/* A sequence that starts with a command, in the same way. */
GLYD_NOINLINE static uint64_t read_command(const glyd_dictionary *d, const uint8_t *in, size_t len, size_t from) {
  size_t pos = from;
  uint64_t word = next_bits(in, len, pos);
  const unsigned command = take_symbol(word, d->table[GLYD_OBJECT_COMMANDS], d->bits, &pos);
  uint64_t n = command & 3, m = glyd_object_command_length(d, command);
  if (n == GLYD_OBJECT_LITERALS_ESCAPE) {
    word = next_bits(in, len, pos);
    size_t taken = 0;
    const unsigned e = take_symbol(word, d->table[GLYD_OBJECT_LITERAL_ESCAPES], d->bits, &taken);
    n += e;
    if (e == GLYD_OBJECT_ESCAPE) {
      n = word >> taken & 0xFFFF;
      taken += 16;
      if (n < GLYD_OBJECT_LITERALS_ESCAPE + GLYD_OBJECT_ESCAPE) return 0;
    }
    pos += taken;
  }
  uint64_t lengths = GLYD_OBJECT_SEQUENCE(n, m, command >> 6);
  if (m == 0) {
    const uint64_t more = read_match_length(d, in, len, pos);
    if (more == 0) return 0;
    lengths |= more & ~(uint64_t)0xFFFF;
    pos += more & 0xFFFF;
  }
  return lengths | (pos - from);
}

/* Literals and sequences are read beside each other, as each waits for itself
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
  const size_t n_literals = (size_t)next_bits(in, len, 0) & (((size_t)1 << count_bits) - 1);
  if (n_literals > size) return GLYD_E_CORRUPT;
  uint8_t made[APART + ROOM], apart[APART + ROOM];
  sequence sequences[BATCH];
  const int few = small || n_literals <= APART;
  uint8_t *const out = small ? made : to;
  uint8_t *op = out;
  uint8_t *const end = out + size;
  const uint8_t *const there = d->content + dictionary_size;
  uint8_t *const literals = few ? apart : end - n_literals;
  const uint8_t *literal = literals;
  const uint8_t *const literals_end = literals + n_literals;
  const literal_source r = {d->literal_table, d->context, in + len, len * 8, d->bits, literals + n_literals};
  literal_state l = {literals, 0, (size_t)d->context[0] << d->bits};
  const uint64_t mask = (1u << d->bits) - 1;
  size_t pos = count_bits;
  ptrdiff_t to_read = (ptrdiff_t)(size - n_literals), room = to_read; /* bytes of matches */
  while (to_read > 0) {
    sequence *next = sequences;
    do {
      if (l.op < r.stop && GLYD_LIKELY(l.pos <= r.most)) {
        if (GLYD_LIKELY(r.stop - l.op >= 4))
          l = decode_entries(&r, l, 2);
        else if (few)
          l = decode_last(&r, l);
      }
      uint64_t word = next_bits(in, len, pos); /* 56 bits: two codes and 17 more are 39 */
      uint64_t lengths = d->step_table[word & mask];
      pos += lengths & GLYD_OBJECT_ENTRY_BITS;
      word >>= lengths & GLYD_OBJECT_ENTRY_BITS;
      if (GLYD_UNLIKELY(lengths < GLYD_OBJECT_SEQUENCE(0, 1, 0))) {
        const uint64_t more =
            lengths & GLYD_OBJECT_ENTRY_STEP ? read_match_length(d, in, len, pos) : read_command(d, in, len, pos);
        if (more == 0) return GLYD_E_CORRUPT;
        lengths = more | (lengths & GLYD_OBJECT_SEQUENCE(0xFFFF, 0, 3));
        pos += more & 0xFFFF;
        word = next_bits(in, len, pos);
      }
      /* Whether there is a new offset is hard to predict: no branch. */
      uint32_t entry = d->table[GLYD_OBJECT_OFFSETS][word & mask];
      if (GLYD_UNLIKELY(entry & GLYD_OBJECT_ENTRY_ESCAPE)) {
        const uint32_t length = entry >> 8 & 31;
        entry = glyd_object_offset_entry(d, (uint32_t)(word >> length) & 255, length + 8);
      }
      const size_t is_new = 0 - (size_t)((lengths & GLYD_OBJECT_SEQUENCE(0, 0, 3)) == GLYD_OBJECT_SEQUENCE(0, 0, 3));
      pos += is_new & (entry & GLYD_OBJECT_ENTRY_BITS);
      const unsigned extra = entry >> 13 & 31;
      next->lengths = lengths;
      next->offset = (entry >> 18) << extra | (uint32_t)(word >> (entry >> 8 & 31) & (((uint64_t)1 << extra) - 1)) |
                     (entry & GLYD_OBJECT_ENTRY_PLACE) << 24;
      next++;
      to_read -= (ptrdiff_t)(lengths >> 48);
    } while (to_read > 0 && next < sequences + BATCH);
    if (GLYD_UNLIKELY(to_read < 0)) return GLYD_E_CORRUPT;
    l = decode_literals(&r, l, literals_end);
    if (GLYD_UNLIKELY(l.pos > r.most)) return GLYD_E_CORRUPT;
    for (const sequence *q = sequences; q < next; q++) {
      const size_t n = q->lengths >> 32 & 0xFFFF, m = q->lengths >> 48;
      const unsigned slot = q->lengths >> 16 & 3;
      const ptrdiff_t done = op - out + (ptrdiff_t)n; /* bytes before the match */
      const ptrdiff_t is_place = (ptrdiff_t)((int32_t)q->offset >> 31), number = q->offset & ~IS_PLACE;
      const ptrdiff_t found = (number ^ is_place) - is_place + (is_place & (done + dictionary_size)) -
                              (~is_place & GLYD_OBJECT_OFFSET_BIAS);
      const ptrdiff_t is_new = 0 - (ptrdiff_t)(slot == GLYD_OBJECT_REPEATS);
      const ptrdiff_t past0 = 0 - (ptrdiff_t)(slot >= 1), past1 = 0 - (ptrdiff_t)(slot >= 2);
      const ptrdiff_t kept = r0 ^ (past0 & (r0 ^ r1)) ^ (past1 & (r1 ^ r2));
      const ptrdiff_t distance = kept ^ (is_new & (kept ^ found));
      r2 ^= past1 & (r2 ^ r1);
      r1 ^= past0 & (r1 ^ r0);
      r0 = distance;
      /* Where it is copied from: negative in the dictionary, in which it must start and end then. */
      const ptrdiff_t source = done - distance, left = literals_end - literal - (ptrdiff_t)n;
      if (GLYD_UNLIKELY(((source + dictionary_size) | (source ^ (source + (ptrdiff_t)m - 1)) | (distance - 1) | left) <
                        0))
        return GLYD_E_CORRUPT;
      const uint8_t *const from = (source < 0 ? there : out) + source;
      room -= (ptrdiff_t)m;
      if (GLYD_LIKELY((int)(n <= COPY) & (distance >= COPY)) &&
          (small || (GLYD_LIKELY(room >= ROOM) && GLYD_LIKELY(few || end - literal >= COPY)))) {
        glyd_copy16(op, literal);
        op += n;
        literal += n;
        glyd_copy16(op, from); /* the dictionary is padded */
        glyd_copy16(op + COPY, from + COPY);
        glyd_copy16(op + 2 * COPY, from + 2 * COPY);
        glyd_copy16(op + 3 * COPY, from + 3 * COPY);
        if (GLYD_UNLIKELY(m > 4 * COPY))
          for (size_t k = 4 * COPY; k < m; k += COPY) glyd_copy16(op + k, from + k);
      } else {
        memmove(op, literal, n);
        op += n;
        literal += n;
        copy_exactly(op, from, (size_t)distance, m);
      }
      op += m;
    }
  }
  l = decode_literals(&r, l, r.stop);
  if (l.pos > r.most) return GLYD_E_CORRUPT;
  memmove(op, literal, (size_t)(literals_end - literal));
  if (small) memcpy(to, made, size);
  const size_t bits = pos + l.pos;
  return bits <= len * 8 && bits + 8 > len * 8 ? GLYD_OK : GLYD_E_CORRUPT;
}

static glyd_status decode_compact_portable(const glyd_dictionary *d, uint8_t *out, size_t size, const uint8_t *in,
                                           size_t len) {
  return size <= APART ? decode_compact(d, 1, out, size, in, len) : decode_compact(d, 0, out, size, in, len);
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2"))) static glyd_status decode_compact_bmi2(const glyd_dictionary *d, uint8_t *out,
                                                                           size_t size, const uint8_t *in, size_t len) {
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
    if (cpu & GLYD_CPU_AVX2) return decode_compact_bmi2(dictionary, out, size, payload, info->payload_size);
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
