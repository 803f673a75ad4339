/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Packed weights: round trips of many kinds and shapes, variants and threads'
 * ranges that give the same bytes, sizes, frozen bytes, a second decoder that
 * works as a GPU thread does, and hostile packs.
 */
#include "glyd/weights.h"
#include "test.h"

enum { GAUSS, ROW_SCALED, ANY_BITS, ZEROS, SOME_ZEROS, SPECIALS, CONSTANT, WIDE, ZERO_ROWS, LARGEST, SMALLEST, KINDS };

static uint64_t seed = 0x9E3779B97F4A7C15u;

/* Near enough to a Gaussian of deviation 1: 12 uniform numbers. */
static float gauss(void) {
  float sum = -6;
  for (int i = 0; i < 12; i++) sum += (float)(test_random(&seed) >> 40) / 16777216.0f;
  return sum;
}

static uint16_t bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

static void fill(uint16_t *w, size_t rows, size_t cols, int kind) {
  for (size_t r = 0; r < rows; r++) {
    const float scale = kind == ROW_SCALED ? 0.001f * (float)(1 + test_random(&seed) % 200) : 0.02f;
    for (size_t c = 0; c < cols; c++) {
      const uint64_t x = test_random(&seed);
      uint16_t v = bf16(gauss() * scale);
      switch (kind) {
      case ANY_BITS: v = (uint16_t)x; break;
      case ZEROS: v = x % 3 == 0 ? 0x8000 : 0; break;
      case SOME_ZEROS: v = x % 50 == 0 ? (uint16_t)(x >> 48 & 0x8000) : v; break;
      case SPECIALS:
        if (x % 100 == 0) v = (uint16_t)(0x7F80 | (x >> 40 & 0x807F)); /* Inf and NaN with payloads */
        if (x % 100 == 1) v = (uint16_t)(x >> 40 & 0x80FF);            /* zeros, subnormals, smallest normals */
        break;
      case CONSTANT: v = 0x3F80; break;
      case WIDE: v = (uint16_t)((v & 0x807F) | (100 + x % 30) << 7); break;
      case ZERO_ROWS: v = r % 3 == 1 ? (uint16_t)(x >> 20 & 0x8000) : v; break;
      case LARGEST: v = (uint16_t)((v & 0x807F) | (254 - x % 4) << 7); break;
      case SMALLEST: v = (uint16_t)((v & 0x807F) | (x % 4) << 7); break;
      default: break;
      }
      w[r * cols + c] = v;
    }
  }
}

/* Pack in steps, ranges last to first; gives the size. */
static size_t pack_in_ranges(uint8_t *out, size_t cap, const glyd_weights_shape *shape, const uint16_t *w, void *work) {
  const size_t n_work = glyd_weights_workspace();
  const uint64_t blocks = (shape->rows + 63) / 64;
  size_t size = 0;
  for (int step = 0; step < 2; step++) {
    for (uint64_t b = blocks; b-- > 0;) {
      const uint64_t n = shape->rows - b * 64 < 64 ? shape->rows - b * 64 : 64;
      const uint16_t *rows = w + b * 64 * shape->cols;
      if (step == 0)
        CHECK_EQ(glyd_weights_plan_rows(out, cap, shape, b * 64, n, rows, work, n_work, 0), GLYD_OK);
      else
        CHECK_EQ(glyd_weights_pack_rows(out, cap, shape, b * 64, n, rows, work, n_work, 0), GLYD_OK);
    }
    if (step == 0) {
      size_t told = 0; /* by a buffer with room for the plan only */
      const size_t plan_size = (size_t)glyd_weights_plan_size(shape);
      const glyd_status status = glyd_weights_plan_end(out, plan_size, shape, &told);
      CHECK_EQ(glyd_weights_plan_end(out, cap, shape, &size), GLYD_OK);
      CHECK_EQ(status, size == 0 ? GLYD_OK : GLYD_E_BUFFER);
      CHECK_EQ(told, size);
    }
    if (size == 0) return 0;
  }
  return size;
}

static uint32_t get32(const uint8_t *p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}
static uint64_t get64(const uint8_t *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}
static unsigned escapes_in(uint32_t word) { return (unsigned)__builtin_popcount(word & (word >> 1) & 0x55555555u); }
static unsigned bits_at(const uint8_t *p, uint32_t bit, unsigned n) {
  unsigned v = 0;
  for (unsigned i = 0; i < n; i++) v |= (unsigned)(p[(bit + i) / 8] >> ((bit + i) % 8) & 1) << i;
  return v;
}

/* One weight of a pack, found as a GPU thread finds it: sums over the threads
 * before it in its warp, then counts in its own codes. Exceptions left out. */
static uint16_t weight_of(const uint8_t *pack, const glyd_weights_info *info, uint64_t row, uint64_t col) {
  static const int tier2[3] = GLYD_WEIGHTS_TIER2;
  static const int tier3[8] = GLYD_WEIGHTS_TIER3;
  const uint64_t block = row / 64;
  const uint64_t t = col / info->tile_cols;
  const unsigned r = (unsigned)(row % 64);
  const unsigned c = (unsigned)(col % info->tile_cols);
  const unsigned thread = r / 16 * 32 + r % 8 * 4 + c % 8 / 2;
  const unsigned j = c / 16 * 8 + c % 16 / 8 * 4 + r % 16 / 8 * 2 + c % 2; /* of its 32 or 64 weights */
  const uint8_t *header = pack + info->blocks_at + block * 128;
  const uint8_t *tile = pack + info->tiles_at + (block * info->tiles + t) * info->tile_bytes;
  const unsigned base = header[64 + r];
  const uint8_t low = tile[j / 16 * 2048 + thread * 16 + j % 16];
  if (info->shape.layout == GLYD_WEIGHTS_MMA12) {
    const uint32_t word = get32(tile + 4096 + thread * 16 + j / 8 * 4);
    const unsigned turned = j % 8 / 4 * 4; /* the second four codes lie 4 bits lower */
    const unsigned code =
        (word >> ((j % 4 * 8 + 32 - turned) % 32) | (uint64_t)word << 32 >> (j % 4 * 8 + 32 - turned)) & 0x87;
    return (uint16_t)((code & 0x80) << 8 | ((code & 7) + base) << 8 | low);
  }
  const uint8_t *codes = tile + 8192;
  const uint64_t unit = get64(header + 16) + get32(pack + info->index_at + 4 * (block * (info->tiles + 1) + t));
  const uint8_t *escapes = pack + info->escapes_at + unit * 16;
  const unsigned warp = thread / 32;
  int e = (int)base;
  const unsigned code = get32(codes + thread * 16 + j / 16 * 4) >> (2 * (j % 16)) & 3;
  if (code < 3) {
    e += (int)code;
  } else {
    uint32_t before2 = bits_at(escapes, 16 * warp, 16); /* digits before this thread */
    uint32_t before3 = bits_at(escapes, 64 + 16 * warp, 16);
    for (unsigned other = warp * 32; other <= thread; other++) {
      for (unsigned v = 0; v < 4; v++) {
        uint32_t word = get32(codes + other * 16 + v * 4);
        if (other == thread && v > j / 16) word = 0;
        if (other == thread && v == j / 16) word &= (1u << (2 * (j % 16))) - 1;
        for (unsigned i = 0, n = escapes_in(word); i < n; i++) before3 += bits_at(escapes, 128 + 2 * before2++, 2) == 3;
      }
    }
    const unsigned digit = bits_at(escapes, 128 + 2 * before2, 2);
    const unsigned third = digit == 3 ? bits_at(escapes, 128 + 4 * before3, 4) : 0;
    if (digit < 3)
      e += tier2[digit];
    else if (third == 8)
      e = 0;
    else
      e += tier3[third & 7];
  }
  return (uint16_t)((low & 0x80u) << 8 | (unsigned)e << 7 | (low & 0x7Fu));
}

static int is_exception(const uint8_t *pack, const glyd_weights_info *info, uint64_t row, uint64_t col,
                        uint16_t *value) {
  const uint8_t *header = pack + info->blocks_at + row / 64 * 128;
  const uint64_t first = get64(header + 8);
  for (uint64_t i = first; i < first + get32(header + 4); i++) {
    if (get32(pack + info->exc_places_at + 4 * i) != col * 64 + row % 64) continue;
    memcpy(value, pack + info->exc_values_at + 2 * i, 2);
    return 1;
  }
  return 0;
}

static void test_round_trips(void) {
  static const size_t shapes[][2] = {{64, 128},   {64, 64},   {1, 1},     {3, 5},    {65, 129},  {128, 384},
                                     {200, 1000}, {64, 4096}, {513, 250}, {2, 3000}, {127, 300}, {63, 1}};
  const size_t n_work = glyd_weights_workspace();
  void *work = malloc(n_work);
  unsigned packed = 0;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    const size_t rows = shapes[s][0];
    const size_t cols = shapes[s][1];
    const size_t n = rows * cols;
    uint16_t *w = malloc(2 * n);
    uint16_t *back = malloc(2 * n);
    for (int kind = 0; kind < KINDS; kind++) {
      fill(w, rows, cols, kind);
      for (int layout = GLYD_WEIGHTS_MMA12; layout <= GLYD_WEIGHTS_TIERED; layout++) {
        const glyd_weights_shape shape = {layout, rows, cols};
        const size_t cap = (size_t)glyd_weights_pack_bound(&shape);
        uint8_t *a = malloc(cap + 1);
        uint8_t *b = malloc(cap + 1);
        size_t size = 1;
        size_t size_b = 1;
        TEST_AT("%zu x %zu, kind %d, layout %d", rows, cols, kind, layout);
        memset(a, 0xA5, cap + 1);
        memset(b, 0x5A, cap + 1);
        const glyd_status status = glyd_weights_pack(a, cap, &shape, w, work, n_work, 0, &size);
        CHECK_EQ(status, GLYD_OK);
        CHECK_EQ(glyd_weights_pack(b, cap, &shape, w, work, n_work, 1, &size_b), GLYD_OK);
        CHECK_EQ(size, size_b);
        CHECK_EQ(a[cap], 0xA5);
        if (status == GLYD_OK && size > 0) {
          packed++;
          CHECK(size <= cap);
          CHECK_BYTES(a, b, size);
          memset(b, 0x33, cap);
          CHECK_EQ(pack_in_ranges(b, cap, &shape, w, work), size);
          CHECK_BYTES(a, b, size);
          uint8_t *exact = malloc(size); /* so that a sanitizer sees a byte too far */
          memcpy(exact, a, size);
          memset(back, 0xEE, 2 * n);
          CHECK_EQ(glyd_weights_unpack_rows(back, 2 * n, exact, size, 0, rows, work, n_work, 0), GLYD_OK);
          CHECK_BYTES(back, w, 2 * n);
          memset(back, 0xEE, 2 * n);
          CHECK_EQ(glyd_weights_unpack_rows(back, 2 * n, exact, size, 0, rows, work, n_work, 1), GLYD_OK);
          CHECK_BYTES(back, w, 2 * n);
          const uint64_t first = test_random(&seed) % rows;
          const uint64_t count = test_random(&seed) % (rows - first + 1);
          memset(back, 0xEE, 2 * n);
          CHECK_EQ(glyd_weights_unpack_rows(back, 2 * count * cols, exact, size, first, count, work, n_work, 0),
                   GLYD_OK);
          CHECK_BYTES(back, w + first * cols, 2 * count * cols);
          if (count > 0)
            CHECK_EQ(glyd_weights_unpack_rows(back, 2 * count * cols - 1, exact, size, first, count, work, n_work, 0),
                     GLYD_E_BUFFER);
          glyd_weights_info info;
          CHECK_EQ(glyd_weights_read_info(exact, size, &info), GLYD_OK);
          CHECK_EQ(info.size, size);
          unsigned wrong = 0;
          for (int i = 0; i < 300; i++) {
            const uint64_t row = test_random(&seed) % rows;
            const uint64_t col = test_random(&seed) % cols;
            uint16_t v;
            if (!is_exception(exact, &info, row, col, &v)) v = weight_of(exact, &info, row, col);
            wrong += v != w[row * cols + col];
          }
          CHECK_EQ(wrong, 0);
          free(exact);
        } else {
          CHECK(kind != GAUSS || n < 16384 || rows % 64 != 0 || cols % 128 != 0);
        }
        free(a);
        free(b);
      }
    }
    free(w);
    free(back);
  }
  TEST_AT("round trips: %u packed", packed);
  CHECK(packed > 60);
  free(work);
}

/* Bits a weight, and bytes that never change. */
static void test_sizes_and_bytes(void) {
  static const uint64_t golden[3][2] = {
      {0, 0}, {8759796988840850710u, 7673492364072117579u}, {15274042456355518921u, 6106865888282497827u}};
  const size_t rows = 256;
  const size_t cols = 2048;
  const size_t n_work = glyd_weights_workspace();
  void *work = malloc(n_work);
  uint16_t *w = malloc(2 * rows * cols);
  for (int kind = 0; kind < 2; kind++) {
    for (int layout = GLYD_WEIGHTS_MMA12; layout <= GLYD_WEIGHTS_TIERED; layout++) {
      seed = 1234567;
      fill(w, rows, cols, kind ? SPECIALS : GAUSS);
      const glyd_weights_shape shape = {layout, rows, cols};
      const size_t cap = (size_t)glyd_weights_pack_bound(&shape);
      uint8_t *out = malloc(cap);
      size_t size = 0;
      CHECK_EQ(glyd_weights_pack(out, cap, &shape, w, work, n_work, 0, &size), GLYD_OK);
      const double bits = 8.0 * (double)size / (double)(rows * cols);
      TEST_AT("layout %d, kind %d: %.3f bits a weight", layout, kind, bits);
      if (kind == 0) CHECK(bits < (layout == GLYD_WEIGHTS_TIERED ? 10.85 : 12.1));
      CHECK_EQ(glyd_checksum(out, size), golden[layout][kind]);
      free(out);
    }
  }
  free(w);
  free(work);
}

static void test_parameters(void) {
  uint8_t buffer[4096] = {0};
  uint16_t w[64] = {0};
  const size_t n_work = glyd_weights_workspace();
  void *work = malloc(n_work);
  size_t size = 1;
  TEST_AT("parameters");
  const glyd_weights_shape bad[] = {{0, 64, 64},
                                    {3, 64, 64},
                                    {1, 0, 64},
                                    {1, 64, 0},
                                    {2, 64, 1u << 26},
                                    {2, (1ull << 36) + 1, 64},
                                    {1, 1ull << 36, 1u << 25}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    CHECK_EQ(glyd_weights_pack_bound(&bad[i]), 0);
    CHECK_EQ(glyd_weights_plan_size(&bad[i]), 0);
    CHECK_EQ(glyd_weights_pack(buffer, sizeof buffer, &bad[i], w, work, n_work, 0, &size), GLYD_E_PARAMETER);
  }
  const glyd_weights_shape shape = {GLYD_WEIGHTS_TIERED, 128, 128};
  uint16_t *m = calloc(128 * 128, 2);
  CHECK_EQ(glyd_weights_pack(buffer, 100, &shape, m, work, n_work, 0, &size), GLYD_E_BUFFER);
  CHECK_EQ(glyd_weights_pack(buffer, sizeof buffer, &shape, m, work, n_work, 0, &size), GLYD_E_BUFFER);
  CHECK_EQ(glyd_weights_pack(buffer, sizeof buffer, &shape, m, work, n_work - 1, 0, &size), GLYD_E_BUFFER);
  CHECK_EQ(glyd_weights_plan_rows(buffer, sizeof buffer, &shape, 1, 64, m, work, n_work, 0), GLYD_E_PARAMETER);
  CHECK_EQ(glyd_weights_plan_rows(buffer, sizeof buffer, &shape, 0, 65, m, work, n_work, 0), GLYD_E_PARAMETER);
  CHECK_EQ(glyd_weights_plan_rows(buffer, sizeof buffer, &shape, 128, 1, m, work, n_work, 0), GLYD_E_PARAMETER);
  memset(buffer, 0, sizeof buffer);
  CHECK_EQ(glyd_weights_pack_rows(buffer, sizeof buffer, &shape, 0, 128, m, work, n_work, 0), GLYD_E_STATE);
  free(m);
  free(work);
}

/* A row longer than 16-bit counters count, most of it below the window or at its top. */
static void test_long_rows(void) {
  const size_t cols = 1300003;
  const size_t n_work = glyd_weights_workspace();
  void *work = malloc(n_work);
  uint16_t *w = malloc(2 * cols);
  TEST_AT("long rows");
  for (int layout = 1; layout <= 2; layout++) {
    const glyd_weights_shape shape = {layout, 1, cols};
    const size_t cap = (size_t)glyd_weights_plan_size(&shape);
    uint8_t *fast = calloc(cap, 1); /* the gaps between sections are not planned */
    uint8_t *plain = calloc(cap, 1);
    for (unsigned kind = 0; kind < 6; kind++) {
      for (size_t i = 0; i < cols; i++) w[i] = (uint16_t)(0x3C00 + 0x40 * (i % 4));
      for (size_t i = 0; i < cols; i++) {
        if (kind % 3 == 1 && i % 8 < 7) w[i] = 0x8123;
        if (kind % 3 == 2) w[i] = (uint16_t)(i % 100 != 0 ? 0x4123 : 0x1234);
        if (kind >= 3 && i == cols - 1) w[i] = kind == 3 ? 0x7F80 : 0x5000;
      }
      CHECK_EQ(glyd_weights_plan_rows(fast, cap, &shape, 0, 1, w, work, n_work, 0), GLYD_OK);
      CHECK_EQ(glyd_weights_plan_rows(plain, cap, &shape, 0, 1, w, work, n_work, 1), GLYD_OK);
      CHECK(memcmp(fast + 128, plain + 128, cap - 128) == 0);
    }
    free(fast);
    free(plain);
  }
  free(w);
  free(work);
}

static void test_hostile(void) {
  const size_t rows = 190;
  const size_t cols = 637;
  const size_t n = rows * cols;
  const size_t n_work = glyd_weights_workspace();
  void *work = malloc(n_work);
  uint16_t *w = malloc(2 * n);
  uint16_t *back = malloc(2 * n);
  uint16_t *other = malloc(2 * n);
  unsigned refused = 0;
  unsigned silent = 0;
  for (int layout = GLYD_WEIGHTS_MMA12; layout <= GLYD_WEIGHTS_TIERED; layout++) {
    const glyd_weights_shape shape = {layout, rows, cols};
    const size_t cap = (size_t)glyd_weights_pack_bound(&shape);
    uint8_t *pack = malloc(cap);
    size_t size = 0;
    fill(w, rows, cols, GAUSS);
    for (size_t i = 0; i < n; i += 997) w[i] = (uint16_t)(0x7FC0 + i % 60);
    for (size_t i = 0; i < cols; i++) w[7 * cols + i] = 0;
    CHECK_EQ(glyd_weights_pack(pack, cap, &shape, w, work, n_work, 0, &size), GLYD_OK);
    TEST_AT("hostile, layout %d", layout);
    if (!CHECK(size > 0)) continue;
    glyd_weights_info info;
    /* every length */
    for (size_t len = 0; len < size; len += len < 300 ? 1 : 977) {
      uint8_t *cut = malloc(len > 0 ? len : 1);
      memcpy(cut, pack, len);
      CHECK_EQ(glyd_weights_unpack_rows(back, 2 * n, cut, len, 0, rows, work, n_work, 0), GLYD_E_TRUNCATED);
      free(cut);
    }
    /* every bit of the header: refused, but for a bound that is merely larger */
    uint8_t *bad = malloc(size);
    for (size_t bit = 0; bit < 128 * 8; bit++) {
      memcpy(bad, pack, size);
      bad[bit / 8] = (uint8_t)(bad[bit / 8] ^ 1 << bit % 8);
      const glyd_status status = glyd_weights_unpack_rows(back, 2 * n, bad, size, 0, rows, work, n_work, 0);
      TEST_AT("layout %d, header bit %zu", layout, bit);
      CHECK(status != GLYD_OK || bit / 8 >= 48);
    }
    memcpy(bad, pack, size);
    bad[4] = 2;
    CHECK_EQ(glyd_weights_read_info(bad, size, &info), GLYD_E_VERSION);
    bad[4] = 1, bad[5] = 9;
    CHECK_EQ(glyd_weights_read_info(bad, size, &info), GLYD_E_FEATURE);
    bad[0] = 0;
    CHECK_EQ(glyd_weights_read_info(bad, size, &info), GLYD_E_MAGIC);
    CHECK_EQ(glyd_weights_read_info(pack, size, &info), GLYD_OK);
    /* anything anywhere; half of the time where a byte decides most */
    for (unsigned round = 0; round < 3000; round++) {
      memcpy(bad, pack, size);
      const unsigned changes = 1 + (unsigned)(test_random(&seed) % 4);
      for (unsigned i = 0; i < changes; i++) {
        const uint64_t x = test_random(&seed);
        size_t at = (size_t)(x % size);
        if (x >> 40 & 1) at = (size_t)(x % info.tiles_at);
        if ((x >> 41 & 3) == 3) at = (size_t)(info.escapes_at + x % (size - info.escapes_at));
        bad[at] = (uint8_t)(x >> 50 & 1 ? x >> 51 : bad[at] ^ 1u << (x >> 51 & 7));
      }
      const int changed = memcmp(bad, pack, size) != 0;
      const glyd_status status = glyd_weights_unpack_rows(back, 2 * n, bad, size, 0, rows, work, n_work, 0);
      CHECK_EQ(glyd_weights_unpack_rows(other, 2 * n, bad, size, 0, rows, work, n_work, 1), status);
      if (status == GLYD_OK) CHECK_BYTES(back, other, 2 * n);
      refused += status != GLYD_OK;
      silent += status == GLYD_OK && changed;
      if (!changed) CHECK_EQ(status, GLYD_OK);
    }
    free(bad);
    free(pack);
  }
  TEST_AT("hostile: %u refused, %u decoded", refused, silent);
  CHECK(refused > 1500);
  CHECK(silent > 0);
  free(w);
  free(back);
  free(other);
  free(work);
}

int main(void) {
  test_round_trips();
  test_sizes_and_bytes();
  test_parameters();
  test_long_rows();
  test_hostile();
  return test_end();
}
