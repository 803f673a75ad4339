/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "block/block_coded_encode.h"

#include "bitstream/bit_writer.h"
#include "block/block_coded_common.h"
#include "huffman/huffman_encode.h"
#include "match/match_double.h"

#define BLOCK_SIZE ((size_t)GLYD_BLOCK_MAX)
#define LITERAL_COPY 32 /* literals are copied in pieces of this many bytes where the input allows */

/* Planes of one block before they are coded; body staging. */
typedef struct block_planes {
  uint8_t literals[GLYD_BLOCK_MAX + LITERAL_COPY];
  uint8_t commands[GLYD_CODED_SEQUENCES_MAX];
  uint8_t literal_escapes[GLYD_CODED_SEQUENCES_MAX];
  uint8_t match_escapes[GLYD_CODED_SEQUENCES_MAX];
  uint8_t offset_codes[GLYD_CODED_SEQUENCES_MAX];
  uint8_t low_bytes[GLYD_CODED_SEQUENCES_MAX];
  uint8_t longs[3][GLYD_CODED_LONGS_MAX];
  uint8_t raw_bits[GLYD_CODED_SEQUENCES_MAX * 3 + 16];
  /* every plane, the raw bits and the length table at their largest */
  uint8_t body[GLYD_HUFFMAN_PLANE_BOUND(GLYD_BLOCK_MAX) + 5 * GLYD_HUFFMAN_PLANE_BOUND(GLYD_CODED_SEQUENCES_MAX) +
               3 * GLYD_HUFFMAN_PLANE_BOUND(GLYD_CODED_LONGS_MAX) + GLYD_CODED_SEQUENCES_MAX * 3 + 64];
} block_planes;

typedef struct coded_encoder {
  glyd_match_double finder;
  glyd_huffman_code last[GLYD_CODED_PLANES];
  uint32_t repeat[GLYD_CODED_REPEATS];
  glyd_sequence sequences[GLYD_CODED_SEQUENCES_MAX + 2];
  block_planes planes;
} coded_encoder;

static size_t round_up(size_t n) { return (n + 63) & ~(size_t)63; }

size_t glyd_coded_encode_workspace(const glyd_lz_config *config) {
  return round_up(sizeof(coded_encoder)) + glyd_match_double_workspace(config->segment_size);
}

/* Choose the 15 most frequent match lengths if that saves escapes; returns 1
 * and fills lengths (ascending) if so. */
static int choose_lengths(const glyd_sequence *seqs, size_t n, uint8_t lengths[GLYD_CODED_LENGTHS]) {
  uint32_t counts[256];
  memset(counts, 0, sizeof counts);
  for (size_t i = 0; i < n; i++) counts[seqs[i].length < GLYD_CODED_LONG ? seqs[i].length : GLYD_CODED_LONG]++;
  uint32_t escapes = 0, covered = 0;
  for (unsigned l = GLYD_CODED_ESCAPE_BASE; l <= GLYD_CODED_LONG; l++) escapes += counts[l];
  /* keys: count << 8 | (255 - length): of equal counts the shorter length */
  uint32_t top[GLYD_CODED_LENGTHS];
  memset(top, 0, sizeof top);
  for (unsigned l = GLYD_CODED_MATCH_MIN; l < GLYD_CODED_LONG; l++) {
    uint32_t key = counts[l] << 8 | (255 - l);
    unsigned k = GLYD_CODED_LENGTHS;
    if (key <= top[k - 1]) continue;
    for (k--; k > 0 && top[k - 1] < key; k--) top[k] = top[k - 1];
    top[k] = key;
  }
  for (unsigned k = 0; k < GLYD_CODED_LENGTHS; k++) covered += top[k] >> 8;
  if ((uint32_t)n - covered + (uint32_t)n / 32 + 32 >= escapes) return 0;
  unsigned k = 0;
  for (unsigned l = GLYD_CODED_MATCH_MIN; l < GLYD_CODED_LONG; l++) {
    uint32_t key = counts[l] << 8 | (255 - l);
    if (key >= top[GLYD_CODED_LENGTHS - 1]) lengths[k++] = (uint8_t)l;
  }
  return 1;
}

/* Repeat slot of the offset (3: none), which moves to the front. */
GLYD_INLINE unsigned use_offset(uint32_t repeat[GLYD_CODED_REPEATS], uint32_t offset) {
  if (offset == repeat[0]) return 0;
  unsigned slot = 1;
  if (offset != repeat[1]) {
    slot = offset == repeat[2] ? 2 : 3;
    repeat[2] = repeat[1];
  }
  repeat[1] = repeat[0];
  repeat[0] = offset;
  return slot;
}

/* Write the body of the block [in, in + len), whose sequences are given, to
 * e->planes.body. Returns its end. Literals are read in pieces of LITERAL_COPY
 * bytes before in_end. */
static uint8_t *encode_body(coded_encoder *e, const uint8_t *in, size_t len, const uint8_t *in_end,
                            const glyd_sequence *seqs, size_t n, unsigned *flags) {
  block_planes *const b = &e->planes;
  uint8_t table[GLYD_CODED_LENGTHS], code_of[256];
  *flags = 0;
  uint8_t *out = b->body;
  unsigned escape_base = GLYD_CODED_ESCAPE_BASE;
  memset(code_of, GLYD_CODED_LENGTHS, sizeof code_of);
  if (choose_lengths(seqs, n, table)) {
    *flags |= GLYD_CODED_FLAG_LENGTHS;
    memcpy(out, table, sizeof table);
    out += sizeof table;
    escape_base = GLYD_CODED_MATCH_MIN;
    for (unsigned k = 0; k < GLYD_CODED_LENGTHS; k++) code_of[table[k]] = (uint8_t)k;
  } else {
    for (unsigned k = 0; k < GLYD_CODED_LENGTHS; k++) code_of[GLYD_CODED_MATCH_MIN + k] = (uint8_t)k;
  }

  const uint8_t *ip = in;
  uint8_t *lit = b->literals, *lesc = b->literal_escapes, *mesc = b->match_escapes, *oc = b->offset_codes;
  size_t longs = 0;
  glyd_bit_writer raw;
  glyd_bit_writer_init(&raw, b->raw_bits);
  for (size_t i = 0; i < n; i++) {
    const uint32_t ll = seqs[i].literals, ml = seqs[i].length, offset = seqs[i].offset;
    if (GLYD_LIKELY(ll <= LITERAL_COPY && in_end - ip >= LITERAL_COPY))
      memcpy(lit, ip, LITERAL_COPY);
    else
      memcpy(lit, ip, ll);
    lit += ll;
    ip += ll + ml;
    const unsigned slot = use_offset(e->repeat, offset);
    unsigned command = slot << 6;
    if (ll < GLYD_CODED_LITERALS_ESCAPE) {
      command |= ll;
    } else {
      command |= GLYD_CODED_LITERALS_ESCAPE;
      if (GLYD_UNLIKELY(ll >= GLYD_CODED_LONG)) {
        for (unsigned k = 0; k < 3; k++) b->longs[k][longs] = (uint8_t)(ll >> (8 * k));
        longs++;
        *lesc++ = GLYD_CODED_LONG;
      } else {
        *lesc++ = (uint8_t)(ll - GLYD_CODED_LITERALS_ESCAPE);
      }
    }
    const unsigned code = code_of[ml < GLYD_CODED_LONG ? ml : GLYD_CODED_LONG];
    command |= code << 2;
    if (code == GLYD_CODED_LENGTHS) {
      if (GLYD_UNLIKELY(ml >= GLYD_CODED_LONG)) {
        for (unsigned k = 0; k < 3; k++) b->longs[k][longs] = (uint8_t)(ml >> (8 * k));
        longs++;
        *mesc++ = GLYD_CODED_LONG;
      } else {
        *mesc++ = (uint8_t)(ml - escape_base);
      }
    }
    b->commands[i] = (uint8_t)command;
    if (slot == GLYD_CODED_REPEATS) {
      const uint32_t v = offset + GLYD_CODED_OFFSET_BIAS;
      const unsigned bits = glyd_log2_32(v) - 3;
      *oc++ = (uint8_t)(bits << 3 | (v >> bits & 7));
      glyd_bit_writer_put(&raw, v & ((1u << bits) - 1), bits);
    }
  }
  const size_t rest = (size_t)(in + len - ip);
  memcpy(lit, ip, rest);
  lit += rest;

  out = glyd_huffman_encode_plane(out, b->literals, (size_t)(lit - b->literals), &e->last[GLYD_CODED_PLANE_LITERALS]);
  out = glyd_huffman_encode_plane(out, b->commands, n, &e->last[GLYD_CODED_PLANE_COMMANDS]);
  out = glyd_huffman_encode_plane(out, b->literal_escapes, (size_t)(lesc - b->literal_escapes),
                                  &e->last[GLYD_CODED_PLANE_LITERAL_ESCAPES]);
  out = glyd_huffman_encode_plane(out, b->match_escapes, (size_t)(mesc - b->match_escapes),
                                  &e->last[GLYD_CODED_PLANE_MATCH_ESCAPES]);
  out = glyd_huffman_encode_plane(out, b->offset_codes, (size_t)(oc - b->offset_codes),
                                  &e->last[GLYD_CODED_PLANE_OFFSETS]);
  if (longs != 0) {
    *flags |= GLYD_CODED_FLAG_LONG;
    for (unsigned k = 0; k < 3; k++)
      out = glyd_huffman_encode_plane(out, b->longs[k], longs, &e->last[GLYD_CODED_PLANE_LONG + k]);
  }
  const size_t raw_len = (size_t)(glyd_bit_writer_end(&raw) - b->raw_bits);
  memcpy(out, b->raw_bits, raw_len);
  return out + raw_len;
}

glyd_status glyd_coded_segment_encode(const glyd_lz_config *config, void *workspace, const uint8_t *in, size_t len,
                                      uint8_t *out, size_t cap, size_t *out_len) {
  coded_encoder *const e = workspace;
  (void)config;
  static const uint32_t repeat_start[GLYD_CODED_REPEATS] = GLYD_CODED_REPEAT_START;
  memcpy(e->repeat, repeat_start, sizeof repeat_start);
  for (unsigned k = 0; k < GLYD_CODED_PLANES; k++) e->last[k].valid = 0;
  glyd_match_double_reset(&e->finder, (uint8_t *)workspace + round_up(sizeof *e), len);
  uint8_t *op = out;
  uint8_t *const oend = out + cap;
  for (size_t start = 0; start < len;) {
    const size_t size = len - start < BLOCK_SIZE ? len - start : BLOCK_SIZE;
    const uint8_t *const block = in + start;
    uint8_t head[8];
    const uint8_t *body;
    size_t body_len;
    if (memcmp(block, block + 1, size - 1) == 0) {
      head[0] = GLYD_BLOCK_FILL;
      body = block;
      body_len = 1;
    } else {
      size_t n = glyd_match_double_parse(&e->finder, in, start, start + size, e->sequences);
      uint32_t repeat[GLYD_CODED_REPEATS];
      memcpy(repeat, e->repeat, sizeof repeat);
      unsigned flags;
      body = e->planes.body;
      body_len = (size_t)(encode_body(e, block, size, in + len, e->sequences, n, &flags) - body);
      head[0] = (uint8_t)(GLYD_BLOCK_CODED | flags);
      if (body_len >= size) {
        head[0] = GLYD_BLOCK_RAW;
        body = block;
        body_len = size;
        memcpy(e->repeat, repeat, sizeof repeat);
        /* Readers never see the tables of this block. */
        for (unsigned k = 0; k < GLYD_CODED_PLANES; k++) e->last[k].valid = 0;
      }
    }
    uint8_t *hp = glyd_put_varint(head + 1, size);
    hp = glyd_put_varint(hp, body_len);
    const size_t head_len = (size_t)(hp - head);
    if ((size_t)(oend - op) < head_len || (size_t)(oend - op) - head_len < body_len) return GLYD_E_BUFFER;
    memcpy(op, head, head_len);
    memcpy(op + head_len, body, body_len);
    op += head_len + body_len;
    start += size;
  }
  *out_len = (size_t)(op - out);
  return GLYD_OK;
}
