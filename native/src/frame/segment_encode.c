/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "frame/segment_encode.h"

#include "block/block_encode.h"
#include "common/checksum.h"
#include "common/mem.h"
#include "frame/frame_common.h"
#include "frame/header_encode.h"
#include "segment/segment_base_encode.h"
#include "segment/segment_weights_encode.h"

uint64_t glyd_segment_encode_workspace(const glyd_plan *plan) {
  const uint64_t own = plan->weights == GLYD_WEIGHTS_OFF ? glyd_lz_encode_workspace(&plan->lz)
                                                         : glyd_segment_weights_encode_workspace(&plan->lz);
  const uint64_t base = plan->base ? glyd_segment_base_encode_workspace(&plan->lz) : 0;
  return base > own ? base : own;
}

/* Choose the kind and fill in payload (room for len bytes) and its size. pass
 * (NULL: no check) has been begun for the content and may be advanced. */
static glyd_status encode_payload(const glyd_plan *plan, void *workspace, const uint8_t *in, size_t len,
                                  uint8_t *payload, int *kind, size_t *size, glyd_checksum_pass *pass) {
  /* Equal to itself moved by one: all bytes are the same. Ends at the first difference. */
  if (memcmp(in, in + 1, len - 1) == 0) {
    payload[0] = in[0];
    *kind = GLYD_KIND_FILL;
    *size = 1;
    return GLYD_OK;
  }
  if (plan->base) {
    *kind = GLYD_KIND_BASE;
    const glyd_status status =
        glyd_segment_base_encode(&plan->lz, workspace, plan->base, in, len, payload, len - 1, size);
    if (status != GLYD_E_BUFFER && (status != GLYD_OK || *size > 0)) return status;
  }
  if (plan->weights == GLYD_WEIGHTS_ON) {
    *kind = GLYD_KIND_WEIGHTS;
    const glyd_status tried = glyd_segment_weights_encode(&plan->lz, workspace, in, len, payload, len - 1, size);
    if (tried == GLYD_OK && *size > 0) return GLYD_OK;
    if (tried != GLYD_OK && tried != GLYD_E_BUFFER) return tried;
  }
  *kind = GLYD_KIND_LZ;
  const glyd_status status = glyd_lz_encode(&plan->lz, workspace, in, len, payload, len - 1, size);
  if (status != GLYD_E_BUFFER) return status;
  if (pass)
    glyd_checksum_pass_copy(pass, payload, in, 0, len);
  else
    memcpy(payload, in, len);
  *kind = GLYD_KIND_RAW;
  *size = len;
  return GLYD_OK;
}

glyd_status glyd_segment_encode(const glyd_plan *plan, void *workspace, const uint8_t *in, size_t len, uint8_t *payload,
                                const uint8_t **start, size_t *size) {
  int kind;
  size_t payload_size;
  glyd_checksum_pass pass;
  const int checked = plan->check != GLYD_CHECK_NONE;
  if (checked) glyd_checksum_pass_begin(&pass, plan->lz.cpu, in, len);
  const glyd_status status =
      encode_payload(plan, workspace, in, len, payload, &kind, &payload_size, checked ? &pass : NULL);
  if (status) return status;
  const uint64_t hash = checked ? glyd_checksum_pass_end(&pass) : 0;
  *start = glyd_header_encode_segment(plan, kind, len, payload_size, hash, payload);
  *size = (size_t)(payload + payload_size - *start);
  return GLYD_OK;
}
