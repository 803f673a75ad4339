/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Launcher of attention over a paged cache of plain keys and values.
 */
#include "paged_attention.cuh"

#include "glyd/status.h"
#include "glyd_gpu.h"

/* Places in the shape that the launcher takes. */
enum {
  kSequences, kHeads, kKeyHeads, kChannels, kSlots, kPages, kPageTokens, kPageStride, kSplits, kWindow,
  kQRow, kQHead, kKRow, kKHead, kVRow, kVHead, kShape
};

static bool is_possible(const int64_t *s) {
  for (int i = 0; i < kShape; i++)
    if (s[i] < 0 || (i < kQRow && s[i] > 0x7FFFFFFF && i != kSlots)) return false;
  for (int i = kQRow; i < kShape; i++)
    if (s[i] % 8 != 0) return false;
  const int64_t tokens = s[kPageTokens];
  return s[kSequences] <= 65535 && s[kKeyHeads] >= 1 && s[kHeads] >= s[kKeyHeads] && s[kHeads] % s[kKeyHeads] == 0 &&
         s[kHeads] <= 65535 && s[kChannels] >= 8 && s[kChannels] <= kPagedChannels && s[kChannels] % 8 == 0 &&
         s[kSlots] >= 1 && s[kSlots] <= ((int64_t)1 << 40) && s[kPages] >= 1 && tokens >= 1 && (tokens & (tokens - 1)) == 0 &&
         s[kPages] <= 0x7FFFFFFF / 2 / tokens && (s[kWindow] == 0 || s[kWindow] <= s[kPages] * tokens) && s[kPageStride] >= tokens && s[kSplits] >= 1 && s[kSplits] <= kPagedSplits;
}

int64_t glyd_gpu_paged_attention_workspace(const int64_t *shape) {
  if (!is_possible(shape)) return -GLYD_E_PARAMETER;
  return shape[kSplits] == 1 ? 0 : shape[kSequences] * shape[kHeads] * shape[kSplits] * (shape[kChannels] + 2) * 4;
}

template <int Lanes, int Heads> static int launch(const PagedArgs &p, cudaStream_t stream) {
  const int sharing = p.heads / p.key_heads, groups = (sharing + Heads - 1) / Heads;
  const dim3 grid((unsigned)p.splits, (unsigned)(p.key_heads * groups), (unsigned)p.sequences);
  constexpr int shared = paged_shared<Lanes, Heads>();
  static_assert(shared <= 48 * 1024, "what needs no permission");
  paged_attention_kernel<Lanes, Heads><<<grid, kPagedThreads, (size_t)shared, stream>>>(p);
  if (p.splits > 1) {
    const unsigned threads = (unsigned)((p.channels + 31) / 32 * 32);
    paged_merge_kernel<<<(unsigned)(p.sequences * p.heads), threads, 0, stream>>>(p);
  }
  return (int)cudaGetLastError();
}

template <int Lanes> static int launch_heads(const PagedArgs &p, cudaStream_t stream) {
  const int sharing = p.heads / p.key_heads;
  if (sharing <= 1) return launch<Lanes, 1>(p, stream);
  if (sharing <= 2) return launch<Lanes, 2>(p, stream);
  if (sharing <= 4) return launch<Lanes, 4>(p, stream);
  return launch<Lanes, kPagedHeads>(p, stream);
}

int glyd_gpu_paged_attention(void *out, const void *q, void *k_cache, void *v_cache, const void *new_k, const void *new_v,
                             const void *tables, const void *lengths, const int64_t *shape, float scale, void *workspace,
                             uint64_t workspace_nbytes, void *stream) {
  const int64_t need = glyd_gpu_paged_attention_workspace(shape);
  if (need < 0) return (int)need;
  if (workspace_nbytes < (uint64_t)need) return -GLYD_E_BUFFER;
  const uintptr_t places = (uintptr_t)q | (uintptr_t)k_cache | (uintptr_t)v_cache | (uintptr_t)new_k | (uintptr_t)new_v;
  if (places % 16 != 0 || (new_k == nullptr) != (new_v == nullptr)) return -GLYD_E_PARAMETER;
  PagedArgs p;
  p.out = (uint16_t *)out;
  p.partial = (float *)workspace;
  p.q = (const uint16_t *)q;
  p.k = (uint16_t *)k_cache, p.v = (uint16_t *)v_cache;
  p.new_k = (const uint16_t *)new_k, p.new_v = (const uint16_t *)new_v;
  p.tables = (const int32_t *)tables, p.lengths = (const int32_t *)lengths;
  p.slots = shape[kSlots];
  p.q_row = shape[kQRow], p.q_head = shape[kQHead];
  p.k_row = shape[kKRow], p.k_head = shape[kKHead];
  p.v_row = shape[kVRow], p.v_head = shape[kVHead];
  p.sequences = (int)shape[kSequences], p.heads = (int)shape[kHeads], p.key_heads = (int)shape[kKeyHeads];
  p.channels = (int)shape[kChannels], p.pages = (int)shape[kPages], p.page_stride = (int)shape[kPageStride];
  p.page_shift = 0;
  while (((int64_t)1 << p.page_shift) < shape[kPageTokens]) p.page_shift++;
  p.splits = (int)shape[kSplits], p.window = (int)shape[kWindow];
  p.scale = scale * 1.4426950408889634f;
  if (p.sequences == 0) return 0;
  if (p.channels <= 64) return launch_heads<8>(p, (cudaStream_t)stream);
  if (p.channels <= 128) return launch_heads<16>(p, (cudaStream_t)stream);
  return launch_heads<32>(p, (cudaStream_t)stream);
}
