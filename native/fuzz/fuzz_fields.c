/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The decoder of weights segments on any bytes, without the frame's checks in
 * the way, and the encoder on the same bytes as content: the input is a payload
 * (after a frame header, if it starts with one).
 */
#include "common/cpu.h"
#include "fuzz.h"
#include "glyd/base.h"
#include "segment/segment_weights_decode.h"

#define CONTENT_MAX ((size_t)1 << 18)

static void decode(const uint8_t *data, size_t size, size_t len) {
  static uint8_t older[CONTENT_MAX / 2]; /* differences to it are read as well */
  for (size_t i = 0; i < sizeof older; i++) older[i] = (uint8_t)(i * i >> 7);
  glyd_base *base;
  FUZZ_CHECK(glyd_base_create(&base, older, sizeof older, 0, NULL) == GLYD_OK);
  static _Alignas(64) uint8_t workspace[1 << 20];
  FUZZ_CHECK(glyd_segment_weights_decode_workspace() <= sizeof workspace);
  /* Exact memory of its own on both sides: a sanitizer sees every byte too far. */
  uint8_t *in = malloc(size);
  if (size > 0 && !in) abort();
  if (size > 0) memcpy(in, data, size);
  uint8_t *out[2];
  glyd_status status[2];
  for (int i = 0; i < 2; i++) {
    out[i] = malloc(len);
    if (!out[i]) abort();
    status[i] = glyd_segment_weights_decode(i == 0 ? glyd_cpu_features() : GLYD_CPU_SCALAR, workspace, base, out[i],
                                            len, in, size, NULL);
  }
  FUZZ_CHECK((status[0] == GLYD_OK) == (status[1] == GLYD_OK));
  FUZZ_CHECK(status[0] != GLYD_OK || memcmp(out[0], out[1], len) == 0);
  glyd_base_free(base);
  free(out[0]);
  free(out[1]);
  free(in);
}

static void round_trip(const uint8_t *data, size_t size) {
  glyd_params params;
  glyd_params_init(&params, GLYD_LEVEL_TURBO + (size > 0 ? data[0] % 4 : 0));
  params.weights = GLYD_WEIGHTS_ON;
  const size_t cap = (size_t)glyd_compress_bound(size, &params);
  uint8_t *out = malloc(cap), *back = malloc(size + 1);
  if (!out || !back) abort();
  size_t n, m;
  FUZZ_CHECK(glyd_compress(out, cap, data, size, &params, &n) == GLYD_OK);
  FUZZ_CHECK(glyd_decompress(back, size, out, n, 1, NULL, NULL, &m, NULL) == GLYD_OK);
  FUZZ_CHECK(m == size && (size == 0 || memcmp(back, data, size) == 0));
  free(out);
  free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  glyd_frame_info frame;
  glyd_segment_info segment;
  round_trip(data, size);
  size_t len = size > 1 ? ((size_t)data[size - 1] << 8 | data[size - 2]) + 1 : 1;
  if (glyd_read_frame_header(data, size, &frame, NULL) == GLYD_OK && !frame.is_skippable) {
    data += frame.header_size;
    size -= frame.header_size;
    if (glyd_read_segment_header(data, size, &frame, &segment, NULL) == GLYD_OK && segment.kind == GLYD_KIND_WEIGHTS) {
      data += segment.header_size;
      size -= segment.header_size;
      if (size > segment.payload_size) size = (size_t)segment.payload_size;
      if (segment.content_size <= CONTENT_MAX) len = (size_t)segment.content_size;
    }
  }
  decode(data, size, len);
  return 0;
}
