/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Plain blocks: round trips inside guard pages, generated blocks of every
 * length and offset form against a slow model, hostile bodies. Every decode
 * runs both variants and compares them.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "block/block_plain_common.h"
#include "block/block_plain_decode.h"
#include "block/block_plain_encode.h"
#include "codec_test.h"
#include "common/cpu.h"
#include "common/mem.h"

static unsigned checks;

static void *space_new(size_t n) {
  void *p = aligned_alloc(64, (n + 63) & ~(size_t)63);
  CHECK(p != NULL);
  memset(p, 0xA5, (n + 63) & ~(size_t)63);
  return p;
}

/* Decode a body with one variant into len bytes that end at a guard page (or
 * have room bytes after them), prefix bytes of the segment before them. */
static glyd_status decode_body(unsigned cpu, const uint8_t *prefix, size_t prefix_len, uint8_t *result, size_t len,
                               size_t room, unsigned flags, const uint8_t *body, size_t body_len, size_t slack) {
  guarded out = guarded_new(prefix_len + len + room, 0), in = guarded_new(body_len + slack, 0);
  void *space = space_new(glyd_plain_decode_workspace());
  if (prefix_len) memcpy(out.p, prefix, prefix_len);
  memset(out.p + prefix_len, 0, len + room);
  memcpy(in.p, body, body_len);
  glyd_status status = glyd_plain_block_decode(cpu, space, out.p, out.p + prefix_len, len,
                                               out.p + prefix_len + len + room, flags, in.p, body_len, slack);
  CHECK(prefix_len == 0 || memcmp(out.p, prefix, prefix_len) == 0);
  memcpy(result, out.p + prefix_len, len);
  guarded_free(out);
  guarded_free(in);
  free(space);
  checks++;
  return status;
}

/* Both variants, which must agree; result holds the content when it is OK. */
static glyd_status decode_both(const uint8_t *prefix, size_t prefix_len, uint8_t *result, size_t len, size_t room,
                               unsigned flags, const uint8_t *body, size_t body_len, size_t slack) {
  uint8_t *other = malloc(len + 1);
  glyd_status a = decode_body(GLYD_CPU_SCALAR, prefix, prefix_len, result, len, room, flags, body, body_len, slack);
  glyd_status b = decode_body(glyd_cpu_features(), prefix, prefix_len, other, len, room, flags, body, body_len, slack);
  CHECK(a == b);
  CHECK(a == GLYD_OK || a == GLYD_E_CORRUPT);
  CHECK(a != GLYD_OK || memcmp(result, other, len) == 0);
  free(other);
  return a;
}

/* ---- segments ------------------------------------------------------------ */

static int decode_segment(unsigned cpu, uint8_t *out, size_t out_len, const uint8_t *in, size_t in_len,
                          unsigned *n_plain) {
  const uint8_t *p = in, *end = in + in_len;
  uint8_t *op = out, *out_end = out + out_len;
  void *space = space_new(glyd_plain_decode_workspace());
  while (op < out_end) {
    uint64_t content, body;
    CHECK(p < end);
    unsigned type = *p++;
    CHECK((p = glyd_get_varint(p, end, &content)) != NULL);
    CHECK((p = glyd_get_varint(p, end, &body)) != NULL);
    CHECK(content >= 1 && content <= GLYD_BLOCK_MAX && content <= (size_t)(out_end - op));
    CHECK(body <= (size_t)(end - p));
    if ((type & 3) == GLYD_BLOCK_RAW) {
      CHECK(type == GLYD_BLOCK_RAW && body == content);
      memcpy(op, p, content);
    } else if ((type & 3) == GLYD_BLOCK_FILL) {
      CHECK(type == GLYD_BLOCK_FILL && body == 1);
      memset(op, *p, content);
    } else {
      CHECK((type & 3) == GLYD_BLOCK_PLAIN);
      CHECK(glyd_plain_block_decode(cpu, space, out, op, content, out_end, type & 0xFCu, p, body,
                                    (size_t)(end - p) - body) == GLYD_OK);
      ++*n_plain;
    }
    op += content;
    p += body;
  }
  free(space);
  return p == end;
}

static void round_trip(int level, const uint8_t *data, size_t n, unsigned *n_plain) {
  size_t cap = n + n / 64 + 64, size = 0, again = 0;
  glyd_lz_config config = {level, 0, n, 0};
  guarded in = guarded_new(n, 0), out = guarded_new(cap, 0);
  void *space = space_new(glyd_plain_encode_workspace(&config));
  memcpy(in.p, data, n);
  CHECK(glyd_plain_segment_encode(&config, space, in.p, 0, n, out.p, cap, &size) == GLYD_OK);
  CHECK(size <= cap);
  guarded packed = guarded_new(size, 0);
  memcpy(packed.p, out.p, size);
  /* nothing is left over from one call to the next, and a full buffer is enough */
  CHECK(glyd_plain_segment_encode(&config, space, in.p, 0, n, packed.p, size, &again) == GLYD_OK);
  CHECK(again == size && memcmp(packed.p, out.p, size) == 0);
  CHECK(glyd_plain_segment_encode(&config, space, in.p, 0, n, packed.p, size - 1, &again) == GLYD_E_BUFFER);
  memcpy(packed.p, out.p, size);
  for (int variant = 0; variant < 2; variant++) {
    guarded content = guarded_new(n, variant);
    CHECK(decode_segment(variant ? GLYD_CPU_SCALAR : glyd_cpu_features(), content.p, n, packed.p, size, n_plain));
    CHECK(memcmp(content.p, data, n) == 0);
    guarded_free(content);
    checks++;
  }
  guarded_free(in), guarded_free(out), guarded_free(packed);
  free(space);
}

static void test_round_trips(void) {
  uint8_t *data = malloc((size_t)5 << 20);
  unsigned n_plain[4] = {0};
  for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_DEFAULT; level++) {
    for (unsigned kind = 0; kind < TEST_KINDS; kind++) {
      for (size_t n = 1; n < 70; n++) {
        test_content(kind, data, n);
        round_trip(level, data, n, &n_plain[level]);
      }
      for (unsigned i = 0; i < 12; i++) {
        size_t n = 70 + test_below((size_t)1 << (7 + i));
        test_content(kind, data, n);
        round_trip(level, data, n, &n_plain[level]);
      }
      test_content(kind, data, 600001);
      round_trip(level, data, 600001, &n_plain[level]);
    }
    /* past the 4 MiB at which table positions wrap */
    test_content(3, data, (size_t)5 << 20);
    round_trip(level, data, (size_t)5 << 20, &n_plain[level]);
    CHECK(n_plain[level] > 100);
  }
  free(data);
}

/* ---- generated blocks ---------------------------------------------------- */

typedef struct model_block {
  uint8_t body[1 << 20];
  size_t body_len;
  unsigned flags;
  uint8_t content[GLYD_BLOCK_MAX];
  size_t len;
} model_block;

/* A valid block made from the spec alone: random sequences with every form of
 * length and offset, content computed byte by byte. */
static void generate(model_block *b, const uint8_t *prefix, size_t prefix_len, size_t n_want, int no_literals) {
  static uint8_t offsets[1 << 18], tokens[1 << 16], lls[1 << 16], mls[1 << 16], fars[1 << 16], longs[1 << 18];
  static uint8_t literals[GLYD_BLOCK_MAX];
  size_t n = 0, n_off = 0, n_ll = 0, n_ml = 0, n_far = 0, n_long = 0, n_lit = 0, len = 0, last = 1;
  int own = (int)test_below(2), repeat = (int)test_below(2);
  unsigned base = test_below(3) ? 1 + (unsigned)test_below(12) : 1 + (unsigned)test_below(255), table[16];
  unsigned longish = (unsigned)test_below(3), near = (unsigned)test_below(3);
  for (unsigned i = 0; i < 15; i++) {
    table[i] = own ? 1 + (unsigned)test_below(test_below(4) ? 40 : 255) : base + i < 255 ? base + i : 255;
  }
  table[15] = own ? base : base + 15 < 255 ? base + 15 : 255;
  while (n < n_want) {
    unsigned l = no_literals ? 0 : (unsigned)test_below(8), c = (unsigned)test_below(16), f = 0, e;
    size_t ll = l, ml = table[c], off, extra, most;
    uint8_t *ll_at = lls + n_ll, *ml_at = mls + n_ml, *long_at = longs + n_long;
    if (l == 7) {
      e = (unsigned)test_below(longish ? 40 : 256);
      *ll_at++ = (uint8_t)e;
      ll = 7 + e;
      if (ll >= 255) {
        extra = test_below(3) ? test_below(200) : test_below(1000);
        long_at = glyd_put_varint(long_at, extra);
        ll = 255 + extra;
      }
    }
    if (c == 15) {
      e = (unsigned)test_below(longish ? 40 : 256);
      *ml_at++ = (uint8_t)e;
      ml += e;
    }
    if (ml >= 255) {
      extra = test_below(3) ? test_below(200) : test_below(20000);
      long_at = glyd_put_varint(long_at, extra);
      ml = 255 + extra;
    }
    if (len + ll + ml > GLYD_BLOCK_MAX) break;
    most = prefix_len + len + ll;
    if (most == 0) continue;
    off = test_below(4) < near ? 1 + test_below(40) : 1 + test_below(most);
    if (off > most) off = most;
    if (repeat && last <= most && test_below(3) == 0) {
      f = 1;
      off = last;
    } else if (repeat) {
      unsigned wide = off >= 1u << 15 || test_below(50) == 0;
      glyd_store16(offsets + 2 * n_off++, (uint16_t)((off & 0x7FFF) | wide << 15));
      if (wide) fars[n_far++] = (uint8_t)(off >> 15);
    } else {
      f = off >= 1u << 16 || test_below(50) == 0;
      glyd_store16(offsets + 2 * n_off++, (uint16_t)off);
      if (f) fars[n_far++] = (uint8_t)(off >> 16);
    }
    last = off;
    n_ll = (size_t)(ll_at - lls), n_ml = (size_t)(ml_at - mls), n_long = (size_t)(long_at - longs);
    tokens[n++] = (uint8_t)(l | c << 3 | f << 7);
    for (size_t i = 0; i < ll; i++) b->content[len++] = literals[n_lit++] = (uint8_t)test_random();
    for (size_t i = 0; i < ml; i++, len++) {
      b->content[len] = len >= off ? b->content[len - off] : prefix[prefix_len + len - off];
    }
  }
  CHECK(n > 0);
  for (size_t rest = no_literals ? 0 : test_below(4) * test_below(200); rest > 0 && len < GLYD_BLOCK_MAX; rest--) {
    b->content[len++] = literals[n_lit++] = (uint8_t)test_random();
  }
  uint8_t *p = b->body;
  p = glyd_put_varint(p, n), p = glyd_put_varint(p, n_ll), p = glyd_put_varint(p, n_ml);
  p = glyd_put_varint(p, n_off), p = glyd_put_varint(p, n_far), p = glyd_put_varint(p, n_long);
  *p++ = (uint8_t)base;
  for (unsigned i = 0; own && i < 15; i++) *p++ = (uint8_t)table[i];
  memcpy(p, offsets, 2 * n_off), p += 2 * n_off;
  memcpy(p, tokens, n), p += n;
  memcpy(p, lls, n_ll), p += n_ll;
  memcpy(p, mls, n_ml), p += n_ml;
  memcpy(p, fars, n_far), p += n_far;
  memcpy(p, longs, n_long), p += n_long;
  memcpy(p, literals, n_lit), p += n_lit;
  b->body_len = (size_t)(p - b->body);
  b->flags = (own ? GLYD_PLAIN_FLAG_TABLE : 0) | (repeat ? GLYD_PLAIN_FLAG_REPEAT : 0);
  b->len = len;
}

static void test_generated(unsigned rounds) {
  static model_block b;
  static uint8_t result[GLYD_BLOCK_MAX + 1], prefix[200000], bad[1 << 20];
  for (size_t i = 0; i < sizeof prefix; i++) prefix[i] = (uint8_t)test_random();
  unsigned refused = 0, accepted = 0;
  for (unsigned r = 0; r < rounds; r++) {
    size_t prefix_len = test_below(3) ? test_below(300) : test_below(sizeof prefix);
    generate(&b, prefix, prefix_len, 1 + test_below(test_below(4) ? 300 : 3000), 0);
    size_t room = test_below(2) ? 0 : test_below(200), slack = test_below(2) ? 0 : test_below(400);
    CHECK(decode_both(prefix, prefix_len, result, b.len, room, b.flags, b.body, b.body_len, slack) == GLYD_OK);
    CHECK(memcmp(result, b.content, b.len) == 0);
    /* one byte of content more or less, one byte of body less: refused */
    CHECK(decode_both(prefix, prefix_len, result, b.len - 1, room, b.flags, b.body, b.body_len, 0) != GLYD_OK);
    CHECK(decode_both(prefix, prefix_len, result, b.len + 1, room, b.flags, b.body, b.body_len, 0) != GLYD_OK);
    CHECK(decode_both(prefix, prefix_len, result, b.len, room, b.flags, b.body, b.body_len - 1, 0) != GLYD_OK);
    CHECK(decode_both(prefix, prefix_len, result, b.len, room, b.flags | 0x10, b.body, b.body_len, 0) != GLYD_OK);
    for (unsigned k = 0; k < 6; k++) {
      memcpy(bad, b.body, b.body_len);
      for (size_t m = 1 + test_below(3); m > 0; m--) {
        size_t at = test_below(2) ? test_below(b.body_len) : test_below(b.body_len < 40 ? b.body_len : 40);
        bad[at] = (uint8_t)(test_below(2) ? test_random() : bad[at] ^ 1u << test_below(8));
      }
      if (decode_both(prefix, prefix_len, result, b.len, room, b.flags ^ (test_below(8) ? 0 : 4u << test_below(2)), bad,
                      b.body_len, slack) == GLYD_OK) {
        accepted++;
      } else {
        refused++;
      }
    }
  }
  /* bodies too large to be copied, without literals for over-reads to end in */
  for (unsigned r = 0, done = 0; done < 4; r++) {
    generate(&b, prefix, sizeof prefix, 65536, 1);
    if (b.body_len <= 65536 + 32) continue;
    done++;
    CHECK(decode_both(prefix, sizeof prefix, result, b.len, 0, b.flags, b.body, b.body_len, 0) == GLYD_OK);
    CHECK(memcmp(result, b.content, b.len) == 0);
    CHECK(decode_both(prefix, sizeof prefix, result, b.len, 0, b.flags, b.body, b.body_len - 1, 0) != GLYD_OK);
    b.body[40000] ^= 0x40;
    decode_both(prefix, sizeof prefix, result, b.len, 0, b.flags, b.body, b.body_len, 0);
  }
  printf("mutated blocks: %u refused, %u decoded\n", refused, accepted);
  CHECK(refused > 0 && accepted > 0);
}

/* ---- single rules --------------------------------------------------------- */

/* Body with one sequence of 4 literals and a match, then rest literals. */
static size_t tiny(uint8_t *body, unsigned base, unsigned off, unsigned token, size_t rest) {
  static const uint8_t head[] = {1, 0, 0, 1, 0, 0};
  memcpy(body, head, 6);
  body[6] = (uint8_t)base;
  glyd_store16(body + 7, (uint16_t)off);
  body[9] = (uint8_t)token;
  memset(body + 10, 'x', 4 + rest);
  return 14 + rest;
}

static void test_rules(void) {
  uint8_t body[4096], result[4096];
  size_t n = tiny(body, 4, 4, 4, 3);
  CHECK(decode_both(NULL, 0, result, 11, 0, 0, body, n, 0) == GLYD_OK);
  CHECK(memcmp(result, "xxxxxxxxxxx", 11) == 0);
  n = tiny(body, 4, 5, 4, 3); /* before the segment */
  CHECK(decode_both(NULL, 0, result, 11, 0, 0, body, n, 0) == GLYD_E_CORRUPT);
  CHECK(decode_both((const uint8_t *)"a", 1, result, 11, 0, 0, body, n, 0) == GLYD_OK);
  CHECK(memcmp(result, "xxxxaxxxxxx", 11) == 0);
  n = tiny(body, 4, 0, 4, 3); /* offset 0 */
  CHECK(decode_both(NULL, 0, result, 11, 0, 0, body, n, 0) == GLYD_E_CORRUPT);
  CHECK(decode_both(NULL, 0, result, 11, 0, GLYD_PLAIN_FLAG_REPEAT, body, n, 0) == GLYD_E_CORRUPT);
  n = tiny(body, 0, 4, 4, 3); /* match base 0 */
  CHECK(decode_both(NULL, 0, result, 7, 0, 0, body, n, 0) == GLYD_E_CORRUPT);
  n = tiny(body, 4, 4, 4, 3);
  body[0] = 0; /* no sequences */
  CHECK(decode_both(NULL, 0, result, 11, 0, 0, body, n, 0) == GLYD_E_CORRUPT);
  n = tiny(body, 4, 4, 4, 3);
  body[3] = 0; /* fewer offsets than sequences */
  CHECK(decode_both(NULL, 0, result, 11, 0, 0, body, n, 0) == GLYD_E_CORRUPT);
  /* the repeat form starts with offset 1 */
  n = tiny(body, 4, 4, 4 | 0x80, 3);
  body[3] = 0;
  memmove(body + 7, body + 9, n - 9);
  CHECK(decode_both(NULL, 0, result, 11, 0, GLYD_PLAIN_FLAG_REPEAT, body, n - 2, 0) == GLYD_OK);
  /* a long length beyond 2^18 */
  static const uint8_t large[] = {1, 0, 0, 1, 0, 3, 255, 4, 0, 4, 0x81, 0x80, 0x10, 'x', 'x', 'x', 'x'};
  CHECK(decode_both(NULL, 0, result, 263, 0, 0, large, sizeof large, 0) == GLYD_E_CORRUPT);
  static const uint8_t longer[] = {1, 0, 0, 1, 0, 1, 255, 4, 0, 4, 4, 'x', 'x', 'x', 'x'};
  CHECK(decode_both(NULL, 0, result, 263, 0, 0, longer, sizeof longer, 0) == GLYD_OK);
  /* every prefix of a body, every first byte */
  for (size_t cut = 0; cut < n - 2; cut++) {
    CHECK(decode_both(NULL, 0, result, 11, 0, GLYD_PLAIN_FLAG_REPEAT, body, cut, 0) == GLYD_E_CORRUPT);
  }
}

int main(int argc, char **argv) {
  test_rules();
  test_round_trips();
  test_generated(argc > 1 ? (unsigned)atoi(argv[1]) : 400);
  printf("test_block_plain: %u decodes\n1 passed, 0 failed\n", checks);
  return 0;
}
