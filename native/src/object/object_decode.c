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
#define CODE_MASK ((1u << GLYD_OBJECT_BITS) - 1)

/* The next bits of the sequences, at least 56; zeros past the end. */
GLYD_INLINE uint64_t next_bits(const uint8_t *in, size_t len, size_t pos) {
  const size_t at = pos >> 3;
  if (GLYD_LIKELY(at + 8 <= len)) return glyd_load64(in + at) >> (pos & 7);
  return at < len ? glyd_load64_until(in + at, in + len) >> (pos & 7) : 0;
}

/* A symbol with the bits of an escape, 19 at most; *taken grows by them. */
GLYD_INLINE unsigned take_symbol(uint64_t word, const uint32_t *table, size_t *taken) {
  const uint32_t e = table[word & CODE_MASK], length = e & 15;
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

/* Decode n literals of a payload that ends at end and has most bits. Returns
 * the bits they take, more than most when there are not so many. */
GLYD_INLINE size_t decode_literals(const glyd_dictionary *d, uint8_t *out, size_t n, const uint8_t *end, size_t most) {
  const uint16_t *const tables = d->literal_table[0];
  uint8_t *op = out, *const stop = out + n;
  size_t base = (size_t)d->context[0] << GLYD_OBJECT_BITS, pos = 0;
#define LITERAL                                           \
  do {                                                    \
    e = tables[base + (word >> (64 - GLYD_OBJECT_BITS))]; \
    word <<= e & 15;                                      \
    used += e & 15;                                       \
    base = (size_t)(e & 0xE0) << (GLYD_OBJECT_BITS - 5);  \
    escape |= e;                                          \
  } while (0)
  while (op < stop) {
    if (GLYD_UNLIKELY(pos > most)) return pos;
    uint64_t word = next_literal_bits(end, pos);
    unsigned e, used = 0, escape = 0;
    if (GLYD_LIKELY(stop - op >= 5)) { /* 5 codes of 11 bits */
      const size_t context = base;
      LITERAL;
      op[0] = (uint8_t)(e >> 8);
      LITERAL;
      op[1] = (uint8_t)(e >> 8);
      LITERAL;
      op[2] = (uint8_t)(e >> 8);
      LITERAL;
      op[3] = (uint8_t)(e >> 8);
      LITERAL;
      op[4] = (uint8_t)(e >> 8);
      if (GLYD_LIKELY(!(escape & GLYD_OBJECT_ENTRY_ESCAPE))) {
        pos += used;
        op += 5;
        continue;
      }
      base = context;
      word = next_literal_bits(end, pos);
    }
    LITERAL; /* one at a time */
    pos += e & 15;
    *op = (uint8_t)(e >> 8);
    if (GLYD_UNLIKELY(e & GLYD_OBJECT_ENTRY_ESCAPE)) {
      if (pos > most) return pos;
      *op = (uint8_t)(next_literal_bits(end, pos) >> 56);
      base = (size_t)d->context[*op] << GLYD_OBJECT_BITS;
      pos += 8;
    }
    op++;
  }
#undef LITERAL
  return pos;
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

#define LITERALS_APART 2048 /* as many literals, with a little room behind them, are kept on the stack */

/* Literals are decoded first, many of them to the end of the output. Sequences
 * then move them to their places from its start on: they never overtake them,
 * since what is left of the output holds what is left of the literals. */
GLYD_INLINE glyd_status decode_compact(const glyd_dictionary *d, uint8_t *out, size_t size, const uint8_t *in,
                                       size_t len) {
  const size_t dictionary_size = d->size;
  const uintptr_t there = (uintptr_t)d->content, to_here = (uintptr_t)out - dictionary_size - there;
  static const uint32_t start[GLYD_OBJECT_REPEATS] = GLYD_OBJECT_REPEAT_START;
  size_t r0 = start[0], r1 = start[1], r2 = start[2];
  uint8_t *op = out;
  uint8_t *const end = out + size;
  const unsigned count_bits = glyd_object_count_bits((uint32_t)size);
  const size_t n_literals = (size_t)next_bits(in, len, 0) & (((size_t)1 << count_bits) - 1);
  if (n_literals > size) return GLYD_E_CORRUPT;
  uint8_t apart[LITERALS_APART];
  uint8_t *const literals = n_literals <= LITERALS_APART - COPY ? apart : end - n_literals;
  const uint8_t *literal = literals;
  const uint8_t *const literals_end = literals + n_literals;
  const uint8_t *const last_copy = literals == apart ? apart + LITERALS_APART - COPY : end - COPY; /* of COPY bytes */
  const size_t literal_bits = decode_literals(d, literals, n_literals, in + len, len * 8);
  if (literal_bits > len * 8) return GLYD_E_CORRUPT;
  size_t pos = count_bits;
  while (end - op > literals_end - literal) {
    uint64_t word = next_bits(in, len, pos); /* 56 bits: three codes and 17 more; reloaded after what is longer */
    uint32_t entry = d->table[GLYD_OBJECT_COMMANDS][word & CODE_MASK];
    size_t taken = entry & 15, m = entry >> 16;
    unsigned command = entry >> 8 & 255;
    if (GLYD_UNLIKELY(entry & GLYD_OBJECT_ENTRY_ESCAPE)) {
      command = (unsigned)(word >> taken) & 255;
      m = glyd_object_command_length(d, command);
      pos += taken + 8;
      word = next_bits(in, len, pos);
      taken = 0;
    }
    size_t n = command & 3;
    word >>= taken;
    if (n == GLYD_OBJECT_LITERALS_ESCAPE) {
      size_t more = 0;
      const unsigned e = take_symbol(word, d->table[GLYD_OBJECT_LITERAL_ESCAPES], &more);
      n += e;
      if (GLYD_UNLIKELY(e == GLYD_OBJECT_ESCAPE)) {
        n = word >> more & 0xFFFF;
        more += 16;
        if (n < GLYD_OBJECT_LITERALS_ESCAPE + GLYD_OBJECT_ESCAPE) return GLYD_E_CORRUPT;
      }
      pos += taken + more;
      taken = 0;
      word = next_bits(in, len, pos);
    }
    if (m == 0) {
      size_t more = 0;
      const unsigned e = take_symbol(word, d->table[GLYD_OBJECT_MATCH_ESCAPES], &more);
      m = GLYD_OBJECT_MATCH_MIN + e;
      if (GLYD_UNLIKELY(e == GLYD_OBJECT_ESCAPE)) {
        m = word >> more & 0xFFFF;
        if (m < GLYD_OBJECT_MATCH_MIN + GLYD_OBJECT_ESCAPE) return GLYD_E_CORRUPT;
        more += 16;
      }
      word >>= more;
      taken += more;
      if (GLYD_UNLIKELY(taken > 2 * GLYD_OBJECT_BITS)) {
        pos += taken;
        word = next_bits(in, len, pos);
        taken = 0;
      }
    }
    const size_t done = (size_t)(op - out) + n; /* bytes before the match */
    const unsigned slot = command >> 6;
    size_t distance;
    if (slot == GLYD_OBJECT_REPEATS) {
      entry = d->table[GLYD_OBJECT_OFFSETS][word & CODE_MASK];
      size_t length = entry & 15;
      if (GLYD_UNLIKELY(entry & GLYD_OBJECT_ENTRY_ESCAPE)) {
        pos += taken;
        word = next_bits(in, len, pos);
        taken = 0;
        entry = glyd_object_offset_entry(d, (unsigned)(word >> length) & 255);
        length += 8;
      }
      const unsigned extra = entry >> 5 & 31;
      distance = (entry >> 11) + (size_t)((word >> length) & (((uint64_t)1 << extra) - 1));
      /* A place: what comes before the match less it. Which it is is hard to predict: no branch. */
      const size_t is_place = 0 - (size_t)(entry / GLYD_OBJECT_ENTRY_PLACE & 1);
      distance = (distance ^ is_place) - is_place + (is_place & (done + dictionary_size));
      pos += taken + length + extra;
      r2 = r1;
      r1 = r0;
    } else {
      pos += taken;
      distance = slot == 0 ? r0 : slot == 1 ? r1 : r2;
      r2 = slot == 2 ? r1 : r2;
      r1 = slot >= 1 ? r0 : r1;
    }
    r0 = distance;
    const size_t left = (size_t)(literals_end - literal),
                 room = (size_t)(end - op) - left; /* for matches, until the end */
    if (GLYD_UNLIKELY(n > left || m > room)) return GLYD_E_CORRUPT;
    /* Where it is copied from, counted from the start of the dictionary. */
    const size_t source = done + dictionary_size - distance;
    if (GLYD_UNLIKELY(distance > done + dictionary_size)) return GLYD_E_CORRUPT;
    if (GLYD_UNLIKELY(dictionary_size - source - 1 < m - 1)) return GLYD_E_CORRUPT; /* beyond the dictionary's end */
    const uint8_t *const from =
        (const uint8_t *)(there + source + ((0 - (size_t)(source >= dictionary_size)) & to_here));
    if (GLYD_LIKELY(room >= m + 4 * COPY && n <= COPY && literal <= last_copy && distance >= COPY)) {
      glyd_copy16(op, literal);
      op += n;
      literal += n;
      glyd_copy16(op, from); /* the dictionary is padded */
      glyd_copy16(op + COPY, from + COPY);
      if (GLYD_UNLIKELY(m > 2 * COPY))
        for (size_t i = 2 * COPY; i < m; i += COPY) glyd_copy16(op + i, from + i);
    } else {
      memmove(op, literal, n);
      op += n;
      literal += n;
      copy_exactly(op, from, distance, m);
    }
    op += m;
  }
  memmove(op, literal, (size_t)(literals_end - literal));
  const size_t bits = pos + literal_bits;
  return bits <= len * 8 && bits + 8 > len * 8 ? GLYD_OK : GLYD_E_CORRUPT;
}

static glyd_status decode_compact_portable(const glyd_dictionary *d, uint8_t *out, size_t size, const uint8_t *in,
                                           size_t len) {
  return decode_compact(d, out, size, in, len);
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2"))) static glyd_status decode_compact_bmi2(const glyd_dictionary *d, uint8_t *out,
                                                                           size_t size, const uint8_t *in, size_t len) {
  return decode_compact(d, out, size, in, len);
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
