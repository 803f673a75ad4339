/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What the payload of a record segment holds.
 */
#ifndef GLYD_SEGMENT_RECORDS_DECODE_H
#define GLYD_SEGMENT_RECORDS_DECODE_H

#include "glyd/records.h"

/* glyd_read_records for a CPU; workspace as for glyd_segment_record_decode. */
glyd_status glyd_segment_records_describe(unsigned cpu, void *workspace, const uint8_t *in, size_t in_len,
                                          uint64_t content, glyd_records_info *info, glyd_column_info *columns,
                                          size_t cap);

#endif
