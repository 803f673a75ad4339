/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The decoder of cold segments on any bytes, without the frame's checks in the
 * way, and the encoder on the same bytes as content.
 */
#include "cold/cold_decode.h"
#include "cold/cold_encode.h"
#include "common/cpu.h"
#include "fuzz.h"

#define CONTENT_MAX ((size_t)1 << 9) /* the model is slow: small contents, many inputs */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 3) return 0;
  const size_t len = (((size_t)data[0] << 8 | data[1]) & (CONTENT_MAX - 1)) + 1;
  data += 2;
  size -= 2;
  if (size > CONTENT_MAX) size = CONTENT_MAX;
  static void *workspace; /* kept: what one input leaves in it must not matter to the next */
  if (!workspace) workspace = aligned_alloc(64, (size_t)glyd_cold_decode_workspace(CONTENT_MAX));
  uint8_t *in = malloc(size), *out[2] = {malloc(len), malloc(len)}, *packed = malloc(size + 64), *back = malloc(size);
  if (!workspace || !in || !out[0] || !out[1] || !packed || !back) abort();
  memcpy(in, data, size);
  glyd_status status[2];
  for (int i = 0; i < 2; i++)
    status[i] = glyd_cold_decode(i == 0 ? glyd_cpu_features() : GLYD_CPU_SCALAR, workspace, out[i], len, in, size);
  FUZZ_CHECK(status[0] == status[1] && (status[0] == GLYD_OK || status[0] == GLYD_E_CORRUPT));
  FUZZ_CHECK(status[0] != GLYD_OK || memcmp(out[0], out[1], len) == 0);
  size_t n;
  const glyd_status written = glyd_cold_encode(glyd_cpu_features(), workspace, in, size, packed, size + 64, &n);
  FUZZ_CHECK(written == GLYD_OK || written == GLYD_E_BUFFER);
  if (written == GLYD_OK) {
    FUZZ_CHECK(glyd_cold_decode(GLYD_CPU_SCALAR, workspace, back, size, packed, n) == GLYD_OK);
    FUZZ_CHECK(memcmp(back, in, size) == 0);
  }
  free(in);
  free(out[0]);
  free(out[1]);
  free(packed);
  free(back);
  return 0;
}
