/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Do packs mean on the tensor cores what the spec says? Every tile of a pack
 * is decoded into A fragments as a product would, multiplied by one-hot
 * activations with mma.sync and with wgmma, scaled by row and rounded to bf16;
 * exceptions are added by place. The result must be the matrix, bit for bit
 * (a sum that starts at +0 makes +0 of -0).
 * Shows the order of a tile, the factors, zeros and exceptions; not a fast
 * kernel.
 *
 *   nvcc -O3 -std=c++17 -I../../include -gencode=arch=compute_90a,code=sm_90a weights_pack_check.cu -o weights_pack_check
 *   ./weights_pack_check PACK BF16 [PACK BF16 …]    (weights_sizes.py --write DIR makes them)
 */
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "glyd/format_weights.h"

#define CK(x)                                                                   \
  do {                                                                          \
    cudaError_t e_ = (x);                                                       \
    if (e_ != cudaSuccess) {                                                    \
      printf("%s:%d %s: %s\n", __FILE__, __LINE__, #x, cudaGetErrorString(e_)); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

struct Pack {
  const uint8_t *bytes;
  uint64_t rows, cols, blocks, tiles, blocks_at, index_at, tiles_at, escapes_at, places_at, values_at, exceptions;
  uint32_t tile_bytes, tile_cols;
  int layout;
};

__device__ uint32_t get32(const uint8_t *p) { return *(const uint32_t *)p; }
__device__ uint32_t escapes_in(uint32_t w) { return (uint32_t)__popc(w & (w >> 1) & 0x55555555u); }
__device__ uint32_t bits_at(const uint8_t *p, uint32_t bit, uint32_t n) {
  return (uint32_t)(p[bit / 8] >> (bit % 8)) & ((1u << n) - 1);
}
__device__ uint32_t before_in_warp(uint32_t v) {
  uint32_t sum = v;
  for (int d = 1; d < 32; d <<= 1) {
    const uint32_t u = __shfl_up_sync(~0u, sum, d);
    if ((threadIdx.x & 31) >= (unsigned)d) sum += u;
  }
  return sum - v;
}
__device__ uint32_t rotated(int e) { return (uint32_t)(e >> 1 | (e & 1) << 7); }

/* A registers of all k16 steps of a tile: 4 words a step, exponents at the product's bias. */
__device__ void decode(const Pack &p, uint64_t block, uint64_t tile, uint32_t *a) {
  const unsigned t = threadIdx.x;
  const uint8_t *at = p.bytes + p.tiles_at + (block * p.tiles + tile) * p.tile_bytes;
  if (p.layout == GLYD_WEIGHTS_MMA12) {
    for (unsigned s = 0; s < 4; s++) {
      const uint32_t word = get32(at + 4096 + t * 16 + s * 4);
      const uint8_t *low = at + s / 2 * 2048 + t * 16 + s % 2 * 8;
      const uint32_t high[2] = {(word & 0x87878787u) | 0x40404040u,
                                ((word << 4 | word >> 28) & 0x87878787u) | 0x40404040u};
      for (unsigned h = 0; h < 2; h++) {
        a[4 * s + 2 * h] = __byte_perm(get32(low + 4 * h), high[h], 0x5140);
        a[4 * s + 2 * h + 1] = __byte_perm(get32(low + 4 * h), high[h], 0x7362);
      }
    }
    return;
  }
  const int bias = 127, tier2[3] = GLYD_WEIGHTS_TIER2, tier3[8] = GLYD_WEIGHTS_TIER3;
  uint32_t t1 = 0, t2 = 0, t3lo = 0, t3hi = 0;
  for (int i = 0; i < 3; i++) t1 |= rotated(bias + i) << (8 * i), t2 |= rotated(bias + tier2[i]) << (8 * i);
  for (int i = 0; i < 4; i++)
    t3lo |= rotated(bias + tier3[i]) << (8 * i), t3hi |= rotated(bias + tier3[4 + i]) << (8 * i);
  const uint8_t *header = p.bytes + p.blocks_at + block * GLYD_WEIGHTS_BLOCK_HEADER;
  const uint64_t unit = *(const uint64_t *)(header + GLYD_WEIGHTS_BLOCK_AT_ESCAPES) +
                        get32(p.bytes + p.index_at + 4 * (block * (p.tiles + 1) + tile));
  const uint8_t *esc = p.bytes + p.escapes_at + unit * GLYD_WEIGHTS_ESCAPE_UNIT,
                *digits = esc + GLYD_WEIGHTS_ESCAPE_HEADER;
  const uint16_t *first = (const uint16_t *)esc;
  uint32_t n2 = 0, n3 = 0;
  for (unsigned v = 0; v < 4; v++) n2 += escapes_in(get32(at + 8192 + t * 16 + v * 4));
  uint32_t at2 = first[t / 32] + before_in_warp(n2);
  for (uint32_t i = 0; i < n2; i++) n3 += bits_at(digits, 2 * (at2 + i), 2) == 3;
  uint32_t at3 = first[4 + t / 32] + before_in_warp(n3);
  for (unsigned i = 0; i < 16; i++) { /* four weights: selectors by tier, then three PRMT */
    const uint32_t codes = at[8192 + t * 16 + i], sm = get32(at + i / 4 * 2048 + t * 16 + i % 4 * 4);
    uint32_t s1 = 0, s2 = 0, s3 = 0, r2 = 0, r3 = 0;
    for (unsigned k = 0; k < 4; k++) {
      const uint32_t c = codes >> (2 * k) & 3;
      if (c < 3) {
        s1 |= (4 + c) << (4 * k);
        continue;
      }
      const uint32_t d = bits_at(digits, 2 * at2++, 2);
      s1 |= r2 << (4 * k);
      if (d < 3)
        s2 |= (4 + d) << (4 * r2);
      else {
        s2 |= r3 << (4 * r2);
        s3 |= bits_at(digits, 4 * at3++, 4) << (4 * r3);
        r3++;
      }
      r2++;
    }
    uint32_t e;
    asm("{.reg .b32 x; prmt.b32 x, %1, %2, %3; prmt.b32 x, x, %4, %5; prmt.b32 %0, x, %6, %7;}"
        : "=r"(e)
        : "r"(t3lo), "r"(t3hi), "r"(s3), "r"(t2), "r"(s2), "r"(t1), "r"(s1));
    const uint32_t low = (sm & 0x7F7F7F7Fu) | (e & 0x80808080u), high = (e & 0x7F7F7F7Fu) | (sm & 0x80808080u);
    a[2 * i] = __byte_perm(low, high, 0x5140);
    a[2 * i + 1] = __byte_perm(low, high, 0x7362);
  }
}

/* Columns 8 half … + 7 of a k16 step: rows of the tile times one-hot activations. */
__device__ void product_mma(const uint32_t *a, int half, float *d) {
  const unsigned lane = threadIdx.x & 31, g = lane / 4, q = lane % 4;
  const uint32_t hot = 2 * q == g ? 0x3F80u : 2 * q + 1 == g ? 0x3F800000u : 0; /* activation of k = n */
  const uint32_t b0 = half ? 0 : hot, b1 = half ? hot : 0;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%10,%10,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.f));
}
__device__ void product_wgmma(const uint32_t *a, uint32_t b, float *d) {
  /* no swizzle: two 8 x 8 core matrices of 128 bytes, next to each other along k */
  const uint64_t desc = (uint64_t)(b >> 4) | (uint64_t)(128 >> 4) << 16 | (uint64_t)(256 >> 4) << 32;
  d[0] = d[1] = d[2] = d[3] = 0;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{.reg .pred p; setp.ne.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, "
               "{%4,%5,%6,%7}, %8, p, 1, 1, 0;}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

template <bool WGMMA> __global__ void __launch_bounds__(128) unpack_kernel(const Pack p, uint16_t *out) {
  __shared__ __align__(128) uint16_t hot[2][2][8][8]; /* [half][k / 8][n][k % 8] */
  for (unsigned i = threadIdx.x; i < 256; i += 128) {
    const unsigned half = i / 128, kh = i / 64 % 2, n = i / 8 % 8, k = i % 8;
    hot[half][kh][n][k] = kh == half && n == k ? 0x3F80 : 0;
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const uint64_t block = blockIdx.x / p.tiles, tile = blockIdx.x % p.tiles;
  const unsigned t = threadIdx.x, g = t % 32 / 4, q = t % 4;
  uint32_t a[32];
  decode(p, block, tile, a);
  const uint8_t *bases = p.bytes + p.blocks_at + block * GLYD_WEIGHTS_BLOCK_HEADER + GLYD_WEIGHTS_BLOCK_AT_BASES;
  for (unsigned s = 0; s < p.tile_cols / 16; s++) {
    for (unsigned half = 0; half < 2; half++) {
      float d[4];
      if (WGMMA)
        product_wgmma(a + 4 * s, (uint32_t)__cvta_generic_to_shared(hot[half]), d);
      else
        product_mma(a + 4 * s, (int)half, d);
      for (unsigned i = 0; i < 4; i++) {
        const unsigned r = t / 32 * 16 + i / 2 * 8 + g, base = bases[r];
        const uint64_t row = block * 64 + r, col = tile * p.tile_cols + 16 * s + 8 * half + 2 * q + i % 2;
        const float factor =
            base == 0 ? 0.f : __uint_as_float(p.layout == GLYD_WEIGHTS_MMA12 ? (2 * base - 1) << 23 : base << 23);
        if (row < p.rows && col < p.cols)
          out[row * p.cols + col] = __bfloat16_as_ushort(__float2bfloat16_rn(d[i] * factor));
      }
    }
  }
}
/* A product adds exceptions in fp32; here each is alone in its sum: what its place decoded to must be there. */
__global__ void exceptions_kernel(const Pack p, uint16_t *out, unsigned *wrong) {
  const uint64_t block = blockIdx.x;
  const uint8_t *header = p.bytes + p.blocks_at + block * GLYD_WEIGHTS_BLOCK_HEADER;
  const uint64_t first = *(const uint64_t *)(header + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST);
  for (uint64_t i = first + threadIdx.x; i < first + get32(header + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT); i += blockDim.x) {
    const uint32_t place = get32(p.bytes + p.places_at + 4 * i), r = place % 64;
    uint16_t *at = out + (block * 64 + r) * p.cols + place / 64;
    const unsigned holds = p.layout == GLYD_WEIGHTS_MMA12 ? header[GLYD_WEIGHTS_BLOCK_AT_BASES + r] << 8 : 0;
    if (*at != holds) atomicAdd(wrong, 1);
    *at = *(const uint16_t *)(p.bytes + p.values_at + 2 * i);
  }
}

static std::vector<uint8_t> read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) {
    printf("cannot open %s\n", path);
    exit(1);
  }
  fseek(f, 0, SEEK_END);
  std::vector<uint8_t> v((size_t)ftell(f));
  rewind(f);
  if (fread(v.data(), 1, v.size(), f) != v.size()) exit(1);
  fclose(f);
  return v;
}
int main(int argc, char **argv) {
  int failed = argc < 3;
  for (int arg = 1; arg + 1 < argc; arg += 2) {
    const std::vector<uint8_t> pack = read_file(argv[arg]), want = read_file(argv[arg + 1]);
    auto get = [&](size_t at) {
      uint64_t v;
      memcpy(&v, &pack[at], 8);
      return v;
    };
    auto align = [](uint64_t n) { return (n + 127) / 128 * 128; };
    Pack p = {};
    p.layout = pack[GLYD_WEIGHTS_AT_LAYOUT];
    p.rows = get(GLYD_WEIGHTS_AT_ROWS), p.cols = get(GLYD_WEIGHTS_AT_COLS),
    p.exceptions = get(GLYD_WEIGHTS_AT_EXCEPTIONS);
    const bool tiered = p.layout == GLYD_WEIGHTS_TIERED;
    p.tile_cols = tiered ? GLYD_WEIGHTS_TIERED_COLS : GLYD_WEIGHTS_MMA12_COLS;
    p.tile_bytes = tiered ? GLYD_WEIGHTS_TIERED_TILE : GLYD_WEIGHTS_MMA12_TILE;
    p.blocks = (p.rows + 63) / 64, p.tiles = (p.cols + p.tile_cols - 1) / p.tile_cols;
    p.blocks_at = GLYD_WEIGHTS_HEADER;
    p.index_at = p.blocks_at + p.blocks * GLYD_WEIGHTS_BLOCK_HEADER;
    p.tiles_at = align(p.index_at + (tiered ? 4 * p.blocks * (p.tiles + 1) : 0));
    p.escapes_at = align(p.tiles_at + p.blocks * p.tiles * p.tile_bytes);
    p.places_at = align(p.escapes_at + get(GLYD_WEIGHTS_AT_ESCAPES) * GLYD_WEIGHTS_ESCAPE_UNIT);
    p.values_at = align(p.places_at + 4 * p.exceptions);
    uint8_t *bytes;
    uint16_t *out;
    unsigned *wrong;
    CK(cudaMalloc(&bytes, pack.size()));
    CK(cudaMalloc(&out, want.size()));
    CK(cudaMalloc(&wrong, 4));
    CK(cudaMemset(wrong, 0, 4));
    CK(cudaMemcpy(bytes, pack.data(), pack.size(), cudaMemcpyHostToDevice));
    p.bytes = bytes;
    for (int wgmma = 0; wgmma < 2; wgmma++) {
      CK(cudaMemset(out, 0xA5, want.size()));
      if (wgmma)
        unpack_kernel<true><<<(unsigned)(p.blocks * p.tiles), 128>>>(p, out);
      else
        unpack_kernel<false><<<(unsigned)(p.blocks * p.tiles), 128>>>(p, out);
      CK(cudaGetLastError());
      exceptions_kernel<<<(unsigned)p.blocks, 128>>>(p, out, wrong);
      CK(cudaDeviceSynchronize());
      std::vector<uint8_t> have(want.size());
      unsigned misplaced;
      CK(cudaMemcpy(have.data(), out, want.size(), cudaMemcpyDeviceToHost));
      CK(cudaMemcpy(&misplaced, wrong, 4, cudaMemcpyDeviceToHost));
      size_t differ = 0;
      for (size_t i = 0; i < want.size(); i += 2) {
        uint16_t x, y;
        memcpy(&x, &have[i], 2);
        memcpy(&y, &want[i], 2);
        differ += x != y && (x | y) != 0x8000; /* a sum has no -0 */
      }
      failed |= differ != 0 || misplaced != 0;
      printf("%-28s %s %-8s %llu x %llu, %llu exceptions: %zu weights differ, %u places wrong\n", argv[arg],
             tiered ? "tiered" : "mma12 ", wgmma ? "wgmma" : "mma.sync", (unsigned long long)p.rows,
             (unsigned long long)p.cols, (unsigned long long)p.exceptions, differ, misplaced);
    }
    CK(cudaFree(bytes));
    CK(cudaFree(out));
    CK(cudaFree(wrong));
  }
  printf(failed ? "FAILED\n" : "all bits equal\n");
  return failed;
}
