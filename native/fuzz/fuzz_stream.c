/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Streaming decompression in pieces of random sizes comes to what one call
 * comes to. The sizes follow from a hash of the input.
 */
#include "fuzz.h"

static uint64_t seed;

static size_t piece(size_t most) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  const size_t n = seed % 5 == 0 ? (size_t)(seed >> 32) % 65536 : (size_t)(seed >> 32) % 40;
  return n < most ? n : most;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  seed = glyd_checksum(data, size) | 1;
  fuzz_memory memory = {0, 0};
  const glyd_allocator allocator = {fuzz_alloc, fuzz_free, &memory};
  const glyd_limits limits = {.max_output = FUZZ_OUTPUT_MAX, .max_memory = FUZZ_MEMORY_MAX, .max_segments = 1 << 16};
  static uint8_t whole[FUZZ_OUTPUT_MAX];
  static uint8_t pieces[FUZZ_OUTPUT_MAX];
  size_t len = 0;
  const glyd_status want = glyd_decompress(whole, sizeof whole, data, size, 1, &limits, NULL, &len, NULL);
  glyd_dctx *ctx = NULL;
  FUZZ_CHECK(glyd_dctx_create(&ctx, 1 + (int)(seed % 3), &limits, &allocator) == GLYD_OK);
  glyd_out out = {pieces, 0, 0};
  glyd_in in = {data, 0, 0};
  int at_end = 1;
  glyd_status status = GLYD_OK;
  for (unsigned idle = 0; status == GLYD_OK && idle < 1000;) {
    in.size += piece(size - in.size);
    out.size += piece(sizeof pieces - out.size);
    const size_t before = in.pos + out.pos;
    status = glyd_decompress_stream(ctx, &out, &in, &at_end);
    FUZZ_CHECK(in.pos <= in.size && out.pos <= out.size);
    if (at_end && in.pos == size) break;
    idle = in.pos + out.pos == before ? idle + 1 : 0;
  }
  /* A frame whose segments fit but whose promise does not is for one call only. */
  if (status != GLYD_E_LIMIT_MEMORY) {
    if (want == GLYD_OK) FUZZ_CHECK(status == GLYD_OK && at_end && out.pos == len && memcmp(whole, pieces, len) == 0);
    if (want == GLYD_E_TRUNCATED && size > 0) FUZZ_CHECK(status == GLYD_OK && !at_end);
    if (want != GLYD_OK && want != GLYD_E_TRUNCATED) FUZZ_CHECK(status == want);
  }
  glyd_dctx_free(ctx);
  FUZZ_CHECK(memory.now == 0 && memory.peak <= FUZZ_MEMORY_MAX + (64 << 10));
  return 0;
}
