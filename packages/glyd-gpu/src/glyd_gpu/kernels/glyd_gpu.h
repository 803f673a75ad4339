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

#define GLYD_GPU_ABI_VERSION 1

#define GLYD_GPU_API extern "C" __attribute__((visibility("default")))

/* GLYD_GPU_ABI_VERSION that the library was built with. */
GLYD_GPU_API int glyd_gpu_abi_version(void);

/* Names of the architectures in the library, separated by commas. */
GLYD_GPU_API const char *glyd_gpu_architectures(void);

/* What a return value means, in English. */
GLYD_GPU_API const char *glyd_gpu_error_text(int code);

#endif
