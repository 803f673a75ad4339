/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Segments stored with a dictionary: any bytes as a payload, which every CPU
 * variant must read or refuse alike; any bytes as content, stored and restored
 * at every level; and frames of that, damaged.
 */
#include "common/cpu.h"
#include "fuzz.h"
#include "glyd/dictionary.h"
#include "segment/segment_dictionary_decode.h"

#define CONTENT_MAX ((size_t)1 << 15)

static glyd_dictionary *dictionary; /* of prepare */

/* Made once: lines with counters as samples. */
static void prepare(void) {
  static const char line[] = "{\"name\": \"glyd\", \"number\": 000, \"words\": [\"some\", \"more\"]}\n";
  static uint8_t samples[64 * 100], bytes[8192];
  size_t sizes[64], len;
  for (size_t i = 0; i < sizeof samples; i++) samples[i] = (uint8_t)(line[i % 60] + (i % 60 == 29 ? i / 60 % 10 : 0));
  for (size_t i = 0; i < 64; i++) sizes[i] = 100;
  FUZZ_CHECK(glyd_dictionary_train(bytes, sizeof bytes, samples, sizes, 64, NULL, &len) == GLYD_OK);
  FUZZ_CHECK(glyd_dictionary_create(&dictionary, bytes, len, NULL) == GLYD_OK);
}

static uint8_t *get(size_t n) {
  uint8_t *const p = malloc(n > 0 ? n : 1);
  if (!p) abort();
  return p;
}

static void decode(const uint8_t *data, size_t size) {
  const size_t len = size > 1 ? (((size_t)data[size - 1] << 8 | data[size - 2]) & (CONTENT_MAX - 1)) + 1 : 1;
  void *workspace;
  if (posix_memalign(&workspace, 64, (size_t)glyd_segment_dictionary_decode_workspace(len, 1)) != 0) abort();
  uint8_t *const in = get(size), *out[2];
  memcpy(in, data, size);
  glyd_status status[2];
  for (int i = 0; i < 2; i++) {
    out[i] = get(len);
    status[i] = glyd_segment_dictionary_decode(i == 0 ? glyd_cpu_features() : GLYD_CPU_SCALAR, workspace, dictionary, 1,
                                               out[i], len, in, size);
  }
  FUZZ_CHECK((status[0] == GLYD_OK) == (status[1] == GLYD_OK));
  FUZZ_CHECK(status[0] != GLYD_OK || memcmp(out[0], out[1], len) == 0);
  free(out[0]);
  free(out[1]);
  free(in);
  free(workspace);
}

static void round_trip(const uint8_t *data, size_t size) {
  glyd_params params;
  glyd_params_init(&params, size > 0 ? GLYD_LEVEL_TURBO + data[0] % GLYD_LEVEL_COLD : GLYD_LEVEL_MAX);
  params.dictionary = dictionary;
  params.segment_size = size > 1 && data[1] & 1 ? 1024 : 0;
  const size_t cap = (size_t)glyd_compress_bound(size, &params);
  uint8_t *const frame = get(cap), *const back = get(size);
  const glyd_references references = {NULL, dictionary};
  size_t len = 0, n = 0;
  FUZZ_CHECK(glyd_compress(frame, cap, data, size, &params, &len) == GLYD_OK);
  FUZZ_CHECK(glyd_decompress_references(back, size, frame, len, &references, 1, NULL, NULL, &n, NULL) == GLYD_OK);
  FUZZ_CHECK(n == size && memcmp(back, data, size) == 0);
  for (size_t i = 0; i + 2 < size && i < 12; i += 3) {
    frame[((size_t)data[i] << 8 | data[i + 1]) % len] ^= data[i + 2];
    (void)glyd_decompress_references(back, size, frame, len, &references, 1, NULL, NULL, &n, NULL);
  }
  free(back);
  free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!dictionary) prepare();
  if (size > CONTENT_MAX) return 0;
  if (size > 0) decode(data, size); /* no payload is empty */
  round_trip(data, size);
  return 0;
}
