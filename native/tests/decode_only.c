/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Linked with the decoders alone: a frame made by hand is read back. It holds
 * a raw segment, a fill segment and an LZ segment of one raw block.
 */
#include "frame/frame_common.h"
#include "glyd/glyd.h"
#include "test.h"

static uint8_t *put_segment(uint8_t *p, int kind, const char *content, size_t len, const void *payload, size_t size) {
  *p++ = (uint8_t)kind;
  p = glyd_put_varint(p, len);
  p = glyd_put_varint(p, size);
  glyd_store64(p, glyd_checksum(content, len));
  memcpy(p + 8, payload, size);
  return p + 8 + size;
}

int main(void) {
  static const char want[] = "raw segment;zzzzzzzzLZ segment";
  const size_t len = sizeof want - 1;
  uint8_t frame[200];
  glyd_store32(frame, GLYD_FRAME_MAGIC);
  frame[4] = GLYD_FORMAT_VERSION;
  frame[5] = GLYD_CHECK_XXH3_64 | GLYD_FLAG_CONTENT_SIZE;
  frame[6] = GLYD_LEVEL_UNKNOWN;
  frame[7] = GLYD_SEGMENT_LOG_MIN;
  frame[8] = (uint8_t)glyd_frame_memory_code(GLYD_SEGMENT_LOG_MIN, len, 0, 0, 0, 0, 0);
  uint8_t *p = glyd_put_varint(frame + 9, len);
  glyd_store32(p, (uint32_t)glyd_checksum(frame, (size_t)(p - frame)));
  p = put_segment(p + 4, GLYD_KIND_RAW, want, 12, want, 12);
  p = put_segment(p, GLYD_KIND_FILL, want + 12, 8, "z", 1);
  p = put_segment(p, GLYD_KIND_LZ, want + 20, 10, "\0\x0A\x0ALZ segment", 13);

  char back[sizeof want];
  size_t n = 0;
  glyd_error error = {.status = GLYD_OK};
  CHECK_EQ(glyd_decompress(back, len, frame, (size_t)(p - frame), 1, NULL, NULL, &n, &error), GLYD_OK);
  CHECK_EQ(n, len);
  CHECK_BYTES(back, want, len);
  CHECK_EQ(glyd_decompress(back, len, frame, (size_t)(p - frame) - 1, 1, NULL, NULL, &n, &error), GLYD_E_TRUNCATED);
  return test_end();
}
