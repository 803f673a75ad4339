/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "block/block_coded_encode.h"

#include "bitstream/bit_writer.h"
#include "block/block_coded_common.h"
#include "block/block_coded_parse_encode.h"
#include "block/block_coded_price_encode.h"
#include "common/cpu.h"
#include "huffman/huffman_context_encode.h"
#include "huffman/huffman_encode.h"
#include "match/match_double.h"
#include "match/match_long.h"
#include "match/match_row.h"

#define BLOCK_SIZE ((size_t)GLYD_BLOCK_MAX)
/* A block may start at each PIECE of content, where the statistics of literals
 * have changed. */
#define PIECE ((size_t)32 << 10)
#define PIECES (GLYD_BLOCK_MAX / PIECE)
/* What says where to cut: counts of literals, in fine blocks of commands, offset codes
 * and match-length escapes too. */
enum { CUT_LITERALS, CUT_COMMANDS, CUT_OFFSETS, CUT_ESCAPES, CUT_PLANES };
/* Contexts of literals by commands must save a byte for so many commands, and so many
 * more: they take time to make. */
#define RUNS_COMMANDS 128u
#define RUNS_BYTES 48u
#define LITERAL_COPY 32 /* literals are copied in pieces of this many bytes where the input allows */

#define NEAR(how) (1u << 31 | (how).code << 16 | (how).extra) /* of an offset near one of a slot, among new ones */
#define NEAR_CODE(v) ((v) >> 16 & 255)
#define NEAR_EXTRA(v) ((v)&0xFFFF)

/* Planes of one block before they are coded; body staging. */
typedef struct block_planes {
  uint8_t literals[GLYD_BLOCK_MAX + LITERAL_COPY];
  uint8_t commands[GLYD_CODED_SEQUENCES_MAX];
  uint8_t literal_escapes[GLYD_CODED_SEQUENCES_MAX + 1];
  uint8_t match_escapes[GLYD_CODED_SEQUENCES_MAX + 1];
  uint8_t offset_codes[GLYD_CODED_SEQUENCES_MAX];
  uint8_t low_bytes[GLYD_CODED_SEQUENCES_MAX + 1];
  uint8_t longs[3][GLYD_CODED_LONGS_MAX];
  uint32_t fresh[GLYD_CODED_SEQUENCES_MAX + 1]; /* new offsets + GLYD_CODED_OFFSET_BIAS, or NEAR */
  uint8_t raw_bits[GLYD_CODED_SEQUENCES_MAX * 3 + 16];
  /* every plane, the raw bits and the length table at their largest */
  uint8_t body[GLYD_HUFFMAN_PLANE_BOUND(GLYD_BLOCK_MAX) + 5 * GLYD_HUFFMAN_PLANE_BOUND(GLYD_CODED_SEQUENCES_MAX) +
               3 * GLYD_HUFFMAN_PLANE_BOUND(GLYD_CODED_LONGS_MAX) + GLYD_CODED_SEQUENCES_MAX * 3 + 64];
} block_planes;

typedef struct coded_encoder {
  int level;
  glyd_match_double finder;  /* level max */
  glyd_match_row rows;       /* level high */
  glyd_coded_parser *parser; /* level ultra */
  glyd_match_long far;       /* with long_distance */
  glyd_long_match far_matches[GLYD_BLOCK_MAX / GLYD_MATCH_LONG_MIN];
  unsigned cpu;
  glyd_huffman_code last[GLYD_CODED_PLANES];
  glyd_huffman_context_codes last_contexts[GLYD_CODED_FINE_PLANES];
  int commands_have_contexts; /* in the last block */
  glyd_context_work contexts; /* level ultra */
  uint8_t offset_contexts[GLYD_CODED_SEQUENCES_MAX + 1];
  uint8_t literal_contexts[GLYD_BLOCK_MAX];
  uint32_t repeat[GLYD_CODED_REPEATS];
  glyd_sequence sequences[GLYD_CODED_PARSED_MAX + 2];
  uint32_t pieces[PIECES][CUT_PLANES][256];
  block_planes planes;
} coded_encoder;

/* How much of each plane a block fills. */
typedef struct plane_ends {
  size_t literal_escapes, match_escapes, longs, offsets;
  size_t near; /* offsets near one of a slot */
  size_t low;  /* 0: low bytes are among the raw bits */
  size_t raw_bits;
} plane_ends;

static size_t round_up(size_t n) { return (n + 63) & ~(size_t)63; }

static size_t finder_workspace(const glyd_lz_config *config) {
  if (config->level >= GLYD_LEVEL_ULTRA) return round_up((size_t)glyd_coded_parse_workspace(config->segment_size));
  return round_up(config->level == GLYD_LEVEL_HIGH ? glyd_match_row_workspace(config->segment_size)
                                                   : glyd_match_double_workspace(config->segment_size));
}

/* Matches of level ultra reach over the segment anyway. */
static int finds_far(const glyd_lz_config *config) { return config->long_distance && config->level < GLYD_LEVEL_ULTRA; }

size_t glyd_coded_encode_workspace(const glyd_lz_config *config) {
  return round_up(sizeof(coded_encoder)) + finder_workspace(config) +
         (finds_far(config) ? glyd_match_long_workspace(config->segment_size) : 0);
}

/* Codes and extra bits of the offsets in b->fresh. ends->low: bytes in
 * b->low_bytes, or 0 when they are among the extra bits. */
GLYD_INLINE void code_offsets(block_planes *b, plane_ends *ends) {
  const size_t n = ends->offsets;
  uint8_t *lp = b->low_bytes;
  ends->near = 0;
  for (size_t i = 0; i < n; i++) {
    const uint32_t v = b->fresh[i];
    if (GLYD_UNLIKELY(v >> 31)) {
      b->offset_codes[i] = (uint8_t)NEAR_CODE(v);
      ends->near++;
      continue;
    }
    const unsigned bits = glyd_log2_32(v) - 3;
    b->offset_codes[i] = (uint8_t)(bits << 3 | (v >> bits & 7));
    *lp = (uint8_t)v;
    lp += bits >= 8;
  }
  ends->low = (size_t)(lp - b->low_bytes);
  if (!glyd_coded_low_bytes_pay(b->low_bytes, ends->low)) ends->low = 0;
  glyd_bit_writer raw;
  glyd_bit_writer_init(&raw, b->raw_bits);
  for (size_t i = 0; i < n; i++) {
    uint32_t v = b->fresh[i];
    if (GLYD_UNLIKELY(v >> 31)) {
      const unsigned class = (NEAR_CODE(v) - GLYD_CODED_OFFSET_CODES) % GLYD_CODED_NEAR_SIGN;
      glyd_bit_writer_put(&raw, NEAR_EXTRA(v), GLYD_CODED_NEAR_BITS(class));
      continue;
    }
    unsigned bits = b->offset_codes[i] >> 3;
    v &= (1u << bits) - 1;
    if (ends->low != 0 && bits >= 8) {
      v >>= 8;
      bits -= 8;
    }
    glyd_bit_writer_put(&raw, v, bits);
  }
  ends->raw_bits = (size_t)(glyd_bit_writer_end(&raw) - b->raw_bits);
}

/* Everything but literals that goes into planes. prices: by which offsets near
 * one of a slot are written so; NULL: none are. */
GLYD_INLINE void fill_planes(coded_encoder *e, const glyd_sequence *seqs, size_t n, const uint8_t code_of[256],
                             unsigned escape_base, const glyd_coded_offset_prices *prices, plane_ends *ends) {
  block_planes *const b = &e->planes;
  uint8_t *lesc = b->literal_escapes, *mesc = b->match_escapes;
  size_t longs = 0;
  uint32_t *fresh = b->fresh;
  for (size_t i = 0; i < n; i++) {
    const uint32_t ll = seqs[i].literals, ml = seqs[i].length, offset = seqs[i].offset;
    /* Escapes are written always and counted where they are meant: lengths are
     * hard to predict, long ones alone are rare enough for a branch. */
    const unsigned code = code_of[ml < GLYD_CODED_LONG ? ml : GLYD_CODED_LONG];
    glyd_coded_offset how = {0, 0};
    if (prices != NULL) glyd_coded_price_offset(prices, offset, e->repeat, &how);
    const unsigned slot = glyd_match_use_offset(e->repeat, offset);
    b->commands[i] =
        (uint8_t)(slot << 6 | code << 2 | (ll < GLYD_CODED_LITERALS_ESCAPE ? ll : GLYD_CODED_LITERALS_ESCAPE));
    *lesc = (uint8_t)(ll - GLYD_CODED_LITERALS_ESCAPE);
    *mesc = (uint8_t)(ml - escape_base);
    if (GLYD_UNLIKELY(ll >= GLYD_CODED_LONG || ml >= GLYD_CODED_LONG)) {
      if (ll >= GLYD_CODED_LONG) {
        for (unsigned k = 0; k < 3; k++) b->longs[k][longs] = (uint8_t)(ll >> (8 * k));
        longs++;
        *lesc = GLYD_CODED_LONG;
      }
      if (ml >= GLYD_CODED_LONG) {
        for (unsigned k = 0; k < 3; k++) b->longs[k][longs] = (uint8_t)(ml >> (8 * k));
        longs++;
        *mesc = GLYD_CODED_LONG;
      }
    }
    lesc += ll >= GLYD_CODED_LITERALS_ESCAPE;
    mesc += code == GLYD_CODED_LENGTHS;
    *fresh = how.code >= GLYD_CODED_OFFSET_CODES ? NEAR(how) : offset + GLYD_CODED_OFFSET_BIAS;
    fresh += slot == GLYD_CODED_REPEATS;
  }
  ends->literal_escapes = (size_t)(lesc - b->literal_escapes);
  ends->match_escapes = (size_t)(mesc - b->match_escapes);
  ends->longs = longs;
  ends->offsets = (size_t)(fresh - b->fresh);
  code_offsets(b, ends);
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2,lzcnt"))) static void
fill_planes_bmi2(coded_encoder *e, const glyd_sequence *seqs, size_t n, const uint8_t code_of[256],
                 unsigned escape_base, const glyd_coded_offset_prices *prices, plane_ends *ends) {
  fill_planes(e, seqs, n, code_of, escape_base, prices, ends);
}
#endif

/* A plane that is fine in fine blocks. */
static uint8_t *put_plane(coded_encoder *e, uint8_t *out, const uint8_t *in, size_t n, const uint32_t *counts, int fine,
                          unsigned kind, size_t n_commands) {
  static const struct {
    unsigned kind, most;
  } planes[GLYD_CODED_FINE_PLANES] = {{GLYD_CODED_PLANE_LITERALS, GLYD_CODED_LITERAL_TABLES},
                                      {GLYD_CODED_PLANE_COMMANDS, GLYD_CODED_COMMAND_TABLES},
                                      {GLYD_CODED_PLANE_OFFSETS, GLYD_CODED_OFFSET_TABLES}};
  static const int contexts_are[GLYD_CODED_FINE_PLANES] = {GLYD_CONTEXTS_ARE_MIXED, GLYD_CONTEXTS_ARE_BEFORE,
                                                           GLYD_CONTEXTS_ARE_GIVEN};
  glyd_huffman_code *const last = &e->last[planes[kind].kind];
  if (!fine) return glyd_huffman_encode_plane(e->cpu, out, in, n, counts, last);
  const uint8_t *contexts = e->literal_contexts;
  if (kind == GLYD_CODED_FINE_OFFSETS) {
    size_t k = 0;
    for (const uint8_t *c = e->planes.commands; k < n; c++) {
      e->offset_contexts[k] = GLYD_CODED_OFFSET_CONTEXT(*c);
      k += *c >> 6 == GLYD_CODED_REPEATS;
    }
    contexts = e->offset_contexts;
  }
  uint8_t *const end = glyd_huffman_encode_fine_plane(e->cpu, out, in, n, contexts_are[kind], contexts,
                                                      n_commands / RUNS_COMMANDS + RUNS_BYTES, planes[kind].most, last,
                                                      &e->last_contexts[kind], &e->contexts);
  const unsigned mode = *out & ((1u << GLYD_PLANE_FINE_BITS) - 1);
  if (kind == GLYD_CODED_FINE_COMMANDS)
    e->commands_have_contexts = mode >= GLYD_PLANE_CONTEXTS && mode <= GLYD_PLANE_CHANGED_CONTEXTS;
  return end;
}

/* Contexts of literals that begin a run before a match: what the command says. */
static void make_literal_contexts(coded_encoder *e, const glyd_sequence *seqs, size_t n, size_t n_literals) {
  size_t at = 0;
  memset(e->literal_contexts, 0, n_literals);
  for (size_t i = 0; i < n; i++) {
    if (seqs[i].literals != 0) e->literal_contexts[at] = GLYD_CODED_RUN_CONTEXT(e->planes.commands[i]);
    at += seqs[i].literals;
  }
}

/* Match-length codes of a block, and what escapes count from. Returns whether they are
 * those of table. */
static int choose_codes(const glyd_sequence *seqs, size_t n, int fine, uint8_t table[GLYD_CODED_LENGTHS],
                        uint8_t code_of[256], unsigned *escape_base) {
  const unsigned first = fine ? GLYD_CODED_FINE_LENGTH : GLYD_CODED_MATCH_MIN;
  const int has_table = glyd_coded_choose_lengths(seqs, n, fine, table);
  memset(code_of, GLYD_CODED_LENGTHS, 256);
  for (unsigned k = 0; k < GLYD_CODED_LENGTHS; k++) code_of[has_table ? table[k] : first + k] = (uint8_t)k;
  *escape_base = !has_table ? first + GLYD_CODED_LENGTHS : fine ? GLYD_CODED_FINE_MATCH_MIN : GLYD_CODED_MATCH_MIN;
  return has_table;
}

/* Write the body of a block of these sequences and literals to e->planes.body.
 * Returns its end. */
static uint8_t *encode_body(coded_encoder *e, const glyd_sequence *seqs, size_t n, const uint8_t *literals,
                            size_t n_literals, const uint32_t *counts, unsigned *flags) {
  block_planes *const b = &e->planes;
  uint8_t table[GLYD_CODED_LENGTHS], code_of[256];
  const int fine = e->level >= GLYD_LEVEL_ULTRA;
  *flags = fine ? GLYD_CODED_FLAG_FINE : 0;
  uint8_t *out = b->body;
  unsigned escape_base;
  if (choose_codes(seqs, n, fine, table, code_of, &escape_base)) {
    *flags |= GLYD_CODED_FLAG_LENGTHS;
    memcpy(out, table, sizeof table);
    out += sizeof table;
  }

  plane_ends ends;
  const glyd_coded_offset_prices *const prices = fine ? glyd_coded_parse_offset_prices(e->parser) : NULL;
#if defined(__x86_64__)
  if (e->cpu & GLYD_CPU_AVX2)
    fill_planes_bmi2(e, seqs, n, code_of, escape_base, prices, &ends);
  else
#endif
    fill_planes(e, seqs, n, code_of, escape_base, prices, &ends);
  if (ends.near != 0) *flags |= GLYD_CODED_FLAG_NEAR;

  if (!fine) out = put_plane(e, out, literals, n_literals, counts, fine, GLYD_CODED_FINE_LITERALS, n);
  out = put_plane(e, out, b->commands, n, NULL, fine, GLYD_CODED_FINE_COMMANDS, n);
  out = glyd_huffman_encode_plane(e->cpu, out, b->literal_escapes, ends.literal_escapes, NULL,
                                  &e->last[GLYD_CODED_PLANE_LITERAL_ESCAPES]);
  out = glyd_huffman_encode_plane(e->cpu, out, b->match_escapes, ends.match_escapes, NULL,
                                  &e->last[GLYD_CODED_PLANE_MATCH_ESCAPES]);
  out = put_plane(e, out, b->offset_codes, ends.offsets, NULL, fine, GLYD_CODED_FINE_OFFSETS, n);
  if (ends.low != 0) {
    *flags |= GLYD_CODED_FLAG_LOW;
    out = glyd_huffman_encode_plane(e->cpu, out, b->low_bytes, ends.low, NULL, &e->last[GLYD_CODED_PLANE_LOW]);
  }
  if (ends.longs != 0) {
    *flags |= GLYD_CODED_FLAG_LONG;
    for (unsigned k = 0; k < 3; k++)
      out = glyd_huffman_encode_plane(e->cpu, out, b->longs[k], ends.longs, NULL, &e->last[GLYD_CODED_PLANE_LONG + k]);
  }
  if (fine) { /* they depend on the commands */
    make_literal_contexts(e, seqs, n, n_literals);
    out = put_plane(e, out, literals, n_literals, counts, fine, GLYD_CODED_FINE_LITERALS, n);
  }
  memcpy(out, b->raw_bits, ends.raw_bits);
  return out + ends.raw_bits;
}

typedef struct block_output {
  uint8_t *at, *end;
} block_output;

static glyd_status put_envelope(block_output *o, unsigned type, size_t size, const uint8_t *body, size_t body_len) {
  uint8_t head[8];
  head[0] = (uint8_t)type;
  const size_t head_len = (size_t)(glyd_put_varint(glyd_put_varint(head + 1, size), body_len) - head);
  const size_t room = (size_t)(o->end - o->at);
  if (room < head_len || room - head_len < body_len) return GLYD_E_BUFFER;
  memcpy(o->at, head, head_len);
  memcpy(o->at + head_len, body, body_len);
  o->at += head_len + body_len;
  return GLYD_OK;
}

static void forget_tables(coded_encoder *e) {
  for (unsigned k = 0; k < GLYD_CODED_PLANES; k++) e->last[k].valid = 0;
  for (unsigned k = 0; k < GLYD_CODED_FINE_PLANES; k++) e->last_contexts[k].tables = 0;
  e->commands_have_contexts = 0;
}

/* Append the block of this content (or a raw one, if that is not smaller). */
static glyd_status put_block(coded_encoder *e, block_output *o, const uint8_t *content, size_t size,
                             const glyd_sequence *seqs, size_t n, const uint8_t *literals, size_t n_literals,
                             const uint32_t *counts) {
  uint32_t repeat[GLYD_CODED_REPEATS];
  memcpy(repeat, e->repeat, sizeof repeat);
  unsigned flags;
  const uint8_t *body = e->planes.body;
  const size_t body_len = (size_t)(encode_body(e, seqs, n, literals, n_literals, counts, &flags) - body);
  if (body_len < size) return put_envelope(o, GLYD_BLOCK_CODED | flags, size, body, body_len);
  memcpy(e->repeat, repeat, sizeof repeat);
  forget_tables(e); /* readers never see those of this block */
  return put_envelope(o, GLYD_BLOCK_RAW, size, content, size);
}

/* Bits that n symbols with these counts take, at the least. */
static uint64_t entropy_bits(const uint32_t counts[256], size_t n) {
  uint64_t sum = (uint64_t)n * glyd_huffman_log2_256((uint32_t)n);
  for (unsigned s = 0; s < 256; s++)
    if (counts[s] != 0) sum -= (uint64_t)counts[s] * glyd_huffman_log2_256(counts[s]);
  return sum >> 8;
}

/* Level high: literals are priced by those of the block before, in the first by the
 * content it begins with, of which they take about half a bit more. */
#define PRICE_BYTES ((size_t)32 << 10)
#define PRICE_LEAST 1024u /* fewer say nothing */

static void price_literals(coded_encoder *e, const uint8_t *in, size_t n, uint64_t more) {
  if (e->level != GLYD_LEVEL_HIGH || n < PRICE_LEAST) return;
  uint32_t counts[256];
  glyd_huffman_count(in, n, counts);
  glyd_match_row_price(&e->rows, entropy_bits(counts, n) + more, n);
}

#define SPLIT_BITS 3600u                 /* tables, sizes and envelope of one more block, and its time to read */
#define SPLIT_LITERALS ((size_t)8 << 10) /* fewer in a block are not worth looking at */

typedef struct block_cut {
  size_t sequence; /* first one of the block; its literals begin before by */
  size_t skip;     /* this many bytes */
  size_t content;  /* position in the content */
  size_t literal;  /* and among the literals */
} block_cut;

/* Best cuts of pieces [first, first + n), n a power of two, by the first so many of their
 * planes, one for price bits: sets wanted[i] for pieces that start a block (first
 * excepted), returns the bits of the planes. counts gets the sum over the pieces. */
static uint64_t best_cuts(const uint32_t piece[PIECES][CUT_PLANES][256], unsigned planes, uint64_t price, size_t first,
                          size_t n, uint32_t counts[CUT_PLANES][256], uint8_t wanted[PIECES]) {
  uint32_t right[CUT_PLANES][256];
  uint64_t apart = price, joined = 0;
  if (n == 1) {
    memcpy(counts, piece[first], planes * sizeof *counts);
  } else {
    apart += best_cuts(piece, planes, price, first, n / 2, counts, wanted);
    apart += best_cuts(piece, planes, price, first + n / 2, n / 2, right, wanted);
  }
  for (unsigned k = 0; k < planes; k++) {
    size_t total = 0;
    for (unsigned s = 0; s < 256; s++) total += counts[k][s] += n == 1 ? 0 : right[k][s];
    joined += entropy_bits(counts[k], total);
  }
  if (n == 1) return joined;
  if (joined <= apart) {
    memset(wanted + first + 1, 0, n - 1);
    return joined;
  }
  wanted[first + n / 2] = 1;
  return apart;
}

/* Counts of a fine block's planes but literals, piece by piece. */
static void count_pieces(coded_encoder *e, size_t n, const block_cut *cuts, size_t n_cuts) {
  uint32_t repeat[GLYD_CODED_REPEATS];
  uint8_t table[GLYD_CODED_LENGTHS], code_of[256];
  unsigned escape_base;
  plane_ends ends;
  memcpy(repeat, e->repeat, sizeof repeat);
  choose_codes(e->sequences, n, 1, table, code_of, &escape_base);
  fill_planes(e, e->sequences, n, code_of, escape_base, glyd_coded_parse_offset_prices(e->parser), &ends);
  memcpy(e->repeat, repeat, sizeof repeat);
  const uint8_t *offset = e->planes.offset_codes, *escape = e->planes.match_escapes;
  for (size_t i = 0, k = 0; i < n; i++) {
    while (k + 1 < n_cuts && cuts[k + 1].sequence <= i) k++;
    const unsigned c = e->planes.commands[i];
    e->pieces[k][CUT_COMMANDS][c]++;
    if (c >> 6 == GLYD_CODED_REPEATS) e->pieces[k][CUT_OFFSETS][*offset++]++;
    if ((c >> 2 & 15) == GLYD_CODED_LENGTHS) e->pieces[k][CUT_ESCAPES][*escape++]++;
  }
}

/* Whether literals are noise by a sample of each PIECE: 64 bytes of 512. 4 KiB of
 * noise show 7.955 bits a byte; at 7.94 coding cannot save 1%. */
static int is_noise(const uint8_t *literals, size_t n) {
  if (n < PIECE) return 0;
  for (size_t at = 0; at < n; at += PIECE) {
    const size_t from = at + PIECE <= n ? at : n - PIECE;
    uint32_t counts[256];
    memset(counts, 0, sizeof counts);
    for (size_t i = 0; i < PIECE; i += 512)
      for (size_t k = 0; k < 64; k++) counts[literals[from + i + k]]++;
    if (entropy_bits(counts, PIECE / 8) * 100 < 794 * (PIECE / 8)) return 0;
  }
  return 1;
}

/* Code e->sequences, n of them, as one block or several. */
static glyd_status put_blocks(coded_encoder *e, block_output *o, const uint8_t *content, size_t size,
                              const uint8_t *in_end, size_t n) {
  /* Gather the literals, and where pieces may be cut. */
  glyd_sequence *const seqs = e->sequences;
  uint8_t *lit = e->planes.literals;
  const uint8_t *ip = content;
  block_cut cuts[PIECES + 1];
  size_t n_cuts = 1;
  const uint8_t *next = content + PIECE;
  cuts[0] = (block_cut){0, 0, 0, 0};
  for (size_t i = 0; i <= n; i++) {
    const size_t ll = i < n ? seqs[i].literals : (size_t)(content + size - ip), ml = i < n ? seqs[i].length : 0;
    if (GLYD_LIKELY(ll <= LITERAL_COPY && in_end - ip >= LITERAL_COPY))
      memcpy(lit, ip, LITERAL_COPY);
    else
      memcpy(lit, ip, ll);
    while (GLYD_UNLIKELY(ip + ll >= next)) { /* at next, or before this sequence if next is in a match */
      const size_t skip = next > ip ? (size_t)(next - ip) : 0;
      const size_t at = (size_t)(ip - content) + skip;
      if (at != cuts[n_cuts - 1].content && at < size)
        cuts[n_cuts++] = (block_cut){i, skip, at, (size_t)(lit - e->planes.literals) + skip};
      next += PIECE;
    }
    lit += ll;
    ip += ll + ml;
  }
  const size_t n_literals = (size_t)(lit - e->planes.literals);
  cuts[n_cuts] = (block_cut){n, 0, size, n_literals};

  if (size - n_literals <= size / 128 && is_noise(e->planes.literals, n_literals))
    return put_envelope(o, GLYD_BLOCK_RAW, size, content, size);
  uint8_t wanted[PIECES] = {0};
  const int counted = n_literals >= SPLIT_LITERALS && n_cuts > 1;
  uint32_t counts[256];
  if (counted) {
    memset(e->pieces, 0, sizeof e->pieces);
    for (size_t k = 0; k < n_cuts; k++)
      glyd_huffman_count(e->planes.literals + cuts[k].literal, cuts[k + 1].literal - cuts[k].literal,
                         e->pieces[k][CUT_LITERALS]);
    const int fine = e->level >= GLYD_LEVEL_ULTRA && n <= GLYD_CODED_SEQUENCES_MAX;
    if (fine) count_pieces(e, n, cuts, n_cuts);
    uint32_t sums[CUT_PLANES][256];
    best_cuts(e->pieces, fine ? CUT_PLANES : 1, SPLIT_BITS, 0, PIECES, sums, wanted);
  }
  price_literals(e, e->planes.literals, n_literals, 0);
  if (n > GLYD_CODED_SEQUENCES_MAX) memset(wanted, 1, sizeof wanted); /* very short matches: what a block can hold */
  size_t taken = 0;
  for (size_t from = 0, to; from < n_cuts; from = to) {
    for (to = from + 1; to < n_cuts && !wanted[to];) to++;
    const block_cut *a = &cuts[from], *z = &cuts[to];
    if (counted) {
      memcpy(counts, e->pieces[from][CUT_LITERALS], sizeof counts);
      for (size_t k = from + 1; k < to; k++)
        for (unsigned c = 0; c < 256; c++) counts[c] += e->pieces[k][CUT_LITERALS][c];
    }
    /* What blocks before have taken of the first sequence's literals. */
    if (a->sequence < n) seqs[a->sequence].literals -= (uint32_t)(a->skip - taken);
    taken = z->sequence == a->sequence ? a->skip : 0;
    const glyd_status status =
        put_block(e, o, content + a->content, z->content - a->content, seqs + a->sequence, z->sequence - a->sequence,
                  e->planes.literals + a->literal, z->literal - a->literal, counted ? counts : NULL);
    if (status != GLYD_OK) return status;
  }
  return GLYD_OK;
}

/* Sequences of [start, end) of the segment to seqs; returns their number. */
static size_t parse(coded_encoder *e, const uint8_t *segment, size_t start, size_t end, glyd_sequence *seqs) {
  if (e->level >= GLYD_LEVEL_ULTRA) {
    const uint8_t *const tables = e->commands_have_contexts ? e->last_contexts[GLYD_CODED_FINE_COMMANDS].map : NULL;
    return glyd_coded_parse(e->parser, segment, start, end, e->repeat, tables, seqs);
  }
  if (e->level == GLYD_LEVEL_HIGH) return glyd_match_row_parse(&e->rows, segment, start, end, seqs);
  return glyd_match_double_parse(&e->finder, segment, start, end, seqs);
}

/* Sequences of [start, end) of the segment of len bytes to e->sequences; returns
 * their number. With long_distance what lies between two far matches is parsed
 * by itself. */
static size_t find_sequences(coded_encoder *e, int long_distance, const uint8_t *segment, size_t start, size_t end,
                             size_t len) {
  if (!long_distance) return parse(e, segment, start, end, e->sequences);
  const size_t n_far = glyd_match_long_find(&e->far, segment, start, end, e->far_matches);
  size_t n = 0, at = start;
  for (size_t k = 0; k < n_far; k++) {
    const glyd_long_match *const f = &e->far_matches[k];
    const size_t found = parse(e, segment, at, f->position, e->sequences + n);
    for (size_t i = n; i < n + found; i++) at += e->sequences[i].literals + e->sequences[i].length;
    n += found;
    e->sequences[n++] = (glyd_sequence){(uint32_t)(f->position - at), (uint32_t)f->length, (uint32_t)f->offset};
    at = f->position + f->length;
    if (e->level >= GLYD_LEVEL_HIGH)
      glyd_match_row_skip(&e->rows, segment, f->position, at, len, (uint32_t)f->offset);
    else
      glyd_match_double_skip(&e->finder, segment, f->position, at, len, (uint32_t)f->offset);
  }
  return n + parse(e, segment, at, end, e->sequences + n);
}

glyd_status glyd_coded_segment_encode(const glyd_lz_config *config, void *workspace, const uint8_t *in, size_t history,
                                      size_t len, uint8_t *out, size_t cap, size_t *out_len) {
  coded_encoder *const e = workspace;
  const size_t total = history + len;
  static const uint32_t repeat_start[GLYD_CODED_REPEATS] = GLYD_CODED_REPEAT_START;
  memcpy(e->repeat, repeat_start, sizeof repeat_start);
  forget_tables(e);
  e->cpu = config->cpu;
  uint8_t *const tables = (uint8_t *)workspace + round_up(sizeof *e);
  e->level = config->level;
  if (config->level >= GLYD_LEVEL_ULTRA) {
    e->parser = glyd_coded_parse_reset(config->cpu, tables, in, history, total);
  } else if (config->level == GLYD_LEVEL_HIGH) {
    glyd_match_row_reset(&e->rows, config->cpu, tables, total);
    glyd_match_row_prime(&e->rows, in, history);
    const size_t first = len < PRICE_BYTES ? len : PRICE_BYTES;
    price_literals(e, in + history, first, first / 2);
  } else {
    glyd_match_double_reset(&e->finder, config->cpu, tables, total);
    glyd_match_double_prime(&e->finder, in, history);
  }
  if (finds_far(config)) glyd_match_long_reset(&e->far, tables + finder_workspace(config), total);
  block_output o = {out, out + cap};
  for (size_t start = history, size; start < total; start += size) {
    size = total - start < BLOCK_SIZE ? total - start : BLOCK_SIZE;
    const uint8_t *const block = in + start;
    glyd_status status;
    if (memcmp(block, block + 1, size - 1) == 0) {
      status = put_envelope(&o, GLYD_BLOCK_FILL, size, block, 1);
    } else {
      const size_t n = find_sequences(e, finds_far(config), in, start, start + size, total);
      status = put_blocks(e, &o, block, size, in + total, n);
    }
    if (status != GLYD_OK) return status;
  }
  *out_len = (size_t)(o.at - out);
  return GLYD_OK;
}
