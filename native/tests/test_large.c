/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Sizes beyond 32 bits and indexes beyond one chunk, in bounded memory. Runs
 * of one byte make gigabytes cheap.
 */
#include "frame_test.h"

#define TOTAL (((uint64_t)4 << 30) + 12345)

/* More than 4 GiB in and out, 4 MiB pieces, position-dependent bytes. */
static void test_beyond_4_gib(void) {
  const size_t piece = (size_t)4 << 20;
  uint8_t *in_piece = malloc(piece);
  uint8_t *out_piece = malloc(piece);
  uint8_t *packed = malloc(piece);
  for (int known = 0; known < 2; known++) {
    TEST_AT("known size %d", known);
    counter c;
    counter d;
    glyd_params params;
    glyd_params_init(&params, GLYD_LEVEL_TURBO);
    params.content_size = known ? TOTAL : GLYD_SIZE_UNKNOWN;
    params.allocator = counter_allocator(&c);
    const glyd_allocator a = counter_allocator(&d);
    glyd_cctx *cctx;
    glyd_dctx *dctx;
    CHECK_EQ(glyd_cctx_create(&cctx, &params), GLYD_OK);
    CHECK_EQ(glyd_dctx_create(&dctx, 1, NULL, &a), GLYD_OK);
    uint64_t sent = 0;
    uint64_t got = 0;
    uint64_t stored = 0;
    int at_end = 0;
    int wrong = 0;
    size_t pending = 1;
    glyd_status status = GLYD_OK;
    while (status == GLYD_OK && pending > 0) {
      const size_t n = TOTAL - sent < piece ? (size_t)(TOTAL - sent) : piece;
      memset(in_piece, (int)(sent >> 22) & 255, n);
      sent += n;
      glyd_in in = {in_piece, n, 0};
      glyd_out out = {packed, piece, 0};
      status = glyd_compress_stream(cctx, &out, &in, n < piece ? GLYD_END : GLYD_CONTINUE, &pending);
      pending = n == piece; /* frames this small never fill the buffer */
      stored += out.pos;
      glyd_in back = {packed, out.pos, 0};
      glyd_out plain = {out_piece, piece, 0};
      do {
        plain.pos = 0;
        const size_t before = back.pos;
        if (status == GLYD_OK) status = glyd_decompress_stream(dctx, &plain, &back, &at_end);
        if (plain.pos > 0) {
          wrong |= out_piece[0] != ((got >> 22) & 255) || memcmp(out_piece, out_piece + 1, plain.pos - 1) != 0;
          got += plain.pos;
        }
        if (plain.pos == 0 && back.pos == before) break;
      } while (status == GLYD_OK);
    }
    CHECK_EQ(status, GLYD_OK);
    CHECK_EQ(sent, TOTAL);
    CHECK_EQ(got, TOTAL);
    CHECK_EQ(at_end, 1);
    CHECK_EQ(wrong, 0);
    CHECK(stored < 40000);
    CHECK_EQ(c.peak, glyd_cctx_memory(&params));
    CHECK(d.peak < 10 << 20);
    glyd_cctx_free(cctx);
    glyd_dctx_free(dctx);
  }
  free(in_piece);
  free(out_piece);
  free(packed);
}

/* An index of several chunks: 100,000 segments, flushed one by one. */
static void test_long_index(void) {
  glyd_params params;
  counter c;
  glyd_params_init(&params, GLYD_LEVEL_TURBO);
  params.segment_size = 1024;
  params.allocator = counter_allocator(&c);
  glyd_cctx *cctx;
  CHECK_EQ(glyd_cctx_create(&cctx, &params), GLYD_OK);
  const uint64_t base = c.now;
  buffer packed = {0};
  buffer want = {0};
  uint8_t data[300];
  uint64_t s = 3;
  for (unsigned i = 0; i < 100000; i++) {
    const size_t n = 1 + test_random(&s) % 300;
    for (size_t k = 0; k < n; k++) data[k] = i % 3 ? (uint8_t)i : (uint8_t)test_random(&s);
    uint8_t out[600];
    glyd_in in = {data, n, 0};
    glyd_out o = {out, sizeof out, 0};
    size_t pending;
    if (!CHECK_EQ(glyd_compress_stream(cctx, &o, &in, GLYD_FLUSH, &pending), GLYD_OK)) break;
    CHECK_EQ(pending, 0);
    buffer_add(&packed, out, o.pos);
    buffer_add(&want, data, n);
  }
  CHECK(c.now > base);
  CHECK_EQ(stream_encode(cctx, data, 0, 1, 1000, GLYD_END, &packed), GLYD_OK);
  CHECK_EQ(c.now, base); /* given back at the frame's end */
  glyd_cctx_free(cctx);
  CHECK_EQ(c.now, 0);
  uint8_t *back = malloc(want.len);
  size_t len;
  for (int threads = 1; threads < 4; threads++) {
    CHECK_EQ(glyd_decompress(back, want.len, packed.p, packed.len, threads, NULL, NULL, &len, NULL), GLYD_OK);
    CHECK(len == want.len && memcmp(back, want.p, len) == 0);
    glyd_dctx *dctx;
    buffer got = {0};
    int at_end = 0;
    const glyd_allocator a = counter_allocator(&c);
    CHECK_EQ(glyd_dctx_create(&dctx, threads, NULL, &a), GLYD_OK);
    CHECK_EQ(stream_decode(dctx, packed.p, packed.len, 10007, 9000, &got, &at_end), GLYD_OK);
    CHECK(at_end && got.len == want.len && memcmp(got.p, want.p, got.len) == 0);
    CHECK(c.peak < 4 << 20);
    glyd_dctx_free(dctx);
    free(got.p);
  }
  glyd_frame_info info;
  glyd_tail tail;
  uint64_t n = 0;
  CHECK_EQ(glyd_read_frame_header(packed.p, packed.len, &info, NULL), GLYD_OK);
  CHECK_EQ(glyd_read_tail(packed.p + packed.len - GLYD_TAIL_SIZE, GLYD_TAIL_SIZE, &tail), GLYD_OK);
  const uint8_t *trailer = packed.p + packed.len - tail.trailer_size;
  CHECK_EQ(glyd_read_trailer(trailer, tail.trailer_size, &info, NULL, &n, NULL), GLYD_E_BUFFER);
  CHECK_EQ(n, 100000);
  glyd_index_entry *entries = malloc((size_t)n * sizeof *entries);
  CHECK_EQ(glyd_read_trailer(trailer, tail.trailer_size, &info, entries, &n, NULL), GLYD_OK);
  free(entries);
  free(back);
  free(packed.p);
  free(want.p);
}

int main(void) {
  test_beyond_4_gib();
  test_long_index();
  return test_end();
}
