/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The golden files (tools/make_golden.py): each gives the status and content
 * of the manifest with every CPU variant, in one call from guarded memory, with
 * threads, and as a stream.
 */
#include "frame_test.h"

#define NAME_CAP 120
#define CONTENT_CAP ((size_t)4 << 20) /* room beyond any content of the files */
#define FILES_MIN 400                 /* fewer: the folder is not what it should be */

/* The folder beside this file, or the one named on the command line. */
static void golden_path(char *path, size_t cap, const char *folder, const char *name) {
  if (folder) {
    (void)snprintf(path, cap, "%s/%s", folder, name);
    return;
  }
  const char *slash = strrchr(__FILE__, '/');
  const int n = slash ? (int)(slash - __FILE__) : 0;
  (void)snprintf(path, cap, "%.*s%sgolden/%s", n, __FILE__, n ? "/" : "", name);
}

static uint8_t *read_file(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  uint8_t *data = NULL;
  *size = 0;
  for (size_t got = 1; got > 0; *size += got) {
    uint8_t *more = realloc(data, *size + 65536);
    if (!more) abort();
    data = more;
    got = fread(data + *size, 1, 65536, f);
  }
  (void)fclose(f);
  return data;
}

typedef struct golden {
  char name[NAME_CAP];
  int status;
  size_t size;
  uint64_t check;
  const uint8_t *data; /* the file */
  size_t data_size;
} golden;

static void check_content(const golden *g, const uint8_t *out, size_t size) {
  if (CHECK_EQ(size, g->size)) CHECK_EQ(glyd_checksum(out, size), g->check);
}

/* Room is exactly the content, so that a byte too much hits the guard page. */
static void test_one_call(const golden *g, const glyd_limits *limits, int threads, int at_start) {
  const size_t cap = g->status == GLYD_OK ? g->size : CONTENT_CAP;
  guard in = guard_copy(g->data, g->data_size, at_start);
  guard out = guard_new(cap, at_start);
  size_t size = 0;
  const glyd_status status = glyd_decompress(out.p, cap, in.p, g->data_size, threads, limits, NULL, &size, NULL);
  if (CHECK_EQ(status, g->status) && status == GLYD_OK) check_content(g, out.p, size);
  guard_free(out);
  guard_free(in);
}

static void test_stream(const golden *g, const glyd_limits *limits, int threads, size_t step, uint8_t *content) {
  glyd_dctx *ctx = NULL;
  if (!CHECK_EQ(glyd_dctx_create(&ctx, threads, limits, NULL), GLYD_OK)) return;
  glyd_out out = {content, CONTENT_CAP, 0};
  glyd_in in = {g->data, 0, 0};
  int at_end = 0;
  glyd_status status = GLYD_OK;
  while (status == GLYD_OK && (in.pos < g->data_size || !at_end)) {
    const size_t in_before = in.pos;
    const size_t out_before = out.pos;
    const int all_given = in.size == g->data_size;
    in.size = in.size + step < g->data_size ? in.size + step : g->data_size;
    status = glyd_decompress_stream(ctx, &out, &in, &at_end);
    if (status == GLYD_OK && all_given && in.pos == in_before && out.pos == out_before) break;
  }
  /* a stream that ends early is not an error of the context, only not its end */
  const int ended = status == GLYD_OK && at_end && in.pos == g->data_size && g->data_size > 0;
  if (status == GLYD_OK && !ended) status = GLYD_E_TRUNCATED;
  if (CHECK_EQ(status, g->status) && status == GLYD_OK) check_content(g, content, out.pos);
  glyd_dctx_free(ctx);
}

/* What opening takes is counted, at its most, in the memory of a writer. */
static void test_opening(const uint8_t *content, size_t size, int level) {
  counter c;
  glyd_params params;
  glyd_params_init(&params, level);
  params.threads = 1;
  params.segment_size = 1 << 18;
  params.allocator = counter_allocator(&c);
  uint64_t most[2];
  for (int i = 0; i < 2; i++) {
    params.containers = i == 0 ? GLYD_CONTAINERS_OFF : GLYD_CONTAINERS_ON;
    most[i] = glyd_cctx_memory(&params);
  }
  glyd_cctx *cctx;
  const size_t cap = (size_t)glyd_compress_bound(size, &params);
  uint8_t *const out = malloc(cap);
  if (!CHECK(out != NULL) || !CHECK_EQ(glyd_cctx_create(&cctx, &params), GLYD_OK)) return;
  glyd_in from = {content, size, 0};
  glyd_out to = {out, cap, 0};
  size_t pending = 1;
  CHECK_EQ(glyd_compress_stream(cctx, &to, &from, GLYD_END, &pending), GLYD_OK);
  CHECK_EQ(pending, 0);
  glyd_frame_info info;
  CHECK_EQ(glyd_read_frame_header(out, to.pos, &info, NULL), GLYD_OK);
  CHECK_EQ(info.has_opened, 1);
  CHECK(c.peak > most[0] && c.peak <= most[1]);
  glyd_cctx_free(cctx);
  CHECK_EQ(c.now, 0);
  free(out);
}

int main(int argc, char **argv) {
  const char *folder = argc > 1 ? argv[1] : NULL;
  char path[1000];
  golden_path(path, sizeof path, folder, "manifest.txt");
  FILE *manifest = fopen(path, "r");
  if (!CHECK(manifest != NULL)) {
    printf("no %s\n", path);
    return test_end();
  }
  uint8_t *content = malloc(CONTENT_CAP);
  if (!content) abort();
  golden g;
  unsigned files = 0;
  while (fscanf(manifest, "%119s %d %zu %" SCNx64, g.name, &g.status, &g.size, &g.check) == 4) {
    golden_path(path, sizeof path, folder, g.name);
    uint8_t *data = read_file(path, &g.data_size);
    TEST_AT("%s", g.name);
    if (!CHECK(data != NULL)) continue;
    g.data = data;
    files++;
    for (int cpu = GLYD_CPU_CHOICE_BEST; cpu <= GLYD_CPU_CHOICE_AVX2; cpu++) {
      const glyd_limits limits = {.cpu = cpu};
      TEST_AT("%s, cpu choice %d", g.name, cpu);
      test_one_call(&g, &limits, 1, 0);
      test_one_call(&g, &limits, 1, 1);
      test_stream(&g, &limits, 1, g.data_size + 1, content);
    }
    TEST_AT("%s, threads", g.name);
    test_one_call(&g, NULL, 3, 0);
    test_stream(&g, NULL, 3, 100, content);
    TEST_AT("%s, byte by byte", g.name);
    test_stream(&g, NULL, 1, 1, content);
    if (strncmp(g.name, "opened/", 7) == 0 && g.status == GLYD_OK) {
      TEST_AT("%s, opened again", g.name);
      test_opening(content, g.size, GLYD_LEVEL_MAX);
      test_opening(content, g.size, GLYD_LEVEL_ULTRA);
    }
    free(data);
  }
  test_where[0] = 0;
  CHECK(feof(manifest));
  CHECK(files >= FILES_MIN);
  printf("%u files\n", files);
  (void)fclose(manifest);
  free(content);
  return test_end();
}
