/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Models by their fields, beside the same level without and zstd -3: whole
 * frames with checks, one thread, in turns, medians of rounds.
 *
 *   bench_fields [-r rounds] [-l level] [-c cpu choice] FILE...
 */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "bench_time.h"
#include "glyd/glyd.h"

enum { FIELDS, PLAIN, ZSTD, CODECS };
enum { ROUNDS_MAX = 99 };

static void *memory(size_t n) {
  void *p = malloc(n);
  if (p == NULL) exit(1);
  memset(p, 1, n);
  return p;
}

static void fail(const char *what, const char *name) {
  fprintf(stderr, "%s: %s\n", name, what);
  exit(1);
}

static void bench(const char *name, int level, int cpu, int rounds) {
  FILE *f = fopen(name, "rb");
  if (f == NULL || fseek(f, 0, SEEK_END) != 0) fail("cannot be read", name);
  const size_t len = (size_t)ftell(f);
  rewind(f);
  uint8_t *in = memory(len), *back = memory(len);
  if (fread(in, 1, len, f) != len) fail("cannot be read", name);
  (void)fclose(f);
  glyd_params params[2];
  for (int i = 0; i < 2; i++) {
    glyd_params_init(&params[i], level);
    params[i].weights = i == FIELDS ? GLYD_WEIGHTS_AUTO : GLYD_WEIGHTS_OFF;
    params[i].cpu = cpu;
  }
  const glyd_limits limits = {.cpu = cpu};
  const size_t cap = (size_t)glyd_compress_bound(len, &params[0]) + ZSTD_compressBound(len);
  uint8_t *out = memory(cap);
  double write[CODECS][ROUNDS_MAX], read[CODECS][ROUNDS_MAX];
  size_t bytes[CODECS];
  for (int r = 0; r < rounds; r++) {
    for (int c = 0; c < CODECS; c++) {
      size_t back_len = 0;
      double t = now();
      if (c == ZSTD)
        bytes[c] = ZSTD_compress(out, cap, in, len, 3);
      else if (glyd_compress(out, cap, in, len, &params[c], &bytes[c]) != GLYD_OK)
        fail("is not written", name);
      write[c][r] = (double)len / 1e6 / (now() - t);
      memset(back, 0, len);
      t = now();
      if (c == ZSTD)
        back_len = ZSTD_decompress(back, len, out, bytes[c]);
      else
        (void)glyd_decompress(back, len, out, bytes[c], 1, &limits, NULL, &back_len, NULL);
      read[c][r] = (double)len / 1e6 / (now() - t);
      if (back_len != len || memcmp(in, back, len) != 0) fail("comes back changed", name);
    }
  }
  printf("| %s | %zu |", strrchr(name, '/') ? strrchr(name, '/') + 1 : name, len);
  for (int c = 0; c < CODECS; c++)
    printf(" %.4f | %.0f | %.0f |", (double)bytes[c] / (double)len, median(write[c], rounds), median(read[c], rounds));
  printf("\n");
  free(in);
  free(back);
  free(out);
}

int main(int argc, char **argv) {
  int rounds = 5, level = GLYD_LEVEL_MAX, cpu = GLYD_CPU_CHOICE_BEST, arg = 1;
  for (; arg + 1 < argc && argv[arg][0] == '-'; arg += 2) {
    const int v = atoi(argv[arg + 1]);
    if (argv[arg][1] == 'r') rounds = v;
    if (argv[arg][1] == 'l') level = v;
    if (argv[arg][1] == 'c') cpu = v;
  }
  if (arg == argc || rounds < 1 || rounds > ROUNDS_MAX) return 1;
  printf(
      "| file | bytes | fields: ratio | write MB/s | read MB/s | plain: ratio | write | read | zstd -3: ratio | write "
      "| read |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n");
  for (; arg < argc; arg++) bench(argv[arg], level, cpu, rounds);
  return 0;
}
