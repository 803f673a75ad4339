/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Fields pieces and weights segments: every layout that the writer knows, and
 * others, comes back over guard pages with each CPU variant; the variants write
 * the same bytes; what is cut or changed never reads or writes outside.
 */
#include "codec_test.h"
#include "common/cpu.h"
#include "fields/fields_choose_encode.h"
#include "fields/fields_decode.h"
#include "fields/fields_difference_decode.h"
#include "fields/fields_difference_encode.h"
#include "fields/fields_encode.h"
#include "glyd/base.h"
#include "glyd/glyd.h"
#include "segment/segment_weights_decode.h"
#include "segment/segment_weights_encode.h"

#define MOST ((size_t)1 << 20)

static unsigned variants[2];
static unsigned n_variants;
static void *workspace;

/* Numbers of a width like those of models: bell-shaped around 0, as bf16 (2, 1),
 * fp16 (2, 0), fp32 (4, 1), fp64 (8, 1); scale of powers of two moves their exponents. */
static double normal(void) {
  double sum = 0;
  for (int i = 0; i < 12; i++) sum += (double)(test_random() & 0xFFFF) / 65536;
  return (sum - 6) * 0.02;
}

static void put_number(uint8_t *p, unsigned width, int is_half) {
  if (width == 8) {
    const double v = normal();
    memcpy(p, &v, 8);
    return;
  }
  const float v = (float)normal();
  uint32_t bits;
  memcpy(&bits, &v, 4);
  if (width == 4) {
    memcpy(p, &bits, 4);
  } else if (is_half) { /* exponents of such numbers are far from the ends of fp16's range */
    const uint32_t e = (bits >> 23) & 255, half = e < 113 ? 0 : (e - 112) << 10 | (bits >> 13 & 0x3FF);
    p[0] = (uint8_t)half;
    p[1] = (uint8_t)(half >> 8 | (bits >> 31) << 7);
  } else {
    memcpy(p, (uint8_t *)&bits + 2, 2);
  }
}

static void fill_numbers(uint8_t *p, size_t n, unsigned width, int is_half) {
  size_t i = 0;
  for (; i + width <= n; i += width) put_number(p + i, width, is_half);
  for (; i < n; i++) p[i] = 0;
}

/* Elements of a fp16 scale and noise. */
static void fill_blocks(uint8_t *p, size_t n, size_t period, size_t scale_at) {
  for (size_t i = 0; i < n; i++) p[i] = (uint8_t)test_random();
  for (size_t i = 0; i + period <= n; i += period) {
    put_number(p + i + scale_at, 2, 1);
    p[i + scale_at + 1] &= 0x7F;
  }
}

static void check_layout(const glyd_fields_layout *layout, const uint8_t *in, size_t len) {
  static uint8_t first[MOST + 4096], out[MOST + 4096];
  size_t first_len = 0;
  guarded from = guarded_new(len, (int)test_below(2));
  memcpy(from.p, in, len);
  for (unsigned v = 0; v < n_variants; v++) {
    size_t n = 0;
    CHECK(glyd_fields_encode(variants[v], workspace, layout, from.p, len, v == 0 ? first : out, sizeof out, &n) ==
          GLYD_OK);
    if (v == 0) first_len = n;
    CHECK(n == first_len && memcmp(first, v == 0 ? first : out, n) == 0);
  }
  /* exactly the room it takes does, and one byte less does not */
  size_t n = 0;
  guarded exact = guarded_new(first_len, 0);
  CHECK(glyd_fields_encode(variants[0], workspace, layout, from.p, len, exact.p, first_len, &n) == GLYD_OK);
  CHECK(n == first_len && memcmp(exact.p, first, n) == 0);
  CHECK(glyd_fields_encode(variants[0], workspace, layout, from.p, len, exact.p, first_len - 1, &n) == GLYD_E_BUFFER);
  memcpy(exact.p, first, first_len);
  for (unsigned v = 0; v < n_variants; v++) {
    guarded to = guarded_new(len, (int)test_below(2));
    CHECK(glyd_fields_decode(variants[v], workspace, to.p, len, exact.p, first_len, 0, NULL, 0) == GLYD_OK);
    CHECK(memcmp(to.p, in, len) == 0);
    for (int i = 0; i < 4; i++) { /* cut */
      const size_t cut = test_below(first_len);
      guarded less = guarded_new(cut, 0);
      memcpy(less.p, first, cut);
      CHECK(glyd_fields_decode(variants[v], workspace, to.p, len, less.p, cut, 0, NULL, 0) == GLYD_E_CORRUPT);
      guarded_free(less);
    }
    guarded_free(to);
  }
  guarded_free(exact);
  guarded_free(from);
}

static void test_layouts(void) {
  static uint8_t content[MOST];
  for (int i = 0; i < 300; i++) {
    glyd_fields_layout layout = {.n_runs = (uint8_t)(1 + test_below(GLYD_FIELDS_RUNS_MAX))};
    const int numbers = i % 2;
    if (numbers) layout.n_runs = (uint8_t)(1 << test_below(4));
    layout.sign_moved = (uint8_t)(numbers && layout.n_runs > 1 && test_below(2));
    for (unsigned j = 0; j < layout.n_runs; j++) {
      layout.run[j] = (uint8_t)(numbers || test_below(2) ? 1 : 1 + test_below(255));
      layout.period += layout.run[j];
    }
    const size_t most = test_below(8) == 0 ? MOST : 5000, n = 1 + test_below(most / layout.period);
    const size_t len = n * layout.period;
    switch (test_below(3)) {
    case 0: fill_numbers(content, len, layout.n_runs >= 8 ? 8 : layout.n_runs >= 4 ? 4 : 2, 0); break;
    case 1: fill_blocks(content, len, layout.period + 2, 0); break;
    default: test_content((unsigned)test_below(TEST_KINDS), content, len); break;
    }
    check_layout(&layout, content, len);
  }
}

/* ---- differences ------------------------------------------------------------------ */

static void check_difference(size_t period, const uint8_t *in, const uint8_t *older, size_t len) {
  static uint8_t first[2 * MOST + 4096];
  size_t n = 0, m = 0;
  guarded from = guarded_new(len, (int)test_below(2)), before = guarded_new(len, (int)test_below(2));
  memcpy(from.p, in, len);
  memcpy(before.p, older, len);
  CHECK(glyd_fields_difference_encode(variants[0], workspace, period, from.p, before.p, len, first, sizeof first, &n) ==
        GLYD_OK);
  guarded exact = guarded_new(n, 0);
  for (unsigned v = 0; v < n_variants; v++) {
    CHECK(glyd_fields_difference_encode(variants[v], workspace, period, from.p, before.p, len, exact.p, n, &m) ==
          GLYD_OK);
    CHECK(m == n && memcmp(exact.p, first, n) == 0);
    CHECK(glyd_fields_difference_encode(variants[v], workspace, period, from.p, before.p, len, exact.p, n - 1, &m) ==
          GLYD_E_BUFFER);
    memcpy(exact.p, first, n);
    guarded to = guarded_new(len, (int)test_below(2));
    CHECK(glyd_fields_difference_decode(variants[v], workspace, to.p, len, before.p, exact.p, n, 0, NULL, 0) ==
          GLYD_OK);
    CHECK(memcmp(to.p, in, len) == 0);
    for (int i = 0; i < 4; i++) {
      const size_t cut = test_below(n);
      guarded less = guarded_new(cut, 0);
      memcpy(less.p, first, cut);
      CHECK(glyd_fields_difference_decode(variants[v], workspace, to.p, len, before.p, less.p, cut, 0, NULL, 0) ==
            GLYD_E_CORRUPT);
      guarded_free(less);
    }
    for (int i = 0; i < 4; i++) { /* damage stays inside */
      exact.p[test_below(i % 2 ? n : n < 30 ? n : 30)] ^= (uint8_t)(1u << test_below(8));
      (void)glyd_fields_difference_decode(variants[v], workspace, to.p, len, before.p, exact.p, n, 0, NULL, 0);
    }
    memcpy(exact.p, first, n);
    guarded_free(to);
  }
  guarded_free(exact);
  guarded_free(before);
  guarded_free(from);
}

/* Add up to 2^bits to some of the numbers. */
static void train(uint8_t *p, size_t n, size_t width, unsigned bits, unsigned one_of) {
  for (size_t i = 0; i + width <= n; i += width) {
    if (test_below(one_of) != 0) continue;
    uint64_t v = glyd_fields_difference_number(p + i, width);
    v += (test_random() & (((uint64_t)2 << bits) - 1)) - ((uint64_t)1 << bits);
    for (size_t j = 0; j < width; j++) p[i + j] = (uint8_t)(v >> (8 * j));
  }
}

static void test_differences(void) {
  static uint8_t older[MOST], content[MOST];
  for (int i = 0; i < 300; i++) {
    const size_t period = (size_t)1 << test_below(4), n = 1 + test_below((i % 8 ? 5000 : MOST) / period);
    const size_t len = n * period;
    test_content((unsigned)test_below(TEST_KINDS), older, len);
    memcpy(content, older, len);
    if (i % 5 == 0)
      test_content((unsigned)test_below(TEST_KINDS), content, len);
    else
      train(content, len, period, (unsigned)test_below(8 * period - 1), 1 + (unsigned)test_below(30));
    check_difference(period, content, older, len);
  }
}

/* Bodies whose escapes, groups or bits do not fit, and their like that do. */
static void test_wrong_differences(void) {
  static const uint8_t older[4] = {0, 0, 0x80, 0x3F}; /* classes 0 and 127 */
  static const struct {
    uint8_t body[16];
    size_t n;
    glyd_status status;
  } bodies[] = {
      {{2, 1, 1, 8, 255, 7, 4, 1, 4, 0}, 10, GLYD_OK},              /* 255 + 1 and 7 */
      {{2, 1, 1, 8, 255, 7, 4, 0xFF, 4, 0xFF}, 10, GLYD_E_CORRUPT}, /* 255 + 65535 */
      {{2, 1, 1, 8, 255, 7, 0, 4, 0}, 9, GLYD_E_CORRUPT},           /* no low byte */
      {{2, 1, 1, 8, 6, 7, 4, 1, 4, 0}, 10, GLYD_E_CORRUPT},         /* an escape that nothing asks for */
      {{2, 1, 1, 8, 6, 7, 0, 0}, 8, GLYD_OK},
      {{2, 1, 0, 8, 6, 7, 0, 0}, 8, GLYD_E_CORRUPT}, /* m */
      {{2, 1, 3, 8, 6, 7, 0, 0}, 8, GLYD_E_CORRUPT},
      {{2, 1, 0x41, 8, 6, 7, 0, 0}, 8, GLYD_E_CORRUPT},
      {{3, 1, 1, 8, 6, 7, 0, 0}, 8, GLYD_E_CORRUPT}, /* P */
      {{0, 1, 1, 8, 6, 7, 0, 0}, 8, GLYD_E_CORRUPT},
      {{8, 1, 1, 8, 6, 7, 0, 0}, 8, GLYD_E_CORRUPT}, /* 4 bytes are no numbers of 8 */
      {{2, 1, 2, 8, 255, 7, 8, 255, 0}, 9, GLYD_OK}, /* m = P: 255 is itself */
      {{2, 1, 1, 8, 6, 7, 0, 0, 0}, 9, GLYD_E_CORRUPT},
      {{1, 1, 1, 16, 255, 7, 0, 255}, 8, GLYD_OK},
      {{2, 0, 1, 8, 6, 7, 0, 0}, 8, GLYD_E_CORRUPT}, /* groups */
      {{2, 5, 1, 2, 3, 4, 1, 8, 6, 7, 0, 0}, 12, GLYD_E_CORRUPT},
      {{1, 2, 9, 1, 16, 255, 7, 0, 255}, 9, GLYD_E_CORRUPT},
      {{2, 2, 9, 1, 4, 6, 0, 0, 1, 4, 7, 0, 0}, 13, GLYD_OK}, /* one in each */
      {{2, 2, 127, 1, 4, 6, 0, 0, 1, 4, 7, 0, 0}, 13, GLYD_OK},
      {{2, 2, 128, 1, 8, 6, 7, 0, 0}, 9, GLYD_OK}, /* both in the first */
      {{2, 4, 1, 2, 3, 1, 4, 6, 0, 0, 1, 4, 7, 0, 0}, 15, GLYD_OK},
      {{2, 2, 0, 1, 8, 6, 7, 0, 0}, 9, GLYD_E_CORRUPT}, /* bounds */
      {{2, 3, 9, 9, 1, 4, 6, 0, 0, 1, 4, 7, 0, 0}, 14, GLYD_E_CORRUPT},
      {{2, 3, 9, 8, 1, 4, 6, 0, 0, 1, 4, 7, 0, 0}, 14, GLYD_E_CORRUPT},
      {{2, 4, 1, 2}, 4, GLYD_E_CORRUPT},
      {{2, 2, 9, 1, 4, 6, 0, 0}, 8, GLYD_E_CORRUPT}, /* one group is missing */
      {{4, 2, 9, 1, 4, 6, 0, 0, 0, 0}, 10, GLYD_OK},
      {{2, 1, 0x81, 4, 2, 4, 6, 0, 0}, 9, GLYD_OK},            /* 0 and 7 */
      {{2, 1, 0x81, 4, 0}, 5, GLYD_OK},                        /* zeros alone */
      {{2, 1, 0x81, 4, 4, 4, 6, 0, 0}, 9, GLYD_E_CORRUPT},     /* a bit for a third number */
      {{2, 1, 0x81, 8, 2, 0, 4, 6, 0, 0}, 10, GLYD_E_CORRUPT}, /* two bytes of bits */
      {{2, 1, 0x80, 4, 2, 4, 6, 0, 0}, 9, GLYD_E_CORRUPT},     /* m */
      {{2, 1, 0x82, 4, 2, 4, 255, 4, 255}, 9, GLYD_E_CORRUPT}, /* 65535 + 1 */
      {{2, 1, 0x82, 4, 2, 4, 254, 4, 255}, 9, GLYD_OK},
      {{2, 1, 0x81, 4, 2, 8, 6, 7, 0, 0}, 10, GLYD_E_CORRUPT}, /* one number too many */
      {{1, 1, 0x81, 4, 15, 16, 1, 2, 3, 255}, 10, GLYD_E_CORRUPT},
      {{1, 1, 0x81, 4, 15, 16, 1, 2, 3, 254}, 10, GLYD_OK},
      {{2}, 1, GLYD_E_CORRUPT},
      {{2, 1}, 2, GLYD_E_CORRUPT},
  };
  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
    guarded in = guarded_new(bodies[i].n, 0), out = guarded_new(4, 0);
    memcpy(in.p, bodies[i].body, bodies[i].n);
    for (unsigned v = 0; v < n_variants; v++)
      CHECK(glyd_fields_difference_decode(variants[v], workspace, out.p, 4, older, in.p, bodies[i].n, 0, NULL, 0) ==
            bodies[i].status);
    guarded_free(in);
    guarded_free(out);
  }
}

/* ---- whole segments ------------------------------------------------------------ */

static size_t encode_segment(unsigned cpu, int level, const uint8_t *in, size_t len, uint8_t *out, size_t cap) {
  const glyd_lz_config config = {.level = level, .segment_size = len, .cpu = cpu};
  void *memory = aligned_alloc(64, (glyd_segment_weights_encode_workspace(&config) + 63) & ~(size_t)63);
  CHECK(memory != NULL);
  const glyd_segment_older older = {NULL, 0};
  size_t n = 0, n_differences = 1;
  const glyd_status status =
      glyd_segment_weights_encode(&config, memory, &older, in, len, out, cap, &n, &n_differences);
  CHECK(status == GLYD_OK || status == GLYD_E_BUFFER);
  free(memory);
  return status == GLYD_OK ? n : 0;
}

/* Encode, compare variants, decode; returns the size. */
static size_t check_segment(int level, const uint8_t *in, size_t len) {
  static uint8_t out[2][2 * MOST];
  size_t n = 0;
  for (unsigned v = 0; v < n_variants; v++) {
    guarded from = guarded_new(len, (int)test_below(2));
    memcpy(from.p, in, len);
    n = encode_segment(variants[v], level, from.p, len, out[v], len > 1 ? len - 1 : 1);
    CHECK(memcmp(out[0], out[v], n) == 0);
    guarded_free(from);
  }
  if (n == 0) return 0;
  guarded stored = guarded_new(n, 0), to = guarded_new(len, 0);
  memcpy(stored.p, out[0], n);
  for (unsigned v = 0; v < n_variants; v++) {
    memset(to.p, 0, len);
    CHECK(glyd_segment_weights_decode(variants[v], workspace, NULL, to.p, len, stored.p, n, NULL) == GLYD_OK);
    CHECK(memcmp(to.p, in, len) == 0);
  }
  for (int i = 0; i < 30; i++) { /* damage: any status, and nothing outside; variants agree */
    memcpy(stored.p, out[0], n);
    const size_t at = i % 2 ? test_below(n) : test_below(n < 40 ? n : 40);
    stored.p[at] = (uint8_t)(stored.p[at] ^ (1u << test_below(8)));
    const glyd_status first = glyd_segment_weights_decode(variants[0], workspace, NULL, to.p, len, stored.p, n, NULL);
    for (unsigned v = 1; v < n_variants; v++)
      CHECK(glyd_segment_weights_decode(variants[v], workspace, NULL, to.p, len, stored.p, n, NULL) == first);
  }
  guarded_free(stored);
  guarded_free(to);
  return n;
}

/* Savings that the formats have: a search that misses one shows here. before:
 * bytes of text in front, so that phases vary. */
static void test_savings(void) {
  static uint8_t content[MOST];
  static const struct {
    unsigned width;
    int is_half;
    double at_most;
  } numbers[] = {{2, 0, .69}, {2, 1, .87}, {4, 0, .85}, {8, 0, .92}};
  static const size_t blocks[] = {18, 20, 22, 24, 34};
  for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_ULTRA; level++) {
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
      for (size_t before = 0; before < 9; before++) {
        const size_t len = 300000;
        test_content(5, content, before * 999);
        fill_numbers(content + before * 999, len, numbers[k].width, numbers[k].is_half);
        const size_t n = check_segment(level, content, before * 999 + len);
        CHECK(n > 0 && (double)n < numbers[k].at_most * (double)(before * 999 + len));
      }
    }
    for (size_t k = 0; k < sizeof blocks / sizeof blocks[0]; k++) {
      const size_t before = test_below(500), period = blocks[k], len = 700000;
      test_content(0, content, before);
      fill_blocks(content + before, len, period, 0);
      const size_t n = check_segment(level, content, before + len);
      /* the high byte of the scale takes less than six of its bits */
      CHECK(n > 0 && (double)n < (double)(before + len) * (1 - 0.25 / (double)period));
    }
  }
}

/* Tensors that are there twice, far apart: LZ has the second one for nothing. */
static void test_repeats(void) {
  static uint8_t content[MOST];
  fill_numbers(content, MOST / 2, 2, 0);
  memcpy(content + MOST / 2, content, MOST / 2);
  CHECK(check_segment(GLYD_LEVEL_MAX, content, MOST) == 0);
  fill_numbers(content + MOST / 2, MOST / 4, 2, 0); /* a quarter twice: fields save more */
  memcpy(content + MOST / 4 * 3, content, MOST / 4);
  CHECK(check_segment(GLYD_LEVEL_MAX, content, MOST) > 0);
  memset(content, 0, MOST / 2); /* zeros do not count */
  fill_numbers(content + MOST / 2, MOST / 2, 2, 0);
  CHECK(check_segment(GLYD_LEVEL_MAX, content, MOST) > 0);
}

static void test_segments(void) {
  static uint8_t content[MOST];
  for (int i = 0; i < 400; i++) { /* stretches of any kind */
    const size_t len = 1 + test_below(i % 10 ? 20000 : MOST - 1);
    for (size_t at = 0; at < len;) {
      const size_t n = 1 + test_below(len - at);
      switch (test_below(4)) {
      case 0: fill_numbers(content + at, n, 2u << test_below(3), (int)test_below(2)); break;
      case 1: fill_blocks(content + at, n, 18 + test_below(200), test_below(16)); break;
      default: test_content((unsigned)test_below(TEST_KINDS), content + at, n); break;
      }
      at += n;
    }
    (void)check_segment(GLYD_LEVEL_TURBO + i % 4, content, len);
  }
}

/* ---- frames ---------------------------------------------------------------------- */

static void test_sniff(void) {
  static const struct {
    const char *bytes;
    size_t len;
    int is_model;
  } starts[] = {
      {"\x20\0\0\0\0\0\0\0{\"a\":", 13, 1},
      {"\x20\0\0\0\0\0\0\0{ \"a", 12, 1},
      {"\2\0\0\0\0\0\0\0{}", 10, 1},
      {"\x20\0\0\0\0\0\0\0[\"a\":", 13, 0},
      {"\0\0\0\0\0\0\0\1{\"a\":", 13, 0},
      {"\x20\0\0\0\0\0\0\0{", 9, 0},
      {"GGUF\3\0\0\0", 8, 1},
      {"GGUF\0\0\0\3", 8, 0},
      {"GGUF\3\0\0", 7, 0},
      {"\x93NUMPY\1\0", 8, 1},
      {"\x93NUMPY\1", 7, 0},
      {"", 0, 0},
      {"PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0a\0\0\0a/data.pkl", 40, 1},
      {"PK\3\4\0\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0a\0\0\0a/data.pkl", 40, 0}, /* deflated */
      {"PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\0\0a/data.pkl", 40, 0}, /* a name past the end */
      {"PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0a.npy", 35, 1},
      {"PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0a.txt", 35, 0},
      {"\x80\2\x8a\n\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14, 1},
  };
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
    guarded in = guarded_new(starts[i].len, 0);
    memcpy(in.p, starts[i].bytes, starts[i].len);
    CHECK(glyd_fields_sniff(in.p, starts[i].len) == starts[i].is_model);
    guarded_free(in);
  }
}

static int first_kind(const uint8_t *frame, size_t len) {
  glyd_frame_info info;
  glyd_segment_info segment;
  CHECK(glyd_read_frame_header(frame, len, &info, NULL) == GLYD_OK);
  CHECK(glyd_read_segment_header(frame + info.header_size, len - info.header_size, &info, &segment, NULL) == GLYD_OK);
  return segment.kind;
}

/* One call and streams in any pieces give the same frame, in each mode; off is as it ever was. */
static void test_frames(void) {
  static uint8_t content[400000], one[500000], two[500000], back[400000];
  static const char head[] = "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"BF16\",\"shape\":[9],\"data_offsets\":[0,18]}} ";
  for (int is_model = 0; is_model < 2; is_model++) {
    fill_numbers(content, sizeof content, 2, 0);
    if (is_model) memcpy(content, head, sizeof head - 1);
    for (int weights = GLYD_WEIGHTS_OFF; weights <= GLYD_WEIGHTS_ON; weights++) {
      const int expected = weights == GLYD_WEIGHTS_ON || (weights == GLYD_WEIGHTS_AUTO && is_model);
      glyd_params params;
      glyd_params_init(&params, GLYD_LEVEL_TURBO + weights);
      params.weights = weights;
      params.segment_size = 50000;
      size_t n = 0, m = 0;
      CHECK(glyd_compress(one, sizeof one, content, sizeof content, &params, &n) == GLYD_OK);
      CHECK((first_kind(one, n) == GLYD_KIND_WEIGHTS) == expected);
      CHECK(glyd_decompress(back, sizeof back, one, n, 2, NULL, NULL, &m, NULL) == GLYD_OK);
      CHECK(m == sizeof content && memcmp(back, content, m) == 0);
      glyd_cctx *ctx;
      params.content_size = sizeof content;
      params.threads = 1 + weights;
      CHECK(glyd_cctx_create(&ctx, &params) == GLYD_OK);
      for (int frames = 0; frames < 2; frames++) { /* what a frame starts with decides for it alone */
        glyd_in in = {content, 0, 0};
        glyd_out out = {two, sizeof two, 0};
        size_t pending;
        while (in.size < sizeof content) {
          in.size += 1 + test_below(sizeof content - in.size);
          CHECK(glyd_compress_stream(ctx, &out, &in, GLYD_CONTINUE, &pending) == GLYD_OK);
        }
        CHECK(glyd_compress_stream(ctx, &out, &in, GLYD_END, &pending) == GLYD_OK && pending == 0);
        CHECK(out.pos == n && memcmp(one, two, n) == 0);
      }
      glyd_cctx_free(ctx);
    }
  }
  glyd_params params;
  size_t n;
  glyd_params_init(&params, GLYD_LEVEL_MAX);
  for (int wrong = -1; wrong < 4; wrong += 4) {
    params.weights = wrong;
    CHECK(glyd_compress(one, sizeof one, content, 10, &params, &n) == GLYD_E_PARAMETER);
  }
}

/* A model that was trained further, against the one before: every width, with headers of other sizes, in
 * segments of any size, streamed and not. */
static void test_against_base(void) {
  static uint8_t older[MOST], content[MOST], one[MOST + 4096], two[MOST + 4096], back[MOST];
  for (unsigned width = 2; width <= 4; width += 2) {
    for (int more = 0; more < 3; more++) { /* 16 bytes more of header each */
      const size_t head = 64, new_head = head + 16 * (size_t)more, numbers = 600000;
      memset(older, ' ', sizeof older);
      memset(content, ' ', sizeof content);
      memset(older, 0, 8);
      memset(content, 0, 8);
      older[0] = (uint8_t)(head - 8);
      content[0] = (uint8_t)(new_head - 8);
      older[8] = content[8] = '{';
      fill_numbers(older + head, numbers, width, 0);
      memcpy(content + new_head, older + head, numbers);
      train(content + new_head, numbers, width, width == 2 ? 3 : 12, 2);
      const size_t len = new_head + numbers;
      glyd_base *base;
      CHECK(glyd_base_create(&base, older, head + numbers, 0, NULL) == GLYD_OK && glyd_base_index(base) == GLYD_OK);
      glyd_params params;
      glyd_params_init(&params, GLYD_LEVEL_TURBO + more);
      params.base = base;
      params.segment_size = more == 2 ? 0 : 100000;
      params.threads = 1 + more;
      size_t n, m = 0;
      CHECK(glyd_compress(one, sizeof one, content, len, &params, &n) == GLYD_OK);
      CHECK(first_kind(one, n) == GLYD_KIND_WEIGHTS);
      CHECK((double)n < (width == 2 ? .32 : .48) * (double)len);
      glyd_error error;
      CHECK(glyd_decompress_base(back, sizeof back, one, n, base, 2, NULL, NULL, &m, &error) == GLYD_OK);
      CHECK(m == len && memcmp(back, content, len) == 0);
      CHECK(glyd_decompress(back, sizeof back, one, n, 1, NULL, NULL, &m, &error) == GLYD_E_BASE_MISSING);
      glyd_cctx *ctx;
      params.content_size = len;
      CHECK(glyd_cctx_create(&ctx, &params) == GLYD_OK);
      glyd_in in = {content, 0, 0};
      glyd_out out = {two, sizeof two, 0};
      size_t pending;
      while (in.size < len) {
        in.size += 1 + test_below(len - in.size);
        CHECK(glyd_compress_stream(ctx, &out, &in, GLYD_CONTINUE, &pending) == GLYD_OK);
      }
      CHECK(glyd_compress_stream(ctx, &out, &in, GLYD_END, &pending) == GLYD_OK && pending == 0);
      CHECK(out.pos == n && memcmp(one, two, n) == 0);
      glyd_cctx_free(ctx);
      glyd_base_free(base);
    }
  }
}

/* A place past the end of the base, and a difference where there is no base. */
static void test_wrong_places(void) {
  static const uint8_t bytes[8] = "abcdefgh";
  glyd_base *base;
  CHECK(glyd_base_create(&base, bytes, sizeof bytes, 0, NULL) == GLYD_OK);
  for (uint8_t place = 0; place < 10; place++) {
    const uint8_t payload[] = {GLYD_PIECE_DIFFERENCE, 4, 9, place, 2, 1, 1, 8, 2, 2, 0, 0};
    uint8_t out[4];
    const glyd_status status =
        glyd_segment_weights_decode(variants[0], workspace, base, out, 4, payload, sizeof payload, NULL);
    CHECK(status == (place <= 4 ? GLYD_OK : GLYD_E_CORRUPT));
    if (status == GLYD_OK) CHECK(out[0] == bytes[place] + 1 && out[1] == bytes[place + 1]);
    CHECK(glyd_segment_weights_decode(variants[0], workspace, NULL, out, 4, payload, sizeof payload, NULL) ==
          GLYD_E_CORRUPT);
  }
  glyd_base_free(base);
}

int main(void) {
  variants[n_variants++] = GLYD_CPU_SCALAR;
  if (glyd_cpu_features() & GLYD_CPU_AVX2) variants[n_variants++] = glyd_cpu_features();
  const size_t sizes[] = {glyd_segment_weights_decode_workspace(), glyd_fields_encode_workspace(),
                          glyd_fields_difference_encode_workspace()};
  size_t most = 0;
  for (size_t i = 0; i < 3; i++) most = sizes[i] > most ? sizes[i] : most;
  CHECK(glyd_segment_weights_decode_workspace() <= ((size_t)1 << 20) - ((size_t)64 << 10));
  workspace = aligned_alloc(64, (most + 63) & ~(size_t)63);
  CHECK(workspace != NULL);
  test_sniff();
  test_layouts();
  test_differences();
  test_wrong_differences();
  test_savings();
  test_repeats();
  test_segments();
  test_frames();
  test_against_base();
  test_wrong_places();
  free(workspace);
  return 0;
}
