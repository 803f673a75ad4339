/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Product with a packed matrix on every architecture: y = x · Wᵀ + bias for up
 * to kTokensMax tokens. A block of four warps owns a row block and a range of
 * tiles; decoded registers feed mma.sync.m16n8k16 directly. Its partial sums,
 * scaled to the rows' exponents and with the range's exceptions added, go to
 * the workspace; a second kernel adds the ranges in order, and the bias.
 *
 * The order of all sums depends on the matrix's shape alone: the same bits at
 * every run, and for a token whatever else is in the batch.
 *
 * The same kernel multiplies with one expert of a stack for each token: then a
 * block takes its row block from the token's expert, read on the device.
 */
#include <cuda_bf16.h>

#include "glyd_gpu.h"
#include "tile_decode.cuh"

constexpr int kTokensMax = 64;    /* of a launch */
constexpr int kBlocksWanted = 512; /* of a launch: about four on every multiprocessor of a large GPU */
constexpr int kSplitsMax = 64;
constexpr uint64_t kSlotsMax = 65535;
constexpr int kSlotsUsual = 8; /* experts of a token: ranges are cut for so many, whatever their number is */

struct LinearArgs {
  PackView view;
  const uint16_t *x;   /* [slots][tokens, cols] bf16 */
  float *partial;      /* [splits][slots][tokens][out_rows] */
  const void *experts; /* [slots] i32 or i64; NULL: one slot, and all rows are one expert's */
  int64_t n_experts, expert_blocks, out_rows;
  int64_t split_tiles;
  int tokens, splits, slots, id_nbytes;
};

static int splits_of(const PackView &v, int64_t row_blocks) {
  int64_t n = kBlocksWanted / row_blocks;
  n = n < kSplitsMax ? n : kSplitsMax;
  n = n < v.tiles ? n : v.tiles;
  return n < 1 ? 1 : (int)n;
}

__device__ __forceinline__ void mma(float (&d)[4], const uint32_t *a, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Activations of a tile's columns to shared memory [n_tokens][kStride bytes]; zero past the matrix and the tokens. */
constexpr int kStride = GLYD_WEIGHTS_TIERED_COLS * 2 + 16; /* of a token: eight tokens' words lie in 32 banks */

template <int COLS>
__device__ __forceinline__ void load_activations(const LinearArgs &p, const uint16_t *x, uint8_t *to, int n_tokens,
                                                 int64_t col) {
  const int64_t cols = p.view.cols;
  if (cols % 8 == 0 && (uintptr_t)p.x % 16 == 0) {
    constexpr int pieces = COLS / 8;
    for (int i = threadIdx.x; i < n_tokens * pieces; i += blockDim.x) {
      const int m = i / pieces, c = i % pieces * 8;
      uint4 v = make_uint4(0, 0, 0, 0);
      if (m < p.tokens && col + c < cols) v = *(const uint4 *)(x + m * cols + col + c);
      *(uint4 *)(to + m * kStride + c * 2) = v;
    }
    return;
  }
  for (int i = threadIdx.x; i < n_tokens * COLS; i += blockDim.x) {
    const int m = i / COLS, c = i % COLS;
    *(uint16_t *)(to + m * kStride + c * 2) = m < p.tokens && col + c < cols ? x[m * cols + col + c] : (uint16_t)0;
  }
}

__device__ __forceinline__ float bf16_float(uint32_t bits) { return __uint_as_float(bits << 16); }

/* Add what the exceptions of columns col … col_end - 1 change for eight tokens to sums [4 warps][64 rows][8 tokens].
 * Warp w takes entries 32 w … 32 w + 31 of every 128; entries of one row in order of their lane. */
template <int LAYOUT>
__device__ __forceinline__ void add_exceptions(const LinearArgs &p, const uint16_t *x, const RowBlock &b, uint32_t first,
                                               int64_t col_end, int token, float *sums) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float *own = sums + warp * GLYD_WEIGHTS_ROWS * 8;
  for (uint64_t i = (uint64_t)first + warp * 32; i < b.n_exceptions; i += 128) {
    const bool there = i + lane < b.n_exceptions;
    const uint32_t place = there ? b.places[i + lane] : ~0u, row = place % GLYD_WEIGHTS_ROWS;
    const int64_t c = place / GLYD_WEIGHTS_ROWS;
    const bool counts = there && c < col_end && c < p.view.cols;
    if (!__any_sync(~0u, counts)) break;
    float change = 0;
    if (counts) {
      change = bf16_float(b.values[i + lane]);
      if (LAYOUT == GLYD_WEIGHTS_MMA12 && b.bases[row] != 0) change -= bf16_float((uint32_t)b.bases[row] << 8);
    }
    const uint32_t same = __match_any_sync(~0u, counts ? row : 64 + lane);
    const uint32_t rank = __popc(same & ((1u << lane) - 1));
    for (uint32_t turn = 0; __any_sync(~0u, counts && rank >= turn); turn++) {
      if (counts && rank == turn)
        for (int m = 0; m < 8 && token + m < p.tokens; m++)
          own[row * 8 + m] += change * bf16_float(x[(int64_t)(token + m) * p.view.cols + c]);
      __syncwarp();
    }
  }
}

/* The expert of a slot; one that the stack does not have is its last. */
__device__ __forceinline__ int64_t expert_of(const LinearArgs &p, int64_t slot) {
  const int64_t id = p.id_nbytes == 8 ? ((const int64_t *)p.experts)[slot] : ((const int32_t *)p.experts)[slot];
  return min(max(id, (int64_t)0), p.n_experts - 1);
}

extern __shared__ __align__(128) uint8_t linear_shared[]; /* activations, sums, then escapes of a tiered tile */

template <int LAYOUT, int NT> __global__ void __launch_bounds__(128) linear_generic_kernel(const LinearArgs p) {
  constexpr int cols = LAYOUT == GLYD_WEIGHTS_TIERED ? GLYD_WEIGHTS_TIERED_COLS : GLYD_WEIGHTS_MMA12_COLS;
  __shared__ TieredTables tables;
  uint8_t *activations = linear_shared, *escapes = linear_shared + NT * 8 * kStride;
  float *sums = (float *)linear_shared; /* after the last tile, in place of the activations: [4][64][8] */
  const int64_t local = blockIdx.x / p.splits, split = blockIdx.x % p.splits, slot = blockIdx.y;
  const int64_t block = local + (p.experts ? expert_of(p, slot) * p.expert_blocks : 0);
  const uint16_t *x = p.x + slot * p.tokens * p.view.cols;
  const int64_t first = split * p.split_tiles, end = min(first + p.split_tiles, p.view.tiles);
  const RowBlock b = row_block(p.view, block);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
  if (LAYOUT == GLYD_WEIGHTS_TIERED) fill_tables(&tables);
  float d[NT][4] = {};
  for (int64_t t = first; t < end; t++) {
    const uint4 *from = (const uint4 *)tile_of(p.view, block, t) + threadIdx.x;
    uint4 bytes[cols / 32]; /* low bytes or signs and mantissas */
#pragma unroll
    for (int v = 0; v < cols / 32; v++) bytes[v] = __ldcs(from + 128 * v);
    const uint4 codes = __ldcs(from + 128 * (cols / 32));
    SharedEscapes e = {escapes, 0};
    __syncthreads(); /* the last tile is used up */
    if (LAYOUT == GLYD_WEIGHTS_TIERED) {
      const uint8_t *at = escapes_of(p.view, b, block, t, &e.nbytes);
      for (uint32_t i = threadIdx.x * 16; i < e.nbytes; i += 128 * 16) *(uint4 *)(escapes + i) = *(const uint4 *)(at + i);
    }
    load_activations<cols>(p, x, activations, NT * 8, t * cols);
    __syncthreads();
    TieredThread state;
    if (LAYOUT == GLYD_WEIGHTS_TIERED) state = tiered_thread(e, codes, warp);
    const uint8_t *mine = activations + g * kStride + q * 4;
#pragma unroll
    for (int v = 0; v < cols / 32; v++) {
      uint32_t a[8];
      if (LAYOUT == GLYD_WEIGHTS_TIERED)
        decode_tiered(e, tables, state, v, bytes[v], a);
      else
        decode_mma12(bytes[v], v ? codes.z : codes.x, v ? codes.w : codes.y, a);
#pragma unroll
      for (int s = 0; s < 2; s++)
#pragma unroll
        for (int n = 0; n < NT; n++) {
          const uint8_t *at = mine + n * 8 * kStride + (2 * v + s) * 32;
          mma(d[n], a + 4 * s, *(const uint32_t *)at, *(const uint32_t *)(at + 16));
        }
    }
  }
  const uint32_t row = warp * 16 + g;
  const float f0 = __uint_as_float(factor_bits(LAYOUT, b.bases[row]) << 23);
  const float f1 = __uint_as_float(factor_bits(LAYOUT, b.bases[row + 8]) << 23);
  const bool adds = b.n_exceptions != 0 && first < end; /* ranges at the end may have no tiles */
  const uint32_t first_exception = adds ? first_place(b, (uint32_t)(first * cols * GLYD_WEIGHTS_ROWS)) : 0;
#pragma unroll
  for (int n = 0; n < NT; n++) {
    float y[4] = {d[n][0] * f0, d[n][1] * f0, d[n][2] * f1, d[n][3] * f1};
    if (adds) {
      __syncthreads();
      for (int i = threadIdx.x; i < 4 * GLYD_WEIGHTS_ROWS * 8; i += 128) sums[i] = 0;
      __syncthreads();
      add_exceptions<LAYOUT>(p, x, b, first_exception, end * cols, n * 8, sums);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < 4; i++)
        for (int w = 0; w < 4; w++) y[i] += sums[(w * GLYD_WEIGHTS_ROWS + row + i / 2 * 8) * 8 + 2 * q + i % 2];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int64_t r = local * GLYD_WEIGHTS_ROWS + row + i / 2 * 8;
      const int m = n * 8 + 2 * (int)q + i % 2;
      if (r < p.out_rows && m < p.tokens) p.partial[((split * p.slots + slot) * p.tokens + m) * p.out_rows + r] = y[i];
    }
  }
}

/* y = the ranges' sums in order, plus bias, rounded once. */
__global__ void linear_sum_kernel(uint16_t *y, const float *partial, const uint16_t *bias, int64_t rows, int64_t n, int splits) {
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
    float sum = partial[i];
    for (int s = 1; s < splits; s++) sum += partial[s * n + i];
    if (bias) sum += bf16_float(bias[i % rows]);
    y[i] = __bfloat16_as_ushort(__float2bfloat16_rn(sum));
  }
}

template <int LAYOUT, int NT> static int launch(const LinearArgs &p, cudaStream_t stream) {
  int shared = NT * 8 * kStride;
  const int sums = 4 * GLYD_WEIGHTS_ROWS * 8 * (int)sizeof(float);
  if (LAYOUT == GLYD_WEIGHTS_TIERED) shared += (int)(p.view.tile_escape_max + kEscapeRoom);
  shared = shared > sums ? shared : sums;
  const dim3 grid((unsigned)(p.expert_blocks * p.splits), (unsigned)p.slots);
  linear_generic_kernel<LAYOUT, NT><<<grid, 128, shared, stream>>>(p);
  return (int)cudaGetLastError();
}
template <int LAYOUT> static int launch_tokens(const LinearArgs &p, cudaStream_t stream) {
  if (p.tokens <= 8) return launch<LAYOUT, 1>(p, stream);
  if (p.tokens <= 16) return launch<LAYOUT, 2>(p, stream);
  if (p.tokens <= 32) return launch<LAYOUT, 4>(p, stream);
  return launch<LAYOUT, 8>(p, stream);
}

int64_t glyd_gpu_linear_generic_workspace(uint64_t tokens, const int64_t *meta) {
  PackView v;
  const int status = glyd_gpu_view(&v, nullptr, UINT64_MAX, meta);
  if (status != 0) return status;
  return tokens > kTokensMax ? -GLYD_E_PARAMETER : (int64_t)tokens * v.rows * splits_of(v, v.row_blocks) * (int64_t)sizeof(float);
}

/* Launch, then add the ranges: y [slots][tokens][out_rows]. */
static int run(void *y, const void *bias, LinearArgs *p, void *workspace, uint64_t workspace_nbytes, void *stream) {
  const int64_t n = (int64_t)p->slots * p->tokens * p->out_rows, blocks = (n + 255) / 256;
  if ((uintptr_t)p->x % 2 != 0 || (uintptr_t)workspace % 16 != 0) return -GLYD_E_PARAMETER;
  p->partial = (float *)workspace;
  p->split_tiles = (p->view.tiles + p->splits - 1) / p->splits;
  if (workspace_nbytes < (uint64_t)n * p->splits * sizeof(float)) return -GLYD_E_BUFFER;
  if (const int bad = glyd_gpu_check_grid(p->expert_blocks * p->splits)) return bad;
  cudaStream_t s = (cudaStream_t)stream;
  const int failed = p->view.layout == GLYD_WEIGHTS_MMA12 ? launch_tokens<GLYD_WEIGHTS_MMA12>(*p, s)
                                                          : launch_tokens<GLYD_WEIGHTS_TIERED>(*p, s);
  if (failed) return failed;
  linear_sum_kernel<<<(unsigned)(blocks < 65536 ? blocks : 65536), 256, 0, s>>>((uint16_t *)y, p->partial, (const uint16_t *)bias,
                                                                                p->out_rows, n, p->splits);
  return (int)cudaGetLastError();
}

int glyd_gpu_linear_generic(void *y, const void *x, uint64_t tokens, const void *bias, const void *pack,
                            uint64_t pack_nbytes, const int64_t *meta, void *workspace, uint64_t workspace_nbytes,
                            void *stream) {
  LinearArgs p = {};
  const int status = glyd_gpu_view(&p.view, pack, pack_nbytes, meta);
  if (status != 0) return status;
  if (tokens > kTokensMax) return -GLYD_E_PARAMETER;
  if (tokens == 0) return 0;
  p.x = (const uint16_t *)x;
  p.tokens = (int)tokens;
  p.slots = 1;
  p.expert_blocks = p.view.row_blocks;
  p.out_rows = p.view.rows;
  p.splits = splits_of(p.view, p.view.row_blocks);
  return run(y, bias, &p, workspace, workspace_nbytes, stream);
}

/* View a stack of experts of `size` rows each, which must be whole row blocks. */
static int view_experts(LinearArgs *p, const void *pack, uint64_t pack_nbytes, const int64_t *meta, uint64_t slots,
                        int64_t size) {
  const int status = glyd_gpu_view(&p->view, pack, pack_nbytes, meta);
  if (status != 0) return status;
  if (size <= 0 || size % GLYD_WEIGHTS_ROWS != 0 || p->view.rows % size != 0 || slots > kSlotsMax) return -GLYD_E_PARAMETER;
  p->tokens = 1;
  p->slots = (int)slots;
  p->n_experts = p->view.rows / size;
  p->expert_blocks = size / GLYD_WEIGHTS_ROWS;
  p->out_rows = size;
  p->splits = splits_of(p->view, p->expert_blocks * kSlotsUsual);
  return 0;
}

int64_t glyd_gpu_linear_experts_workspace(uint64_t slots, int64_t size, const int64_t *meta) {
  LinearArgs p = {};
  const int status = view_experts(&p, nullptr, UINT64_MAX, meta, slots, size);
  return status != 0 ? status : (int64_t)slots * size * p.splits * (int64_t)sizeof(float);
}

int glyd_gpu_linear_experts(void *y, const void *x, const void *experts, int id_nbytes, uint64_t slots, int64_t size,
                            const void *pack, uint64_t pack_nbytes, const int64_t *meta, void *workspace,
                            uint64_t workspace_nbytes, void *stream) {
  LinearArgs p = {};
  const int status = view_experts(&p, pack, pack_nbytes, meta, slots, size);
  if (status != 0) return status;
  if ((id_nbytes != 4 && id_nbytes != 8) || (uintptr_t)experts % id_nbytes != 0) return -GLYD_E_PARAMETER;
  if (slots == 0) return 0;
  p.x = (const uint16_t *)x;
  p.experts = experts;
  p.id_nbytes = id_nbytes;
  return run(y, nullptr, &p, workspace, workspace_nbytes, stream);
}
