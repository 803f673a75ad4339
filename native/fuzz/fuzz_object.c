/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Objects: any bytes as an object of a dictionary (its id filled in), which every
 * CPU variant must read or refuse alike; as content, stored and restored; as a
 * dictionary; and as samples to train one from.
 */
#include "fuzz.h"
#include "glyd/dictionary.h"

#define OUTPUT 70000

static glyd_dictionary *dictionary; /* of prepare */
static glyd_object_encoder *encoder;

/* Made once: lines with counters as samples. */
static void prepare(void) {
  static uint8_t samples[64 * 100], bytes[16384]; /* large enough for steps */
  size_t sizes[64], len;
  for (size_t i = 0; i < sizeof samples; i++)
    samples[i] = (uint8_t)("{\"name\": \"glyd\", \"number\": 000, \"words\": [\"some\", \"more\"]}\n"[i % 60] +
                           (i % 60 == 29 ? i / 60 % 10 : 0));
  for (size_t i = 0; i < 64; i++) sizes[i] = 100;
  FUZZ_CHECK(glyd_dictionary_train(bytes, sizeof bytes, samples, sizes, 64, NULL, &len) == GLYD_OK);
  FUZZ_CHECK(glyd_dictionary_create(&dictionary, bytes, len, NULL) == GLYD_OK);
  FUZZ_CHECK(glyd_dictionary_index(dictionary) == GLYD_OK);
  FUZZ_CHECK(glyd_object_encoder_create(&encoder, dictionary, 2, NULL) == GLYD_OK);
}

static uint8_t *copy_of(const uint8_t *data, size_t size) {
  uint8_t *const p = malloc(size > 0 ? size : 1);
  if (!p) abort();
  if (size > 0) memcpy(p, data, size);
  return p;
}

static void decode(const glyd_dictionary *d, const uint8_t *data, size_t size) {
  uint8_t *const in = copy_of(data, size);
  if (size > 7) {
    in[0] = GLYD_OBJECT_MAGIC & 255;
    in[1] = GLYD_OBJECT_MAGIC >> 8;
    in[2] &= 0xFC; /* no check, so that what is decoded is seen */
    const uint32_t id = glyd_dictionary_id(d);
    memcpy(in + 3, &id, 4);
  }
  glyd_object_info info;
  size_t n[2] = {0, 0}, used;
  if (glyd_object_read_header(in, size, &info) == GLYD_OK && info.content_size <= OUTPUT) {
    uint8_t *const out[2] = {malloc(info.content_size + 1), malloc(info.content_size + 1)};
    if (!out[0] || !out[1]) abort();
    glyd_status status[2];
    for (int i = 0; i < 2; i++) {
      const glyd_limits limits = {.cpu = i == 0 ? GLYD_CPU_CHOICE_BEST : GLYD_CPU_CHOICE_SCALAR};
      status[i] = glyd_object_decompress(out[i], info.content_size, in, size, d, &limits, NULL, &n[i], &used, NULL);
    }
    FUZZ_CHECK((status[0] == GLYD_OK) == (status[1] == GLYD_OK) && n[0] == n[1]);
    FUZZ_CHECK(memcmp(out[0], out[1], n[0]) == 0);
    free(out[0]);
    free(out[1]);
  }
  free(in);
}

static void round_trip(glyd_object_encoder *e, const glyd_dictionary *d, const uint8_t *data, size_t size) {
  const size_t cap = glyd_object_bound(size);
  uint8_t *const object = malloc(cap), *const back = malloc(size + 1), *const in = copy_of(data, size);
  if (!object || !back) abort();
  size_t len = 0, n = 0, used = 0;
  FUZZ_CHECK(glyd_object_compress(e, object, cap, in, size, &len) == GLYD_OK);
  FUZZ_CHECK(glyd_object_decompress(back, size, object, len, d, NULL, NULL, &n, &used, NULL) == GLYD_OK);
  FUZZ_CHECK(n == size && used == len && memcmp(back, in, size) == 0);
  free(in);
  free(back);
  free(object);
}

static void train(const uint8_t *data, size_t size) {
  uint8_t bytes[16384]; /* large enough for steps */
  size_t sizes[256], n = 0, len = 0;
  for (size_t at = 0; at < size && n < 256; n++) {
    sizes[n] = data[at] % 64 < size - at ? data[at] % 64 : size - at;
    at += sizes[n] != 0 ? sizes[n] : 1;
  }
  size_t total = 0;
  for (size_t i = 0; i < n; i++) total += sizes[i];
  if (total > size) return;
  FUZZ_CHECK(glyd_dictionary_train(bytes, sizeof bytes, data, sizes, n, NULL, &len) == GLYD_OK);
  glyd_dictionary *d = NULL;
  glyd_object_encoder *e = NULL;
  FUZZ_CHECK(glyd_dictionary_create(&d, bytes, len, NULL) == GLYD_OK);
  FUZZ_CHECK(glyd_dictionary_index(d) == GLYD_OK);
  FUZZ_CHECK(glyd_object_encoder_create(&e, d, 0, NULL) == GLYD_OK);
  round_trip(e, d, data, size < OUTPUT ? size : OUTPUT);
  glyd_object_encoder_free(e);
  glyd_dictionary_free(d);
}

/* The input as a dictionary, its id made right; whatever it holds, objects of it must be safe to write and read. */
static void take_as_dictionary(const uint8_t *data, size_t size) {
  if (size < 5) return;
  uint8_t *const bytes = copy_of(data, size);
  const uint32_t id = (uint32_t)glyd_checksum(bytes, size - 4);
  memcpy(bytes + size - 4, &id, 4);
  glyd_dictionary *d = NULL;
  if (glyd_dictionary_create(&d, bytes, size, NULL) == GLYD_OK) {
    glyd_object_encoder *e = NULL;
    FUZZ_CHECK(glyd_dictionary_index(d) == GLYD_OK && glyd_object_encoder_create(&e, d, 0, NULL) == GLYD_OK);
    const size_t most = size < OUTPUT ? size : OUTPUT;
    round_trip(e, d, data, most);
    round_trip(e, d, data + size - most / 2, most / 2);
    decode(d, data, most); /* 2: form; 7 on: sizes and payload, from the tables */
    const size_t at = size / 3;
    decode(d, data + at, size - at < most ? size - at : most);
    glyd_object_encoder_free(e);
  }
  glyd_dictionary_free(d);
  free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!dictionary) prepare();
  decode(dictionary, data, size);
  if (size <= OUTPUT) round_trip(encoder, dictionary, data, size);
  take_as_dictionary(data, size);
  if (size > 0 && size >= 64 && size < 96 && data[0] == 255) train(data, size); /* slow: tables of 12 MiB */
  return 0;
}
