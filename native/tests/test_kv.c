/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Packed pages of keys and values: round trips of many kinds and head sizes,
 * variants that give the same bytes, sizes, strides, hostile pages.
 */
#include "frame_test.h"
#include "glyd/kv.h"

enum { GAUSS, CHANNEL_SCALED, ANY_BITS, ZEROS, SOME_ZEROS, SPECIALS, WIDE, ZERO_CHANNELS, LARGEST, SMALLEST, KINDS };

#define CHANNELS_MAX GLYD_KV_CHANNELS_MAX
#define VALUES_MAX (GLYD_KV_TOKENS * CHANNELS_MAX)

static uint64_t seed = 0x9E3779B97F4A7C15u;
static uint8_t *work;

/* Exponents fall as those of a Gaussian do, near enough: half, a quarter, ... below the largest. */
static uint16_t falling(uint64_t x, unsigned top) {
  const unsigned down = (unsigned)__builtin_ctzll(x >> 20 | 1u << 12);
  return (uint16_t)((x & 0x807F) | (top - down) << 7);
}

static void fill(uint16_t *v, size_t channels, size_t stride, int kind) {
  uint8_t tops[CHANNELS_MAX];
  for (size_t c = 0; c < channels; c++)
    tops[c] = (uint8_t)(kind == CHANNEL_SCALED ? 60 + test_random(&seed) % 140 : 124);
  for (size_t t = 0; t < GLYD_KV_TOKENS; t++) {
    for (size_t c = 0; c < channels; c++) {
      const uint64_t x = test_random(&seed);
      uint16_t w = falling(x, tops[c]);
      switch (kind) {
      case ANY_BITS: w = (uint16_t)x; break;
      case ZEROS: w = x % 3 == 0 ? 0x8000 : 0; break;
      case SOME_ZEROS: w = x >> 40 & 31 ? w : (uint16_t)(x >> 48 & 0x8000); break;
      case SPECIALS:
        if ((x >> 40 & 127) == 0) w = (uint16_t)(0x7F80 | (x >> 48 & 0x807F)); /* Inf and NaN with payloads */
        if ((x >> 40 & 127) == 1) w = (uint16_t)(x >> 48 & 0x80FF);            /* zeros, subnormals, smallest normals */
        break;
      case WIDE: w = (uint16_t)((w & 0x807F) | (100 + (x >> 30) % 24) << 7); break;
      case ZERO_CHANNELS: w = c % 3 == 1 ? (uint16_t)(x >> 20 & 0x8000) : w; break;
      case LARGEST: w = (uint16_t)((w & 0x807F) | (254 - (x >> 30) % 4) << 7); break;
      case SMALLEST: w = (uint16_t)((w & 0x807F) | ((x >> 30) % 4) << 7); break;
      default: break;
      }
      v[t * stride + c] = w;
    }
  }
}

static void check_round_trip(uint32_t channels, size_t stride, int kind) {
  const size_t n_work = glyd_kv_workspace();
  const size_t bound = glyd_kv_page_bound(channels);
  const size_t values = (GLYD_KV_TOKENS - 1) * stride + channels; /* guard pages: nothing past the last one */
  guard in = guard_new(2 * values, 0);
  guard pages[2] = {guard_new(bound, 0), guard_new(bound, 1)};
  size_t len[2] = {0, 0};
  TEST_AT("channels %u stride %zu kind %d", channels, stride, kind);
  memset(in.p, 0x5A, 2 * values);
  fill((uint16_t *)(void *)in.p, channels, stride, kind);
  for (int cpu = 0; cpu < 2; cpu++) {
    memset(pages[cpu].p, 0xA5 + cpu, bound);
    CHECK_EQ(glyd_kv_pack(pages[cpu].p, bound, in.p, channels, stride, work, n_work, cpu, &len[cpu]), GLYD_OK);
  }
  CHECK_EQ(len[0], len[1]);
  CHECK_BYTES(pages[0].p, pages[1].p, len[0]);
  glyd_kv_info info;
  CHECK_EQ(glyd_kv_read_info(pages[0].p, len[0], &info), GLYD_OK);
  CHECK_EQ(info.size, len[0]);
  CHECK_EQ(info.channels, channels);
  CHECK_EQ(info.size % GLYD_KV_ALIGN, 0);
  if (kind != LARGEST) /* exponents past the largest base: lists may have room for them, or not */
    CHECK_EQ(info.form, kind == ANY_BITS || kind == WIDE || kind == SMALLEST ? GLYD_KV_PLAIN : GLYD_KV_PACKED);
  if (kind == GAUSS) CHECK(8.0 * (double)len[0] <= 11.1 * GLYD_KV_TOKENS * (channels + 16.0)); /* bits a value */
  for (int cpu = 0; cpu < 2; cpu++) {
    guard page = guard_copy(pages[0].p, len[0], cpu);
    guard out = guard_new(2 * values, cpu);
    memset(out.p, 0x5A, 2 * values);
    CHECK_EQ(glyd_kv_unpack(out.p, 2 * values, stride, page.p, len[0], work, n_work, cpu), GLYD_OK);
    CHECK_BYTES(out.p, in.p, 2 * values);
    CHECK_EQ(glyd_kv_unpack(out.p, 2 * values - 1, stride, page.p, len[0], work, n_work, cpu), GLYD_E_BUFFER);
    guard_free(out);
    guard_free(page);
  }
  guard_free(in);
  guard_free(pages[0]);
  guard_free(pages[1]);
}

/* Changed bytes anywhere: refused by both variants alike, or decoded by both to the same. */
static void check_hostile(uint32_t channels, int kind, unsigned rounds) {
  static uint16_t v[VALUES_MAX];
  static uint16_t out[2][VALUES_MAX];
  static uint8_t page[GLYD_KV_PLAIN_SIZE(CHANNELS_MAX)];
  const size_t n_work = glyd_kv_workspace();
  const size_t n = 2 * GLYD_KV_TOKENS * channels;
  size_t len = 0;
  unsigned refused = 0;
  TEST_AT("hostile, channels %u kind %d", channels, kind);
  fill(v, channels, channels, kind);
  CHECK_EQ(glyd_kv_pack(page, sizeof page, v, channels, channels, work, n_work, 0, &len), GLYD_OK);
  glyd_kv_info info;
  CHECK_EQ(glyd_kv_read_info(page, len, &info), GLYD_OK);
  const size_t lists = GLYD_KV_LISTS_AT(channels);
  for (unsigned i = 0; i < rounds; i++) {
    guard broken = guard_copy(page, len, (int)(i & 1));
    size_t size = len;
    for (unsigned k = 0; k <= i % 3; k++) {
      const uint64_t x = test_random(&seed);
      size_t at = x % len; /* header, bases, and what follows the slabs, more often than slabs */
      if (i % 4 == 1) at = x % GLYD_KV_HEADER;
      if (i % 4 == 2) at = GLYD_KV_BASES_AT(channels) + x % channels;
      if (i % 4 == 3 && lists < len) at = lists + x % (len - lists);
      broken.p[at] = x >> 60 & 1 ? (uint8_t)(x >> 32) : broken.p[at] ^ (uint8_t)(1u << (x >> 32 & 7));
    }
    if (i % 16 == 0) size = test_random(&seed) % len; /* cut: nothing past it may be read */
    guard cut = guard_copy(broken.p, size, 0);
    glyd_status status[2];
    for (int cpu = 0; cpu < 2; cpu++)
      status[cpu] = glyd_kv_unpack(out[cpu], sizeof out[cpu], GLYD_KV_CHANNELS_MAX, cut.p, size, work, n_work, cpu);
    CHECK_EQ(status[0], status[1]);
    if (status[0] == GLYD_OK)
      for (unsigned t = 0; t < GLYD_KV_TOKENS; t++)
        CHECK(memcmp(out[0] + t * CHANNELS_MAX, out[1] + t * CHANNELS_MAX, 2 * channels) == 0);
    refused += status[0] != GLYD_OK;
    guard_free(cut);
    guard_free(broken);
  }
  CHECK(refused > rounds / 4);
  CHECK_EQ(glyd_kv_unpack(out[0], sizeof out[0], channels, page, len, work, n_work, 0), GLYD_OK);
  CHECK_BYTES(out[0], v, n);
}

static void test_arguments(void) {
  static uint16_t v[VALUES_MAX];
  static uint8_t page[GLYD_KV_PLAIN_SIZE(CHANNELS_MAX)];
  const size_t n_work = glyd_kv_workspace();
  size_t len = 1;
  TEST_AT("arguments");
  static const uint32_t refused[] = {0, 1, 15, 40, 520, 528, 1u << 16, 1u << 31};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    CHECK_EQ(glyd_kv_page_bound(refused[i]), 0);
    CHECK_EQ(glyd_kv_pack(page, sizeof page, v, refused[i], refused[i], work, n_work, 0, &len), GLYD_E_PARAMETER);
    CHECK_EQ(len, 0);
  }
  CHECK_EQ(glyd_kv_pack(page, sizeof page, v, 64, 63, work, n_work, 0, &len), GLYD_E_PARAMETER);
  const size_t bound = glyd_kv_page_bound(64);
  CHECK_EQ(bound, 32 + 128 * 64 * 2 + 32);
  CHECK_EQ(glyd_kv_pack(page, bound - 1, v, 64, 64, work, n_work, 0, &len), GLYD_E_BUFFER);
  CHECK_EQ(glyd_kv_pack(page, bound, v, 64, 64, work, n_work - 1, 0, &len), GLYD_E_BUFFER);
  CHECK_EQ(glyd_kv_pack(page, bound, v, 64, 64, NULL, n_work, 0, &len), GLYD_E_BUFFER);
  CHECK_EQ(glyd_kv_pack(page, bound, v, 64, 64, work, n_work, 0, &len), GLYD_OK);
  glyd_kv_info info;
  for (size_t n = 0; n < len; n++) CHECK_EQ(glyd_kv_read_info(page, n, &info), GLYD_E_TRUNCATED);
  CHECK_EQ(glyd_kv_unpack(v, sizeof v, 63, page, len, work, n_work, 0), GLYD_E_PARAMETER);
  CHECK_EQ(glyd_kv_unpack(v, sizeof v, SIZE_MAX / 2, page, len, work, n_work, 0), GLYD_E_BUFFER);
  CHECK_EQ(glyd_kv_unpack(v, sizeof v, 64, page, len, work, n_work - 1, 0), GLYD_E_BUFFER);
  static const struct {
    uint8_t at;
    uint8_t value;
    glyd_status status;
  } changes[] = {{0, 0, GLYD_E_MAGIC},   {2, 1, GLYD_E_VERSION},  {3, 2, GLYD_E_FEATURE},   {4, 65, GLYD_E_HEADER},
                 {4, 80, GLYD_E_HEADER}, {6, 127, GLYD_E_HEADER}, {8, 1, GLYD_E_HEADER},    {12, 200, GLYD_E_HEADER},
                 {15, 1, GLYD_E_HEADER}, {24, 1, GLYD_E_HEADER},  {17, 255, GLYD_E_HEADER}, {18, 1, GLYD_E_HEADER}};
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    const uint8_t kept = page[changes[i].at];
    TEST_AT("header byte %u", changes[i].at);
    page[changes[i].at] = changes[i].value;
    CHECK_EQ(glyd_kv_read_info(page, sizeof page, &info), changes[i].status);
    CHECK_EQ(info.size, 0);
    page[changes[i].at] = kept;
  }
}

/* Bytes never change: pages of values that every machine makes alike, as the first version wrote them. */
static void test_frozen(void) {
  static const struct {
    uint32_t channels;
    int kind;
    size_t size;
    uint64_t check;
  } frozen[] = {{64, GAUSS, 11216, 2940725632681030750u},
                {96, SPECIALS, 17488, 14039742250870696785u},
                {128, CHANNEL_SCALED, 22400, 363195636151840493u},
                {16, ANY_BITS, 4160, 13638431251313246446u}};
  static uint16_t v[VALUES_MAX];
  static uint8_t page[GLYD_KV_PLAIN_SIZE(CHANNELS_MAX)];
  seed = 20261130;
  for (size_t i = 0; i < sizeof frozen / sizeof *frozen; i++) {
    size_t len = 0;
    TEST_AT("frozen %zu", i);
    fill(v, frozen[i].channels, frozen[i].channels, frozen[i].kind);
    CHECK_EQ(
        glyd_kv_pack(page, sizeof page, v, frozen[i].channels, frozen[i].channels, work, glyd_kv_workspace(), 0, &len),
        GLYD_OK);
    CHECK_EQ(len, frozen[i].size);
    CHECK_EQ(glyd_checksum(page, len), frozen[i].check);
  }
}

int main(void) {
  static const uint32_t sizes[] = {16, 32, 48, 64, 80, 96, 112, 128, 192, 256, 320, 512};
  work = malloc(glyd_kv_workspace());
  if (!work) return 1;
  test_arguments();
  test_frozen();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int kind = 0; kind < KINDS; kind++) {
      check_round_trip(sizes[i], sizes[i], kind);
      if (i % 3 == 0) check_round_trip(sizes[i], 3 * sizes[i] + 8, kind);
    }
  static const int kinds[] = {GAUSS, SPECIALS, ZERO_CHANNELS, CHANNEL_SCALED};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    check_hostile(64, kinds[i], 1500);
    check_hostile(96, kinds[i], 1500);
  }
  free(work);
  return test_end();
}
