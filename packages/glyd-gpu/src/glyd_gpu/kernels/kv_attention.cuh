/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Attention of one new token a sequence over pages of keys and values.
 *
 * A block takes a range of a sequence's pages for one key head and up to eight
 * of the query heads that share it; its warps take pages, or slices of pages, in
 * turn, each for itself. A strip of 16 channels is decoded to registers, where
 * keys turn around by movmatrix and are the operand of scores (16 tokens, 16
 * channels, times Qᵀ of 8 heads by mma.sync); exponentials turn around in the
 * same way and meet Vᵀ, which is what a strip of values decodes to. Every warp
 * keeps maximum, sum and output of its own tokens; at the end warps, then
 * blocks, are put together in a fixed order. So the bits depend on the division
 * into ranges alone, not on how pages are stored: plain pages go through the
 * same mma in the same order.
 * Tests run this code on the CPU as well (tests/emulation).
 */
#ifndef GLYD_GPU_KV_ATTENTION_CUH
#define GLYD_GPU_KV_ATTENTION_CUH

#include "kv_page.cuh"

#ifndef GLYD_EMULATION
#include "mma_sync.cuh"
using glyd::mma_16x8x16;
#endif

constexpr int kKvHeads = 8;  /* query heads of a block: columns of the mma */
constexpr int kKvParts = 4; /* of a page: 32 tokens each */
static_assert(kKvParts * 32 == kKvTokens, "a page's tokens");

struct KvAttentionArgs {
  uint16_t *out;            /* [sequences, heads, D] bf16 */
  float *partial;           /* [sequences, key heads, head groups, splits, 8, D + 2] fp32; NULL with one split */
  const uint16_t *q;        /* [sequences, heads, D] bf16 */
  const uint64_t *k_pages;  /* [sequences, key heads, pages] addresses */
  const uint64_t *v_pages;
  const uint16_t *k_tail;   /* [sequences, key heads, tail, D] bf16 */
  const uint16_t *v_tail;
  const int32_t *starts;    /* [sequences] first token that is seen; NULL: 0 */
  int sequences, heads, key_heads, pages, tail, splits;
  float scale; /* of scores, times log2(e) */
};

/* Transpose an 8 x 8 matrix of 16-bit values held by a warp. */
__device__ __forceinline__ uint32_t movmatrix(uint32_t x) {
#ifdef GLYD_EMULATION
  return emulated_movmatrix(x);
#else
  uint32_t r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(x));
  return r;
#endif
}


__device__ __forceinline__ uint32_t kv_bf16(float f) { /* to nearest, ties to even; f is finite */
  const uint32_t u = __float_as_uint(f);
  return (u + 0x7FFF + (u >> 16 & 1)) >> 16;
}
__device__ __forceinline__ float kv_exp2(float x) { /* exp2(-inf) is 0 */
#ifdef GLYD_EMULATION
  return exp2f(x);
#else
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#endif
}

/* Warps of a block where it has 227 KiB of shared memory, and where it has 99. One block runs on a multiprocessor: its
 * warps share a table with a copy for every bank. */
template <int D> __host__ __device__ constexpr int kv_warps(bool roomy) {
  return D <= 128 ? (roomy ? 16 : 8) : (roomy ? 12 : 4);
}

/* The table: a row of 256 bytes for every byte of four 2-bit codes, of which the first 128 are copies of a word, one a
 * bank. It has a PRMT selector (code c < 3: byte 4 + c of the second word; the n-th code 3: byte n of the first), 2 n in
 * bits 16 to 23, and a mask of n digits in bits 24 to 31. */
constexpr int kKvTable = 256 * 256;
__device__ __forceinline__ void kv_fill_table(uint8_t *table) {
  for (uint32_t i = threadIdx.x; i < 256 * 8; i += blockDim.x) {
    const uint32_t row = i / 8;
    uint32_t selector = 0, n = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const uint32_t c = (row >> (2 * k)) & 3;
      selector |= (c == 3 ? n : 4 + c) << (4 * k);
      n += c == 3;
    }
    const uint32_t word = selector | (2 * n) << 16 | ((1u << (2 * n)) - 1) << 24;
    *(uint4 *)(table + row * 256 + i % 8 * 16) = make_uint4(word, word, word, word);
  }
}
__device__ __forceinline__ uint32_t kv_row(const uint8_t *table, uint32_t at) { return *(const uint32_t *)(table + at); }

/* Shared memory of a block: the table; the query as operands B of all strips; maxima and sums of warps; of each warp
 * escapes of a page, and the output of its tokens as [strips][32 lanes] of what an mma leaves (channels g, g and g + 8,
 * g + 8 of 16, heads 2 q and 2 q + 1), which goes into the other half of the table's rows where it fits. */
__host__ __device__ constexpr int kv_escapes_held(int channels) { return 20 * channels + 64; } /* 11.3 bits a value in all */
template <int D, int W> __host__ __device__ constexpr bool kv_out_in_table() { return W * (D / 16) <= 64; }
template <int D, int W> __host__ __device__ constexpr int kv_attention_shared() {
  return kKvTable + D / 16 * 256 + W * kKvHeads * 8 + W * (kv_escapes_held(D) + (int)kEscapeRoom) +
         (kv_out_in_table<D, W>() ? 0 : W * (D / 16) * 512);
}

/* A packed page: where its escapes are (shared or device memory), and the exceptions that lane i has: number i. */
struct KvOpened {
  const uint8_t *page;
  uint32_t n_exceptions, places; /* how many, and where in the page */
  uint32_t mine;                 /* place | value << 16 */
  bool held;                     /* escapes are in shared memory */
};

__device__ __forceinline__ uint32_t kv_exception_at(const KvOpened &o, uint32_t i) {
  const uint16_t *places = (const uint16_t *)(o.page + o.places);
  return places[i] | (uint32_t)places[o.n_exceptions + i] << 16;
}
/* Escapes to shared memory and exceptions to lanes, by a warp. Escapes of most pages fit; the others are read where they
 * are. */
template <int D> __device__ __forceinline__ KvOpened kv_open(uint8_t *escapes, const uint8_t *page) {
  const uint32_t lane = threadIdx.x % 32, all = kv_escapes_end(page, (D + GLYD_KV_GROUP - 1) / GLYD_KV_GROUP - 1);
  KvOpened o;
  o.page = page;
  o.held = all <= (uint32_t)kv_escapes_held(D);
  __syncwarp(); /* nobody reads the escapes before any more */
  if (o.held)
    for (uint32_t i = lane * 16; i < all; i += 32 * 16) copy_async16(escapes + i, page + GLYD_KV_ESCAPES_AT(D) + i);
  cp_async_commit();
  const uint32_t size = *(const uint32_t *)(page + GLYD_KV_AT_SIZE), at = GLYD_KV_ESCAPES_AT(D) + all;
  const uint32_t most = size > at ? (size - at) / 4 : 0, said = *(const uint32_t *)(page + GLYD_KV_AT_EXCEPTIONS);
  o.n_exceptions = said < most ? said : most;
  o.places = at;
  o.mine = lane < o.n_exceptions ? kv_exception_at(o, lane) : 0;
  cp_async_wait<0>();
  __syncwarp();
  return o;
}
/* Exception i: place | value << 16; i is the same in all lanes. */
__device__ __forceinline__ uint32_t kv_exception(const KvOpened &o, uint32_t i) {
  const uint32_t e = __shfl_sync(~0u, o.mine, (int)(i % 32));
  return i < 32 ? e : kv_exception_at(o, i);
}

/* Put exceptions from `first` up to `last`, which are of this strip, over 32 tokens of it. */
__device__ __forceinline__ void kv_patch_part(const KvOpened &o, uint32_t first, uint32_t last, int part,
                                              uint32_t (&a)[8]) {
#pragma unroll 1
  for (uint32_t i = first; i < last; i++) {
    const uint32_t e = kv_exception(o, i), token = e % kKvTokens, channel = e / kKvTokens % 16;
    const bool is_mine = (int)(token / 32) == part && channel % 8 * 4 + token % 8 / 2 == threadIdx.x % 32;
    const uint32_t at = token / 16 % 2 * 4 + token / 8 % 2 * 2 + channel / 8, shift = token % 2 * 16;
    const uint32_t keep = 0xFFFF0000u >> shift, put = e >> 16 << shift;
#pragma unroll
    for (uint32_t j = 0; j < 8; j++) a[j] = is_mine && j == at ? (a[j] & keep) | put : a[j];
  }
}

/* A thread's part of a strip, or of a slice of P parts of it; parts are loaded anew as they are used up. */
template <int P> struct KvSlice {
  uint4 sign_mantissa[P], codes;
  uint32_t bases[2]; /* of channels g and g + 8 */
};
/* Of a lane, and where its slice starts. */
template <int D> __device__ __forceinline__ const uint8_t *kv_strip(const uint8_t *page, int strip, int first) {
  return page + GLYD_KV_STRIPS_AT(D) + (uint32_t)(strip * GLYD_KV_STRIP + first * 512) + threadIdx.x % 32 * 16;
}
template <int P> __device__ __forceinline__ void kv_load_codes(KvSlice<P> &w, const uint8_t *strip, int first) {
  w.codes = __ldcs((const uint4 *)(strip + 2048 - first * 512));
}
template <int P> __device__ __forceinline__ void kv_load_bases(KvSlice<P> &w, const uint8_t *page, int strip) {
  const uint8_t *bases = page + GLYD_KV_BASES_AT + strip * 16 + threadIdx.x % 32 / 4;
  w.bases[0] = __ldg(bases), w.bases[1] = __ldg(bases + 8);
}
template <int D, int P> __device__ __forceinline__ void kv_load_first(KvSlice<P> &w, const uint8_t *page, int first) {
  const uint8_t *strip = kv_strip<D>(page, 0, first);
  kv_load_codes<P>(w, strip, first);
#pragma unroll
  for (int i = 0; i < P; i++) w.sign_mantissa[i] = __ldcs((const uint4 *)(strip + 512 * i));
  kv_load_bases<P>(w, page, 0);
}

/* Exclusive sum over the warp. */
__device__ __forceinline__ uint32_t kv_before(uint32_t v) {
#ifdef GLYD_EMULATION
  return before_in_warp(v);
#else
  uint32_t sum = v;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1)
    asm volatile("{.reg .pred p; .reg .u32 t; shfl.sync.up.b32 t|p, %0, %1, 0, -1; @p add.u32 %0, %0, t;}"
                 : "+r"(sum)
                 : "r"(d));
  return sum - v;
#endif
}

/* Which of 16 codes of 2 bits are 3. */
__device__ __forceinline__ uint32_t codes_3_at(uint32_t w) { return w & (w >> 1) & 0x55555555u; }

/* Escapes in any memory: words past the end read as 0. */
struct KvEscapes {
  const uint8_t *at;
  uint32_t nbytes;
  __device__ __forceinline__ uint32_t word(uint32_t byte) const {
    return byte + 4 <= nbytes ? *(const uint32_t *)(at + byte) : 0;
  }
};

/* 32 bits of 64 from a bit on, which may be 64 and more: 0 then; and what is left after a shift to the left. */
__device__ __forceinline__ uint32_t kv_shift_right(uint64_t x, uint32_t by) {
#ifdef GLYD_EMULATION
  return by < 64 ? (uint32_t)(x >> by) : 0;
#else
  uint64_t r;
  asm("shr.b64 %0, %1, %2;" : "=l"(r) : "l"(x), "r"(by));
  return (uint32_t)r;
#endif
}
__device__ __forceinline__ uint64_t kv_shift_left(uint64_t x, uint32_t by) {
#ifdef GLYD_EMULATION
  return by < 64 ? x << by : 0;
#else
  uint64_t r;
  asm("shl.b64 %0, %1, %2;" : "=l"(r) : "l"(x), "r"(by));
  return r;
#endif
}
/* How many of 32 codes of 2 bits are 3. */
__device__ __forceinline__ uint32_t kv_threes(uint32_t x, uint32_t y) {
  return __popc(codes_3_at(y) * 2 + codes_3_at(x));
}
__device__ __forceinline__ uint32_t kv_pick(uint32_t a, uint32_t b, uint32_t mask) { /* (a & mask) | (b & ~mask) */
#ifdef GLYD_EMULATION
  return pick(a, b, mask);
#else
  uint32_t r;
  asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(r) : "r"(a), "r"(b), "r"(mask));
  return r;
#endif
}

/* Rows of the table for codes of tier 1. */
__device__ __forceinline__ void kv_rows_1(uint32_t (&q)[4], const uint8_t *table, uint32_t bank, uint32_t codes) {
#pragma unroll
  for (int j = 0; j < 4; j++) q[j] = kv_row(table, prmt(codes, bank, 0x5504u | (uint32_t)j << 4));
}
/* Rows of the table for digits, from a window of them; gives the bits that they take. */
__device__ __forceinline__ uint32_t kv_rows_2(uint32_t (&r)[4], const uint8_t *table, uint32_t bank, uint32_t d,
                                              const uint32_t (&q)[4]) {
  uint32_t b2 = 8; /* digits rotated by 8 bits have the next four in the top byte */
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const uint32_t four = __funnelshift_r(d, d, b2) & q[j]; /* the mask is in the row's top byte */
    r[j] = kv_row(table, prmt(four, bank, 0x5534u));
    b2 += q[j] >> 16; /* its mask adds multiples of 256: no change mod 32 */
  }
  return b2 - 8;
}
/* Four values of two channels from their rows and the next tier 3 codes. */
__device__ __forceinline__ void kv_join(uint32_t *a, uint32_t q, uint32_t r, uint32_t codes3, uint32_t s,
                                        const uint32_t (&factors)[2]) {
  const uint32_t e3 = prmt(kExponents3Low, kExponents3High, codes3);
  const uint32_t exponents = prmt(prmt(e3, kExponents2, r), kExponents1, q);
  const uint32_t low = kv_pick(s, exponents, 0x7F7F7F7Fu), high = kv_pick(exponents, s, 0x7F7F7F7Fu);
  a[0] = kv_times(prmt(low, high, 0x5140), factors[0]);
  a[1] = kv_times(prmt(low, high, 0x7362), factors[1]);
}

constexpr uint32_t kKvDigits = 32, kKvCodes3 = 8; /* of a thread's strip that windows in registers hold */

/* Go through P parts, from `first_part` on, of a packed page strip by strip: `use` gets 32 tokens of 16 channels as two
 * operands A of channels times tokens. `w` has strip 0 of the page, and at the end that of `next`, which may be any page
 * (a plain one is longer). */
template <int D, int P, class Use>
__device__ __forceinline__ void kv_each_packed(KvSlice<P> &w, uint8_t *shared_escapes, const uint8_t *page,
                                               const uint8_t *next, const uint8_t *table, uint32_t bank, int first_part,
                                               Use &use) {
  const KvOpened o = kv_open<D>(shared_escapes, page);
  uint32_t exception = 0, place = o.n_exceptions ? kv_exception(o, 0) & 0xFFFF : ~0u;
  uint32_t first = 0, room = 0, last_bit = 0; /* of the group's escapes: where, bytes, and where a window starts at most */
  /* of what comes after a strip */
  const uint8_t *then = page + GLYD_KV_STRIPS_AT(D) + GLYD_KV_STRIP + first_part * 512 + bank * 4;
  const uint8_t *bases = page + GLYD_KV_BASES_AT + 16 + bank / 16;
#pragma unroll 1
  for (int strip = 0; strip < D / 16; strip++) {
    if (strip == D / 16 - 1) {
      then = next + GLYD_KV_STRIPS_AT(D) + first_part * 512 + bank * 4;
      bases = next + GLYD_KV_BASES_AT + bank / 16;
    }
    const uint32_t codes[4] = {w.codes.x, w.codes.y, w.codes.z, w.codes.w};
    uint32_t mine[P]; /* codes of the slice */
#pragma unroll
    for (int i = 0; i < P; i++) {
      mine[i] = codes[i];
      if constexpr (P < kKvParts) {
#pragma unroll
        for (int v = P; v < kKvParts; v += P) mine[i] = v == first_part ? codes[v + i] : mine[i];
      }
    }
    uint32_t q[2][4]; /* rows of tier 1, looked up a part ahead */
    kv_rows_1(q[0], table, bank, mine[0]);
    const uint32_t factors[2] = {w.bases[0] * 0x800080u, w.bases[1] * 0x800080u}; /* twice a bf16; base 0: 0 */
    kv_load_codes<P>(w, then, first_part);
    w.bases[0] = __ldg(bases), w.bases[1] = __ldg(bases + 8);
    bases += 16;
    if (strip % 4 == 0) {
      const uint32_t all = o.held ? kv_escapes_held(D) / 16 * 16 : kv_escapes_nbytes(D) / 16 * 16;
      first = strip ? kv_escapes_end(page, strip / 4 - 1) : 0;
      first = first < all - 16 ? first : all - 16;
      const uint32_t end = kv_escapes_end(page, strip / 4);
      room = (end < first + 16 ? first + 16 : end < all ? end : all) - first;
      last_bit = (room - GLYD_WEIGHTS_ESCAPE_HEADER) * 8;
    }
    const uint32_t first_exception = exception;
    uint32_t patched = 0; /* a bit a part with exceptions */
    while (__builtin_expect(place / (16 * kKvTokens) == (uint32_t)strip, 0)) {
      exception++;
      patched |= 1u << (place / 32 % 4);
      place = exception < o.n_exceptions ? kv_exception(o, exception) & 0xFFFF : ~0u;
    }
    use.begin(strip);
    /* how many digits and tier 3 codes, and where: in bits */
    const uint32_t n2 = 2 * (kv_threes(codes[0], codes[1]) + kv_threes(codes[2], codes[3]));
    const uint32_t before2 = kv_before(n2);
    uint32_t skip2 = 0, skip3 = 0; /* of parts before the slice */
    uint64_t digits = 0;
    uint32_t codes3 = 0;
    bool few = o.held && !__any_sync(~0u, n2 > 2 * kKvDigits);
    if (__builtin_expect(few, 1)) {
      const SharedEscapes e = {shared_escapes + first, room};
      const uint16_t *starts = (const uint16_t *)e.at + strip % 4;
      digits = window64(e, min(2 * starts[0] + before2, last_bit));
      const uint64_t all = kv_shift_left(digits, 64 - n2);
      const uint32_t n3 = 4 * kv_threes((uint32_t)all, (uint32_t)(all >> 32));
      const uint32_t before3 = kv_before(n3);
      few = !__any_sync(~0u, n3 > 4 * kKvCodes3);
      codes3 = window32(e, min(4 * starts[4] + before3, last_bit));
      if constexpr (P < kKvParts) {
#pragma unroll
        for (int v = 0; v < kKvParts - P; v++) skip2 += v < first_part ? 2 * codes_3(codes[v]) : 0;
        const uint64_t skipped = kv_shift_left(digits, 64 - skip2);
        skip3 = 4 * kv_threes((uint32_t)skipped, (uint32_t)(skipped >> 32));
      }
    }
    if (__builtin_expect(few, 1)) {
#pragma unroll
      for (int i = 0; i < P; i++) {
        uint32_t r[4], a[8];
        skip2 += kv_rows_2(r, table, bank, kv_shift_right(digits, skip2 & 0xFF), q[i % 2]);
        if (i + 1 < P) kv_rows_1(q[(i + 1) % 2], table, bank, mine[i + 1 < P ? i + 1 : 0]);
        const uint32_t s[4] = {w.sign_mantissa[i].x, w.sign_mantissa[i].y, w.sign_mantissa[i].z, w.sign_mantissa[i].w};
        w.sign_mantissa[i] = __ldcs((const uint4 *)(then + 512 * i));
#pragma unroll
        for (int j = 0; j < 4; j++) {
          kv_join(a + 2 * j, q[i % 2][j], r[j], __funnelshift_r(codes3, codes3, skip3), s[j], factors);
          skip3 += r[j] >> 15; /* 4 bits a digit 3; the mask adds multiples of 512 */
        }
        if (__builtin_expect(patched >> (first_part + i) & 1, 0))
          kv_patch_part(o, first_exception, exception, first_part + i, a);
        use.part(i, a, false);
      }
    } else { /* one by one, from memory of any kind */
      const KvEscapes e = {(o.held ? shared_escapes : page + GLYD_KV_ESCAPES_AT(D)) + first, room};
      const uint32_t shift = strip % 2 * 16, at = strip % 4 / 2 * 4;
      uint32_t digits_at = 2 * (e.word(at) >> shift & 0xFFFF) + before2, p = digits_at, n3 = 0;
      skip2 = skip3 = 0;
#pragma unroll
      for (int v = 0; v < 4; v++) {
        const uint32_t x = window32(e, min(p, last_bit)), n = 2 * codes_3(codes[v]);
        const uint32_t threes = 4 * __popc(codes_3_at(x) & ~__funnelshift_lc(0, ~0u, n));
        skip2 += v < first_part ? n : 0;
        skip3 += v < first_part ? threes : 0;
        n3 += threes;
        p += n;
      }
      digits_at += skip2;
      uint32_t codes3_at = 4 * (e.word(8 + at) >> shift & 0xFFFF) + kv_before(n3) + skip3;
#pragma unroll
      for (int i = 0; i < P; i++) {
        uint32_t r[4], a[8];
        digits_at += kv_rows_2(r, table, bank, window32(e, min(digits_at, last_bit)), q[i % 2]) & 0xFF;
        if (i + 1 < P) kv_rows_1(q[(i + 1) % 2], table, bank, mine[i + 1 < P ? i + 1 : 0]);
        const uint32_t s[4] = {w.sign_mantissa[i].x, w.sign_mantissa[i].y, w.sign_mantissa[i].z, w.sign_mantissa[i].w};
        w.sign_mantissa[i] = __ldcs((const uint4 *)(then + 512 * i));
#pragma unroll
        for (int j = 0; j < 4; j++) {
          kv_join(a + 2 * j, q[i % 2][j], r[j], window32(e, min(codes3_at, last_bit)), s[j], factors);
          codes3_at += r[j] >> 15 & 0x1FE;
        }
        if (__builtin_expect(patched >> (first_part + i) & 1, 0))
          kv_patch_part(o, first_exception, exception, first_part + i, a);
        use.part(i, a, false);
      }
    }
    use.end(strip);
    then += GLYD_KV_STRIP;
  }
}

/* The same of plain rows, which give operands of tokens times channels. */
template <int D, int P, class Use>
__device__ __forceinline__ void kv_each_plain(const uint16_t *rows, int n_tokens, int first_part, Use &use) {
  const int lane = threadIdx.x % 32, token = 32 * first_part + lane / 4;
  const uint16_t *from = rows + token * D + lane % 4 * 2;
#pragma unroll 1
  for (int strip = 0; strip < D / 16; strip++) {
    use.begin(strip);
#pragma unroll
    for (int i = 0; i < P; i++) {
      uint32_t a[8];
#pragma unroll
      for (int j = 0; j < 8; j++) { /* channels 8 (j & 1) …, tokens 8 (j >> 1) … */
        const bool there = token + 32 * i + 8 * (j >> 1) < n_tokens;
        a[j] = there ? *(const uint32_t *)(from + (32 * i + 8 * (j >> 1)) * D + strip * 16 + 8 * (j & 1)) : 0;
      }
      use.part(i, a, true);
    }
    use.end(strip);
  }
}

template <int D> __device__ __forceinline__ KvSource kv_source(const KvAttentionArgs &p, int64_t head, int unit, int which) {
  KvSource s = {nullptr, nullptr, kKvTokens};
  if (unit < p.pages) {
    s.page = (const uint8_t *)(which ? p.v_pages : p.k_pages)[head * p.pages + unit];
    s.rows = (const uint16_t *)(s.page + GLYD_KV_HEADER);
  } else {
    s.rows = (which ? p.v_tail : p.k_tail) + head * p.tail * D;
    s.n_tokens = p.tail;
  }
  return s;
}

/* Ask for a page that comes next, by a warp: what every page is longer than. */
template <int D> __device__ __forceinline__ void kv_ask(const uint8_t *page) {
  for (uint32_t i = threadIdx.x % 32 * 128; i < GLYD_KV_ESCAPES_AT(D) + 12 * D; i += 32 * 128) {
#ifndef GLYD_EMULATION
    asm volatile("prefetch.global.L2 [%0];" ::"l"(page + i));
#else
    (void)*(const volatile uint8_t *)(page + i);
#endif
  }
}

/* Put sums of several parts together: weights of n parts by their maxima, in order; gives the sum. */
__device__ __forceinline__ float kv_merge_weights(const float *parts, int n, int stride, float &most) {
  most = -INFINITY;
  for (int i = 0; i < n; i++) most = fmaxf(most, parts[i * stride]);
  float sum = 0;
  if (most == -INFINITY) return 0;
  for (int i = 0; i < n; i++) sum += kv_exp2(parts[i * stride] - most) * parts[i * stride + 1];
  return sum;
}

/* What is done with operands of keys, scores of 16 tokens each, and of values, output of 16 channels: in one, so that
 * warps at either share instructions in the caches. */
template <int P> struct KvUse {
  float s[2 * P][4];     /* scores; then two words each of the probabilities as operand B */
  const uint32_t *query; /* of the lane */
  float *out;            /* of the lane */
  int step;              /* of `out` from strip to strip */
  float factor[2];       /* of the output that there is */
  bool is_values;
  uint32_t b0, b1;
  float o[4];
  __device__ __forceinline__ void begin(int strip) {
    if (is_values) {
#pragma unroll
      for (int i = 0; i < 4; i++) o[i] = out[strip * step + i] * factor[i & 1];
    } else {
      b0 = query[strip * 64], b1 = query[strip * 64 + 1];
    }
  }
  __device__ __forceinline__ void part(int i, const uint32_t (&a)[8], bool tokens_first) {
    uint32_t x[8];
    const bool turned = is_values == tokens_first;
#pragma unroll
    for (int k = 0; k < 8; k++) x[k] = a[k];
    if (turned) {
#pragma unroll
      for (int k = 0; k < 8; k++) x[k] = movmatrix(x[k]);
    }
    if (is_values) {
      mma_16x8x16(o, x, __float_as_uint(s[2 * i][0]), __float_as_uint(s[2 * i][1]));
      mma_16x8x16(o, x + 4, __float_as_uint(s[2 * i + 1][0]), __float_as_uint(s[2 * i + 1][1]));
    } else { /* tokens 8 … are its second matrix, channels 8 … its third */
      const uint32_t y[8] = {x[0], x[2], x[1], x[3], x[4], x[6], x[5], x[7]};
      mma_16x8x16(s[2 * i], y, b0, b1);
      mma_16x8x16(s[2 * i + 1], y + 4, b0, b1);
    }
  }
  __device__ __forceinline__ void end(int strip) {
    if (is_values) {
#pragma unroll
      for (int i = 0; i < 4; i++) out[strip * step + i] = o[i];
    }
  }
};

/* Where a lane's output of a strip is, in floats. */
template <int D, int W> __device__ __forceinline__ int kv_out_at(int warp, int lane) {
  return kv_out_in_table<D, W>() ? (warp * (D / 16) * 4 + lane / 8) * 64 + 32 + lane % 8 * 4
                                 : warp * (D / 16) * 128 + lane * 4;
}

template <int D, int P, int W> __global__ void __launch_bounds__(W * 32, 1) kv_attention_kernel(const KvAttentionArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(256) uint8_t shared[];
#endif
  constexpr int kSlices = kKvParts / P, kStep = kv_out_in_table<D, W>() ? 256 : 128;
  const int groups_of_heads = (p.heads / p.key_heads + kKvHeads - 1) / kKvHeads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int shared_heads = p.heads / p.key_heads; /* query heads of a key head */

  uint8_t *table = shared;
  uint32_t *query = (uint32_t *)(table + kKvTable);            /* [strips][32][2]: operand B */
  float *merge = (float *)(query + D / 16 * 32 * 2);           /* [warps][heads][maximum, sum] */
  uint8_t *all_escapes = (uint8_t *)(merge + W * kKvHeads * 2); /* [warps][kv_escapes_held, kEscapeRoom] */
  uint8_t *escapes = all_escapes + warp * (kv_escapes_held(D) + (int)kEscapeRoom);
  float *all_out = (float *)(kv_out_in_table<D, W>() ? table : all_escapes + W * (kv_escapes_held(D) + (int)kEscapeRoom));
  float *out = all_out + kv_out_at<D, W>(warp, lane);
  const uint32_t bank = lane * 4;
  kv_fill_table(table);

  const int64_t n_tasks = (int64_t)p.sequences * p.key_heads * groups_of_heads * p.splits;
#pragma unroll 1
  for (int64_t task = blockIdx.x; task < n_tasks; task += gridDim.x) {
    const int split = (int)(task % p.splits), group = (int)(task / p.splits % groups_of_heads);
    const int64_t head = task / p.splits / groups_of_heads; /* of all key heads of all sequences */
    const int sequence = (int)(head / p.key_heads), key_head = (int)(head % p.key_heads);
    const int first_head = key_head * shared_heads + group * kKvHeads;
    const int n_heads = min(kKvHeads, shared_heads - group * kKvHeads);
    __syncthreads(); /* nobody reads what the task before left */
    for (int i = threadIdx.x; i < D / 16 * 64; i += W * 32) {
      const int k = i / 64, l = i % 64 / 2, second = i % 2;
      const uint16_t *from = p.q + ((int64_t)sequence * p.heads + first_head + l / 4) * D + l % 4 * 2 + 16 * k + 8 * second;
      query[i] = l / 4 < n_heads ? *(const uint32_t *)from : 0;
    }
#pragma unroll
    for (int c = 0; c < D / 16; c++) *(uint4 *)(out + c * kStep) = make_uint4(0, 0, 0, 0);
    __syncthreads();

    KvSlice<P> w;
    bool ready = false; /* w is loaded */
    KvUse<P> use;
    use.query = query + lane * 2, use.out = out, use.step = kStep;
    float most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    const int start = p.starts ? p.starts[sequence] : 0;
    const int units = (p.pages + (p.tail ? 1 : 0)) * kSlices, each = (units + p.splits - 1) / p.splits;
    const int end = min(units, (split + 1) * each);
#pragma unroll 1
    for (int unit = split * each + warp; unit < end; unit += W) {
      const int page = unit / kSlices, part = unit % kSlices * P;
      const int seen = start - page * kKvTokens; /* first token of the page that is seen */
      const int n = page < p.pages ? kKvTokens : p.tail;
      if (seen >= min(n, 32 * (part + P)) || 32 * part >= n) continue; /* all of the warp */
      const bool any = page < p.pages; /* else the newest tokens */
      const int then = (unit + W) / kSlices; /* the page after this one */
      const uint8_t *next_keys = nullptr, *its_values = nullptr;
      if (any) {
        const bool more = unit + W < end && then < p.pages;
        next_keys = (const uint8_t *)p.k_pages[head * p.pages + (more ? then : page)];
        its_values = (const uint8_t *)p.v_pages[head * p.pages + page];
        kv_ask<D>(its_values);
        if (!ready) kv_load_first<D, P>(w, (const uint8_t *)p.k_pages[head * p.pages + page], part);
        ready = true;
        if (more) kv_ask<D>(next_keys);
      }
#pragma unroll
      for (int i = 0; i < 2 * P; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) use.s[i][j] = 0;
#pragma unroll 1
      for (int which = 0; which < 2; which++) {
        const KvSource source = kv_source<D>(p, head, page, which);
        const uint8_t *after = which ? next_keys : its_values; /* a page that comes next, or any */
        use.is_values = which != 0;
        if (kv_is_packed(source)) {
          kv_each_packed<D, P>(w, escapes, source.page, after, table, bank, part, use);
        } else {
          kv_each_plain<D, P>(source.rows, n, part, use);
          if (any) kv_load_first<D, P>(w, after, part);
        }
        if (which) break;
        /* tokens g and g + 8 of heads 2 q, 2 q + 1 of every 16 tokens */
#pragma unroll
        for (int h = 0; h < 2; h++) {
          float now = -INFINITY;
#pragma unroll
          for (int i = 0; i < 2 * P; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
              const int t = 32 * part + 16 * i + lane / 4 + 8 * half;
              float &score = use.s[i][2 * half + h];
              score = t >= seen && t < n ? score * p.scale : -INFINITY;
              now = fmaxf(now, score);
            }
#pragma unroll
          for (int d = 4; d < 32; d <<= 1) now = fmaxf(now, __shfl_xor_sync(~0u, now, d));
          now = fmaxf(now, most[h]);
          /* scores of -inf alone: nothing is added, and nothing there is changed */
          const float base = now == -INFINITY ? 0.0f : now;
          use.factor[h] = kv_exp2(most[h] - base);
          most[h] = now;
          sum[h] *= use.factor[h];
#pragma unroll
          for (int i = 0; i < 2 * P; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
              float &score = use.s[i][2 * half + h];
              score = kv_exp2(score - base);
              sum[h] += score;
            }
        }
#pragma unroll
        for (int i = 0; i < 2 * P; i++) { /* heads g of tokens 2 q, 2 q + 1 and 8 more: operand B */
          const uint32_t first = movmatrix(kv_bf16(use.s[i][0]) | kv_bf16(use.s[i][1]) << 16);
          const uint32_t second = movmatrix(kv_bf16(use.s[i][2]) | kv_bf16(use.s[i][3]) << 16);
          use.s[i][0] = __uint_as_float(first), use.s[i][1] = __uint_as_float(second);
        }
      }
    }

#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
      for (int d = 4; d < 32; d <<= 1) sum[h] += __shfl_xor_sync(~0u, sum[h], d);
      float *to = merge + (warp * kKvHeads + lane % 4 * 2 + h) * 2;
      if (lane < 4) to[0] = most[h], to[1] = sum[h];
    }
    __syncthreads();
    /* warps together, head by head in the order of warps */
    for (int i = threadIdx.x; i < n_heads * D; i += W * 32) {
      const int h = i / D, c = i % D;
      const float *of = merge + h * 2;
      constexpr int stride = kKvHeads * 2, wide = D / 16 * kStep;
      const float *from = all_out + kv_out_at<D, W>(0, c % 8 * 4 + h / 2) + c / 16 * kStep + c / 8 % 2 * 2 + h % 2;
      float all;
      const float total = kv_merge_weights(of, W, stride, all);
      float value = 0;
      if (all != -INFINITY)
        for (int v = 0; v < W; v++) value += kv_exp2(of[v * stride] - all) * from[v * wide];
      if (p.splits == 1) {
        p.out[((int64_t)sequence * p.heads + first_head + h) * D + c] = (uint16_t)kv_bf16(total > 0 ? value / total : 0.0f);
      } else {
        float *to = p.partial + ((((int64_t)head * groups_of_heads + group) * p.splits + split) * kKvHeads + h) * (D + 2);
        if (c == 0) to[0] = all, to[1] = total;
        to[2 + c] = value;
      }
    }
  }
}

/* Ranges of pages together, in their order. A block a query head, D threads. */
template <int D> __global__ void __launch_bounds__(D) kv_merge_kernel(const KvAttentionArgs p) {
  const int groups_of_heads = (p.heads / p.key_heads + kKvHeads - 1) / kKvHeads;
  const int shared_heads = p.heads / p.key_heads, c = threadIdx.x;
  const int64_t sequence = blockIdx.x / p.heads;
  const int query_head = (int)(blockIdx.x % p.heads), key_head = query_head / shared_heads;
  const int within = query_head % shared_heads;
  const int64_t block = (sequence * p.key_heads + key_head) * groups_of_heads + within / kKvHeads;
  constexpr int stride = kKvHeads * (D + 2);
  const float *of = p.partial + block * p.splits * stride + within % kKvHeads * (D + 2);
  float most, value = 0;
  const float sum = kv_merge_weights(of, p.splits, stride, most);
  if (most != -INFINITY)
    for (int i = 0; i < p.splits; i++) value += kv_exp2(of[i * stride] - most) * of[i * stride + 2 + c];
  p.out[((int64_t)sequence * p.heads + query_head) * D + c] = (uint16_t)kv_bf16(sum > 0 ? value / sum : 0.0f);
}

#endif
