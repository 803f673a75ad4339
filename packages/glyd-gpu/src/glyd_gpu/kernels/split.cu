/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Launcher of the products with split roles: checks what it is given, finds the sections of
 * the pack, describes the activations to the copy engine. Without code for
 * sm_90a in the library it says so.
 */
#include "glyd_gpu.h"
#include "ring_arguments_sm90.cuh"
#include "split_tiered_sm90.cuh"
#include "tensor_map.h"

namespace {

glyd::SplitConfig config_of(const int32_t *config) {
  return {config[0], config[1], config[2], config[3], config[4], config[5]};
}
/* what split_room counts with; the switch of the kernels knows what was compiled */
bool valid(const glyd::SplitConfig &c) {
  return c.tokens >= 8 && c.tokens <= 256 && c.consumers >= 1 && c.consumers <= 4 && c.decoders >= 1 &&
         c.decoders <= 5 && c.cluster >= 0 && c.cluster <= 8 && (c.cluster > 0 || c.workers >= 1);
}

} // namespace

int64_t glyd_gpu_product_split_workspace(const int64_t *, uint64_t, const int32_t *config) {
  const glyd::SplitConfig c = config_of(config);
  if (!valid(c)) return -GLYD_E_PARAMETER;
  return c.cluster ? 0 : glyd::kCounterBytes + (int64_t)c.workers * 2 * c.consumers * 64 * c.tokens * 4;
}

int glyd_gpu_product_split(void *y, const void *x, uint64_t tokens, const void *bias, const void *pack,
                           uint64_t pack_nbytes, const int64_t *meta, void *workspace, uint64_t workspace_nbytes,
                           const int32_t *config, void *stream) {
  using namespace glyd;
  if (tokens == 0) return 0;
  const SplitConfig c = config_of(config);
  PackView v;
  if (const int status = glyd_gpu_view(&v, pack, pack_nbytes, meta)) return status;
  if (v.layout != GLYD_WEIGHTS_TIERED || !takes(v, y, x, tokens) || !valid(c)) return -GLYD_E_PARAMETER;
  SplitArgs p = {};
  set_arguments(p, v, y, x, tokens, bias);
  p.cluster = c.cluster, p.dependent = c.dependent;
  if (const int64_t bytes = glyd_gpu_product_split_workspace(meta, tokens, config)) {
    const int64_t row_tiles = (v.row_blocks + c.consumers - 1) / c.consumers,
                  token_tiles = ((int64_t)tokens + c.tokens - 1) / c.tokens;
    if (row_tiles * token_tiles * c.consumers * 4 > kCounterBytes) return -GLYD_E_PARAMETER;
    if ((int64_t)workspace_nbytes < bytes || !aligned(workspace, 16)) return -GLYD_E_BUFFER;
    p.counters = static_cast<unsigned *>(workspace);
    p.partials = reinterpret_cast<float *>(static_cast<uint8_t *>(workspace) + kCounterBytes);
  }
  const SplitRoom room = split_room(c, (int)meta[5], kSharedMaxHopper);
  if (room.shared < 0) return -GLYD_E_PARAMETER;
  if (const int e = check_shared(room.shared)) return e;
  set_room(p, room);
  CUtensorMap mx;
  if (const int e = tensor_map_rows(&mx, x, tokens, (uint64_t)v.cols, c.tokens)) return e;
  return split_launch_tiered ? split_launch_tiered(mx, p, c, room, static_cast<cudaStream_t>(stream))
                             : (int)cudaErrorNoKernelImageForDevice;
}
