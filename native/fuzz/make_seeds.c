/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * make_seeds FOLDER: write the seed corpus, small frames of every kind. Run it
 * when the format gains something; the files are committed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "glyd/glyd.h"
#include "glyd/kv.h"
#include "glyd/weights.h"

static uint8_t content[6000];
static uint8_t frame[100000];
static const char *folder;

static int save(const char *name, size_t size) {
  char path[1000];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  if (!file) return 0;
  const int ok = fwrite(frame, 1, size, file) == size;
  return fclose(file) == 0 && ok;
}

static void fill_content(int kind) {
  uint64_t v = 1;
  for (size_t i = 0; i < sizeof content; i++) {
    v = v * 6364136223846793005u + 1442695040888963407u;
    const unsigned r = (unsigned)(v >> 56);
    switch (kind) {
    case 0: content[i] = (uint8_t) "id,name,value\n17,tree,4.25\n"[(i + r % 3) % 27]; break;
    case 1: content[i] = (uint8_t)(r < 200 ? 'a' + r % 16 : r); break;
    case 2: content[i] = i >= 700 && r % 64 ? content[i - 700] : (uint8_t)r; break;
    case 3: content[i] = (uint8_t)r; break;
    default: content[i] = 'x'; break;
    }
  }
}

/* Pages of keys with a channel of zeros, and of noise, which stays plain. */
static int save_pages(void) {
  static uint8_t work[1 << 20];
  static uint16_t values[128 * 96];
  uint64_t v = 1;
  int ok = 1;
  for (int plain = 0; plain < 2; plain++) {
    for (size_t i = 0; i < sizeof values / 2; i++) {
      v = v * 6364136223846793005u + 1442695040888963407u;
      const unsigned r = (unsigned)(v >> 40);
      const unsigned down = (unsigned)__builtin_ctz(r | 1u << 13);
      values[i] = (uint16_t)((r >> 8 & 0x807F) | (121 - down) << 7);
      if (plain || i % 300 == 7) values[i] = (uint16_t)r;
      if (!plain && i % 96 == 5) values[i] = 0;
    }
    const uint32_t channels = plain ? 16 : 96;
    size_t size = 0;
    ok &= glyd_kv_pack(frame, sizeof frame, values, channels, channels, work, sizeof work, 0, &size) == GLYD_OK;
    ok &= save(plain ? "kv-plain.page" : "kv-packed.page", size);
  }
  return ok;
}

/* Packs of weights around 2^-6, with exceptions, a row of zeros and rows that fill no row block. */
static int save_packs(void) {
  static uint8_t work[1 << 17];
  static uint16_t weights[61 * 128];
  uint64_t v = 1;
  int ok = 1;
  for (size_t i = 0; i < sizeof weights / 2; i++) {
    v = v * 6364136223846793005u + 1442695040888963407u;
    const unsigned r = (unsigned)(v >> 40);
    const unsigned down = (unsigned)__builtin_ctz(r | 1u << 13); /* as exponents fall: half, a quarter, ... */
    weights[i] = (uint16_t)((r >> 8 & 0x807F) | (121 - down) << 7);
    if (i % 300 == 7) weights[i] = (uint16_t)r;
    if (i / 128 == 5) weights[i] = 0;
  }
  for (int layout = GLYD_WEIGHTS_MMA12; layout <= GLYD_WEIGHTS_TIERED; layout++) {
    const glyd_weights_shape shape = {layout, 61, 128};
    size_t size = 0;
    ok &= glyd_weights_pack(frame, sizeof frame, &shape, weights, work, sizeof work, 0, &size) == GLYD_OK && size > 0;
    ok &= save(layout == GLYD_WEIGHTS_MMA12 ? "weights-mma12.pack" : "weights-tiered.pack", size);
  }
  return ok;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  folder = argv[1];
  int ok = 1;
  for (int kind = 0; kind < 5; kind++) {
    fill_content(kind);
    for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_ULTRA; level++) {
      glyd_params params;
      glyd_params_init(&params, level);
      params.segment_size = kind == 0 ? 2048 : 0;
      params.checksum = kind != 1;
      size_t size;
      char name[40];
      (void)snprintf(name, sizeof name, "kind%d-level%d.glyd", kind, level);
      ok &= glyd_compress(frame, sizeof frame, content, kind == 4 ? 90 : sizeof content, &params, &size) == GLYD_OK;
      ok &= save(name, size);
    }
  }
  /* Models: words, then numbers whose high byte takes few values. */
  for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_ULTRA; level += 3) {
    glyd_params params;
    glyd_params_init(&params, level);
    params.weights = GLYD_WEIGHTS_ON;
    static const int widths[] = {2, 4, 34};
    for (size_t w = 0; w < 3; w++) {
      const int width = widths[w];
      fill_content(3);
      for (size_t i = 0; i < sizeof content; i++) {
        if (i < 300) content[i] = (uint8_t) "{\"name\": \"tensor\"}"[i % 19];
        if (i >= 300 && i % (size_t)width == (width == 34 ? 1u : (size_t)width - 1))
          content[i] = (uint8_t)(60 + content[i] % 5);
      }
      size_t size;
      char name[40];
      (void)snprintf(name, sizeof name, "weights%d-level%d.glyd", width, level);
      ok &= glyd_compress(frame, sizeof frame, content, sizeof content, &params, &size) == GLYD_OK;
      ok &= save(name, size);
    }
  }
  /* A stream of unknown size with flushes, then an empty frame and a skippable one. */
  glyd_params params;
  glyd_cctx *ctx;
  size_t pending;
  glyd_params_init(&params, GLYD_LEVEL_DEFAULT);
  params.segment_size = 1024;
  ok &= glyd_cctx_create(&ctx, &params) == GLYD_OK;
  fill_content(0);
  glyd_in in = {content, 500, 0};
  glyd_out out = {frame, sizeof frame, 0};
  ok &= glyd_compress_stream(ctx, &out, &in, GLYD_FLUSH, &pending) == GLYD_OK;
  in.size = 3000;
  ok &= glyd_compress_stream(ctx, &out, &in, GLYD_END, &pending) == GLYD_OK;
  ok &= glyd_compress_stream(ctx, &out, &in, GLYD_END, &pending) == GLYD_OK;
  glyd_cctx_free(ctx);
  static const uint8_t skippable[16] = {0x9D, 0x47, 0x4C, 0x53, 't', 'a', 'g', '.', 3};
  memcpy(frame + out.pos, skippable, 16);
  const uint64_t check = glyd_checksum(skippable, 16);
  memcpy(frame + out.pos + 16, &check, 4);
  memcpy(frame + out.pos + 20, "abc", 3);
  ok &= save("stream-empty-skippable.glyd", out.pos + 23);
  ok &= save_packs() && save_pages();
  return !ok;
}
