/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "cold/cold_kernel.h"

const glyd_cold_kernel glyd_cold_kernel_scalar = {encode, decode, spread};
