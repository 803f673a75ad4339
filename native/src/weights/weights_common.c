/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Sections of a pack.
 */
#include "weights/weights_common.h"

#define SCRATCH_ALIGN 64

glyd_weights_scratch *glyd_weights_scratch_in(void *workspace, size_t len) {
  if (workspace == NULL || len < sizeof(glyd_weights_scratch) + SCRATCH_ALIGN) return NULL;
  const uintptr_t at = ((uintptr_t)workspace + SCRATCH_ALIGN - 1) & ~(uintptr_t)(SCRATCH_ALIGN - 1);
  return (glyd_weights_scratch *)at;
}

size_t glyd_weights_scratch_size(void) { return sizeof(glyd_weights_scratch) + SCRATCH_ALIGN; }

int glyd_weights_shape_check(const glyd_weights_shape *shape) {
  return (shape->layout == GLYD_WEIGHTS_MMA12 || shape->layout == GLYD_WEIGHTS_TIERED) && shape->rows > 0 &&
         shape->rows <= GLYD_WEIGHTS_ROWS_MAX && shape->cols > 0 && shape->cols < GLYD_WEIGHTS_COLS_MAX;
}

int glyd_weights_geometry(const glyd_weights_shape *shape, uint64_t escape_units, uint64_t n_exceptions,
                          glyd_weights_info *info) {
  const int tiered = shape->layout == GLYD_WEIGHTS_TIERED;
  /* rows * cols < 2^62; every section below is at most 6 bytes a weight or 128 bytes a row block */
  if (shape->rows * shape->cols > UINT64_MAX >> 8 || escape_units > UINT64_MAX >> 8 || n_exceptions > UINT64_MAX >> 8)
    return 0;
  memset(info, 0, sizeof *info);
  info->shape = *shape;
  info->version = GLYD_WEIGHTS_VERSION;
  info->tile_cols = tiered ? GLYD_WEIGHTS_TIERED_COLS : GLYD_WEIGHTS_MMA12_COLS;
  info->tile_bytes = tiered ? GLYD_WEIGHTS_TIERED_TILE : GLYD_WEIGHTS_MMA12_TILE;
  info->row_blocks = (shape->rows + GLYD_WEIGHTS_ROWS - 1) / GLYD_WEIGHTS_ROWS;
  info->tiles = (shape->cols + info->tile_cols - 1) / info->tile_cols;
  info->n_exceptions = n_exceptions;
  info->n_escape_units = escape_units;
  info->blocks_at = GLYD_WEIGHTS_HEADER;
  info->index_at = info->blocks_at + info->row_blocks * GLYD_WEIGHTS_BLOCK_HEADER;
  info->tiles_at = glyd_weights_align(info->index_at + (tiered ? 4 * info->row_blocks * (info->tiles + 1) : 0));
  info->escapes_at = glyd_weights_align(info->tiles_at + info->row_blocks * info->tiles * info->tile_bytes);
  info->exc_places_at = glyd_weights_align(info->escapes_at + escape_units * GLYD_WEIGHTS_ESCAPE_UNIT);
  info->exc_values_at = glyd_weights_align(info->exc_places_at + 4 * n_exceptions);
  info->size = glyd_weights_align(info->exc_values_at + 2 * n_exceptions);
  return 1;
}
