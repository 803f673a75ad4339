/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * CPU features. A feature counts only when the operating system saves its
 * registers (XGETBV), or using it would fault in spite of CPUID.
 */
#include "common/cpu.h"

#include <stdatomic.h>
#include <stdint.h>

#include "glyd/glyd.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Bits of CPUID, as the manuals of AMD and Intel give them. */
#define LEAF1_ECX_POPCNT (1u << 23)
#define LEAF1_ECX_OSXSAVE (1u << 27)
#define LEAF1_ECX_AVX (1u << 28)
#define LEAF7_EBX_BMI1 (1u << 3)
#define LEAF7_EBX_AVX2 (1u << 5)
#define LEAF7_EBX_BMI2 (1u << 8)
#define LEAF7_EBX_AVX512F (1u << 16)
#define LEAF7_EBX_AVX512BW (1u << 30)
#define LEAF7_EBX_AVX512VL (1u << 31)
#define LEAF7_ECX_AVX512VBMI (1u << 1)
#define LEAF7_ECX_AVX512VBMI2 (1u << 6)
#define LEAFX1_ECX_LZCNT (1u << 5)
#define XCR0_YMM 0x06u /* XMM and YMM state */
#define XCR0_ZMM 0xE6u /* and mask, upper ZMM, ZMM 16-31 */

static uint32_t read_xcr0(void) {
  uint32_t lo;
  uint32_t hi;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return lo;
}

static unsigned detect(void) {
  unsigned eax;
  unsigned ebx;
  unsigned ecx;
  unsigned edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return GLYD_CPU_SCALAR;
  const unsigned want1 = LEAF1_ECX_POPCNT | LEAF1_ECX_OSXSAVE | LEAF1_ECX_AVX;
  if ((ecx & want1) != want1) return GLYD_CPU_SCALAR;
  const uint32_t xcr0 = read_xcr0();
  if ((xcr0 & XCR0_YMM) != XCR0_YMM) return GLYD_CPU_SCALAR;
  if (!__get_cpuid(0x80000001u, &eax, &ebx, &ecx, &edx) || !(ecx & LEAFX1_ECX_LZCNT)) return GLYD_CPU_SCALAR;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return GLYD_CPU_SCALAR;
  const unsigned want7 = LEAF7_EBX_BMI1 | LEAF7_EBX_AVX2 | LEAF7_EBX_BMI2;
  if ((ebx & want7) != want7) return GLYD_CPU_SCALAR;
  unsigned features = GLYD_CPU_AVX2;
  const unsigned want512b = LEAF7_EBX_AVX512F | LEAF7_EBX_AVX512BW | LEAF7_EBX_AVX512VL;
  const unsigned want512c = LEAF7_ECX_AVX512VBMI | LEAF7_ECX_AVX512VBMI2;
  if ((xcr0 & XCR0_ZMM) == XCR0_ZMM && (ebx & want512b) == want512b && (ecx & want512c) == want512c)
    features |= GLYD_CPU_AVX512;
  return features;
}
#elif defined(__aarch64__)
static unsigned detect(void) { return GLYD_CPU_NEON; }
#else
static unsigned detect(void) { return GLYD_CPU_SCALAR; }
#endif

unsigned glyd_cpu_features(void) {
  /* Idempotent: threads that race store the same value. */
  static _Atomic unsigned cache;
  const unsigned known = 1u << 31;
  unsigned v = atomic_load_explicit(&cache, memory_order_relaxed);
  if (!(v & known)) {
    v = detect() | known;
    atomic_store_explicit(&cache, v, memory_order_relaxed);
  }
  return v & ~known;
}

unsigned glyd_cpu_select(int choice) {
  if (choice == GLYD_CPU_CHOICE_SCALAR) return GLYD_CPU_SCALAR;
  const unsigned features = glyd_cpu_features();
  return choice == GLYD_CPU_CHOICE_AVX2 ? features & ~GLYD_CPU_AVX512 : features;
}
