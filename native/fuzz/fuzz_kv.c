/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Any bytes as a page of keys or values: refused or unpacked by both variants
 * alike. And any bytes as the values of a page: both variants pack them to the
 * same page, which gives them back.
 */
#include "fuzz.h"
#include "glyd/kv.h"

#define CHANNELS_MAX 128 /* of the pages made here; wider heads are more of the same groups */

static uint8_t work[1 << 20];

static void read_page(const uint8_t *data, size_t size) {
  static uint8_t out[2][2 * GLYD_KV_TOKENS * GLYD_KV_CHANNELS_MAX];
  glyd_kv_info info;
  if (glyd_kv_read_info(data, size, &info) != GLYD_OK) return;
  FUZZ_CHECK(info.size <= size && info.channels <= GLYD_KV_CHANNELS_MAX);
  const size_t n = 2 * (size_t)GLYD_KV_TOKENS * info.channels;
  glyd_status status[2];
  for (int cpu = 0; cpu < 2; cpu++)
    status[cpu] = glyd_kv_unpack(out[cpu], n, info.channels, data, size, work, sizeof work, cpu);
  FUZZ_CHECK(status[0] == status[1]);
  FUZZ_CHECK(status[0] == GLYD_OK || status[0] == GLYD_E_CORRUPT);
  FUZZ_CHECK(status[0] != GLYD_OK || memcmp(out[0], out[1], n) == 0);
}

static void write_page(const uint8_t *data, size_t size) {
  static uint16_t v[GLYD_KV_TOKENS * CHANNELS_MAX];
  static uint16_t back[GLYD_KV_TOKENS * CHANNELS_MAX];
  static uint8_t page[2][GLYD_KV_PLAIN_SIZE(CHANNELS_MAX)];
  const unsigned mode = data[size / 3];
  const uint32_t channels = 16 * (1 + mode % 8);
  const size_t n = (size_t)GLYD_KV_TOKENS * channels;
  for (size_t i = 0; i < n; i++) {
    memcpy(v + i, data + 2 * (i % (size / 2)), 2);
    /* files are noise, which does not pay: most modes bring exponents together, as heads have them */
    if (mode < 192 && i % 61 != 0) v[i] = (uint16_t)((v[i] & 0x80FF) | (mode & 0x7E) << 7);
    if (mode < 96) v[i] = (uint16_t)(v[i] - ((unsigned)__builtin_ctz((uint32_t)(i / channels) | 1u << 5) << 7));
  }
  size_t len[2] = {0, 0};
  for (int cpu = 0; cpu < 2; cpu++)
    FUZZ_CHECK(glyd_kv_pack(page[cpu], sizeof page[cpu], v, channels, channels, work, sizeof work, cpu, &len[cpu]) ==
               GLYD_OK);
  FUZZ_CHECK(len[0] == len[1] && len[0] <= glyd_kv_page_bound(channels));
  FUZZ_CHECK(memcmp(page[0], page[1], len[0]) == 0);
  for (int cpu = 0; cpu < 2; cpu++) {
    FUZZ_CHECK(glyd_kv_unpack(back, 2 * n, channels, page[0], len[0], work, sizeof work, cpu) == GLYD_OK);
    FUZZ_CHECK(memcmp(back, v, 2 * n) == 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FUZZ_CHECK(glyd_kv_workspace() <= sizeof work);
  read_page(data, size);
  if (size >= 2) write_page(data, size);
  return 0;
}
