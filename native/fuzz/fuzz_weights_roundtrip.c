/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Any weights of any small shape: both variants and any division of the rows
 * give the same pack, within the bound, and it gives the weights back.
 */
#include "fuzz.h"
#include "glyd/weights.h"

/* Words of files are noise, which does not pay: most modes bring exponents together, as weights have them. */
static uint16_t weight(uint16_t v, unsigned mode, int keep) {
  if (mode == 0 || keep) return v;
  if (mode == 1) return (uint16_t)((v & 0x81FF) | 118 << 7);
  const unsigned down = (unsigned)__builtin_ctz((v >> 3) | 1u << (mode == 2 ? 3 : 12)); /* half, a quarter, ... */
  return (uint16_t)((v & 0x807F) | (121 - down) << 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t work[1 << 17];
  if (size < 6) return 0;
  /* from the middle, as files of one kind begin alike; tiles nearly full, as others do not pay */
  const unsigned a = data[size / 2];
  const unsigned b = data[size / 3];
  const glyd_weights_shape shape = {1 + data[size / 5] % 2, 64 * (1 + a % 3) - a / 3 % 9,
                                    128 * (1 + b % 3) - b / 3 % 9};
  const size_t n_values = (size - 4) / 2;
  const size_t n = (size_t)(shape.rows * shape.cols);
  const size_t cap = (size_t)glyd_weights_pack_bound(&shape);
  const size_t n_work = glyd_weights_workspace();
  uint8_t *w = malloc(2 * n);
  uint8_t *back = malloc(2 * n);
  uint8_t *out[2] = {malloc(cap + 1), malloc(cap + 1)};
  if (!w || !back || !out[0] || !out[1]) abort();
  const unsigned mode = data[size / 6] % 4;
  for (size_t i = 0; i < n; i++) {
    uint16_t v;
    memcpy(&v, data + 4 + 2 * (i % n_values), 2);
    v = weight(v, mode, i % 61 == 0);
    memcpy(w + 2 * i, &v, 2);
  }
  size_t len[2] = {0, 0};
  for (int cpu = 0; cpu < 2; cpu++) {
    const glyd_status status = glyd_weights_pack(out[cpu], cap, &shape, w, work, n_work, cpu, &len[cpu]);
    FUZZ_CHECK(status == GLYD_OK);
  }
  FUZZ_CHECK(len[0] == len[1] && len[0] <= cap);
  if (len[0] != 0) {
    FUZZ_CHECK(memcmp(out[0], out[1], len[0]) == 0);
    memset(out[1], 0xA5, cap);
    size_t planned = 0;
    const uint64_t last = (shape.rows - 1) / 64 * 64; /* ranges last to first */
    for (int step = 0; step < 2; step++) {
      for (uint64_t first = last;; first -= 64) {
        const uint64_t rows = shape.rows - first < 64 ? shape.rows - first : 64;
        const uint8_t *at = w + 2 * first * shape.cols;
        const glyd_status status = step == 0
                                       ? glyd_weights_plan_rows(out[1], cap, &shape, first, rows, at, work, n_work, 0)
                                       : glyd_weights_pack_rows(out[1], cap, &shape, first, rows, at, work, n_work, 1);
        FUZZ_CHECK(status == GLYD_OK);
        if (first == 0) break;
      }
      if (step == 0) FUZZ_CHECK(glyd_weights_plan_end(out[1], cap, &shape, &planned) == GLYD_OK);
    }
    FUZZ_CHECK(planned == len[0] && memcmp(out[0], out[1], planned) == 0);
    for (int cpu = 0; cpu < 2; cpu++) {
      FUZZ_CHECK(glyd_weights_unpack_rows(back, 2 * n, out[0], len[0], 0, shape.rows, work, n_work, cpu) == GLYD_OK);
      FUZZ_CHECK(memcmp(back, w, 2 * n) == 0);
    }
  }
  free(w);
  free(back);
  free(out[0]);
  free(out[1]);
  return 0;
}
