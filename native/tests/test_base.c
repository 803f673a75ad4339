/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Frames against a base: the golden files (tools/make_base_golden.py) with every
 * CPU variant, in one call from guarded memory, with threads and as a stream;
 * what writers give for any number of threads; bases given and not given.
 */
#include "base/base_members_encode.h"
#include "frame_test.h"
#include "glyd/base.h"

#define FILES_MIN 60 /* fewer: the folder is not what it should be */
#define CONTENT_CAP ((size_t)1 << 20)

static void golden_path(char *path, size_t cap, const char *folder, const char *name, const char *suffix) {
  if (folder) {
    (void)snprintf(path, cap, "%s/%s%s", folder, name, suffix);
    return;
  }
  const char *slash = strrchr(__FILE__, '/');
  const int n = slash ? (int)(slash - __FILE__) : 0;
  (void)snprintf(path, cap, "%.*s%sgolden_base/%s%s", n, __FILE__, n ? "/" : "", name, suffix);
}

static uint8_t *load(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  uint8_t *data = malloc(CONTENT_CAP);
  if (!data) abort();
  *size = fread(data, 1, CONTENT_CAP, f);
  (void)fclose(f);
  return data;
}

static void test_read(const uint8_t *data, size_t size, const glyd_base *base, int want, size_t len, uint64_t check) {
  for (int cpu = GLYD_CPU_CHOICE_BEST; cpu <= GLYD_CPU_CHOICE_AVX2; cpu++) {
    const glyd_limits limits = {.cpu = cpu};
    for (int way = 0; way < 4; way++) {
      const size_t cap = want == GLYD_OK ? len : CONTENT_CAP;
      guard in = guard_copy(data, size, way & 1);
      guard out = guard_new(cap, way & 1);
      size_t n = 0;
      const int threads = way < 2 ? 1 : 3;
      CHECK_EQ(glyd_decompress_base(out.p, cap, in.p, size, base, threads, &limits, NULL, &n, NULL), want);
      if (want == GLYD_OK && CHECK_EQ(n, len)) CHECK_EQ(glyd_checksum(out.p, n), check);
      if (want == GLYD_OK)
        CHECK_EQ(glyd_decompress(out.p, cap, in.p, size, 1, &limits, NULL, &n, NULL), GLYD_E_BASE_MISSING);
      guard_free(out);
      guard_free(in);
    }
  }
  uint8_t *const content = malloc(CONTENT_CAP);
  glyd_dctx *ctx = NULL;
  if (!content || glyd_dctx_create(&ctx, 2, NULL, NULL) != GLYD_OK) abort();
  glyd_dctx_set_base(ctx, base);
  for (size_t step = 1; step <= 400; step += 133) {
    glyd_out out = {content, CONTENT_CAP, 0};
    glyd_in in = {data, 0, 0};
    int at_end = 0;
    glyd_status status = GLYD_OK;
    (void)glyd_dctx_reset(ctx);
    while (status == GLYD_OK && (in.pos < size || !at_end)) {
      in.size = in.size + step < size ? in.size + step : size;
      const size_t before = in.pos + out.pos;
      status = glyd_decompress_stream(ctx, &out, &in, &at_end);
      if (status == GLYD_OK && in.size == size && in.pos + out.pos == before && !at_end) break;
    }
    CHECK_EQ(status, want);
    if (want == GLYD_OK && CHECK_EQ(out.pos, len)) CHECK_EQ(glyd_checksum(content, len), check);
  }
  glyd_dctx_free(ctx);
  free(content);
}

static void test_golden(const char *folder) {
  char path[1000], name[120];
  golden_path(path, sizeof path, folder, "manifest", ".txt");
  FILE *manifest = fopen(path, "r");
  if (!CHECK(manifest != NULL)) return;
  int want;
  size_t len;
  uint64_t check;
  unsigned files = 0;
  while (fscanf(manifest, "%119s %d %zu %" SCNx64, name, &want, &len, &check) == 4) {
    TEST_AT("%s", name);
    size_t size = 0, base_size = 0;
    golden_path(path, sizeof path, folder, name, ".glyd");
    uint8_t *const data = load(path, &size);
    golden_path(path, sizeof path, folder, name, ".base");
    uint8_t *const bytes = load(path, &base_size);
    if (!CHECK(data != NULL && bytes != NULL)) continue;
    files++;
    glyd_base *base = NULL;
    CHECK_EQ(glyd_base_create(&base, bytes, base_size, 0, NULL), GLYD_OK);
    test_read(data, size, base, want, len, check);
    glyd_base_free(base);
    free(data);
    free(bytes);
  }
  CHECK(feof(manifest));
  CHECK(files >= FILES_MIN);
  (void)fclose(manifest);
}

/* The same bytes for any number of threads and CPU variant, in one call. */
static void test_write(void) {
  enum { SIZE = 300000 };
  uint8_t *const old = malloc(SIZE), *const content = malloc(SIZE), *const back = malloc(SIZE);
  if (!old || !content || !back) abort();
  uint32_t x = 7;
  for (size_t i = 0; i < SIZE; i++) {
    x = x * 1664525u + 1013904223u;
    old[i] = (uint8_t)(i / 1000 % 3 == 0 ? x >> 24 : (uint8_t) "abcabcde"[x >> 29]);
  }
  memcpy(content, old + 100000, 200000);
  memcpy(content + 200000, old, 100000);
  for (size_t i = 777; i < SIZE; i += 7001) content[i] ^= 1;
  glyd_base *base = NULL;
  CHECK_EQ(glyd_base_create(&base, old, SIZE, 0, NULL), GLYD_OK);
  glyd_params params;
  glyd_params_init(&params, GLYD_LEVEL_MAX);
  params.base = base;
  size_t n = 0;
  CHECK_EQ(glyd_compress(back, SIZE, content, SIZE, &params, &n), GLYD_E_PARAMETER); /* not mapped */
  CHECK_EQ(glyd_base_index(base), GLYD_OK);
  CHECK_EQ(glyd_base_index(base), GLYD_OK);
  CHECK_EQ(glyd_base_size(base), SIZE);
  for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_ULTRA; level++) {
    glyd_params_init(&params, level);
    params.base = base;
    params.segment_size = 1u << 16;
    const size_t cap = (size_t)glyd_compress_bound(SIZE, &params);
    uint8_t *const first = malloc(cap), *const again = malloc(cap);
    if (!first || !again) abort();
    CHECK_EQ(glyd_compress(first, cap, content, SIZE, &params, &n), GLYD_OK);
    CHECK(n < 3000);
    for (int threads = 2; threads <= 4; threads++) {
      params.threads = threads;
      params.cpu = threads - 2;
      size_t m = 0;
      CHECK_EQ(glyd_compress(again, cap, content, SIZE, &params, &m), GLYD_OK);
      if (CHECK_EQ(m, n)) CHECK_BYTES(again, first, n);
    }
    glyd_frame_info info;
    uint8_t id[GLYD_BASE_ID_SIZE];
    glyd_base_get_id(base, id);
    CHECK_EQ(glyd_read_frame_header(first, n, &info, NULL), GLYD_OK);
    CHECK(info.has_base && info.base_size == SIZE);
    CHECK_BYTES(info.base_id, id, sizeof id);
    size_t m = 0;
    CHECK_EQ(glyd_decompress_base(back, SIZE, first, n, base, 2, NULL, NULL, &m, NULL), GLYD_OK);
    if (CHECK_EQ(m, SIZE)) CHECK_BYTES(back, content, SIZE);
    free(first);
    free(again);
  }
  glyd_base_free(base);
  free(old);
  free(content);
  free(back);
}

/* Which places of a segment's first 64 were looked up depended on the address of the content. */
static void test_marks_by_address(void) {
  enum { SIZE = 256 << 10, SEGMENT = 1024 };
  uint8_t *const old = malloc(SIZE), *const content = malloc(SIZE + 64);
  if (!old || !content) abort();
  uint32_t x = 11;
  for (size_t i = 0; i < SIZE; i++) {
    x = x * 1664525u + 1013904223u;
    old[i] = (uint8_t)(x >> 24);
  }
  glyd_base *base = NULL;
  CHECK_EQ(glyd_base_create(&base, old, SIZE, 0, NULL), GLYD_OK);
  CHECK_EQ(glyd_base_index(base), GLYD_OK);
  glyd_params params;
  glyd_params_init(&params, GLYD_LEVEL_TURBO);
  params.base = base;
  params.segment_size = SEGMENT;
  const size_t cap = (size_t)glyd_compress_bound(SIZE, &params);
  uint8_t *const first = malloc(cap), *const again = malloc(cap);
  if (!first || !again) abort();
  size_t n = 0;
  for (size_t shift = 0; shift < 64; shift += 7) {
    uint8_t *const at = content + shift;
    for (size_t i = 0; i < SIZE; i += SEGMENT) memcpy(at + i, old + i * 37 % (SIZE - SEGMENT), SEGMENT);
    for (size_t i = 0; i < SIZE; i += SEGMENT) /* noise of different lengths, then what is in the base */
      for (size_t k = 0; k < i / SEGMENT % 48; k++) at[i + k] = (uint8_t)(at[i + k] * 5 + 1);
    size_t m = 0;
    CHECK_EQ(glyd_compress(again, cap, at, SIZE, &params, &m), GLYD_OK);
    if (shift == 0) {
      n = m;
      memcpy(first, again, n);
    } else if (CHECK_EQ(m, n)) {
      CHECK_BYTES(again, first, n);
    }
  }
  glyd_base_free(base);
  free(first);
  free(again);
  free(content);
  free(old);
}

static void expect_member(const uint8_t *blocks, int where, const char *path) {
  glyd_base_member member, again;
  if (!CHECK_EQ(glyd_base_member_read(blocks, &member), where) || where < 0) return;
  CHECK_EQ(member.size, strlen(path));
  CHECK_EQ(memcmp(member.path, path, member.size), 0);
  CHECK_EQ(glyd_base_member_read(blocks, &again), where);
  CHECK_EQ(again.hash, member.hash);
}

static void put_text(uint8_t *at, const char *text) { memcpy(at, text, strlen(text)); }

/* Names of members of archives: in a header, in two fields of it, in blocks
 * before it; and whatever else may stand there, up to the end of memory. */
static void test_members(void) {
  enum { HEADERS = GLYD_BASE_MEMBER_HEADERS };
  guard blocks = guard_new(HEADERS, 1);
  uint8_t *const p = blocks.p;
  memset(p, 0, HEADERS);
  CHECK_EQ(glyd_base_is_header(p), 0);
  put_text(p + 257, "ustar");
  CHECK_EQ(glyd_base_is_header(p), 1);
  expect_member(p, 0, "");
  put_text(p, "v1/a name");
  expect_member(p, 0, "a name");
  put_text(p + 345, "v1/folder");
  expect_member(p, 0, "folder/v1/a name");
  CHECK_EQ(glyd_base_member_blocks(p), 0); /* no digits */
  put_text(p + 124, "00000001001");
  CHECK_EQ(glyd_base_member_blocks(p), 1024);
  put_text(p + 124, "00000001000");
  CHECK_EQ(glyd_base_member_blocks(p), 512);
  put_text(p + 124, "77777777777");
  CHECK_EQ(glyd_base_member_blocks(p), (uint64_t)1 << 33);
  p[124 + 10] = '8';
  CHECK_EQ(glyd_base_member_blocks(p), 0);
  p[124] = 0x80; /* a binary number */
  CHECK_EQ(glyd_base_member_blocks(p), 0);
  memset(p, 'n', 100);
  memset(p + 345, 'p', 155);
  glyd_base_member member;
  CHECK_EQ(glyd_base_member_read(p, &member), 0);
  CHECK_EQ(member.size, 100);
  p[156] = 'x';
  expect_member(p, -1, "");
  put_text(p + 1024 + 257, "ustar");
  put_text(p + 1024, "v1/short");
  expect_member(p, 1024, "short");
  put_text(p + 512, "22 mtime=1.5\n19 path=v2/long one\n");
  expect_member(p, 1024, "long one");
  p[156] = 'L';
  memset(p + 512, 0, 512);
  put_text(p + 512, "v3/longer one");
  expect_member(p, 1024, "longer one");
  memset(p + 512, 'l', 512);
  CHECK_EQ(glyd_base_member_read(p, &member), 1024);
  CHECK_EQ(member.size, GLYD_BASE_MEMBER_PATH);
  p[1024 + 156] = 'L';
  expect_member(p, -1, "");
  uint64_t state = 5;
  for (int round = 0; round < 20000; round++) {
    for (size_t i = 0; i < HEADERS; i += 8) {
      uint64_t v = test_random(&state);
      if (round & 1) v &= 0x0F0F0F0F0F0F0F0Fu; /* with zeros and few slashes */
      memcpy(p + i, &v, 8);
    }
    if (round & 2) put_text(p + 512 + (round * 7) % 507, " path=" + (round % 3));
    put_text(p + 257, "ustar");
    put_text(p + 1024 + 257, "ustar");
    p[156] = (uint8_t) "0xLg"[round % 4];
    if (glyd_base_member_read(p, &member) >= 0) CHECK(member.size <= GLYD_BASE_MEMBER_PATH);
  }
  guard_free(blocks);
}

int main(int argc, char **argv) {
  test_golden(argc > 1 ? argv[1] : NULL);
  TEST_AT("members of archives");
  test_members();
  TEST_AT("writing");
  test_write();
  TEST_AT("marks by address");
  test_marks_by_address();
  return test_end();
}
