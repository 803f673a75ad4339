/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Frames that are not whole, and calls that are wrong: every status has a way
 * to be reached here, no damage goes unseen, nothing large is allocated for
 * what a few bytes claim.
 */
#include "frame/frame_common.h"
#include "frame_test.h"

/* Decode in one call and as a stream: both give this status, and no content
 * beyond what was compressed. Returns the one call's error. */
static glyd_error decode_both(const uint8_t *p, size_t n, const glyd_limits *limits, size_t cap, glyd_status want,
                              glyd_status want_stream) {
  glyd_error error = {.status = GLYD_OK};
  guard in = guard_copy(p, n, 0);
  guard out = guard_new(cap, 0);
  size_t len = 0;
  for (int threads = 1; threads <= 2; threads++) {
    CHECK_EQ(glyd_decompress(out.p, cap, in.p, n, threads, limits, NULL, &len, &error), want);
    CHECK_EQ(error.status, want);
    glyd_dctx *ctx;
    buffer got = {0};
    int at_end = 0;
    CHECK_EQ(glyd_dctx_create(&ctx, threads, limits, NULL), GLYD_OK);
    const size_t step = threads == 1 ? 1 : n;
    const glyd_status status = n > 0 ? stream_decode(ctx, in.p, n, step, 100, &got, &at_end) : GLYD_OK;
    CHECK_EQ(status, want_stream);
    if (status != GLYD_OK) {
      glyd_error stream_error;
      glyd_dctx_error(ctx, &stream_error);
      CHECK_EQ(stream_error.status, status);
      /* One call sees more of a wrong magic number, and needs less memory. */
      if (status == want && status != GLYD_E_MAGIC && status != GLYD_E_LIMIT_MEMORY) {
        CHECK_EQ(stream_error.offset, error.offset);
        CHECK_EQ(stream_error.expected, error.expected);
        CHECK_EQ(stream_error.found, error.found);
      }
      glyd_in more = {"x", 1, 0};
      glyd_out room = {out.p, cap, 0};
      CHECK_EQ(glyd_decompress_stream(ctx, &room, &more, &at_end), GLYD_E_STATE);
      CHECK_EQ(glyd_dctx_reset(ctx), GLYD_OK);
    }
    glyd_dctx_free(ctx);
    free(got.p);
  }
  guard_free(in);
  guard_free(out);
  return error;
}

static glyd_error expect(const uint8_t *p, size_t n, size_t cap, glyd_status want) {
  return decode_both(p, n, NULL, cap, want, want == GLYD_E_TRUNCATED ? GLYD_OK : want);
}

static buffer make_frame(int level, size_t n, uint64_t segment_size, int unknown_size, int checksum) {
  uint8_t *data = make_content(n, n + (size_t)level);
  glyd_params params;
  glyd_params_init(&params, level);
  params.segment_size = segment_size;
  params.checksum = checksum;
  buffer f = {0};
  if (unknown_size) {
    glyd_cctx *ctx;
    CHECK_EQ(glyd_cctx_create(&ctx, &params), GLYD_OK);
    CHECK_EQ(stream_encode(ctx, data, n, n, 1000, GLYD_END, &f), GLYD_OK);
    glyd_cctx_free(ctx);
  } else {
    f = compress_all(data, n, &params);
  }
  free(data);
  return f;
}

static void test_truncation(void) {
  for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_ULTRA; level++)
    for (int unknown = 0; unknown < 2; unknown++) {
      buffer f = make_frame(level, 2500, 1024, unknown, 1);
      for (size_t cut = 0; cut < f.len; cut++) {
        TEST_AT("level %d, unknown %d, cut at %zu of %zu", level, unknown, cut, f.len);
        uint64_t size;
        CHECK_EQ(glyd_content_size(f.p, cut, NULL, &size, NULL), GLYD_E_TRUNCATED);
        guard in = guard_copy(f.p, cut, 0);
        uint8_t out[2500];
        size_t len;
        glyd_error error;
        CHECK_EQ(glyd_decompress(out, sizeof out, in.p, cut, 1, NULL, NULL, &len, &error), GLYD_E_TRUNCATED);
        CHECK(error.offset <= cut && error.found < error.expected);
        glyd_dctx *ctx;
        buffer got = {0};
        int at_end = 1;
        CHECK_EQ(glyd_dctx_create(&ctx, 1, NULL, NULL), GLYD_OK);
        CHECK_EQ(stream_decode(ctx, in.p, cut, 1 + cut % 7, 500, &got, &at_end), GLYD_OK);
        CHECK_EQ(at_end, cut == 0);
        glyd_dctx_free(ctx);
        free(got.p);
        guard_free(in);
      }
      free(f.p);
    }
}

/* Every bit of a frame flipped. Outside payloads each is refused; inside, a bit
 * may have no say (an unused code, padding), but the content is never wrong. */
static void test_flips(void) {
  for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_ULTRA; level++) {
    const size_t n = 1200;
    buffer f = make_frame(level, n, 1024, level & 1, 1);
    uint8_t *data = make_content(n, n + (size_t)level);
    uint8_t *out = malloc(n);
    glyd_frame_info info;
    glyd_segment_info first;
    CHECK_EQ(glyd_read_frame_header(f.p, f.len, &info, NULL), GLYD_OK);
    CHECK_EQ(glyd_read_segment_header(f.p + info.header_size, f.len, &info, &first, NULL), GLYD_OK);
    const size_t before = info.header_size + first.header_size;
    glyd_tail tail;
    const size_t behind = glyd_read_tail(f.p + f.len - GLYD_TAIL_SIZE, GLYD_TAIL_SIZE, &tail) == GLYD_OK
                              ? f.len - tail.trailer_size
                              : f.len;
    unsigned passed = 0;
    for (size_t i = 0; i < f.len * 8; i++) {
      TEST_AT("level %d, bit %zu", level, i);
      f.p[i / 8] ^= (uint8_t)(1u << i % 8);
      size_t len = 0;
      const glyd_status status = glyd_decompress(out, n, f.p, f.len, 1, NULL, NULL, &len, NULL);
      if (status == GLYD_OK) {
        CHECK(i / 8 >= before && i / 8 < behind);
        CHECK(len == n && memcmp(out, data, n) == 0);
        passed++;
      }
      glyd_dctx *ctx;
      buffer got = {0};
      int at_end = 0;
      CHECK_EQ(glyd_dctx_create(&ctx, 1, NULL, NULL), GLYD_OK);
      const glyd_status streamed = stream_decode(ctx, f.p, f.len, 1000, 2000, &got, &at_end);
      CHECK_EQ(streamed == GLYD_OK && at_end, status == GLYD_OK);
      if (got.len > 0) CHECK(got.len <= n && memcmp(got.p, data, got.len) == 0);
      glyd_dctx_free(ctx);
      free(got.p);
      f.p[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    CHECK(passed < f.len * 8 / 20);
    free(data);
    free(out);
    free(f.p);
  }
}

/* ---- frames made by hand ---------------------------------------------------- */

static size_t header(uint8_t *p, unsigned flags, unsigned segment_log, uint64_t content_size) {
  glyd_store32(p, GLYD_FRAME_MAGIC);
  p[4] = GLYD_FORMAT_VERSION;
  p[5] = (uint8_t)flags;
  p[6] = 0;
  p[7] = (uint8_t)segment_log;
  p[8] = segment_log > 30 ? 0 : (uint8_t)glyd_frame_memory_code(segment_log, content_size, 0, 0, 0, 0, 0);
  uint8_t *q = p + 9;
  if (flags & GLYD_FLAG_CONTENT_SIZE) q = glyd_put_varint(q, content_size);
  return (size_t)(q - p);
}

static size_t seal(uint8_t *p, size_t n) {
  glyd_store32(p + n, (uint32_t)glyd_checksum(p, n));
  return n + 4;
}

#define KNOWN GLYD_FLAG_CONTENT_SIZE

static void test_headers(void) {
  uint8_t p[300];
  size_t n;
  TEST_AT("magic");
  CHECK_EQ(expect((const uint8_t *)"\x28\xB5\x2F\xFD....", 8, 10, GLYD_E_MAGIC).found, 0xFD2FB528u);
  expect((const uint8_t *)"G", 1, 10, GLYD_E_MAGIC);
  expect((const uint8_t *)"", 0, 10, GLYD_E_TRUNCATED);
  TEST_AT("version");
  n = seal(p, header(p, KNOWN, 10, 0));
  expect(p, n, 10, GLYD_OK);
  p[4] = 2;
  CHECK_EQ(expect(p, n, 10, GLYD_E_VERSION).found, 2);
  TEST_AT("check");
  n = seal(p, header(p, KNOWN, 10, 0));
  p[n - 1] ^= 1;
  expect(p, n, 10, GLYD_E_HEADER);
  TEST_AT("level byte");
  n = header(p, KNOWN, 10, 0);
  p[6] = 200;
  expect(p, seal(p, n), 10, GLYD_OK);
  for (unsigned bit = 5; bit < 8; bit++) {
    TEST_AT("required feature %u", bit);
    n = seal(p, header(p, KNOWN | 1u << bit, 10, 0));
    CHECK_EQ(expect(p, n, 10, GLYD_E_FEATURE).found, 1u << bit);
  }
  TEST_AT("check kind 3");
  expect(p, seal(p, header(p, KNOWN | 3, 10, 0)), 10, GLYD_E_FEATURE);
  TEST_AT("segment log");
  expect(p, seal(p, header(p, KNOWN, 9, 0)), 10, GLYD_E_HEADER);
  expect(p, seal(p, header(p, KNOWN, 31, 0)), 10, GLYD_E_HEADER);
  TEST_AT("neither size nor trailer");
  expect(p, seal(p, header(p, 0, 10, GLYD_SIZE_UNKNOWN)), 10, GLYD_E_HEADER);
  TEST_AT("sizes beyond 2^63");
  expect(p, seal(p, header(p, KNOWN, 10, (uint64_t)1 << 63)), 10, GLYD_E_HEADER);
  expect(p, seal(p, header(p, KNOWN, 10, UINT64_MAX)), 10, GLYD_E_HEADER);
  TEST_AT("memory code");
  for (int d = -1; d <= 1; d += 2) {
    n = header(p, KNOWN, 20, 1 << 20);
    p[8] = (uint8_t)(p[8] + d);
    const glyd_error e = expect(p, seal(p, n), 10, GLYD_E_HEADER);
    CHECK_EQ(e.found, e.expected + (uint64_t)(int64_t)d);
  }
  TEST_AT("size varint not canonical");
  n = header(p, KNOWN, 10, 0);
  p[n - 1] = 0x80;
  p[n] = 0;
  expect(p, seal(p, n + 1), 10, GLYD_E_HEADER);

  /* Extension records: type, length, data. */
  static const struct {
    const char *what;
    const char *bytes;
    size_t len;
    glyd_status want;
  } records[] = {
      {"none", "", 0, GLYD_OK},
      {"even type", "\2\3abc", 5, GLYD_OK},
      {"two even types, one empty", "\2\3abc\0\0", 7, GLYD_OK},
      {"odd type", "\3\1a", 3, GLYD_E_FEATURE},
      {"odd type behind an even one", "\2\1a\x7D\0", 5, GLYD_E_FEATURE},
      {"data cut", "\2\4abc", 5, GLYD_E_HEADER},
      {"no length", "\2", 1, GLYD_E_HEADER},
      {"varint cut", "\2\0\x82", 3, GLYD_E_HEADER},
      {"varint not canonical", "\x82\0\0", 3, GLYD_E_HEADER},
      {"length not canonical", "\2\x80\0", 3, GLYD_E_HEADER},
  };
  for (unsigned i = 0; i < sizeof records / sizeof *records; i++) {
    TEST_AT("extension records: %s", records[i].what);
    n = header(p, KNOWN | GLYD_FLAG_EXTENSIONS, 10, 0);
    p[n++] = (uint8_t)records[i].len;
    memcpy(p + n, records[i].bytes, records[i].len);
    expect(p, seal(p, n + records[i].len), 10, records[i].want);
  }
  TEST_AT("extension records too long");
  n = header(p, KNOWN | GLYD_FLAG_EXTENSIONS, 10, 0);
  n = (size_t)(glyd_put_varint(p + n, GLYD_EXTENSIONS_MAX + 1) - p);
  expect(p, seal(p, n), 10, GLYD_E_HEADER);
  TEST_AT("longest extension record");
  uint8_t *big = calloc(1, GLYD_EXTENSIONS_MAX + 100);
  n = header(big, KNOWN | GLYD_FLAG_EXTENSIONS, 10, 0);
  n = (size_t)(glyd_put_varint(big + n, GLYD_EXTENSIONS_MAX) - big);
  big[n] = 2;
  (void)glyd_put_varint(big + n + 1, GLYD_EXTENSIONS_MAX - 4);
  expect(big, seal(big, n + GLYD_EXTENSIONS_MAX), 10, GLYD_OK);
  free(big);

  TEST_AT("skippable frame");
  glyd_store32(p, GLYD_SKIPPABLE_MAGIC);
  glyd_store32(p + 4, 7);
  glyd_store64(p + 8, 5);
  n = seal(p, 16);
  memset(p + n, 0, 5);
  expect(p, n + 5, 10, GLYD_OK);
  for (size_t cut = 1; cut < n + 5; cut++) expect(p, cut, 10, GLYD_E_TRUNCATED);
  p[9] ^= 1;
  expect(p, n + 5, 10, GLYD_E_HEADER);
  glyd_store64(p + 8, UINT64_MAX);
  (void)seal(p, 16);
  expect(p, n + 5, 10, GLYD_E_TRUNCATED);
}

static void test_segments(void) {
  static const struct {
    const char *what;
    const char *bytes; /* after a header with content size 10, S 10, no checks */
    size_t len;
    glyd_status want;
  } cases[] = {
      {"raw",
       "\1\x0A\x0A"
       "0123456789",
       13, GLYD_OK},
      {"fill", "\2\x0A\1x", 4, GLYD_OK},
      {"two",
       "\2\4\1x\1\6\6"
       "abcdef",
       13, GLYD_OK},
      {"LZ, a raw block",
       "\3\x0A\x0D"
       "\0\x0A\x0A"
       "0123456789",
       16, GLYD_OK},
      {"LZ, block too long",
       "\3\x0A\x0D"
       "\0\x0B\x0B"
       "0123456789",
       16, GLYD_E_CORRUPT},
      {"LZ, bytes behind the block",
       "\3\x0A\5"
       "\1\x0A\1z!",
       8, GLYD_E_CORRUPT},
      {"LZ, ends early",
       "\3\x0A\4"
       "\1\x09\1z",
       7, GLYD_E_CORRUPT},
      {"unknown kind",
       "\x7F\x0A\x0A"
       "0123456789",
       13, GLYD_E_FEATURE},
      {"kind from 128 on",
       "\x80\x0A\x0A"
       "0123456789",
       13, GLYD_E_FEATURE},
      {"trailer that is not announced", "\0", 1, GLYD_E_CORRUPT},
      {"no content", "\2\0\1x", 4, GLYD_E_CORRUPT},
      {"more content than the header says", "\2\x0B\1x", 4, GLYD_E_CORRUPT},
      {"more content than is left", "\2\4\1x\2\7\1x", 8, GLYD_E_CORRUPT},
      {"no payload", "\3\x0A\0", 3, GLYD_E_CORRUPT},
      {"raw of another size",
       "\1\x0A\x09"
       "012345678",
       12, GLYD_E_CORRUPT},
      {"fill of two bytes", "\2\x0A\2xx", 5, GLYD_E_CORRUPT},
      {"payload beyond content + 4096", "\3\x0A\x8B\x20", 4, GLYD_E_CORRUPT},
      {"content size not canonical", "\2\x8A\0\1x", 5, GLYD_E_CORRUPT},
      {"payload size not canonical", "\2\x0A\x81\0x", 5, GLYD_E_CORRUPT},
      {"endless varint", "\2\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12, GLYD_E_CORRUPT},
      {"content size cut, but too long already", "\2\xFF\xFF\xFF\xFF\xFF", 6, GLYD_E_CORRUPT},
      {"payload size cut, but too long already", "\3\x0A\xFF\xFF\xFF\xFF\xFF", 7, GLYD_E_CORRUPT},
      {"content size cut", "\2\xFF\xFF\xFF\xFF", 5, GLYD_E_TRUNCATED},
      {"another frame's bytes", "\2\x0A\1x?", 5, GLYD_E_TRAILING},
  };
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t p[100];
    TEST_AT("%s", cases[i].what);
    const size_t n = seal(p, header(p, KNOWN, 10, 10));
    memcpy(p + n, cases[i].bytes, cases[i].len);
    const glyd_error e = expect(p, n + cases[i].len, 20, cases[i].want);
    if (cases[i].want == GLYD_E_TRAILING) CHECK_EQ(e.offset, n + 4);
    for (size_t cut = 0; cases[i].want == GLYD_OK && cut < cases[i].len; cut++)
      expect(p, n + cut, 20, GLYD_E_TRUNCATED);
  }
  TEST_AT("wrong check");
  buffer f = make_frame(GLYD_LEVEL_MAX, 3000, 1024, 1, 1);
  glyd_frame_info info;
  glyd_segment_info s;
  CHECK_EQ(glyd_read_frame_header(f.p, f.len, &info, NULL), GLYD_OK);
  CHECK_EQ(glyd_read_segment_header(f.p + info.header_size, f.len, &info, &s, NULL), GLYD_OK);
  f.p[info.header_size + s.header_size - 1] ^= 0x80;
  const glyd_error e = expect(f.p, f.len, 3000, GLYD_E_CHECKSUM);
  CHECK_EQ(e.offset, info.header_size);
  CHECK_EQ(e.expected, e.found ^ (uint64_t)1 << 63);
  free(f.p);
}

/* Trailers that are sound in themselves but belong to other segments. */
static void test_trailers(void) {
  buffer f = make_frame(GLYD_LEVEL_FAST, 3000, 1024, 1, 1);
  glyd_tail tail;
  CHECK_EQ(glyd_read_tail(f.p + f.len - GLYD_TAIL_SIZE, GLYD_TAIL_SIZE, &tail), GLYD_OK);
  uint8_t *trailer = f.p + f.len - tail.trailer_size;
  const size_t size = tail.trailer_size;
  glyd_frame_info info;
  CHECK_EQ(glyd_read_frame_header(f.p, f.len, &info, NULL), GLYD_OK);
  for (size_t i = 1; i < size - 4; i++) {
    uint64_t n = 0;
    TEST_AT("trailer byte %zu changed, check repaired", i);
    trailer[i] ^= 2;
    (void)seal(trailer, size - 4);
    glyd_index_entry entries[100];
    n = 100;
    glyd_error read_error = {.status = GLYD_OK};
    const glyd_status alone = glyd_read_trailer(trailer, size, &info, entries, &n, &read_error);
    CHECK(alone == GLYD_E_CORRUPT && read_error.status == alone);
    /* A larger count makes the trailer longer than what is there: corrupt all the same. */
    (void)expect(f.p, f.len, 3000, GLYD_E_CORRUPT);
    trailer[i] ^= 2;
  }
  (void)seal(trailer, size - 4);
  (void)expect(f.p, f.len, 3000, GLYD_OK);
  TEST_AT("trailer check");
  trailer[size - 1] ^= 1;
  (void)expect(f.p, f.len, 3000, GLYD_E_CORRUPT);
  free(f.p);
}

static void test_limits(void) {
  uint8_t p[100];
  size_t n;
  glyd_error e;
  TEST_AT("output: declared");
  n = seal(p, header(p, KNOWN, 20, 1000));
  e = decode_both(p, n, &(glyd_limits){.max_output = 999}, 2000, GLYD_E_LIMIT_OUTPUT, GLYD_E_LIMIT_OUTPUT);
  CHECK_EQ(e.expected, 999);
  CHECK_EQ(e.found, 1000);
  TEST_AT("output: met");
  n = seal(p, header(p, GLYD_FLAG_TRAILER, 20, GLYD_SIZE_UNKNOWN));
  memcpy(p + n, "\2\xE8\7\1x", 5);
  e = decode_both(p, n + 5, &(glyd_limits){.max_output = 999}, 2000, GLYD_E_LIMIT_OUTPUT, GLYD_E_LIMIT_OUTPUT);
  CHECK_EQ(e.offset, n);
  (void)decode_both(p, n + 5, &(glyd_limits){.max_output = 1000}, 2000, GLYD_E_TRUNCATED, GLYD_OK);
  TEST_AT("segments");
  n = seal(p, header(p, KNOWN, 10, 10));
  memcpy(p + n, "\2\4\1x\2\6\1y", 8);
  e = decode_both(p, n + 8, &(glyd_limits){.max_segments = 1}, 10, GLYD_E_LIMIT_SEGMENTS, GLYD_E_LIMIT_SEGMENTS);
  CHECK_EQ(e.offset, n + 4);
  (void)decode_both(p, n + 8, &(glyd_limits){.max_segments = 2}, 10, GLYD_OK, GLYD_OK);
  TEST_AT("memory: the promise of the header, for streams");
  n = seal(p, header(p, KNOWN, 30, (uint64_t)1 << 40));
  (void)decode_both(p, n, NULL, 10, GLYD_E_TRUNCATED, GLYD_E_LIMIT_MEMORY);
  TEST_AT("memory: workspace, in one call");
  buffer f = make_frame(GLYD_LEVEL_MAX, 50000, 0, 0, 1);
  (void)decode_both(f.p, f.len, &(glyd_limits){.max_memory = 1000}, 50000, GLYD_E_LIMIT_MEMORY, GLYD_E_LIMIT_MEMORY);
  free(f.p);

  /* More threads than the limit has memory for: fewer are used, and it holds. */
  f = make_frame(GLYD_LEVEL_MAX, 300000, 65536, 0, 1);
  glyd_frame_info info;
  CHECK_EQ(glyd_read_frame_header(f.p, f.len, &info, NULL), GLYD_OK);
  for (uint64_t most = info.decoder_memory; most < 8 * info.decoder_memory; most += info.decoder_memory / 3) {
    TEST_AT("memory limit %llu", (unsigned long long)most);
    counter c;
    const glyd_allocator a = counter_allocator(&c);
    glyd_dctx *ctx;
    buffer got = {0};
    int at_end;
    const glyd_limits limits = {.max_memory = most};
    CHECK_EQ(glyd_dctx_create(&ctx, 6, &limits, &a), GLYD_OK);
    CHECK_EQ(stream_decode(ctx, f.p, f.len, f.len, 1000, &got, &at_end), GLYD_OK);
    CHECK_EQ(got.len, 300000);
    CHECK(c.peak <= most);
    glyd_dctx_free(ctx);
    free(got.p);
  }
  free(f.p);
}

/* A few bytes that claim a lot: memory follows what arrives. */
static void test_claims(void) {
  uint8_t p[100];
  size_t n = seal(p, header(p, KNOWN, 29, (uint64_t)1 << 40));
  p[n++] = GLYD_KIND_LZ;
  n = (size_t)(glyd_put_varint(p + n, (uint64_t)1 << 29) - p);
  n = (size_t)(glyd_put_varint(p + n, (uint64_t)1 << 29) - p);
  memset(p + n, 0, 10);
  for (int threads = 1; threads < 5; threads += 3) {
    counter c;
    const glyd_allocator a = counter_allocator(&c);
    glyd_dctx *ctx;
    buffer got = {0};
    int at_end;
    CHECK_EQ(glyd_dctx_create(&ctx, threads, NULL, &a), GLYD_OK);
    CHECK_EQ(stream_decode(ctx, p, n + 10, 1, 100, &got, &at_end), GLYD_OK);
    CHECK_EQ(at_end, 0);
    CHECK(c.peak < 100000);
    glyd_dctx_free(ctx);
    uint8_t out[16];
    size_t len;
    CHECK_EQ(glyd_decompress(out, sizeof out, p, n + 10, threads, NULL, &a, &len, NULL), GLYD_E_TRUNCATED);
    CHECK(c.now == 0 && c.peak < 100000);
  }
}

static void test_parameters(void) {
  glyd_params good;
  glyd_params_init(&good, GLYD_LEVEL_DEFAULT);
  uint8_t out[100];
  size_t len;
  glyd_cctx *cctx;
  for (unsigned i = 0; i < 15; i++) {
    glyd_params p = good;
    switch (i) {
    case 0: p.level = 0; break;
    case 1: p.level = 99; break;
    case 2: p.threads = -1; break;
    case 3: p.checksum = 2; break;
    case 4: p.long_distance = 2; break;
    case 5: p.long_distance = 1; break; /* levels max and up */
    case 6: p.segment_size = 1023; break;
    case 7: p.segment_size = ((uint64_t)1 << 30) + 1; break;
    case 8: p.cpu = 3; break;
    case 9: p.cpu = -1; break;
    case 10: p.allocator.alloc = counter_alloc; break;
    case 11: p.allocator.free = counter_free; break;
    case 12: p.checksum = -1; break;
    case 13: p.content_size = (uint64_t)1 << 63; break;
    default: p.level = -1; break;
    }
    TEST_AT("parameter %u", i);
    cctx = (glyd_cctx *)out;
    CHECK_EQ(glyd_cctx_create(&cctx, &p), GLYD_E_PARAMETER);
    CHECK(cctx == NULL);
    if (i == 13) continue; /* streams only */
    CHECK_EQ(glyd_compress(out, sizeof out, "abc", 3, &p, &len), GLYD_E_PARAMETER);
    CHECK_EQ(glyd_compress_bound(3, &p), 0);
    CHECK_EQ(glyd_cctx_memory(&p), 0);
  }
  CHECK_EQ(glyd_compress(out, sizeof out, "abc", 3, NULL, &len), GLYD_E_PARAMETER);
  TEST_AT("decoder parameters");
  glyd_dctx *dctx;
  const glyd_limits limits = {.cpu = 9};
  const glyd_allocator half = {counter_alloc, NULL, NULL};
  CHECK_EQ(glyd_dctx_create(&dctx, -1, NULL, NULL), GLYD_E_PARAMETER);
  CHECK_EQ(glyd_dctx_create(&dctx, 1, &limits, NULL), GLYD_E_PARAMETER);
  CHECK_EQ(glyd_dctx_create(&dctx, 1, NULL, &half), GLYD_E_PARAMETER);
  CHECK_EQ(glyd_decompress(out, sizeof out, "abc", 3, -1, NULL, NULL, &len, NULL), GLYD_E_PARAMETER);
  CHECK_EQ(glyd_decompress(out, sizeof out, "abc", 3, 1, &limits, NULL, &len, NULL), GLYD_E_PARAMETER);
  CHECK_EQ(glyd_decompress(out, sizeof out, "abc", 3, 1, NULL, &half, &len, NULL), GLYD_E_PARAMETER);
  uint64_t size;
  CHECK_EQ(glyd_content_size("abc", 3, &limits, &size, NULL), GLYD_E_PARAMETER);

  TEST_AT("content unlike its declared size");
  for (int more = 0; more < 2; more++) {
    glyd_params p = good;
    p.content_size = 10;
    size_t pending;
    glyd_in in = {"0123456789abcdef", more ? 11 : 9, 0};
    glyd_out o = {out, sizeof out, 0};
    CHECK_EQ(glyd_cctx_create(&cctx, &p), GLYD_OK);
    CHECK_EQ(glyd_compress_stream(cctx, &o, &in, GLYD_END, &pending), GLYD_E_PARAMETER);
    CHECK_EQ(glyd_compress_stream(cctx, &o, &in, GLYD_END, &pending), GLYD_E_STATE);
    CHECK_EQ(glyd_cctx_reset(cctx, (uint64_t)1 << 63), GLYD_E_PARAMETER);
    CHECK_EQ(glyd_cctx_reset(cctx, 9), GLYD_OK);
    in = (glyd_in){"012345678", 9, 0};
    o.pos = 0;
    CHECK_EQ(glyd_compress_stream(cctx, &o, &in, GLYD_END, &pending), GLYD_OK);
    CHECK_EQ(pending, 0);
    CHECK_EQ(glyd_content_size(out, o.pos, NULL, &size, NULL), GLYD_OK);
    CHECK_EQ(size, 9);
    in.pos = 10;
    CHECK_EQ(glyd_compress_stream(cctx, &o, &in, GLYD_END, &pending), GLYD_E_PARAMETER);
    in.pos = 9;
    CHECK_EQ(glyd_compress_stream(cctx, &o, &in, (glyd_op)7, &pending), GLYD_E_PARAMETER);
    glyd_cctx_free(cctx);
  }
  glyd_cctx_free(NULL);
  glyd_dctx_free(NULL);
}

/* Random damage to frames with checks: refused, or the content is right. */
static void test_mutations(void) {
  uint64_t s = 99;
  unsigned refused = 0;
  for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_ULTRA; level++) {
    const size_t n = 20000;
    uint8_t *data = make_content(n, n + (size_t)level);
    buffer f = make_frame(level, n, 6000, 0, 1);
    for (unsigned round = 0; round < 2000; round++) {
      TEST_AT("level %d, round %u", level, round);
      guard in = guard_copy(f.p, f.len, round & 1);
      guard out = guard_new(n, round & 1);
      for (unsigned k = 0; k <= round % 5; k++) in.p[test_random(&s) % f.len] = (uint8_t)test_random(&s);
      size_t len = 0;
      const glyd_limits limits = {.cpu = (int)round % 3};
      const glyd_status status = glyd_decompress(out.p, n, in.p, f.len, 1, &limits, NULL, &len, NULL);
      if (status == GLYD_OK)
        CHECK(len == n && memcmp(out.p, data, n) == 0);
      else
        refused++;
      guard_free(in);
      guard_free(out);
    }
    free(f.p);
    free(data);
  }
  CHECK(refused > 7000); /* nearly all of 8000 */
}

int main(void) {
  test_truncation();
  test_flips();
  test_headers();
  test_segments();
  test_trailers();
  test_limits();
  test_claims();
  test_parameters();
  test_mutations();
  return test_end();
}
