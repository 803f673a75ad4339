/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "block/block_coded_decode.h"

#include "bitstream/bit_reader.h"
#include "block/block_coded_exec.h"
#include "common/cpu.h"
#include "huffman/huffman_decode.h"

#define SLACK GLYD_CODED_PLANE_SLACK

typedef struct coded_decoder {
  /* carried from block to block */
  glyd_huffman_table tables[GLYD_CODED_PLANES];
  uint32_t repeat[GLYD_CODED_REPEATS];
  /* one block */
  _Alignas(64) uint8_t literals[GLYD_BLOCK_MAX + GLYD_CODED_LITERALS_SLACK];
  uint8_t commands[GLYD_CODED_SEQUENCES_MAX + SLACK];
  uint8_t literal_escapes[GLYD_CODED_SEQUENCES_MAX + SLACK];
  uint8_t match_escapes[GLYD_CODED_SEQUENCES_MAX + SLACK];
  uint8_t offset_codes[GLYD_CODED_SEQUENCES_MAX];
  uint8_t low_bytes[GLYD_CODED_SEQUENCES_MAX];
  uint8_t long_bytes[3][GLYD_CODED_LONGS_MAX];
  uint32_t longs[GLYD_CODED_LONGS_MAX];
  uint32_t offsets[GLYD_CODED_SEQUENCES_MAX + GLYD_CODED_BATCH];
} coded_decoder;

_Static_assert(sizeof(coded_decoder) <= (1u << 20) - (64u << 10) - 4096, "the frame counts on 1 MiB in all");

size_t glyd_coded_decode_workspace(void) { return sizeof(coded_decoder); }

size_t glyd_coded_decode_carried(void) { return offsetof(coded_decoder, literals); }

void glyd_coded_decode_reset(void *workspace) {
  coded_decoder *d = workspace;
  static const uint32_t start[GLYD_CODED_REPEATS] = GLYD_CODED_REPEAT_START;
  for (unsigned k = 0; k < GLYD_CODED_PLANES; k++) d->tables[k].bits = 0;
  memcpy(d->repeat, start, sizeof start);
}

/* base << 8 | number of extra bits. A corrupt code gives an offset that no
 * segment can hold, which execution refuses. */
#define CODE1(c) ((uint64_t)(((8u + ((c)&7u)) << ((c) >> 3)) - GLYD_CODED_OFFSET_BIAS) << 8 | ((c) >> 3))
#define CODE8(c) \
  CODE1(c), CODE1(c + 1), CODE1(c + 2), CODE1(c + 3), CODE1(c + 4), CODE1(c + 5), CODE1(c + 6), CODE1(c + 7)
#define BAD8 BAD1, BAD1, BAD1, BAD1, BAD1, BAD1, BAD1, BAD1
#define BAD1 ((uint64_t)0xFFFFFFF0u << 8)
static const uint64_t offset_entry[256] = {
    CODE8(0u),   CODE8(8u),   CODE8(16u),  CODE8(24u),  CODE8(32u),  CODE8(40u),  CODE8(48u),  CODE8(56u),
    CODE8(64u),  CODE8(72u),  CODE8(80u),  CODE8(88u),  CODE8(96u),  CODE8(104u), CODE8(112u), CODE8(120u),
    CODE8(128u), CODE8(136u), CODE8(144u), CODE8(152u), CODE8(160u), CODE8(168u), CODE8(176u), CODE8(184u),
    CODE8(192u), BAD8,        BAD8,        BAD8,        BAD8,        BAD8,        BAD8,        BAD8};
_Static_assert(GLYD_CODED_OFFSET_CODES == 200, "25 rows of good codes");

/* Offsets of n codes; raw bits are [raw, raw_end), readable on to readable.
 * The bits must be used up to the byte. */
static glyd_status decode_offsets(const uint8_t *codes, size_t n, const uint8_t *raw, const uint8_t *raw_end,
                                  const uint8_t *readable, uint32_t *out) {
  size_t pos = 0, i = 0;
  const size_t limit = (size_t)(raw_end - raw) * 8, load_end = (size_t)(readable - raw);
  for (;;) {
    /* Two codes take at most 48 bits: so many pairs are safe whatever they are. */
    size_t pairs = (n - i) / 2;
    if ((pos >> 3) + 8 > load_end) break;
    size_t safe = (load_end - 8 - (pos >> 3)) / 6 + 1;
    if (safe < pairs) pairs = safe;
    if (pairs == 0) break;
    for (size_t end = i + 2 * pairs; i < end; i += 2) {
      uint64_t v = glyd_load64(raw + (pos >> 3)) >> (pos & 7);
      uint64_t e = offset_entry[codes[i]], f = offset_entry[codes[i + 1]];
      out[i] = (uint32_t)(e >> 8) + ((uint32_t)v & ((1u << (e & 31)) - 1));
      v >>= e & 31;
      out[i + 1] = (uint32_t)(f >> 8) + ((uint32_t)v & ((1u << (f & 31)) - 1));
      pos += (uint8_t)(e + f);
    }
    if (pos > limit) return GLYD_E_CORRUPT;
  }
  for (; i < n; i++) {
    if (pos > limit) return GLYD_E_CORRUPT;
    uint64_t v = glyd_load64_until(raw + (pos >> 3), readable) >> (pos & 7), e = offset_entry[codes[i]];
    out[i] = (uint32_t)(e >> 8) + ((uint32_t)v & ((1u << (e & 31)) - 1));
    pos += (uint8_t)e;
  }
  return (pos + 7) >> 3 == limit >> 3 ? GLYD_OK : GLYD_E_CORRUPT;
}

/* The same with a plane of low bytes. */
static glyd_status decode_offsets_low(const uint8_t *codes, size_t n, const uint8_t *low, size_t n_low,
                                      const uint8_t *raw, const uint8_t *raw_end, uint32_t *out) {
  size_t pos = 0;
  const size_t limit = (size_t)(raw_end - raw) * 8;
  const uint8_t *const low_end = low + n_low;
  for (size_t i = 0; i < n; i++) {
    if (pos > limit) return GLYD_E_CORRUPT;
    uint64_t v = glyd_load64_until(raw + (pos >> 3), raw_end) >> (pos & 7), e = offset_entry[codes[i]];
    unsigned bits = (unsigned)(e & 31);
    uint32_t x;
    if (bits >= 8) {
      if (low == low_end) return GLYD_E_CORRUPT;
      bits -= 8;
      x = ((uint32_t)v & ((1u << bits) - 1)) << 8 | *low++;
    } else {
      x = (uint32_t)v & ((1u << bits) - 1);
    }
    out[i] = (uint32_t)(e >> 8) + x;
    pos += bits;
  }
  return (pos + 7) >> 3 == limit >> 3 && low == low_end ? GLYD_OK : GLYD_E_CORRUPT;
}

glyd_status glyd_coded_block_decode(unsigned cpu, void *workspace, uint8_t *segment, uint8_t *op, size_t len,
                                    uint8_t *out_end, unsigned flags, const uint8_t *in, size_t in_len,
                                    size_t in_slack) {
  coded_decoder *const d = workspace;
  glyd_plane_input input = {in, in + in_len, in + in_len + in_slack};
  glyd_coded_planes planes;
  glyd_status status;
  const uint8_t *codes, *low = NULL;
  size_t n, n_codes, n_low = 0, n_longs = 0;
  if (flags & ~GLYD_CODED_FLAGS) return GLYD_E_CORRUPT;
  for (unsigned k = 0; k < 16; k++) planes.lengths[k] = (uint8_t)(GLYD_CODED_MATCH_MIN + k);
  if (flags & GLYD_CODED_FLAG_LENGTHS) {
    if (in_len < GLYD_CODED_LENGTHS) return GLYD_E_CORRUPT;
    unsigned previous = GLYD_CODED_MATCH_MIN - 1;
    for (unsigned k = 0; k < GLYD_CODED_LENGTHS; k++) {
      if (in[k] <= previous || in[k] >= GLYD_CODED_LONG) return GLYD_E_CORRUPT;
      previous = planes.lengths[k] = in[k];
    }
    planes.lengths[GLYD_CODED_LENGTHS] = GLYD_CODED_MATCH_MIN;
    input.at += GLYD_CODED_LENGTHS;
  }

/* Execution reads past the ends of planes: zeros there, so that what it sees
 * does not depend on earlier calls (it is never used). */
#define PLANE(kind, name, max, slack)                                                                         \
  do {                                                                                                        \
    status = glyd_huffman_decode_plane(cpu, &d->tables[kind], &input, d->name, max, slack, &planes.name, &n); \
    if (status != GLYD_OK) return status;                                                                     \
    planes.name##_end = planes.name + n;                                                                      \
    if (planes.name == d->name)                                                                               \
      memset(d->name + n, 0, sizeof d->name - (max) < SLACK ? sizeof d->name - (max) : SLACK);                \
  } while (0)
  PLANE(GLYD_CODED_PLANE_LITERALS, literals, len, GLYD_CODED_LITERALS_SLACK);
  PLANE(GLYD_CODED_PLANE_COMMANDS, commands, GLYD_CODED_SEQUENCES_MAX, SIZE_MAX);
  PLANE(GLYD_CODED_PLANE_LITERAL_ESCAPES, literal_escapes, GLYD_CODED_SEQUENCES_MAX, SIZE_MAX);
  PLANE(GLYD_CODED_PLANE_MATCH_ESCAPES, match_escapes, GLYD_CODED_SEQUENCES_MAX, SIZE_MAX);
#undef PLANE
  status = glyd_huffman_decode_plane(cpu, &d->tables[GLYD_CODED_PLANE_OFFSETS], &input, d->offset_codes,
                                     GLYD_CODED_SEQUENCES_MAX, 0, &codes, &n_codes);
  if (status != GLYD_OK) return status;
  if (flags & GLYD_CODED_FLAG_LOW) {
    status = glyd_huffman_decode_plane(cpu, &d->tables[GLYD_CODED_PLANE_LOW], &input, d->low_bytes,
                                       GLYD_CODED_SEQUENCES_MAX, 0, &low, &n_low);
    if (status != GLYD_OK) return status;
  }
  if (flags & GLYD_CODED_FLAG_LONG) {
    const uint8_t *bytes[3];
    for (unsigned k = 0; k < 3; k++) {
      status = glyd_huffman_decode_plane(cpu, &d->tables[GLYD_CODED_PLANE_LONG + k], &input, d->long_bytes[k],
                                         GLYD_CODED_LONGS_MAX, 0, &bytes[k], &n);
      if (status != GLYD_OK) return status;
      if (n == 0 || (k != 0 && n != n_longs)) return GLYD_E_CORRUPT;
      n_longs = n;
    }
    for (size_t i = 0; i < n_longs; i++) {
      d->longs[i] = bytes[0][i] | (uint32_t)bytes[1][i] << 8 | (uint32_t)bytes[2][i] << 16;
      if (d->longs[i] < GLYD_CODED_LONG) return GLYD_E_CORRUPT;
    }
  }
  planes.longs = d->longs;
  planes.longs_end = d->longs + n_longs;

  if (flags & GLYD_CODED_FLAG_LOW)
    status = decode_offsets_low(codes, n_codes, low, n_low, input.at, input.end, d->offsets);
  else
    status = decode_offsets(codes, n_codes, input.at, input.end, input.readable, d->offsets);
  if (status != GLYD_OK) return status;
  planes.offsets = d->offsets;
  planes.offsets_end = d->offsets + n_codes;
  memset(d->offsets + n_codes, 0, GLYD_CODED_BATCH * sizeof *d->offsets);

#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX2) return glyd_coded_exec_avx2(&planes, d->repeat, segment, op, op + len, out_end);
#endif
  return glyd_coded_exec_scalar(&planes, d->repeat, segment, op, op + len, out_end);
}
