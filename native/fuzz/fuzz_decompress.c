/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * glyd_decompress on any bytes: within the limits, and every code variant and
 * thread count comes to the same result.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_memory memory = {0, 0};
  const glyd_allocator allocator = {fuzz_alloc, fuzz_free, &memory};
  glyd_limits limits = {.max_output = FUZZ_OUTPUT_MAX, .max_memory = FUZZ_MEMORY_MAX, .max_segments = 1 << 16};
  glyd_error error;
  uint64_t total = 0;
  const glyd_status sized = glyd_content_size(data, size, &limits, &total, &error);
  FUZZ_CHECK(total <= FUZZ_OUTPUT_MAX && (sized == GLYD_OK || total == 0));
  const size_t cap = sized == GLYD_OK ? (size_t)total : 1 << 16;
  uint8_t *out[2];
  glyd_status status[2];
  glyd_error errors[2];
  size_t len[2];
  for (int i = 0; i < 2; i++) {
    out[i] = malloc(cap + 1);
    if (!out[i]) abort();
    limits.cpu = i == 0 ? GLYD_CPU_CHOICE_BEST : GLYD_CPU_CHOICE_SCALAR;
    status[i] = glyd_decompress(out[i], cap, data, size, i == 0 ? 1 : 2, &limits, &allocator, &len[i], &errors[i]);
    FUZZ_CHECK(memory.now == 0 && memory.peak <= FUZZ_MEMORY_MAX);
    FUZZ_CHECK(status[i] != GLYD_OK || sized != GLYD_OK || len[i] == total);
    FUZZ_CHECK(sized == GLYD_OK || status[i] != GLYD_OK);
  }
  FUZZ_CHECK(status[0] == status[1] && len[0] == len[1]);
  FUZZ_CHECK(status[0] == GLYD_OK || errors[0].offset == errors[1].offset);
  FUZZ_CHECK(status[0] != GLYD_OK || memcmp(out[0], out[1], len[0]) == 0);
  free(out[0]);
  free(out[1]);
  return 0;
}
