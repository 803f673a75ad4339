/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * The kernels of pages as functions for the CPU; tests/test_kv_kernels.py.
 */
#include "kv_attention.cuh"
#include "kv_pack.cuh"

#define EXPORT extern "C" __attribute__((visibility("default")))

template <int D> static void pack(const KvPackArgs &p, unsigned n) {
  emulation::launch({n, 1, 1}, kv_pack_threads(D), kv_pack_shared<D>(), [&] { kv_pack_kernel<D>(p); });
}
template <int D> static void unpack(const KvUnpackArgs &p) {
  emulation::launch({2, 1, 1}, kKvUnpackWarps * 32, kv_unpack_shared<D>(), [&] { kv_unpack_kernel<D>(p); });
}
template <int D, class F> static void attention(const KvAttentionArgs &p) {
  const int groups = (p.heads / p.key_heads + kKvHeads - 1) / kKvHeads;
  const unsigned tasks = (unsigned)(p.sequences * p.key_heads * groups * p.splits);
  const emulated_dim grid = {tasks < 3 ? tasks : 3, 1, 1};
  emulation::launch(grid, F::kWarps * 32, kv_attention_shared<D, F>(), [&] { kv_attention_kernel<D, F>(p); });
  if (p.splits > 1)
    emulation::launch({(unsigned)(p.sequences * p.heads), 1, 1}, D, 0, [&] { kv_merge_kernel<D>(p); });
}
/* As devices with little shared memory run it, or with much. */
template <int D> static void attention(const KvAttentionArgs &p, bool roomy) {
  if (roomy)
    attention<D, typename KvForms<D>::Roomy>(p);
  else
    attention<D, typename KvForms<D>::Tight>(p);
}

#define FOR_CHANNELS(channels, call) \
  switch (channels) {                \
  case 64: call(64); return 0;       \
  case 96: call(96); return 0;       \
  case 128: call(128); return 0;     \
  case 256: call(256); return 0;     \
  default: return -1;                \
  }

EXPORT void emulated_damaged(int is) { emulation::is_damaged = is != 0; }

EXPORT int emulated_kv_pack(const void *in, int channels, unsigned n, int64_t *sizes, void *out, uint32_t order) {
  emulation::order = order;
  const KvPackArgs p = {(const uint16_t *)in, sizes, (uint8_t *)out};
#define CALL(D) pack<D>(p, n)
  FOR_CHANNELS(channels, CALL)
#undef CALL
}

EXPORT int emulated_kv_place(void *out, const int64_t *places, const void *in, unsigned n, unsigned nbytes) {
  const KvPlaceArgs p = {(uint8_t *)out, places, (const uint8_t *)in, nbytes};
  emulation::launch({n, 1, 1}, kKvPlaceThreads, 0, [&] { kv_place_kernel(p); });
  return 0;
}

EXPORT int emulated_kv_unpack(void *out, int channels, unsigned n, const uint64_t *pages, uint32_t order) {
  emulation::order = order;
  const KvUnpackArgs p = {(uint16_t *)out, pages, n};
#define CALL(D) unpack<D>(p)
  FOR_CHANNELS(channels, CALL)
#undef CALL
}

/* numbers: sequences, heads, key heads, pages, tail, splits, much shared memory */
EXPORT int emulated_kv_attention(void *out, float *partial, const void *q, const uint64_t *k_pages,
                                 const uint64_t *v_pages, const void *k_tail, const void *v_tail, const int32_t *starts,
                                 const int *numbers, int channels, float scale, uint32_t order) {
  emulation::order = order;
  const KvAttentionArgs p = {(uint16_t *)out,
                             partial,
                             (const uint16_t *)q,
                             k_pages,
                             v_pages,
                             (const uint16_t *)k_tail,
                             (const uint16_t *)v_tail,
                             starts,
                             numbers[0],
                             numbers[1],
                             numbers[2],
                             numbers[3],
                             numbers[4],
                             numbers[5],
                             scale};
#define CALL(D) attention<D>(p, numbers[6] != 0)
  FOR_CHANNELS(channels, CALL)
#undef CALL
}
