/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "block/block_coded_decode.h"

#include "block/block_coded_exec.h"
#include "block/block_coded_offsets.h"
#include "block/block_coded_runs_decode.h"
#include "common/cpu.h"
#include "huffman/huffman_context_decode.h"
#include "huffman/huffman_decode.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define SLACK GLYD_CODED_PLANE_SLACK

#define FINE_TABLES (GLYD_CODED_LITERAL_TABLES + GLYD_CODED_COMMAND_TABLES + GLYD_CODED_OFFSET_TABLES)

typedef struct coded_decoder {
  /* carried from block to block */
  glyd_huffman_table tables[GLYD_CODED_PLANES];
  glyd_context_tables contexts[GLYD_CODED_FINE_PLANES];
  uint16_t entries[FINE_TABLES << GLYD_HUFFMAN_BITS]; /* of their tables */
  uint32_t repeat[GLYD_CODED_REPEATS];
  /* one block */
  _Alignas(64) uint8_t literals[GLYD_BLOCK_MAX + GLYD_CODED_LITERALS_SLACK];
  uint8_t commands[GLYD_CODED_SEQUENCES_MAX + SLACK];
  uint8_t literal_escapes[GLYD_CODED_SEQUENCES_MAX + SLACK];
  uint8_t match_escapes[GLYD_CODED_SEQUENCES_MAX + SLACK];
  uint8_t offset_codes[GLYD_CODED_SEQUENCES_MAX + 8]; /* before: contexts of them, written by eights */
  uint8_t long_bytes[3][GLYD_CODED_LONGS_MAX];
  uint32_t longs[GLYD_CODED_LONGS_MAX];
  uint32_t offsets[GLYD_CODED_SEQUENCES_MAX + GLYD_CODED_BATCH + 1]; /* before: low bytes, at the end */
} coded_decoder;

_Static_assert(sizeof(coded_decoder) <= (1u << 20) - (64u << 10) - 4096, "the frame counts on 1 MiB in all");

size_t glyd_coded_decode_workspace(void) { return sizeof(coded_decoder); }

size_t glyd_coded_decode_carried(void) { return offsetof(coded_decoder, literals); }

void glyd_coded_decode_reset(void *workspace) {
  coded_decoder *d = workspace;
  static const uint32_t start[GLYD_CODED_REPEATS] = GLYD_CODED_REPEAT_START;
  for (unsigned k = 0; k < GLYD_CODED_PLANES; k++) d->tables[k].bits = 0;
  for (unsigned k = 0; k < GLYD_CODED_FINE_PLANES; k++) d->contexts[k].n = 0;
  memcpy(d->repeat, start, sizeof start);
}

/* Fine blocks have fine planes of literals, commands and offset codes. how: where contexts
 * come from. */
static glyd_status decode_plane(unsigned cpu, coded_decoder *d, unsigned kind, int fine, int how, size_t n_contexts,
                                glyd_plane_input *input, uint8_t *out, size_t max_n, size_t slack, const uint8_t **data,
                                size_t *n) {
  static const struct {
    unsigned kind, first, most;
  } planes[GLYD_CODED_FINE_PLANES] = {
      {GLYD_CODED_PLANE_LITERALS, 0, GLYD_CODED_LITERAL_TABLES},
      {GLYD_CODED_PLANE_COMMANDS, GLYD_CODED_LITERAL_TABLES, GLYD_CODED_COMMAND_TABLES},
      {GLYD_CODED_PLANE_OFFSETS, GLYD_CODED_LITERAL_TABLES + GLYD_CODED_COMMAND_TABLES, GLYD_CODED_OFFSET_TABLES}};
  for (unsigned k = 0; fine && k < GLYD_CODED_FINE_PLANES; k++)
    if (planes[k].kind == kind)
      return glyd_huffman_decode_fine_plane(cpu, &d->tables[kind], &d->contexts[k],
                                            d->entries + ((size_t)planes[k].first << GLYD_HUFFMAN_BITS), planes[k].most,
                                            how, n_contexts, input, out, max_n, slack, data, n);
  return glyd_huffman_decode_plane(cpu, &d->tables[kind], input, out, max_n, slack, data, n);
}

/* Contexts of offset codes: what else the command of each new offset says. out has
 * room for 8 more. */
static size_t offset_contexts(const uint8_t *commands, const uint8_t *end, uint8_t *out) {
  size_t n = 0;
  for (; commands < end; commands++) {
    out[n] = GLYD_CODED_OFFSET_CONTEXT(*commands);
    n += *commands >> 6 == GLYD_CODED_REPEATS;
  }
  return n;
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt"))) static size_t
offset_contexts_bmi2(const uint8_t *commands, const uint8_t *end, uint8_t *out) {
  size_t n = 0;
  for (; end - commands >= 8; commands += 8) {
    const uint64_t c = glyd_load64(commands), fresh = c & c << 1 & 0x8080808080808080u;
    glyd_store64(out + n, _pext_u64(c & 0x3F3F3F3F3F3F3F3Fu, (fresh << 1) - (fresh >> 7)));
    n += (size_t)_mm_popcnt_u64(fresh);
  }
  return n + offset_contexts(commands, end, out + n);
}
#endif

/* A plane of this head has contexts that are given. */
static int wants_contexts(const glyd_plane_input *input) {
  uint64_t head;
  return glyd_get_varint(input->at, input->end, &head) != NULL &&
         (head & ((1u << GLYD_PLANE_FINE_BITS) - 1)) >= GLYD_PLANE_CONTEXTS;
}

/* Bytes of the plane that begins here; SIZE_MAX where none does. */
static size_t plane_size(const glyd_plane_input *input, unsigned mode_bits) {
  uint64_t head;
  return glyd_get_varint(input->at, input->end, &head) != NULL ? (size_t)(head >> mode_bits) : SIZE_MAX;
}

/* Offsets whose codes have a low byte. */
static size_t count_low(const uint8_t *codes, size_t n) {
  size_t found = 0;
  for (size_t i = 0; i < n; i++)
    found += (uint8_t)(codes[i] - GLYD_CODED_LOW_FROM) < GLYD_CODED_OFFSET_CODES - GLYD_CODED_LOW_FROM;
  return found;
}

static unsigned largest_byte(const uint8_t *at, size_t n) {
  uint8_t most = 0;
  for (size_t i = 0; i < n; i++) most = at[i] > most ? at[i] : most;
  return most;
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
  const int fine = (flags & GLYD_CODED_FLAG_FINE) != 0;
  planes.near = (flags & GLYD_CODED_FLAG_NEAR) != 0;
  if ((flags & ~GLYD_CODED_FLAGS) != 0 || (planes.near && !fine)) return GLYD_E_CORRUPT;
  const unsigned match_min = fine ? GLYD_CODED_FINE_MATCH_MIN : GLYD_CODED_MATCH_MIN;
  for (unsigned k = 0; k < 16; k++)
    planes.lengths[k] = (uint8_t)((fine ? GLYD_CODED_FINE_LENGTH : GLYD_CODED_MATCH_MIN) + k);
  if (flags & GLYD_CODED_FLAG_LENGTHS) {
    if (in_len < GLYD_CODED_LENGTHS) return GLYD_E_CORRUPT;
    unsigned previous = match_min - 1;
    for (unsigned k = 0; k < GLYD_CODED_LENGTHS; k++) {
      if (in[k] <= previous || in[k] >= GLYD_CODED_LONG) return GLYD_E_CORRUPT;
      previous = planes.lengths[k] = in[k];
    }
    planes.lengths[GLYD_CODED_LENGTHS] = (uint8_t)match_min;
    input.at += GLYD_CODED_LENGTHS;
  }

/* Execution reads past the ends of planes: zeros there, so that what it sees
 * does not depend on earlier calls (it is never used). */
#define PLANE(kind, how, name, max, slack)                                                              \
  do {                                                                                                  \
    status = decode_plane(cpu, d, kind, fine, how, max, &input, d->name, max, slack, &planes.name, &n); \
    if (status != GLYD_OK) return status;                                                               \
    planes.name##_end = planes.name + n;                                                                \
    if (planes.name == d->name)                                                                         \
      memset(d->name + n, 0, sizeof d->name - (max) < SLACK ? sizeof d->name - (max) : SLACK);          \
  } while (0)
/* Those of a block that is all literals go straight to their place. */
#define LITERALS(how)                                                                                     \
  do {                                                                                                    \
    if (all_literals) {                                                                                   \
      status = decode_plane(cpu, d, GLYD_CODED_PLANE_LITERALS, fine, how, len, &input, op, len, SIZE_MAX, \
                            &planes.literals, &n);                                                        \
      if (status != GLYD_OK) return status;                                                               \
      planes.literals_end = planes.literals + n;                                                          \
    } else {                                                                                              \
      PLANE(GLYD_CODED_PLANE_LITERALS, how, literals, len, GLYD_CODED_LITERALS_SLACK);                    \
    }                                                                                                     \
  } while (0)
  int all_literals = 0;
  if (!fine) {
    all_literals = plane_size(&input, GLYD_PLANE_BITS) == len;
    LITERALS(GLYD_CONTEXTS_ARE_BEFORE);
  }
  PLANE(GLYD_CODED_PLANE_COMMANDS, GLYD_CONTEXTS_ARE_BEFORE, commands, GLYD_CODED_SEQUENCES_MAX, SIZE_MAX);
  if (all_literals && n != 0) return GLYD_E_CORRUPT; /* a match would come on top */
  PLANE(GLYD_CODED_PLANE_LITERAL_ESCAPES, GLYD_CONTEXTS_ARE_BEFORE, literal_escapes, GLYD_CODED_SEQUENCES_MAX,
        SIZE_MAX);
  PLANE(GLYD_CODED_PLANE_MATCH_ESCAPES, GLYD_CONTEXTS_ARE_BEFORE, match_escapes, GLYD_CODED_SEQUENCES_MAX, SIZE_MAX);
  size_t n_contexts = 0;
  if (fine && wants_contexts(&input)) {
#if defined(__x86_64__)
    if (cpu & GLYD_CPU_AVX2)
      n_contexts = offset_contexts_bmi2(planes.commands, planes.commands_end, d->offset_codes);
    else
#endif
      n_contexts = offset_contexts(planes.commands, planes.commands_end, d->offset_codes);
  }
  status = decode_plane(cpu, d, GLYD_CODED_PLANE_OFFSETS, fine, GLYD_CONTEXTS_ARE_GIVEN, n_contexts, &input,
                        d->offset_codes, GLYD_CODED_SEQUENCES_MAX, 0, &codes, &n_codes);
  if (status != GLYD_OK) return status;
  if (planes.near && largest_byte(codes, n_codes) >= GLYD_CODED_OFFSET_CODES + GLYD_CODED_NEAR_CODES)
    return GLYD_E_CORRUPT;
  if (flags & GLYD_CODED_FLAG_LOW) {
    /* Where offsets will be, the last one where the last offset ends: an offset is
     * written once its low byte is read, and does not reach that of the next, as
     * there are no more of them left than offsets. One more is read past the last. */
    const size_t wanted = count_low(codes, n_codes);
    uint8_t *const place = (uint8_t *)(d->offsets + GLYD_CODED_SEQUENCES_MAX) - wanted;
    status =
        glyd_huffman_decode_plane(cpu, &d->tables[GLYD_CODED_PLANE_LOW], &input, place, wanted, SIZE_MAX, &low, &n_low);
    if (status != GLYD_OK) return status;
    if (n_low != wanted) return GLYD_E_CORRUPT;
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
  if (fine) {
    all_literals = plane_size(&input, GLYD_PLANE_FINE_BITS) == len;
    if (all_literals && planes.commands != planes.commands_end) return GLYD_E_CORRUPT;
    size_t n_literals;
    if (glyd_huffman_wants_some(&input, &d->contexts[GLYD_CODED_FINE_LITERALS], &n_literals)) {
      if (n_literals > len) return GLYD_E_CORRUPT;
      uint8_t *const place = all_literals ? op : d->literals;
      status = glyd_coded_mark_runs(cpu, &planes, place, n_literals);
      if (status != GLYD_OK) return status;
    }
    LITERALS(GLYD_CONTEXTS_ARE_MIXED);
  }
#undef LITERALS
#undef PLANE

#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX2)
    status = glyd_coded_offsets_avx2(codes, n_codes, low, n_low, input.at, input.end, input.readable, d->offsets);
  else
#endif
    status = glyd_coded_offsets_scalar(codes, n_codes, low, n_low, input.at, input.end, input.readable, d->offsets);
  if (status != GLYD_OK) return status;
  planes.offsets = d->offsets;
  planes.offsets_end = d->offsets + n_codes;
  memset(d->offsets + n_codes, 0, (GLYD_CODED_BATCH + 1) * sizeof *d->offsets);

#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX2) return glyd_coded_exec_avx2(&planes, d->repeat, segment, op, op + len, out_end);
#endif
  return glyd_coded_exec_scalar(&planes, d->repeat, segment, op, op + len, out_end);
}
