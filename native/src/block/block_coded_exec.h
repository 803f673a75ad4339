/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Executing the sequences of a coded block whose planes are decoded. Variants
 * give the same content and refuse the same input.
 */
#ifndef GLYD_BLOCK_CODED_EXEC_H
#define GLYD_BLOCK_CODED_EXEC_H

#include "block/block_coded_common.h"
#include "glyd/status.h"

/* Bytes that may be read after the end of each plane. */
#define GLYD_CODED_LITERALS_SLACK 64
#define GLYD_CODED_PLANE_SLACK 160 /* commands, escapes: a batch of 128 and a load of 16 */

/* Offsets are decoded whole; entries after the last are readable: a batch and one. */
#define GLYD_CODED_BATCH 128

typedef struct glyd_coded_planes {
  const uint8_t *literals, *literals_end;
  const uint8_t *commands, *commands_end;
  const uint8_t *literal_escapes, *literal_escapes_end;
  const uint8_t *match_escapes, *match_escapes_end;
  const uint32_t *longs, *longs_end;
  const uint32_t *offsets, *offsets_end; /* new offsets in order */
  int near;                              /* some of them are distances from slots (GLYD_CODED_NEAR_SHIFT) */
  uint8_t lengths[16];                   /* of match-length codes; 15: base of the escape */
} glyd_coded_planes;

/* Content goes to [op, op_end); up to out_end may be written. repeat is read
 * and updated. */
glyd_status glyd_coded_exec_scalar(const glyd_coded_planes *planes, uint32_t repeat[GLYD_CODED_REPEATS],
                                   const uint8_t *segment, uint8_t *op, uint8_t *op_end, uint8_t *out_end);

#if defined(__x86_64__)
glyd_status glyd_coded_exec_avx2(const glyd_coded_planes *planes, uint32_t repeat[GLYD_CODED_REPEATS],
                                 const uint8_t *segment, uint8_t *op, uint8_t *op_end, uint8_t *out_end);
#endif

#endif
