/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Coded blocks made from random sequences as the spec has them, with a packer
 * of its own: every flag, lengths and offsets at their limits, several blocks a
 * segment. The decoder must give what a naive execution gives, and refuse the
 * same blocks with one thing wrong.
 */
#include "block/block_coded_common.h"
#include "block/block_decode.h"
#include "codec_test.h"
#include "common/cpu.h"
#include "huffman/huffman_encode.h"

#define MOST ((size_t)700000)

static unsigned variants[2];
static unsigned n_variants;

static glyd_status decode(const uint8_t *in, size_t len, const uint8_t *expected, size_t out_len) {
  static void *workspace;
  if (workspace == NULL) workspace = aligned_alloc(64, (glyd_lz_decode_workspace() + 63) & ~(size_t)63);
  glyd_status first = GLYD_OK;
  guarded from = guarded_new(len, 0);
  memcpy(from.p, in, len);
  for (unsigned v = 0; v < n_variants; v++) {
    guarded to = guarded_new(out_len, (int)test_below(2));
    const glyd_status status = glyd_lz_decode(variants[v], workspace, to.p, out_len, from.p, len, NULL);
    CHECK(v == 0 || status == first);
    first = status;
    if (status == GLYD_OK && expected != NULL) CHECK(memcmp(to.p, expected, out_len) == 0);
    guarded_free(to);
  }
  guarded_free(from);
  return first;
}

/* What can be wrong with a block. */
enum {
  RIGHT,
  OFFSET_TOO_FAR,
  OFFSET_CODE,
  LITERAL_MISSING,
  LITERAL_EXTRA,
  ESCAPE_MISSING,
  ESCAPE_EXTRA,
  LONG_SMALL,
  LONG_EXTRA,
  RAW_EXTRA,
  RAW_MISSING,
  FRESH_EXTRA,
  TABLE_ORDER,
  MISTAKES
};

typedef struct model {
  uint32_t repeat[3];
  glyd_huffman_code last[GLYD_CODED_PLANES];
  uint8_t *content;
  size_t len;
} model;

typedef struct planes {
  uint8_t literals[GLYD_BLOCK_MAX + 8], commands[70000], lesc[70000], mesc[70000], codes[70000], low[70000],
      longs[3][2000];
  size_t n_literals, n, n_lesc, n_mesc, n_codes, n_low, n_longs;
  uint8_t raw[300000];
  size_t raw_bits;
} planes;

static void put_bits(planes *p, uint32_t v, unsigned bits) {
  for (unsigned b = 0; b < bits; b++, p->raw_bits++) {
    if (p->raw_bits % 8 == 0) p->raw[p->raw_bits / 8] = 0;
    p->raw[p->raw_bits / 8] = (uint8_t)(p->raw[p->raw_bits / 8] | (v >> b & 1) << (p->raw_bits % 8));
  }
}

static void put_long(planes *p, size_t v) {
  for (unsigned k = 0; k < 3; k++) p->longs[k][p->n_longs] = (uint8_t)(v >> (8 * k));
  p->n_longs++;
}

/* Append one block of random sequences to the payload; returns its new size.
 * *applied says whether the mistake could be made. */
static size_t add_block(model *m, uint8_t *out, size_t at, int mistake, int *applied) {
  static planes p;
  p.n_literals = p.n = p.n_lesc = p.n_mesc = p.n_codes = p.n_low = p.n_longs = p.raw_bits = 0;
  *applied = mistake == RIGHT;
  unsigned flags = (unsigned)test_below(4) << 4 & GLYD_CODED_FLAG_LOW;
  uint8_t table[15];
  for (unsigned k = 0; k < 15; k++) table[k] = (uint8_t)(4 + k);
  unsigned base = 19;
  if (test_below(2)) {
    flags |= GLYD_CODED_FLAG_LENGTHS;
    for (unsigned k = 0, l = 4; k < 15; k++, l++) {
      l += (unsigned)test_below(12);
      table[k] = (uint8_t)l;
    }
    base = 4;
    if (mistake == TABLE_ORDER) {
      table[7] = table[6];
      *applied = 1;
    }
  } else if (mistake == TABLE_ORDER) {
    mistake = RIGHT;
  }
  const size_t start = m->len, most = 1 + test_below(test_below(3) ? 20000 : GLYD_BLOCK_MAX);
  const unsigned style = (unsigned)test_below(4);
  uint8_t *const c = m->content;
  const size_t sequences = test_below(8) ? test_below(3000) : 0;
  for (size_t i = 0; i < sequences; i++) {
    size_t ll = test_below(3) ? test_below(4) : style == 0 ? test_below(700) : test_below(20);
    size_t code = test_below(16), ml;
    const size_t room = most - (m->len - start);
    if (ll + 700 > room) break;
    if (code < 15) {
      ml = table[code];
    } else {
      ml = base + (style < 2 && test_below(6) == 0 ? test_below(3000) : test_below(30));
      if (ll + ml + 10 > room) ml = base;
    }
    for (size_t k = 0; k < ll; k++)
      c[m->len++] = p.literals[p.n_literals++] = (uint8_t)(test_random() & (style == 3 ? 3 : 255));
    if (m->len == 0) continue; /* no match can be */
    unsigned slot = (unsigned)test_below(4);
    size_t off = slot < 3 ? m->repeat[slot] : 0;
    if (slot < 3 && off > m->len) slot = 3;
    if (slot == 3) off = 1 + test_below(test_below(2) ? m->len : m->len < 70 ? m->len : 70);
    if (mistake == OFFSET_TOO_FAR && !*applied && i > 3) {
      slot = 3;
      off = m->len + 1 + test_below(1000);
      *applied = 1;
    }
    for (unsigned k = slot < 2 ? slot : 2; k > 0; k--) m->repeat[k] = m->repeat[k - 1];
    m->repeat[0] = (uint32_t)off;
    p.commands[p.n++] = (uint8_t)(slot << 6 | code << 2 | (ll < 3 ? ll : 3));
    if (ll >= 255) {
      p.lesc[p.n_lesc++] = 255;
      put_long(&p, mistake == LONG_SMALL && !*applied ? 254 : ll);
      *applied |= mistake == LONG_SMALL;
    } else if (ll >= 3) {
      p.lesc[p.n_lesc++] = (uint8_t)(ll - 3);
    }
    if (code == 15) {
      if (ml >= 255) {
        p.mesc[p.n_mesc++] = 255;
        put_long(&p, ml);
      } else {
        p.mesc[p.n_mesc++] = (uint8_t)(ml - base);
      }
    }
    if (slot == 3) {
      const uint32_t v = (uint32_t)off + 7;
      unsigned k = 0;
      while (v >> (k + 1) != 0) k++;
      const unsigned bits = k - 3;
      const uint32_t x = v & ((1u << bits) - 1);
      uint8_t offset_code = (uint8_t)(bits << 3 | (v >> bits & 7));
      if (mistake == OFFSET_CODE && !*applied && bits == 0) {
        offset_code = (uint8_t)(200 + test_below(56));
        *applied = 1;
      }
      p.codes[p.n_codes++] = offset_code;
      if ((flags & GLYD_CODED_FLAG_LOW) && bits >= 8) {
        p.low[p.n_low++] = (uint8_t)x;
        put_bits(&p, x >> 8, bits - 8);
      } else {
        put_bits(&p, x, bits);
      }
    }
    for (size_t k = 0; k < ml; k++, m->len++) c[m->len] = off <= m->len ? c[m->len - off] : 0;
  }
  for (size_t k = test_below(style == 2 ? 2000 : 40) + (m->len == start); k > 0 && m->len - start < most; k--)
    c[m->len++] = p.literals[p.n_literals++] = (uint8_t)test_random();

  if (mistake == LITERAL_MISSING && p.n_literals > 0) *applied = 1, p.n_literals--;
  if (mistake == LITERAL_EXTRA && p.n_literals < m->len - start) *applied = 1, p.literals[p.n_literals++] = 1;
  if (mistake == ESCAPE_MISSING && p.n_lesc > 0) *applied = 1, p.n_lesc--;
  if (mistake == ESCAPE_EXTRA) *applied = 1, p.mesc[p.n_mesc++] = 7;
  if (mistake == LONG_EXTRA) *applied = 1, put_long(&p, 300);
  if (mistake == FRESH_EXTRA) *applied = 1, p.codes[p.n_codes++] = 3;

  static uint8_t body[2000000];
  uint8_t *o = body;
  const unsigned cpu = variants[n_variants - 1];
  if (flags & GLYD_CODED_FLAG_LENGTHS) {
    memcpy(o, table, 15);
    o += 15;
  }
  o = glyd_huffman_encode_plane(cpu, o, p.literals, p.n_literals, NULL, &m->last[GLYD_CODED_PLANE_LITERALS]);
  o = glyd_huffman_encode_plane(cpu, o, p.commands, p.n, NULL, &m->last[GLYD_CODED_PLANE_COMMANDS]);
  o = glyd_huffman_encode_plane(cpu, o, p.lesc, p.n_lesc, NULL, &m->last[GLYD_CODED_PLANE_LITERAL_ESCAPES]);
  o = glyd_huffman_encode_plane(cpu, o, p.mesc, p.n_mesc, NULL, &m->last[GLYD_CODED_PLANE_MATCH_ESCAPES]);
  o = glyd_huffman_encode_plane(cpu, o, p.codes, p.n_codes, NULL, &m->last[GLYD_CODED_PLANE_OFFSETS]);
  if (flags & GLYD_CODED_FLAG_LOW)
    o = glyd_huffman_encode_plane(cpu, o, p.low, p.n_low, NULL, &m->last[GLYD_CODED_PLANE_LOW]);
  if (p.n_longs != 0) {
    flags |= GLYD_CODED_FLAG_LONG;
    for (unsigned k = 0; k < 3; k++)
      o = glyd_huffman_encode_plane(cpu, o, p.longs[k], p.n_longs, NULL, &m->last[GLYD_CODED_PLANE_LONG + k]);
  }
  size_t raw = (p.raw_bits + 7) / 8;
  if (mistake == RAW_MISSING && raw > 0) *applied = 1, raw--;
  memcpy(o, p.raw, raw);
  o += raw;
  if (mistake == RAW_EXTRA) *applied = 1, *o++ = 0;

  out[at++] = (uint8_t)(GLYD_BLOCK_CODED | flags);
  uint8_t *h = glyd_put_varint(glyd_put_varint(out + at, m->len - start), (uint64_t)(o - body));
  memcpy(h, body, (size_t)(o - body));
  return (size_t)(h - out) + (size_t)(o - body);
}

int main(int argc, char **argv) {
  variants[n_variants++] = GLYD_CPU_SCALAR;
  if (glyd_cpu_features() & GLYD_CPU_AVX2) variants[n_variants++] = glyd_cpu_features();
  const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1500;
  static model m;
  m.content = malloc(MOST + 4096);
  uint8_t *payload = malloc(6 * MOST);
  unsigned made[MISTAKES] = {0};
  for (unsigned round = 0; round < rounds; round++) {
    const int mistake = round % 3 ? (int)test_below(MISTAKES) : RIGHT;
    static const uint32_t first[3] = GLYD_CODED_REPEAT_START;
    memcpy(m.repeat, first, sizeof first);
    for (unsigned k = 0; k < GLYD_CODED_PLANES; k++) m.last[k].valid = 0;
    m.len = 0;
    size_t at = 0;
    int applied = 0;
    for (size_t blocks = 1 + test_below(3), b = 0; b < blocks && m.len + GLYD_BLOCK_MAX < MOST; b++)
      at = add_block(&m, payload, at, b + 1 == blocks ? mistake : RIGHT, &applied);
    const int right = mistake == RIGHT || !applied;
    const glyd_status status = decode(payload, at, right ? m.content : NULL, m.len);
    CHECK(status == (right ? GLYD_OK : GLYD_E_CORRUPT));
    made[right ? RIGHT : mistake]++;
  }
  printf("block_coded: %u blocks right, wrong by kind:", made[RIGHT]);
  for (unsigned k = 1; k < MISTAKES; k++) {
    printf(" %u", made[k]);
    CHECK(rounds < 1000 || made[k] > 0);
  }
  printf("\n");
  free(m.content);
  free(payload);
  return 0;
}
