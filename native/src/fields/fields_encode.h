/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing the body of a fields piece.
 */
#ifndef GLYD_FIELDS_ENCODE_H
#define GLYD_FIELDS_ENCODE_H

#include "fields/fields_common.h"
#include "glyd/status.h"

/* Bytes of workspace (64-byte aligned) that one call needs; its contents need
 * no initialisation. */
size_t glyd_fields_encode_workspace(void);

/* Encode in[0..len), a multiple of the period and not 0. GLYD_E_BUFFER when the
 * body would not fit cap. The bytes do not depend on cpu, nor on cap. */
glyd_status glyd_fields_encode(unsigned cpu, void *workspace, const glyd_fields_layout *layout, const uint8_t *in,
                               size_t len, uint8_t *out, size_t cap, size_t *out_len);

#endif
