/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Changing back x86 code by AVX2, BMI and POPCNT; the same bytes as without.
 */
#ifndef GLYD_FILTER_DECODE_AVX2_H
#define GLYD_FILTER_DECODE_AVX2_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
void glyd_filter_undo_x86_avx2(uint8_t *data, size_t n);
#endif

#endif
