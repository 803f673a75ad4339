/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Frames that are whole: round trips through every way in and out, same bytes
 * whatever the threads, pieces and variants, exact buffers, exact memory.
 */
#include "frame_test.h"

static const size_t sizes[] = {0, 1, 2, 3, 15, 100, 1023, 1024, 1025, 65536, 65537, 300000};
#define N_SIZES (sizeof sizes / sizeof *sizes)

static void round_trip(const uint8_t *data, size_t n, glyd_params params) {
  const buffer one = compress_all(data, n, &params);
  /* A buffer of exactly the frame's size does; one byte less is BUFFER. */
  for (int at_start = 0; at_start < 2; at_start++) {
    guard in = guard_copy(data, n, at_start);
    guard out = guard_new(one.len, at_start);
    size_t len = 0;
    CHECK_EQ(glyd_compress(out.p, one.len, in.p, n, &params, &len), GLYD_OK);
    CHECK_EQ(len, one.len);
    CHECK_BYTES(out.p, one.p, len);
    CHECK_EQ(glyd_compress(out.p, one.len - 1, in.p, n, &params, &len), GLYD_E_BUFFER);
    guard_free(out);
    guard_free(in);
  }
  for (int at_start = 0; at_start < 2; at_start++) {
    guard in = guard_copy(one.p, one.len, at_start);
    guard out = guard_new(n, at_start);
    const glyd_limits limits = {.cpu = at_start};
    uint64_t size = 1;
    size_t len = 0;
    glyd_error error;
    CHECK_EQ(glyd_content_size(in.p, one.len, NULL, &size, NULL), GLYD_OK);
    CHECK_EQ(size, n);
    CHECK_EQ(glyd_decompress(out.p, n, in.p, one.len, 1 + at_start, &limits, NULL, &len, &error), GLYD_OK);
    CHECK_EQ(len, n);
    CHECK_BYTES(out.p, data, n);
    if (n > 0) {
      CHECK_EQ(glyd_decompress(out.p, n - 1, in.p, one.len, 1, NULL, NULL, &len, &error), GLYD_E_BUFFER);
      CHECK_EQ(error.status, GLYD_E_BUFFER);
      CHECK_EQ(error.expected, n - 1);
    }
    guard_free(out);
    guard_free(in);
  }
  free(one.p);
}

static void test_round_trips(void) {
  uint8_t *data = make_content(300000, 7);
  for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_ULTRA; level++)
    for (size_t i = 0; i < N_SIZES; i++)
      for (unsigned way = 0; way < 4; way++) {
        glyd_params params;
        glyd_params_init(&params, level);
        params.checksum = way != 1;
        params.segment_size = way == 2 ? 50000 : way == 3 ? 1024 : 0;
        params.threads = way == 3 ? 2 : 1;
        TEST_AT("level %d, %zu bytes, way %u", level, sizes[i], way);
        round_trip(data, sizes[i], params);
      }
  memset(data, 'a', 300000);
  glyd_params params;
  glyd_params_init(&params, GLYD_LEVEL_DEFAULT);
  params.segment_size = 65536;
  TEST_AT("fill");
  const buffer fill = compress_all(data, 300000, &params);
  CHECK(fill.len < 150);
  round_trip(data, 300000, params);
  free(fill.p);
  free(data);
}

/* One call with any number of threads and any variant, and streams in any
 * pieces: one frame. */
static void test_same_bytes_everywhere(void) {
  const size_t most = 1000001; /* 16 segments: more than any number of threads below, the last one short */
  uint8_t *data = make_content(most, 3);
  for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_ULTRA; level++) {
    const size_t n = level == GLYD_LEVEL_ULTRA ? 250001 : most; /* slow */
    glyd_params params;
    glyd_params_init(&params, level);
    params.segment_size = 65536;
    const buffer want = compress_all(data, n, &params);
    const int threads[] = {1, 2, 3, 8, 0};
    for (unsigned i = 0; i < 5; i++)
      for (int cpu = 0; cpu < 3; cpu++) {
        params.threads = threads[i];
        params.cpu = cpu;
        TEST_AT("level %d, threads %d, cpu %d", level, threads[i], cpu);
        const buffer got = compress_all(data, n, &params);
        CHECK_EQ(got.len, want.len);
        CHECK_BYTES(got.p, want.p, want.len);
        free(got.p);
        uint8_t *back = malloc(n);
        size_t len;
        const glyd_limits limits = {.cpu = cpu};
        CHECK_EQ(glyd_decompress(back, n, want.p, want.len, threads[i], &limits, NULL, &len, NULL), GLYD_OK);
        CHECK(len == n && memcmp(back, data, n) == 0);
        free(back);
      }
    const size_t steps[] = {777, 33000, 150000, n};
    buffer unknown[2] = {{0}, {0}};
    for (unsigned i = 0; i < 8; i++) {
      glyd_cctx *ctx;
      buffer got = {0};
      params.threads = threads[i % 4];
      params.cpu = 0;
      params.content_size = n;
      TEST_AT("level %d, threads %d, pieces %zu", level, params.threads, steps[i / 2]);
      CHECK_EQ(glyd_cctx_create(&ctx, &params), GLYD_OK);
      CHECK_EQ(stream_encode(ctx, data, n, steps[i / 2], 1 + steps[3 - i / 2], GLYD_END, &got), GLYD_OK);
      CHECK_EQ(got.len, want.len);
      CHECK_BYTES(got.p, want.p, want.len);
      free(got.p);
      /* the same context, without a size: other header, same for all pieces */
      CHECK_EQ(glyd_cctx_reset(ctx, GLYD_SIZE_UNKNOWN), GLYD_OK);
      unknown[i > 0].len = 0;
      CHECK_EQ(stream_encode(ctx, data, n, steps[i / 2], 5000, GLYD_END, &unknown[i > 0]), GLYD_OK);
      if (i > 0 && CHECK_EQ(unknown[1].len, unknown[0].len)) CHECK_BYTES(unknown[1].p, unknown[0].p, unknown[0].len);
      glyd_cctx_free(ctx);
    }
    free(unknown[0].p);
    free(unknown[1].p);
    free(want.p);
  }
  free(data);
}

static void test_stream_pieces(void) {
  const size_t n = 20000;
  uint8_t *data = make_content(n, 11);
  const size_t steps[] = {1, 2, 1000, 100000};
  for (int level = GLYD_LEVEL_DEFAULT; level <= GLYD_LEVEL_ULTRA; level++) {
    glyd_params params;
    glyd_params_init(&params, level);
    params.segment_size = 3000;
    for (unsigned i = 0; i < 4; i++)
      for (unsigned o = 0; o < 4; o++)
        for (int threads = 1; threads <= 3; threads += 2) {
          TEST_AT("level %d, in %zu, out %zu, threads %d", level, steps[i], steps[o], threads);
          params.threads = threads;
          glyd_cctx *cctx;
          glyd_dctx *dctx;
          buffer packed = {0};
          buffer back = {0};
          int at_end = 0;
          CHECK_EQ(glyd_cctx_create(&cctx, &params), GLYD_OK);
          CHECK_EQ(glyd_dctx_create(&dctx, threads, NULL, NULL), GLYD_OK);
          CHECK_EQ(stream_encode(cctx, data, n, steps[i], steps[o], GLYD_END, &packed), GLYD_OK);
          CHECK_EQ(stream_decode(dctx, packed.p, packed.len, steps[i], steps[o], &back, &at_end), GLYD_OK);
          CHECK_EQ(at_end, 1);
          CHECK_EQ(back.len, n);
          if (back.len == n) CHECK_BYTES(back.p, data, n);
          glyd_cctx_free(cctx);
          glyd_dctx_free(dctx);
          free(packed.p);
          free(back.p);
        }
  }
  free(data);
}

/* What was flushed comes out without more input, with any number of threads. */
static void test_flush(void) {
  uint8_t *data = make_content(10000, 5);
  for (int threads = 1; threads <= 4; threads++) {
    glyd_params params;
    glyd_params_init(&params, GLYD_LEVEL_MAX);
    params.threads = threads;
    params.segment_size = 1500;
    glyd_cctx *cctx;
    glyd_dctx *dctx;
    buffer back = {0};
    CHECK_EQ(glyd_cctx_create(&cctx, &params), GLYD_OK);
    CHECK_EQ(glyd_dctx_create(&dctx, threads, NULL, NULL), GLYD_OK);
    size_t sent = 0;
    int at_end = 0;
    for (size_t n = 1; sent + n < 10000; n = n * 2 + 1) {
      TEST_AT("threads %d, flush of %zu", threads, n);
      buffer packed = {0};
      CHECK_EQ(stream_encode(cctx, data + sent, n, n, 100, GLYD_FLUSH, &packed), GLYD_OK);
      sent += n;
      CHECK_EQ(stream_decode(dctx, packed.p, packed.len, 1000000, 1000000, &back, &at_end), GLYD_OK);
      CHECK_EQ(back.len, sent);
      CHECK_EQ(at_end, 0);
      /* a second flush has nothing to say */
      const size_t before = packed.len;
      CHECK_EQ(stream_encode(cctx, data, 0, 1, 100, GLYD_FLUSH, &packed), GLYD_OK);
      CHECK_EQ(packed.len, before);
      free(packed.p);
    }
    CHECK_BYTES(back.p, data, back.len < sent ? back.len : sent);
    buffer end = {0};
    CHECK_EQ(stream_encode(cctx, data, 0, 1, 100, GLYD_END, &end), GLYD_OK);
    CHECK_EQ(stream_decode(dctx, end.p, end.len, 1, 1, &back, &at_end), GLYD_OK);
    CHECK_EQ(at_end, 1);
    free(end.p);
    free(back.p);
    glyd_cctx_free(cctx);
    glyd_dctx_free(dctx);
  }
  free(data);
}

static size_t put_skippable(uint8_t *p, uint64_t size) {
  static const uint8_t start[8] = {0x9D, 0x47, 0x4C, 0x53, 1, 2, 3, 4};
  memcpy(p, start, 8);
  memcpy(p + 8, &size, 8);
  const uint64_t check = glyd_checksum(p, 16);
  memcpy(p + 16, &check, 4);
  memset(p + 20, 0xEE, (size_t)size);
  return 20 + (size_t)size;
}

static void test_frames_in_a_row(void) {
  const size_t n = 5000;
  uint8_t *data = make_content(n, 21);
  glyd_params params;
  buffer all = {0};
  buffer want = {0};
  uint8_t skippable[200];
  buffer_add(&all, skippable, put_skippable(skippable, 100));
  const size_t parts[] = {n, 0, 1, n, 0};
  for (unsigned i = 0; i < 5; i++) {
    glyd_params_init(&params, GLYD_LEVEL_TURBO + (int)(i % 4));
    params.segment_size = 1024 * (i + 1);
    const buffer one = compress_all(data, parts[i], &params);
    buffer_add(&all, one.p, one.len);
    buffer_add(&want, data, parts[i]);
    free(one.p);
    buffer_add(&all, skippable, put_skippable(skippable, i));
  }
  uint8_t *back = malloc(want.len);
  size_t len;
  for (int threads = 1; threads < 4; threads++) {
    TEST_AT("threads %d", threads);
    CHECK_EQ(glyd_decompress(back, want.len, all.p, all.len, threads, NULL, NULL, &len, NULL), GLYD_OK);
    CHECK(len == want.len && memcmp(back, want.p, len) == 0);
    for (size_t step = 1; step < 100000; step *= 17) {
      glyd_dctx *ctx;
      buffer got = {0};
      int at_end = 0;
      CHECK_EQ(glyd_dctx_create(&ctx, threads, NULL, NULL), GLYD_OK);
      CHECK_EQ(stream_decode(ctx, all.p, all.len, step, step, &got, &at_end), GLYD_OK);
      CHECK_EQ(at_end, 1);
      CHECK(got.len == want.len && memcmp(got.p, want.p, got.len) == 0);
      glyd_dctx_free(ctx);
      free(got.p);
    }
  }
  /* One frame at a time: a call never takes bytes of the next one. */
  glyd_dctx *ctx;
  CHECK_EQ(glyd_dctx_create(&ctx, 1, NULL, NULL), GLYD_OK);
  glyd_in in = {all.p, all.len, 0};
  glyd_out out = {back, want.len, 0};
  int at_end = 0;
  unsigned frames = 0;
  while (in.pos < in.size && frames < 100) {
    CHECK_EQ(glyd_decompress_stream(ctx, &out, &in, &at_end), GLYD_OK);
    CHECK_EQ(at_end, 1);
    frames++;
  }
  CHECK_EQ(frames, 11);
  CHECK_EQ(out.pos, want.len);
  glyd_dctx_free(ctx);
  /* Something else behind them is an error at its offset. */
  glyd_error error;
  buffer_add(&all, "garbage", 7);
  CHECK_EQ(glyd_decompress(back, want.len, all.p, all.len, 1, NULL, NULL, &len, &error), GLYD_E_TRAILING);
  CHECK_EQ(error.offset, all.len - 7);
  free(back);
  free(all.p);
  free(want.p);
  free(data);
}

/* Readers of parts: header, segments, tail, trailer, one segment alone. */
static void test_parts(void) {
  const size_t n = 50000;
  uint8_t *data = make_content(n, 31);
  glyd_params params;
  glyd_params_init(&params, GLYD_LEVEL_MAX);
  params.segment_size = 7000;
  const buffer f = compress_all(data, n, &params);
  glyd_frame_info info;
  glyd_error error;
  CHECK_EQ(glyd_read_frame_header(f.p, f.len, &info, &error), GLYD_OK);
  CHECK_EQ(info.content_size, n);
  CHECK_EQ(info.segment_size, 8192);
  CHECK_EQ(info.level, GLYD_LEVEL_MAX);
  CHECK_EQ(info.check, GLYD_CHECK_XXH3_32);
  CHECK_EQ(info.has_trailer, 1);
  CHECK(info.decoder_memory >= 2 * 8192 + 4096 + (1 << 20));
  for (size_t cut = 0; cut < info.header_size; cut++) {
    glyd_frame_info unused;
    CHECK_EQ(glyd_read_frame_header(f.p, cut, &unused, &error), GLYD_E_TRUNCATED);
    CHECK(error.expected > cut && error.expected <= info.header_size);
  }
  glyd_tail tail;
  CHECK_EQ(glyd_read_tail(f.p + f.len - GLYD_TAIL_SIZE, GLYD_TAIL_SIZE, &tail), GLYD_OK);
  CHECK_EQ(tail.content_size, n);
  CHECK_EQ(tail.frame_size, f.len);
  CHECK_EQ(glyd_read_tail(f.p, GLYD_TAIL_SIZE, &tail), GLYD_E_HEADER);
  CHECK_EQ(glyd_read_tail(f.p, 3, &tail), GLYD_E_PARAMETER);
  CHECK_EQ(glyd_read_tail(f.p + f.len - GLYD_TAIL_SIZE, GLYD_TAIL_SIZE, &tail), GLYD_OK);
  glyd_index_entry entries[8];
  uint64_t count = 0;
  const uint8_t *trailer = f.p + f.len - tail.trailer_size;
  CHECK_EQ(glyd_read_trailer(trailer, tail.trailer_size, &info, NULL, &count, &error), GLYD_E_BUFFER);
  CHECK_EQ(count, 8);
  CHECK_EQ(glyd_read_trailer(trailer, tail.trailer_size, &info, entries, &count, &error), GLYD_OK);
  glyd_dctx *ctx;
  CHECK_EQ(glyd_dctx_create(&ctx, 1, NULL, NULL), GLYD_OK);
  size_t at = info.header_size;
  size_t content = 0;
  for (unsigned i = 0; i < count; i++) {
    TEST_AT("segment %u", i);
    glyd_segment_info s;
    CHECK_EQ(glyd_read_segment_header(f.p + at, f.len - at, &info, &s, &error), GLYD_OK);
    CHECK_EQ(s.content_size, entries[i].content_size);
    CHECK_EQ(s.header_size + s.payload_size, entries[i].stored_size);
    for (size_t cut = 0; cut < s.header_size; cut++) {
      glyd_segment_info unused;
      CHECK_EQ(glyd_read_segment_header(f.p + at, cut, &info, &unused, &error), GLYD_E_TRUNCATED);
      CHECK(error.expected > cut && error.expected <= s.header_size);
    }
    const size_t stored = (size_t)entries[i].stored_size;
    guard in = guard_copy(f.p + at, stored, i & 1);
    guard out = guard_new((size_t)s.content_size, i & 1);
    size_t len;
    CHECK_EQ(glyd_decode_segment(ctx, &info, out.p, (size_t)s.content_size, in.p, stored, &len), GLYD_OK);
    CHECK_EQ(len, s.content_size);
    CHECK_BYTES(out.p, data + content, len);
    CHECK_EQ(glyd_decode_segment(ctx, &info, out.p, len - 1, in.p, stored, &len), GLYD_E_BUFFER);
    CHECK_EQ(glyd_decode_segment(ctx, &info, out.p, (size_t)s.content_size, in.p, stored - 1, &len), GLYD_E_TRUNCATED);
    glyd_dctx_error(ctx, &error);
    CHECK_EQ(error.expected, stored);
    CHECK_EQ(error.found, stored - 1);
    guard_free(in);
    guard_free(out);
    at += stored;
    content += (size_t)s.content_size;
  }
  CHECK_EQ(content, n);
  glyd_segment_info end;
  CHECK_EQ(glyd_read_segment_header(f.p + at, f.len - at, &info, &end, &error), GLYD_OK);
  CHECK_EQ(end.kind, GLYD_KIND_END);
  /* A segment encoded alone decodes alone, and is the one a frame would hold. */
  glyd_cctx *cctx;
  uint8_t segment[7100];
  size_t len;
  params.content_size = n;
  CHECK_EQ(glyd_cctx_create(&cctx, &params), GLYD_OK);
  CHECK_EQ(glyd_encode_segment(cctx, segment, sizeof segment, data, 7000, &len), GLYD_OK);
  CHECK_EQ(len, entries[0].stored_size);
  CHECK_BYTES(segment, f.p + info.header_size, len);
  CHECK_EQ(glyd_encode_segment(cctx, segment, len - 1, data, 7000, &len), GLYD_E_BUFFER);
  CHECK_EQ(glyd_encode_segment(cctx, segment, sizeof segment, data, 7001, &len), GLYD_E_PARAMETER);
  CHECK_EQ(glyd_encode_segment(cctx, segment, sizeof segment, data, 0, &len), GLYD_E_PARAMETER);
  glyd_in in = {data, 10, 0};
  glyd_out out = {segment, sizeof segment, 0};
  size_t pending;
  CHECK_EQ(glyd_compress_stream(cctx, &out, &in, GLYD_CONTINUE, &pending), GLYD_OK);
  CHECK_EQ(glyd_encode_segment(cctx, segment, sizeof segment, data, 10, &len), GLYD_E_STATE);
  glyd_cctx_free(cctx);
  glyd_dctx_free(ctx);
  free(f.p);
  free(data);
}

/* Queries of memory are exact, and every failing allocation is reported. */
static void test_memory(void) {
  const size_t n = 400000;
  uint8_t *data = make_content(n, 41);
  for (int level = GLYD_LEVEL_DEFAULT; level <= GLYD_LEVEL_ULTRA; level++)
    for (int threads = 1; threads <= 3; threads += 2) {
      TEST_AT("level %d, threads %d", level, threads);
      glyd_params params;
      counter c;
      glyd_params_init(&params, level);
      params.threads = threads;
      params.segment_size = 65536;
      params.allocator = counter_allocator(&c);
      const uint64_t most = glyd_cctx_memory(&params);
      const int opens = params.containers != GLYD_CONTAINERS_OFF;
      params.containers = GLYD_CONTAINERS_OFF; /* opening is counted at its most, and there is nothing to open */
      glyd_cctx *cctx;
      buffer packed = {0};
      CHECK_EQ(glyd_cctx_create(&cctx, &params), GLYD_OK);
      CHECK_EQ(stream_encode(cctx, data, n, 10000, 10000, GLYD_END, &packed), GLYD_OK);
      CHECK_EQ(c.peak, glyd_cctx_memory(&params));
      CHECK(opens ? most > c.peak : most == c.peak);
      glyd_cctx_free(cctx);
      CHECK_EQ(c.now, 0);
      const uint64_t calls = c.calls;
      for (uint64_t i = 1; i <= calls; i++) {
        c = (counter){.fail_at = i};
        const glyd_status status = glyd_cctx_create(&cctx, &params);
        CHECK_EQ(status, GLYD_E_MEMORY);
        CHECK(cctx == NULL);
        CHECK_EQ(c.now, 0);
      }

      /* Reached when the last slot needs its buffer: give the decoder its
       * input at once and little room. */
      glyd_frame_info info;
      CHECK_EQ(glyd_read_frame_header(packed.p, packed.len, &info, NULL), GLYD_OK);
      glyd_allocator a = counter_allocator(&c);
      glyd_dctx *dctx;
      buffer back = {0};
      int at_end;
      CHECK_EQ(glyd_dctx_create(&dctx, threads, NULL, &a), GLYD_OK);
      CHECK_EQ(stream_decode(dctx, packed.p, packed.len, packed.len, 1000, &back, &at_end), GLYD_OK);
      CHECK(c.peak <= glyd_dctx_memory(&info, threads));
      CHECK(glyd_dctx_memory(&info, 1) <= info.decoder_memory);
      glyd_dctx_free(dctx);
      CHECK_EQ(c.now, 0);
      const uint64_t decode_calls = c.calls;
      for (uint64_t i = 1; i <= decode_calls; i++) {
        c = (counter){.fail_at = i};
        back.len = 0;
        glyd_status status = glyd_dctx_create(&dctx, threads, NULL, &a);
        if (status == GLYD_OK) status = stream_decode(dctx, packed.p, packed.len, packed.len, 1000, &back, &at_end);
        CHECK_EQ(status, GLYD_E_MEMORY);
        glyd_dctx_free(dctx);
        CHECK_EQ(c.now, 0);
      }
      size_t len = 0;
      uint8_t *out = malloc(n);
      a = counter_allocator(&c);
      CHECK_EQ(glyd_decompress(out, n, packed.p, packed.len, threads, NULL, &a, &len, NULL), GLYD_OK);
      CHECK(c.calls > 0 && c.now == 0);
      c = (counter){.fail_at = 1};
      CHECK_EQ(glyd_decompress(out, n, packed.p, packed.len, threads, NULL, &a, &len, NULL), GLYD_E_MEMORY);
      for (uint64_t i = 1;; i++) {
        c = (counter){.fail_at = i};
        uint8_t *frame = malloc(n + 10000);
        const glyd_status status = glyd_compress(frame, n + 10000, data, n, &params, &len);
        free(frame);
        CHECK_EQ(c.now, 0);
        if (c.calls < i) {
          CHECK_EQ(status, GLYD_OK);
          break;
        }
        CHECK_EQ(status, GLYD_E_MEMORY);
      }
      free(out);
      free(back.p);
      free(packed.p);
    }
  /* Equality: noise, byte by byte, makes every buffer as large as it gets. */
  uint64_t s = 1;
  for (size_t i = 0; i < n; i++) data[i] = (uint8_t)test_random(&s);
  for (int threads = 1; threads <= 2; threads++) {
    glyd_params params;
    glyd_params_init(&params, GLYD_LEVEL_DEFAULT);
    params.segment_size = 65536;
    for (size_t i = 0; i < 40000; i++) data[i] = (uint8_t) "abcd"[data[i] & 3]; /* part of it needs the LZ decoder */
    memcpy(data + 65536, data, 40000);
    memcpy(data + 200000, data, 40000);
    const buffer f = compress_all(data, n, &params);
    glyd_frame_info info;
    CHECK_EQ(glyd_read_frame_header(f.p, f.len, &info, NULL), GLYD_OK);
    counter c;
    glyd_allocator a = counter_allocator(&c);
    glyd_dctx *dctx;
    buffer back = {0};
    int at_end;
    TEST_AT("all of the decoder's memory, threads %d", threads);
    CHECK_EQ(glyd_dctx_create(&dctx, threads, NULL, &a), GLYD_OK);
    CHECK_EQ(stream_decode(dctx, f.p, f.len, f.len, 1000, &back, &at_end), GLYD_OK);
    CHECK_EQ(glyd_dctx_reset(dctx), GLYD_OK);
    back.len = 0;
    CHECK_EQ(stream_decode(dctx, f.p, f.len, 1, 1000, &back, &at_end), GLYD_OK);
    CHECK(back.len == n && memcmp(back.p, data, n) == 0);
    /* A payload that decodes is raw here: the slack of 4096 bytes is never used. */
    CHECK(c.peak <= glyd_dctx_memory(&info, threads) && c.peak + 4096 >= glyd_dctx_memory(&info, threads));
    glyd_dctx_free(dctx);
    free(back.p);
    free(f.p);
  }
  free(data);
}

static const uint8_t *segment_sizes(const buffer *frame, uint64_t *n, uint64_t *first, uint64_t *last) {
  glyd_frame_info info;
  glyd_error error;
  glyd_segment_info segment;
  CHECK_EQ(glyd_read_frame_header(frame->p, frame->len, &info, &error), GLYD_OK);
  const uint8_t *p = frame->p + info.header_size;
  for (*n = 0;; ++*n) {
    CHECK_EQ(glyd_read_segment_header(p, (size_t)(frame->p + frame->len - p), &info, &segment, &error), GLYD_OK);
    if (segment.kind == GLYD_KIND_END) return p;
    if (*n == 0) *first = segment.content_size;
    if (*n > 0 && *last != *first) return NULL; /* only the last may differ */
    *last = segment.content_size;
    p += segment.header_size + segment.payload_size;
  }
}

/* Known sizes are cut into an even number of equal segments, in one call and in
 * streams; unknown ones and those of a set size are not. Matches here are all
 * longer than 254 bytes: the plain encoder once chose length codes from no
 * lengths at all, so that leftovers on the stack decided the bytes. */
static void test_balanced_segments(void) {
  static const struct {
    uint64_t size, n, first;
    int level;
  } cases[] = {
      {(uint64_t)16 << 20, 2, 8 << 20, GLYD_LEVEL_MAX},
      {((uint64_t)8 << 20) + 1, 2, (4 << 20) + 4096, GLYD_LEVEL_MAX},
      {((uint64_t)20 << 20), 4, 5 << 20, GLYD_LEVEL_MAX},
      {(uint64_t)20 << 20, 2, 10 << 20, GLYD_LEVEL_HIGH},
      {((uint64_t)32 << 20) + 1, 2, (16 << 20) + 4096, GLYD_LEVEL_ULTRA},
      {((uint64_t)4 << 20) + 1, 2, (2 << 20) + 4096, GLYD_LEVEL_TURBO},
      {(uint64_t)8 << 20, 2, 4 << 20, GLYD_LEVEL_TURBO},
      {((uint64_t)8 << 20) + 1, 4, (2 << 20) + 4096, GLYD_LEVEL_TURBO},
      {(uint64_t)12 << 20, 4, 3 << 20, GLYD_LEVEL_TURBO},
      {12582911, 4, 3 << 20, GLYD_LEVEL_TURBO},
      {(uint64_t)128 << 20, 32, 4 << 20, GLYD_LEVEL_TURBO},
      {((uint64_t)128 << 20) + 5, 33, 4 << 20, GLYD_LEVEL_TURBO},
  };
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    const size_t size = (size_t)cases[i].size;
    TEST_AT("%zu bytes", size);
    uint8_t *data = calloc(1, size);
    if (!data) abort();
    for (size_t k = 0; k < size; k += 5000) data[k] = (uint8_t)(k / 5000);
    glyd_params params;
    glyd_params_init(&params, cases[i].level);
    params.threads = 1 + (int)(i % 3);
    const uint64_t most = (uint64_t)(cases[i].level == GLYD_LEVEL_ULTRA  ? 32
                                     : cases[i].level == GLYD_LEVEL_HIGH ? 16
                                     : cases[i].level == GLYD_LEVEL_MAX  ? 8
                                                                         : 4)
                          << 20;
    uint64_t n = 0, first = 0, last = 0;
    const buffer one = compress_all(data, size, &params);
    CHECK(segment_sizes(&one, &n, &first, &last) != NULL);
    CHECK_EQ(n, cases[i].n);
    CHECK_EQ(first, cases[i].first);
    CHECK_EQ(first * (n - 1) + last, size);
    for (int known = 0; known < 2; known++) {
      glyd_cctx *cctx;
      buffer packed = {0};
      params.content_size = known ? size : GLYD_SIZE_UNKNOWN;
      CHECK_EQ(glyd_cctx_create(&cctx, &params), GLYD_OK);
      CHECK_EQ(stream_encode(cctx, data, size, 1 << 20, 1 << 20, GLYD_END, &packed), GLYD_OK);
      CHECK(segment_sizes(&packed, &n, &first, &last) != NULL);
      CHECK_EQ(first, known ? cases[i].first : most);
      CHECK(!known || (packed.len == one.len && memcmp(packed.p, one.p, one.len) == 0));
      glyd_cctx_free(cctx);
      free(packed.p);
    }
    params.segment_size = 3 << 20;
    const buffer set = compress_all(data, size, &params);
    CHECK(segment_sizes(&set, &n, &first, &last) != NULL);
    CHECK_EQ(first, 3 << 20);
    free(set.p);
    free(one.p);
    free(data);
  }
}

static void test_names(void) {
  CHECK_EQ(glyd_version(), GLYD_VERSION_MAJOR * 10000 + GLYD_VERSION_MINOR * 100 + GLYD_VERSION_PATCH);
  CHECK(strcmp(glyd_level_name(GLYD_LEVEL_TURBO), "turbo") == 0);
  CHECK(strcmp(glyd_level_name(GLYD_LEVEL_MAX), "max") == 0);
  CHECK(glyd_level_name(99) == NULL);
  for (int i = -1; i < 100; i++) {
    const int known = i == 0 || (i >= 10 && i <= 13) || (i >= 20 && i <= 23) || (i >= 30 && i <= 33) ||
                      (i >= 40 && i <= 43) || i == 60 || i == 61 || i == 70 || i == 80;
    CHECK_EQ(strcmp(glyd_status_text((glyd_status)i), "unknown status") != 0, known);
  }
}

int main(void) {
  test_round_trips();
  test_same_bytes_everywhere();
  test_stream_pieces();
  test_flush();
  test_frames_in_a_row();
  test_parts();
  test_memory();
  test_balanced_segments();
  test_names();
  return test_end();
}
