/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "filter/filter_decode.h"

#include "common/cpu.h"
#include "filter/filter_code.h"
#include "filter/filter_decode_avx2.h"

size_t glyd_filter_read(const uint8_t *in, size_t len, glyd_filter *filter) {
  if (len < 1) return 0;
  *filter = (glyd_filter){.kind = in[0]};
  if (in[0] == GLYD_FILTER_X86 || in[0] == GLYD_FILTER_ARM64) return 1;
  if (in[0] != GLYD_FILTER_DELTA || len < 2 || in[1] > 63 || (in[1] & 3) == 3) return 0;
  filter->width_log = in[1] & 3;
  filter->stride = (in[1] >> 2) + 1u;
  return 2;
}

static void add_bytes(uint8_t *data, size_t n, size_t stride) {
  for (size_t i = stride; i < n; i++) data[i] = (uint8_t)(data[i] + data[i - stride]);
}

static void add_shorts(uint8_t *data, size_t n, size_t stride) {
  for (size_t i = stride; i < n; i++)
    glyd_store16(data + 2 * i, (uint16_t)(glyd_load16(data + 2 * i) + glyd_load16(data + 2 * (i - stride))));
}

static void add_words(uint8_t *data, size_t n, size_t stride) {
  for (size_t i = stride; i < n; i++)
    glyd_store32(data + 4 * i, glyd_load32(data + 4 * i) + glyd_load32(data + 4 * (i - stride)));
}

static void undo_x86(unsigned cpu, uint8_t *data, size_t n) {
#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX2) {
    glyd_filter_undo_x86_avx2(data, n);
    return;
  }
#endif
  (void)cpu;
  glyd_filter_x86_walk(data, n, 0, glyd_filter_x86_find_plain);
}

void glyd_filter_undo(unsigned cpu, const glyd_filter *filter, uint8_t *data, size_t n) {
  switch (filter->kind) {
  case GLYD_FILTER_X86: undo_x86(cpu, data, n); break;
  case GLYD_FILTER_ARM64: glyd_filter_arm64_walk(data, n, 0); break;
  case GLYD_FILTER_DELTA:
    if (filter->width_log == 0)
      add_bytes(data, n, filter->stride);
    else if (filter->width_log == 1)
      add_shorts(data, n >> 1, filter->stride);
    else
      add_words(data, n >> 2, filter->stride);
    break;
  default: break;
  }
}
