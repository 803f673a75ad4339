/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * C interface of the kernels. Returns 0, a negative glyd_status (arguments that
 * cannot be) or a positive cudaError_t. Launchers run on the caller's current
 * device and the stream given, allocate nothing and wait for nothing.
 *
 * A pack is its bytes on the device, base at a multiple of 128, and meta on the
 * host: i64 [7] layout, rows, cols, escape units, exceptions, tile_escape_max,
 * block_exc_max. meta is checked here against pack_nbytes; what the kernels
 * read from the pack itself is clamped to its sections, so a pack that lies
 * gives wrong values, never an access outside of it.
 */
#ifndef GLYD_GPU_H
#define GLYD_GPU_H

#include <stdint.h>

#define GLYD_GPU_ABI_VERSION 5

#define GLYD_GPU_API extern "C" __attribute__((visibility("default")))

/* GLYD_GPU_ABI_VERSION that the library was built with. */
GLYD_GPU_API int glyd_gpu_abi_version(void);

/* Names of the architectures in the library, separated by commas. */
GLYD_GPU_API const char *glyd_gpu_architectures(void);

/* What a return value means, in English. */
GLYD_GPU_API const char *glyd_gpu_error_text(int code);

/* Unpack rows first_row … first_row + n_rows − 1 to out [n_rows, cols] bf16, at a multiple of 16 bytes.
 * first_row is a multiple of 64. */
GLYD_GPU_API int glyd_gpu_unpack(void *out, const void *pack, uint64_t pack_nbytes, const int64_t *meta,
                                 int64_t first_row, int64_t n_rows, void *stream);

/* Hold a pack to every rule of its specification. result: u32 [2], 0 or a bit for each kind of breach, then the first
 * row block that has one (0x7F7F7F7F: none). */
GLYD_GPU_API int glyd_gpu_check_pack(void *result, const void *pack, uint64_t pack_nbytes, const int64_t *meta,
                                     void *stream);

/* Rows of a table by ids [n_ids] of 4 or 8 bytes to out [n_ids, cols] bf16. An id outside of the table is a
 * device-side assert. */
GLYD_GPU_API int glyd_gpu_embedding(void *out, const void *ids, uint64_t n_ids, int id_nbytes, const void *pack,
                                    uint64_t pack_nbytes, const int64_t *meta, void *stream);

/* y [tokens, rows] = x [tokens, cols] · Wᵀ + bias [rows] or NULL, all bf16, sums in fp32; on every architecture.
 * tokens: up to 64. workspace: device memory of glyd_gpu_linear_generic_workspace bytes (or a negative status). */
GLYD_GPU_API int64_t glyd_gpu_linear_generic_workspace(uint64_t tokens, const int64_t *meta);
GLYD_GPU_API int glyd_gpu_linear_generic(void *y, const void *x, uint64_t tokens, const void *bias, const void *pack,
                                         uint64_t pack_nbytes, const int64_t *meta, void *workspace,
                                         uint64_t workspace_nbytes, void *stream);

/* y [slots, size] = row s of x [slots, cols] · the matrix of expert experts[s], for a stack of matrices of `size` rows
 * each (a multiple of 64). experts: device memory [slots], of 4 or 8 bytes each; an expert that the stack does not have
 * counts as its first or last. slots: up to 65535. workspace as above, of glyd_gpu_linear_experts_workspace bytes. */
GLYD_GPU_API int64_t glyd_gpu_linear_experts_workspace(uint64_t slots, int64_t size, const int64_t *meta);
GLYD_GPU_API int glyd_gpu_linear_experts(void *y, const void *x, const void *experts, int id_nbytes, uint64_t slots,
                                         int64_t size, const void *pack, uint64_t pack_nbytes, const int64_t *meta,
                                         void *workspace, uint64_t workspace_nbytes, void *stream);

/* Plan a pack of weights [rows, cols] bf16; of meta, layout, rows and cols are read. plan: device memory of
 * glyd_gpu_plan_nbytes bytes at a multiple of 128; exc_index: u32 [row blocks][tiles + 1]; totals: u64 [4], escape
 * units, exceptions, units of the largest tile, most exceptions of a row block. */
GLYD_GPU_API int64_t glyd_gpu_plan_nbytes(const int64_t *meta);
GLYD_GPU_API int glyd_gpu_plan(void *plan, uint64_t plan_nbytes, void *exc_index, uint64_t exc_index_nbytes,
                               void *totals, const void *weights, const int64_t *meta, void *stream);

/* Write the pack that was planned; meta has the totals now. */
GLYD_GPU_API int glyd_gpu_pack(void *out, uint64_t out_nbytes, const void *plan, const void *exc_index,
                               const void *weights, const int64_t *meta, void *stream);

/* y = x · Wᵀ + bias as above, through a ring in shared memory; compute capability 9.0 only. cols a multiple of 8, x and y
 * at multiples of 16 bytes. config: tokens of a tile (8, 16, 32, 64, 128, 192, 256), 64-row blocks of a tile, warpgroups along
 * the columns, tiles of a warpgroup in a stage, blocks along the columns (0: stream-K, for at most one tile of tokens; any
 * number in mma12 with three warpgroups and tiles of 64, 128 or 192, or two and 256), workers (stream-K), dependent launch (0; 1; 2: of a pack that the kernel ahead of this does not write);
 * GLYD_E_PARAMETER for what was not compiled. workspace: at least glyd_gpu_product_ring_workspace bytes at a multiple of
 * 16 (0: none), its first MiB zero before the first launch and left so; one launch at a time may use it. */
GLYD_GPU_API int64_t glyd_gpu_product_ring_workspace(const int64_t *meta, uint64_t tokens, const int32_t *config);

/* Exceptions of a row block, within the columns that one block of threads takes, that a ring product handles in one go;
 * any number more is right, but each costs a microsecond or more. Negative: a status. Runs without a device. */
GLYD_GPU_API int64_t glyd_gpu_product_ring_exceptions(const int64_t *meta, const int32_t *config);

GLYD_GPU_API int glyd_gpu_product_ring(void *y, const void *x, uint64_t tokens, const void *bias, const void *pack,
                                       uint64_t pack_nbytes, const int64_t *meta, void *workspace,
                                       uint64_t workspace_nbytes, const int32_t *config, void *stream);

/* The same for an mma12 pack and many tokens: weights are decoded to shared memory, every weight exactly. config: tokens of a
 * tile (32, 64, 128, 256), 64-row blocks of a tile (2), blocks of a cluster along the columns of each tile (0: workers that
 * share what does not fill a round), workers, tiles of tokens that follow one another, slots of decoded weights, slots of
 * packed tiles, dependent launch (as above). workspace: at least as many bytes as the function
 * before says, as the ring's. product_plain: the same kernel with weight [rows, cols] bf16 at a multiple of 16 bytes, which
 * gives the same bits. */
GLYD_GPU_API int64_t glyd_gpu_product_staged_workspace(int64_t rows, int64_t cols, uint64_t tokens,
                                                       const int32_t *config);
GLYD_GPU_API int glyd_gpu_product_staged(void *y, const void *x, uint64_t tokens, const void *bias, const void *pack,
                                         uint64_t pack_nbytes, const int64_t *meta, void *workspace,
                                         uint64_t workspace_nbytes, const int32_t *config, void *stream);
GLYD_GPU_API int glyd_gpu_product_plain(void *y, const void *x, uint64_t tokens, const void *bias, const void *weight,
                                        int64_t rows, int64_t cols, void *workspace, uint64_t workspace_nbytes,
                                        const int32_t *config, void *stream);

/* The same for a tiered pack with split roles: some warpgroups decode, others multiply; any number of exceptions. config:
 * tokens of a tile (64, 128), 64-row blocks of a tile (2), warpgroups that decode (4 with 64 tokens, 3 with 128), blocks along
 * the columns (0: stream-K), workers (stream-K), dependent launch. Any number of tiles of tokens. */
GLYD_GPU_API int64_t glyd_gpu_product_split_workspace(const int64_t *meta, uint64_t tokens, const int32_t *config);
GLYD_GPU_API int glyd_gpu_product_split(void *y, const void *x, uint64_t tokens, const void *bias, const void *pack,
                                        uint64_t pack_nbytes, const int64_t *meta, void *workspace,
                                        uint64_t workspace_nbytes, const int32_t *config, void *stream);

/* The same for an mma12 pack and many tokens, by pairs of blocks that share activations. config: tokens of a tile (128, 192, 256), blocks (even), parts along
 * the columns of tiles that do not fill a last round (1 to 16), tiles of tokens that follow one another, dependent launch
 * (as above). */
GLYD_GPU_API int64_t glyd_gpu_product_pair_workspace(const int64_t *meta, uint64_t tokens, const int32_t *config);
GLYD_GPU_API int glyd_gpu_product_pair(void *y, const void *x, uint64_t tokens, const void *bias, const void *pack,
                                       uint64_t pack_nbytes, const int64_t *meta, void *workspace,
                                       uint64_t workspace_nbytes, const int32_t *config, void *stream);

/* The same for an mma12 pack and 1 to 16 tokens, without a ring. cols even, x at a multiple of 4 bytes. config: strips of
 * 16 rows of a block, warps, tiles in flight of a warp, dependent launch (as above). */
GLYD_GPU_API int glyd_gpu_product_stream(void *y, const void *x, uint64_t tokens, const void *bias, const void *pack,
                                         uint64_t pack_nbytes, const int64_t *meta, const int32_t *config,
                                         void *stream);

/* Pages of keys or values (glyd/kv.h) of in [n_pages, 128, channels] bf16 at a multiple of 16, channels 64, 96, 128 or
 * 256, to out [n_pages, bytes of a plain page]; the bytes of each page to sizes [n_pages] i64. Then from there, each to its
 * place [n_pages] i64 in out, a multiple of 16. */
GLYD_GPU_API int glyd_gpu_kv_pack(void *out, void *sizes, const void *in, uint64_t n_pages, int channels, void *stream);
GLYD_GPU_API int glyd_gpu_kv_place(void *out, const void *places, const void *in, uint64_t n_pages, int channels,
                                   void *stream);

/* Pages at addresses [n_pages] u64 to out [n_pages, 128, channels] bf16, at a multiple of 16. Their headers must be right;
 * what else they say may be anything. */
GLYD_GPU_API int glyd_gpu_kv_unpack(void *out, const void *pages, uint64_t n_pages, int channels, void *stream);

/* Attention of one new token a sequence: out [sequences, heads, channels] of q, both bf16. shape: sequences, heads, key
 * heads, pages, tokens of the tail, ranges of 32 tokens each that a sequence is divided into, channels: the last two and the
 * device decide the order of sums. k_pages, v_pages: addresses u64 [sequences, key heads, pages], of packed or plain pages;
 * k_tail, v_tail: bf16 [sequences, key heads, tail, channels] at multiples of 16; starts: i32 [sequences], the first token
 * that is seen, or NULL. workspace: as many bytes as the function before says. */
GLYD_GPU_API int64_t glyd_gpu_kv_attention_workspace(const int32_t *shape);
GLYD_GPU_API int glyd_gpu_kv_attention(void *out, const void *q, const void *k_pages, const void *v_pages,
                                       const void *k_tail, const void *v_tail, const void *starts, const int32_t *shape,
                                       float scale, void *workspace, uint64_t workspace_nbytes, void *stream);

/* Attention of one new token a sequence over a paged cache of plain bf16: out [sequences, heads, channels]. k_cache,
 * v_cache: [slots, key heads, channels] at multiples of 16; token t of sequence s is in slot tables[s][t / page tokens] ·
 * page stride + t % page tokens. new_k, new_v: of the newest token, used and also written to its slot; or NULL for both.
 * tables: i32 [sequences, pages]; lengths: i32 [sequences] tokens, the newest included, 0: zeros are given and nothing is
 * written. shape: sequences, heads, key heads, channels (a multiple of 8 up to 256), slots, pages, page tokens (a power of
 * two), page stride, splits, window, then strides in values, each a multiple of 8, of rows and heads of q, new_k and
 * new_v. With a window that is not 0 token t is where t % window is otherwise, and the newest so many are seen. Slots and
 * lengths are clamped to cache and tables. workspace: as many bytes as the function before says. */
GLYD_GPU_API int64_t glyd_gpu_paged_attention_workspace(const int64_t *shape);
GLYD_GPU_API int glyd_gpu_paged_attention(void *out, const void *q, void *k_cache, void *v_cache, const void *new_k,
                                          const void *new_v, const void *tables, const void *lengths,
                                          const int64_t *shape, float scale, void *workspace, uint64_t workspace_nbytes,
                                          void *stream);

/* What lies between products, bf16 in and out, places at multiples of 16, strides in values and multiples of 8.
 * norm: out [rows, inner, cols] of x, divided by the root of the mean of its squares plus eps, times weight [cols]; shape:
 * rows, inner, cols, strides of rows and inner rows. rotate: out [rows, heads, channels], then [rows, key heads,
 * channels], of q and k by cos and sin [rows, channels]; shape: rows, heads, key heads, channels (a multiple of 16),
 * strides of rows and heads of q and k, of rows of cos and sin (0: all rows have the same). gate: out [rows, cols] = silu(gate) · up; shape: rows, cols, strides of rows. */
GLYD_GPU_API int glyd_gpu_norm(void *out, const void *x, const void *weight, const int64_t *shape, float eps,
                               void *stream);
/* The same of x + add, both [rows, cols] one behind the other, rounded to bf16, which goes to sum; shape: rows, cols. */
GLYD_GPU_API int glyd_gpu_add_norm(void *out, void *sum, const void *x, const void *add, const void *weight,
                                   const int64_t *shape, float eps, void *stream);
/* A token of each of `rows` sequences: q to out [rows, heads, channels], k and v to place position[0] of keys and values
 * [rows, key heads, length, channels] (outside of them: nowhere); q and k after a norm (weights NULL: none) and a rotation.
 * from: q, k, v, weights of q's and k's norm, cos, sin, position (i64, on the device); shape: rows, heads, key heads,
 * channels (16, 32 … 512), length, strides of rows of q, k, v, and of cos and sin. */
GLYD_GPU_API int glyd_gpu_place(void *out, void *keys, void *values, const void *const *from, const int64_t *shape,
                                float eps, void *stream);
GLYD_GPU_API int glyd_gpu_rotate(void *out, const void *q, const void *k, const void *cos, const void *sin,
                                 const int64_t *shape, void *stream);
GLYD_GPU_API int glyd_gpu_gate(void *out, const void *gate, const void *up, const int64_t *shape, void *stream);

/* Number of the capture that a stream is in, 0 for none. */
GLYD_GPU_API uint64_t glyd_gpu_capture_id(void *stream);

#endif
