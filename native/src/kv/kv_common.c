/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Workspace of a thread.
 */
#include "kv/kv_common.h"

#define SCRATCH_ALIGN 64

size_t glyd_kv_scratch_size(void) { return sizeof(glyd_kv_scratch) + SCRATCH_ALIGN; }

glyd_kv_scratch *glyd_kv_scratch_in(void *workspace, size_t len) {
  if (workspace == NULL || len < glyd_kv_scratch_size()) return NULL;
  return (glyd_kv_scratch *)(((uintptr_t)workspace + SCRATCH_ALIGN - 1) & ~(uintptr_t)(SCRATCH_ALIGN - 1));
}
