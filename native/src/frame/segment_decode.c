/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "frame/segment_decode.h"

#include "block/block_decode.h"
#include "common/checksum.h"
#include "common/mem.h"
#include "frame/frame_common.h"

size_t glyd_segment_decode_workspace(int kind) { return kind == GLYD_KIND_LZ ? glyd_lz_decode_workspace() : 0; }

glyd_status glyd_segment_decode(unsigned cpu, void *workspace, const glyd_segment_info *segment, int check,
                                uint8_t *out, const uint8_t *payload, glyd_error *error) {
  const size_t len = (size_t)segment->content_size;
  glyd_status status = GLYD_OK;
  switch (segment->kind) {
  case GLYD_KIND_RAW: memcpy(out, payload, len); break;
  case GLYD_KIND_FILL: memset(out, payload[0], len); break;
  case GLYD_KIND_LZ: status = glyd_lz_decode(cpu, workspace, out, len, payload, (size_t)segment->payload_size); break;
  default: status = GLYD_E_FEATURE; break;
  }
  if (status) return glyd_frame_fail(error, status, 0, segment->content_size, segment->payload_size);
  if (check == GLYD_CHECK_NONE) return GLYD_OK;
  const uint64_t hash = glyd_frame_check_value(check, glyd_checksum_xxh3(cpu, out, len));
  if (hash != segment->check) return glyd_frame_fail(error, GLYD_E_CHECKSUM, 0, segment->check, hash);
  return GLYD_OK;
}
