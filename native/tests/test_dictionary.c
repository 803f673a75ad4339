/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Frames with a dictionary: round trips at every level, sizes around the part
 * of a segment that the dictionary comes before, streams, what is missing or
 * another, and the golden files (tools/make_golden_dictionary.py).
 */
#include "frame_test.h"
#include "glyd/base.h"
#include "glyd/dictionary.h"
#include "segment/segment_dictionary_common.h"

#define FILES_MIN 30 /* fewer: the folder is not what it should be */
#define FIRST ((size_t)GLYD_SEGMENT_DICTIONARY_FIRST)

/* Content of a kind: lines of words, numbers and what make_content makes. */
static uint8_t *make_lines(size_t size, uint64_t seed) {
  static const char *const words[] = {"connection", "opened", "by the client", "timed out after", "request", "refused"};
  uint8_t *const p = malloc(size + 64);
  if (!p) abort();
  for (size_t n = 0; n < size;)
    n += (size_t)snprintf((char *)p + n, 64, "%s %u %s\n", words[test_random(&seed) % 6],
                          (unsigned)(test_random(&seed) % 5000), words[test_random(&seed) % 6]);
  return p;
}

static glyd_dictionary *train(size_t size) {
  uint8_t *const samples = make_lines(100000, 3), *const bytes = malloc(size);
  size_t sizes[1000], len = 0;
  for (size_t i = 0; i < 1000; i++) sizes[i] = 100;
  glyd_dictionary *d = NULL;
  CHECK_EQ(glyd_dictionary_train(bytes, size, samples, sizes, 1000, NULL, &len), GLYD_OK);
  CHECK_EQ(glyd_dictionary_create(&d, bytes, len, NULL), GLYD_OK);
  free(bytes);
  free(samples);
  return d;
}

static void check_frame(const buffer *frame, const uint8_t *content, size_t len, const glyd_dictionary *d,
                        int threads) {
  const glyd_references references = {NULL, d};
  for (int cpu = GLYD_CPU_CHOICE_BEST; cpu <= GLYD_CPU_CHOICE_SCALAR; cpu++) {
    const glyd_limits limits = {.cpu = cpu};
    guard in = guard_copy(frame->p, frame->len, cpu == 0), out = guard_new(len, cpu == 0);
    size_t n = 0;
    CHECK_EQ(glyd_decompress_references(out.p, len, in.p, frame->len, &references, threads, &limits, NULL, &n, NULL),
             GLYD_OK);
    if (CHECK_EQ(n, len)) CHECK_BYTES(out.p, content, len);
    guard_free(out);
    guard_free(in);
  }
}

/* Returns the bytes of the frame. */
static size_t round_trip(const glyd_params *params, const uint8_t *content, size_t len) {
  buffer frame = compress_all(content, len, params);
  glyd_frame_info info;
  CHECK_EQ(glyd_read_frame_header(frame.p, frame.len, &info, NULL), GLYD_OK);
  CHECK_EQ(info.has_dictionary, params->dictionary != NULL);
  if (params->dictionary) CHECK_EQ(info.dictionary_id, glyd_dictionary_id(params->dictionary));
  check_frame(&frame, content, len, params->dictionary, 1);
  check_frame(&frame, content, len, params->dictionary, 3);
  const size_t size = frame.len;
  free(frame.p);
  return size;
}

/* Every level, kinds of content, sizes of segments; that the dictionary is of use. */
static void test_levels(const glyd_dictionary *d) {
  static const size_t lens[] = {1, 2, 17, 100, 900, 4000, 70000};
  for (int level = GLYD_LEVEL_TURBO; level <= GLYD_LEVEL_COLD; level++) {
    for (unsigned k = 0; k < sizeof lens / sizeof lens[0] - (level == GLYD_LEVEL_COLD); k++) {
      uint8_t *const lines = make_lines(lens[k], k + 10), *const other = make_content(lens[k], k);
      glyd_params params;
      glyd_params_init(&params, level);
      params.dictionary = d;
      TEST_AT("level %d, %zu bytes", level, lens[k]);
      const size_t with = round_trip(&params, lines, lens[k]);
      (void)round_trip(&params, other, lens[k]);
      params.dictionary = NULL;
      const size_t without = round_trip(&params, lines, lens[k]);
      if (lens[k] == 900) CHECK(with + with / 8 < without);
      params.dictionary = d;
      params.segment_size = 1024;
      params.records = level == GLYD_LEVEL_COLD ? GLYD_RECORDS_OFF : GLYD_RECORDS_ON;
      if (lens[k] <= 4000) (void)round_trip(&params, lines, lens[k]);
      free(lines);
      free(other);
    }
  }
}

/* Segments that are just as large as what the dictionary comes before, and larger. */
static void test_borders(const glyd_dictionary *d) {
  uint8_t *const lines = make_lines(FIRST + 5000, 5);
  for (int level = GLYD_LEVEL_FAST; level <= GLYD_LEVEL_MAX; level++)
    for (size_t more = 0; more < 3; more++) {
      glyd_params params;
      glyd_params_init(&params, level);
      params.dictionary = d;
      TEST_AT("level %d, border + %zu", level, more);
      (void)round_trip(&params, lines, FIRST - 1 + more);
      if (more == 2) (void)round_trip(&params, lines, FIRST + 5000);
    }
  free(lines);
}

/* What a stream writes is what one call writes, and is read in pieces within the memory it states. */
static void test_streams(const glyd_dictionary *d) {
  const size_t len = 30000;
  uint8_t *const lines = make_lines(len, 6);
  for (int level = GLYD_LEVEL_DEFAULT; level <= GLYD_LEVEL_COLD; level += 2) {
    counter c;
    glyd_params params;
    glyd_params_init(&params, level);
    params.dictionary = d;
    params.segment_size = 4096;
    params.content_size = len;
    const buffer frame = compress_all(lines, len, &params);
    glyd_cctx *cctx = NULL;
    CHECK_EQ(glyd_cctx_create(&cctx, &params), GLYD_OK);
    buffer streamed = {.len = 0};
    CHECK_EQ(stream_encode(cctx, lines, len, 999, 500, GLYD_END, &streamed), GLYD_OK);
    if (CHECK_EQ(streamed.len, frame.len)) CHECK_BYTES(streamed.p, frame.p, frame.len);
    glyd_cctx_free(cctx);
    const glyd_allocator allocator = counter_allocator(&c);
    glyd_dctx *dctx = NULL;
    CHECK_EQ(glyd_dctx_create(&dctx, 1, NULL, &allocator), GLYD_OK);
    glyd_dctx_set_dictionary(dctx, d);
    buffer back = {.len = 0};
    int at_end = 0;
    CHECK_EQ(stream_decode(dctx, frame.p, frame.len, 77, 1000, &back, &at_end), GLYD_OK);
    if (CHECK_EQ(back.len, len)) CHECK_BYTES(back.p, lines, len);
    glyd_frame_info info;
    CHECK_EQ(glyd_read_frame_header(frame.p, frame.len, &info, NULL), GLYD_OK);
    CHECK(c.peak <= info.decoder_memory);
    glyd_dctx_free(dctx);
    free(back.p);
    free(streamed.p);
    free(frame.p);
  }
  free(lines);
}

static void test_refusals(const glyd_dictionary *d, const glyd_dictionary *other) {
  uint8_t *const lines = make_lines(3000, 7), back[3000];
  glyd_params params;
  glyd_params_init(&params, GLYD_LEVEL_MAX);
  params.dictionary = d;
  buffer frame = compress_all(lines, 3000, &params);
  glyd_error error;
  size_t n;
  CHECK_EQ(glyd_decompress(back, 3000, frame.p, frame.len, 1, NULL, NULL, &n, &error), GLYD_E_DICT_MISSING);
  CHECK_EQ(error.expected, glyd_dictionary_id(d));
  glyd_references references = {NULL, other};
  CHECK_EQ(glyd_decompress_references(back, 3000, frame.p, frame.len, &references, 1, NULL, NULL, &n, &error),
           GLYD_E_DICT_WRONG);
  CHECK_EQ(error.expected, glyd_dictionary_id(d));
  CHECK_EQ(error.found, glyd_dictionary_id(other));
  glyd_dctx *dctx = NULL;
  CHECK_EQ(glyd_dctx_create(&dctx, 1, NULL, NULL), GLYD_OK);
  buffer got = {.len = 0};
  int at_end = 0;
  CHECK_EQ(stream_decode(dctx, frame.p, frame.len, 100, 100, &got, &at_end), GLYD_E_DICT_MISSING);
  glyd_dctx_free(dctx);
  /* its size is found without */
  uint64_t size = 0;
  CHECK_EQ(glyd_content_size(frame.p, frame.len, NULL, &size, NULL), GLYD_OK);
  CHECK_EQ(size, 3000);
  /* every byte changed: refused, or the same content */
  references.dictionary = d;
  for (size_t i = 0; i < frame.len; i++) {
    frame.p[i] ^= (uint8_t)(1 + i % 255);
    const glyd_status status =
        glyd_decompress_references(back, 3000, frame.p, frame.len, &references, 1, NULL, NULL, &n, NULL);
    CHECK(status != GLYD_OK || (n == 3000 && memcmp(back, lines, n) == 0));
    frame.p[i] ^= (uint8_t)(1 + i % 255);
  }
  glyd_base *base = NULL;
  CHECK_EQ(glyd_base_create(&base, lines, 3000, 0, NULL), GLYD_OK);
  CHECK_EQ(glyd_base_index(base), GLYD_OK);
  params.base = base;
  CHECK_EQ(glyd_compress(frame.p, frame.len, lines, 3000, &params, &n), GLYD_E_PARAMETER);
  glyd_base_free(base);
  free(got.p);
  free(frame.p);
  free(lines);
}

/* ---- golden files ----------------------------------------------------------- */

static uint8_t *read_file(const char *name, size_t *size) {
  char path[1000];
  const char *slash = strrchr(__FILE__, '/');
  (void)snprintf(path, sizeof path, "%.*s/golden_dictionary/%s", slash ? (int)(slash - __FILE__) : 1,
                 slash ? __FILE__ : ".", name);
  FILE *f = fopen(path, "rb");
  if (!CHECK(f != NULL)) {
    printf("no %s\n", path);
    return NULL;
  }
  buffer all = {.len = 0};
  uint8_t piece[4096];
  for (size_t got; (got = fread(piece, 1, sizeof piece, f)) > 0;) buffer_add(&all, piece, got);
  (void)fclose(f);
  *size = all.len;
  return all.p;
}

static void test_golden(void) {
  size_t size = 0, manifest_size = 0;
  uint8_t *const bytes = read_file("dictionary.bin", &size), *manifest = read_file("manifest.txt", &manifest_size);
  glyd_dictionary *d = NULL;
  if (!bytes || !manifest || !CHECK_EQ(glyd_dictionary_create(&d, bytes, size, NULL), GLYD_OK)) return;
  buffer text = {.p = manifest, .len = manifest_size};
  buffer_add(&text, "", 1);
  unsigned files = 0;
  char name[100], file[120];
  int want, used = 0;
  size_t len;
  uint64_t check;
  for (const char *at = (const char *)text.p;
       sscanf(at, "%99s %d %zu %" SCNx64 "%n", name, &want, &len, &check, &used) == 4; at += used) {
    (void)snprintf(file, sizeof file, "%s.glyd", name);
    size_t frame_size = 0;
    uint8_t *const frame = read_file(file, &frame_size);
    if (!frame) break;
    files++;
    const glyd_references references = {NULL, d};
    for (int cpu = GLYD_CPU_CHOICE_BEST; cpu <= GLYD_CPU_CHOICE_AVX2; cpu++) {
      const size_t cap = want == GLYD_OK ? len : 100000;
      const glyd_limits limits = {.cpu = cpu};
      guard in = guard_copy(frame, frame_size, 0), out = guard_new(cap, 0);
      size_t n = 0;
      TEST_AT("%s, cpu choice %d", name, cpu);
      const glyd_status status =
          glyd_decompress_references(out.p, cap, in.p, frame_size, &references, 1, &limits, NULL, &n, NULL);
      if (CHECK_EQ(status, want) && status == GLYD_OK && CHECK_EQ(n, len)) CHECK_EQ(glyd_checksum(out.p, n), check);
      guard_free(out);
      guard_free(in);
    }
    free(frame);
  }
  test_where[0] = 0;
  CHECK(files >= FILES_MIN);
  printf("%u golden files\n", files);
  glyd_dictionary_free(d);
  free(text.p);
  free(bytes);
}

int main(void) {
  glyd_dictionary *const d = train(8192), *const other = train(4096);
  test_levels(d);
  test_borders(d);
  test_streams(d);
  test_refusals(d, other);
  glyd_dictionary_free(other);
  glyd_dictionary_free(d);
  test_golden();
  return test_end();
}
