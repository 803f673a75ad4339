/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "fields/fields_encode.h"

#include "common/mem.h"
#include "fields/fields_entropy_encode.h"
#include "fields/fields_split_encode.h"
#include "huffman/huffman_common.h"
#include "huffman/huffman_encode.h"

#define NOISE_SAMPLE 4096u                         /* bytes of a plane that are looked at first */
#define GAIN_SHIFT 7                               /* planes that gain less than 0.8% stay raw */
#define NOISE_BITS (GLYD_ENTROPY_ONE * 127u / 16u) /* as those with this entropy will */

#define PLANES_BOUND (GLYD_FIELDS_BLOCK_MAX + GLYD_FIELDS_RUNS_MAX * GLYD_HUFFMAN_PLANE_BOUND(0))

typedef struct fields_encoder {
  glyd_huffman_code code[GLYD_FIELDS_RUNS_MAX];
  uint8_t plane[GLYD_FIELDS_BLOCK_MAX];
  uint8_t block[PLANES_BOUND]; /* a coded block that may not fit the output */
} fields_encoder;

size_t glyd_fields_encode_workspace(void) { return sizeof(fields_encoder); }

/* Most planes of mantissas are noise: seen in a sample, before all is counted. */
static int plane_is_noise(const uint8_t *in, size_t n) {
  if (n < 2 * NOISE_SAMPLE) return 0;
  uint16_t counts[256] = {0};
  const size_t step = n / (NOISE_SAMPLE / 16); /* pieces of 16 bytes */
  for (size_t i = 0; i < NOISE_SAMPLE / 16; i++)
    for (size_t k = 0; k < 16; k++) counts[in[i * step + k]]++;
  return glyd_entropy_bits(counts, NOISE_SAMPLE) >= (uint64_t)NOISE_SAMPLE * NOISE_BITS;
}

static uint8_t *put_planes(unsigned cpu, fields_encoder *e, const glyd_fields_layout *layout, const uint8_t *planes,
                           size_t n, uint8_t *out) {
  for (unsigned j = 0; j < layout->n_runs; j++) {
    const size_t size = n * layout->run[j];
    if (plane_is_noise(planes, size)) {
      out = glyd_put_varint(out, (uint64_t)size << 2 | GLYD_PLANE_RAW);
      memcpy(out, planes, size);
      out += size;
    } else {
      out = glyd_huffman_encode_plane_above(cpu, out, planes, size, NULL, &e->code[j], GAIN_SHIFT);
    }
    planes += size;
  }
  return out;
}

glyd_status glyd_fields_encode(unsigned cpu, void *workspace, const glyd_fields_layout *layout, const uint8_t *in,
                               size_t len, uint8_t *out, size_t cap, size_t *out_len) {
  fields_encoder *e = workspace;
  const size_t head = 1u + layout->n_runs;
  const unsigned cut = layout->period == 1 ? 2 : layout->period <= 8 ? 1 : 0; /* measured, see spec.md */
  *out_len = 0;
  if (cap < head) return GLYD_E_BUFFER;
  uint8_t *p = out, *const end = out + cap;
  *p++ = (uint8_t)((layout->n_runs - 1u) | (layout->sign_moved ? GLYD_FIELDS_SIGN_MOVED : 0u) |
                   cut << GLYD_FIELDS_CUT_SHIFT);
  memcpy(p, layout->run, layout->n_runs);
  p += layout->n_runs;
  for (unsigned j = 0; j < layout->n_runs; j++) e->code[j].valid = 0;
  const size_t block = glyd_fields_block(layout, cut), n_elements = len / layout->period;
  for (size_t done = 0; done < n_elements;) {
    const size_t n = n_elements - done < block ? n_elements - done : block;
    const uint8_t *from = in + done * layout->period;
    const uint8_t *planes = from; /* one run: the content is its plane */
    if (layout->n_runs > 1) {
      glyd_fields_split(cpu, layout, e->plane, from, n);
      planes = e->plane;
    }
    const size_t bound = n * layout->period + layout->n_runs * GLYD_HUFFMAN_PLANE_BOUND((size_t)0);
    const int fits = (size_t)(end - p) >= bound;
    uint8_t *const to = fits ? p : e->block;
    const size_t size = (size_t)(put_planes(cpu, e, layout, planes, n, to) - to);
    if (!fits) {
      if (size > (size_t)(end - p)) return GLYD_E_BUFFER;
      memcpy(p, to, size);
    }
    p += size;
    done += n;
  }
  *out_len = (size_t)(p - out);
  return GLYD_OK;
}
