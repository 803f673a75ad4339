/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The payload decoders on any bytes, without the frame's checks in the way:
 * the input is an LZ payload (after a frame header, if it starts with one).
 */
#include "block/block_decode.h"
#include "common/cpu.h"
#include "fuzz.h"

#define CONTENT_MAX ((size_t)1 << 18)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  glyd_frame_info frame;
  glyd_segment_info segment;
  size_t len = size > 1 ? ((size_t)data[size - 1] << 8 | data[size - 2]) + 1 : 1;
  if (glyd_read_frame_header(data, size, &frame, NULL) == GLYD_OK && !frame.is_skippable) {
    data += frame.header_size;
    size -= frame.header_size;
    if (glyd_read_segment_header(data, size, &frame, &segment, NULL) == GLYD_OK && segment.kind == GLYD_KIND_LZ) {
      data += segment.header_size;
      size -= segment.header_size;
      if (size > segment.payload_size) size = (size_t)segment.payload_size;
      if (segment.content_size <= CONTENT_MAX) len = (size_t)segment.content_size;
    }
  }
  static _Alignas(64) uint8_t workspace[1 << 20];
  FUZZ_CHECK(glyd_lz_decode_workspace() <= sizeof workspace);
  /* Exact memory of its own on both sides: a sanitizer sees every byte too far. */
  uint8_t *in = malloc(size);
  if (size > 0 && !in) abort();
  if (size > 0) memcpy(in, data, size);
  uint8_t *out[2];
  glyd_status status[2];
  for (int i = 0; i < 2; i++) {
    out[i] = malloc(len);
    if (!out[i]) abort();
    status[i] = glyd_lz_decode(i == 0 ? glyd_cpu_features() : GLYD_CPU_SCALAR, workspace, out[i], len, in, size, NULL);
  }
  FUZZ_CHECK((status[0] == GLYD_OK) == (status[1] == GLYD_OK));
  FUZZ_CHECK(status[0] != GLYD_OK || memcmp(out[0], out[1], len) == 0);
  free(out[0]);
  free(out[1]);
  free(in);
  return 0;
}
