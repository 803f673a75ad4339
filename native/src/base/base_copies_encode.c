/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "base/base_copies_encode.h"

glyd_status glyd_base_copies_encode(glyd_base_copies_encoder *e, unsigned cpu, const glyd_base_copy *copies, size_t n,
                                    uint8_t *out, size_t cap, size_t *size) {
  for (unsigned k = 0; k < GLYD_BASE_PLANES; k++) e->last[k].valid = 0;
  glyd_base_shifts shifts = {{0}};
  uint64_t content = 0;
  *size = 0;
  for (size_t first = 0; first < n; first += GLYD_BASE_GROUP) {
    const size_t end = n - first < GLYD_BASE_GROUP ? n : first + GLYD_BASE_GROUP;
    uint8_t *gap = e->gaps, *length = e->lengths, *place = e->places;
    for (size_t i = first; i < end; i++) {
      const glyd_base_copy c = copies[i];
      gap = glyd_put_varint(gap, c.gap);
      length = glyd_put_varint(length, c.length - GLYD_BASE_COPY_MIN);
      content += c.gap;
      const uint64_t shift = c.position - content, last = shifts.slot[0];
      const unsigned slot = glyd_base_shifts_use(&shifts, shift);
      place = glyd_put_varint(place,
                              slot < GLYD_BASE_SHIFTS ? slot : glyd_base_zigzag(shift - last) + GLYD_BASE_SHIFTS - 1);
      content += c.length;
    }
    uint8_t *p = e->out;
    p = glyd_huffman_encode_plane(cpu, p, e->gaps, (size_t)(gap - e->gaps), NULL, &e->last[GLYD_BASE_PLANE_GAPS]);
    p = glyd_huffman_encode_plane(cpu, p, e->lengths, (size_t)(length - e->lengths), NULL,
                                  &e->last[GLYD_BASE_PLANE_LENGTHS]);
    p = glyd_huffman_encode_plane(cpu, p, e->places, (size_t)(place - e->places), NULL,
                                  &e->last[GLYD_BASE_PLANE_PLACES]);
    const size_t written = (size_t)(p - e->out);
    if (written > cap - *size) return GLYD_E_BUFFER;
    memcpy(out + *size, e->out, written);
    *size += written;
  }
  return GLYD_OK;
}
