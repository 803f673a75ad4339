/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The output itself holds excerpts and rest while the rest is decoded: they are
 * never more than the content. Then the rest is moved to the front and
 * everything is put to its place from the end on, so that nothing is
 * overwritten before it has been moved.
 */
#include "segment/segment_base_decode.h"

#include "base/base_copies_decode.h"
#include "base/base_excerpts.h"
#include "block/block_decode.h"

/* Numbers of copies are read before any block: both use the same memory. */
static size_t shared_workspace(void) {
  const size_t lz = glyd_lz_decode_workspace(), copies = sizeof(glyd_base_copies_decoder);
  return ((lz > copies ? lz : copies) + 63) & ~(size_t)63;
}

uint64_t glyd_segment_base_decode_workspace(uint64_t len) {
  return shared_workspace() + len / GLYD_BASE_COPY_MIN * sizeof(glyd_base_copy);
}

_Static_assert(sizeof(glyd_base_copy) == GLYD_BASE_COPY_MIN, "copies take as much memory as content, at most");

glyd_status glyd_segment_base_read(unsigned cpu, void *workspace, const glyd_base *base, uint8_t *out, size_t len,
                                   const uint8_t *in, size_t in_len, glyd_segment_base_parts *parts) {
  glyd_base_copy *const copies = (glyd_base_copy *)(void *)((uint8_t *)workspace + shared_workspace());
  glyd_plane_input input = {in, in + in_len, in + in_len};
  uint64_t n;
  const uint8_t *at = glyd_get_varint(in, input.end, &n);
  if (!at || n == 0 || n > len / GLYD_BASE_COPY_MIN || input.end - at < 2) return GLYD_E_CORRUPT;
  const glyd_base_reach reach = {at[0], at[1]};
  if (reach.around > GLYD_BASE_REACH_MAX || reach.gap > GLYD_BASE_REACH_MAX) return GLYD_E_CORRUPT;
  input.at = at + 2;
  size_t rest;
  glyd_status status = glyd_base_copies_decode(workspace, cpu, &input, base->size, len, copies, (size_t)n, &rest);
  if (status != GLYD_OK) return status;
  size_t last_gap = rest;
  for (size_t i = 0; i < n; i++) last_gap -= copies[i].gap;
  if (rest > 0) {
    size_t excerpts;
    status = glyd_base_lay_excerpts(base, reach, copies, (size_t)n, last_gap, len - rest, out, &excerpts);
    if (status != GLYD_OK) return status;
    status = glyd_lz_decode_after(cpu, workspace, out, excerpts, rest, input.at, (size_t)(input.end - input.at));
    if (status != GLYD_OK) return status;
    memmove(out, out + excerpts, rest);
  } else if (input.at != input.end) {
    return GLYD_E_CORRUPT;
  }
  *parts = (glyd_segment_base_parts){copies, (size_t)n, rest, last_gap};
  return GLYD_OK;
}

glyd_status glyd_segment_base_decode(unsigned cpu, void *workspace, const glyd_base *base, uint8_t *out, size_t len,
                                     const uint8_t *in, size_t in_len) {
  glyd_segment_base_parts parts;
  glyd_status status = glyd_segment_base_read(cpu, workspace, base, out, len, in, in_len, &parts);
  if (status != GLYD_OK) return status;
  const glyd_base_copy *const copies = parts.copies;
  size_t end = len - parts.last_gap,
         from = parts.rest - parts.last_gap; /* what is in its place; what of the rest is not */
  if (parts.last_gap > 0) memmove(out + end, out + from, parts.last_gap);
  for (size_t i = parts.n; i-- > 0;) {
    const size_t length = copies[i].length, gap = copies[i].gap;
    end -= length; /* the gap first: it may lie where the copy goes */
    from -= gap;
    memmove(out + end - gap, out + from, gap);
    status = glyd_base_source_copy(base, copies[i].position, out + end, length);
    if (status != GLYD_OK) return status;
    end -= gap;
  }
  glyd_base_source_release_all(base);
  return GLYD_OK;
}
