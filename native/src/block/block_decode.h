/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading the payload of an LZ segment.
 */
#ifndef GLYD_BLOCK_DECODE_H
#define GLYD_BLOCK_DECODE_H

#include "block/block_common.h"
#include "common/checksum.h"

/* Bytes of workspace (64-byte aligned memory) that glyd_lz_decode needs: a
 * constant, at most 1 MiB - 64 KiB. Nothing is carried from call to call. */
size_t glyd_lz_decode_workspace(void);

/* Decode the payload in[0..in_len) into exactly out_len bytes. Reads only
 * in[0..in_len), writes only out[0..out_len). GLYD_E_CORRUPT for anything that
 * breaks a rule of the format. pass (NULL: no check is wanted), begun for out,
 * hashes each block while it is in the cache; to be ended by the caller. */
glyd_status glyd_lz_decode(unsigned cpu, void *workspace, uint8_t *out, size_t out_len, const uint8_t *in,
                           size_t in_len, glyd_checksum_pass *pass);

/* The same for content that comes after history bytes at out, which matches may
 * copy from: decoded to out + history, written up to out_len bytes from there. */
glyd_status glyd_lz_decode_after(unsigned cpu, void *workspace, uint8_t *out, size_t history, size_t out_len,
                                 const uint8_t *in, size_t in_len);

#endif
