/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Places of tensors in a base, read from headers that are right, odd, cut and
 * wrong, over guard pages.
 */
#include "common/alloc.h"
#include "fields/fields_places_encode.h"
#include "frame_test.h"

/* A file of a header and n bytes of data, its header guarded at the end if n is 0. */
static guard make_file(const char *json, size_t n) {
  const size_t size = strlen(json);
  guard file = guard_new(8 + size + n, 0);
  const uint64_t length = size;
  memcpy(file.p, &length, 8);
  memcpy(file.p + 8, json, size);
  memset(file.p + 8 + size, 7, n);
  return file;
}

static void expect_places(const char *json, const char *older, size_t n, size_t want, int64_t first_shift) {
  guard in = make_file(json, 0), base = make_file(older, n);
  glyd_fields_places *places;
  const size_t len = 8 + strlen(json), base_len = 8 + strlen(older) + n;
  counter c = {0};
  const glyd_allocator counted = counter_allocator(&c);
  CHECK_EQ(glyd_fields_places_make(&places, in.p, len, base.p, base_len, &counted), GLYD_OK);
  CHECK(c.peak <= glyd_fields_places_memory(base.p, base_len));
  glyd_alloc_put(&counted, places);
  CHECK_EQ(c.now, 0);
  CHECK_EQ(glyd_fields_places_make(&places, in.p, len, base.p, base_len, NULL), GLYD_OK);
  int64_t shift = -1;
  CHECK_EQ(places ? places->n : 0, want);
  if (places && want > 0 && CHECK_EQ(glyd_fields_places_shift(places, places->of[0].begin, &shift), 1))
    CHECK_EQ(shift, first_shift + (int64_t)strlen(older) - (int64_t)strlen(json));
  CHECK_EQ(glyd_fields_places_shift(places, 0, &shift), 0);
  CHECK_EQ(glyd_fields_places_shift(places, UINT64_MAX, &shift), 0);
  for (size_t i = 0; places && i < places->n; i++)
    CHECK(places->of[i].begin < places->of[i].end && (i == 0 || places->of[i - 1].begin <= places->of[i].begin));
  glyd_alloc_put(NULL, places);
  for (size_t cut = 0; cut < len; cut++) { /* a header that is not all there says nothing */
    CHECK_EQ(glyd_fields_places_make(&places, in.p, cut, base.p, base_len, NULL), GLYD_OK);
    CHECK(places == NULL);
  }
  for (size_t cut = 0; cut < base_len; cut++) {
    CHECK_EQ(glyd_fields_places_make(&places, in.p, len, base.p, cut, NULL), GLYD_OK);
    glyd_alloc_put(NULL, places);
  }
  guard_free(in);
  guard_free(base);
}

static void test_places(void) {
  const char *const one = "{\"a.b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
  const char *const two = "{ \"__metadata__\":{\"x\":\"data_offsets\"}, \"m.a.b\" : {\"data_offsets\" : [ 8 , 16 ] } , "
                          "\"c\":{\"shape\":[[\"}\"]],\"data_offsets\":[0,8]}}  ";
  expect_places(one, one, 8, 1, 0);
  expect_places(one, two, 16, 1, 8);
  expect_places(two, one, 8, 1, -8);
  expect_places(two, two, 16, 2, 0);
  expect_places("{}", one, 8, 0, 0);
  expect_places(one, "{}", 0, 0, 0);
  expect_places(one, "{\"a.b\":{\"data_offsets\":[0,99999999999999999999]}}", 0, 0, 0);
  expect_places(one, "{\"a.b\":{\"data_offsets\":[8,0]}}", 8, 0, 0);
  expect_places(one, "{\"a.b\":{\"data_offsets\":[0,8}}", 8, 0, 0);
  expect_places(one, "{\"a.b\":{\"data_offsets\":", 0, 0, 0);
  expect_places(one, "{\"a.b\":{\"data_offsets", 0, 0, 0);
  expect_places(one, "{\"a.b\\", 0, 0, 0);
  expect_places(one, "{\"a.b\":[[[[[[[[[[[[[[[", 0, 0, 0);
  expect_places(one, "{\"a.b\":{\"x\":{\"data_offsets\":[0,8]}}}", 8, 0, 0);
  uint64_t state = 3;
  static const char parts[][20] = {
      "{", "}",  "\"",  "\"a\":", "\"b.a\"", ":", ",", "[", "]", "data_offsets", "0", "9", "\"data_offsets\":[0,8]",
      " ", "\\", "null"};
  for (int round = 0; round < 3000; round++) {
    char json[512] = "{\"";
    for (int i = 0; i < 24; i++) strcat(json, parts[test_random(&state) % 16]);
    guard file = make_file(json, 0);
    glyd_fields_places *places;
    CHECK_EQ(glyd_fields_places_make(&places, file.p, 8 + strlen(json), file.p, 8 + strlen(json), NULL), GLYD_OK);
    glyd_alloc_put(NULL, places);
    guard_free(file);
  }
}

/* Content with many more names than the base: the first of them are looked at, in memory that the base says. */
static void test_many_names(void) {
  static char many[200000];
  size_t at = 1;
  many[0] = '{';
  for (int i = 0; i < 3000; i++)
    at += (size_t)snprintf(many + at, sizeof many - at, "\"n%d.w\":{\"data_offsets\":[%d,%d]},", i, 8 * i, 8 * i + 8);
  strcpy(many + at, "\"end\":0}");
  const char *const few = "{\"m.n1.w\":{\"data_offsets\":[0,8]},\"n2.w\":{\"data_offsets\":[8,16]}}";
  guard in = make_file(many, 0), base = make_file(few, 16);
  counter c;
  const glyd_allocator counted = counter_allocator(&c);
  const size_t len = 8 + strlen(many), base_len = 8 + strlen(few) + 16;
  glyd_fields_places *places;
  CHECK_EQ(glyd_fields_places_make(&places, in.p, len, base.p, base_len, &counted), GLYD_OK);
  int64_t shift = 0;
  CHECK_EQ(glyd_fields_places_shift(places, len + 8, &shift), 1); /* n1.w, less what is before its first dot there */
  CHECK(c.peak <= glyd_fields_places_memory(base.p, base_len) && c.peak < 1000);
  glyd_alloc_put(&counted, places);
  CHECK_EQ(c.now, 0);
  CHECK_EQ(glyd_fields_places_memory(in.p, len - 1), 0); /* a header that is not all there */
  guard_free(in);
  guard_free(base);
}

int main(void) {
  test_places();
  test_many_names();
  return test_end();
}
