/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Objects with a dictionary beside zstd -3 with a dictionary, one thread, both
 * in this process and in turns: of two rounds each is first in one, as the first
 * to read or write a buffer finds it in no near cache. A file is cut into objects of about the size
 * given, at line ends where there are some; of four objects one trains, one
 * is measured. Both dictionaries have 112 KiB at most. zstd stores no check here,
 * glyd what -k says.
 *
 *   bench_objects [-s object bytes, 0: lines] [-r rounds] [-k check bytes] [-n most bytes] FILE...
 */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zdict.h>
#include <zstd.h>

#include "bench_time.h"
#include "glyd/dictionary.h"

#define OBJECTS_MAX ((size_t)1 << 18)

static void *memory(size_t n) {
  void *p = malloc(n + 1);
  if (p == NULL) exit(1);
  memset(p, 1, n + 1);
  return p;
}

static void must(int ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

typedef struct set {
  uint8_t *bytes;
  size_t *sizes, n, total;
} set;

static void add(set *s, const uint8_t *at, size_t size) {
  memcpy(s->bytes + s->total, at, size);
  s->sizes[s->n++] = size;
  s->total += size;
}

static size_t cut(const uint8_t *at, size_t left, size_t size) {
  if (left <= size) return left;
  if (size == 0) { /* a line */
    const uint8_t *const line = memchr(at, '\n', left);
    return line ? (size_t)(line + 1 - at) : left;
  }
  const size_t most = left < 2 * size ? left : 2 * size;
  const uint8_t *const line = memchr(at + size, '\n', most - size);
  return line ? (size_t)(line + 1 - at) : size;
}

/* One of both, with what it needs and its results. */
typedef struct codec {
  glyd_object_encoder *encoder; /* NULL: zstd */
  glyd_dictionary *dictionary;
  ZSTD_CCtx *compressor;
  ZSTD_DCtx *decompressor;
  ZSTD_CDict *to_write;
  ZSTD_DDict *to_read;
  uint8_t *out;
  size_t *sizes, total;
  double write[99], read[99]; /* seconds */
} codec;

static void write_all(codec *c, const set *test, size_t cap, int round) {
  const double t = now();
  size_t at = 0, to = 0;
  for (size_t i = 0; i < test->n; i++) {
    if (c->encoder) {
      must(glyd_object_compress(c->encoder, c->out + to, cap - to, test->bytes + at, test->sizes[i], &c->sizes[i]) ==
               GLYD_OK,
           "writing");
    } else {
      c->sizes[i] =
          ZSTD_compress_usingCDict(c->compressor, c->out + to, cap - to, test->bytes + at, test->sizes[i], c->to_write);
      must(!ZSTD_isError(c->sizes[i]), "zstd writing");
    }
    at += test->sizes[i];
    to += c->sizes[i];
  }
  c->write[round] = now() - t;
  c->total = to;
}

static void read_all(codec *c, const set *test, uint8_t *back, int round) {
  const double t = now();
  size_t at = 0, to = 0;
  for (size_t i = 0; i < test->n; i++) {
    size_t n, used;
    if (c->encoder)
      must(glyd_object_decompress(back + at, test->sizes[i], c->out + to, c->sizes[i], c->dictionary, NULL, NULL, &n,
                                  &used, NULL) == GLYD_OK,
           "reading");
    else
      must(ZSTD_decompress_usingDDict(c->decompressor, back + at, test->sizes[i], c->out + to, c->sizes[i],
                                      c->to_read) == test->sizes[i],
           "zstd reading");
    at += test->sizes[i];
    to += c->sizes[i];
  }
  c->read[round] = now() - t;
  must(memcmp(back, test->bytes, test->total) == 0, "comparison");
}

int main(int argc, char **argv) {
  int rounds = 8, check = 4, arg = 1;
  size_t object = 1024, most = (size_t)16 << 20;
  for (; arg + 1 < argc && argv[arg][0] == '-'; arg += 2) {
    const long v = atol(argv[arg + 1]);
    switch (argv[arg][1]) {
    case 's': object = (size_t)v; break;
    case 'r': rounds = (int)v; break;
    case 'k': check = (int)v; break;
    case 'n': most = (size_t)v; break;
    default: return 1;
    }
  }
  if (rounds < 1 || rounds > 99) rounds = 99;
  printf("zstd %s; objects of %zu bytes, check of %d\n%-24s %7s %9s %9s %7s %7s %7s %8s %8s %7s %7s\n",
         ZSTD_versionString(), object, check, "file", "objects", "content", "zstd -3", "bytes", "write", "read",
         "w MB/s", "r MB/s", "train s", "zstd s");
  double log_bytes = 0, log_write = 0, log_read = 0;
  int files = 0;
  for (; arg < argc; arg++) {
    FILE *f = fopen(argv[arg], "rb");
    if (f == NULL) {
      perror(argv[arg]);
      return 1;
    }
    uint8_t *const data = memory(most);
    const size_t len = fread(data, 1, most, f);
    fclose(f);
    set train = {memory(len), memory(OBJECTS_MAX * sizeof(size_t)), 0, 0}, test = train;
    test.bytes = memory(len);
    test.sizes = memory(OBJECTS_MAX * sizeof(size_t));
    size_t cuts = 0;
    for (size_t at = 0; at < len && cuts < OBJECTS_MAX; cuts++) {
      const size_t n = cut(data + at, len - at, object);
      add(cuts % 2 == 0 ? &train : &test, data + at, n);
      at += n;
    }
    double t0 = now();
    uint8_t *const dict = memory(GLYD_DICTIONARY_SIZE_DEFAULT), *const zdict = memory(GLYD_DICTIONARY_SIZE_DEFAULT);
    size_t dict_len;
    must(glyd_dictionary_train(dict, GLYD_DICTIONARY_SIZE_DEFAULT, train.bytes, train.sizes, train.n, NULL,
                               &dict_len) == GLYD_OK,
         "training");
    const double train_s = now() - t0;
    t0 = now();
    const size_t zdict_len =
        ZDICT_trainFromBuffer(zdict, GLYD_DICTIONARY_SIZE_DEFAULT, train.bytes, train.sizes, (unsigned)train.n);
    const double zstd_s = now() - t0;
    must(!ZDICT_isError(zdict_len), ZDICT_getErrorName(zdict_len));
    codec glyd = {.encoder = NULL}, zstd = glyd;
    must(glyd_dictionary_create(&glyd.dictionary, dict, dict_len, NULL) == GLYD_OK &&
             glyd_dictionary_index(glyd.dictionary) == GLYD_OK &&
             glyd_object_encoder_create(&glyd.encoder, glyd.dictionary, check, NULL) == GLYD_OK,
         "dictionary");
    zstd.compressor = ZSTD_createCCtx();
    zstd.decompressor = ZSTD_createDCtx();
    zstd.to_write = ZSTD_createCDict(zdict, zdict_len, 3);
    zstd.to_read = ZSTD_createDDict(zdict, zdict_len);
    const size_t cap = 2 * test.total + 64 * test.n;
    uint8_t *const back = memory(test.total + 64);
    codec *const both[] = {&glyd, &zstd};
    for (int k = 0; k < 2; k++) {
      both[k]->out = memory(cap);
      both[k]->sizes = memory(test.n * sizeof(size_t));
    }
    for (int round = 0; round < rounds; round++) {
      for (int k = 0; k < 2; k++) write_all(both[(k + round) % 2], &test, cap, round);
      for (int k = 0; k < 2; k++) read_all(both[(k + round) % 2], &test, back, round);
    }
    const char *const slash = strrchr(argv[arg], '/');
    const double w = median(glyd.write, rounds), r = median(glyd.read, rounds);
    const double bytes = (double)glyd.total / (double)zstd.total, wm = median(zstd.write, rounds) / w,
                 rm = median(zstd.read, rounds) / r;
    printf("%-24.24s %7zu %9zu %9zu %7.3f %7.2f %7.2f %8.0f %8.0f %7.2f %7.2f\n", slash ? slash + 1 : argv[arg], test.n,
           test.total, zstd.total, bytes, wm, rm, (double)test.total / w / 1e6, (double)test.total / r / 1e6, train_s,
           zstd_s);
    fflush(stdout);
    log_bytes += log(bytes);
    log_write += log(wm);
    log_read += log(rm);
    files++;
    ZSTD_freeCDict(zstd.to_write);
    ZSTD_freeDDict(zstd.to_read);
    ZSTD_freeCCtx(zstd.compressor);
    ZSTD_freeDCtx(zstd.decompressor);
    glyd_object_encoder_free(glyd.encoder);
    glyd_dictionary_free(glyd.dictionary);
    void *const all[] = {data,  train.bytes, train.sizes, test.bytes, test.sizes, dict,
                         zdict, back,        glyd.out,    glyd.sizes, zstd.out,   zstd.sizes};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  }
  printf("geometric mean: bytes %.3f, write %.2f, read %.2f\n", exp(log_bytes / files), exp(log_write / files),
         exp(log_read / files));
  return 0;
}
