/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * The kernel of a paged cache as a function for the CPU; tests/test_paged_kernel.py.
 */
#include "paged_attention.cuh"

#define EXPORT extern "C" __attribute__((visibility("default")))

template <int Lanes, int Heads> static void attention(const PagedArgs &p) {
  const int groups = (p.heads / p.key_heads + Heads - 1) / Heads;
  emulation::launch({(unsigned)p.splits, (unsigned)(p.key_heads * groups), (unsigned)p.sequences}, kPagedThreads,
                    paged_shared<Lanes, Heads>(), [&] { paged_attention_kernel<Lanes, Heads>(p); });
  if (p.splits > 1)
    emulation::launch({(unsigned)(p.sequences * p.heads), 1, 1}, (unsigned)((p.channels + 31) / 32 * 32), kPagedSplits * 4,
                      [&] { paged_merge_kernel(p); });
}
template <int Lanes> static void attention_heads(const PagedArgs &p) {
  const int sharing = p.heads / p.key_heads;
  if (sharing <= 1) attention<Lanes, 1>(p);
  else if (sharing <= 2) attention<Lanes, 2>(p);
  else if (sharing <= 4) attention<Lanes, 4>(p);
  else attention<Lanes, kPagedHeads>(p);
}

/* numbers: sequences, heads, key heads, channels, slots, pages, page tokens as a power of two, page stride, splits,
 * window, then the strides of rows and heads of q, new_k and new_v */
EXPORT void emulated_paged_attention(void *out, float *partial, const void *q, void *k, void *v, const void *new_k,
                                     const void *new_v, const int32_t *tables, const int32_t *lengths,
                                     const int64_t *numbers, float scale, uint32_t order) {
  emulation::order = order;
  PagedArgs p;
  p.out = (uint16_t *)out, p.partial = partial;
  p.q = (const uint16_t *)q, p.k = (uint16_t *)k, p.v = (uint16_t *)v;
  p.new_k = (const uint16_t *)new_k, p.new_v = (const uint16_t *)new_v;
  p.tables = tables, p.lengths = lengths;
  p.sequences = (int)numbers[0], p.heads = (int)numbers[1], p.key_heads = (int)numbers[2], p.channels = (int)numbers[3];
  p.slots = numbers[4], p.pages = (int)numbers[5], p.page_shift = (int)numbers[6], p.page_stride = (int)numbers[7];
  p.splits = (int)numbers[8], p.window = (int)numbers[9];
  p.q_row = numbers[10], p.q_head = numbers[11], p.k_row = numbers[12], p.k_head = numbers[13];
  p.v_row = numbers[14], p.v_head = numbers[15];
  p.scale = scale * 1.4426950408889634f;
  if (p.channels <= 64) attention_heads<8>(p);
  else if (p.channels <= 128) attention_heads<16>(p);
  else attention_heads<32>(p);
}
