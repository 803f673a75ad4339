/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Launcher of the products by pairs of blocks: checks what it is given, finds the
 * sections of the pack, describes the activations to the copy engine. Without code
 * for sm_90a in the library it says so.
 */
#include "glyd_gpu.h"
#include "pair_mma12_sm90.cuh"
#include "tensor_map.h"

int64_t glyd_gpu_product_pair_workspace(const int64_t *meta, uint64_t tokens, const int32_t *config) {
  glyd::PairSetup s;
  if (const int status = glyd::pair_set_up(s, meta, tokens, config)) return status;
  return s.nbytes;
}

int glyd_gpu_product_pair(void *y, const void *x, uint64_t tokens, const void *bias, const void *pack,
                          uint64_t pack_nbytes, const int64_t *meta, void *workspace, uint64_t workspace_nbytes,
                          const int32_t *config, void *stream) {
  using namespace glyd;
  if (tokens == 0) return 0;
  PackView v;
  if (const int status = glyd_gpu_view(&v, pack, pack_nbytes, meta)) return status;
  PairSetup s;
  if (const int status = pair_set_up(s, meta, tokens, config)) return status;
  if (!takes(v, y, x, tokens)) return -GLYD_E_PARAMETER;
  if (s.nbytes && ((int64_t)workspace_nbytes < s.nbytes || !aligned(workspace, 16))) return -GLYD_E_BUFFER;
  if (const int e = check_shared(s.room.shared)) return e;
  PairArgs a = {};
  set_arguments(a.ring, v, y, x, tokens, bias);
  pair_arguments(a, s, workspace);
  CUtensorMap mx;
  if (const int status = tensor_map_rows(&mx, x, tokens, (uint64_t)v.cols, s.work.tile_tokens / 2)) return status;
  return pair_launch_mma12 ? pair_launch_mma12(mx, a, s.config.tokens, s.room.shared, static_cast<cudaStream_t>(stream))
                           : (int)cudaErrorNoKernelImageForDevice;
}
