/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "block/block_decode.h"

#include "block/block_coded_decode.h"
#include "block/block_plain_decode.h"
#include "common/checksum.h"
#include "common/mem.h"

/* Plain blocks use what coded blocks do not carry: both may be in a segment. */
static void *plain_workspace(void *workspace) { return (uint8_t *)workspace + glyd_coded_decode_carried(); }

size_t glyd_lz_decode_workspace(void) {
  const size_t coded = glyd_coded_decode_workspace();
  const size_t plain = glyd_coded_decode_carried() + glyd_plain_decode_workspace();
  return plain > coded ? plain : coded;
}

/* Matches reach back to history; content goes to out. */
static glyd_status decode_blocks(unsigned cpu, void *workspace, uint8_t *history, uint8_t *out, size_t out_len,
                                 const uint8_t *in, size_t in_len, glyd_checksum_pass *pass) {
  const uint8_t *ip = in, *const in_end = in + in_len;
  uint8_t *op = out, *const out_end = out + out_len;
  int coded = 0; /* a coded block was met */
  while (op < out_end) {
    if (ip == in_end) return GLYD_E_CORRUPT;
    const unsigned type = *ip & 3, flags = *ip & 0xFC;
    uint64_t size, body;
    ip = glyd_get_varint(ip + 1, in_end, &size);
    if (ip != NULL) ip = glyd_get_varint(ip, in_end, &body);
    if (ip == NULL || size == 0 || size > GLYD_BLOCK_MAX || size > (uint64_t)(out_end - op) ||
        body > (uint64_t)(in_end - ip))
      return GLYD_E_CORRUPT;
    glyd_status status = GLYD_OK;
    switch (type) {
    case GLYD_BLOCK_RAW:
      if (body != size || flags != 0) return GLYD_E_CORRUPT;
      if (pass != NULL)
        glyd_checksum_pass_copy(pass, op, ip, (size_t)(op - out), (size_t)size);
      else
        memcpy(op, ip, (size_t)size);
      break;
    case GLYD_BLOCK_FILL:
      if (body != 1 || flags != 0) return GLYD_E_CORRUPT;
      memset(op, *ip, (size_t)size);
      break;
    case GLYD_BLOCK_PLAIN:
      status = glyd_plain_block_decode(cpu, plain_workspace(workspace), history, op, (size_t)size, out_end, flags, ip,
                                       (size_t)body, (size_t)(in_end - ip) - (size_t)body);
      break;
    default:
      if (coded == 0) glyd_coded_decode_reset(workspace);
      coded = 1;
      status = glyd_coded_block_decode(cpu, workspace, history, op, (size_t)size, out_end, flags, ip, (size_t)body,
                                       (size_t)(in_end - ip) - (size_t)body);
      break;
    }
    if (status != GLYD_OK) return status;
    op += size;
    ip += body;
    if (pass != NULL) glyd_checksum_pass_advance(pass, (size_t)(op - out));
  }
  return ip == in_end ? GLYD_OK : GLYD_E_CORRUPT;
}

glyd_status glyd_lz_decode(unsigned cpu, void *workspace, uint8_t *out, size_t out_len, const uint8_t *in,
                           size_t in_len, glyd_checksum_pass *pass) {
  return decode_blocks(cpu, workspace, out, out, out_len, in, in_len, pass);
}

glyd_status glyd_lz_decode_after(unsigned cpu, void *workspace, uint8_t *out, size_t history, size_t out_len,
                                 const uint8_t *in, size_t in_len) {
  return decode_blocks(cpu, workspace, out, out + history, out_len, in, in_len, NULL);
}
