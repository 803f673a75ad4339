/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * A slab of 32 tokens on its way to shared memory, and from there to operands A
 * of mma.sync: packed, or as plain rows. Both give the same registers.
 * Tests run this code on the CPU as well (tests/emulation).
 */
#ifndef GLYD_GPU_KV_SLAB_CUH
#define GLYD_GPU_KV_SLAB_CUH

#include "kv_page.cuh"

/* How a block works: its warps, copies of the table of quads, and whether slabs are copied to shared memory first. */
template <int Warps, int Copies, bool IsCopied = true> struct KvForm {
  static constexpr int kWarps = Warps, kCopies = Copies;
  static constexpr bool kIsCopied = IsCopied;
};

/* Quads of lists that a warp has room for at once: those of a slab, mostly. */
template <int D> constexpr uint32_t kKvListRoom = D > 128 ? 2 * kKvSpelled : kKvSpelled;

/* Plain rows of 16 tokens in shared memory, so far apart that ldmatrix meets no bank twice, as operand A of a block. */
template <int D> constexpr int kKvPlainRow = 2 * D + 16;

/* Words of shared memory of a slab that is on its way: it, and the lists of its groups from a multiple of 16 bytes on; what
 * there is no room for is read where it is. */
template <int D> constexpr uint32_t kKvHeldWords = 64 * GLYD_KV_GROUPS(D) + 8;
template <int D> constexpr int kKvSlot = (int)(GLYD_KV_SLAB(D) + 2 * kKvHeldWords<D>);

/* Four 8 x 8 matrices of 16-bit values; a lane has the address of row lane % 8 of matrix lane / 8. */
template <bool Transposed> __device__ __forceinline__ void kv_ldmatrix(uint32_t (&a)[4], const uint8_t *row) {
#ifdef GLYD_EMULATION
  emulated_ldmatrix(a, row, Transposed);
#else
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
  if constexpr (Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(at)
                 : "memory");
#endif
}

/* Keys or values of a slab, on their way or at work. */
template <int D> struct KvSlab {
  const uint8_t *page;   /* of pages */
  const uint16_t *rows;  /* of plain rows, in a page or the newest ones */
  const uint8_t *header; /* in shared memory; NULL: rows */
  uint8_t *slot;
  int number, n;         /* which of the page, rows that there are */

  /* Ask for a packed slab and its lists, or for the first rows. */
  __device__ __forceinline__ void ask() const {
    const uint32_t lane = threadIdx.x % 32;
    if (header == nullptr) {
      ask_rows(0);
      return;
    }
    const uint8_t *from = page + GLYD_KV_SLABS_AT(D) + number * (int)GLYD_KV_SLAB(D) + lane * 16;
#pragma unroll
    for (uint32_t i = 0; i < GLYD_KV_SLAB(D); i += 512)
      if (i + 512 <= GLYD_KV_SLAB(D) || lane * 16 < GLYD_KV_SLAB(D) - i) copy_async16(slot + lane * 16 + i, from + i);
    const uint32_t most = kv_most_words<D>(header), first = kv_list_begin<D>(header, most, number, 0) / 8 * 8;
    const uint32_t end = kv_list_begin<D>(header, most, number, GLYD_KV_GROUPS(D));
#pragma unroll
    for (uint32_t i = 0; i < kKvHeldWords<D>; i += 256) {
      const uint32_t at = i + lane * 8;
      if (at < kKvHeldWords<D> && first + at < end)
        copy_async16(slot + GLYD_KV_SLAB(D) + 2 * at, page + GLYD_KV_LISTS_AT(D) + 2 * (first + at));
    }
  }
  /* The 16 rows of a step; zeros past the last: times a probability of 0, no NaN may stand there. */
  __device__ __forceinline__ void ask_rows(int step) const {
    const uint4 *from = (const uint4 *)(rows + (int64_t)16 * step * D);
#pragma unroll 4
    for (int i = threadIdx.x % 32; i < 2 * D; i += 32) {
      const int row = i / (D / 8), part = i % (D / 8);
      uint8_t *to = slot + row * kKvPlainRow<D> + part * 16;
      if (16 * step + row < n)
        copy_async16(to, from + i);
      else
        *(uint4 *)to = make_uint4(0, 0, 0, 0);
    }
  }
};
template <int D> constexpr bool kKvRowsFit = 16 * kKvPlainRow<D> <= kKvSlot<D>;

/* Operand A of a block of channels from 16 plain rows, in the order in which pages have them. */
template <int D, bool Values> __device__ __forceinline__ void kv_plain_block(uint32_t (&a)[4], const uint8_t *rows, int block) {
  const int lane = threadIdx.x % 32, r = lane % 8;
  const int row = Values ? r / 2 * 4 + r % 2 + lane / 16 * 2 : 2 * r + lane / 8 % 2, half = Values ? lane / 8 % 2 : lane / 16;
  uint32_t m[4];
  kv_ldmatrix<Values>(m, rows + row * kKvPlainRow<D> + block * 32 + half * 16);
  if constexpr (Values) {
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = m[i];
  } else {
    a[0] = prmt(m[0], m[2], 0x5410), a[1] = prmt(m[1], m[3], 0x5410);
    a[2] = prmt(m[0], m[2], 0x7632), a[3] = prmt(m[1], m[3], 0x7632);
  }
}

/* Operands A of a slab, step by step or block by block: use(block, step, a). `list`: of the warp, in a row of the form. */
template <int D, class F, bool Values, class Use>
__device__ __forceinline__ void kv_each_block(const KvSlab<D> &of, const uint8_t *table, uint32_t *list, Use use) {
  if (F::kIsCopied && of.header == nullptr) {
#pragma unroll 1
    for (int step = 0; step < kKvSteps; step++) {
      if (step) {
        __syncwarp(); /* nobody reads the rows before any more */
        of.ask_rows(step);
        cp_async_commit();
        cp_async_wait<0>();
        __syncwarp();
      }
#pragma unroll
      for (int block = 0; block < D / 16; block++) {
        uint32_t a[4];
        kv_plain_block<D, Values>(a, of.slot, block);
        if (step)
          use(block, 1, a);
        else
          use(block, 0, a);
      }
    }
    return;
  }
  const KvExtras extras = kv_extras<D>(of.header);
  const uint32_t n_codes = kv_n_codes(of.header);
  constexpr uint32_t kShift = KvLook<F::kCopies>::kShift;
  KvLook<F::kCopies> look;
  look.table = table;
  look.copy = threadIdx.x % F::kCopies * 4;
#ifndef GLYD_EMULATION
  asm("" : "+r"(look.copy)); /* else it is worked out again for every quad */
#endif
  look.limit = n_codes << kShift;
  const uint32_t list_at = (uint32_t)((uint8_t *)list - table) - look.limit - look.copy;
  const uint32_t begin = kv_list_begin<D>(of.header, extras.most, of.number, 0);
  const uint32_t end = kv_list_begin<D>(of.header, extras.most, of.number, GLYD_KV_GROUPS(D)), n = end > begin ? end - begin : 0;
  const uint8_t *bases = of.header + GLYD_KV_BASES_AT(D), *lists = of.page + GLYD_KV_LISTS_AT(D);
  if (extras.n_exceptions == 0 && n <= kKvListRoom<D>) {
    const bool held = F::kIsCopied && begin % 8 + n <= kKvHeldWords<D>;
    __syncwarp(); /* nobody reads the list before any more */
    kv_fill_list(list, F::kCopies, (const uint16_t *)(held ? of.slot + GLYD_KV_SLAB(D) + 2 * (begin % 8) : lists + 2 * begin), n);
    __syncwarp();
    KvCodes<D> codes;
    codes.template load<Values>(of.slot);
#pragma unroll
    for (uint32_t block = 0; block < D / 16; block++) {
      if (block % (GLYD_KV_GROUP / 16) == 0) {
        const uint32_t first = kv_list_begin<D>(of.header, extras.most, of.number, block / (GLYD_KV_GROUP / 16));
        look.list = list_at + (min(first - begin, n) << kShift);
      }
      uint32_t a[kKvSteps][4];
      kv_block<D, F::kCopies, Values>(a, of.slot, block, look, bases, [&](uint32_t s, uint32_t step) {
        return codes.template at<kShift>(s, 2 * block + step);
      });
      use((int)block, 0, a[0]);
      use((int)block, 1, a[1]);
    }
    return;
  }
  /* a page with exceptions, or with many quads that are spelled */
  look.list = list_at;
  const auto slowly = [&](uint32_t block) {
    if (block % (GLYD_KV_GROUP / 16) == 0) {
      const uint32_t group = block / (GLYD_KV_GROUP / 16), first = kv_list_begin<D>(of.header, extras.most, of.number, group);
      const uint32_t last = kv_list_begin<D>(of.header, extras.most, of.number, group + 1);
      __syncwarp();
      kv_fill_list(list, F::kCopies, (const uint16_t *)(lists + 2 * first), last > first ? min(last - first, kKvSpelled) : 0);
      __syncwarp();
    }
    uint32_t a[kKvSteps][4];
    kv_block<D, F::kCopies, Values>(a, of.slot, block, look, bases, [&](uint32_t s, uint32_t step) {
      return KvCodes<D>::template fetch<Values, kShift>(of.slot, s, 2 * block + step);
    });
    kv_put_exceptions<Values>(a, of.page, extras, of.number, block);
    use((int)block, 0, a[0]);
    use((int)block, 1, a[1]);
  };
  if constexpr (Values) { /* output has a register for each block */
#pragma unroll
    for (uint32_t block = 0; block < D / 16; block++) slowly(block);
  } else {
#pragma unroll 1
    for (uint32_t block = 0; block < D / 16; block++) slowly(block);
  }
}

#endif
