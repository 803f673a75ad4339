/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "block/block_encode.h"

#include "block/block_coded_encode.h"
#include "block/block_plain_encode.h"

size_t glyd_lz_encode_workspace(const glyd_lz_config *config) {
  return config->level >= GLYD_LEVEL_MAX ? glyd_coded_encode_workspace(config) : glyd_plain_encode_workspace(config);
}

glyd_status glyd_lz_encode(const glyd_lz_config *config, void *workspace, const uint8_t *in, size_t len, uint8_t *out,
                           size_t cap, size_t *out_len) {
  return glyd_lz_encode_after(config, workspace, in, 0, len, out, cap, out_len);
}

glyd_status glyd_lz_encode_after(const glyd_lz_config *config, void *workspace, const uint8_t *in, size_t history,
                                 size_t len, uint8_t *out, size_t cap, size_t *out_len) {
  if (config->level >= GLYD_LEVEL_MAX)
    return glyd_coded_segment_encode(config, workspace, in, history, len, out, cap, out_len);
  return glyd_plain_segment_encode(config, workspace, in, history, len, out, cap, out_len);
}
