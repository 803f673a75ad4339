/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_weights_decode.h"

#include "block/block_decode.h"
#include "common/mem.h"
#include "fields/fields_decode.h"
#include "fields/fields_difference_decode.h"

size_t glyd_segment_weights_decode_workspace(void) {
  const size_t lz = glyd_lz_decode_workspace(), fields = glyd_fields_decode_workspace();
  const size_t difference = glyd_fields_difference_decode_workspace(), most = lz > fields ? lz : fields;
  return most > difference ? most : difference;
}

glyd_status glyd_segment_weights_decode(unsigned cpu, void *workspace, const glyd_base *base, uint8_t *out,
                                        size_t out_len, const uint8_t *in, size_t in_len, glyd_checksum_pass *pass) {
  const uint8_t *ip = in, *const in_end = in + in_len;
  uint8_t *op = out, *const out_end = out + out_len;
  while (op < out_end) {
    if (ip == in_end) return GLYD_E_CORRUPT;
    const unsigned type = *ip;
    uint64_t size, body;
    ip = glyd_get_varint(ip + 1, in_end, &size);
    if (ip != NULL) ip = glyd_get_varint(ip, in_end, &body);
    if (ip == NULL || size == 0 || size > (uint64_t)(out_end - op) || body > (uint64_t)(in_end - ip))
      return GLYD_E_CORRUPT;
    const size_t at = (size_t)(op - out), n = (size_t)size;
    glyd_status status = GLYD_OK;
    switch (type) {
    case GLYD_PIECE_RAW:
      if (body != size) return GLYD_E_CORRUPT;
      if (pass != NULL)
        glyd_checksum_pass_copy(pass, op, ip, at, n);
      else
        memcpy(op, ip, n);
      break;
    case GLYD_PIECE_LZ: status = glyd_lz_decode(cpu, workspace, op, n, ip, (size_t)body, NULL); break;
    case GLYD_PIECE_FIELDS:
      status =
          glyd_fields_decode(cpu, workspace, op, n, ip, (size_t)body, (size_t)(in_end - ip) - (size_t)body, pass, at);
      break;
    case GLYD_PIECE_DIFFERENCE: {
      uint64_t place;
      const uint8_t *const numbers = glyd_get_varint(ip, ip + body, &place);
      if (numbers == NULL || base == NULL || place > base->size || size > base->size - place) return GLYD_E_CORRUPT;
      const uint8_t *old;
      uint8_t *owned;
      status = glyd_base_source_view(base, place, n, &old, &owned);
      if (status == GLYD_OK)
        status = glyd_fields_difference_decode(cpu, workspace, op, n, old, numbers, (size_t)(ip + body - numbers),
                                               (size_t)(in_end - ip) - (size_t)body, pass, at);
      glyd_base_source_close_view(base, owned);
      break;
    }
    default: return GLYD_E_CORRUPT;
    }
    if (status != GLYD_OK) return status;
    op += n;
    ip += body;
    if (pass != NULL) glyd_checksum_pass_advance(pass, at + n);
  }
  return ip == in_end ? GLYD_OK : GLYD_E_CORRUPT;
}
