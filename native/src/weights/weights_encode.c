/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The plan writes what has a fixed place: bases and counts of every row block,
 * sizes of every tile's escapes. Its end turns counts into places, so that row
 * blocks can then be packed in any order and by any number of threads.
 */
#include "weights/weights_encode.h"

#include "common/cpu.h"
#include "weights/weights_mma12_encode.h"
#include "weights/weights_tiered_encode.h"
#include "weights/weights_tile_encode.h"

uint64_t glyd_weights_encode_bound(const glyd_weights_shape *shape) {
  glyd_weights_info info;
  if (!glyd_weights_shape_check(shape) || !glyd_weights_geometry(shape, 0, 0, &info)) return 0;
  return shape->rows * shape->cols * 2 / 16 * 15;
}

uint64_t glyd_weights_encode_plan_size(const glyd_weights_shape *shape) {
  glyd_weights_info info;
  if (!glyd_weights_shape_check(shape) || !glyd_weights_geometry(shape, 0, 0, &info)) return 0;
  return info.tiles_at;
}

/* Fixed geometry, and the checks that plan and pack share. */
static glyd_status prepare(const glyd_weights_shape *shape, size_t cap, uint64_t first_row, uint64_t n_rows,
                           glyd_weights_info *info) {
  if (!glyd_weights_shape_check(shape) || !glyd_weights_geometry(shape, 0, 0, info)) return GLYD_E_PARAMETER;
  if (first_row % GLYD_WEIGHTS_ROWS != 0 || first_row > shape->rows || n_rows > shape->rows - first_row)
    return GLYD_E_PARAMETER;
  if (n_rows % GLYD_WEIGHTS_ROWS != 0 && first_row + n_rows != shape->rows) return GLYD_E_PARAMETER;
  return cap < info->tiles_at ? GLYD_E_BUFFER : GLYD_OK;
}

/* Exponent counts of a row into counts[0]; the four tables hide the latency of adding to one place twice. */
static void count_exponents(uint32_t counts[4][256], const uint8_t *row, size_t cols) {
  memset(counts, 0, sizeof(uint32_t) * 4 * 256);
  size_t i = 0;
  for (; i + 4 <= cols; i += 4) {
    const uint64_t w = glyd_load64(row + 2 * i);
    counts[0][(w >> 7) & 0xFF]++;
    counts[1][(w >> 23) & 0xFF]++;
    counts[2][(w >> 39) & 0xFF]++;
    counts[3][(w >> 55) & 0xFF]++;
  }
  for (; i < cols; i++) counts[0][glyd_weights_exponent(glyd_load16(row + 2 * i))]++;
  for (unsigned e = 0; e < 256; e++) counts[0][e] += counts[1][e] + counts[2][e] + counts[3][e];
}

static int is_all_zeros(const uint8_t *row, size_t cols) {
  for (size_t i = 0; i < cols; i++)
    if ((glyd_load16(row + 2 * i) & 0x7FFF) != 0) return 0;
  return 1;
}

glyd_status glyd_weights_encode_plan(uint8_t *out, size_t cap, const glyd_weights_shape *shape, uint64_t first_row,
                                     uint64_t n_rows, const uint8_t *in, void *workspace, size_t workspace_len,
                                     int cpu) {
  glyd_weights_info info;
  const glyd_status status = prepare(shape, cap, first_row, n_rows, &info);
  if (status != GLYD_OK) return status;
  glyd_weights_scratch *scratch = glyd_weights_scratch_in(workspace, workspace_len);
  if (scratch == NULL) return GLYD_E_BUFFER;
  const int tiered = shape->layout == GLYD_WEIGHTS_TIERED;
  const int avx2 = cpu == 0 && (glyd_cpu_features() & GLYD_CPU_AVX2) != 0;
  const size_t cols = (size_t)shape->cols;

  for (uint64_t r = 0; r < n_rows; r += GLYD_WEIGHTS_ROWS) {
    const uint64_t block = (first_row + r) / GLYD_WEIGHTS_ROWS;
    const unsigned used = (unsigned)(n_rows - r < GLYD_WEIGHTS_ROWS ? n_rows - r : GLYD_WEIGHTS_ROWS);
    uint8_t *header = out + info.blocks_at + block * GLYD_WEIGHTS_BLOCK_HEADER;
    uint8_t *index = out + info.index_at + 4 * block * (info.tiles + 1);
    memset(header, 0, GLYD_WEIGHTS_BLOCK_HEADER);
    header[GLYD_WEIGHTS_BLOCK_AT_LAYOUT] = (uint8_t)shape->layout;
    header[GLYD_WEIGHTS_BLOCK_AT_VERSION] = GLYD_WEIGHTS_VERSION;
    glyd_store16(header + GLYD_WEIGHTS_BLOCK_AT_ROWS, (uint16_t)used);
    if (tiered) memset(index, 0, (size_t)(4 * (info.tiles + 1)));

    uint64_t exceptions = 0;
    for (unsigned i = 0; i < used; i++) {
      const uint8_t *row = in + 2 * (size_t)(r + i) * cols;
      uint8_t base = 0;
      if (!tiered && avx2 && glyd_weights_tile_mma12_base_avx2(row, cols, &base, &exceptions)) {
        header[GLYD_WEIGHTS_BLOCK_AT_BASES + i] = base;
        continue;
      }
      count_exponents(scratch->counts, row, cols);
      if (scratch->counts[0][0] != cols || !is_all_zeros(row, cols)) {
        base = tiered ? glyd_weights_tiered_base(scratch->counts[0])
                      : glyd_weights_mma12_base(scratch->counts[0], cols, &exceptions);
        if (tiered) exceptions += glyd_weights_tiered_count(index, row, cols, base, avx2);
      }
      header[GLYD_WEIGHTS_BLOCK_AT_BASES + i] = base;
    }
    /* at most 64 * 2^26 */
    glyd_store32(header + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT,
                 (uint32_t)(exceptions < UINT32_MAX ? exceptions : UINT32_MAX));
    if (tiered) glyd_weights_tiered_sizes(index, info.tiles);
  }
  return GLYD_OK;
}

glyd_status glyd_weights_encode_plan_end(uint8_t *out, size_t cap, const glyd_weights_shape *shape, size_t *out_len) {
  glyd_weights_info info;
  *out_len = 0;
  const glyd_status status = prepare(shape, cap, 0, shape->rows, &info);
  if (status != GLYD_OK) return status;
  const int tiered = shape->layout == GLYD_WEIGHTS_TIERED;
  uint64_t exceptions = 0;
  uint64_t units = 0;
  uint32_t block_max = 0;
  uint32_t tile_max = 0;
  for (uint64_t b = 0; b < info.row_blocks; b++) {
    uint8_t *header = out + info.blocks_at + b * GLYD_WEIGHTS_BLOCK_HEADER;
    const uint32_t n = glyd_load32(header + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
    glyd_store64(header + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST, exceptions);
    glyd_store64(header + GLYD_WEIGHTS_BLOCK_AT_ESCAPES, units);
    exceptions += n;
    block_max = n > block_max ? n : block_max;
    if (!tiered) continue;
    const uint8_t *index = out + info.index_at + 4 * b * (info.tiles + 1);
    uint32_t last = 0;
    for (uint64_t t = 1; t <= info.tiles; t++) {
      const uint32_t at = glyd_load32(index + 4 * t);
      tile_max = at - last > tile_max ? at - last : tile_max;
      last = at;
    }
    units += last;
  }
  if (!glyd_weights_geometry(shape, units, exceptions, &info)) return GLYD_E_PARAMETER;
  if (info.size > glyd_weights_encode_bound(shape)) return GLYD_OK;
  *out_len = (size_t)info.size;
  if (info.size > cap) return GLYD_E_BUFFER;
  memset(out, 0, GLYD_WEIGHTS_HEADER);
  glyd_store32(out + GLYD_WEIGHTS_AT_MAGIC, GLYD_WEIGHTS_MAGIC);
  out[GLYD_WEIGHTS_AT_VERSION] = GLYD_WEIGHTS_VERSION;
  out[GLYD_WEIGHTS_AT_LAYOUT] = (uint8_t)shape->layout;
  glyd_store64(out + GLYD_WEIGHTS_AT_ROWS, shape->rows);
  glyd_store64(out + GLYD_WEIGHTS_AT_COLS, shape->cols);
  glyd_store64(out + GLYD_WEIGHTS_AT_SIZE, info.size);
  glyd_store64(out + GLYD_WEIGHTS_AT_ESCAPES, units);
  glyd_store64(out + GLYD_WEIGHTS_AT_EXCEPTIONS, exceptions);
  glyd_store32(out + GLYD_WEIGHTS_AT_TILE_ESCAPE_MAX, tile_max * GLYD_WEIGHTS_ESCAPE_UNIT);
  glyd_store32(out + GLYD_WEIGHTS_AT_BLOCK_EXC_MAX, block_max);
  /* the gaps between sections */
  const uint64_t index_end = info.index_at + (tiered ? 4 * info.row_blocks * (info.tiles + 1) : 0);
  memset(out + index_end, 0, (size_t)(info.tiles_at - index_end));
  const uint64_t places_end = info.exc_places_at + 4 * exceptions;
  memset(out + places_end, 0, (size_t)(info.exc_values_at - places_end));
  const uint64_t values_end = info.exc_values_at + 2 * exceptions;
  memset(out + values_end, 0, (size_t)(info.size - values_end));
  const uint64_t escapes_end = info.escapes_at + units * GLYD_WEIGHTS_ESCAPE_UNIT;
  memset(out + escapes_end, 0, (size_t)(info.exc_places_at - escapes_end));
  return GLYD_OK;
}

/* A tile's rows: the matrix itself, or a copy filled up with weights of code 0. */
static const uint8_t *tile_source(glyd_weights_scratch *scratch, const glyd_weights_info *info, const uint8_t *rows,
                                  unsigned used, uint64_t col, const uint8_t *bases, size_t *stride) {
  const size_t cols = (size_t)info->shape.cols;
  const size_t width = info->tile_cols;
  if (used == GLYD_WEIGHTS_ROWS && cols - col >= width) {
    *stride = cols;
    return rows + 2 * col;
  }
  const size_t have = cols - col < width ? (size_t)(cols - col) : width;
  const unsigned shift = info->shape.layout == GLYD_WEIGHTS_TIERED ? 7 : 8;
  for (unsigned r = 0; r < GLYD_WEIGHTS_ROWS; r++) {
    uint16_t *to = scratch->tile + r * width;
    const size_t n = r < used ? have : 0;
    if (n > 0) memcpy(to, rows + 2 * (r * cols + col), 2 * n);
    for (size_t i = n; i < width; i++) to[i] = (uint16_t)((r < used ? bases[r] : 0) << shift);
  }
  *stride = width;
  return (const uint8_t *)scratch->tile;
}

/* A tile is 64 short pieces far apart, which no hardware foresees: 2 times faster for matrices larger than the cache. */
static void prefetch_tile(const uint8_t *rows, unsigned used, size_t cols, uint64_t col, size_t width) {
  if (col + width > cols) return;
  for (unsigned r = 0; r < used; r++)
    for (size_t b = 0; b < 2 * width; b += 64) __builtin_prefetch(rows + 2 * (r * cols + col) + b, 0, 3);
}

/* List the exceptions of a tile in order of column, then row; gives the new end of the list. */
static uint64_t list_exceptions(uint8_t *out, const glyd_weights_info *info, uint64_t at, const uint64_t *bits,
                                const uint8_t *src, size_t stride, uint64_t col) {
  for (unsigned c = 0; c < info->tile_cols; c++) {
    uint64_t rows = bits[c];
    while (rows != 0) {
      const unsigned r = glyd_ctz64(rows);
      rows &= rows - 1;
      glyd_store32(out + info->exc_places_at + 4 * at, (uint32_t)(col + c) * GLYD_WEIGHTS_ROWS + r);
      glyd_store16(out + info->exc_values_at + 2 * at, glyd_load16(src + 2 * (r * stride + c)));
      at++;
    }
  }
  return at;
}

glyd_status glyd_weights_encode_rows(uint8_t *out, size_t cap, const glyd_weights_shape *shape, uint64_t first_row,
                                     uint64_t n_rows, const uint8_t *in, void *workspace, size_t workspace_len,
                                     int cpu) {
  glyd_weights_info info;
  const glyd_status status = prepare(shape, cap, first_row, n_rows, &info);
  if (status != GLYD_OK) return status;
  glyd_weights_scratch *scratch = glyd_weights_scratch_in(workspace, workspace_len);
  if (scratch == NULL) return GLYD_E_BUFFER;
  if (glyd_load32(out + GLYD_WEIGHTS_AT_MAGIC) != GLYD_WEIGHTS_MAGIC) return GLYD_E_STATE;
  if (!glyd_weights_geometry(shape, glyd_load64(out + GLYD_WEIGHTS_AT_ESCAPES),
                             glyd_load64(out + GLYD_WEIGHTS_AT_EXCEPTIONS), &info))
    return GLYD_E_STATE;
  if (info.size != glyd_load64(out + GLYD_WEIGHTS_AT_SIZE)) return GLYD_E_STATE;
  if (info.size > cap) return GLYD_E_BUFFER;
  const int tiered = shape->layout == GLYD_WEIGHTS_TIERED;
  const int avx2 = cpu == 0 && (glyd_cpu_features() & GLYD_CPU_AVX2) != 0;
  const size_t cols = (size_t)shape->cols;

  for (uint64_t r = 0; r < n_rows; r += GLYD_WEIGHTS_ROWS) {
    const uint64_t block = (first_row + r) / GLYD_WEIGHTS_ROWS;
    const uint8_t *header = out + info.blocks_at + block * GLYD_WEIGHTS_BLOCK_HEADER;
    const uint8_t *bases = header + GLYD_WEIGHTS_BLOCK_AT_BASES;
    const uint8_t *index = out + info.index_at + 4 * block * (info.tiles + 1);
    const uint64_t escapes = glyd_load64(header + GLYD_WEIGHTS_BLOCK_AT_ESCAPES);
    const unsigned used = glyd_load16(header + GLYD_WEIGHTS_BLOCK_AT_ROWS);
    uint64_t at = glyd_load64(header + GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST);
    const uint64_t end = at + glyd_load32(header + GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT);
    for (uint64_t t = 0; t < info.tiles; t++) {
      const uint64_t col = t * info.tile_cols;
      size_t stride;
      const uint8_t *src = tile_source(scratch, &info, in + 2 * (size_t)r * cols, used, col, bases, &stride);
      uint8_t *tile = out + info.tiles_at + (block * info.tiles + t) * info.tile_bytes;
      prefetch_tile(in + 2 * (size_t)r * cols, used, cols, col + 2 * info.tile_cols, info.tile_cols);
      memset(scratch->exceptions, 0, sizeof scratch->exceptions);
      if (tiered) {
        const uint32_t from = glyd_load32(index + 4 * t);
        const uint32_t units = glyd_load32(index + 4 * t + 4) - from;
        glyd_weights_tiered_encode_tile(tile, out + info.escapes_at + (escapes + from) * GLYD_WEIGHTS_ESCAPE_UNIT,
                                        (size_t)units * GLYD_WEIGHTS_ESCAPE_UNIT, src, stride, bases, scratch, avx2);
      } else {
        glyd_weights_mma12_encode_tile(tile, src, stride, bases, scratch->exceptions, avx2);
      }
      at = list_exceptions(out, &info, at, scratch->exceptions, src, stride, col);
    }
    if (at != end) return GLYD_E_STATE; /* not the rows that were planned */
  }
  return GLYD_OK;
}

glyd_status glyd_weights_encode(uint8_t *out, size_t cap, const glyd_weights_shape *shape, const uint8_t *in,
                                void *workspace, size_t workspace_len, int cpu, size_t *out_len) {
  glyd_weights_info info;
  *out_len = 0;
  if (!glyd_weights_shape_check(shape) || !glyd_weights_geometry(shape, 0, 0, &info)) return GLYD_E_PARAMETER;
  if (info.size > glyd_weights_encode_bound(shape)) return GLYD_OK;
  size_t planned = 0;
  glyd_status status = glyd_weights_encode_plan(out, cap, shape, 0, shape->rows, in, workspace, workspace_len, cpu);
  if (status == GLYD_OK) status = glyd_weights_encode_plan_end(out, cap, shape, &planned);
  if (status != GLYD_OK || planned == 0) return status;
  status = glyd_weights_encode_rows(out, cap, shape, 0, shape->rows, in, workspace, workspace_len, cpu);
  if (status == GLYD_OK) *out_len = planned;
  return status;
}
