/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The golden packs (tools/make_golden_packs.py): each gives the status and
 * weights of the manifest with both variants, in one call and row by row, from
 * guarded memory; and packing those weights again gives the same bytes.
 */
#include "frame_test.h"
#include "glyd/weights.h"

#define NAME_CAP 120
#define PACK_CAP ((size_t)1 << 20)
#define FILES_MIN 40 /* fewer: the folder is not what it should be */

/* The folder beside this file, or the one named on the command line. */
static void golden_path(char *path, size_t cap, const char *folder, const char *name) {
  if (folder) {
    (void)snprintf(path, cap, "%s/%s", folder, name);
    return;
  }
  const char *slash = strrchr(__FILE__, '/');
  const int n = slash ? (int)(slash - __FILE__) : 0;
  (void)snprintf(path, cap, "%.*s%sgolden_packs/%s", n, __FILE__, n ? "/" : "", name);
}

typedef struct golden {
  char name[NAME_CAP];
  int status;
  int layout;
  uint64_t rows;
  uint64_t cols;
  uint64_t check;
} golden;

static void test_read(const golden *g, const uint8_t *pack, size_t size, int cpu, int at_start, void *work) {
  const size_t n_work = glyd_weights_workspace();
  const size_t cap = g->status == GLYD_OK ? (size_t)(2 * g->rows * g->cols) : PACK_CAP;
  guard in = guard_copy(pack, size, at_start);
  guard out = guard_new(cap, at_start);
  glyd_weights_info info;
  glyd_status status = glyd_weights_read_info(in.p, size, &info);
  if (status == GLYD_OK) {
    const uint64_t rows = info.shape.rows;
    status = glyd_weights_unpack_rows(out.p, cap, in.p, size, 0, rows, work, n_work, cpu);
    if (status == GLYD_OK) {
      CHECK_EQ(info.shape.layout, g->layout);
      CHECK_EQ(rows, g->rows);
      CHECK_EQ(info.shape.cols, g->cols);
      CHECK_EQ(info.size, size);
      CHECK_EQ(glyd_checksum(out.p, cap), g->check);
      const size_t row = (size_t)(2 * g->cols);
      guard one = guard_new(row, at_start);
      for (uint64_t r = 0; r < rows; r++) {
        CHECK_EQ(glyd_weights_unpack_rows(one.p, row, in.p, size, r, 1, work, n_work, cpu), GLYD_OK);
        CHECK_BYTES(one.p, out.p + r * row, row);
      }
      guard_free(one);
    }
  }
  CHECK_EQ(status, g->status);
  if (status == GLYD_OK) {
    const glyd_weights_shape shape = {g->layout, g->rows, g->cols};
    const size_t bound = (size_t)glyd_weights_pack_bound(&shape);
    guard again = guard_new(bound, at_start);
    size_t len = 0;
    CHECK_EQ(glyd_weights_pack(again.p, bound, &shape, out.p, work, n_work, cpu, &len), GLYD_OK);
    if (CHECK_EQ(len, size)) CHECK_BYTES(again.p, pack, size);
    guard_free(again);
  }
  guard_free(out);
  guard_free(in);
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
  uint8_t *pack = malloc(PACK_CAP);
  void *work = malloc(glyd_weights_workspace());
  if (!pack || !work) abort();
  golden g;
  unsigned files = 0;
  while (fscanf(manifest, "%119s %d %d %" SCNu64 " %" SCNu64 " %" SCNx64, g.name, &g.status, &g.layout, &g.rows,
                &g.cols, &g.check) == 6) {
    golden_path(path, sizeof path, folder, g.name);
    TEST_AT("%s", g.name);
    FILE *f = fopen(path, "rb");
    if (!CHECK(f != NULL)) continue;
    const size_t size = fread(pack, 1, PACK_CAP, f);
    CHECK(size < PACK_CAP);
    (void)fclose(f);
    files++;
    for (int cpu = 0; cpu < 2; cpu++)
      for (int at_start = 0; at_start < 2; at_start++) test_read(&g, pack, size, cpu, at_start, work);
  }
  test_where[0] = 0;
  CHECK(feof(manifest));
  CHECK(files >= FILES_MIN);
  printf("%u files\n", files);
  (void)fclose(manifest);
  free(work);
  free(pack);
  return test_end();
}
