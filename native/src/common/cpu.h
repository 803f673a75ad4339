/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Run-time choice of code variants. Every variant gives the same bytes.
 */
#ifndef GLYD_COMMON_CPU_H
#define GLYD_COMMON_CPU_H

#define GLYD_CPU_SCALAR 0u
#define GLYD_CPU_AVX2 1u   /* AVX2, BMI1, BMI2, LZCNT, POPCNT together */
#define GLYD_CPU_AVX512 2u /* AVX-512 F, BW, VL, VBMI, VBMI2, on top of AVX2 */
#define GLYD_CPU_NEON 4u   /* always on aarch64 */

/* Features of this CPU; cached after the first call, thread safe. */
unsigned glyd_cpu_features(void);

/* Features to use for a GLYD_CPU_CHOICE_* of glyd.h. */
unsigned glyd_cpu_select(int choice);

#endif
