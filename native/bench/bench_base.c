/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Content against a base, beside zstd with the base as prefix and long distance
 * matching (what `zstd --patch-from` does): one thread, in turns, medians of
 * rounds. Writing takes hashing and mapping the base in, reading its hash.
 *
 *   bench_base [-r rounds] [-l level] [-z level of zstd] [-o 1: no zstd, 2: and no reading] OLD NEW [OLD NEW …]
 */
#define _POSIX_C_SOURCE 199309L
#define ZSTD_STATIC_LINKING_ONLY
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "bench_time.h"
#include "glyd/base.h"

enum { ROUNDS_MAX = 99 };

typedef struct content {
  const char *name;
  uint8_t *data;
  size_t len;
} content;

typedef struct options {
  int rounds, level, zstd_level, alone;
} options;

static void fail(const char *what, const char *name) {
  fprintf(stderr, "%s: %s\n", name, what);
  exit(1);
}

static void *memory(size_t n) {
  void *p = malloc(n + 1);
  if (p == NULL) exit(1);
  memset(p, 1, n + 1);
  return p;
}

static content read_file(const char *name) {
  FILE *f = fopen(name, "rb");
  if (f == NULL || fseek(f, 0, SEEK_END) != 0) fail("cannot be read", name);
  const content c = {name, memory((size_t)ftell(f)), (size_t)ftell(f)};
  rewind(f);
  if (fread(c.data, 1, c.len, f) != c.len) fail("cannot be read", name);
  (void)fclose(f);
  return c;
}

static glyd_base *base_of(const content *old, int is_indexed) {
  glyd_base *base;
  if (glyd_base_create(&base, old->data, old->len, 0, NULL) != GLYD_OK ||
      (is_indexed && glyd_base_index(base) != GLYD_OK))
    fail("is no base", old->name);
  return base;
}

static size_t write_glyd(const content *old, const content *in, int level, uint8_t *out, size_t cap) {
  glyd_params params;
  size_t size;
  glyd_params_init(&params, level);
  glyd_base *const base = base_of(old, 1);
  params.base = base;
  if (glyd_compress(out, cap, in->data, in->len, &params, &size) != GLYD_OK) fail("is not written", in->name);
  glyd_base_free(base);
  return size;
}

static size_t read_glyd(const content *old, const uint8_t *in, size_t len, uint8_t *out, size_t cap) {
  size_t size = 0;
  glyd_base *const base = base_of(old, 0);
  if (glyd_decompress_base(out, cap, in, len, base, 1, NULL, NULL, &size, NULL) != GLYD_OK) size = 0;
  glyd_base_free(base);
  return size;
}

/* The command sets the window to hold both. */
static size_t write_zstd(const content *old, const content *in, int level, uint8_t *out, size_t cap) {
  ZSTD_CCtx *const c = ZSTD_createCCtx();
  int log = 10;
  while (log < 31 && (size_t)1 << log < old->len + in->len) log++;
  (void)ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
  (void)ZSTD_CCtx_setParameter(c, ZSTD_c_enableLongDistanceMatching, 1);
  (void)ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, log);
  (void)ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
  (void)ZSTD_CCtx_refPrefix(c, old->data, old->len);
  const size_t size = ZSTD_compress2(c, out, cap, in->data, in->len);
  ZSTD_freeCCtx(c);
  if (ZSTD_isError(size)) fail(ZSTD_getErrorName(size), in->name);
  return size;
}

static size_t read_zstd(const content *old, const uint8_t *in, size_t len, uint8_t *out, size_t cap) {
  ZSTD_DCtx *const d = ZSTD_createDCtx();
  (void)ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, 31);
  (void)ZSTD_DCtx_refPrefix(d, old->data, old->len);
  const size_t size = ZSTD_decompressDCtx(d, out, cap, in, len);
  ZSTD_freeDCtx(d);
  return size;
}

static void bench(const content *old, const content *in, const options *o) {
  const size_t cap = ZSTD_compressBound(in->len) + (in->len >> 4) + 4096;
  uint8_t *out = memory(cap), *back = memory(in->len);
  double write[2][ROUNDS_MAX], read[2][ROUNDS_MAX], faster[2][ROUNDS_MAX];
  size_t bytes[2] = {0};
  for (int r = 0; r < o->rounds; r++) {
    for (int c = 0; c < (o->alone ? 1 : 2); c++) {
      double t = now();
      bytes[c] = c == 0 ? write_glyd(old, in, o->level, out, cap) : write_zstd(old, in, o->zstd_level, out, cap);
      write[c][r] = (double)in->len / 1e6 / (now() - t);
      if (o->alone == 2) continue;
      memset(back, 0, in->len);
      t = now();
      const size_t n =
          c == 0 ? read_glyd(old, out, bytes[c], back, in->len) : read_zstd(old, out, bytes[c], back, in->len);
      read[c][r] = (double)in->len / 1e6 / (now() - t);
      if (n != in->len || memcmp(in->data, back, n) != 0) fail("comes back changed", in->name);
    }
    if (o->alone) continue;
    faster[0][r] = write[0][r] / write[1][r];
    faster[1][r] = read[0][r] / read[1][r];
  }
  const char *const slash = strrchr(in->name, '/');
  printf("| %s | %zu | %zu | %.0f | %.0f |", slash ? slash + 1 : in->name, in->len, bytes[0],
         median(write[0], o->rounds), o->alone == 2 ? 0 : median(read[0], o->rounds));
  if (!o->alone)
    printf(" %zu | %.3f | %.2f | %.2f |", bytes[1], (double)bytes[0] / (double)bytes[1], median(faster[0], o->rounds),
           median(faster[1], o->rounds));
  printf("\n");
  (void)fflush(stdout);
  free(out);
  free(back);
}

int main(int argc, char **argv) {
  options o = {5, GLYD_LEVEL_MAX, 3, 0};
  int arg = 1;
  for (; arg + 1 < argc && argv[arg][0] == '-'; arg += 2) {
    const int v = atoi(argv[arg + 1]);
    if (argv[arg][1] == 'r') o.rounds = v;
    if (argv[arg][1] == 'l') o.level = v;
    if (argv[arg][1] == 'z') o.zstd_level = v;
    if (argv[arg][1] == 'o') o.alone = v;
  }
  if (arg == argc || (argc - arg) % 2 != 0 || o.rounds < 1 || o.rounds > ROUNDS_MAX) return 1;
  printf("| new | bytes | glyd: bytes | write MB/s | read MB/s | zstd: bytes | bytes × | write × | read × |\n"
         "| --- | --: | --: | --: | --: | --: | --: | --: | --: |\n");
  for (; arg < argc; arg += 2) {
    const content old = read_file(argv[arg]), in = read_file(argv[arg + 1]);
    bench(&old, &in, &o);
    free(old.data);
    free(in.data);
  }
  return 0;
}
