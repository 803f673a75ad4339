/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Cold payloads: round trips of every kind of content, every CPU form with the
 * bytes of the plain one, which are the same on every machine, refusals, damage.
 */
#include "codec_test.h"
#include "cold/cold_decode.h"
#include "cold/cold_encode.h"
#include "cold/cold_memory.h"
#include "common/cpu.h"
#include "glyd/glyd.h"

#define MOST ((size_t)90000)

static uint8_t *in, *out, *other;
static void *workspace;
static unsigned forms[3], n_forms;

static size_t encode(unsigned cpu, size_t n, uint8_t *to, size_t cap) {
  size_t len = 0;
  const glyd_status status = glyd_cold_encode(cpu, workspace, in, n, to, cap, &len);
  CHECK(status == GLYD_OK || status == GLYD_E_BUFFER);
  return status == GLYD_OK ? len : 0;
}

/* Every form writes the same and reads it back, touching nothing else. */
static void check_content(size_t n) {
  const size_t len = encode(forms[0], n, out, 2 * MOST);
  CHECK(len > 0);
  for (unsigned f = 1; f < n_forms; f++) {
    CHECK(encode(forms[f], n, other, 2 * MOST) == len);
    CHECK(memcmp(out, other, len) == 0);
  }
  CHECK(encode(forms[0], n, other, len) == len && encode(forms[0], n, other, len - 1) == 0);
  for (unsigned f = 0; f < n_forms; f++)
    for (int at_start = 0; at_start < 2; at_start++) {
      const guarded payload = guarded_new(len, at_start), back = guarded_new(n, at_start);
      memcpy(payload.p, out, len);
      CHECK(glyd_cold_decode(forms[f], workspace, back.p, n, payload.p, len) == GLYD_OK);
      CHECK(memcmp(back.p, in, n) == 0);
      guarded_free(payload);
      guarded_free(back);
    }
}

/* Bytes that were pinned once: what the portable form writes on ARM64 is what AVX-512 writes. They change with the
 * model, that is with the format, only. */
static void check_same_everywhere(void) {
  static const unsigned kinds[] = {2, 3, 5, 7, 8, 10};
  static const uint64_t pinned[] = {0xdb716bfaf3f6189eu, 0x1c917d8faacb6be5u, 0xddc88e7f3de7a4beu, 0x900a8be142d50fc5u,
                                    0x8fc580a3603ef302u, 0x89a871ad76fff492u, 0xad4841ba595b7a8eu};
  for (unsigned k = 0; k <= sizeof kinds / sizeof kinds[0]; k++) {
    const size_t n = 9000;
    test_seed = k + 1;
    if (k < sizeof kinds / sizeof kinds[0])
      test_content(kinds[k], in, n);
    else /* rows */
      for (size_t i = 0; i < n; i++)
        in[i] = (uint8_t)(i % 40 == 39 ? '\n' : i % 5 == 4 ? ',' : '0' + (i / 40 * (i % 5 + 1) + i % 40) % 10);
    const size_t len = encode(forms[0], n, out, 2 * MOST);
    if (glyd_checksum(out, len) != pinned[k]) printf("%u: 0x%llxu\n", k, (unsigned long long)glyd_checksum(out, len));
    CHECK(glyd_checksum(out, len) == pinned[k]);
  }
}

static void check_damage(void) {
  const size_t n = 3000;
  test_content(6, in, n);
  const size_t len = encode(forms[0], n, out, MOST);
  const guarded back = guarded_new(n, 0);
  for (size_t cut = 0; cut < len; cut += cut < 8 ? 1 : 37)
    CHECK(glyd_cold_decode(forms[0], workspace, back.p, n, out, cut) == GLYD_E_CORRUPT);
  out[len] = 0;
  CHECK(glyd_cold_decode(forms[0], workspace, back.p, n, out, len + 1) == GLYD_E_CORRUPT);
  for (unsigned profile = 3; profile < 256; profile += 23) {
    out[0] = (uint8_t)profile;
    CHECK(glyd_cold_decode(forms[0], workspace, back.p, n, out, len) == GLYD_E_CORRUPT);
  }
  /* any bytes are some content or refused, the same by every form */
  for (int i = 0; i < 100; i++) {
    const size_t size = 1 + test_below(2 * len);
    const guarded payload = guarded_new(size, 0);
    for (size_t k = 0; k < size; k++) payload.p[k] = (uint8_t)test_random();
    payload.p[0] = (uint8_t)test_below(4);
    if (i % 2) memcpy(payload.p, out, size < len / 2 ? size : len / 2);
    glyd_status status[3];
    for (unsigned f = 0; f < n_forms; f++) {
      status[f] = glyd_cold_decode(forms[f], workspace, back.p, n, payload.p, size);
      CHECK(status[f] == status[0] && (status[f] == GLYD_OK || status[f] == GLYD_E_CORRUPT));
    }
    guarded_free(payload);
  }
  guarded_free(back);
}

/* Through frames: levels, limits, the memory that a header states. */
static void check_frames(void) {
  glyd_params params;
  glyd_params_init(&params, GLYD_LEVEL_COLD);
  const size_t n = 80000;
  test_content(5, in, n);
  size_t len, got;
  params.segment_size = 1 << 15;
  CHECK(glyd_compress(out, 2 * MOST, in, n, &params, &len) == GLYD_OK);
  params.threads = 3;
  CHECK(glyd_compress(other, 2 * MOST, in, n, &params, &got) == GLYD_OK);
  CHECK(got == len && memcmp(out, other, len) == 0);
  glyd_frame_info info;
  CHECK(glyd_read_frame_header(out, len, &info, NULL) == GLYD_OK);
  CHECK(info.level == GLYD_LEVEL_COLD && info.has_cold && !info.has_records && !info.has_base);
  CHECK(info.decoder_memory >= glyd_cold_memory(1 << 15) + (2 << 15));
  CHECK(info.decoder_memory < (glyd_cold_memory(1 << 15) + (2 << 15)) * 5 / 4 + (1 << 20));
  CHECK(glyd_dctx_memory(&info, 1) <= info.decoder_memory);
  memset(other, 0, n);
  CHECK(glyd_decompress(other, n, out, len, 2, NULL, NULL, &got, NULL) == GLYD_OK);
  CHECK(got == n && memcmp(other, in, n) == 0);
  glyd_limits limits = {.max_memory = 2 << 20};
  glyd_error error;
  CHECK(glyd_decompress(other, n, out, len, 1, &limits, NULL, &got, &error) == GLYD_E_LIMIT_MEMORY);
  /* settings that it does not go with */
  for (int i = 0; i < 3; i++) {
    glyd_params_init(&params, GLYD_LEVEL_COLD);
    if (i == 0) params.long_distance = 1;
    if (i == 1) params.records = GLYD_RECORDS_ON;
    if (i == 2) params.segment_size = (uint64_t)GLYD_COLD_CONTENT_MAX + 1;
    CHECK(glyd_compress(other, 2 * MOST, in, n, &params, &got) == GLYD_E_PARAMETER);
  }
  /* noise stays as it is, a cold segment needs its record */
  glyd_params_init(&params, GLYD_LEVEL_COLD);
  test_content(0, in, 5000);
  CHECK(glyd_compress(out, 2 * MOST, in, 5000, &params, &len) == GLYD_OK && len < 5040);
  glyd_segment_info segment;
  CHECK(glyd_read_frame_header(out, len, &info, NULL) == GLYD_OK);
  CHECK(glyd_read_segment_header(out + info.header_size, len - info.header_size, &info, &segment, NULL) == GLYD_OK);
  CHECK(segment.kind == GLYD_KIND_RAW);
  out[info.header_size] = GLYD_KIND_COLD;
  CHECK(glyd_decompress(other, 5000, out, len, 1, NULL, NULL, &got, NULL) == GLYD_E_CORRUPT);
  info.has_cold = 0;
  CHECK(glyd_read_segment_header(out + info.header_size, len - info.header_size, &info, &segment, NULL) ==
        GLYD_E_CORRUPT);
}

int main(void) {
  forms[n_forms++] = GLYD_CPU_SCALAR;
  if (glyd_cpu_features() & GLYD_CPU_AVX2) forms[n_forms++] = GLYD_CPU_AVX2;
  if (glyd_cpu_features() != forms[n_forms - 1]) forms[n_forms++] = glyd_cpu_features();
  in = malloc(MOST);
  out = malloc(2 * MOST);
  other = malloc(2 * MOST);
  workspace = aligned_alloc(64, (size_t)glyd_cold_encode_workspace(MOST));
  CHECK(in && out && other && workspace);
  static const size_t sizes[] = {1, 2, 3, 7, 8, 100, 4097, 9000};
  for (unsigned kind = 0; kind < TEST_KINDS; kind++)
    for (unsigned s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
      if (sizes[s] < 100 && kind % 4) continue;
      test_content(kind, in, sizes[s]);
      check_content(sizes[s]);
    }
  /* far repeats, so that the gate is used, and rows wider than the fields that have places */
  test_content(5, in, MOST / 2);
  memcpy(in + MOST / 2, in, MOST / 2);
  check_content(MOST);
  for (size_t i = 0; i < 20000; i++) in[i] = (uint8_t)(i % 1800 == 1799 ? '\n' : i % 3 == 2 ? ',' : '0' + i % 7);
  check_content(20000);
  check_same_everywhere();
  check_damage();
  check_frames();
  free(in);
  free(out);
  free(other);
  free(workspace);
  return 0;
}
