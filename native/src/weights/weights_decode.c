/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Headers, row blocks and exceptions. Everything read from the pack is checked
 * against the pack's own geometry before it is used as a place or a size.
 */
#include "weights/weights_decode.h"

#include "common/cpu.h"
#include "weights/weights_mma12_decode.h"
#include "weights/weights_tiered_decode.h"

static int all_zero(const uint8_t *p, size_t n) {
  uint8_t any = 0;
  for (size_t i = 0; i < n; i++) any |= p[i];
  return any == 0;
}

glyd_status glyd_weights_decode_info(const uint8_t *in, size_t len, glyd_weights_info *info) {
  memset(info, 0, sizeof *info);
  if (len < 4) return GLYD_E_TRUNCATED;
  if (glyd_load32(in + GLYD_WEIGHTS_AT_MAGIC) != GLYD_WEIGHTS_MAGIC) return GLYD_E_MAGIC;
  if (len < GLYD_WEIGHTS_HEADER) return GLYD_E_TRUNCATED;
  if (in[GLYD_WEIGHTS_AT_VERSION] != GLYD_WEIGHTS_VERSION) return GLYD_E_VERSION;
  glyd_weights_shape shape;
  shape.layout = in[GLYD_WEIGHTS_AT_LAYOUT];
  shape.rows = glyd_load64(in + GLYD_WEIGHTS_AT_ROWS);
  shape.cols = glyd_load64(in + GLYD_WEIGHTS_AT_COLS);
  if (shape.layout != GLYD_WEIGHTS_MMA12 && shape.layout != GLYD_WEIGHTS_TIERED) return GLYD_E_FEATURE;
  const uint64_t escapes = glyd_load64(in + GLYD_WEIGHTS_AT_ESCAPES);
  const uint64_t exceptions = glyd_load64(in + GLYD_WEIGHTS_AT_EXCEPTIONS);
  const uint32_t tile_max = glyd_load32(in + GLYD_WEIGHTS_AT_TILE_ESCAPE_MAX);
  if (!glyd_weights_shape_check(&shape) || !glyd_weights_geometry(&shape, escapes, exceptions, info) ||
      info->size != glyd_load64(in + GLYD_WEIGHTS_AT_SIZE) || exceptions > shape.rows * shape.cols ||
      escapes * GLYD_WEIGHTS_ESCAPE_UNIT > info->row_blocks * info->tiles * GLYD_WEIGHTS_ESCAPE_TILE_MAX ||
      tile_max > GLYD_WEIGHTS_ESCAPE_TILE_MAX || tile_max % GLYD_WEIGHTS_ESCAPE_UNIT != 0 ||
      (shape.layout == GLYD_WEIGHTS_MMA12 && (escapes != 0 || tile_max != 0)) ||
      !all_zero(in + GLYD_WEIGHTS_AT_LAYOUT + 1, 2) || !all_zero(in + 56, GLYD_WEIGHTS_HEADER - 56)) {
    memset(info, 0, sizeof *info);
    return GLYD_E_HEADER;
  }
  info->tile_escape_max = tile_max;
  info->block_exc_max = glyd_load32(in + GLYD_WEIGHTS_AT_BLOCK_EXC_MAX);
  return len < info->size ? GLYD_E_TRUNCATED : GLYD_OK;
}

/* One row block while it is read. */
typedef struct block_state {
  const uint8_t *bases;
  unsigned used;      /* rows */
  uint64_t exception; /* next of the list */
  uint64_t exception_end;
  uint64_t escapes;     /* first unit */
  const uint8_t *index; /* of the row block; tiered only */
} block_state;

static glyd_status open_block(const uint8_t *in, const glyd_weights_info *info, uint64_t block, block_state *state) {
  const uint8_t *header = in + info->blocks_at + block * GLYD_WEIGHTS_BLOCK_HEADER;
  const int tiered = info->shape.layout == GLYD_WEIGHTS_TIERED;
  const uint64_t left = info->shape.rows - block * GLYD_WEIGHTS_ROWS;
  state->used = (unsigned)(left < GLYD_WEIGHTS_ROWS ? left : GLYD_WEIGHTS_ROWS);
  state->bases = header + GLYD_WEIGHTS_BLOCK_AT_BASES;
  state->index = in + info->index_at + 4 * block * (info->tiles + 1);
  state->escapes = glyd_load64(header + GLYD_WEIGHTS_BLOCK_AT_ESCAPES);
  state->exception = glyd_load64(header + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST);
  const uint32_t n = glyd_load32(header + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
  if (header[GLYD_WEIGHTS_BLOCK_AT_LAYOUT] != info->shape.layout ||
      header[GLYD_WEIGHTS_BLOCK_AT_VERSION] != info->version ||
      glyd_load16(header + GLYD_WEIGHTS_BLOCK_AT_ROWS) != state->used || !all_zero(header + 24, 40))
    return GLYD_E_CORRUPT;
  /* a row block's lists end where the next one's start */
  const uint8_t *next = block + 1 < info->row_blocks ? header + GLYD_WEIGHTS_BLOCK_HEADER : NULL;
  state->exception_end = next ? glyd_load64(next + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST) : info->n_exceptions;
  const uint64_t escapes_end = next ? glyd_load64(next + GLYD_WEIGHTS_BLOCK_AT_ESCAPES) : info->n_escape_units;
  if (state->exception > info->n_exceptions || n > info->n_exceptions - state->exception || n > info->block_exc_max ||
      state->exception + n != state->exception_end || (block == 0 && (state->exception != 0 || state->escapes != 0)))
    return GLYD_E_CORRUPT;
  for (unsigned r = 0; r < GLYD_WEIGHTS_ROWS; r++) {
    const unsigned base = state->bases[r];
    if (base == 0) continue;
    if (r >= state->used) return GLYD_E_CORRUPT;
    if (tiered ? base < GLYD_WEIGHTS_TIERED_BASE_MIN || base > GLYD_WEIGHTS_TIERED_BASE_MAX
               : base > GLYD_WEIGHTS_MMA12_BASE_MAX)
      return GLYD_E_CORRUPT;
  }
  if (!tiered) return state->escapes == 0 ? GLYD_OK : GLYD_E_CORRUPT;
  uint32_t at = glyd_load32(state->index);
  if (at != 0) return GLYD_E_CORRUPT;
  for (uint64_t t = 1; t <= info->tiles; t++) {
    const uint32_t end = glyd_load32(state->index + 4 * t);
    if (end <= at || (uint64_t)(end - at) * GLYD_WEIGHTS_ESCAPE_UNIT > info->tile_escape_max) return GLYD_E_CORRUPT;
    at = end;
  }
  return state->escapes > info->n_escape_units || at > info->n_escape_units - state->escapes ||
                 state->escapes + at != escapes_end
             ? GLYD_E_CORRUPT
             : GLYD_OK;
}

/* Put the exceptions of columns col … col_end - 1 in their places, which must hold what packing leaves there. */
static glyd_status place_exceptions(const uint8_t *in, const glyd_weights_info *info, block_state *state,
                                    uint16_t *tile, uint64_t col, uint64_t col_end, uint32_t *least) {
  const int tiered = info->shape.layout == GLYD_WEIGHTS_TIERED;
  for (; state->exception < state->exception_end; state->exception++) {
    const uint32_t place = glyd_load32(in + info->exc_places_at + 4 * state->exception);
    const uint32_t c = place / GLYD_WEIGHTS_ROWS;
    const unsigned r = place % GLYD_WEIGHTS_ROWS;
    if (place < *least || r >= state->used || c >= info->shape.cols || state->bases[r] == 0) return GLYD_E_CORRUPT;
    if (c >= col_end) break;
    uint16_t *at = tile + r * info->tile_cols + (c - col);
    if (*at != (tiered ? 0 : state->bases[r] << 8)) return GLYD_E_CORRUPT;
    *at = glyd_load16(in + info->exc_values_at + 2 * state->exception);
    *least = place + 1; /* at most 2^32 - 64 */
  }
  return GLYD_OK;
}

static glyd_status decode_block(uint8_t *out, const uint8_t *in, const glyd_weights_info *info, uint64_t block,
                                unsigned from, unsigned to, glyd_weights_scratch *scratch, int avx2) {
  block_state state;
  glyd_status status = open_block(in, info, block, &state);
  const size_t cols = (size_t)info->shape.cols;
  uint32_t least = 0;
  for (uint64_t t = 0; t < info->tiles && status == GLYD_OK; t++) {
    const uint8_t *tile = in + info->tiles_at + (block * info->tiles + t) * info->tile_bytes;
    const uint64_t col = t * info->tile_cols;
    const size_t n = cols - col < info->tile_cols ? (size_t)(cols - col) : info->tile_cols;
    if (info->shape.layout == GLYD_WEIGHTS_TIERED) {
      const uint32_t first = glyd_load32(state.index + 4 * t);
      const uint32_t units = glyd_load32(state.index + 4 * t + 4) - first;
      status = glyd_weights_tiered_decode_tile(
          scratch, tile, in + info->escapes_at + (state.escapes + first) * GLYD_WEIGHTS_ESCAPE_UNIT,
          units * GLYD_WEIGHTS_ESCAPE_UNIT, state.bases, avx2);
    } else {
      status = glyd_weights_mma12_decode_tile(scratch->tile, tile, state.bases, avx2);
    }
    if (status == GLYD_OK) status = place_exceptions(in, info, &state, scratch->tile, col, col + n, &least);
    if (status != GLYD_OK) break;
    for (unsigned r = from; r < to; r++)
      memcpy(out + 2 * ((r - from) * cols + col), scratch->tile + (size_t)r * info->tile_cols, 2 * n);
  }
  if (status == GLYD_OK && state.exception != state.exception_end) status = GLYD_E_CORRUPT;
  return status;
}

glyd_status glyd_weights_decode_rows(uint8_t *out, size_t cap, const uint8_t *in, size_t len, uint64_t first_row,
                                     uint64_t n_rows, void *workspace, size_t workspace_len, int cpu) {
  glyd_weights_info info;
  glyd_status status = glyd_weights_decode_info(in, len, &info);
  if (status != GLYD_OK) return status;
  if (first_row > info.shape.rows || n_rows > info.shape.rows - first_row) return GLYD_E_PARAMETER;
  if (cap / 2 / info.shape.cols < n_rows) return GLYD_E_BUFFER;
  glyd_weights_scratch *scratch = glyd_weights_scratch_in(workspace, workspace_len);
  if (scratch == NULL) return GLYD_E_BUFFER;
  const int avx2 = cpu == 0 && (glyd_cpu_features() & GLYD_CPU_AVX2) != 0;
  const uint64_t end = first_row + n_rows;
  for (uint64_t row = first_row; row < end && status == GLYD_OK;) {
    const uint64_t block = row / GLYD_WEIGHTS_ROWS;
    const uint64_t block_end = (block + 1) * GLYD_WEIGHTS_ROWS;
    const uint64_t last = end < block_end ? end : block_end;
    status = decode_block(out, in, &info, block, (unsigned)(row % GLYD_WEIGHTS_ROWS),
                          (unsigned)(last - block * GLYD_WEIGHTS_ROWS), scratch, avx2);
    out += 2 * (last - row) * info.shape.cols;
    row = last;
  }
  return status;
}
