/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Description of a bf16 matrix for the copy engine.
 */
#ifndef GLYD_TENSOR_MAP_H
#define GLYD_TENSOR_MAP_H

#include <cuda.h>
#include <cuda_runtime.h>

namespace glyd {

typedef CUresult (*EncodeTiled)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                                CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

inline EncodeTiled find_encoder() {
  void *f = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found)) return nullptr;
  return (EncodeTiled)f;
}

/* Pieces of 64 columns and box_rows rows of [rows, cols] bf16, 128-byte swizzle, zeros outside; 0 or a cudaError_t. cols a
 * multiple of 8, at a multiple of 16 bytes. */
inline int tensor_map_rows(CUtensorMap *map, const void *at, uint64_t rows, uint64_t cols, int box_rows) {
  static const EncodeTiled encode = find_encoder();
  if (!encode) return cudaErrorNotSupported;
  const cuuint64_t sizes[2] = {(cuuint64_t)cols, (cuuint64_t)rows}, strides[1] = {(cuuint64_t)cols * 2};
  const cuuint32_t box[2] = {64, (cuuint32_t)box_rows}, steps[2] = {1, 1};
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void *>(at), sizes, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
             ? (int)cudaErrorInvalidValue
             : 0;
}

} // namespace glyd

#endif
