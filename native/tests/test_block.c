/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Payloads of LZ segments, all levels: round trips of many kinds of content,
 * memory limits of encoder and decoder, same bytes on every variant, blocks of
 * different types in one segment, broken and mutated payloads.
 */
#include "block/block_decode.h"
#include "block/block_encode.h"
#include "codec_test.h"
#include "common/cpu.h"
#include "common/mem.h"

static unsigned variants[2];
static unsigned n_variants;

static void *aligned(size_t n) {
  void *p = aligned_alloc(64, (n + 63) & ~(size_t)63);
  CHECK(p != NULL);
  memset(p, 0xA5, n);
  return p;
}

/* Decode with every variant, input and output at the edge of readable memory:
 * all agree. out may be NULL. */
static glyd_status decode(const uint8_t *in, size_t len, uint8_t *out, size_t out_len) {
  static void *workspace;
  if (workspace == NULL) workspace = aligned(glyd_lz_decode_workspace());
  glyd_status first = GLYD_OK;
  guarded from = guarded_new(len, 0), to[2];
  memcpy(from.p, in, len);
  for (unsigned v = 0; v < n_variants; v++) {
    to[v] = guarded_new(out_len, (int)(v + test_below(2)) & 1);
    glyd_status status = glyd_lz_decode(variants[v], workspace, to[v].p, out_len, from.p, len, NULL);
    if (v == 0)
      first = status;
    else
      CHECK(status == first && (status != GLYD_OK || memcmp(to[0].p, to[v].p, out_len) == 0));
  }
  if (first == GLYD_OK && out != NULL) memcpy(out, to[0].p, out_len);
  for (unsigned v = 0; v < n_variants; v++) guarded_free(to[v]);
  guarded_free(from);
  return first;
}

/* Encode with every variant: same bytes. Returns 0 when it does not fit cap. */
static size_t encode(int level, int long_distance, uint64_t segment_size, const uint8_t *in, size_t len, uint8_t *out,
                     size_t cap) {
  size_t out_len[2] = {0, 0};
  glyd_status status[2] = {GLYD_E_STATE, GLYD_E_STATE};
  guarded from = guarded_new(len, (int)test_below(2)), to[2];
  memcpy(from.p, in, len);
  for (unsigned v = 0; v < n_variants; v++) {
    const glyd_lz_config config = {level, long_distance, segment_size, variants[v]};
    void *workspace = aligned(glyd_lz_encode_workspace(&config));
    to[v] = guarded_new(cap, (int)v);
    status[v] = glyd_lz_encode(&config, workspace, from.p, len, to[v].p, cap, &out_len[v]);
    free(workspace);
  }
  CHECK(status[0] == GLYD_OK || status[0] == GLYD_E_BUFFER);
  if (n_variants == 2) {
    CHECK(status[1] == status[0]);
    if (status[0] == GLYD_OK) CHECK(out_len[0] == out_len[1] && memcmp(to[0].p, to[1].p, out_len[0]) == 0);
  }
  if (status[0] == GLYD_OK) memcpy(out, to[0].p, out_len[0]);
  for (unsigned v = 0; v < n_variants; v++) guarded_free(to[v]);
  guarded_free(from);
  return status[0] == GLYD_OK ? out_len[0] : 0;
}

static size_t bound(size_t len) { return len + 16 * (len / GLYD_BLOCK_MAX + 1) + 4096; }

static void test_round_trips(void) {
  static const size_t sizes[] = {1,  2,  3,  4,   5,   8,    11,   12,    13,    15,     16,     17,     24,
                                 31, 33, 60, 100, 250, 1000, 4096, 20000, 70000, 262143, 262144, 262145, 600000};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    for (unsigned kind = 0; kind < TEST_KINDS; kind++)
      for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_ULTRA; level++) {
        const size_t n = sizes[k];
        if (level == GLYD_LEVEL_ULTRA && n > 262145) continue; /* slow, and three blocks are no other case */
        uint8_t *in = malloc(n), *out = malloc(bound(n)), *back = malloc(n);
        test_content(kind, in, n);
        const size_t len = encode(level, level >= GLYD_LEVEL_MAX && k % 2, n, in, n, out, bound(n));
        CHECK(len > 0 && len <= n + 16 * (n / GLYD_BLOCK_MAX + 1));
        CHECK(decode(out, len, back, n) == GLYD_OK && memcmp(in, back, n) == 0);
        if (n <= 70000) {
          CHECK(encode(level, level >= GLYD_LEVEL_MAX && k % 2, n, in, n, out, len) == len);
          CHECK(encode(level, level >= GLYD_LEVEL_MAX && k % 2, n, in, n, back, len - 1) == 0);
        }
        /* sizes that lie, and input that ends early or late */
        CHECK(decode(out, len - 1, NULL, n) == GLYD_E_CORRUPT);
        CHECK(decode(out, len, NULL, n - 1) == GLYD_E_CORRUPT);
        CHECK(decode(out, len, NULL, n + 1) == GLYD_E_CORRUPT);
        out[len] = 0;
        CHECK(decode(out, len + 1, NULL, n) == GLYD_E_CORRUPT);
        free(in);
        free(out);
        free(back);
      }
}

/* A segment over 4 MiB: positions wrap in the match finders. */
static void test_large(void) {
  const size_t n = ((size_t)9 << 20) + 12345;
  uint8_t *in = malloc(n), *out = malloc(bound(n)), *back = malloc(n);
  for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_HIGH + 1; level++) {
    test_content(level & 1 ? 5 : 3, in, n);
    memcpy(in + ((size_t)8 << 20), in, 500000);
    const int real = level <= GLYD_LEVEL_HIGH ? level : GLYD_LEVEL_MAX;
    const size_t len = encode(real, level > GLYD_LEVEL_HIGH, (uint64_t)16 << 20, in, n, out, bound(n));
    CHECK(len > 0 && decode(out, len, back, n) == GLYD_OK && memcmp(in, back, n) == 0);
  }
  free(in);
  free(out);
  free(back);
}

/* A repetition farther back than other finders reach. */
static void test_long_distance(void) {
  const size_t half = (size_t)5 << 20, n = 2 * half + 777;
  uint8_t *in = malloc(n), *out = malloc(bound(n)), *back = malloc(n);
  test_content(0, in, half + 777);
  memcpy(in + half + 777, in, half);
  in[half + 777 + half / 3] ^= 1; /* found again after a change */
  const size_t near = encode(GLYD_LEVEL_MAX, 0, n, in, n, out, bound(n));
  CHECK(near > n);
  const size_t len = encode(GLYD_LEVEL_MAX, 1, n, in, n, out, bound(n));
  CHECK(len > half && len < half + 3000);
  CHECK(decode(out, len, back, n) == GLYD_OK && memcmp(in, back, n) == 0);
  free(in);
  free(out);
  free(back);
}

/* Payloads of two levels, a raw and a fill block, one after the other. */
static void test_mixed(void) {
  enum { PART = 30000 };
  static uint8_t in[4 * PART], out[8 * PART], back[4 * PART];
  test_content(5, in, PART);
  test_content(6, in + PART, PART);
  test_content(0, in + 2 * PART, PART / 2);
  memset(in + 2 * PART + PART / 2, 'f', PART / 2);
  test_content(5, in + 3 * PART, PART);
  size_t len = encode(GLYD_LEVEL_MAX, 0, PART, in, PART, out, sizeof out);
  len += encode(GLYD_LEVEL_DEFAULT, 0, PART, in + PART, PART, out + len, sizeof out - len);
  out[len++] = GLYD_BLOCK_RAW;
  len = (size_t)(glyd_put_varint(glyd_put_varint(out + len, PART / 2), PART / 2) - out);
  memcpy(out + len, in + 2 * PART, PART / 2);
  len += PART / 2;
  out[len++] = GLYD_BLOCK_FILL;
  len = (size_t)(glyd_put_varint(glyd_put_varint(out + len, PART / 2), 1) - out);
  out[len++] = 'f';
  len += encode(GLYD_LEVEL_FAST, 0, PART, in + 3 * PART, PART, out + len, sizeof out - len);
  CHECK(decode(out, len, back, sizeof in) == GLYD_OK && memcmp(in, back, sizeof in) == 0);
}

static void test_broken_envelopes(void) {
  static const struct {
    uint8_t bytes[8];
    size_t len, content;
  } bad[] = {
      {{0}, 0, 1},                         /* nothing */
      {{0, 1}, 2, 1},                      /* no body size */
      {{0, 0, 0}, 3, 1},                   /* empty block */
      {{0, 2, 1, 7}, 4, 2},                /* raw: sizes differ */
      {{0, 2, 2, 7, 7}, 5, 1},             /* more than the segment holds */
      {{4, 1, 1, 7}, 4, 1},                /* raw with a flag */
      {{0x81, 1, 1, 7}, 4, 1},             /* fill with a flag */
      {{1, 5, 2, 7, 7}, 5, 5},             /* fill of two bytes */
      {{1, 0x85, 0, 1, 7}, 5, 5},          /* varint not canonical */
      {{1, 0x80, 0x80, 0x80, 0x80}, 5, 5}, /* endless varint */
      {{3, 1, 0}, 3, 1},                   /* coded body without planes */
      {{0x83, 1, 6, 4, 7, 0, 0, 0}, 8, 1}, /* reserved flag */
      {{3, 2, 5, 4, 7, 0, 0, 0}, 8, 2},    /* literals do not fill the block */
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK(decode(bad[i].bytes, bad[i].len, NULL, bad[i].content) == GLYD_E_CORRUPT);
  static const uint8_t good[] = {3, 1, 6, 4, 7, 0, 0, 0, 0};
  uint8_t out[1];
  CHECK(decode(good, sizeof good, out, 1) == GLYD_OK && out[0] == 7);
}

static void test_mutations(unsigned rounds) {
  enum { MOST = 40000 };
  static uint8_t in[MOST], out[2 * MOST], bad[2 * MOST];
  unsigned refused = 0, made = 0;
  for (unsigned round = 0; round < rounds;) {
    const int level = GLYD_LEVEL_TURBO + (int)(round / 16 % 6);
    const size_t n = test_below(4) ? 1 + test_below(3000) : 1 + test_below(MOST);
    test_content((unsigned)test_below(TEST_KINDS), in, n);
    const glyd_lz_config config = {level, 0, MOST, GLYD_CPU_SCALAR};
    static void *workspace;
    if (workspace == NULL) {
      size_t most = 0;
      for (int l = GLYD_LEVEL_TURBO; l <= GLYD_LEVEL_ULTRA; l++) {
        const glyd_lz_config c = {l, 0, MOST, GLYD_CPU_SCALAR};
        if (glyd_lz_encode_workspace(&c) > most) most = glyd_lz_encode_workspace(&c);
      }
      workspace = aligned(most);
    }
    size_t len;
    CHECK(glyd_lz_encode(&config, workspace, in, n, out, sizeof out, &len) == GLYD_OK);
    for (unsigned k = 0; k < 16; k++, round++) {
      memcpy(bad, out, len);
      for (size_t m = 1 + test_below(3); m > 0; m--) {
        const size_t at = test_below(3) ? test_below(len) : test_below(len < 60 ? len : 60);
        const uint64_t r = test_random();
        bad[at] = (uint8_t)(r & 256 ? bad[at] ^ 1u << (r & 7) : r);
      }
      refused += decode(bad, test_below(8) ? len : test_below(len + 1), NULL, n) != GLYD_OK;
      made++;
    }
  }
  CHECK(refused > made / 20 && refused < made);
  printf("block: %u mutations, %u refused\n", made, refused);
}

int main(int argc, char **argv) {
  variants[n_variants++] = GLYD_CPU_SCALAR;
  if (glyd_cpu_features() & GLYD_CPU_AVX2) variants[n_variants++] = glyd_cpu_features();
  CHECK(glyd_lz_decode_workspace() <= (1u << 20) - (64u << 10));
  test_round_trips();
  test_large();
  test_long_distance();
  test_mixed();
  test_broken_envelopes();
  test_mutations(argc > 1 ? (unsigned)atoi(argv[1]) : 20000);
  return 0;
}
