/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Huffman planes alone: ns a symbol to write and to read (table included), by
 * entropy and plane size, for each CPU variant. Build with -DGLYD_NO_ASM to see
 * what the assembly is worth.
 *
 *   bench_huffman [rounds]
 */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_time.h"
#include "common/cpu.h"
#include "huffman/huffman_decode.h"
#include "huffman/huffman_encode.h"

#define MOST ((size_t)1 << 18)

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 200;
  static uint8_t in[MOST], out[GLYD_HUFFMAN_PLANE_BOUND(MOST)], back[MOST];
  static const size_t sizes[] = {100, 600, 8000, MOST};
  const unsigned variants[] = {GLYD_CPU_SCALAR, glyd_cpu_features()};
  printf("%8s %8s %6s %10s %10s\n", "bits", "bytes", "cpu", "write ns", "read ns");
  for (unsigned spread = 2; spread <= 128; spread *= 4)
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
      for (unsigned v = 0; v < 2; v++) {
        const size_t n = sizes[k];
        uint64_t seed = 1;
        for (size_t i = 0; i < n; i++) { /* the lower of two draws: skewed */
          seed = seed * 6364136223846793005u + 1442695040888963407u;
          const unsigned a = (unsigned)(seed >> 33) % (2 * spread), b = (unsigned)(seed >> 45) % (2 * spread);
          in[i] = (uint8_t)(a < b ? a : b);
        }
        double write = 1e9, read = 1e9;
        size_t len = 0;
        for (int r = 0; r < rounds; r++) {
          glyd_huffman_code last;
          last.valid = 0;
          double t = now();
          len = (size_t)(glyd_huffman_encode_plane(variants[v], out, in, n, NULL, &last) - out);
          t = now() - t;
          if (t < write) write = t;
          static glyd_huffman_table table;
          table.bits = 0;
          glyd_plane_input input = {out, out + len, out + len};
          const uint8_t *data;
          size_t got;
          t = now();
          const glyd_status status =
              glyd_huffman_decode_plane(variants[v], &table, &input, back, n, SIZE_MAX, &data, &got);
          t = now() - t;
          if (t < read) read = t;
          if (status != GLYD_OK || got != n || memcmp(in, back, n) != 0) return 1;
        }
        printf("%8.2f %8zu %6u %10.3f %10.3f\n", 8.0 * (double)len / (double)n, n, variants[v], write * 1e9 / (double)n,
               read * 1e9 / (double)n);
      }
  return 0;
}
