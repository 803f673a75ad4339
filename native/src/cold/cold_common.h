/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The model of cold segments, which writers and readers run in step
 * (spec.md). All of it lives in one workspace.
 */
#ifndef GLYD_COLD_COMMON_H
#define GLYD_COLD_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "bitstream/arith_reader.h"
#include "bitstream/arith_writer.h"
#include "cold/cold_memory.h"
#include "common/mem.h"
#include "glyd/format.h"

#define GLYD_COLD_CODE_TAIL GLYD_ARITH_TAIL
#define GLYD_COLD_HEADER 1u         /* bytes of payload before the code: the profile */
#define GLYD_COLD_CONTEXTS 13u      /* of a byte, in each profile */
#define GLYD_COLD_ORDERS 6u         /* the first contexts: orders 1 to 6 */
#define GLYD_COLD_ENTRIES 16u       /* probabilities that a mixer weighs: of contexts, expected byte (2), a bias */
#define GLYD_COLD_INPUTS 32u        /* two a probability */
#define GLYD_COLD_SETS 4u           /* mixers of the first layer */
#define GLYD_COLD_FINAL_LOG_MAX 13u /* of the rows of the final stage */
#define GLYD_COLD_STATES 256u
#define GLYD_COLD_FIELDS 256u /* of a row, that have a place of their own */

#define GLYD_COLD_FINAL_SCALE \
  ((GLYD_COLD_FINAL_STEPS - 1) * 65536u / (2 * GLYD_COLD_LOGIT_MAX + 2)) /* steps · 65536 a logit */
#define GLYD_COLD_LOGIT_MAX 2847  /* 256 · ln(65535.5 / 0.5) is 3019; probabilities are 1 to 65535 */
#define GLYD_COLD_FINAL_STEPS 16u /* of a row of the final stage */

/* Profiles: which contexts a segment is coded with. */
enum { GLYD_COLD_TEXT = 0, GLYD_COLD_BINARY = 1, GLYD_COLD_ROWS = 2, GLYD_COLD_PROFILES = 3 };

/* First row of the weights of each mixer: by the orders seen and the last byte, by
 * what is expected, by the place in a row, by the byte above or before the last. */
enum {
  GLYD_COLD_ROW_ORDER = 0,
  GLYD_COLD_ROW_EXPECTED = GLYD_COLD_ROW_ORDER + 8 * 256,
  GLYD_COLD_ROW_PLACE = GLYD_COLD_ROW_EXPECTED + 4096,
  GLYD_COLD_ROW_ABOVE = GLYD_COLD_ROW_PLACE + 2048,
  GLYD_COLD_ROW_END = GLYD_COLD_ROW_ABOVE + 2048
};

/* Parts of maps: states of each context, then what the expected byte is worth by
 * the length of the match, by the bit when it is another byte, and by the byte. */
enum {
  GLYD_COLD_MAP_LENGTH = 13 * 256,
  GLYD_COLD_MAP_FAILED = GLYD_COLD_MAP_LENGTH + 64 * 4 * 2,
  GLYD_COLD_MAP_EXPECTED = GLYD_COLD_MAP_FAILED + 8 * 2,
  GLYD_COLD_MAP_NONE = GLYD_COLD_MAP_EXPECTED + 2 * 256 * 8,
  GLYD_COLD_MAP_BIAS = GLYD_COLD_MAP_NONE + 1,
  GLYD_COLD_MAP_END = GLYD_COLD_MAP_NONE + 16
};

#define GLYD_COLD_NEUTRAL 0x80000000u /* an entry that says nothing */
#define GLYD_COLD_BIAS (GLYD_COLD_NEUTRAL | 256)

#define GLYD_COLD_GATE_INPUTS 5u

typedef struct glyd_cold_match {
  uint32_t at;     /* content position of the byte expected next; 0: none */
  uint32_t len;    /* bytes that agreed, at most 65535 */
  uint32_t misses; /* since the last 16 bytes that agreed */
} glyd_cold_match;

/* The rows and fields of tables and logs, and words of text. */
typedef struct glyd_cold_place {
  uint32_t word, word1, word2; /* hashes of this word (0: none) and the two before */
  uint32_t marks;              /* the last four bytes that belong to no word */
  uint32_t line, line_before;  /* positions of their first bytes */
  uint32_t column;
  uint32_t field, field_column, field_hash;
  uint32_t above;      /* position of the byte above, 0: none */
  uint32_t above_hash; /* of the field above */
  uint32_t parity;
  uint32_t hash_of[GLYD_COLD_FIELDS];     /* of each field when it was last left */
  uint32_t start_of[2][GLYD_COLD_FIELDS]; /* position of each field of this row and the one before */
  uint32_t code, code_state;              /* a rough look at x86 instructions */
} glyd_cold_place;

struct glyd_cold_kernel;

typedef struct glyd_cold_model {
  const struct glyd_cold_kernel *kernel;
  const uint8_t *data; /* content; bytes up to pos are known */
  uint32_t profile;
  uint8_t *slots[GLYD_COLD_CONTEXTS];             /* of the byte that is being coded */
  uint32_t hash[16] __attribute__((aligned(64))); /* of the contexts of the byte at pos */
  uint32_t pos;
  uint32_t last4, last8;
  uint32_t expected;                   /* byte expected, + 256; 0: none */
  uint32_t length_class;               /* of the match, 0 … 255 */
  uint32_t grade;                      /* the same in three steps */
  uint32_t select_place, select_above; /* rows of the last two mixers, without the bit */
  uint32_t is_hashed;                  /* 1: hash[] belongs to pos */
  /* of the gate */
  int32_t gate_x[GLYD_COLD_GATE_INPUTS];
  uint32_t *gate_entry[GLYD_COLD_GATE_INPUTS - 1];
  int32_t *gate_weights;
  uint32_t gate_p; /* 0: not asked for this byte */

  glyd_cold_match match;
  uint32_t long_hash;   /* of the last 16 bytes */
  uint32_t *match_line; /* of the short table: from the last five bytes */
  uint32_t *far_line;   /* of the long one */
  glyd_cold_place place;
  /* tables whose size depends on the content */
  uint32_t table_log, match_log, final_log;
  uint32_t *match_short, *match_long;
  uint8_t *order1; /* 256 × 17 slots of 16 states */
  uint8_t *tables; /* (n_contexts - 1) × 2^table_log bytes */
  /* tables that do not change */
  uint8_t next[2][GLYD_COLD_STATES] __attribute__((aligned(64)));
  int16_t stretch[4096 + 2], stretch_low[1024], stretch_high[1024];
  uint16_t squash[2 * GLYD_COLD_LOGIT_MAX + 1 + 1]; /* one more: read by words */
  uint16_t rate[1024];
  /* what is learnt */
  uint32_t maps[GLYD_COLD_MAP_END]; /* 20 bits of probability, 12 of its logit */
  uint32_t gate_length[64 * 4];
  int32_t gate_mixer[64 * 8];
  int32_t final_mixer[2 * 256 * GLYD_COLD_SETS] __attribute__((aligned(16)));
  uint32_t after1[256], after2[1u << 16]; /* last bytes that came after one and two bytes */
  int16_t mixer[GLYD_COLD_ROW_END * GLYD_COLD_INPUTS] __attribute__((aligned(64)));
  /* the first 2^final_log parts of these are in use */
  uint32_t gate_map[GLYD_COLD_GATE_INPUTS - 2][1u << GLYD_COLD_FINAL_LOG_MAX];
  uint16_t final_stage[(1u << GLYD_COLD_FINAL_LOG_MAX) * GLYD_COLD_FINAL_STEPS] __attribute__((aligned(64)));
} glyd_cold_model;

/* The hot loops, one form for each kind of CPU; same results. */
typedef struct glyd_cold_kernel {
  /* Code all bits of the byte at pos, and learn them. failed: it is not the expected byte. */
  void (*encode)(glyd_cold_model *m, glyd_arith_writer *writer, uint32_t failed, uint32_t byte);
  uint32_t (*decode)(glyd_cold_model *m, glyd_arith_reader *reader, uint32_t failed);
  /* Make hashes of the values in hash[1 …], and ask for the lines they name. */
  void (*spread)(glyd_cold_model *m);
} glyd_cold_kernel;

extern const glyd_cold_kernel glyd_cold_kernel_scalar;
extern const glyd_cold_kernel glyd_cold_kernel_avx2;
extern const glyd_cold_kernel glyd_cold_kernel_avx512;

/* Begin: content of len bytes that will stand at data. NULL: no such profile. */
glyd_cold_model *glyd_cold_model_begin(unsigned cpu, void *workspace, unsigned profile, const uint8_t *data,
                                       size_t len);

/* Learn the next n bytes, which are in data: as if they had been coded. */
void glyd_cold_model_learn(glyd_cold_model *m, size_t n);

/* Before the byte at pos: chance of 65536 that it is the expected one. 0: the
 * byte is coded bit by bit right away. */
uint32_t glyd_cold_match_gate(glyd_cold_model *m);

/* The byte at pos, now in data, is known: on to the next one. */
void glyd_cold_match_advance(glyd_cold_model *m);

/* How a hash is spread. */
GLYD_INLINE uint32_t glyd_cold_mix(uint32_t h) {
  h ^= h >> 15;
  h *= 0x85EBCA6Bu;
  h ^= h >> 13;
  h *= 0xC2B2AE35u;
  return h ^ h >> 16;
}

GLYD_INLINE uint32_t glyd_cold_join(uint32_t a, uint32_t b) {
  return (a * 0x2F0B4C47u + b * 0x9E3779B1u + 0x3C6EF372u) ^ a >> 15;
}

/* 256 · ln(p / (65536 - p)), near 0 and 65536 with all bits of p. */
GLYD_INLINE int32_t glyd_cold_stretch(const glyd_cold_model *m, uint32_t p) {
  if (p < 1024) return m->stretch_low[p];
  if (p >= 65536 - 1024) return m->stretch_high[p - (65536 - 1024)];
  return m->stretch[p >> 4];
}

/* Log2 of a number below 2^24, in 2^-23, by a straight line between powers of two: the bits of a float. */
GLYD_INLINE int32_t glyd_cold_log(uint32_t v) {
  const uint32_t log = glyd_log2_32(v);
  return (int32_t)((log << 23) + ((v << (23 - log)) - (1u << 23)));
}

/* An entry of maps for a probability of 20 bits: the same again as 256 · ln(p / (1 - p)), 12 bits. */
GLYD_INLINE uint32_t glyd_cold_entry(uint32_t p) {
  const uint32_t twice = 2 * p + 1;
  const int32_t logit = ((glyd_cold_log(twice) - glyd_cold_log((1u << 21) - twice)) >> 11) * 177 >> 12;
  return p << 12 | ((uint32_t)(logit > 2047 ? 2047 : logit < -2047 ? -2047 : logit) & 4095);
}

GLYD_INLINE int32_t glyd_cold_clamp(int32_t x) {
  return x > GLYD_COLD_LOGIT_MAX ? GLYD_COLD_LOGIT_MAX : x < -GLYD_COLD_LOGIT_MAX ? -GLYD_COLD_LOGIT_MAX : x;
}

/* An adaptive probability of the gate: 22 bits, then 10 bits that count what it has seen. */
GLYD_INLINE void glyd_cold_learn(const glyd_cold_model *m, uint32_t *entry, uint32_t bit, uint32_t limit) {
  const uint32_t n = *entry & 1023;
  const int32_t p = (int32_t)(*entry >> 10);
  const int32_t target = bit ? (1 << 22) - 1 : 0;
  const int32_t moved = p + (int32_t)(((int64_t)(target - p) * m->rate[n]) >> 16);
  *entry = (uint32_t)moved << 10 | (n < limit ? n + 1 : n);
}

#endif
