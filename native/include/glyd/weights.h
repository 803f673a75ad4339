/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Packed bf16 matrices: layouts that a GPU multiplies from directly.
 * native/src/weights/spec.md defines the bytes.
 *
 * The rules of glyd/glyd.h hold here too. Nothing is allocated: the caller
 * gives a workspace of glyd_weights_workspace() bytes, one for each thread.
 * Matrices are row-major without gaps, 2 bytes a weight, any alignment.
 */
#ifndef GLYD_WEIGHTS_H
#define GLYD_WEIGHTS_H

#include "glyd/format_weights.h"
#include "glyd/glyd.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct glyd_weights_shape {
  int layout;    /* GLYD_WEIGHTS_MMA12 or GLYD_WEIGHTS_TIERED */
  uint64_t rows; /* output features, 1 or more */
  uint64_t cols; /* input features, 1 to GLYD_WEIGHTS_COLS_MAX - 1 */
} glyd_weights_shape;

/* What a pack holds and where its sections lie, byte offsets from its start. */
typedef struct glyd_weights_info {
  glyd_weights_shape shape;
  int version;
  uint64_t size;            /* bytes of the pack */
  uint64_t row_blocks;      /* blocks of 64 rows */
  uint64_t tiles;           /* tiles of a row block */
  uint32_t tile_cols;       /* columns of a tile */
  uint32_t tile_bytes;      /* bytes of a tile's fixed part */
  uint32_t tile_escape_max; /* bytes of the largest tile's escapes; 0 in mma12 */
  uint32_t block_exc_max;   /* most exceptions of a row block */
  uint64_t n_exceptions;
  uint64_t n_escape_units; /* 16 bytes each */
  uint64_t blocks_at;      /* row block headers, 128 bytes each */
  uint64_t index_at;       /* u32 [row_blocks][tiles + 1], 16-byte units from the row block's first; tiered only */
  uint64_t tiles_at;       /* [row_blocks][tiles][tile_bytes] */
  uint64_t escapes_at;     /* 16-byte units; tiered only */
  uint64_t exc_places_at;  /* u32 [n_exceptions]: column * 64 + row in block */
  uint64_t exc_values_at;  /* u16 [n_exceptions]: the weights */
} glyd_weights_info;

/* Bytes of workspace that any call below needs. */
GLYD_API size_t glyd_weights_workspace(void);

/* Largest pack that pays: 15/16 of the bf16 matrix, rounded down; an output
 * buffer of that size always suffices. 0 for a shape outside the ranges. */
GLYD_API uint64_t glyd_weights_pack_bound(const glyd_weights_shape *shape);

/* Pack a matrix. *out_len is 0 with GLYD_OK when the pack would be larger than
 * glyd_weights_pack_bound: such a matrix stays bf16. cpu: 0 the best variant,
 * 1 the portable one; both give the same bytes. Errors: PARAMETER, BUFFER. */
GLYD_API glyd_status glyd_weights_pack(void *out, size_t cap, const glyd_weights_shape *shape, const void *in,
                                       void *workspace, size_t workspace_len, int cpu, size_t *out_len);

/* The same in three steps, for threads: plan every row, end the plan, pack
 * every row. Ranges start at a multiple of 64 rows and end at one or at the
 * last row; in points to the range's first row. Ranges of one step may run in
 * parallel; every range of a step must be done before the next step.
 * cap: at least glyd_weights_plan_size bytes for the plan, *out_len after it.
 * glyd_weights_plan_end gives BUFFER and that *out_len when cap is smaller: the
 * plan can then be copied to a buffer of that size and ended again there. */
GLYD_API uint64_t glyd_weights_plan_size(const glyd_weights_shape *shape);
GLYD_API glyd_status glyd_weights_plan_rows(void *out, size_t cap, const glyd_weights_shape *shape, uint64_t first_row,
                                            uint64_t n_rows, const void *in, void *workspace, size_t workspace_len,
                                            int cpu);
GLYD_API glyd_status glyd_weights_plan_end(void *out, size_t cap, const glyd_weights_shape *shape, size_t *out_len);
GLYD_API glyd_status glyd_weights_pack_rows(void *out, size_t cap, const glyd_weights_shape *shape, uint64_t first_row,
                                            uint64_t n_rows, const void *in, void *workspace, size_t workspace_len,
                                            int cpu);

/* Read and check the header of a pack; len may exceed the pack. Errors: MAGIC,
 * VERSION, FEATURE (layout), HEADER, TRUNCATED. */
GLYD_API glyd_status glyd_weights_read_info(const void *in, size_t len, glyd_weights_info *info);

/* Unpack rows first_row … first_row + n_rows - 1, n_rows * cols * 2 bytes.
 * Whole row blocks are decoded on their own, so ranges may run in parallel.
 * cpu as in glyd_weights_pack; both variants refuse the same packs.
 * Errors: those of glyd_weights_read_info, PARAMETER, BUFFER, CORRUPT. */
GLYD_API glyd_status glyd_weights_unpack_rows(void *out, size_t cap, const void *in, size_t len, uint64_t first_row,
                                              uint64_t n_rows, void *workspace, size_t workspace_len, int cpu);

#ifdef __cplusplus
}
#endif

#endif
