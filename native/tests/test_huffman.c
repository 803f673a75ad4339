/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Huffman planes: bytes as the spec has them, round trips, memory limits,
 * hostile input, variants against each other.
 */
#include "codec_test.h"
#include "common/cpu.h"
#include "huffman/huffman_common.h"
#include "huffman/huffman_decode.h"
#include "huffman/huffman_encode.h"

#define MOST ((size_t)1 << 18)

static unsigned variants[2];
static unsigned n_variants;

/* Decode with every variant from memory that ends with the input (slack bytes
 * after it readable): same result everywhere. */
static glyd_status decode(const uint8_t *in, size_t len, size_t slack, size_t max_n, uint8_t *out, size_t *n,
                          size_t *used) {
  glyd_status first = GLYD_OK;
  guarded memory = guarded_new(len + slack, 0);
  memcpy(memory.p, in, len);
  memset(memory.p + len, 0xA5, slack);
  for (unsigned v = 0; v < n_variants; v++) {
    static glyd_huffman_table table;
    table.bits = 0;
    guarded to = guarded_new(max_n, (int)v & 1);
    glyd_plane_input input = {memory.p, memory.p + len, memory.p + len + slack};
    const uint8_t *data = NULL;
    size_t got = 0;
    glyd_status status = glyd_huffman_decode_plane(variants[v], &table, &input, to.p, max_n, SIZE_MAX, &data, &got);
    if (v == 0) {
      first = status;
      *n = got;
      *used = (size_t)(input.at - memory.p);
      if (status == GLYD_OK) memcpy(out, data, got);
    } else {
      CHECK(status == first);
      if (status == GLYD_OK) CHECK(got == *n && (size_t)(input.at - memory.p) == *used && memcmp(out, data, got) == 0);
    }
    guarded_free(to);
  }
  guarded_free(memory);
  return first;
}

/* Bits as the spec writes them, first bit first. */
static size_t pack(const char *bits, uint8_t *out) {
  size_t n = 0;
  memset(out, 0, strlen(bits) / 8 + 1);
  for (; *bits != 0; bits++)
    if (*bits != ' ') {
      out[n / 8] = (uint8_t)(out[n / 8] | (*bits == '1') << (n % 8));
      n++;
    }
  return (n + 7) / 8;
}

/* Codes a: 0, b: 10, c: 11 by hand. */
static void test_known_bytes(void) {
  uint8_t in[64], out[64];
  size_t n, used, len = 0;
  in[len++] = 6 << 2 | GLYD_PLANE_OWN;
  /* gamma(97 + 1), gamma(3), length 1: -6 -> 11, length 2: 1 -> 2, length 2: 0 */
  len += pack("000000 1 010001  0 1 1  00000000000 1  00 1  1", in + len);
  len += pack("0 10 11 0 0 11", in + len); /* abcaac */
  CHECK(decode(in, len, 0, 64, out, &n, &used) == GLYD_OK);
  CHECK(n == 6 && used == len && memcmp(out, "abcaac", 6) == 0);
  CHECK(decode(in, len - 1, 16, 64, out, &n, &used) == GLYD_E_CORRUPT);
  CHECK(decode(in, len, 0, 5, out, &n, &used) == GLYD_E_CORRUPT);

  const uint8_t fill[2] = {9 << 2 | GLYD_PLANE_FILL, 'x'};
  CHECK(decode(fill, 2, 0, 64, out, &n, &used) == GLYD_OK && n == 9 && memcmp(out, "xxxxxxxxx", 9) == 0);
  CHECK(decode(fill, 1, 0, 64, out, &n, &used) == GLYD_E_CORRUPT);
  const uint8_t raw[4] = {3 << 2 | GLYD_PLANE_RAW, 'x', 'y', 'z'};
  CHECK(decode(raw, 4, 0, 64, out, &n, &used) == GLYD_OK && n == 3 && memcmp(out, "xyz", 3) == 0 && used == 4);
  CHECK(decode(raw, 3, 0, 64, out, &n, &used) == GLYD_E_CORRUPT);
  const uint8_t empty[1] = {0}, empty_fill[2] = {1, 5}, no_table[3] = {2 << 2 | GLYD_PLANE_LAST, 0, 0};
  CHECK(decode(empty, 1, 0, 64, out, &n, &used) == GLYD_OK && n == 0);
  CHECK(decode(empty_fill, 2, 0, 64, out, &n, &used) == GLYD_E_CORRUPT);
  CHECK(decode(no_table, 3, 0, 64, out, &n, &used) == GLYD_E_CORRUPT);
  CHECK(decode(empty, 0, 0, 64, out, &n, &used) == GLYD_E_CORRUPT);

  /* an incomplete code, one over 1, a length of 12, a symbol past 255 */
  static const char *const bad[] = {"000000 1 010001  0 1 0  00000000000 1  00 1",
                                    "000000 1 010001  0 1 1  00000000000 1  1  1 1 1 1", "1  0 1 0  0000000000 1  1",
                                    "0000000 1 1111111  0 1 1  00000000000 1  1  1"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    in[0] = 4 << 2 | GLYD_PLANE_OWN;
    len = 1 + pack(bad[i], in + 1);
    memset(in + len, 0, 8);
    CHECK(decode(in, len + 8, 0, 64, out, &n, &used) == GLYD_E_CORRUPT);
  }
}

static void test_lengths(void) {
  for (unsigned round = 0; round < 400; round++) {
    uint32_t counts[256] = {0};
    const size_t used = 2 + test_below(255);
    for (size_t i = 0; i < used; i++) {
      uint32_t c = (uint32_t)(1 + test_below((size_t)1 << test_below(11)));
      if (round % 4 == 0) c = i < 20 ? 1u << (i < 17 ? i : 1) : 1; /* asks for codes longer than 11 bits */
      counts[round % 2 ? i : test_below(256)] = c;
    }
    counts[0] += counts[0] == 0;
    counts[255] += counts[255] == 0;
    uint8_t length[256];
    glyd_huffman_make_lengths(counts, length);
    uint32_t kraft = 0;
    for (unsigned s = 0; s < 256; s++) {
      CHECK((length[s] != 0) == (counts[s] != 0) && length[s] <= GLYD_HUFFMAN_BITS);
      if (length[s] != 0) kraft += 1u << (GLYD_HUFFMAN_BITS - length[s]);
      for (unsigned t = 0; t < 256; t++)
        if (counts[s] > counts[t] && counts[t] != 0) CHECK(length[s] <= length[t]);
    }
    CHECK(kraft == 1u << GLYD_HUFFMAN_BITS);
  }
}

static void test_round_trips(void) {
  static const size_t sizes[] = {0,   1,   2,    3,    7,    8,    9,    39,   40,   41,    100,
                                 255, 256, 1000, 1023, 1024, 1025, 1063, 1064, 5000, 65536, MOST};
  uint8_t *in = malloc(MOST), *back = malloc(MOST);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    for (unsigned kind = 0; kind < TEST_KINDS; kind++) {
      const size_t n = sizes[k];
      test_content(kind, in, n);
      guarded out = guarded_new(GLYD_HUFFMAN_PLANE_BOUND(n), 0);
      glyd_huffman_code last;
      last.valid = 0;
      const size_t len =
          (size_t)(glyd_huffman_encode_plane(variants[k % n_variants], out.p, in, n, NULL, &last) - out.p);
      size_t got, used;
      CHECK(len <= n + 4);
      CHECK(decode(out.p, len, k % 3 * 9, n, back, &got, &used) == GLYD_OK);
      CHECK(got == n && used == len && memcmp(in, back, n) == 0);
      if (len > 0 && n > 0) CHECK(decode(out.p, len - 1, k % 3 * 9, n, back, &got, &used) != GLYD_OK);
      guarded_free(out);
    }
  free(in);
  free(back);
}

/* The last table is used when it is good enough, and only in its own order. */
static void test_last_table(void) {
  static uint8_t in[3000], out[2][GLYD_HUFFMAN_PLANE_BOUND(3000)], back[3000];
  test_content(8, in, sizeof in);
  glyd_huffman_code last;
  last.valid = 0;
  size_t len[2], n;
  len[0] = (size_t)(glyd_huffman_encode_plane(GLYD_CPU_SCALAR, out[0], in, 3000, NULL, &last) - out[0]);
  len[1] = (size_t)(glyd_huffman_encode_plane(GLYD_CPU_SCALAR, out[1], in, 3000, NULL, &last) - out[1]);
  CHECK((out[0][0] & 3) == GLYD_PLANE_OWN && (out[1][0] & 3) == GLYD_PLANE_LAST && len[1] < len[0]);
  glyd_huffman_table table;
  table.bits = 0;
  for (unsigned k = 0; k < 2; k++) {
    const uint8_t *data;
    glyd_plane_input input = {out[k], out[k] + len[k], out[k] + len[k]};
    CHECK(glyd_huffman_decode_plane(glyd_cpu_features(), &table, &input, back, 3000, 0, &data, &n) == GLYD_OK);
    CHECK(n == 3000 && memcmp(data, in, n) == 0);
  }
}

static void test_hostile(void) {
  static uint8_t in[4000], out[GLYD_HUFFMAN_PLANE_BOUND(4000)], bad[GLYD_HUFFMAN_PLANE_BOUND(4000)], back[4000];
  unsigned refused = 0, rounds = 4000;
  for (unsigned round = 0; round < rounds; round++) {
    size_t n = round % 2 ? 1024 + test_below(2900) : test_below(1024), got, used;
    test_content(2 + 3 * (round / 2 % 3), in, n);
    glyd_huffman_code last;
    last.valid = 0;
    const size_t len = (size_t)(glyd_huffman_encode_plane(GLYD_CPU_SCALAR, out, in, n, NULL, &last) - out);
    memcpy(bad, out, len);
    for (size_t k = test_below(3) + 1; k > 0; k--)
      bad[test_below(round % 3 ? len : len < 40 ? len : 40)] ^= (uint8_t)(1u << test_below(8));
    refused += decode(bad, test_below(4) ? len : test_below(len + 1), test_below(2) * 8, sizeof back, back, &got,
                      &used) != GLYD_OK;
  }
  CHECK(refused > rounds / 4 && refused < rounds);
}

int main(void) {
  variants[n_variants++] = GLYD_CPU_SCALAR;
  if (glyd_cpu_features() & GLYD_CPU_AVX2) variants[n_variants++] = GLYD_CPU_AVX2;
  test_known_bytes();
  test_lengths();
  test_round_trips();
  test_last_table();
  test_hostile();
  printf("huffman: %u variants\n", n_variants);
  return 0;
}
