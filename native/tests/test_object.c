/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Dictionaries and objects: round trips of every form and size, samples of
 * which nothing can be learned, and refusals.
 */
#include "glyd/dictionary.h"
#include "test.h"

#define SAMPLES 400
#define OBJECT_MOST 70000

static uint8_t *get(size_t n) {
  uint8_t *p = malloc(n + 1);
  if (!p) exit(1);
  return p;
}

/* A made document: fixed words, numbers that differ. */
static size_t make_document(uint8_t *out, size_t most, uint64_t *state) {
  static const char *const names[] = {"alpha", "bravo", "charlie", "delta", "echo", "foxtrot"};
  size_t n = 0;
  while (n < most) {
    char line[200];
    const uint64_t r = test_random(state);
    const int k =
        snprintf(line, sizeof line,
                 "{\"user\": \"%s\", \"id\": %u, \"active\": %s, \"address\": {\"street\": \"%s %u\"}}\n", names[r % 6],
                 (unsigned)(r >> 8 & 0xFFFFF), r & 64 ? "true" : "false", names[r / 6 % 6], (unsigned)(r >> 40 & 0xFF));
    const size_t take = (size_t)k < most - n ? (size_t)k : most - n;
    memcpy(out + n, line, take);
    n += take;
  }
  return n;
}

static glyd_dictionary *train(size_t size, uint64_t seed) {
  uint8_t *const samples = get(SAMPLES * 600), *const bytes = get(size);
  size_t sizes[SAMPLES], total = 0, len = 0;
  for (size_t i = 0; i < SAMPLES; i++) {
    sizes[i] = make_document(samples + total, 40 + test_random(&seed) % 500, &seed);
    total += sizes[i];
  }
  glyd_dictionary *d = NULL;
  CHECK_EQ(glyd_dictionary_train(bytes, size, samples, sizes, SAMPLES, NULL, &len), GLYD_OK);
  CHECK(len <= size);
  CHECK_EQ(glyd_dictionary_create(&d, bytes, len, NULL), GLYD_OK);
  CHECK_EQ(glyd_dictionary_index(d), GLYD_OK);
  free(samples);
  free(bytes);
  return d;
}

static size_t round_trip(glyd_object_encoder *e, const glyd_dictionary *d, const uint8_t *content, size_t len) {
  const size_t cap = glyd_object_bound(len);
  uint8_t *const object = get(cap);
  size_t size = 0;
  CHECK_EQ(glyd_object_compress(e, object, cap, content, len, &size), GLYD_OK);
  CHECK(size <= cap);
  glyd_object_info info;
  CHECK_EQ(glyd_object_read_header(object, size, &info), GLYD_OK);
  CHECK_EQ(info.content_size, len);
  CHECK_EQ(info.header_size + info.payload_size, size);
  for (int cpu = GLYD_CPU_CHOICE_BEST; cpu <= GLYD_CPU_CHOICE_SCALAR; cpu++) {
    const glyd_limits limits = {.cpu = cpu};
    uint8_t *const back = get(len); /* no room beyond, and none before in or after */
    uint8_t *const in = get(size);
    memcpy(in, object, size);
    size_t n = 0, used = 0;
    CHECK_EQ(glyd_object_decompress(back, len, in, size, d, &limits, NULL, &n, &used, NULL), GLYD_OK);
    CHECK_EQ(n, len);
    CHECK_EQ(used, size);
    CHECK_BYTES(back, content, len);
    free(in);
    free(back);
  }
  free(object);
  return size;
}

static void test_round_trips(void) {
  glyd_dictionary *const d = train(16384, 1);
  uint8_t *const content = get(OBJECT_MOST);
  for (int check = 0; check <= 4; check += 2) {
    glyd_object_encoder *e = NULL;
    CHECK_EQ(glyd_object_encoder_create(&e, d, check, NULL), GLYD_OK);
    uint64_t state = 99;
    for (size_t len = 0; len < 400; len++) {
      TEST_AT("document of %zu", len);
      make_document(content, len, &state);
      round_trip(e, d, content, len);
    }
    static const size_t sizes[] = {1000, 4096, 20000, 32767, 32768, 50000, 65535, 65536, OBJECT_MOST};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      TEST_AT("size %zu", sizes[i]);
      make_document(content, sizes[i], &state);
      const size_t n = round_trip(e, d, content, sizes[i]);
      CHECK(n < sizes[i] / 3);
      memset(content, 'x', sizes[i]);
      round_trip(e, d, content, sizes[i]);
      for (size_t k = 0; k < sizes[i]; k++) content[k] = (uint8_t)test_random(&state);
      CHECK(round_trip(e, d, content, sizes[i]) <= glyd_object_bound(sizes[i]));
      for (size_t k = 0; k < sizes[i]; k++) content[k] = (uint8_t)(k % (3 + i)); /* short distances */
      round_trip(e, d, content, sizes[i]);
    }
    glyd_object_encoder_free(e);
  }
  free(content);
  glyd_dictionary_free(d);
}

static void test_odd_samples(void) {
  uint8_t noise[3000];
  uint64_t state = 5;
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (uint8_t)test_random(&state);
  static const size_t none[1] = {0}, one[1] = {3000}, tiny[5] = {0, 1, 2, 3, 7}, zeros[3] = {0, 0, 0};
  const struct {
    const size_t *sizes;
    size_t n;
  } cases[] = {{none, 0}, {none, 1}, {one, 1}, {tiny, 5}, {zeros, 3}};
  uint8_t out[8192], again[8192];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    TEST_AT("samples %zu", i);
    size_t len = 0, len2 = 0;
    CHECK_EQ(glyd_dictionary_train(out, sizeof out, noise, cases[i].sizes, cases[i].n, NULL, &len), GLYD_OK);
    CHECK_EQ(glyd_dictionary_train(again, sizeof again, noise, cases[i].sizes, cases[i].n, NULL, &len2), GLYD_OK);
    CHECK_EQ(len, len2);
    CHECK_BYTES(out, again, len);
    glyd_dictionary *d = NULL;
    glyd_object_encoder *e = NULL;
    CHECK_EQ(glyd_dictionary_create(&d, out, len, NULL), GLYD_OK);
    CHECK_EQ(glyd_object_encoder_create(&e, d, 4, NULL), GLYD_E_STATE); /* not prepared */
    CHECK_EQ(glyd_dictionary_index(d), GLYD_OK);
    CHECK_EQ(glyd_object_encoder_create(&e, d, 4, NULL), GLYD_OK);
    round_trip(e, d, (const uint8_t *)"hello, hello, hello, hello, hello", 33);
    round_trip(e, d, noise, sizeof noise);
    glyd_object_encoder_free(e);
    glyd_dictionary_free(d);
  }
  size_t len = 0;
  CHECK_EQ(glyd_dictionary_train(out, GLYD_DICTIONARY_SIZE_MIN - 1, noise, one, 1, NULL, &len), GLYD_E_PARAMETER);
}

static void test_refusals(void) {
  glyd_dictionary *const d = train(8192, 2), *const other = train(8192, 3);
  glyd_object_encoder *e = NULL;
  CHECK_EQ(glyd_object_encoder_create(&e, d, 3, NULL), GLYD_E_PARAMETER);
  CHECK_EQ(glyd_object_encoder_create(&e, d, 4, NULL), GLYD_OK);
  uint8_t content[2000], object[2100], back[2000];
  uint64_t state = 7;
  make_document(content, sizeof content, &state);
  size_t size = 0, n = 0, used = 0;
  glyd_error error;
  CHECK_EQ(glyd_object_compress(e, object, 10, content, sizeof content, &size), GLYD_E_BUFFER);
  CHECK_EQ(glyd_object_compress(e, object, sizeof object, content, sizeof content, &size), GLYD_OK);
  CHECK_EQ(glyd_object_decompress(back, sizeof back, object, size, NULL, NULL, NULL, &n, &used, &error),
           GLYD_E_DICT_MISSING);
  CHECK_EQ(error.expected, glyd_dictionary_id(d));
  CHECK_EQ(glyd_object_decompress(back, sizeof back, object, size, other, NULL, NULL, &n, &used, &error),
           GLYD_E_DICT_WRONG);
  CHECK_EQ(error.found, glyd_dictionary_id(other));
  CHECK_EQ(glyd_object_decompress(back, sizeof back - 1, object, size, d, NULL, NULL, &n, &used, &error),
           GLYD_E_BUFFER);
  const glyd_limits limits = {.max_output = 100};
  CHECK_EQ(glyd_object_decompress(back, sizeof back, object, size, d, &limits, NULL, &n, &used, &error),
           GLYD_E_LIMIT_OUTPUT);
  for (size_t len = 0; len < size; len++) {
    TEST_AT("cut to %zu", len);
    CHECK_EQ(glyd_object_decompress(back, sizeof back, object, len, d, NULL, NULL, &n, &used, NULL), GLYD_E_TRUNCATED);
  }
  /* Every bit flipped: refused, or it is the check of a payload that means the same. */
  size_t wrong = 0;
  for (size_t i = 0; i < 8 * size; i++) {
    object[i / 8] ^= (uint8_t)(1 << i % 8);
    for (int cpu = GLYD_CPU_CHOICE_BEST; cpu <= GLYD_CPU_CHOICE_SCALAR; cpu++) {
      const glyd_limits variant = {.cpu = cpu};
      if (glyd_object_decompress(back, sizeof back, object, size, d, &variant, NULL, &n, &used, NULL) == GLYD_OK &&
          (n != sizeof content || memcmp(back, content, n) != 0))
        wrong++;
    }
    object[i / 8] ^= (uint8_t)(1 << i % 8);
  }
  CHECK_EQ(wrong, 0);
  glyd_object_encoder_free(e);
  glyd_dictionary_free(other);
  glyd_dictionary_free(d);
}

/* Bytes of a dictionary changed one after the other: none but the right one is taken. */
static void test_broken_dictionaries(void) {
  uint8_t samples[4000], bytes[4096];
  uint64_t state = 11;
  size_t sizes[20], len = 0, total = 0;
  for (size_t i = 0; i < 20; i++) {
    sizes[i] = 200;
    total += make_document(samples + total, 200, &state);
  }
  CHECK_EQ(glyd_dictionary_train(bytes, sizeof bytes, samples, sizes, 20, NULL, &len), GLYD_OK);
  for (size_t i = 0; i < len; i++) {
    glyd_dictionary *d = NULL;
    bytes[i] ^= 0x55;
    TEST_AT("byte %zu", i);
    CHECK(glyd_dictionary_create(&d, bytes, len, NULL) != GLYD_OK);
    CHECK(d == NULL);
    bytes[i] ^= 0x55;
    CHECK(glyd_dictionary_create(&d, bytes, i, NULL) == GLYD_E_TRUNCATED);
  }
}

/* Of tools/make_golden_objects.py. */
static uint8_t *load(const char *name, size_t *size) {
  char path[1000];
  const char *const slash = strrchr(__FILE__, '/');
  (void)snprintf(path, sizeof path, "%.*sgolden_objects/%s", slash ? (int)(slash + 1 - __FILE__) : 0, __FILE__, name);
  FILE *const f = fopen(path, "rb");
  if (!CHECK(f != NULL)) exit(test_end());
  uint8_t *const data = get(30000);
  *size = fread(data, 1, 30000, f);
  (void)fclose(f);
  return data;
}

/* Give a dictionary whose bytes were changed the id that they have now. */
static void sign(uint8_t *bytes, size_t len) {
  const uint32_t id = (uint32_t)glyd_checksum(bytes, len - 4);
  memcpy(bytes + len - 4, &id, 4);
}

/* Steps that cannot be, in a dictionary whose id is right. */
static void test_wrong_steps(void) {
  size_t len;
  static const struct {
    size_t at;
    int to;
    glyd_status status;
  } cases[] = {
      {4, 2, GLYD_E_VERSION},      {4, 4, GLYD_E_VERSION},    {140, 200, GLYD_OK}, /* many literals are no fault */
      {141, 3, GLYD_E_CORRUPT},                                                    /* too short a match */
      {142, 16, GLYD_OK},                                                          /* 0 and 16 bits: below 65536 */
      {142, 17, GLYD_E_CORRUPT},   {142, 32, GLYD_E_CORRUPT}, {143, 15, GLYD_OK},
      {143, 16, GLYD_E_CORRUPT},   /* 4 or more and 16 bits are beyond it */
      {143, 0x80, GLYD_E_CORRUPT}, /* an offset there is not */
      {7, 255, GLYD_OK},           /* hint for writers */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    TEST_AT("case %zu", i);
    uint8_t *const bytes = load("dictionary-1.bin", &len);
    if (cases[i].at == 142) bytes[140] = 0;
    bytes[cases[i].at] = (uint8_t)cases[i].to;
    sign(bytes, len);
    glyd_dictionary *d = NULL;
    CHECK_EQ(glyd_dictionary_create(&d, bytes, len, NULL), cases[i].status);
    if (d) { /* it works, whatever it says */
      glyd_object_encoder *e = NULL;
      uint8_t content[3000];
      uint64_t state = i;
      CHECK_EQ(glyd_dictionary_index(d), GLYD_OK);
      CHECK_EQ(glyd_object_encoder_create(&e, d, 4, NULL), GLYD_OK);
      round_trip(e, d, content, make_document(content, sizeof content, &state));
      glyd_object_encoder_free(e);
    }
    glyd_dictionary_free(d);
    free(bytes);
  }
  /* The table of steps is the last one: a code for what is no step. */
  uint8_t *const bytes = load("dictionary-1.bin", &len);
  const uint32_t content_size = (uint32_t)(bytes[8] | bytes[9] << 8 | bytes[10] << 16);
  uint8_t *const codes = bytes + len - 4 - content_size - 128;
  glyd_dictionary *d = NULL;
  CHECK(bytes[6] < 254);
  CHECK_EQ(codes[127] >> 4, 0);
  const uint8_t first = codes[0] & 15;
  codes[127] = (uint8_t)(first << 4); /* the Kraft sum stays as it is */
  codes[0] ^= first;
  sign(bytes, len);
  CHECK_EQ(glyd_dictionary_create(&d, bytes, len, NULL), GLYD_E_CORRUPT);
  free(bytes);
}

/* A dictionary without steps for all there is: such content is stored in another form. */
static void test_few_steps(void) {
  size_t len;
  uint8_t *const bytes = load("dictionary-1.bin", &len);
  for (size_t s = 0; s < bytes[6]; s++)
    memcpy(bytes + 140 + 4 * s, "\1\5\0\0", 4); /* 1 literal, match of 5, repeat 0 */
  sign(bytes, len);
  glyd_dictionary *d = NULL;
  glyd_object_encoder *e = NULL;
  CHECK_EQ(glyd_dictionary_create(&d, bytes, len, NULL), GLYD_OK);
  CHECK_EQ(glyd_dictionary_index(d), GLYD_OK);
  CHECK_EQ(glyd_object_encoder_create(&e, d, 4, NULL), GLYD_OK);
  uint8_t content[3000], object[3100];
  uint64_t state = 1;
  make_document(content, sizeof content, &state);
  round_trip(e, d, content, sizeof content);
  glyd_object_info info;
  size_t size = 0;
  CHECK_EQ(glyd_object_compress(e, object, sizeof object, content, sizeof content, &size), GLYD_OK);
  CHECK_EQ(glyd_object_read_header(object, size, &info), GLYD_OK);
  CHECK_EQ(info.form, 0);
  glyd_object_encoder_free(e);
  glyd_dictionary_free(d);
  free(bytes);
}

/* An object's bytes do not depend on those before it, nor does what lies behind the content. */
static void test_earlier_objects(void) {
  glyd_dictionary *const d = train(16384, 4);
  glyd_object_encoder *used = NULL, *fresh = NULL;
  CHECK_EQ(glyd_object_encoder_create(&used, d, 4, NULL), GLYD_OK);
  uint8_t content[3000], one[3100], other[3100];
  uint64_t state = 17;
  for (size_t i = 0; i < 200; i++) {
    TEST_AT("object %zu", i);
    const size_t len = 20 + test_random(&state) % (i % 2 == 0 ? 300 : 2900);
    size_t n = 0, m = 0;
    make_document(content, len, &state);
    CHECK_EQ(glyd_object_encoder_create(&fresh, d, 4, NULL), GLYD_OK);
    CHECK_EQ(glyd_object_compress(used, one, sizeof one, content, len, &n), GLYD_OK);
    CHECK_EQ(glyd_object_compress(fresh, other, sizeof other, content, len, &m), GLYD_OK);
    CHECK_EQ(n, m);
    CHECK_BYTES(one, other, n);
    glyd_object_encoder_free(fresh);
  }
  glyd_object_encoder_free(used);
  glyd_dictionary_free(d);
}

static void test_golden(void) {
  size_t size;
  char *const manifest = (char *)load("manifest.txt", &size);
  manifest[size] = 0;
  glyd_dictionary *dictionaries[2];
  for (int i = 0; i < 2; i++) {
    char file[40];
    (void)snprintf(file, sizeof file, "dictionary-%d.bin", i);
    uint8_t *const data = load(file, &size);
    CHECK_EQ(glyd_dictionary_create(&dictionaries[i], data, size, NULL), GLYD_OK);
    free(data);
  }
  int files = 0;
  for (char *line = strtok(manifest, "\n"); line; line = strtok(NULL, "\n"), files++) {
    char name[100], file[120];
    unsigned len;
    uint64_t check;
    if (!CHECK_EQ(sscanf(line, "%99s %u %" SCNx64, name, &len, &check), 3)) break;
    TEST_AT("%s", name);
    (void)snprintf(file, sizeof file, "%s.object", name);
    uint8_t *const object = load(file, &size), back[20000];
    for (int cpu = GLYD_CPU_CHOICE_BEST; cpu <= GLYD_CPU_CHOICE_SCALAR; cpu++) {
      const glyd_limits limits = {.cpu = cpu};
      size_t n = 0, used = 0;
      CHECK_EQ(
          glyd_object_decompress(back, len, object, size, dictionaries[name[0] - '0'], &limits, NULL, &n, &used, NULL),
          GLYD_OK);
      CHECK_EQ(glyd_checksum(back, n), check);
      CHECK_EQ(n, len);
    }
    free(object);
  }
  CHECK(files >= 24);
  for (int i = 0; i < 2; i++) glyd_dictionary_free(dictionaries[i]);
  free(manifest);
}

int main(void) {
  test_golden();
  test_round_trips();
  test_odd_samples();
  test_refusals();
  test_broken_dictionaries();
  test_wrong_steps();
  test_few_steps();
  test_earlier_objects();
  return test_end();
}
