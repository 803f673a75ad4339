/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The block unit's contract with the frame unit (spec.md has the bytes).
 */
#ifndef GLYD_BLOCK_COMMON_H
#define GLYD_BLOCK_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/format.h"
#include "glyd/status.h"

/* What a segment encoder needs to know of the parameters. */
typedef struct glyd_lz_config {
  int level;             /* GLYD_LEVEL_* */
  int long_distance;     /* matches over the whole segment */
  uint64_t segment_size; /* most bytes encode will be given, at most 2^30 */
  unsigned cpu;          /* GLYD_CPU_* bits of common/cpu.h */
} glyd_lz_config;

/* block_encode.h ---------------------------------------------------------
 * size_t glyd_lz_encode_workspace(const glyd_lz_config *config);
 *   bytes of workspace (64-byte aligned memory) that glyd_lz_encode needs; contents
 *   need no initialisation and carry nothing from one call to the next.
 * glyd_status glyd_lz_encode(const glyd_lz_config *config, void *workspace, const uint8_t *in, size_t len,
 *                            uint8_t *out, size_t cap, size_t *out_len);
 *   payload of one LZ segment; GLYD_E_BUFFER when it would not fit cap (the frame then stores raw).
 *   Reads only in[0..len), writes only out[0..cap).
 *
 * block_decode.h ---------------------------------------------------------
 * size_t glyd_lz_decode_workspace(void);             constant, at most 1 MiB - 64 KiB
 * glyd_status glyd_lz_decode(unsigned cpu, void *workspace, uint8_t *out, size_t out_len, const uint8_t *in, size_t in_len,
 *                            glyd_checksum_pass *pass);   pass: hashed block by block, or NULL
 *   decode one payload into exactly out_len bytes. Reads only in[0..in_len), writes only out[0..out_len):
 *   neighbours of out may be in use by other threads.
 */

#endif
