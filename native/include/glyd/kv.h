/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Packed pages of keys and values: 128 tokens of one head in bf16, in a form
 * that attention on a GPU reads from directly. native/src/kv/spec.md defines
 * the bytes.
 *
 * The rules of glyd/glyd.h hold here too. Nothing is allocated: the caller
 * gives a workspace of glyd_kv_workspace() bytes, one for each thread.
 */
#ifndef GLYD_KV_H
#define GLYD_KV_H

#include "glyd/format_kv.h"
#include "glyd/glyd.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct glyd_kv_info {
  int version;
  int form;              /* GLYD_KV_PLAIN or GLYD_KV_PACKED */
  uint32_t channels;     /* of the head */
  uint32_t size;         /* bytes of the page */
  uint32_t n_exceptions; /* values stored on their own */
  uint32_t n_codes;      /* of quads; others are numbers of spelled ones; 0 in a plain page */
  uint32_t n_words;      /* of spelled quads */
} glyd_kv_info;

/* Bytes of workspace that any call below needs. */
GLYD_API size_t glyd_kv_workspace(void);

/* Bytes of the largest page, the plain one; 0 for a number of channels that is
 * no multiple of 16 or outside of 16 to GLYD_KV_CHANNELS_MAX. */
GLYD_API size_t glyd_kv_page_bound(uint32_t channels);

/* Pack a page. in: [128][channels] bf16, rows stride values apart (at least
 * channels). out needs glyd_kv_page_bound(channels) bytes. The page is plain
 * where packing does not pay. cpu: 0 the best variant, 1 the portable one;
 * both give the same bytes. Errors: PARAMETER, BUFFER. */
GLYD_API glyd_status glyd_kv_pack(void *out, size_t cap, const void *in, uint32_t channels, size_t stride,
                                  void *workspace, size_t workspace_len, int cpu, size_t *out_len);

/* Read and check the header of a page; len may exceed the page. Errors: MAGIC,
 * VERSION, FEATURE (form), HEADER, TRUNCATED. */
GLYD_API glyd_status glyd_kv_read_info(const void *in, size_t len, glyd_kv_info *info);

/* Unpack a page to [128][channels], rows stride values apart; cap in bytes.
 * Both variants refuse the same pages. Errors: those of glyd_kv_read_info,
 * PARAMETER, BUFFER, CORRUPT. */
GLYD_API glyd_status glyd_kv_unpack(void *out, size_t cap, size_t stride, const void *in, size_t len, void *workspace,
                                    size_t workspace_len, int cpu);

#ifdef __cplusplus
}
#endif

#endif
