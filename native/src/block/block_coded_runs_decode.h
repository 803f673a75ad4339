/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Contexts of the literals of a fine block (spec.md, "Coded blocks").
 */
#ifndef GLYD_BLOCK_CODED_RUNS_DECODE_H
#define GLYD_BLOCK_CODED_RUNS_DECODE_H

#include "block/block_coded_exec.h"

/* Write the contexts of n literals to their places at out, which has room for one
 * more: what the command after a run says for its first literal, 0 for the others.
 * CORRUPT where planes hold too little for the commands, or these too many literals. */
glyd_status glyd_coded_mark_runs(unsigned cpu, const glyd_coded_planes *planes, uint8_t *out, size_t n);

#endif
