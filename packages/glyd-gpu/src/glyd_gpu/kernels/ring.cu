/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Launcher of the ring products: checks what it is given, finds the sections of
 * the pack, describes the activations to the copy engine. Without code for
 * sm_90a in the library it says so.
 */
#include "glyd_gpu.h"
#include "ring_arguments_sm90.cuh"
#include "ring_launch_sm90.h"
#include "tensor_map.h"

namespace {

using glyd::aligned;
using glyd::kCounterBytes;
using glyd::kSharedMaxHopper;
using glyd::kTokensMax;
using glyd::kTransposingBytes;

/* what ring_room counts with; the switches of the layouts know what was compiled */
bool valid(const glyd::RingConfig &c) {
  return c.tokens >= 8 && c.tokens <= 256 && c.wr >= 1 && c.wr <= 4 && c.wk >= 1 && c.wk <= 4 && c.kb >= 1 &&
         c.kb <= 8 && c.cluster >= 0 && c.cluster <= 8 && (c.cluster > 0 || (c.wk == 1 && c.workers >= 1));
}

int64_t partial_bytes(const glyd::RingConfig &c) {
  return c.cluster ? 0 : (int64_t)c.workers * 2 * c.wr * 64 * c.tokens * 4;
}
glyd::RingRoom room_of(const int64_t *meta, const glyd::RingConfig &c) {
  return ring_room(meta[0] == GLYD_WEIGHTS_TIERED, c, (int)meta[5], meta[4] ? meta[6] : 0, kSharedMaxHopper);
}
int64_t token_tiles(const glyd::RingConfig &c, uint64_t tokens) { return ((int64_t)tokens + c.tokens - 1) / c.tokens; }
int64_t transposed_bytes(const glyd::RingConfig &c, uint64_t tokens, int64_t cols) {
  return token_tiles(c, tokens) * c.tokens * cols * 2;
}

} // namespace

int64_t glyd_gpu_product_ring_workspace(const int64_t *meta, uint64_t tokens, const int32_t *config) {
  using namespace glyd;
  const RingConfig c = {config[0], config[1], config[2], config[3], config[4], config[5], config[6]};
  if (!valid(c) || tokens > kTokensMax || meta[2] < 1 || meta[2] > 0x7FFFFFFF) return -GLYD_E_PARAMETER;
  const int64_t bytes = partial_bytes(c) + (room_of(meta, c).transposes ? transposed_bytes(c, tokens, meta[2]) : 0);
  return bytes ? kCounterBytes + bytes : 0;
}

int64_t glyd_gpu_product_ring_exceptions(const int64_t *meta, const int32_t *config) {
  using namespace glyd;
  const RingConfig c = {config[0], config[1], config[2], config[3], config[4], config[5], config[6]};
  if (!valid(c)) return -GLYD_E_PARAMETER;
  const RingRoom room = room_of(meta, c);
  return room.shared < 0 ? -GLYD_E_PARAMETER : room.exc_cap;
}

int glyd_gpu_product_ring(void *y, const void *x, uint64_t tokens, const void *bias, const void *pack,
                          uint64_t pack_nbytes, const int64_t *meta, void *workspace, uint64_t workspace_nbytes,
                          const int32_t *config, void *stream) {
  using namespace glyd;
  if (tokens == 0) return 0;
  const RingConfig c = {config[0], config[1], config[2], config[3], config[4], config[5], config[6]};
  PackView v;
  if (const int status = glyd_gpu_view(&v, pack, pack_nbytes, meta)) return status;
  const bool tiered = v.layout == GLYD_WEIGHTS_TIERED;
  if (!takes(v, y, x, tokens) || !valid(c) ||
      (c.cluster == 0 && tokens > (uint64_t)c.tokens && !ring_many(tiered, c.tokens, c.wr * c.wk)))
    return -GLYD_E_PARAMETER;
  RingArgs p = {};
  set_arguments(p, v, y, x, tokens, bias);
  p.tile_tokens = ring_tile_tokens(tokens, c.tokens);
  p.wr = c.wr, p.wk = c.wk, p.kb = c.kb, p.cluster = c.cluster, p.dependent = c.dependent;
  p.early = ring_early(tiered);
  uint8_t *room_at = static_cast<uint8_t *>(workspace);
  if (const int64_t bytes = glyd_gpu_product_ring_workspace(meta, tokens, config)) {
    if (bytes < 0 || (p.n_blocks + 4) * 4 > kCounterBytes - kTransposingBytes) return -GLYD_E_PARAMETER;
    if ((int64_t)workspace_nbytes < bytes || !aligned(workspace, 16)) return -GLYD_E_BUFFER;
    p.counters = static_cast<unsigned *>(workspace);
    p.partials = reinterpret_cast<float *>(room_at + kCounterBytes);
  }
  const RingRoom room = room_of(meta, c);
  if (room.shared < 0 || (v.n_exceptions && room.exc_cap < 1)) return -GLYD_E_PARAMETER;
  if (room.transposes) {
    const int64_t parts = token_tiles(c, tokens) * (c.tokens / 64) * ((v.cols + 15) / 16);
    if (parts > 0x3FFFFFFF) return -GLYD_E_PARAMETER;
    p.transposing = reinterpret_cast<unsigned *>(room_at + kCounterBytes - kTransposingBytes);
    p.transposed = reinterpret_cast<uint16_t *>(room_at + kCounterBytes + partial_bytes(c));
    p.transposed_parts = (int)parts;
  }
  if (const int e = check_shared(room.shared)) return e;
  p.stage_bytes = room.stage_bytes, p.n_stages = room.n_stages, p.escape_slot = room.escape_slot;
  p.exc_cap = room.exc_cap;
  CUtensorMap mx;
  if (const int status = tensor_map_rows(&mx, x, tokens, (uint64_t)v.cols, p.tile_tokens)) return status;
  const auto launch = tiered ? ring_launch_tiered : ring_launch_mma12;
  return launch ? launch(mx, p, c, room, static_cast<cudaStream_t>(stream)) : (int)cudaErrorNoKernelImageForDevice;
}
