/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_filter_decode.h"

#include "block/block_decode.h"
#include "filter/filter_decode.h"

glyd_status glyd_segment_filter_decode(unsigned cpu, void *workspace, uint8_t *out, size_t out_len, const uint8_t *in,
                                       size_t in_len) {
  glyd_filter filter;
  const size_t head = glyd_filter_read(in, in_len, &filter);
  if (head == 0) return GLYD_E_CORRUPT;
  const glyd_status status = glyd_lz_decode(cpu, workspace, out, out_len, in + head, in_len - head, NULL);
  if (status == GLYD_OK) glyd_filter_undo(cpu, &filter, out, out_len);
  return status;
}
