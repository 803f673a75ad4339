/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Launcher of the staged products: of mma12 packs, and of plain weights by the same
 * kernel. Without code for sm_90a in the library it says so.
 */
#include "glyd_gpu.h"
#include "pack_view.cuh"
#include "staged_sm90.cuh"
#include "tensor_map.h"

namespace {

using namespace glyd;

constexpr int kSharedMaxHopper = 227 * 1024, kStagedCounters = 1 << 20; /* the start of the workspace, as the ring's */
constexpr int kSlotsMax = 7;

StagedConfig read_config(const int32_t *c) { return {c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]}; }

bool valid(const StagedConfig &c) {
  return (c.tokens == 32 || c.tokens == 64 || c.tokens == 128 || c.tokens == 256) &&
         c.blocks == 2 && c.cluster >= 0 && c.cluster <= 8 &&
         (c.cluster || c.workers >= 1) && c.workers <= 4096 && c.group >= 1 && c.group <= 4096 && c.weight_slots >= 2 &&
         c.weight_slots <= kSlotsMax && c.packed_slots >= 2 && c.packed_slots <= kSlotsMax + 1;
}
int ring_bytes(const StagedConfig &c) { /* all three; partial sums of a cluster take their place */
  return c.weight_slots * c.blocks * (int)kStagedTile + (c.weight_slots + 1) * c.tokens * 128 +
         c.packed_slots * c.blocks * GLYD_WEIGHTS_MMA12_TILE;
}
int shared_bytes(const StagedConfig &c) { return 1024 + ring_bytes(c) + kStagedBars + 16 * kRingOut; }
int divide(StagedWork &work, const StagedConfig &c, int64_t rows, int64_t cols, uint64_t tokens) {
  if (!valid(c) || rows < 1 || cols < 1 || rows > 0x7FFFFFFF || tokens > 0x3FFFFFFF || cols > (1 << 26) - 64 ||
      !staged_divide(work, c, rows, cols, tokens))
    return -GLYD_E_PARAMETER;
  return 0;
}
int64_t workspace_bytes(const StagedWork &work, const StagedConfig &c) {
  return work.split && work.cluster == 1 ? kStagedCounters + (int64_t)work.split_workers * 2 * c.blocks * 64 * c.tokens * 4 : 0;
}
bool aligned(const void *p, uintptr_t n) { return reinterpret_cast<uintptr_t>(p) % n == 0; }

int run(StagedArgs &p, const StagedConfig &c, void *y, const void *x, uint64_t tokens, const void *bias,
        const void *plain, int64_t rows, int64_t cols, void *workspace, uint64_t workspace_nbytes, void *stream) {
  RingArgs &r = p.ring;
  if (const int status = divide(p.work, c, rows, cols, tokens)) return status;
  const int shared = shared_bytes(c);
  if (cols % 8 || !aligned(x, 16) || !aligned(y, 16) || shared > kSharedMaxHopper ||
      (p.work.cluster > 1 && ring_bytes(c) < c.blocks * c.tokens * 256))
    return -GLYD_E_PARAMETER;
  if (const int64_t bytes = workspace_bytes(p.work, c)) {
    if ((int64_t)workspace_nbytes < bytes || !aligned(workspace, 16)) return -GLYD_E_BUFFER;
    r.counters = static_cast<unsigned *>(workspace);
    r.partials = reinterpret_cast<float *>(static_cast<uint8_t *>(workspace) + kStagedCounters);
  }
  r.n_blocks = (int)((rows + 63) / 64), r.n_tiles = p.work.steps;
  p.weight_slots = c.weight_slots, p.x_slots = c.weight_slots + 1, p.packed_slots = c.packed_slots;
  r.rows = rows, r.cols = (int)cols, r.tokens = r.tile_tokens = (int)tokens, r.dependent = c.dependent;
  r.bias = static_cast<const __nv_bfloat16 *>(bias), r.y = static_cast<__nv_bfloat16 *>(y);
  CUtensorMap mx, mw = {};
  int status = tensor_map_rows(&mx, x, tokens, (uint64_t)cols, c.tokens);
  if (!status && plain) status = tensor_map_rows(&mw, plain, (uint64_t)rows, (uint64_t)cols, c.blocks * 64);
  if (status) return status;
  return staged_launch ? staged_launch(mx, mw, p, c, plain != nullptr, shared, static_cast<cudaStream_t>(stream))
                       : (int)cudaErrorNoKernelImageForDevice;
}

} // namespace

int64_t glyd_gpu_product_staged_workspace(int64_t rows, int64_t cols, uint64_t tokens, const int32_t *config) {
  StagedWork work;
  const StagedConfig c = read_config(config);
  if (const int status = divide(work, c, rows, cols, tokens)) return status;
  return workspace_bytes(work, c);
}

int glyd_gpu_product_staged(void *y, const void *x, uint64_t tokens, const void *bias, const void *pack,
                            uint64_t pack_nbytes, const int64_t *meta, void *workspace, uint64_t workspace_nbytes,
                            const int32_t *config, void *stream) {
  if (tokens == 0) return 0;
  PackView v;
  if (const int status = glyd_gpu_view(&v, pack, pack_nbytes, meta)) return status;
  if (v.layout != GLYD_WEIGHTS_MMA12 || v.n_exceptions > 0x7FFFFFFF) return -GLYD_E_PARAMETER;
  StagedArgs p = {};
  RingArgs &r = p.ring;
  r.blocks = v.base + GLYD_WEIGHTS_HEADER, r.tiles = v.base + v.tiles_at;
  r.places = reinterpret_cast<const uint32_t *>(v.base + v.places_at);
  r.values = reinterpret_cast<const uint16_t *>(v.base + v.values_at);
  r.n_exceptions = (uint64_t)v.n_exceptions;
  return run(p, read_config(config), y, x, tokens, bias, nullptr, v.rows, v.cols, workspace, workspace_nbytes, stream);
}

int glyd_gpu_product_plain(void *y, const void *x, uint64_t tokens, const void *bias, const void *weight, int64_t rows,
                           int64_t cols, void *workspace, uint64_t workspace_nbytes, const int32_t *config,
                           void *stream) {
  if (tokens == 0) return 0;
  if (!weight || !aligned(weight, 16)) return -GLYD_E_PARAMETER;
  StagedArgs p = {};
  return run(p, read_config(config), y, x, tokens, bias, weight, rows, cols, workspace, workspace_nbytes, stream);
}
