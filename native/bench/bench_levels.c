/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The slow levels beside what they are to replace, whole frames with checks on
 * our side, one thread, thread CPU time:
 *
 *   h  high beside zstd -9              x  ultra beside xz -9e
 *   u  ultra beside zstd -19            b  ultra beside brotli -11 (window 2^24)
 *   c  cold beside zpaq -m5 (program)   r  ultra with records beside xz -9e
 *
 * All libraries run in this process, in turns; zpaq is a program, timed by what it
 * used. Medians of the ratios of each round; what is read is compared. "read" is
 * into an existing buffer.
 *
 *   bench_levels [-n most bytes, 8388608] [-r rounds of reads, 11] [-w writes, 1] [-p pairs, huxb] FILE...
 *
 * Links with zstd, lzma, brotlienc and brotlidec.
 */
#define _DEFAULT_SOURCE
#include <brotli/decode.h>
#include <brotli/encode.h>
#include <lzma.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "bench_time.h"
#include "glyd/glyd.h"

#define ROUNDS_MAX 99

/* Writes or reads: bytes of out, or 0 when it failed. */
typedef size_t (*codec_call)(int level, uint8_t *out, size_t cap, const uint8_t *in, size_t len);

static void must(int ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static void *memory(size_t n) {
  void *p = malloc(n + 1);
  must(p != NULL, "malloc");
  memset(p, 1, n + 1); /* no page is new when time is taken */
  return p;
}

static size_t write_glyd(int level, uint8_t *out, size_t cap, const uint8_t *in, size_t len) {
  glyd_params params;
  glyd_params_init(&params, level & 15);
  params.records = level >> 4;
  size_t size = 0;
  return glyd_compress(out, cap, in, len, &params, &size) == GLYD_OK ? size : 0;
}

static size_t read_glyd(int level, uint8_t *out, size_t cap, const uint8_t *in, size_t len) {
  (void)level;
  size_t size = 0;
  return glyd_decompress(out, cap, in, len, 1, NULL, NULL, &size, NULL) == GLYD_OK ? size : 0;
}

static size_t write_zstd(int level, uint8_t *out, size_t cap, const uint8_t *in, size_t len) {
  const size_t size = ZSTD_compress(out, cap, in, len, level);
  return ZSTD_isError(size) ? 0 : size;
}

static size_t read_zstd(int level, uint8_t *out, size_t cap, const uint8_t *in, size_t len) {
  (void)level;
  const size_t size = ZSTD_decompress(out, cap, in, len);
  return ZSTD_isError(size) ? 0 : size;
}

static size_t write_xz(int level, uint8_t *out, size_t cap, const uint8_t *in, size_t len) {
  size_t size = 0;
  return lzma_easy_buffer_encode((uint32_t)level | LZMA_PRESET_EXTREME, LZMA_CHECK_CRC64, NULL, in, len, out, &size,
                                 cap) == LZMA_OK
             ? size
             : 0;
}

static size_t read_xz(int level, uint8_t *out, size_t cap, const uint8_t *in, size_t len) {
  (void)level;
  uint64_t limit = UINT64_MAX;
  size_t from = 0, size = 0;
  return lzma_stream_buffer_decode(&limit, 0, NULL, in, &from, len, out, &size, cap) == LZMA_OK ? size : 0;
}

static size_t write_brotli(int level, uint8_t *out, size_t cap, const uint8_t *in, size_t len) {
  size_t size = cap;
  return BrotliEncoderCompress(level, BROTLI_MAX_WINDOW_BITS, BROTLI_MODE_GENERIC, len, in, &size, out) ? size : 0;
}

static size_t read_brotli(int level, uint8_t *out, size_t cap, const uint8_t *in, size_t len) {
  (void)level;
  size_t size = cap;
  return BrotliDecoderDecompress(len, in, &size, out) == BROTLI_DECODER_RESULT_SUCCESS ? size : 0;
}

typedef struct codec {
  const char *name;
  int level;
  codec_call write, read; /* zpaq: NULL */
} codec;

static const codec ZPAQ = {"zpaq -m5", 5, NULL, NULL};

static const struct pair {
  char letter;
  codec ours, peer;
  double bytes, write, read; /* what is to be reached: at most, at least, at least; 0: nothing */
  int worst;                 /* bytes of each file count, not their mean */
} pairs[] = {
    {'h', {"high", GLYD_LEVEL_HIGH, write_glyd, read_glyd}, {"zstd -9", 9, write_zstd, read_zstd}, .97, .9, 1.5, 0},
    {'u', {"ultra", GLYD_LEVEL_ULTRA, write_glyd, read_glyd}, {"zstd -19", 19, write_zstd, read_zstd}, 1, .7, 1.3, 1},
    {'x', {"ultra", GLYD_LEVEL_ULTRA, write_glyd, read_glyd}, {"xz -9e", 9, write_xz, read_xz}, 1.01, 0, 3, 1},
    {'b',
     {"ultra", GLYD_LEVEL_ULTRA, write_glyd, read_glyd},
     {"brotli -11", 11, write_brotli, read_brotli},
     1.01,
     0,
     0,
     1},
    {'r',
     {"ultra -r", GLYD_LEVEL_ULTRA | GLYD_RECORDS_ON << 4, write_glyd, read_glyd},
     {"xz -9e", 9, write_xz, read_xz},
     .85,
     0,
     3,
     0},
    {'c', {"cold", GLYD_LEVEL_COLD, write_glyd, read_glyd}, ZPAQ, 1.01, 3, 3, 1},
};

typedef struct result {
  size_t bytes;
  double write[ROUNDS_MAX], read[ROUNDS_MAX]; /* seconds */
} result;

/* Run a program without its output; processor seconds that it took. */
static double run(char *const argv[], const char *folder) {
  fflush(stdout); /* or the child would write it again */
  const pid_t child = fork();
  must(child >= 0, "fork");
  if (child == 0) {
    if (chdir(folder) != 0 || freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
      _exit(126);
    execvp(argv[0], argv);
    _exit(127);
  }
  int status;
  struct rusage used;
  must(wait4(child, &status, 0, &used) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, argv[0]);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static size_t slurp(const char *path, uint8_t *out, size_t cap) {
  FILE *f = fopen(path, "rb");
  must(f != NULL, path);
  const size_t n = fread(out, 1, cap, f);
  fclose(f);
  return n;
}

/* zpaq over a copy of the content in a folder of its own, once. */
static void run_zpaq(result *r, const uint8_t *in, size_t len, uint8_t *out, uint8_t *back) {
  char folder[] = "/tmp/bench_levels_XXXXXX", content[64], archive[64];
  must(mkdtemp(folder) != NULL, "mkdtemp");
  snprintf(content, sizeof content, "%s/content", folder);
  snprintf(archive, sizeof archive, "%s/archive.zpaq", folder);
  FILE *f = fopen(content, "wb");
  must(f != NULL && fwrite(in, 1, len, f) == len && fclose(f) == 0, content);
  char *const add[] = {"zpaq", "a", "archive.zpaq", "content", "-m5", "-t1", NULL};
  char *const extract[] = {"zpaq", "x", "archive.zpaq", "-force", "-t1", NULL};
  r->write[0] = run(add, folder);
  r->bytes = slurp(archive, out, 2 * len + 65536);
  must(unlink(content) == 0, content);
  r->read[0] = run(extract, folder);
  must(slurp(content, back, len) == len && memcmp(in, back, len) == 0, "zpaq x");
  unlink(content);
  unlink(archive);
  rmdir(folder);
}

static void write_once(const codec *c, result *r, int k, const uint8_t *in, size_t len, uint8_t *out, size_t cap) {
  const double t = now();
  r->bytes = c->write(c->level, out, cap, in, len);
  r->write[k] = now() - t;
  must(r->bytes != 0, c->name);
}

static void read_once(const codec *c, result *r, int k, const uint8_t *in, size_t len, const uint8_t *packed,
                      uint8_t *back) {
  memset(back, 0, len);
  const double t = now();
  const size_t n = c->read(c->level, back, len, packed, r->bytes);
  r->read[k] = now() - t;
  must(n == len && memcmp(in, back, len) == 0, c->name);
}

/* Median of the peer's seconds over ours. */
static double times(const double *peer, const double *ours, int n) {
  double ratio[ROUNDS_MAX];
  for (int k = 0; k < n; k++) ratio[k] = peer[k] / ours[k];
  return median(ratio, n);
}

typedef struct sums {
  double bytes, write, read, worst; /* sums of logarithms; the largest ratio of bytes */
  int files;
} sums;

static void measure(const struct pair *pair, const char *name, const uint8_t *in, size_t len, int writes, int rounds,
                    sums *sum) {
  static result ours, peer;
  const size_t cap = 2 * len + 65536;
  uint8_t *const a = memory(cap), *const b = memory(cap), *const back = memory(len);
  const int program = pair->peer.write == NULL, n_writes = program ? 1 : writes, n_reads = program ? 1 : rounds;
  if (program) run_zpaq(&peer, in, len, b, back);
  for (int k = 0; k < n_writes; k++) {
    if (!program) write_once(&pair->peer, &peer, k, in, len, b, cap);
    write_once(&pair->ours, &ours, k, in, len, a, cap);
  }
  for (int k = 0; k < n_reads; k++) {
    if (!program) read_once(&pair->peer, &peer, k, in, len, b, back);
    read_once(&pair->ours, &ours, k, in, len, a, back);
  }
  const double bytes = (double)ours.bytes / (double)peer.bytes, mb = (double)len / 1e6;
  const double write = times(peer.write, ours.write, n_writes), read = times(peer.read, ours.read, n_reads);
  printf("%-8s %-10s %-24.24s %9zu %9zu  %6.4f %7.3f %7.3f  %8.2f %8.1f\n", pair->ours.name, pair->peer.name, name,
         ours.bytes, peer.bytes, bytes, write, read, mb / median(ours.write, n_writes),
         mb / median(ours.read, n_reads));
  fflush(stdout);
  sum->bytes += log(bytes);
  sum->write += log(write);
  sum->read += log(read);
  if (bytes > sum->worst) sum->worst = bytes;
  sum->files++;
  free(a);
  free(b);
  free(back);
}

static const char *verdict(int holds) { return holds ? "holds" : "missed"; }

int main(int argc, char **argv) {
  const char *chosen = "huxb";
  int rounds = 11, writes = 1, arg = 1;
  size_t most = (size_t)8 << 20;
  for (; arg + 1 < argc && argv[arg][0] == '-'; arg += 2) {
    switch (argv[arg][1]) {
    case 'n': most = (size_t)strtoull(argv[arg + 1], NULL, 10); break;
    case 'r': rounds = atoi(argv[arg + 1]); break;
    case 'w': writes = atoi(argv[arg + 1]); break;
    case 'p': chosen = argv[arg + 1]; break;
    default: must(0, argv[arg]);
    }
  }
  must(most > 0 && rounds > 0 && rounds <= ROUNDS_MAX && writes > 0 && writes <= ROUNDS_MAX, "options");
  printf(
      "zstd %s, xz %s, brotli %x; first %zu bytes; bytes beside the peer's, write and read as multiples of its speed\n"
      "%-8s %-10s %-24s %9s %9s  %6s %7s %7s  %8s %8s\n",
      ZSTD_versionString(), lzma_version_string(), (unsigned)BrotliDecoderVersion(), most, "level", "peer", "file",
      "bytes", "peer's", "bytes", "write", "read", "w MB/s", "r MB/s");
  sums total[sizeof pairs / sizeof *pairs] = {{0}};
  uint8_t *const in = memory(most);
  for (; arg < argc; arg++) {
    const size_t len = slurp(argv[arg], in, most);
    if (len == 0) continue;
    const char *const slash = strrchr(argv[arg], '/');
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
      if (strchr(chosen, pairs[k].letter) != NULL)
        measure(&pairs[k], slash ? slash + 1 : argv[arg], in, len, writes, rounds, &total[k]);
  }
  for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
    const struct pair *const p = &pairs[k];
    const sums *const s = &total[k];
    if (s->files == 0) continue;
    const double bytes = exp(s->bytes / s->files), write = exp(s->write / s->files), read = exp(s->read / s->files);
    printf("%-8s %-10s means of %d: bytes %.3f, at most %.3f: to be %.2f%s, %s", p->ours.name, p->peer.name, s->files,
           bytes, s->worst, p->bytes, p->worst ? " on each" : "", verdict((p->worst ? s->worst : bytes) <= p->bytes));
    if (p->write > 0) printf("; write %.2f: to be %.1f, %s", write, p->write, verdict(write >= p->write));
    if (p->read > 0) printf("; read %.2f: to be %.1f, %s", read, p->read, verdict(read >= p->read));
    printf("\n");
  }
  free(in);
  return 0;
}
