/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Filters: what is changed comes back, whatever it is; the walk by steps and
 * chunks sees what spec.md says; segments gain by them and broken heads are refused.
 */
#include "common/cpu.h"
#include "filter/filter_code.h"
#include "filter/filter_decode.h"
#include "filter/filter_encode.h"
#include "glyd/glyd.h"
#include "test.h"

#include <stdlib.h>

#define MOST 10000 /* two chunks and more */

static uint32_t state = 1;
static uint32_t next_random(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

/* Bytes of which many look like instructions with addresses near and far. */
static void make_code(uint8_t *p, size_t n) {
  static const uint8_t starts[8] = {0xE8, 0xE9, 0x0F, 0x48, 0x4C, 0x8B, 0x8D, 0x85};
  for (size_t i = 0; i < n; i++) {
    const uint32_t r = next_random();
    p[i] = (uint8_t)(r & 3 ? r >> 8 : r & 4 ? starts[r >> 8 & 7] : r & 8 ? 0 : 0xFF);
  }
}

/* x86 word for word as spec.md has it, forwards. */
static void plain_x86(uint8_t *p, int64_t n) {
  for (int64_t i = 0; i < n;) {
    const int64_t size = i + 3 <= n ? glyd_filter_x86_opcode(p + i) : (p[i] & 0xFE) == 0xE8 ? 1 : 0;
    const int64_t end = i + size + 4;
    if (size == 0 || end > n) {
      i++;
      continue;
    }
    int64_t v = (int32_t)glyd_load32(p + end - 4);
    if (v >= -end && v < n - end)
      v += end;
    else if (v >= n - end && v < n)
      v -= n;
    glyd_filter_store_be(p + end - 4, (uint32_t)v);
    i = end;
  }
}

static void test_all_come_back(void) {
  static uint8_t in[MOST], changed[MOST], plain[MOST];
  for (unsigned round = 0; round < 3000; round++) {
    const size_t n = round < 100 ? round : next_random() % MOST;
    uint8_t *const a = changed + MOST - n; /* the end of the array is the end of what may be touched */
    make_code(in, n);
    for (int kind = GLYD_FILTER_X86; kind <= GLYD_FILTER_DELTA; kind++) {
      const glyd_filter f = {kind, round % 3, 1 + round / 3 % 16};
      memcpy(a, in, n);
      glyd_filter_apply(&f, a, n);
      if (kind == GLYD_FILTER_X86) {
        memcpy(plain, in, n);
        plain_x86(plain, (int64_t)n);
        CHECK(memcmp(plain, a, n) == 0);
      }
      if (n > 1000) CHECK(memcmp(in, a, n) != 0 || kind == GLYD_FILTER_ARM64);
      memcpy(plain, a, n);
      glyd_filter_undo(GLYD_CPU_SCALAR, &f, plain, n);
      CHECK(memcmp(in, plain, n) == 0);
      glyd_filter_undo(glyd_cpu_features(), &f, a, n);
      CHECK(memcmp(in, a, n) == 0);
      uint8_t head[GLYD_FILTER_HEAD_MAX];
      glyd_filter back;
      const size_t len = (size_t)(glyd_filter_write(&f, head) - head);
      CHECK(glyd_filter_read(head, len, &back) == len && back.kind == kind);
      CHECK(kind != GLYD_FILTER_DELTA || (back.width_log == f.width_log && back.stride == f.stride));
    }
  }
}

static void test_heads(void) {
  glyd_filter f;
  for (unsigned kind = 0; kind < 256; kind++)
    for (unsigned shape = 0; shape < 256; shape++) {
      const uint8_t head[2] = {(uint8_t)kind, (uint8_t)shape};
      const size_t want = kind == 1 || kind == 2 ? 1 : kind == 3 && shape < 64 && (shape & 3) != 3 ? 2 : 0;
      CHECK(glyd_filter_read(head, 2, &f) == want);
      CHECK(glyd_filter_read(head, 1, &f) == (want == 2 ? 0 : want));
    }
  CHECK(glyd_filter_read(NULL, 0, &f) == 0);
}

/* Calls of few places from many, in words that do not repeat otherwise; a walk of 16-bit samples. */
static void make_content(int kind, uint8_t *p, size_t n) {
  int level = 0;
  for (size_t i = 0; i + 8 <= n; i += 8) {
    glyd_store64(p + i, (uint64_t)next_random() << 40 | (uint64_t)(next_random() & 0xFF) << 24 | 0x90);
    const uint32_t target = (next_random() & 63) * 4096;
    if (kind == GLYD_FILTER_X86) {
      p[i] = 0xE8;
      glyd_store32(p + i + 1, target - (uint32_t)(i + 5));
    } else if (kind == GLYD_FILTER_ARM64) {
      glyd_store32(p + i, 0x94000000u | ((target - (uint32_t)(i >> 2)) & 0x03FFFFFFu));
    } else {
      for (size_t k = 0; k < 8; k += 2) {
        level += (int)(next_random() & 15) - 7;
        glyd_store16(p + i + k, (uint16_t)level);
      }
    }
  }
}

static void test_segments(void) {
  const size_t n = 600000;
  uint8_t *in = malloc(n), *out = malloc(n + 4096), *back = malloc(n);
  for (int kind = GLYD_FILTER_X86; kind <= GLYD_FILTER_DELTA; kind++)
    for (int level = GLYD_LEVEL_MAX; level <= GLYD_LEVEL_ULTRA; level++) {
      size_t sizes[2], len;
      make_content(kind, in, n);
      glyd_params params;
      glyd_params_init(&params, level);
      CHECK(glyd_compress(out, n + 4096, in, n, &params, &sizes[0]) == GLYD_OK);
      glyd_frame_info frame;
      glyd_segment_info segment;
      CHECK(glyd_read_frame_header(out, sizes[0], &frame, NULL) == GLYD_OK);
      CHECK(glyd_read_segment_header(out + frame.header_size, sizes[0] - frame.header_size, &frame, &segment, NULL) ==
            GLYD_OK);
      CHECK(segment.kind == (level >= GLYD_LEVEL_HIGH ? GLYD_KIND_FILTERED : GLYD_KIND_LZ));
      for (int cpu = 0; cpu < 3; cpu++) {
        const glyd_limits limits = {.cpu = cpu};
        params.cpu = cpu;
        CHECK(glyd_decompress(back, n, out, sizes[0], 1, &limits, NULL, &len, NULL) == GLYD_OK && len == n);
        CHECK(memcmp(in, back, n) == 0);
        if (level == GLYD_LEVEL_ULTRA) continue;
        uint8_t *again = malloc(n + 4096);
        CHECK(glyd_compress(again, n + 4096, in, n, &params, &sizes[1]) == GLYD_OK && sizes[0] == sizes[1]);
        CHECK(memcmp(again, out, sizes[0]) == 0);
        free(again);
      }
    }
  free(in);
  free(out);
  free(back);
}

int main(void) {
  test_all_come_back();
  test_heads();
  test_segments();
  return test_end();
}
