/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What goes in comes out: the first bytes choose parameters and piece sizes,
 * the rest is content. One call and streaming give the same frame.
 */
#include "frame/plan_encode.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 4) return 0;
  glyd_params params;
  glyd_params_init(&params, GLYD_LEVEL_TURBO + (data[0] % 4 + (data[0] >> 6 & 1) * 4) % GLYD_LEVEL_COLD);
  params.threads = 1 + (data[0] >> 2) % 2;
  params.checksum = (data[0] >> 3) & 1;
  params.cpu = (data[0] >> 4) & 1;
  params.records = (data[0] >> 5) & 1;
  if (params.level == GLYD_LEVEL_COLD) params.records = GLYD_RECORDS_OFF; /* refused together */
  params.segment_size = data[1] & 1 ? (uint64_t)1024 + data[2] * 64u : 0;
  const size_t step = 1 + (size_t)data[3] * data[3];
  const int flushes = (data[1] >> 1) & 1;
  data += 4;
  size -= 4;
  const size_t cap = (size_t)glyd_compress_bound(size, &params) + 64 * (size + 1);
  uint8_t *one = malloc(cap);
  uint8_t *two = malloc(cap);
  uint8_t *back = malloc(size + 1);
  if (!one || !two || !back) abort();
  size_t one_len = 0;
  size_t back_len = 0;
  FUZZ_CHECK(glyd_compress(one, cap, data, size, &params, &one_len) == GLYD_OK);
  FUZZ_CHECK(one_len <= glyd_compress_bound(size, &params));
  FUZZ_CHECK(glyd_decompress(back, size, one, one_len, 1, NULL, NULL, &back_len, NULL) == GLYD_OK);
  FUZZ_CHECK(back_len == size && (size == 0 || memcmp(back, data, size) == 0));

  glyd_cctx *ctx = NULL;
  params.content_size = size;
  FUZZ_CHECK(glyd_cctx_create(&ctx, &params) == GLYD_OK);
  glyd_in in = {data, 0, 0};
  glyd_out out = {two, cap, 0};
  size_t pending = 1;
  while (in.size < size) {
    in.size += step < size - in.size ? step : size - in.size;
    FUZZ_CHECK(glyd_compress_stream(ctx, &out, &in, flushes ? GLYD_FLUSH : GLYD_CONTINUE, &pending) == GLYD_OK);
    FUZZ_CHECK(pending == 0 && in.pos == in.size);
  }
  FUZZ_CHECK(glyd_compress_stream(ctx, &out, &in, GLYD_END, &pending) == GLYD_OK && pending == 0);
  glyd_cctx_free(ctx);
  /* at level cold, one call may keep the frame of another level, which a stream has no content for when it begins */
  if (!flushes && params.level == GLYD_LEVEL_COLD && size <= GLYD_SMALL_CONTENT)
    FUZZ_CHECK(one_len <= out.pos);
  else if (!flushes)
    FUZZ_CHECK(out.pos == one_len && memcmp(one, two, one_len) == 0);
  memset(back, 0, size);
  FUZZ_CHECK(glyd_decompress(back, size, two, out.pos, 1, NULL, NULL, &back_len, NULL) == GLYD_OK);
  FUZZ_CHECK(back_len == size && (size == 0 || memcmp(back, data, size) == 0));
  free(one);
  free(two);
  free(back);
  return 0;
}
