/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * What ring_tiered_sm90.cuh and staged_tile_sm90.cuh take from ptx_sm90.cuh and
 * ring_sm90.cuh, on the CPU: shared memory by address, from 0 on, and instructions on bytes.
 */
#ifndef GLYD_EMULATED_SM90_H
#define GLYD_EMULATED_SM90_H

#include "cuda_runtime.h"

#define ring_memory emulated_shared()

template <class T> T emulated_word(uint32_t at) {
  T v;
  if (at % sizeof v || at + sizeof v > emulation::block->shared.size() - 128) {
    fprintf(stderr, "shared memory: %u bytes at %u of %zu\n", (unsigned)sizeof v, at,
            emulation::block->shared.size() - 128);
    abort();
  }
  memcpy(&v, emulated_shared() + at, sizeof v);
  return v;
}
inline uint32_t smem_u32(const void *p) { return (uint32_t)((const uint8_t *)p - emulated_shared()); }
inline uint4 lds128(uint32_t at) { return emulated_word<uint4>(at); }
inline uint32_t lds32(uint32_t at) { return emulated_word<uint32_t>(at); }
inline uint32_t lds16(uint32_t at) { return emulated_word<uint16_t>(at); }
inline void sts128(uint32_t at, uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
  const uint4 v = {x, y, z, w};
  memcpy(emulated_shared() + at, &v, sizeof v);
}
inline void sts16(uint32_t at, uint16_t v) { memcpy(emulated_shared() + at, &v, sizeof v); }
inline void stmatrix4_rows(uint32_t at, uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
  const uint64_t words[3] = {at, (uint64_t)y << 32 | x, (uint64_t)w << 32 | z};
  const auto all = emulation::exchange(words, 3);
  const unsigned lane = threadIdx.x % emulation::kWarp; /* writes row lane % 8 of block lane / 8 */
  for (unsigned q = 0; q < 4; q++) {
    const uint32_t v = (uint32_t)(all[lane % 8 * 4 + q][1 + lane / 16] >> (lane / 8 % 2 * 32));
    memcpy(emulated_shared() + at + 4 * q, &v, sizeof v);
  }
}

inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector) { return emulated_prmt(a, b, selector); }
inline uint32_t pick(uint32_t a, uint32_t b, uint32_t mask) { return (a & mask) | (b & ~mask); }
inline uint32_t __dp4a(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 0xFF) * (b >> i & 0xFF);
  return c;
}
inline uint32_t __dp2a_lo(uint32_t a, uint32_t b, uint32_t c) {
  return c + (a & 0xFFFF) * (b & 0xFF) + (a >> 16) * (b >> 8 & 0xFF);
}
inline uint32_t __dp2a_hi(uint32_t a, uint32_t b, uint32_t c) { return __dp2a_lo(a, b >> 16, c); }

#endif
