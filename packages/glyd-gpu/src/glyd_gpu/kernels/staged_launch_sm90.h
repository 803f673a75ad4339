/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * How a staged product is set up: between the public launcher and the kernels.
 */
#ifndef GLYD_STAGED_LAUNCH_SM90_H
#define GLYD_STAGED_LAUNCH_SM90_H

#include <cuda.h>
#include <cuda_runtime.h>

#include "glyd/status.h"
#include "staged_work.cuh"

namespace glyd {

struct StagedArgs;

constexpr int kStagedBars = 512; /* bytes of barriers and flags */

/* GLYD_E_PARAMETER for a configuration that was not compiled. Null in a library without sm_90a. */
__attribute__((weak)) int staged_launch(const CUtensorMap &mx, const CUtensorMap &mw, const StagedArgs &p,
                                        const StagedConfig &c, bool plain, int shared, cudaStream_t stream);

} // namespace glyd

#endif
