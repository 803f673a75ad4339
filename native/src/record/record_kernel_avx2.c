/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,bmi,bmi2,lzcnt,popcnt")
#endif
#define GLYD_RECORD_AVX2
#include "record/record_kernel.h"

const glyd_record_kernels glyd_record_kernels_avx2 = {batch, rows, format};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int glyd_record_no_avx2;
#endif
