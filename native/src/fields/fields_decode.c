/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "fields/fields_decode.h"

#include "common/mem.h"
#include "fields/fields_common.h"
#include "fields/fields_join_decode.h"
#include "huffman/huffman_decode.h"

typedef struct fields_decoder {
  glyd_huffman_table table[GLYD_FIELDS_RUNS_MAX];
  uint8_t plane[GLYD_FIELDS_BLOCK_MAX];
} fields_decoder;

size_t glyd_fields_decode_workspace(void) { return sizeof(fields_decoder); }

/* Read the layout; returns where the blocks start, NULL when a rule is broken. */
static const uint8_t *get_layout(glyd_fields_layout *layout, unsigned *cut, const uint8_t *in, const uint8_t *end) {
  if (in == end) return NULL;
  const unsigned head = *in++;
  const size_t n = (head & GLYD_FIELDS_RUNS_MASK) + 1;
  if ((head & GLYD_FIELDS_RESERVED) != 0 || (size_t)(end - in) < n) return NULL;
  *cut = (head & GLYD_FIELDS_CUT_MASK) >> GLYD_FIELDS_CUT_SHIFT;
  layout->n_runs = (uint8_t)n;
  layout->sign_moved = (head & GLYD_FIELDS_SIGN_MOVED) != 0;
  layout->period = 0;
  for (size_t j = 0; j < n; j++) {
    if (in[j] == 0) return NULL;
    layout->run[j] = in[j];
    layout->period += in[j];
  }
  if (layout->sign_moved && !(layout->period == n && (n == 2 || n == 4 || n == 8))) return NULL;
  return in + n;
}

glyd_status glyd_fields_decode(unsigned cpu, void *workspace, uint8_t *out, size_t len, const uint8_t *in,
                               size_t in_len, size_t in_slack, glyd_checksum_pass *pass, size_t pass_at) {
  fields_decoder *d = workspace;
  glyd_fields_layout layout;
  glyd_plane_input input = {in, in + in_len, in + in_len + in_slack};
  unsigned cut;
  input.at = get_layout(&layout, &cut, in, input.end);
  if (input.at == NULL || len % layout.period != 0) return GLYD_E_CORRUPT;
  for (unsigned j = 0; j < layout.n_runs; j++) d->table[j].bits = 0;
  const size_t block = glyd_fields_block(&layout, cut);
  const size_t n_elements = len / layout.period;
  for (size_t done = 0; done < n_elements;) {
    const size_t n = n_elements - done < block ? n_elements - done : block;
    uint8_t *const op = out + done * layout.period;
    const uint8_t *plane[GLYD_FIELDS_RUNS_MAX];
    const int direct = layout.period == 1; /* the only plane is the content */
    uint8_t *to = direct ? op : d->plane;
    for (unsigned j = 0; j < layout.n_runs; j++) {
      const size_t size = n * layout.run[j];
      size_t found;
      const glyd_status status =
          glyd_huffman_decode_plane(cpu, &d->table[j], &input, to, size, direct ? SIZE_MAX : 0, &plane[j], &found);
      if (status != GLYD_OK) return status;
      if (found != size) return GLYD_E_CORRUPT;
      to += size;
    }
    if (!direct) glyd_fields_join(cpu, &layout, op, plane, n);
    done += n;
    if (pass != NULL) glyd_checksum_pass_advance(pass, pass_at + done * layout.period);
  }
  return input.at == input.end ? GLYD_OK : GLYD_E_CORRUPT;
}
