/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "huffman/huffman_decode.h"

#include "common/cpu.h"
#include "huffman/huffman_decode_x86.h"
#include "huffman/huffman_kernel.h"

/* The largest code length, or 0 when the lengths are not a complete code. */
static unsigned make_table(const uint8_t length[256], uint16_t *entry) {
  unsigned of_length[GLYD_HUFFMAN_BITS + 1] = {0}, start[GLYD_HUFFMAN_BITS + 2];
  for (unsigned s = 0; s < 256; s++) of_length[length[s]]++;
  unsigned kraft = 0, longest = 0;
  start[1] = 0;
  for (unsigned l = 1; l <= GLYD_HUFFMAN_BITS; l++) {
    kraft += of_length[l] << (GLYD_HUFFMAN_BITS - l);
    if (of_length[l] != 0) longest = l;
    start[l + 1] = start[l] + of_length[l];
  }
  if (kraft != 1u << GLYD_HUFFMAN_BITS) return 0;
  uint8_t sorted[256];
  unsigned place[GLYD_HUFFMAN_BITS + 2];
  memcpy(place, start, sizeof place);
  for (unsigned s = 0; s < 256; s++)
    if (length[s] != 0) sorted[place[length[s]]++] = (uint8_t)s;

  /* By doubling: a table of l bits is that of l - 1 bits twice, with the codes
   * of l bits over it. Codes are counted up bit-reversed. */
  uint32_t code = 0; /* of length l, bit-reversed */
  for (unsigned l = 1; l <= longest; l++) {
    if (l > 1) memcpy(entry + ((size_t)1 << (l - 1)), entry, sizeof *entry << (l - 1));
    for (unsigned i = start[l]; i < start[l + 1]; i++) {
      entry[code] = (uint16_t)((unsigned)sorted[i] << 8 | l);
      uint32_t bit = 1u << (l - 1); /* reversed increment */
      while (code & bit) {
        code ^= bit;
        bit >>= 1;
      }
      code |= bit;
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

static glyd_status get_lengths(glyd_plane_input *in, uint8_t length[256]) {
  glyd_bit_reader r = {in->at, in->end, 0};
  memset(length, 0, 256);
  int previous = GLYD_HUFFMAN_FIRST_LENGTH;
  unsigned kraft = 0;
  for (unsigned i = 0; kraft < 1u << GLYD_HUFFMAN_BITS;) {
    unsigned gap = get_gamma(&r) - (i == 0);
    if (gap >= 256 - i) return GLYD_E_CORRUPT;
    i += gap;
    unsigned run = get_gamma(&r);
    if (run > 256 - i) return GLYD_E_CORRUPT;
    for (unsigned k = 0; k < run; k++) {
      unsigned z = glyd_ctz64(glyd_bit_reader_peek(&r) | 1u << 21); /* 21: more than any difference */
      r.pos += z + 1;
      previous += z & 1 ? -(int)((z + 1) / 2) : (int)(z / 2);
      if (previous < 1 || previous > GLYD_HUFFMAN_BITS) return GLYD_E_CORRUPT;
      length[i++] = (uint8_t)previous;
      kraft += 1u << (GLYD_HUFFMAN_BITS - previous);
    }
    if (i == 256 && kraft < 1u << GLYD_HUFFMAN_BITS) return GLYD_E_CORRUPT;
  }
  size_t bytes = glyd_bit_reader_bytes(&r);
  if (kraft > 1u << GLYD_HUFFMAN_BITS || bytes > (size_t)(in->end - in->at)) return GLYD_E_CORRUPT;
  in->at += bytes;
  return GLYD_OK;
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

static glyd_status decode_streams(unsigned cpu, const glyd_huffman_table *table, glyd_plane_input *in, uint8_t *out,
                                  size_t n) {
  glyd_huffman_streams s;
  const uint8_t *begin[GLYD_HUFFMAN_STREAMS];
  const uint8_t *p = in->at + GLYD_HUFFMAN_SIZES_BYTES;
  if (in->end - in->at < GLYD_HUFFMAN_SIZES_BYTES) return GLYD_E_CORRUPT;
  for (size_t j = 0; j < GLYD_HUFFMAN_STREAMS; j++) {
    begin[j] = p;
    s.p[j] = p;
    s.word[j] = glyd_load64_until(p, in->readable) | GLYD_HUFFMAN_MARKER;
    if (j == GLYD_HUFFMAN_STREAMS - 1) break;
    size_t size = glyd_load16(in->at + 2 * j);
    if (size > (size_t)(in->end - p)) return GLYD_E_CORRUPT;
    p += size;
  }
  s.entry = table->entry;
  s.bits = table->bits;
  s.mask = (1u << table->bits) - 1;
  s.out = out;
  uint8_t *const out_end = out + n;
  for (;;) { /* as many rounds as are safe whatever the input holds */
    ptrdiff_t rounds = (out_end - s.out) / GLYD_HUFFMAN_ROUND;
    for (size_t j = 0; j < GLYD_HUFFMAN_STREAMS; j++) {
      ptrdiff_t safe = (in->readable - s.p[j] - 8) / GLYD_HUFFMAN_ADVANCE;
      if (safe < rounds) rounds = safe;
    }
    if (rounds <= 0) break;
    s.stop = s.out + rounds * GLYD_HUFFMAN_ROUND;
#if defined(__x86_64__)
    if (cpu & GLYD_CPU_AVX2)
      glyd_huffman_rounds_bmi2(&s);
    else
#endif
      glyd_huffman_rounds(&s);
  }
  (void)cpu;
  for (size_t j = 0; s.out < out_end; j = (j + 1) % GLYD_HUFFMAN_STREAMS)
    if (!careful_symbol(&s, j, in->readable)) return GLYD_E_CORRUPT;
  for (size_t j = 0; j + 1 < GLYD_HUFFMAN_STREAMS; j++)
    if (stream_end(&s, j) != begin[j + 1]) return GLYD_E_CORRUPT;
  const uint8_t *end = stream_end(&s, GLYD_HUFFMAN_STREAMS - 1);
  if (end > in->end) return GLYD_E_CORRUPT;
  in->at = end;
  return GLYD_OK;
}

static glyd_status decode_one_stream(const glyd_huffman_table *table, glyd_plane_input *in, uint8_t *out, size_t n) {
  glyd_huffman_streams s;
  s.p[0] = in->at;
  s.word[0] = glyd_load64_until(in->at, in->readable) | GLYD_HUFFMAN_MARKER;
  s.entry = table->entry;
  s.mask = (1u << table->bits) - 1;
  s.out = out;
  uint8_t *const out_end = out + n;
  while (out_end - s.out >= GLYD_HUFFMAN_STEPS && in->readable - s.p[0] >= 8 + GLYD_HUFFMAN_ADVANCE) {
    uint64_t w = s.word[0];
    for (unsigned k = 0; k < GLYD_HUFFMAN_STEPS; k++) {
      uint64_t e = s.entry[w & s.mask];
      w >>= e & 63;
      s.out[k] = (uint8_t)(e >> 8);
    }
    s.out += GLYD_HUFFMAN_STEPS;
    unsigned used = glyd_huffman_used(w);
    s.p[0] += used >> 3;
    s.word[0] = (glyd_load64(s.p[0]) | GLYD_HUFFMAN_MARKER) >> (used & 7);
  }
  while (s.out < out_end)
    if (!careful_symbol(&s, 0, in->readable)) return GLYD_E_CORRUPT;
  const uint8_t *end = stream_end(&s, 0);
  if (end > in->end) return GLYD_E_CORRUPT;
  in->at = end;
  return GLYD_OK;
}

glyd_status glyd_huffman_decode_plane(unsigned cpu, glyd_huffman_table *table, glyd_plane_input *in, uint8_t *out,
                                      size_t max_n, size_t slack, const uint8_t **data, size_t *n) {
  uint64_t head;
  const uint8_t *p = glyd_get_varint(in->at, in->end, &head);
  if (p == NULL) return GLYD_E_CORRUPT;
  in->at = p;
  *data = out;
  *n = (size_t)(head >> 2);
  if (head >> 2 > max_n || (head < 4 && head != 0)) return GLYD_E_CORRUPT;
  if (head == 0) return GLYD_OK;
  const size_t left = (size_t)(in->end - p);
  switch (head & 3) {
  case GLYD_PLANE_RAW:
    if (left < *n) return GLYD_E_CORRUPT;
    in->at = p + *n;
    if ((size_t)(in->readable - in->at) >= slack)
      *data = p;
    else
      memcpy(out, p, *n);
    return GLYD_OK;
  case GLYD_PLANE_FILL:
    if (left < 1) return GLYD_E_CORRUPT;
    memset(out, *p, *n);
    in->at = p + 1;
    return GLYD_OK;
  case GLYD_PLANE_OWN: {
    uint8_t length[256];
    glyd_status status = get_lengths(in, length);
    table->bits = 0;
    if (status != GLYD_OK) return status;
    table->bits = make_table(length, table->entry);
    break;
  }
  default: break;
  }
  if (table->bits == 0) return GLYD_E_CORRUPT;
  if (*n < GLYD_HUFFMAN_STREAMS_FROM) return decode_one_stream(table, in, out, *n);
  return decode_streams(cpu, table, in, out, *n);
}
