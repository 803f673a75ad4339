/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Exported functions about record segments.
 */
#include "common/cpu.h"
#include "glyd/records.h"
#include "segment/segment_record_decode.h"
#include "segment/segment_records_decode.h"

uint64_t glyd_read_records_workspace(uint64_t content_size) {
  return glyd_segment_record_decode_workspace(content_size);
}

glyd_status glyd_read_records(const void *payload, size_t size, uint64_t content_size, void *workspace,
                              glyd_records_info *info, glyd_column_info *columns, size_t cap) {
  return glyd_segment_records_describe(glyd_cpu_features(), workspace, payload, size, content_size, info, columns, cap);
}
