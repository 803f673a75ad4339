/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Launchers of attention over pages of keys and values.
 */
#include "glyd_gpu.h"
#include "kv_attention.cuh"
#include "kv_launch.cuh"

static int64_t groups_of(int64_t heads, int64_t key_heads) { return (heads / key_heads + kKvHeads - 1) / kKvHeads; }

int64_t glyd_gpu_kv_attention_workspace(const int32_t *shape) {
  const int64_t sequences = shape[0], heads = shape[1], key_heads = shape[2], splits = shape[5], channels = shape[6];
  if (sequences < 0 || key_heads < 1 || heads < key_heads || heads % key_heads != 0 || splits < 1 || channels < 1)
    return -GLYD_E_PARAMETER;
  return splits == 1 ? 0 : sequences * key_heads * groups_of(heads, key_heads) * splits * kKvHeads * (channels + 2) * 4;
}

/* Ranges together; from sm_90 on the launch does not wait for the kernel before it, the kernel does. */
template <int D> static int launch_merge(const KvAttentionArgs &p, int major, cudaStream_t stream) {
  if (p.splits == 1) return 0;
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)(p.sequences * p.heads));
  config.blockDim = dim3(D);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = major >= 9 ? 1 : 0;
  return (int)cudaLaunchKernelEx(&config, kv_merge_kernel<D>, p);
}
template <int D, class F> static int launch_form(const KvAttentionArgs &p, int64_t tasks, int multiprocessors, int major, cudaStream_t stream) {
  const dim3 grid((unsigned)(tasks < multiprocessors ? tasks : multiprocessors));
  const int status = kv_launch(kv_attention_kernel<D, F>, grid, F::kWarps * 32, kv_attention_shared<D, F>(), stream, p);
  return status != 0 ? status : launch_merge<D>(p, major, stream);
}
template <int D> static int launch_attention(const KvAttentionArgs &p, cudaStream_t stream) {
  int device, shared, multiprocessors, major;
  if (const cudaError_t bad = cudaGetDevice(&device)) return (int)bad;
  if (const cudaError_t bad = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device)) return (int)bad;
  if (const cudaError_t bad = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device)) return (int)bad;
  if (const cudaError_t bad = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)) return (int)bad;
  const int64_t tasks = (int64_t)p.sequences * p.key_heads * groups_of(p.heads, p.key_heads) * p.splits;
  using Roomy = typename KvForms<D>::Roomy;
  using Tight = typename KvForms<D>::Tight;
  static_assert(kv_attention_shared<D, Roomy>() <= 227 * 1024 && kv_attention_shared<D, Tight>() <= 99 * 1024, "shared memory");
  if (shared >= kv_attention_shared<D, Roomy>()) return launch_form<D, Roomy>(p, tasks, multiprocessors, major, stream);
  return launch_form<D, Tight>(p, tasks, multiprocessors, major, stream);
}

int glyd_gpu_kv_attention(void *out, const void *q, const void *k_pages, const void *v_pages, const void *k_tail,
                          const void *v_tail, const void *starts, const int32_t *shape, float scale, void *workspace,
                          uint64_t workspace_nbytes, void *stream) {
  const int64_t need = glyd_gpu_kv_attention_workspace(shape);
  if (need < 0) return (int)need;
  if (workspace_nbytes < (uint64_t)need) return -GLYD_E_BUFFER;
  KvAttentionArgs p;
  p.out = (uint16_t *)out;
  p.partial = (float *)workspace;
  p.q = (const uint16_t *)q;
  p.k_pages = (const uint64_t *)k_pages;
  p.v_pages = (const uint64_t *)v_pages;
  p.k_tail = (const uint16_t *)k_tail;
  p.v_tail = (const uint16_t *)v_tail;
  p.starts = (const int32_t *)starts;
  p.sequences = shape[0], p.heads = shape[1], p.key_heads = shape[2], p.pages = shape[3], p.tail = shape[4];
  p.splits = shape[5];
  p.scale = scale * 1.4426950408889634f;
  if (p.pages < 0 || p.tail < 0 || p.tail > kKvTokens || p.sequences > 65535 ||
      p.key_heads * groups_of(p.heads, p.key_heads) > 65535 || (int64_t)p.sequences * p.heads > 0x7FFFFFFF ||
      (uintptr_t)k_tail % 16 != 0 || (uintptr_t)v_tail % 16 != 0 || (uintptr_t)q % 4 != 0)
    return -GLYD_E_PARAMETER;
  if (p.sequences == 0) return 0;
  GLYD_GPU_KV_CHANNELS(shape[6], launch_attention, p, (cudaStream_t)stream);
}
