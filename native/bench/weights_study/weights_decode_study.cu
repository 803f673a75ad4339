/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * How fast can each candidate exponent code be decoded on the GPU? Packed
 * tiles come through a bulk-copy ring into shared memory, warps rebuild the
 * bf16 pairs in registers (tensor-core A fragment order) and fold them into a
 * checksum (-DPRODUCT=1: feed them to mma.sync). Every kernel also runs once in store mode, compared with the
 * original weights bit for bit.
 *
 *   nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a \
 *     weights_decode_study.cu -o weights_decode_study && ./weights_decode_study
 *
 * Tile: 64 rows x 128 columns; thread t = 32 w + 4 g + q holds rows 16 w + g
 * and + 8; its 64 weights in order (k16 step, k half, row half, pair).
 */
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#define CK(x)                                                                   \
  do {                                                                          \
    cudaError_t e_ = (x);                                                       \
    if (e_ != cudaSuccess) {                                                    \
      printf("%s:%d %s: %s\n", __FILE__, __LINE__, #x, cudaGetErrorString(e_)); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

enum Code { READ = 0, MMA12, T23, T24, T223, T224, N_CODES };
static const char *kName[] = {"read only", "mma12", "2+3", "2+4", "2+2+3", "2+2+4"};

struct Consts {
  uint32_t t1, t2, t3lo, t3hi, elo, ehi;
};
struct Par {
  const uint8_t *fix, *var;
  const uint32_t *off;
  uint32_t *out;
  int tiles, fixed, slot, stages;
  Consts c;
};

/* ---- PTX wrappers ------------------------------------------------------- */
__device__ __forceinline__ uint32_t smem_u32(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void mb_init(uint32_t b, uint32_t n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n) : "memory");
}
__device__ __forceinline__ void mb_expect(uint32_t b, uint32_t n) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(n) : "memory");
}
__device__ __forceinline__ void mb_arrive(uint32_t b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
}
__device__ __forceinline__ void mb_wait(uint32_t b, uint32_t ph) {
  asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra L; D: }" ::"r"(b),
               "r"(ph)
               : "memory");
}
__device__ __forceinline__ void bulk(uint32_t dst, const void *src, uint32_t n, uint32_t bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
               "l"(src), "r"(n), "r"(bar)
               : "memory");
}
__device__ __forceinline__ uint4 lds128(uint32_t a) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(a)
               : "memory");
  return v;
}
__device__ __forceinline__ uint32_t lds32(uint32_t a) {
  uint32_t v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(a));
  return v;
}
__device__ __forceinline__ uint32_t lds16(uint32_t a) {
  uint16_t v;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(a) : "memory");
  return v;
}
template <int LUT> __device__ __forceinline__ uint32_t lop3(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t r;
  asm("lop3.b32 %0,%1,%2,%3,%4;" : "=r"(r) : "r"(a), "r"(b), "r"(c), "n"(LUT));
  return r;
}
/* __byte_perm masks its selector first; every selector here has clean nibbles */
__device__ __forceinline__ uint32_t prmt(uint32_t a, uint32_t b, uint32_t s) {
  uint32_t r;
  asm("prmt.b32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(s));
  return r;
}
__device__ __forceinline__ uint32_t and_or(uint32_t a, uint32_t m, uint32_t c) { return lop3<0xEA>(a, m, c); }
__device__ __forceinline__ uint32_t pick(uint32_t a, uint32_t b, uint32_t m) {
  return lop3<0xE4>(a, b, m);
} /* m ? a : b */
__device__ __forceinline__ uint32_t shr_clamp(uint32_t a, uint32_t n) {
  uint32_t r;
  asm("shr.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(n));
  return r;
} /* n = 32 gives 0 */
__device__ __forceinline__ uint32_t escapes(uint32_t w) { return w & (w >> 1) & 0x55555555u; }
__device__ __forceinline__ uint32_t scan(uint32_t v) { /* exclusive sum over the warp */
  uint32_t inc = v;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1)
    asm volatile("{.reg .pred p; .reg .u32 u; shfl.sync.up.b32 u|p, %0, %1, 0, -1; @p add.u32 %0, %0, u;}"
                 : "+r"(inc)
                 : "r"(d));
  return inc - v;
}
__device__ __forceinline__ uint32_t window32(uint32_t base, uint32_t bit) {
  uint32_t a = base + (bit >> 5) * 4;
  return __funnelshift_r(lds32(a), lds32(a + 4), bit);
}
__device__ __forceinline__ uint64_t window64(uint32_t base, uint32_t bit) {
  uint32_t a = base + (bit >> 5) * 4, x = lds32(a), y = lds32(a + 4), z = lds32(a + 8);
  return (uint64_t)__funnelshift_r(y, z, bit) << 32 | __funnelshift_r(x, y, bit);
}
__device__ __forceinline__ uint32_t spread3(uint32_t x) { /* four 3-bit fields to four nibbles */
  uint32_t y = (x & 0x3Fu) + (x & 0xFC0u) * 4u;
  return y + (y & 0x3838u);
}
/* exponent bytes (rotated right by one) + sign/mantissa bytes -> two bf16 pairs */
__device__ __forceinline__ void join(uint32_t s, uint32_t t, uint32_t *o) {
  uint32_t l = pick(s, t, 0x7F7F7F7Fu), h = pick(t, s, 0x7F7F7F7Fu);
  o[0] = prmt(l, h, 0x5140);
  o[1] = prmt(l, h, 0x7362);
}
#ifndef PRODUCT
#define PRODUCT 0
#endif
constexpr bool kProduct = PRODUCT; /* one mma.sync for every 8 weights of a thread instead of the checksum */
__device__ __forceinline__ void mma(float *d, const uint32_t *a, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/* 256 rows of 256 bytes: one copy of an entry of table 1 for every bank, then one of table 2. A row's address is one PRMT: byte 0 lane * 4, byte 1 the index */
constexpr int kTable = 256 * 256;
#ifndef WIDE
#define WIDE 0
#endif
constexpr bool kWide = WIDE; /* table 1 of 8-byte entries (selectors and count, mask), table 2 behind it */
template <int CODE> __host__ __device__ constexpr int table_bytes() {
  return kTable + (kWide && CODE >= T223 ? 256 * 128 : 0);
}
extern __shared__ __align__(1024) uint8_t sm[];
__device__ __forceinline__ uint32_t table(uint32_t at) {
  return *(const uint32_t *)(sm + at);
} /* base address is an immediate of the load */
__device__ __forceinline__ uint2 table2(uint32_t at) { return *(const uint2 *)(sm + at); }
template <int CODE> __device__ void build_tables(uint32_t *sh, int nthreads) {
  for (int i = threadIdx.x; i < 256 * 32; i += nthreads) {
    int q = i >> 5;
    uint32_t a = 0, n = 0, b = 0, m = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      uint32_t c = (q >> (2 * k)) & 3;
      a |= (c == 3 ? n : 4 + c) << (4 * k);
      n += c == 3;
    }
    b = a;
    m = n;
    uint32_t bits = CODE == T23 ? 3 : CODE == T24 ? 4 : 2;
    if (kWide && CODE >= T223) {
      sh[q * 64 + 2 * (i & 31)] = a | (2 * n) << 16;
      sh[q * 64 + 2 * (i & 31) + 1] = ((1u << (2 * n)) - 1) << 7;
      sh[256 * 64 + i] = b | ((CODE == T223 ? 3 : 4) * m) << 16;
      continue;
    }
    sh[q * 64 + (i & 31)] = a | (bits * n) << 16 | (CODE >= T223 ? ((1u << (2 * n)) - 1) << 24 : 0);
    if (CODE >= T223) sh[q * 64 + 32 + (i & 31)] = b | ((CODE == T223 ? 3 : 4) * m) << 16;
  }
}
template <int CODE, bool FAR, class F>
__device__ __forceinline__ void third_tier(uint32_t st, uint32_t esc, int tid, const Consts &c, const uint32_t (&cw)[4],
                                           const uint32_t (&win)[4], const uint32_t (&n3)[4], uint32_t p3, F emit) {
  const uint32_t TB = CODE == T223 ? 3 : 4, tl = (tid & 31) * (kWide ? 8 : 4),
                 t2 = (tid & 31) * 4 + (kWide ? kTable : 128);
  uint64_t w3 = window64(esc + 16, p3);
  uint32_t b3 = 0;
#pragma unroll
  for (int v = 0; v < 4; v++) {
    uint4 S = lds128(st + v * 2048 + tid * 16);
    uint32_t s[4] = {S.x, S.y, S.z, S.w}, o[8],
             b = kWide ? 25 : 8; /* -7 or -24 mod 32: digits land on bits 7..14 or 24..31 */
    if (FAR && v) {
      p3 += n3[v - 1] * TB;
      w3 = window64(esc + 16, p3);
      b3 = 0;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint32_t q, r;
      if (kWide) {
        uint2 e = table2(prmt(cw[v], tl, 0x5504u | (uint32_t)i << 4));
        q = e.x;
        r = table(and_or(__funnelshift_r(win[v], win[v], b), e.y, t2 - kTable) + kTable);
        b += q >> 16;
      } else {
        q = table(prmt(cw[v], tl, 0x5504u | (uint32_t)i << 4));
        uint32_t x = lop3<0x80>(__funnelshift_r(win[v], win[v], b), q, 0xFF000000u);
        r = table((x >> 16) + t2);
        b += q >> 16;
      }
      uint32_t y = (uint32_t)(w3 >> b3), t3 = prmt(c.t3lo, c.t3hi, CODE == T223 ? spread3(y) : y);
      b3 += r >> 16;
      join(s[i], prmt(prmt(t3, c.t2, r), c.t1, q), o + 2 * i);
    }
    emit(v, o);
  }
}
template <int CODE, class F>
__device__ __forceinline__ void slab(uint32_t st, uint32_t esc, int tid, const Consts &c, F emit) {
  const int lane = tid & 31, warp = tid >> 5;
  if constexpr (CODE == READ) {
#pragma unroll
    for (int v = 0; v < 5; v++) {
      uint4 s = lds128(st + v * 2048 + tid * 16);
      uint32_t o[8] = {s.x, s.y, s.z, s.w, 0, 0, 0, 0};
      emit(v, o);
    }
  } else if constexpr (CODE == MMA12) {
#pragma unroll
    for (int b = 0; b < 2; b++) {
      uint4 C = lds128(st + b * 6144 + 4096 + tid * 16);
#pragma unroll
      for (int v = 0; v < 2; v++) {
        uint4 L = lds128(st + b * 6144 + v * 2048 + tid * 16);
        uint32_t o[8];
#pragma unroll
        for (int k = 0; k < 2; k++) {
          uint32_t n = v ? (k ? C.w : C.z) : (k ? C.y : C.x), l0 = k ? L.z : L.x, l1 = k ? L.w : L.y;
          uint32_t h0 = and_or(n, 0x87878787u, 0x40404040u),
                   h1 = and_or(__funnelshift_l(n, n, 4), 0x87878787u, 0x40404040u);
          o[4 * k] = prmt(l0, h0, 0x5140);
          o[4 * k + 1] = prmt(l0, h0, 0x7362);
          o[4 * k + 2] = prmt(l1, h1, 0x5140);
          o[4 * k + 3] = prmt(l1, h1, 0x7362);
        }
        emit(b * 2 + v, o);
      }
    }
  } else {
    const uint32_t EB = CODE == T23 ? 3 : CODE == T24 ? 4 : 2, tl = lane * 4;
    uint4 C = lds128(st + 8192 + tid * 16);
    uint32_t cw[4] = {C.x, C.y, C.z, C.w}, n[4];
#pragma unroll
    for (int v = 0; v < 4; v++) n[v] = __popc(escapes(cw[v]));
    uint32_t p[4];
    p[0] = EB * (lds16(esc + 2 * warp) + scan(n[0] + n[1] + n[2] + n[3]));
#pragma unroll
    for (int v = 1; v < 4; v++) p[v] = p[v - 1] + EB * n[v - 1];
    if constexpr (CODE == T23 || CODE == T24) {
#pragma unroll
      for (int v = 0; v < 4; v++) {
        uint4 S = lds128(st + v * 2048 + tid * 16);
        uint32_t s[4] = {S.x, S.y, S.z, S.w}, o[8], b = 0;
        uint64_t w = window64(esc + 16, p[v]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
          uint32_t q = table(prmt(cw[v], tl, 0x5504u | (uint32_t)i << 4));
          uint32_t x = (uint32_t)(w >> b), sel = CODE == T23 ? spread3(x) : x;
          b += q >> 16;
          join(s[i], prmt(prmt(c.elo, c.ehi, sel), c.t1, q), o + 2 * i);
        }
        emit(v, o);
      }
    } else {
      const uint32_t TB = CODE == T223 ? 3 : 4;
      uint32_t win[4], n3[4];
      {
        /* digits of 32 weights fit in 64 bits */
        uint64_t w0 = window64(esc + 16, p[0]), w1 = window64(esc + 16, p[2]);
        win[0] = (uint32_t)w0;
        win[2] = (uint32_t)w1;
        win[1] = __funnelshift_rc((uint32_t)w0, (uint32_t)(w0 >> 32), 2 * n[0]);
        win[3] = __funnelshift_rc((uint32_t)w1, (uint32_t)(w1 >> 32), 2 * n[2]);
      }
#pragma unroll
      for (int v = 0; v < 4; v++)
        n3[v] = __popc(lop3<0x80>(win[v], win[v] >> 1, shr_clamp(0x55555555u, 32 - 2 * n[v])));
      const uint32_t m = n3[0] + n3[1] + n3[2] + n3[3], p3 = TB * scan(m) + 4 * lds16(esc + 8 + 2 * warp);
      /* one 64-bit window serves a thread's whole third tier, but for data that is far from Gaussian */
      if (__any_sync(~0u, m * TB > 64))
        third_tier<CODE, true>(st, esc, tid, c, cw, win, n3, p3, emit);
      else
        third_tier<CODE, false>(st, esc, tid, c, cw, win, n3, p3, emit);
    }
  }
}
template <int CODE, int NG, bool STORE = false>
__global__ void __launch_bounds__(NG * 128 + 32, 1) decode_kernel(const Par p) {
  constexpr int NT = CODE >= T23 ? 1 : 0;
  const uint32_t tab = smem_u32(sm), bars = tab + NT * table_bytes<CODE>(), ring = bars + 1024;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, S = p.stages;
  if (threadIdx.x == 0)
    for (int i = 0; i < S; i++) {
      mb_init(bars + 16 * i, 1);
      mb_init(bars + 16 * i + 8, 4);
    }
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
  if (NT) build_tables<CODE>((uint32_t *)sm, NG * 128 + 32);
  __syncthreads();
  const int n = (p.tiles - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x;
  if (warp == NG * 4) {
    /* offsets of 32 tiles at a time, a batch ahead: a load an iteration would cost its latency every tile */
    auto offset = [&](int i) {
      i = min(i, n - 1);
      return p.off ? *reinterpret_cast<const uint2 *>(p.off + 2 * (blockIdx.x + (size_t)i * gridDim.x))
                   : make_uint2(0, 0);
    };
    uint2 cur = n > 0 ? offset(lane) : make_uint2(0, 0), nxt = cur;
    for (int i = 0, s = 0, ph = 1; i < n; i++) {
      if (i % 32 == 0) {
        if (i) cur = nxt;
        nxt = offset(i + 32 + lane);
      }
      const uint32_t a = __shfl_sync(~0u, cur.x, i % 32), ev = __shfl_sync(~0u, cur.y, i % 32) * 16;
      if (lane == 0) {
        const size_t t = blockIdx.x + (size_t)i * gridDim.x;
        const uint32_t full = bars + 16 * s, dst = ring + s * p.slot;
        mb_wait(full + 8, ph);
        mb_expect(full, p.fixed + ev);
        bulk(dst, p.fix + t * p.fixed, p.fixed, full);
        if (ev) bulk(dst + p.fixed, p.var + (size_t)a * 16, ev, full);
      }
      __syncwarp();
      if (++s == S) {
        s = 0;
        ph ^= 1;
      }
    }
  } else {
    const int group = warp >> 2, tid = threadIdx.x & 127;
    uint32_t acc = 0;
    float d[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    const uint32_t b0 = 0x3F803F80u + lane, b1 = 0x3F003F80u + lane;
    for (int i = group; i < n; i += NG) {
      const int s = i % S;
      const uint32_t st = ring + s * p.slot;
      mb_wait(bars + 16 * s, (i / S) & 1);
      if constexpr (STORE) {
        uint32_t *o = p.out + ((blockIdx.x + (size_t)i * gridDim.x) * 128 + tid) * 32;
        slab<CODE>(st, st + p.fixed, tid, p.c, [&](int v, const uint32_t *w) {
#pragma unroll
          for (int k = 0; k < 8; k++) o[v * 8 + k] = w[k];
        });
      } else {
        slab<CODE>(st, st + p.fixed, tid, p.c, [&](int, const uint32_t *w) {
          if constexpr (kProduct && CODE != READ) {
            mma(d, w, b0, b1);
            mma(d + 4, w + 4, b0, b1);
          } else {
#pragma unroll
            for (int k = 0; k < 8; k += 2) acc = lop3<0x96>(acc, w[k], w[k + 1]);
          }
        });
      }
      __syncwarp();
      if (lane == 0) mb_arrive(bars + 16 * s + 8);
    }
    for (int k = 0; k < 8; k++) acc ^= __float_as_uint(d[k]);
    if (acc == 0x12345678u) p.out[0] = acc;
  }
}
__global__ void read_kernel(const uint4 *__restrict__ p, size_t n, uint32_t *o) {
  uint32_t a = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p + i));
    a ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (a == 0x12345678u) *o = a;
}

/* ---- host: slow packers, in fragment order ------------------------------ */
static uint32_t rot(int e) { return (uint32_t)((e & 1) << 7 | e >> 1); }
struct Bits {
  std::vector<uint32_t> w;
  uint32_t n = 0;
  void put(uint32_t v, uint32_t k) {
    for (uint32_t i = 0; i < k; i++, n++) {
      if (n / 32 >= w.size()) w.push_back(0);
      w[n / 32] |= (v >> i & 1) << (n % 32);
    }
  }
};
static const int kT2[3] = {-1, 3, -2}, kT3[8] = {-3, 4, -4, -5, -6, -7, -8, -9}, kE[8] = {-1, 3, -2, -3, -4, -5, -6, 4};
int main(int argc, char **argv) {
  const int distinct = 512, tiles = argc > 1 ? atoi(argv[1]) / 512 * 512 : 131072;
  const int b = 119; /* at sigma 0.02 exponents 119, 120, 121 are the three commonest */
  std::mt19937 rng(1);
  std::normal_distribution<float> nd(0, 1);
  /* in thread order; exponents that a code does not cover are clipped */
  std::vector<uint16_t> W((size_t)distinct * 8192), V;
  for (auto &x : W) {
    float f = nd(rng) * 0.02f;
    uint32_t u;
    memcpy(&u, &f, 4);
    x = (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
  }
  int dev_sm = 0;
  CK(cudaDeviceGetAttribute(&dev_sm, cudaDevAttrMultiProcessorCount, 0));
  uint8_t *fix, *var;
  uint32_t *off, *out;
  const size_t fixcap = (size_t)tiles * 12288;
  CK(cudaMalloc(&fix, fixcap));
  CK(cudaMalloc(&var, (size_t)tiles * 4096));
  CK(cudaMalloc(&off, (size_t)tiles * 8));
  CK(cudaMalloc(&out, (size_t)distinct * 16384));
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  double ceiling = 0;
  for (int code = -1; code < N_CODES; code++) {
    std::vector<uint8_t> F, E;
    std::vector<uint32_t> O(1, 0);
    uint32_t maxe = 0;
    const int fixed = code == MMA12 ? 12288 : 10240;
    V = W;
    if (code >= 0) {
      for (auto &x : V) {
        int e = x >> 7 & 255, d = e - b, lo = code == T23 || code == T24 ? -6 : -9, hi = 4;
        if (code == MMA12) {
          lo = -(b - 2 * 55);
          hi = 2 * 55 + 15 - b;
        }
        d = std::max(lo, std::min(hi, d));
        x = (uint16_t)((x & 0x807F) | (b + d) << 7);
      }
      for (int t = 0; t < distinct; t++) {
        std::vector<uint8_t> f(fixed, 0);
        Bits s2, s3;
        uint16_t h[8] = {0};
        for (int pass = 0; pass < 2; pass++) {
          if (pass && code < T223) break;
          if (pass) {
            while (s2.n % 32) s2.put(0, 1);
          }
          for (int tid = 0; tid < 128; tid++) {
            if (tid % 32 == 0) {
              if (!pass)
                h[tid / 32] = (uint16_t)(s2.n / (code == T23 ? 3 : code == T24 ? 4 : 2));
              else {
                while (s3.n % 4) s3.put(0, 1);
                h[4 + tid / 32] = (uint16_t)((s2.n + s3.n) / 4);
              }
            }
            for (int j = 0; j < 64; j++) {
              uint16_t x = V[((size_t)t * 128 + tid) * 64 + j];
              int e = x >> 7 & 255, d = e - b;
              if (code == MMA12) {
                if (pass) continue;
                int blk = j / 32, jj = j % 32;
                f[blk * 6144 + (jj / 16) * 2048 + tid * 16 + jj % 16] = (uint8_t)x;
                uint32_t cc = (uint32_t)((x >> 15) << 7 | ((e >> 1) - 55)), k = jj / 8, byte = jj % 4;
                uint8_t *cp = &f[blk * 6144 + 4096 + tid * 16 + k * 4];
                if (jj % 8 < 4)
                  cp[byte] |= (uint8_t)cc;
                else {
                  uint32_t w = cc << (8 * byte);
                  w = w >> 4 | w << 28;
                  for (int i = 0; i < 4; i++) cp[i] |= (uint8_t)(w >> (8 * i));
                }
                continue;
              }
              int c1 = d >= 0 && d <= 2 ? d : 3;
              if (!pass) {
                f[(j / 16) * 2048 + tid * 16 + j % 16] = (uint8_t)((x >> 8 & 0x80) | (x & 0x7F));
                f[8192 + tid * 16 + j / 4] |= (uint8_t)(c1 << (2 * (j % 4)));
              }
              if (c1 != 3 || code == READ) continue;
              if (code == T23 || code == T24) {
                uint32_t k = 0;
                while (kE[k] != d) k++;
                s2.put(k, code == T23 ? 3 : 4);
                continue;
              }
              uint32_t k = 0;
              while (k < 3 && kT2[k] != d) k++;
              if (!pass)
                s2.put(k, 2);
              else if (k == 3) {
                k = 0;
                while (kT3[k] != d) k++;
                s3.put(k, code == T223 ? 3 : 4);
              }
            }
          }
        }
        F.insert(F.end(), f.begin(), f.end());
        if (code >= T23) {
          size_t z = E.size();
          E.resize(z + 16);
          memcpy(&E[z], h, 16);
          s2.w.insert(s2.w.end(), s3.w.begin(), s3.w.end());
          E.insert(E.end(), (uint8_t *)s2.w.data(), (uint8_t *)(s2.w.data() + s2.w.size()));
          while (E.size() % 16) E.push_back(0);
          maxe = std::max<uint32_t>(maxe, (uint32_t)(E.size() - z));
        }
        O.push_back((uint32_t)(E.size() / 16));
      }
      std::vector<uint32_t> OO((size_t)tiles * 2); /* first 16-byte unit, number of units */
      for (int t = 0; t < tiles; t++) {
        OO[2 * t] = O[t % distinct] + (uint32_t)(t / distinct) * O[distinct];
        OO[2 * t + 1] = O[t % distinct + 1] - O[t % distinct];
      }
      for (int t = 0; t < tiles; t += distinct) {
        CK(cudaMemcpy(fix + (size_t)t * fixed, F.data(), F.size(), cudaMemcpyHostToDevice));
        if (E.size()) CK(cudaMemcpy(var + (size_t)OO[2 * t] * 16, E.data(), E.size(), cudaMemcpyHostToDevice));
      }
      CK(cudaMemcpy(off, OO.data(), OO.size() * 4, cudaMemcpyHostToDevice));
    } else {
      std::vector<uint32_t> r(1 << 20);
      for (auto &x : r) x = rng();
      for (size_t o = 0; o + (4 << 20) <= fixcap; o += 4 << 20)
        CK(cudaMemcpy(fix + o, r.data(), 4 << 20, cudaMemcpyHostToDevice));
    }
    auto median = [&](auto launch) {
      std::vector<float> ts;
      for (int i = 0; i < 13; i++) {
        CK(cudaEventRecord(e0));
        launch();
        CK(cudaEventRecord(e1));
        CK(cudaEventSynchronize(e1));
        CK(cudaGetLastError());
        float ms;
        CK(cudaEventElapsedTime(&ms, e0, e1));
        if (i >= 2) ts.push_back(ms);
      }
      std::sort(ts.begin(), ts.end());
      return (double)ts[ts.size() / 2];
    };
    if (code < 0) {
      for (int gmul : {4, 8}) {
        size_t n = fixcap / 16;
        double ms = median([&] { read_kernel<<<dev_sm * gmul, 512>>>((const uint4 *)fix, n, out); });
        double gb = n * 16 / ms / 1e6;
        ceiling = std::max(ceiling, gb);
        printf("plain read, %d x 512 threads: %.0f GB/s\n", dev_sm * gmul, gb);
      }
      continue;
    }
    Par p{fix, var, code >= T23 ? off : nullptr, out, tiles, fixed, 0, 0, {}};
    auto quad = [&](int a0, int a1, int a2, int a3) { return rot(a0) | rot(a1) << 8 | rot(a2) << 16 | rot(a3) << 24; };
    p.c = {quad(b, b + 1, b + 2, 0),
           quad(b + kT2[0], b + kT2[1], b + kT2[2], 0),
           quad(b + kT3[0], b + kT3[1], b + kT3[2], b + kT3[3]),
           quad(b + kT3[4], b + kT3[5], b + kT3[6], b + kT3[7]),
           quad(b + kE[0], b + kE[1], b + kE[2], b + kE[3]),
           quad(b + kE[4], b + kE[5], b + kE[6], b + kE[7])};
    p.slot = fixed + (code >= T23 ? (int)((maxe + 127) / 128 * 128) : 0);
    const double bytes = (double)tiles * fixed + (double)O[distinct] * 16 / distinct * tiles +
                         (code >= T23 ? tiles * 4.0 : 0),
                 weights = (double)tiles * 8192;
    auto go = [&](auto kern, auto kern_store, int ng) {
      const int nt = code >= T23 ? 1 : 0, tb = code >= T223 ? table_bytes<T224>() : kTable;
      p.stages = std::min(60, (232448 - nt * tb - 1024 - 64) / p.slot);
      p.stages -= p.stages % ng; /* a stage belongs to one group: parities of two groups must not mix */
      const int smem = nt * tb + 1024 + p.stages * p.slot + 64;
      CK(cudaFuncSetAttribute(kern, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
      CK(cudaMemset(out, 0xA5, (size_t)distinct * 16384));
      Par q = p;
      q.tiles = distinct;
      const char *ok = "-";
      if (code != READ) {
        CK(cudaFuncSetAttribute(kern_store, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
        kern_store<<<dev_sm, ng * 128 + 32, smem>>>(q);
        CK(cudaDeviceSynchronize());
        std::vector<uint16_t> R((size_t)distinct * 8192);
        CK(cudaMemcpy(R.data(), out, R.size() * 2, cudaMemcpyDeviceToHost));
        size_t bad = 0;
        for (size_t i = 0; i < R.size(); i++) {
          uint16_t x = V[i]; /* in registers a pair is (j, j+1) of one row */
          if (code == MMA12) x = (uint16_t)(x + ((0x40 - 55) << 8));
          bad += R[i] != x;
        }
        ok = bad ? "WRONG" : "exact";
        if (bad) printf("  %zu of %zu differ\n", bad, R.size());
      }
      double ms = median([&] { kern<<<dev_sm, ng * 128 + 32, smem>>>(p); });
      cudaFuncAttributes fa;
      CK(cudaFuncGetAttributes(&fa, kern));
      printf("%-10s %2d warps %3d regs %3zu local %2d stages  %.3f bits  %6.0f GB/s packed  %.1f%% of read  %6.0f GB/s "
             "of bf16  %s\n",
             kName[code], ng * 4, fa.numRegs, (size_t)fa.localSizeBytes, p.stages, bytes * 8 / weights,
             bytes / ms / 1e6, bytes / ms / 1e4 / ceiling, weights * 2 / ms / 1e6, ok);
      fflush(stdout);
    };
#define ALL(C)                                             \
  if (code == C) {                                         \
    go(decode_kernel<C, 2>, decode_kernel<C, 2, true>, 2); \
    go(decode_kernel<C, 3>, decode_kernel<C, 3, true>, 3); \
    go(decode_kernel<C, 4>, decode_kernel<C, 4, true>, 4); \
    go(decode_kernel<C, 6>, decode_kernel<C, 6, true>, 6); \
  }
    ALL(READ) ALL(MMA12) ALL(T23) ALL(T24) ALL(T223) ALL(T224)
  }
  return 0;
}
