/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A level of coded blocks (max unless told) beside one of zstd (-3), on the LZ payload alone (no frame, no check), one
 * thread, both in this process and in turns: bytes, write and read as multiples
 * of zstd's, medians of the ratios of each round.
 *
 *   bench_coded [-L level id] [-z zstd level] [-r rounds] [-w rounds] [-s segment KiB] [-c cpu] [-l] [-n most bytes] FILE...
 */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "bench_time.h"
#include "block/block_decode.h"
#include "block/block_encode.h"
#include "common/cpu.h"

static void *memory(size_t n) {
  void *p = aligned_alloc(64, (n + 63) & ~(size_t)63);
  if (p == NULL) exit(1);
  memset(p, 1, n);
  return p;
}

int main(int argc, char **argv) {
  int level = GLYD_LEVEL_MAX, zstd_level = 3, rounds = 11, writes = 5, long_distance = 0, cpu_given = -1, arg = 1;
  size_t segment = (size_t)4 << 20, most = (size_t)16 << 20;
  for (; arg < argc && argv[arg][0] == '-'; arg++) {
    if (argv[arg][1] == 'l') {
      long_distance = 1;
      continue;
    }
    if (arg + 1 == argc) return 1;
    const long v = atol(argv[arg + 1]);
    switch (argv[arg++][1]) {
    case 'r': rounds = (int)v; break;
    case 'L': level = (int)v; break;
    case 'z': zstd_level = (int)v; break;
    case 'w': writes = (int)v; break;
    case 's': segment = (size_t)v << 10; break;
    case 'c': cpu_given = (int)v; break;
    case 'n': most = (size_t)v; break;
    default: return 1;
    }
  }
  if (rounds > 99) rounds = 99;
  if (writes > 99) writes = 99;
  const unsigned cpu = cpu_given < 0 ? glyd_cpu_features() : (unsigned)cpu_given;
  const glyd_lz_config config = {level, long_distance, segment, cpu};
  void *encoder = memory(glyd_lz_encode_workspace(&config)), *decoder = memory(glyd_lz_decode_workspace());
  ZSTD_CCtx *zc = ZSTD_createCCtx();
  ZSTD_DCtx *zd = ZSTD_createDCtx();
  double log_bytes = 0, log_write = 0, log_read = 0;
  int files = 0;
  printf("zstd %s -%d, level %d; segments of %zu KiB, cpu %u\n%-24s %10s %7s %7s %7s %8s %8s %8s %8s\n",
         ZSTD_versionString(), zstd_level, level, segment >> 10, cpu, "file", "zstd bytes", "bytes", "write", "read",
         "w MB/s", "r MB/s", "zw", "zr");
  for (; arg < argc; arg++) {
    FILE *f = fopen(argv[arg], "rb");
    if (f == NULL) {
      perror(argv[arg]);
      return 1;
    }
    uint8_t *in = memory(most);
    const size_t len = fread(in, 1, most, f);
    fclose(f);
    if (len == 0) continue;
    const size_t n = (len + segment - 1) / segment, zcap = ZSTD_compressBound(len);
    uint8_t *z = memory(zcap), *out = memory(len + 4096 * n), *back = memory(len);
    size_t *size = memory(n * sizeof *size), zlen = 0, total = 0;
    int *raw = memory(n * sizeof *raw);
    double w[99], r[99], tw[99], tr[99], zw[99], zr[99];
    for (int k = 0; k < writes; k++) {
      double t = now();
      zlen = ZSTD_compressCCtx(zc, z, zcap, in, len, zstd_level);
      zw[k] = now() - t;
      t = now();
      total = 0;
      for (size_t i = 0; i < n; i++) {
        const size_t part = len - i * segment < segment ? len - i * segment : segment;
        raw[i] = glyd_lz_encode(&config, encoder, in + i * segment, part, out + total, part, &size[i]) != GLYD_OK;
        if (raw[i]) {
          memcpy(out + total, in + i * segment, part);
          size[i] = part;
        }
        total += size[i];
      }
      tw[k] = now() - t;
      w[k] = zw[k] / tw[k];
    }
    for (int k = 0; k < rounds; k++) {
      memset(back, 0, len);
      double t = now();
      if (ZSTD_decompressDCtx(zd, back, len, z, zlen) != len) return 2;
      zr[k] = now() - t;
      memset(back, 0, len);
      t = now();
      size_t at = 0;
      for (size_t i = 0; i < n; i++) {
        const size_t part = len - i * segment < segment ? len - i * segment : segment;
        if (raw[i])
          memcpy(back + i * segment, out + at, part);
        else if (glyd_lz_decode(cpu, decoder, back + i * segment, part, out + at, size[i], NULL) != GLYD_OK) {
          printf("%s: segment %zu does not decode\n", argv[arg], i);
          return 3;
        }
        at += size[i];
      }
      tr[k] = now() - t;
      r[k] = zr[k] / tr[k];
      if (memcmp(in, back, len) != 0) {
        printf("%s: content differs\n", argv[arg]);
        return 4;
      }
    }
    const double bytes = (double)total / (double)zlen, mb = (double)len / 1e6;
    const double write = writes ? median(w, writes) : 0, read = rounds ? median(r, rounds) : 0;
    const char *name = strrchr(argv[arg], '/');
    printf("%-24.24s %10zu %7.4f %7.3f %7.3f %8.1f %8.0f %8.1f %8.0f\n", name ? name + 1 : argv[arg], zlen, bytes,
           write, read, mb / median(tw, writes), mb / median(tr, rounds), mb / median(zw, writes),
           mb / median(zr, rounds));
    fflush(stdout);
    log_bytes += log(bytes);
    log_write += log(write);
    log_read += log(read);
    files++;
    free(in);
    free(z);
    free(out);
    free(back);
    free(size);
    free(raw);
  }
  if (files != 0)
    printf("%-24s %10s %7.4f %7.3f %7.3f\n", "geometric mean", "", exp(log_bytes / files), exp(log_write / files),
           exp(log_read / files));
  return 0;
}
