/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "huffman/huffman_decode.h"

#include "common/cpu.h"
#include "huffman/huffman_code_decode.h"
#include "huffman/huffman_decode_x86.h"
#include "huffman/huffman_kernel.h"

/* Six bits in reverse order. */
#define REVERSE(i) (((i)&1) << 5 | ((i)&2) << 3 | ((i)&4) << 1 | ((i)&8) >> 1 | ((i)&16) >> 3 | ((i)&32) >> 5)
#define REVERSE8(i)                                                                                           \
  REVERSE(i), REVERSE(i + 1), REVERSE(i + 2), REVERSE(i + 3), REVERSE(i + 4), REVERSE(i + 5), REVERSE(i + 6), \
      REVERSE(i + 7)
static const uint8_t reverse6[64] = {REVERSE8(0),  REVERSE8(8),  REVERSE8(16), REVERSE8(24),
                                     REVERSE8(32), REVERSE8(40), REVERSE8(48), REVERSE8(56)};
_Static_assert(GLYD_HUFFMAN_BITS == 11, "two lookups, of 6 and 5 bits");

/* Fill the table for a complete code; returns the largest code length. */
static unsigned make_table(const glyd_huffman_lengths *code, uint16_t *entry) {
  unsigned place[GLYD_HUFFMAN_BITS + 2], longest = 0;
  place[1] = 0;
  for (unsigned l = 1; l <= GLYD_HUFFMAN_BITS; l++) {
    if (code->of_length[l] != 0) longest = l;
    place[l + 1] = place[l] + code->of_length[l];
  }
  uint8_t sorted[256];
  for (unsigned i = 0; i < code->n; i++) sorted[place[code->length[i]]++] = code->symbol[i];

  /* By doubling: a table of l bits is that of l - 1 bits twice, with the codes
   * of l bits over it. */
  uint32_t next = 0;
  const uint8_t *symbol = sorted;
  for (unsigned l = 1; l <= longest; l++) {
    next <<= 1;
    const size_t half = (size_t)1 << (l - 1);
    if (l > 6) /* below that a call costs more than it copies */
      memcpy(entry + half, entry, half * sizeof *entry);
    else
      for (size_t i = 0; i < half; i++) entry[half + i] = entry[i];
    for (unsigned i = code->of_length[l]; i > 0; i--) {
      const uint32_t reversed =
          ((uint32_t)reverse6[next & 63] << 5 | reverse6[next >> 6] >> 1) >> (GLYD_HUFFMAN_BITS - l);
      entry[reversed] = (uint16_t)((unsigned)*symbol++ << 8 | l);
      next++;
    }
  }
  return longest;
}

static unsigned get_gamma(glyd_bit_reader *r) {
  uint64_t v = glyd_bit_reader_peek(r);
  unsigned k = glyd_ctz64(v | 1u << 9); /* 9: more than any run needs, refused by the caller */
  r->pos += 2 * k + 1;
  return (unsigned)(1u << k | (v >> (k + 1) & ((1u << k) - 1)));
}

/* What was read must be there. */
static glyd_status end_lengths(glyd_plane_input *in, const glyd_bit_reader *r) {
  const size_t bytes = glyd_bit_reader_bytes(r);
  if (bytes > (size_t)(in->end - in->at)) return GLYD_E_CORRUPT;
  in->at += bytes;
  return GLYD_OK;
}

/* Read the code lengths at in->at. */
static glyd_status get_lengths(glyd_plane_input *in, glyd_huffman_lengths *code) {
  glyd_bit_reader r = {in->at, in->end, 0};
  code->n = 0;
  memset(code->of_length, 0, sizeof code->of_length);
  int previous = GLYD_HUFFMAN_FIRST_LENGTH;
  unsigned kraft = 0, symbol = 0;
  do {
    unsigned gap = get_gamma(&r) - (symbol == 0);
    if (gap >= 256 - symbol) return GLYD_E_CORRUPT;
    symbol += gap;
    unsigned run = get_gamma(&r);
    if (run > 256 - symbol) return GLYD_E_CORRUPT;
    uint64_t bits = 0;
    unsigned have = 0;
    for (unsigned k = 0; k < run; k++) {
      if (have < 22) { /* 22: the longest difference and its one bit */
        bits = glyd_bit_reader_peek(&r);
        have = 57;
      }
      unsigned z = glyd_ctz64(bits | 1u << 21); /* 21: more than any difference */
      bits >>= z + 1;
      have -= z + 1;
      r.pos += z + 1;
      previous += (int)(z >> 1) ^ -(int)(z & 1); /* signs are hard to predict: no branch */
      if (previous < 1 || previous > GLYD_HUFFMAN_BITS) return GLYD_E_CORRUPT;
      code->symbol[code->n] = (uint8_t)symbol++;
      code->length[code->n++] = (uint8_t)previous;
      code->of_length[previous]++;
      kraft += 1u << (GLYD_HUFFMAN_BITS - previous);
    }
  } while (kraft < 1u << GLYD_HUFFMAN_BITS && symbol < 256);
  return kraft == 1u << GLYD_HUFFMAN_BITS ? end_lengths(in, &r) : GLYD_E_CORRUPT;
}

/* The same as differences from a code, which becomes the new one. */
static glyd_status get_differences(glyd_plane_input *in, glyd_huffman_lengths *code) {
  glyd_bit_reader r = {in->at, in->end, 0};
  const unsigned n_before = code->n;
  uint8_t known[256] = {0};
  unsigned kraft = 0, n = 0;
  memset(code->of_length, 0, sizeof code->of_length);
  for (unsigned i = 0; i < n_before; i++) {
    const unsigned z = glyd_ctz64(glyd_bit_reader_peek(&r) | (uint64_t)1 << 23); /* 23: more than any difference */
    r.pos += z + 1;
    const unsigned length = code->length[i] + ((z >> 1) ^ (0u - (z & 1)));
    if (length - 1 > GLYD_HUFFMAN_BITS) return GLYD_E_CORRUPT;
    known[code->symbol[i]] = 1;
    if (length > GLYD_HUFFMAN_BITS) continue; /* the symbol has no code now */
    code->symbol[n] = code->symbol[i];
    code->length[n++] = (uint8_t)length;
    code->of_length[length]++;
    kraft += 1u << (GLYD_HUFFMAN_BITS - length);
  }
  uint8_t symbols[256], lengths[256];
  unsigned added = 0;
  for (unsigned symbol = 0; kraft < 1u << GLYD_HUFFMAN_BITS; symbol++) { /* symbols that had none */
    unsigned gap = get_gamma(&r);
    for (;; symbol++) {
      if (symbol == 256) return GLYD_E_CORRUPT;
      if (!known[symbol] && --gap == 0) break;
    }
    const unsigned z = glyd_ctz64(glyd_bit_reader_peek(&r) | (uint64_t)1 << GLYD_HUFFMAN_BITS);
    if (z == GLYD_HUFFMAN_BITS) return GLYD_E_CORRUPT;
    r.pos += z + 1;
    symbols[added] = (uint8_t)symbol;
    lengths[added++] = (uint8_t)(GLYD_HUFFMAN_BITS - z);
    code->of_length[GLYD_HUFFMAN_BITS - z]++;
    kraft += 1u << z;
  }
  code->n = n + added;
  for (unsigned at = code->n; added > 0;) { /* sort them in, from the last on */
    at--;
    if (n > 0 && code->symbol[n - 1] > symbols[added - 1]) {
      code->symbol[at] = code->symbol[--n];
      code->length[at] = code->length[n];
    } else {
      code->symbol[at] = symbols[--added];
      code->length[at] = lengths[added];
    }
  }
  return kraft == 1u << GLYD_HUFFMAN_BITS ? end_lengths(in, &r) : GLYD_E_CORRUPT;
}

/* One symbol of stream j near the end of the input; 0 when it is used up. */
static int careful_symbol(glyd_huffman_streams *s, size_t j, const uint8_t *end) {
  uint64_t e = s->entry[s->word[j] & s->mask];
  *s->out++ = (uint8_t)(e >> 8);
  unsigned used = glyd_huffman_used(s->word[j] >> (e & 63));
  const uint8_t *p = s->p[j] + (used >> 3);
  if (p > end) return 0;
  s->p[j] = p;
  s->word[j] = (glyd_load64_until(p, end) | GLYD_HUFFMAN_MARKER) >> (used & 7);
  return 1;
}

/* First byte after the bits that stream j has used. */
static const uint8_t *stream_end(const glyd_huffman_streams *s, size_t j) {
  return s->p[j] + ((glyd_huffman_used(s->word[j]) + 7) >> 3);
}

static void one_scalar(glyd_huffman_streams *s) { glyd_huffman_rounds_few(s, 0); }
static void two_scalar(glyd_huffman_streams *s) { glyd_huffman_rounds_few(s, 1); }
static void eight_scalar(glyd_huffman_streams *s) { glyd_huffman_rounds_eight(s); }

static glyd_huffman_loop choose_loop(unsigned cpu, size_t streams) {
#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX2)
    return streams == 1 ? glyd_huffman_one_bmi2 : streams == 2 ? glyd_huffman_two_bmi2 : glyd_huffman_eight_bmi2;
#endif
  (void)cpu;
  return streams == 1 ? one_scalar : streams == 2 ? two_scalar : eight_scalar;
}

/* Sizes of all streams but the last. */
static glyd_status get_sizes(glyd_plane_input *in, size_t streams, size_t *size) {
  if (streams == 2) {
    uint64_t v;
    in->at = glyd_get_varint(in->at, in->end, &v);
    if (in->at == NULL || v > SIZE_MAX) return GLYD_E_CORRUPT;
    size[0] = (size_t)v;
  } else if (streams == GLYD_HUFFMAN_STREAMS) {
    if (in->end - in->at < GLYD_HUFFMAN_SIZES_BYTES) return GLYD_E_CORRUPT;
    for (size_t j = 0; j < GLYD_HUFFMAN_STREAMS - 1; j++) size[j] = glyd_load16(in->at + 2 * j);
    in->at += GLYD_HUFFMAN_SIZES_BYTES;
  }
  return GLYD_OK;
}

static glyd_status decode_streams(unsigned cpu, const glyd_huffman_table *table, glyd_plane_input *in, uint8_t *out,
                                  size_t n) {
  glyd_huffman_streams s;
  const size_t streams = n < GLYD_HUFFMAN_TWO_FROM ? 1 : n < GLYD_HUFFMAN_EIGHT_FROM ? 2 : GLYD_HUFFMAN_STREAMS;
  const uint8_t *begin[GLYD_HUFFMAN_STREAMS];
  size_t size[GLYD_HUFFMAN_STREAMS];
  glyd_status status = get_sizes(in, streams, size);
  if (status != GLYD_OK) return status;
  const uint8_t *p = in->at;
  for (size_t j = 0; j < streams; j++) {
    begin[j] = p;
    s.p[j] = p;
    s.word[j] = glyd_load64_until(p, in->readable) | GLYD_HUFFMAN_MARKER;
    if (j + 1 == streams) break;
    if (size[j] > (size_t)(in->end - p)) return GLYD_E_CORRUPT;
    p += size[j];
  }
  s.entry = table->entry;
  s.bits = table->bits;
  s.mask = (1u << table->bits) - 1;
  s.out = out;
  uint8_t *const out_end = out + n;
  const glyd_huffman_loop loop = choose_loop(cpu, streams);
  const ptrdiff_t round = (ptrdiff_t)streams * GLYD_HUFFMAN_STEPS;
  for (;;) { /* as many rounds as are safe whatever the input holds */
    ptrdiff_t rounds = (out_end - s.out) / round;
    for (size_t j = 0; j < streams; j++) {
      ptrdiff_t safe = (in->readable - s.p[j] - 8) / GLYD_HUFFMAN_ADVANCE;
      if (safe < rounds) rounds = safe;
    }
    if (rounds <= 0) break;
    s.stop = s.out + rounds * round;
    loop(&s);
  }
  if (out_end - s.out < round) { /* at most five symbols a stream are left, and in its word */
    for (size_t j = 0; s.out < out_end; j = j + 1 == streams ? 0 : j + 1) {
      uint64_t e = s.entry[s.word[j] & s.mask];
      s.word[j] >>= e & 63;
      *s.out++ = (uint8_t)(e >> 8);
    }
  }
  for (size_t j = 0; s.out < out_end; j = j + 1 == streams ? 0 : j + 1)
    if (!careful_symbol(&s, j, in->readable)) return GLYD_E_CORRUPT;
  for (size_t j = 0; j + 1 < streams; j++)
    if (stream_end(&s, j) != begin[j + 1]) return GLYD_E_CORRUPT;
  const uint8_t *end = stream_end(&s, streams - 1);
  if (end > in->end) return GLYD_E_CORRUPT;
  in->at = end;
  return GLYD_OK;
}

glyd_status glyd_huffman_read_code(glyd_plane_input *in, int differences, glyd_huffman_lengths *code, uint16_t *entry,
                                   unsigned *bits) {
  const glyd_status status = differences ? get_differences(in, code) : get_lengths(in, code);
  if (status == GLYD_OK) *bits = make_table(code, entry);
  return status;
}

glyd_status glyd_huffman_decode_plane(unsigned cpu, glyd_huffman_table *table, glyd_plane_input *in, uint8_t *out,
                                      size_t max_n, size_t slack, const uint8_t **data, size_t *n) {
  unsigned mode;
  const glyd_status status = glyd_huffman_read_head(in, GLYD_PLANE_BITS, max_n, n, &mode);
  *data = out;
  if (status != GLYD_OK || *n == 0) return status;
  return glyd_huffman_decode_mode(cpu, mode, table, in, out, slack, data, *n);
}

glyd_status glyd_huffman_read_head(glyd_plane_input *in, unsigned mode_bits, size_t max_n, size_t *n, unsigned *mode) {
  uint64_t head;
  const uint8_t *p = glyd_get_varint(in->at, in->end, &head);
  if (p == NULL) return GLYD_E_CORRUPT;
  in->at = p;
  *n = (size_t)(head >> mode_bits);
  *mode = (unsigned)head & ((1u << mode_bits) - 1);
  return head >> mode_bits > max_n || (*n == 0 && head != 0) ? GLYD_E_CORRUPT : GLYD_OK;
}

glyd_status glyd_huffman_decode_mode(unsigned cpu, unsigned mode, glyd_huffman_table *table, glyd_plane_input *in,
                                     uint8_t *out, size_t slack, const uint8_t **data, size_t n) {
  const uint8_t *const p = in->at;
  const size_t left = (size_t)(in->end - p);
  *data = out;
  switch (mode) {
  case GLYD_PLANE_RAW:
    if (left < n) return GLYD_E_CORRUPT;
    in->at = p + n;
    if ((size_t)(in->readable - in->at) >= slack)
      *data = p;
    else
      memcpy(out, p, n);
    return GLYD_OK;
  case GLYD_PLANE_FILL:
    if (left < 1) return GLYD_E_CORRUPT;
    memset(out, *p, n);
    in->at = p + 1;
    return GLYD_OK;
  case GLYD_PLANE_OWN:
  case GLYD_PLANE_CHANGED: {
    unsigned bits = 0;
    if (mode == GLYD_PLANE_CHANGED && table->bits == 0) return GLYD_E_CORRUPT;
    table->bits = 0;
    const glyd_status status =
        glyd_huffman_read_code(in, mode == GLYD_PLANE_CHANGED, &table->code, table->entry, &bits);
    if (status != GLYD_OK) return status;
    table->bits = bits;
    break;
  }
  case GLYD_PLANE_LAST: break;
  default: return GLYD_E_CORRUPT;
  }
  if (table->bits == 0) return GLYD_E_CORRUPT;
  return decode_streams(cpu, table, in, out, n);
}
