/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "base/base_copies_decode.h"

/* Planes whose bytes are varints, and how far they are read. */
typedef struct numbers {
  const uint8_t *at, *end;
} numbers;

static glyd_status read_plane(glyd_base_copies_decoder *d, unsigned cpu, glyd_plane_input *in, unsigned plane,
                              uint8_t *out, size_t most, numbers *v) {
  size_t n = 0;
  const glyd_status status = glyd_huffman_decode_plane(cpu, &d->tables[plane], in, out, most, 0, &v->at, &n);
  v->end = v->at + n;
  return status;
}

static int read_number(numbers *v, uint64_t *number) {
  const uint8_t *next = glyd_get_varint(v->at, v->end, number);
  if (!next) return 0;
  v->at = next;
  return 1;
}

glyd_status glyd_base_copies_decode(glyd_base_copies_decoder *d, unsigned cpu, glyd_plane_input *in, uint64_t base_size,
                                    size_t len, glyd_base_copy *copies, size_t n, size_t *rest) {
  for (unsigned k = 0; k < GLYD_BASE_PLANES; k++) d->tables[k].bits = 0;
  glyd_base_shifts shifts = {{0}};
  size_t left = len, covered = 0;
  for (size_t first = 0; first < n; first += GLYD_BASE_GROUP) {
    const size_t end = n - first < GLYD_BASE_GROUP ? n : first + GLYD_BASE_GROUP;
    const size_t most = (end - first) * GLYD_BASE_NUMBER_MAX;
    numbers gaps, lengths, places;
    glyd_status status = read_plane(d, cpu, in, GLYD_BASE_PLANE_GAPS, d->gaps, most, &gaps);
    if (status == GLYD_OK) status = read_plane(d, cpu, in, GLYD_BASE_PLANE_LENGTHS, d->lengths, most, &lengths);
    if (status == GLYD_OK)
      status = read_plane(d, cpu, in, GLYD_BASE_PLANE_PLACES, d->places, (end - first) * GLYD_BASE_PLACE_MAX, &places);
    if (status != GLYD_OK) return status;
    for (size_t i = first; i < end; i++) {
      uint64_t gap, length, place;
      if (!read_number(&gaps, &gap) || !read_number(&lengths, &length) || !read_number(&places, &place))
        return GLYD_E_CORRUPT;
      if (gap > left || length > left - gap || left - gap - length < GLYD_BASE_COPY_MIN) return GLYD_E_CORRUPT;
      length += GLYD_BASE_COPY_MIN;
      /* Wraps as the writer's difference did; what comes out is checked. */
      const uint64_t content = len - left + gap;
      const uint64_t shift = place < GLYD_BASE_SHIFTS
                                 ? shifts.slot[place]
                                 : shifts.slot[0] + glyd_base_unzigzag(place - (GLYD_BASE_SHIFTS - 1));
      glyd_base_shifts_use(&shifts, shift);
      const uint64_t position = content + shift;
      if (position > base_size || length > base_size - position) return GLYD_E_CORRUPT;
      copies[i] = (glyd_base_copy){position, (uint32_t)gap, (uint32_t)length};
      left -= (size_t)(gap + length);
      covered += (size_t)length;
    }
    if (gaps.at != gaps.end || lengths.at != lengths.end || places.at != places.end) return GLYD_E_CORRUPT;
  }
  *rest = len - covered;
  return GLYD_OK;
}
