/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "record/record_kernel.h"

const glyd_record_kernels glyd_record_kernels_scalar = {batch, rows, format};
