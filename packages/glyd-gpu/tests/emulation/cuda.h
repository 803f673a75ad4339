/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * In place of the driver's header: a tensor map as the emulated copy engine reads it.
 */
#ifndef GLYD_EMULATED_CUDA_H
#define GLYD_EMULATED_CUDA_H

#include <stdint.h>

struct CUtensorMap { /* rows of bf16; columns a multiple of 8 */
  const uint16_t *at;
  int64_t rows, cols;
  int box_rows; /* of 64 columns */
};
typedef void *cudaStream_t;

#endif
