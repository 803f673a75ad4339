/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "fields/fields_difference_decode.h"

#include "common/mem.h"
#include "fields/fields_common.h"
#include "fields/fields_groups_decode.h"
#include "huffman/huffman_decode.h"

/* Kinds of planes: with all numbers of a group 0 … P - 1, of escapes P … 2 P - 1, the bits of a group 2 P. */
#define KINDS_MAX (GLYD_FIELDS_GROUPS_MAX * 9)
_Static_assert(KINDS_MAX >= 2 * 8 + 1, "numbers of 8 bytes have no groups");

typedef struct difference_decoder {
  glyd_huffman_table table[KINDS_MAX];
  uint8_t plane[GLYD_FIELDS_DIFFERENCE_BLOCK];
  uint8_t escapes[GLYD_FIELDS_DIFFERENCE_BLOCK];
  uint8_t bitmap[GLYD_FIELDS_DIFFERENCE_BLOCK / 8];
  uint8_t not_zero[GLYD_FIELDS_DIFFERENCE_BLOCK + GLYD_FIELDS_GROUPS_SLACK];
  uint8_t grouped[GLYD_FIELDS_DIFFERENCE_BLOCK + GLYD_FIELDS_GROUPS_SLACK];
  uint8_t group[GLYD_FIELDS_DIFFERENCE_BLOCK / 2];
  glyd_fields_ranks ranks;
} difference_decoder;

size_t glyd_fields_difference_decode_workspace(void) { return sizeof(difference_decoder); }

static glyd_status get_plane(unsigned cpu, glyd_huffman_table *table, glyd_plane_input *in, uint8_t *to, size_t n,
                             const uint8_t **plane) {
  size_t found;
  const glyd_status status = glyd_huffman_decode_plane(cpu, table, in, to, n, 0, plane, &found);
  if (status != GLYD_OK) return status;
  return found == n ? GLYD_OK : GLYD_E_CORRUPT;
}

/* Numbers of p bytes from m planes. */
GLYD_INLINE void join(uint8_t *out, const uint8_t *const *plane, size_t n, const size_t p, const size_t m) {
  for (size_t i = 0; i < n; i++) {
    uint64_t z = 0;
    for (size_t j = 0; j < m && j < 8; j++) z |= (uint64_t)plane[j][i] << (8 * j);
    if (p == 1) out[i] = (uint8_t)z;
    if (p == 2) glyd_store16(out + 2 * i, (uint16_t)z);
    if (p == 4) glyd_store32(out + 4 * i, (uint32_t)z);
    if (p == 8) glyd_store64(out + 8 * i, z);
  }
}

static void join_planes(uint8_t *out, const uint8_t *const *plane, size_t n, size_t p, size_t m) {
  switch (p * 8 + m) {
  case 1 * 8 + 1: join(out, plane, n, 1, 1); return;
  case 2 * 8 + 1: join(out, plane, n, 2, 1); return;
  case 2 * 8 + 2: join(out, plane, n, 2, 2); return;
  case 4 * 8 + 1: join(out, plane, n, 4, 1); return;
  case 4 * 8 + 2: join(out, plane, n, 4, 2); return;
  case 4 * 8 + 3: join(out, plane, n, 4, 3); return;
  case 4 * 8 + 4: join(out, plane, n, 4, 4); return;
  default: join(out, plane, n, 8, m); return;
  }
}

static uint64_t get_number(const uint8_t *p, size_t size) {
  uint64_t v = 0;
  for (size_t j = 0; j < size; j++) v |= (uint64_t)p[j] << (8 * j);
  return v;
}

/* Add what the escapes, k planes of them, hold; corrupt when a number gets too large. */
static glyd_status add_escapes(uint8_t *out, const uint8_t *top, const uint8_t *const *escape, size_t n, size_t p,
                               size_t k) {
  const unsigned shift = (unsigned)(8 * (p - k)); /* 8 (m - 1) */
  size_t e = 0;
  for (size_t i = 0; i < n; i++, e++) {
    const uint8_t *next = memchr(top + i, 255, n - i);
    if (next == NULL) return GLYD_OK;
    i = (size_t)(next - top);
    uint64_t more = 0;
    for (size_t j = 0; j < k && j < 8; j++) more |= (uint64_t)escape[j][e] << (8 * j);
    const uint64_t z = get_number(out + i * p, p), upper = (z >> shift) + more;
    if (k < 8 ? upper >> (8 * k) != 0 : upper < more) return GLYD_E_CORRUPT;
    const uint64_t sum = z + (more << shift);
    for (size_t j = 0; j < p; j++) out[i * p + j] = (uint8_t)(sum >> (8 * j));
  }
  return GLYD_OK;
}

static void add_older(uint8_t *p, const uint8_t *older, size_t len, size_t period) {
  switch (period) {
  case 1:
    for (size_t i = 0; i < len; i++) p[i] = (uint8_t)(older[i] + (p[i] >> 1 ^ (0u - (p[i] & 1u))));
    return;
  case 2:
    for (size_t i = 0; i < len; i += 2) {
      const uint32_t z = glyd_load16(p + i);
      glyd_store16(p + i, (uint16_t)(glyd_load16(older + i) + (z >> 1 ^ (0u - (z & 1u)))));
    }
    return;
  case 4:
    for (size_t i = 0; i < len; i += 4) {
      const uint32_t z = glyd_load32(p + i);
      glyd_store32(p + i, glyd_load32(older + i) + (z >> 1 ^ (0u - (z & 1u))));
    }
    return;
  default:
    for (size_t i = 0; i < len; i += 8) {
      const uint64_t z = glyd_load64(p + i);
      glyd_store64(p + i, glyd_load64(older + i) + (z >> 1 ^ ((uint64_t)0 - (z & 1u))));
    }
  }
}

/* n numbers from their planes. */
static glyd_status get_numbers(unsigned cpu, difference_decoder *d, glyd_huffman_table *tables, uint8_t *out, size_t n,
                               size_t p, size_t m, glyd_plane_input *in) {
  const uint8_t *plane[8], *escape[8];
  for (size_t j = 0; j < m; j++) {
    const glyd_status status = get_plane(cpu, &tables[j], in, d->plane + j * n, n, &plane[j]);
    if (status != GLYD_OK) return status;
  }
  join_planes(out, plane, n, p, m);
  if (m == p) return GLYD_OK;
  const uint8_t *const top = plane[m - 1];
  const size_t k = p - m + 1;
  size_t e = 0;
  for (size_t i = 0; i < n; i++) e += top[i] == 255;
  for (size_t j = 0; j < k; j++) {
    const glyd_status status = get_plane(cpu, &tables[p + j], in, d->escapes + j * e, e, &escape[j]);
    if (status != GLYD_OK) return status;
  }
  return add_escapes(out, top, escape, n, p, k);
}

static glyd_status get_group(unsigned cpu, difference_decoder *d, glyd_huffman_table *tables, uint8_t *out, size_t n,
                             size_t p, glyd_plane_input *in) {
  if (in->at == in->end) return GLYD_E_CORRUPT;
  const unsigned head = *in->at++;
  const size_t m = head & ~GLYD_FIELDS_SPARSE;
  if (m == 0 || m > p) return GLYD_E_CORRUPT;
  if (!(head & GLYD_FIELDS_SPARSE)) return get_numbers(cpu, d, tables, out, n, p, m, in);
  const uint8_t *bitmap;
  const size_t size = (n + 7) / 8;
  glyd_status status = get_plane(cpu, &tables[2 * p], in, d->bitmap, size, &bitmap);
  if (status != GLYD_OK) return status;
  if (n % 8 != 0 && bitmap[size - 1] >> n % 8 != 0) return GLYD_E_CORRUPT;
  size_t k = 0;
  for (size_t i = 0; i < size; i++) k += (size_t)__builtin_popcount(bitmap[i]);
  if (k > 0) status = get_numbers(cpu, d, tables, d->not_zero, k, p, m, in);
  if (status != GLYD_OK) return status;
  return glyd_fields_spread(cpu, &d->ranks, out, d->not_zero, bitmap, n, k, p) ? GLYD_OK : GLYD_E_CORRUPT;
}

static glyd_status decode_block(unsigned cpu, difference_decoder *d, const glyd_fields_groups *groups, uint8_t *out,
                                const uint8_t *older, size_t n, size_t p, glyd_plane_input *in) {
  if (groups->n == 1) {
    const glyd_status status = get_group(cpu, d, d->table, out, n, p, in);
    if (status == GLYD_OK) add_older(out, older, n * p, p);
    return status;
  }
  uint32_t start[GLYD_FIELDS_GROUPS_MAX + 1];
  glyd_fields_groups_find(cpu, groups, older, n, p, d->group, start);
  for (unsigned g = 0; g < groups->n; g++) {
    if (start[g + 1] == start[g]) continue;
    const glyd_status status =
        get_group(cpu, d, d->table + g * (2 * p + 1), d->grouped + start[g] * p, start[g + 1] - start[g], p, in);
    if (status != GLYD_OK) return status;
  }
  glyd_fields_groups_merge(cpu, &d->ranks, out, older, d->grouped, d->group, start, n, p);
  return GLYD_OK;
}

/* Read how many groups there are, and their bounds. */
static glyd_status get_groups(glyd_fields_groups *groups, size_t p, glyd_plane_input *in) {
  if (in->at == in->end) return GLYD_E_CORRUPT;
  const unsigned n = *in->at++;
  if (n == 0 || n > (glyd_fields_may_group(p) ? GLYD_FIELDS_GROUPS_MAX : 1)) return GLYD_E_CORRUPT;
  if ((size_t)(in->end - in->at) < n - 1) return GLYD_E_CORRUPT;
  for (unsigned g = 0; g + 1 < n; g++)
    if (in->at[g] <= (g > 0 ? in->at[g - 1] : 0)) return GLYD_E_CORRUPT;
  glyd_fields_groups_set(groups, n, in->at);
  in->at += n - 1;
  return GLYD_OK;
}

glyd_status glyd_fields_difference_decode(unsigned cpu, void *workspace, uint8_t *out, size_t len, const uint8_t *older,
                                          const uint8_t *in, size_t in_len, size_t in_slack, glyd_checksum_pass *pass,
                                          size_t pass_at) {
  difference_decoder *d = workspace;
  glyd_plane_input input = {in, in + in_len, in + in_len + in_slack};
  if (in_len == 0) return GLYD_E_CORRUPT;
  const size_t p = *input.at++;
  if ((p != 1 && p != 2 && p != 4 && p != 8) || len % p != 0) return GLYD_E_CORRUPT;
  glyd_fields_groups groups;
  const glyd_status found = get_groups(&groups, p, &input);
  if (found != GLYD_OK) return found;
  for (size_t j = 0; j < groups.n * (2 * p + 1); j++) d->table[j].bits = 0;
  d->ranks.made = 0;
  for (size_t at = 0; at < len;) {
    const size_t size = len - at < GLYD_FIELDS_DIFFERENCE_BLOCK ? len - at : GLYD_FIELDS_DIFFERENCE_BLOCK;
    const glyd_status status = decode_block(cpu, d, &groups, out + at, older + at, size / p, p, &input);
    if (status != GLYD_OK) return status;
    at += size;
    if (pass != NULL) glyd_checksum_pass_advance(pass, pass_at + at);
  }
  return input.at == input.end ? GLYD_OK : GLYD_E_CORRUPT;
}
