/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Constants of filtered segments (spec.md).
 */
#ifndef GLYD_FILTER_COMMON_H
#define GLYD_FILTER_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/status.h"

enum { GLYD_FILTER_NONE = 0, GLYD_FILTER_X86 = 1, GLYD_FILTER_ARM64 = 2, GLYD_FILTER_DELTA = 3 };

#define GLYD_FILTER_HEAD_MAX 2 /* bytes before the blocks */
#define GLYD_FILTER_STRIDE_MAX 16u

typedef struct glyd_filter {
  int kind;           /* GLYD_FILTER_* */
  unsigned width_log; /* delta: log2 of the bytes of an element, 0 to 2 */
  unsigned stride;    /* and how many elements back */
} glyd_filter;

#endif
