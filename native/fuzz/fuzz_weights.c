/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Any bytes as a pack of weights: refused or unpacked, by both variants alike,
 * whole and in ranges of rows. A row block that one range reads, all read.
 */
#include "fuzz.h"
#include "glyd/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t work[1 << 17];
  FUZZ_CHECK(glyd_weights_workspace() <= sizeof work);
  glyd_weights_info info;
  if (glyd_weights_read_info(data, size, &info) != GLYD_OK) return 0;
  /* a header that holds makes the weights no more than the pack's tiles have room for */
  const uint64_t rows = info.shape.rows;
  const size_t row = (size_t)(2 * info.shape.cols);
  FUZZ_CHECK(info.size <= size);
  FUZZ_CHECK(rows * info.shape.cols * 10 / 8 <= size);
  const size_t len = (size_t)rows * row;
  glyd_status status[2];
  uint8_t *out[2];
  for (int cpu = 0; cpu < 2; cpu++) {
    out[cpu] = calloc(len, 1);
    if (!out[cpu]) abort();
    status[cpu] = glyd_weights_unpack_rows(out[cpu], len, data, size, 0, rows, work, sizeof work, cpu);
  }
  FUZZ_CHECK(status[0] == status[1]);
  FUZZ_CHECK(status[0] == GLYD_OK || status[0] == GLYD_E_CORRUPT);
  FUZZ_CHECK(status[0] != GLYD_OK || memcmp(out[0], out[1], len) == 0);
  int any_bad = 0;
  for (uint64_t first = 0; first < rows; first += 48) { /* across the edges of row blocks */
    const uint64_t n = rows - first < 48 ? rows - first : 48;
    uint8_t *part = malloc((size_t)n * row);
    if (!part) abort();
    const glyd_status s = glyd_weights_unpack_rows(part, (size_t)n * row, data, size, first, n, work, sizeof work, 0);
    any_bad |= s != GLYD_OK;
    FUZZ_CHECK(status[0] != GLYD_OK || memcmp(part, out[0] + first * row, (size_t)n * row) == 0);
    free(part);
  }
  FUZZ_CHECK(any_bad == (status[0] != GLYD_OK));
  free(out[0]);
  free(out[1]);
  return 0;
}
