/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * DEFLATE streams of any bytes: read and described, they come back; any bytes as
 * a description, or as opened content, are refused or give something.
 */
#include "deflate/deflate_encode.h"
#include "deflate/deflate_find_encode.h"
#include "deflate/deflate_rebuild.h"
#include "fuzz.h"
#include "glyd/glyd.h"

#define CONTENT_MAX ((size_t)1 << 16)

static void describe(void *workspace, void *other, const uint8_t *in, size_t size) {
  const size_t cap = 4 * size + 65536;
  uint8_t *content = malloc(CONTENT_MAX), *description = malloc(cap), *back = malloc(size);
  if (!content || !description || !back) abort();
  glyd_deflate_writer *const w = glyd_deflate_encode_begin(workspace, description, cap);
  glyd_deflate_stream stream;
  uint64_t cost;
  if (glyd_deflate_encode_read(w, in, size, content, CONTENT_MAX, &stream)) {
    FUZZ_CHECK(stream.stored_size <= size && stream.content_size <= CONTENT_MAX);
    if (glyd_deflate_encode_stream(w, 0, in, content, &stream, NULL, 15, UINT64_MAX, &cost)) {
      const size_t n = glyd_deflate_encode_end(w);
      const glyd_deflate_parts parts = {
          content, stream.content_size, in + stream.stored_size, size - stream.stored_size, description, n};
      FUZZ_CHECK(n > 0 && glyd_deflate_rebuild(other, 1, &parts, back, size) == GLYD_OK);
      FUZZ_CHECK(memcmp(back, in, size) == 0);
    }
  }
  free(content);
  free(description);
  free(back);
}

static void rebuild(void *workspace, const uint8_t *in, size_t size, size_t inside, size_t len) {
  uint8_t *out = malloc(len + 1);
  if (!out) abort();
  const size_t kept = (size - inside) / 2;
  const glyd_deflate_parts parts = {in, inside, in + inside, kept, in + inside + kept, size - inside - kept};
  for (uint64_t n = 1; n < 3; n++) {
    const glyd_status status = glyd_deflate_rebuild(workspace, n, &parts, out, len);
    FUZZ_CHECK(status == GLYD_OK || status == GLYD_E_CORRUPT);
  }
  free(out);
}

/* Bytes as content to open, and behind a magic as opened content. */
static void open_and_close(const uint8_t *in, size_t size) {
  const size_t cap = (size_t)glyd_open_streams_bound(size), magic = sizeof GLYD_OPENED_CONTENT_MAGIC - 1;
  uint8_t *opened = malloc(cap), *back = malloc(CONTENT_MAX);
  if (!opened || !back) abort();
  size_t n, n_back;
  uint64_t content;
  FUZZ_CHECK(glyd_open_streams(in, size, NULL, opened, cap, &n) == GLYD_OK);
  if (n > 0) {
    FUZZ_CHECK(glyd_opened_content_size(opened, n, &content) == GLYD_OK && content == size);
    FUZZ_CHECK(glyd_close_streams(opened, n, NULL, back, CONTENT_MAX, &n_back) == GLYD_OK);
    FUZZ_CHECK(n_back == size && memcmp(back, in, size) == 0);
  }
  memcpy(opened, GLYD_OPENED_CONTENT_MAGIC, magic);
  memcpy(opened + magic, in, size);
  const glyd_status status = glyd_close_streams(opened, magic + size, NULL, back, CONTENT_MAX, &n_back);
  FUZZ_CHECK(status == GLYD_OK || status == GLYD_E_CORRUPT || status == GLYD_E_BUFFER);
  free(opened);
  free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 4 || size > CONTENT_MAX) return 0;
  const size_t inside = (size_t)(data[0] | data[1] << 8) % (size - 3), len = (size_t)(data[2] | data[3] << 8);
  data += 4;
  size -= 4;
  static void *workspace, *other; /* megabytes, once for all inputs */
  if (!workspace) workspace = aligned_alloc(64, glyd_deflate_encode_workspace());
  if (!other) other = aligned_alloc(64, glyd_deflate_rebuild_workspace());
  uint8_t *in = malloc(size + 1);
  if (!workspace || !other || !in) abort();
  if (size > 0) memcpy(in, data, size);
  for (size_t from = 0, i = 0; i < 8; i++) {
    const glyd_deflate_place place = glyd_deflate_find(in, size, from);
    if (place.kind == GLYD_FOUND_NONE) break;
    FUZZ_CHECK(place.at > from && place.at < size);
    from = place.at;
  }
  if (size > 0) {
    describe(workspace, other, in, size);
    rebuild(other, in, size, inside, len);
    open_and_close(in, size);
  }
  free(in);
  return 0;
}
