/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Plain levels beside lz4 in one process: bytes, write and read speed.
 *   bench_plain [-l level] [-r rounds] [-m MiB] [-s] FILE...
 * lz4 compresses each file in one call; glyd in 4 MiB segments. Rounds alternate
 * between the two; the speed columns are medians of the ratio of their times.
 * -s decodes with the portable variant. Link with -llz4.
 */
#define _POSIX_C_SOURCE 199309L
#include <lz4.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_time.h"
#include "block/block_plain_decode.h"
#include "block/block_plain_encode.h"
#include "common/cpu.h"
#include "common/mem.h"

#define ROUNDS_MAX 101
static const size_t segment = (size_t)4 << 20;

/* Walk over the blocks of one segment payload, as the block unit does. */
static int decode_segment(unsigned cpu, void *workspace, uint8_t *out, size_t out_len, const uint8_t *in,
                          size_t in_len) {
  const uint8_t *p = in, *end = in + in_len;
  uint8_t *op = out, *out_end = out + out_len;
  while (op < out_end) {
    uint64_t content, body;
    if (p == end) return 1;
    unsigned type = *p++;
    if ((p = glyd_get_varint(p, end, &content)) == NULL || content > (size_t)(out_end - op)) return 2;
    if ((p = glyd_get_varint(p, end, &body)) == NULL || body > (size_t)(end - p)) return 3;
    if ((type & 3) == GLYD_BLOCK_RAW) {
      memcpy(op, p, content);
    } else if ((type & 3) == GLYD_BLOCK_FILL) {
      memset(op, *p, content);
    } else if (glyd_plain_block_decode(cpu, workspace, out, op, content, out_end, type & 0xFC, p, body,
                                       (size_t)(end - p) - body) != GLYD_OK) {
      return 4;
    }
    op += content;
    p += body;
  }
  return p == end ? 0 : 5;
}

int main(int argc, char **argv) {
  int level = GLYD_LEVEL_DEFAULT, rounds = 11, at = 1;
  size_t most = (size_t)16 << 20;
  unsigned cpu = glyd_cpu_features();
  for (; at < argc && argv[at][0] == '-'; at++) {
    if (argv[at][1] == 's') {
      cpu = GLYD_CPU_SCALAR;
    } else if (at + 1 < argc) {
      int v = atoi(argv[at + 1]);
      if (argv[at][1] == 'l') level = v;
      if (argv[at][1] == 'r') rounds = v < ROUNDS_MAX ? v : ROUNDS_MAX;
      if (argv[at][1] == 'm') most = (size_t)v << 20;
      at++;
    }
  }
  glyd_lz_config config = {level, 0, segment, cpu};
  void *encode_space = aligned_alloc(64, (glyd_plain_encode_workspace(&config) + 63) & ~(size_t)63);
  void *decode_space = aligned_alloc(64, (glyd_plain_decode_workspace() + 63) & ~(size_t)63);
  double sum_bytes = 0, sum_write = 0, sum_read = 0;
  int files = 0;
  printf("%-22s %9s %6s %6s | %6s %6s %6s | %6s %6s %6s\n", "file", "lz4", "ratio", "bytes", "lz4 w", "glyd w", "x",
         "lz4 r", "glyd r", "x");
  for (; at < argc; at++) {
    FILE *f = fopen(argv[at], "rb");
    if (f == NULL) {
      perror(argv[at]);
      return 2;
    }
    uint8_t *in = malloc(most + 1);
    size_t n = fread(in, 1, most, f);
    fclose(f);
    if (n == 0) {
      free(in);
      continue;
    }
    size_t n_segments = (n + segment - 1) / segment, cap = n + n / 255 + 65536;
    uint8_t *lz = malloc(cap), *gl = malloc(cap), *out = malloc(n);
    size_t *sizes = malloc(n_segments * sizeof *sizes), total = 0;
    double lw[ROUNDS_MAX], gw[ROUNDS_MAX], lr[ROUNDS_MAX], gr[ROUNDS_MAX], rw[ROUNDS_MAX], rr[ROUNDS_MAX];
    int lz_len = 0;
    memset(out, 1, n);
    memset(lz, 1, cap);
    memset(gl, 1, cap);
    for (int r = 0; r < rounds; r++) {
      double t = now();
      lz_len = LZ4_compress_default((const char *)in, (char *)lz, (int)n, (int)cap);
      lw[r] = now() - t;
      t = now();
      total = 0;
      for (size_t s = 0; s < n_segments; s++) {
        size_t from = s * segment, len = n - from < segment ? n - from : segment;
        if (glyd_plain_segment_encode(&config, encode_space, in + from, 0, len, gl + total, cap - total, &sizes[s]) !=
            GLYD_OK) {
          fprintf(stderr, "%s: encoder failed in segment %zu\n", argv[at], s);
          return 1;
        }
        total += sizes[s];
      }
      gw[r] = now() - t;
      rw[r] = lw[r] / gw[r];
      t = now();
      if (LZ4_decompress_safe((const char *)lz, (char *)out, lz_len, (int)n) != (int)n) return 1;
      lr[r] = now() - t;
      memset(out, 0, n);
      t = now();
      const uint8_t *p = gl;
      for (size_t s = 0; s < n_segments; s++) {
        size_t from = s * segment, len = n - from < segment ? n - from : segment;
        int failed = decode_segment(cpu, decode_space, out + from, len, p, sizes[s]);
        if (failed) {
          fprintf(stderr, "%s: decoder failed in segment %zu: %d\n", argv[at], s, failed);
          return 1;
        }
        p += sizes[s];
      }
      gr[r] = now() - t;
      rr[r] = lr[r] / gr[r];
      if (memcmp(in, out, n) != 0) {
        fprintf(stderr, "%s: content differs\n", argv[at]);
        return 1;
      }
    }
    const char *name = strrchr(argv[at], '/');
    double bytes = (double)total / lz_len, mb = (double)n / 1e6, write = median(rw, rounds), read = median(rr, rounds);
    printf("%-22.22s %9d %6.2f %6.3f | %6.0f %6.0f %6.2f | %6.0f %6.0f %6.2f\n", name ? name + 1 : argv[at], lz_len,
           (double)n / (double)total, bytes, mb / median(lw, rounds), mb / median(gw, rounds), write,
           mb / median(lr, rounds), mb / median(gr, rounds), read);
    fflush(stdout);
    sum_bytes += log(bytes);
    sum_write += log(write);
    sum_read += log(read);
    files++;
    free(in), free(lz), free(gl), free(out), free(sizes);
  }
  if (files > 0) {
    printf("%-22s %9s %6s %6.3f | %6s %6s %6.2f | %6s %6s %6.2f\n", "geometric mean", "", "", exp(sum_bytes / files),
           "", "", exp(sum_write / files), "", "", exp(sum_read / files));
  }
  free(encode_space), free(decode_space);
  return 0;
}
