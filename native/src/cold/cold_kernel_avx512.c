/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vl,avx512vbmi"))), apply_to = function)
#else
#pragma GCC target("avx2,bmi,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vl,avx512vbmi")
#endif
#define GLYD_COLD_AVX512
#include "cold/cold_kernel.h"

const glyd_cold_kernel glyd_cold_kernel_avx512 = {encode, decode, spread};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int glyd_cold_no_avx512;
#endif
