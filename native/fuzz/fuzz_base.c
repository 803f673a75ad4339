/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Base segments: any bytes as a payload, which every CPU variant must read or
 * refuse alike; and any bytes as content, written against a base and read back,
 * also as the base of a third content that is read through its frame, whole or damaged.
 */
#include "common/cpu.h"
#include "fuzz.h"
#include "glyd/base.h"
#include "segment/segment_base_decode.h"

#define CONTENT_MAX \
  ((size_t)1 << 14) /* 16 segments, four times the base; each read through a frame has its workspace */
#define BASE_SIZE 4096

/* Lines with counters, noise and a run of zeros, the same each time. */
static void make_base(uint8_t base[BASE_SIZE]) {
  uint32_t x = 1;
  for (size_t i = 0; i < BASE_SIZE; i++) {
    x = x * 1664525u + 1013904223u;
    base[i] = i < 1024   ? (uint8_t)("line 0000: some words and more\n"[i % 31] + (i % 31 == 8 ? i / 31 % 10 : 0))
              : i < 3072 ? (uint8_t)(x >> 24)
                         : 0;
  }
}

static void decode(const glyd_base *base, const uint8_t *data, size_t size) {
  const size_t len = size > 1 ? ((size_t)data[size - 1] << 8 | data[size - 2]) + 1 : 1;
  void *workspace;
  if (posix_memalign(&workspace, 64, (size_t)glyd_segment_base_decode_workspace(len)) != 0) abort();
  uint8_t *in = malloc(size), *out[2];
  if (size > 0 && !in) abort();
  if (size > 0) memcpy(in, data, size);
  glyd_status status[2];
  for (int i = 0; i < 2; i++) {
    out[i] = malloc(len);
    if (!out[i]) abort();
    status[i] = glyd_segment_base_decode(i == 0 ? glyd_cpu_features() : GLYD_CPU_SCALAR, workspace, base, out[i], len,
                                         in, size);
  }
  FUZZ_CHECK((status[0] == GLYD_OK) == (status[1] == GLYD_OK));
  FUZZ_CHECK(status[0] != GLYD_OK || memcmp(out[0], out[1], len) == 0);
  free(out[0]);
  free(out[1]);
  free(in);
  free(workspace);
}

/* Read frame through a base that is given as a frame: 0 unless that gave the content. */
static int read_through(const uint8_t *middle, size_t middle_len, const glyd_base *below, const uint8_t *frame,
                        size_t frame_len, const uint8_t *content, uint8_t *back, size_t len) {
  glyd_base *base;
  if (glyd_base_create_frames(&base, middle, middle_len, 0, below, NULL, NULL, NULL) != GLYD_OK) return 0;
  size_t back_len = 0;
  const glyd_status status = glyd_decompress_base(back, len, frame, frame_len, base, 1, NULL, NULL, &back_len, NULL);
  glyd_base_free(base);
  FUZZ_CHECK(status != GLYD_OK || (back_len == len && memcmp(back, content, len) == 0));
  return status == GLYD_OK;
}

/* A third version against content, which is read from its frame: whole, then damaged. */
static void read_chain(const glyd_base *below, const uint8_t *content, size_t len, uint8_t *frame, size_t frame_len,
                       const uint8_t *data, size_t size) {
  glyd_base *base;
  FUZZ_CHECK(glyd_base_create(&base, content, len, 0, NULL) == GLYD_OK && glyd_base_index(base) == GLYD_OK);
  uint8_t *third = malloc(len + 1), *back = malloc(len + 1);
  if (!third || !back) abort();
  const size_t turn = len / 3;
  memcpy(third, content + turn, len - turn);
  memcpy(third + len - turn, content, turn);
  glyd_params params;
  glyd_params_init(&params, GLYD_LEVEL_FAST);
  params.base = base;
  params.segment_size = 2048;
  const size_t cap = (size_t)glyd_compress_bound(len, &params);
  uint8_t *against = malloc(cap);
  if (!against) abort();
  size_t against_len = 0;
  FUZZ_CHECK(glyd_compress(against, cap, third, len, &params, &against_len) == GLYD_OK);
  FUZZ_CHECK(read_through(frame, frame_len, below, against, against_len, third, back, len));
  for (size_t i = 0; i + 2 < size && i < 12; i += 3) {
    frame[((size_t)data[i] << 8 | data[i + 1]) % frame_len] ^= data[i + 2];
    (void)read_through(frame, frame_len, below, against, against_len, third, back, len);
  }
  glyd_base_free(base);
  free(against);
  free(back);
  free(third);
}

/* Each byte of data is a piece of the base, or itself. */
static void round_trip(const glyd_base *base, const uint8_t *bytes, const uint8_t *data, size_t size) {
  uint8_t *content = malloc(CONTENT_MAX);
  if (!content) abort();
  size_t len = 0;
  for (size_t i = 0; i < size; i++) {
    const size_t n = data[i] % 5 == 0 ? 1 : data[i];
    if (n > CONTENT_MAX - len) break;
    if (n == 1)
      content[len] = data[i];
    else
      memcpy(content + len, bytes + (size_t)data[i] * 7 % (BASE_SIZE - 256), n);
    len += n;
  }
  glyd_params params;
  glyd_params_init(&params, size > 0 ? 1 + data[0] % 4 : GLYD_LEVEL_MAX);
  params.base = base;
  params.segment_size = 1024;
  const size_t cap = (size_t)glyd_compress_bound(len, &params);
  uint8_t *frame = malloc(cap), *back = malloc(len + 1);
  if (!frame || !back) abort();
  size_t frame_len = 0, back_len = 0;
  FUZZ_CHECK(glyd_compress(frame, cap, content, len, &params, &frame_len) == GLYD_OK);
  FUZZ_CHECK(glyd_decompress_base(back, len, frame, frame_len, base, 1, NULL, NULL, &back_len, NULL) == GLYD_OK);
  FUZZ_CHECK(back_len == len && memcmp(back, content, len) == 0);
  read_chain(base, content, len, frame, frame_len, data, size);
  free(back);
  free(frame);
  free(content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t bytes[BASE_SIZE];
  make_base(bytes);
  glyd_base *base = NULL;
  FUZZ_CHECK(glyd_base_create(&base, bytes, sizeof bytes, 0, NULL) == GLYD_OK);
  decode(base, data, size);
  if (size <= 4096) {
    FUZZ_CHECK(glyd_base_index(base) == GLYD_OK);
    round_trip(base, bytes, data, size);
  }
  glyd_base_free(base);
  return 0;
}
