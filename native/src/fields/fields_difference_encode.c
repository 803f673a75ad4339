/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "fields/fields_difference_encode.h"

#include "common/mem.h"
#include "fields/fields_common.h"
#include "fields/fields_groups_encode.h"
#include "fields/fields_split_encode.h"
#include "huffman/huffman_common.h"
#include "huffman/huffman_encode.h"

#define GAIN_SHIFT 7 /* planes that gain less than 0.8% stay raw */
/* One number in so many may be an escape: what a plane of zeros costs at least,
 * a bit, pays for escapes of 24 bits. */
#define ESCAPES_MAX_SHARE 24u
#define COUNTED ((size_t)1024) /* numbers between two looks at how many escapes there are */
#define SAMPLED 4096u          /* numbers that choose the groups; fewer have none */
#define BLOCK_BOUND                                                      \
  (2 * GLYD_FIELDS_DIFFERENCE_BLOCK + GLYD_FIELDS_DIFFERENCE_BLOCK / 8 + \
   GLYD_FIELDS_GROUPS_MAX * (18 * GLYD_HUFFMAN_PLANE_BOUND((size_t)0) + 1))

typedef struct group_codes {
  glyd_huffman_code dense[8], escape[8], bitmap;
} group_codes;

typedef struct difference_encoder {
  group_codes codes[GLYD_FIELDS_GROUPS_MAX];
  uint8_t difference[GLYD_FIELDS_DIFFERENCE_BLOCK];
  uint8_t grouped[GLYD_FIELDS_GROUPS_MAX][GLYD_FIELDS_DIFFERENCE_BLOCK + GLYD_FIELDS_GROUPS_SPARE];
  uint8_t group[GLYD_FIELDS_DIFFERENCE_BLOCK / 2];
  uint8_t not_zero[GLYD_FIELDS_DIFFERENCE_BLOCK + GLYD_FIELDS_GROUPS_SPARE];
  uint8_t bitmap[GLYD_FIELDS_DIFFERENCE_BLOCK / 8];
  uint8_t planes[GLYD_FIELDS_DIFFERENCE_BLOCK];
  uint8_t escapes[8][GLYD_FIELDS_DIFFERENCE_BLOCK / 2];
  uint8_t block[BLOCK_BOUND];
  glyd_fields_picks picks;
} difference_encoder;

size_t glyd_fields_difference_encode_workspace(void) { return sizeof(difference_encoder); }

void glyd_fields_difference_subtract(uint8_t *out, const uint8_t *in, const uint8_t *older, size_t len, size_t period) {
  switch (period) {
  case 1:
    for (size_t i = 0; i < len; i++) {
      const uint32_t d = (uint8_t)(in[i] - older[i]);
      out[i] = (uint8_t)(d << 1 ^ (0u - (d >> 7)));
    }
    return;
  case 2:
    for (size_t i = 0; i < len; i += 2) {
      const uint32_t d = (uint16_t)(glyd_load16(in + i) - glyd_load16(older + i));
      glyd_store16(out + i, (uint16_t)(d << 1 ^ (0u - (d >> 15))));
    }
    return;
  case 4:
    for (size_t i = 0; i < len; i += 4) {
      const uint32_t d = glyd_load32(in + i) - glyd_load32(older + i);
      glyd_store32(out + i, d << 1 ^ (0u - (d >> 31)));
    }
    return;
  default:
    for (size_t i = 0; i < len; i += 8) {
      const uint64_t d = glyd_load64(in + i) - glyd_load64(older + i);
      glyd_store64(out + i, d << 1 ^ ((uint64_t)0 - (d >> 63)));
    }
  }
}

GLYD_INLINE uint64_t number_at(const uint8_t *z, size_t i, const size_t period) {
  switch (period) {
  case 1: return z[i];
  case 2: return glyd_load16(z + 2 * i);
  case 4: return glyd_load32(z + 4 * i);
  default: return glyd_load64(z + 8 * i);
  }
}

/* How many of n numbers are not below limit; may stop at more than most. */
GLYD_INLINE size_t count_from(const uint8_t *z, size_t n, const size_t period, uint64_t limit, size_t most) {
  size_t count = 0;
  for (size_t at = 0; at < n && count <= most;) {
    const size_t end = n - at < COUNTED ? n : at + COUNTED;
    uint32_t some = 0;
    for (; at < end; at++) some += number_at(z, at, period) >= limit;
    count += some;
  }
  return count;
}

/* How many low bytes of the numbers have a plane. */
static size_t dense_bytes(const uint8_t *z, size_t n, size_t period) {
  for (size_t m = 1; m < period; m++) {
    const uint64_t limit = (uint64_t)255 << (8 * (m - 1));
    const size_t most = n / ESCAPES_MAX_SHARE;
    const size_t escapes = period == 2   ? count_from(z, n, 2, limit, most)
                           : period == 4 ? count_from(z, n, 4, limit, most)
                                         : count_from(z, n, 8, limit, most);
    if (escapes <= most) return m;
  }
  return period;
}

/* Put 255 into the top plane where numbers do not fit, and what is left of them into escapes. */
GLYD_INLINE size_t split_escapes(difference_encoder *e, const uint8_t *z, size_t n, const size_t period, size_t m) {
  const uint64_t limit = (uint64_t)255 << (8 * (m - 1));
  uint8_t *const top = e->planes + (m - 1) * n;
  size_t escapes = 0;
  for (size_t i = 0; i < n; i++) {
    const uint64_t v = number_at(z, i, period);
    if (GLYD_LIKELY(v < limit)) continue;
    const uint64_t more = (v >> (8 * (m - 1))) - 255;
    top[i] = 255;
    for (size_t j = 0; j < period - m + 1; j++) e->escapes[j][escapes] = (uint8_t)(more >> (8 * j));
    escapes++;
  }
  return escapes;
}

/* The planes of n numbers, m of them with all. */
static uint8_t *put_planes(unsigned cpu, difference_encoder *e, group_codes *codes, const uint8_t *z, size_t n,
                           size_t period, size_t m, uint8_t *out) {
  glyd_fields_layout layout = {.period = (uint32_t)period, .n_runs = (uint8_t)period};
  memset(layout.run, 1, period);
  glyd_fields_split(cpu, &layout, e->planes, z, n);
  size_t escapes = 0;
  if (m < period)
    escapes = period == 2   ? split_escapes(e, z, n, 2, m)
              : period == 4 ? split_escapes(e, z, n, 4, m)
                            : split_escapes(e, z, n, 8, m);
  for (size_t j = 0; j < m; j++)
    out = glyd_huffman_encode_plane_above(cpu, out, e->planes + j * n, n, NULL, &codes->dense[j], GAIN_SHIFT);
  for (size_t j = 0; j < period - m + 1 && m < period; j++)
    out = glyd_huffman_encode_plane_above(cpu, out, e->escapes[j], escapes, NULL, &codes->escape[j], GAIN_SHIFT);
  return out;
}

static uint8_t *put_group(unsigned cpu, difference_encoder *e, group_codes *codes, const uint8_t *z, size_t n,
                          size_t period, uint8_t *out) {
  const size_t most = n - n / 2 - n / 10; /* with so many zeros a bit for each number is too much */
  const size_t count = period == 1   ? count_from(z, n, 1, 1, most)
                       : period == 2 ? count_from(z, n, 2, 1, most)
                       : period == 4 ? count_from(z, n, 4, 1, most)
                                     : count_from(z, n, 8, 1, most);
  const int is_sparse = count <= most;
  if (is_sparse) {
    (void)glyd_fields_drop_zeros(cpu, &e->picks, e->not_zero, e->bitmap, z, n, period);
    z = e->not_zero;
  }
  const size_t left = is_sparse ? count : n, m = dense_bytes(z, left, period);
  *out++ = (uint8_t)(m | (is_sparse ? GLYD_FIELDS_SPARSE : 0));
  if (is_sparse)
    out = glyd_huffman_encode_plane_above(cpu, out, e->bitmap, (n + 7) / 8, NULL, &codes->bitmap, GAIN_SHIFT);
  return left > 0 ? put_planes(cpu, e, codes, z, left, period, m, out) : out;
}

/* Groups of about the same size, by the numbers of the base: where those are, and how many groups. */
static unsigned choose_groups(const uint8_t *older, size_t n, size_t period, uint8_t bounds[GLYD_FIELDS_GROUPS_MAX]) {
  if (period != 2 || n < SAMPLED) return 1;
  uint32_t counts[256] = {0}, below = 0;
  unsigned groups = 1;
  for (size_t i = 0; i < SAMPLED; i++) counts[glyd_fields_class(older + n / SAMPLED * i * period, period)]++;
  for (unsigned c = 0; c < 256 && groups < GLYD_FIELDS_GROUPS_MAX; c++) {
    if (c > 0 && below >= groups * (SAMPLED / GLYD_FIELDS_GROUPS_MAX)) bounds[groups++ - 1] = (uint8_t)c;
    below += counts[c];
  }
  return groups;
}

static uint8_t *put_block(unsigned cpu, difference_encoder *e, const glyd_fields_groups *groups, const uint8_t *older,
                          size_t n, size_t period, uint8_t *out) {
  if (groups->n == 1) return put_group(cpu, e, &e->codes[0], e->difference, n, period, out);
  uint32_t start[GLYD_FIELDS_GROUPS_MAX + 1];
  glyd_fields_groups_find(cpu, groups, older, n, period, e->group, start);
  uint8_t *const to[GLYD_FIELDS_GROUPS_MAX] = {e->grouped[0], e->grouped[1], e->grouped[2], e->grouped[3]};
  glyd_fields_groups_split(cpu, &e->picks, to, e->difference, e->group, n);
  for (unsigned g = 0; g < groups->n; g++)
    if (start[g + 1] > start[g])
      out = put_group(cpu, e, &e->codes[g], e->grouped[g], start[g + 1] - start[g], period, out);
  return out;
}

glyd_status glyd_fields_difference_encode(unsigned cpu, void *workspace, size_t period, const uint8_t *in,
                                          const uint8_t *older, size_t len, uint8_t *out, size_t cap, size_t *out_len) {
  difference_encoder *e = workspace;
  *out_len = 0;
  uint8_t bounds[GLYD_FIELDS_GROUPS_MAX];
  glyd_fields_groups groups;
  glyd_fields_groups_set(&groups, choose_groups(older, len / period, period, bounds), bounds);
  if (cap < 1 + groups.n) return GLYD_E_BUFFER;
  uint8_t *p = out, *const end = out + cap;
  *p++ = (uint8_t)period;
  *p++ = (uint8_t)groups.n;
  for (unsigned g = 0; g + 1 < groups.n; g++) *p++ = bounds[g];
  e->picks.made = 0;
  for (unsigned g = 0; g < groups.n; g++) {
    e->codes[g].bitmap.valid = 0;
    for (size_t j = 0; j < 8; j++) e->codes[g].dense[j].valid = e->codes[g].escape[j].valid = 0;
  }
  for (size_t at = 0; at < len;) {
    const size_t size = len - at < GLYD_FIELDS_DIFFERENCE_BLOCK ? len - at : GLYD_FIELDS_DIFFERENCE_BLOCK;
    glyd_fields_difference_subtract(e->difference, in + at, older + at, size, period);
    const size_t n = (size_t)(put_block(cpu, e, &groups, older + at, size / period, period, e->block) - e->block);
    if (n > (size_t)(end - p)) return GLYD_E_BUFFER;
    memcpy(p, e->block, n);
    p += n;
    at += size;
  }
  *out_len = (size_t)(p - out);
  return GLYD_OK;
}
