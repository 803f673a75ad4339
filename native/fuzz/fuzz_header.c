/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Headers, tails and trailers on any bytes. Checks would stop nearly every
 * mutation, so the target also repairs them and goes on.
 */
#include "common/mem.h"
#include "fuzz.h"

static void read_trailer(const uint8_t *data, size_t size, const glyd_frame_info *frame) {
  glyd_error error;
  uint64_t n = 0;
  glyd_status status = glyd_read_trailer(data, size, frame, NULL, &n, &error);
  FUZZ_CHECK(status == GLYD_OK ? n == 0 : error.status == status);
  if (status != GLYD_E_BUFFER) return;
  FUZZ_CHECK(n <= size / 2);
  glyd_index_entry *entries = malloc((size_t)n * sizeof *entries);
  if (!entries) abort();
  const uint64_t room = n;
  status = glyd_read_trailer(data, size, frame, entries, &n, &error);
  FUZZ_CHECK(n == room && status != GLYD_E_BUFFER);
  uint64_t sum = 0;
  for (uint64_t i = 0; status == GLYD_OK && i < n; i++) {
    FUZZ_CHECK(entries[i].content_size >= 1 && entries[i].content_size <= frame->segment_size);
    sum += entries[i].content_size;
  }
  glyd_tail tail;
  if (status == GLYD_OK) {
    FUZZ_CHECK(glyd_read_tail(data + size - GLYD_TAIL_SIZE, GLYD_TAIL_SIZE, &tail) == GLYD_OK);
    FUZZ_CHECK(tail.content_size == sum && tail.trailer_size == size);
  }
  free(entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  glyd_frame_info frame = {
      .segment_size = 1 << 22, .content_size = GLYD_SIZE_UNKNOWN, .header_size = 13, .has_trailer = 1};
  glyd_frame_info info;
  glyd_error error = {.status = GLYD_OK};
  glyd_status status = glyd_read_frame_header(data, size, &info, &error);
  FUZZ_CHECK(status == error.status || status == GLYD_OK);
  if (status == GLYD_E_TRUNCATED) FUZZ_CHECK(error.expected > size);
  uint8_t *copy = malloc(size + 1);
  if (!copy) abort();
  if (size > 0) memcpy(copy, data, size);
  if (status == GLYD_E_HEADER && size >= 20) {
    /* Repair the check of a header that ends at each place it could. */
    for (size_t end = 9; end + 4 <= size && end < 64 && status == GLYD_E_HEADER; end++) {
      glyd_store32(copy + end, (uint32_t)glyd_checksum(copy, end));
      status = glyd_read_frame_header(copy, size, &info, &error);
      if (status != GLYD_OK) memcpy(copy + end, data + end, 4);
    }
  }
  if (status == GLYD_OK && !info.is_skippable) {
    FUZZ_CHECK(info.header_size <= size && info.segment_size >= 1024 && info.decoder_memory > 1 << 20);
    frame = info;
    (void)glyd_dctx_memory(&info, 1);
  }
  glyd_segment_info segment;
  for (size_t at = status == GLYD_OK ? info.header_size : 0; at < size; at++) {
    const glyd_status s = glyd_read_segment_header(data + at, size - at, &frame, &segment, &error);
    if (s == GLYD_E_TRUNCATED) FUZZ_CHECK(error.expected > size - at && error.expected <= GLYD_SEGMENT_HEADER_MAX);
    if (s == GLYD_OK && segment.kind != GLYD_KIND_END)
      FUZZ_CHECK(segment.content_size >= 1 && segment.content_size <= frame.segment_size &&
                 segment.payload_size <= segment.content_size + 4096 && segment.header_size <= size - at);
  }
  glyd_tail tail;
  if (size >= GLYD_TAIL_SIZE) {
    (void)glyd_read_tail(data + size - GLYD_TAIL_SIZE, GLYD_TAIL_SIZE, &tail);
    glyd_store32(copy + size - 8, (uint32_t)size);
    glyd_store32(copy + size - 4, (uint32_t)glyd_checksum(copy, size - 4));
  }
  read_trailer(data, size, &frame);
  read_trailer(copy, size, &frame);
  free(copy);
  return 0;
}
