/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * A node is a place in the content; its price is that of the cheapest way there
 * that is known. Places are visited in order: each offers its price, and that of
 * a literal or a match from there on, to the places where these end. Prices are
 * bits in 1/256 and come from counts of a parse of the same block before, the
 * first of them from those of the block before.
 */
#include "block/block_coded_parse_encode.h"

#include "block/block_coded_price_encode.h"
#include "common/cpu.h"
#include "huffman/huffman_encode.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define DEPTH 64                             /* places of a tree that are compared */
#define WINDOW 8192u                         /* nodes: the parse is settled at the end of each window */
#define MATCHES ((size_t)8 * GLYD_BLOCK_MAX) /* room for those of a block */
#define MATCH_MIN GLYD_CODED_FINE_MATCH_MIN
#define LENGTHS 255u   /* lengths with a price of their own: those below */
#define GAP_MOST 4u    /* literals between two matches of one step */
#define NEAR_PART 100u /* such offsets must save one part in so many of a block */
#define NEAR_SLOTS 2u
#define NEAR_REACH 64u /* places on either side of a slot's that are looked at */
#define NEAR_HITS 8u   /* matches found there */
#define NEAR_LEAST 4u  /* their shortest length */
#define NEAR_BELOW 32u /* not where the tree has a match of so many bytes */
#define NEAR_END 32    /* bytes that must be left of the block */
#define RUNS 320u      /* the same for literals */
#define EVERY 64u      /* up to here every length of a match is tried, then every EVERY_STEP-th */
#define EVERY_STEP 8u
#define TABLE_FROM ((size_t)32 << 10) /* bytes of a block that will have a match-length table */
#define CLASSES 16u                   /* of literals, roughly those that share a table as contexts */
#define CLASS(byte) ((byte) >> 4)
#define CLASS_LEAST 512u /* fewer literals say nothing of a class, or commands of a table */
#define TABLES GLYD_CODED_COMMAND_TABLES
#define BIT 256u
/* Of a match, above its bits: contexts make literals cheaper than they are priced,
 * and fewer matches read faster. */
#define MATCH_PRICE ((int32_t)BIT)
#define NEVER (1 << 20) /* price of what cannot be written */
#define BIT_LEAST 60u   /* no symbol is priced lower: not all contexts are that sure */

typedef struct counts {
  uint32_t after[CLASSES][256];         /* literals by the one before them in the plane */
  uint32_t commands_after[TABLES][256]; /* by the table that the one before stands for */
  uint32_t literals[256], commands[256], literal_escapes[256], match_escapes[256], offsets[256], low[256];
  uint8_t lengths[GLYD_CODED_LENGTHS]; /* of match-length codes */
  unsigned escape_base;                /* GLYD_CODED_FINE_MATCH_MIN: by a table */
  int has_low;
} counts;

typedef struct prices {
  int32_t literal[256];
  int32_t after[CLASSES][256];        /* right after a literal of each class */
  int32_t run[RUNS];                  /* of so many literals before a match, by itself */
  int32_t match[TABLES][16][LENGTHS]; /* by table, slot and literal-length field, length */
  uint8_t code_of[256];               /* of a match length; 255: those from there on */
  glyd_coded_offset_prices offsets;
} prices;

/* How a place is reached. */
typedef struct step {
  uint32_t offset; /* of the match that ends here; 0: a literal does */
  uint32_t length; /* of all of the step */
  uint16_t again;  /* bytes of a second match at the same offset that ends here; 0: none */
  uint16_t gap;    /* literals between the two */
} step;

typedef struct node {
  uint32_t run;   /* literals right before */
  uint32_t table; /* of the next command */
  uint32_t repeat[GLYD_CODED_REPEATS];
} node;

struct glyd_coded_parser {
  glyd_match_tree tree;
  unsigned cpu;
  const uint8_t *tables;                       /* of a command, by the one before */
  int near;                                    /* offsets near those of slots are written so */
  uint32_t near_counts[GLYD_CODED_NEAR_CODES]; /* where they were tried last */
  int begun;                                   /* counts are those of a block before */
  counts counts;
  prices prices;
  int32_t price[WINDOW + 1]; /* apart: it alone is looked at for most offers */
  step steps[WINDOW + 1];
  node nodes[WINDOW + 1];
  uint32_t at[GLYD_BLOCK_MAX + 1];
  uint8_t low_bytes[GLYD_CODED_PARSED_MAX];
  glyd_tree_match matches[MATCHES];
};

static uint64_t round_up(uint64_t n) { return (n + 63) & ~(uint64_t)63; }

uint64_t glyd_coded_parse_workspace(uint64_t segment_size) {
  return round_up(sizeof(glyd_coded_parser)) + glyd_match_tree_workspace(segment_size);
}

glyd_coded_parser *glyd_coded_parse_reset(unsigned cpu, void *memory, const uint8_t *segment, size_t history,
                                          size_t len) {
  glyd_coded_parser *const p = memory;
  p->cpu = cpu;
  p->begun = 0;
  glyd_match_tree_reset(&p->tree, cpu, (uint8_t *)memory + round_up(sizeof *p), len, DEPTH);
  glyd_match_tree_prime(&p->tree, segment, history);
  return p;
}

/* ---- prices ---------------------------------------------------------------- */

static void price_symbols(const uint32_t n_of[256], int32_t price[256]) {
  uint32_t bits[256];
  glyd_huffman_price_symbols(n_of, bits);
  for (unsigned s = 0; s < 256; s++) price[s] = (int32_t)(bits[s] < BIT_LEAST ? BIT_LEAST : bits[s]);
}

/* By context where that says enough, else as all. */
static void price_by_context(const uint32_t (*n_of)[256], unsigned n, const int32_t all[256], int32_t (*price)[256]) {
  for (unsigned k = 0; k < n; k++) {
    uint32_t total = 0;
    for (unsigned s = 0; s < 256; s++) total += n_of[k][s];
    if (total >= CLASS_LEAST)
      price_symbols(n_of[k], price[k]);
    else
      memcpy(price[k], all, 256 * sizeof *all);
  }
}

static void make_prices(const counts *c, prices *p) {
  int32_t command[256], commands[TABLES][256], literal_escape[256], match_escape[256], field[4];
  uint32_t fields[256] = {0};
  price_symbols(c->literals, p->literal);
  price_by_context(c->after, CLASSES, p->literal, p->after);
  price_symbols(c->commands, command);
  price_by_context(c->commands_after, TABLES, command, commands);
  price_symbols(c->literal_escapes, literal_escape);
  price_symbols(c->match_escapes, match_escape);
  price_symbols(c->offsets, p->offsets.code);
  for (unsigned s = 0; s < 256; s++) fields[s & 3] += c->commands[s];
  int32_t of_fields[256];
  price_symbols(fields, of_fields);
  memcpy(field, of_fields, sizeof field);
  for (unsigned n = 0; n < RUNS; n++) {
    const unsigned escape = n - GLYD_CODED_LITERALS_ESCAPE;
    p->run[n] = n < GLYD_CODED_LITERALS_ESCAPE ? field[n]
                : n < GLYD_CODED_LONG          ? field[3] + literal_escape[escape]
                                               : field[3] + literal_escape[255] + (int32_t)(16 * BIT);
  }
  uint8_t *const code_of = p->code_of;
  memset(code_of, GLYD_CODED_LENGTHS, 256);
  int32_t extra[LENGTHS];
  for (unsigned l = 0; l < LENGTHS; l++) extra[l] = l < c->escape_base ? NEVER : match_escape[l - c->escape_base];
  for (unsigned k = 0; k < GLYD_CODED_LENGTHS; k++) {
    const unsigned l = c->lengths[k];
    code_of[l] = (uint8_t)k;
    extra[l] = 0;
  }
  for (unsigned k = 0; k < TABLES; k++)
    for (unsigned slot = 0; slot < 4; slot++)
      for (unsigned f = 0; f < 4; f++)
        for (unsigned l = MATCH_MIN; l < LENGTHS; l++)
          p->match[k][slot << 2 | f][l] = commands[k][slot << 6 | (unsigned)code_of[l] << 2 | f] - field[f] + extra[l];
  for (unsigned c8 = 0; c8 < GLYD_CODED_OFFSET_CODES; c8++) {
    const unsigned bits = c8 >> 3;
    p->offsets.code[c8] += (int32_t)((c->has_low && bits >= 8 ? bits - 8 : bits) * BIT);
  }
  for (unsigned k = 0; k < GLYD_CODED_NEAR_CODES; k++)
    p->offsets.code[GLYD_CODED_OFFSET_CODES + k] += (int32_t)(GLYD_CODED_NEAR_BITS(k % GLYD_CODED_NEAR_SIGN) * BIT);
  if (c->has_low)
    price_symbols(c->low, p->offsets.low);
  else
    memset(p->offsets.low, 0, sizeof p->offsets.low);
}

static void default_lengths(counts *c) {
  for (unsigned k = 0; k < GLYD_CODED_LENGTHS; k++) c->lengths[k] = (uint8_t)(GLYD_CODED_FINE_LENGTH + k);
  c->escape_base = GLYD_CODED_FINE_LENGTH + GLYD_CODED_LENGTHS;
}

/* What to begin with: literals as frequent as all bytes, and a plausible share
 * of everything else. */
static void first_counts(const uint8_t *in, size_t n, counts *c) {
  memset(c, 0, sizeof *c);
  glyd_huffman_count(in, n, c->literals);
  static const uint8_t of_field[4] = {10, 4, 2, 4}, of_slot[4] = {4, 2, 1, 12};
  for (unsigned s = 0; s < 256; s++) {
    const unsigned code = s >> 2 & 15;
    c->commands[s] = (uint32_t)of_field[s & 3] * of_slot[s >> 6] * (code == 15 ? 6 : 17 - code) / 4 + 1;
    c->literal_escapes[s] = 256 / (s + 4) + 1;
    c->match_escapes[s] = 256 / (s + 4) + 1;
    c->offsets[s] = s < 8 ? 2 : s < 160 ? 8 : 2;
  }
  default_lengths(c);
  if (n >= TABLE_FROM) c->escape_base = GLYD_CODED_FINE_MATCH_MIN;
}

static void forbid_near(prices *p) {
  for (unsigned k = 0; k < GLYD_CODED_NEAR_CODES; k++) p->offsets.code[GLYD_CODED_OFFSET_CODES + k] = NEVER;
}

static uint8_t count_literal(counts *c, uint8_t before, uint8_t literal) {
  c->literals[literal]++;
  c->after[CLASS(before)][literal]++;
  return literal;
}

/* Count what a parse puts into the planes. Returns the bits, in 1/256, that
 * offsets near those of slots save. */
static uint64_t count_parse(glyd_coded_parser *p, const uint8_t *block, size_t len, const glyd_sequence *seqs, size_t n,
                            const uint32_t start[GLYD_CODED_REPEATS], counts *c) {
  memset(c, 0, sizeof *c);
  if (glyd_coded_choose_lengths(seqs, n, 1, c->lengths))
    c->escape_base = GLYD_CODED_FINE_MATCH_MIN;
  else
    default_lengths(c);
  uint8_t code_of[256];
  memset(code_of, GLYD_CODED_LENGTHS, sizeof code_of);
  for (unsigned k = 0; k < GLYD_CODED_LENGTHS; k++) code_of[c->lengths[k]] = (uint8_t)k;
  const unsigned base = c->escape_base;
  uint32_t repeat[GLYD_CODED_REPEATS];
  memcpy(repeat, start, sizeof repeat);
  const uint8_t *ip = block;
  size_t n_low = 0;
  uint8_t before = 0;
  uint64_t saved = 0;
  unsigned last_command = 0;
  for (size_t i = 0; i < n; i++) {
    const uint32_t ll = seqs[i].literals, ml = seqs[i].length;
    for (uint32_t k = 0; k < ll; k++) before = count_literal(c, before, ip[k]);
    ip += ll + ml;
    uint32_t known[GLYD_CODED_REPEATS];
    memcpy(known, repeat, sizeof known);
    const unsigned slot = glyd_match_use_offset(repeat, seqs[i].offset);
    const unsigned code = code_of[ml < GLYD_CODED_LONG ? ml : GLYD_CODED_LONG];
    const unsigned command = slot << 6 | code << 2 | (ll < 3 ? ll : 3);
    c->commands[command]++;
    c->commands_after[p->tables[last_command]][command]++;
    last_command = command;
    if (ll >= 3) c->literal_escapes[ll < GLYD_CODED_LONG ? ll - 3 : 255]++;
    if (code == GLYD_CODED_LENGTHS) c->match_escapes[ml < GLYD_CODED_LONG ? ml - base : 255]++;
    if (slot == GLYD_CODED_REPEATS) {
      glyd_coded_offset how;
      const int32_t price = glyd_coded_price_offset(&p->prices.offsets, seqs[i].offset, known, &how);
      c->offsets[how.code]++;
      if (how.code >= GLYD_CODED_OFFSET_CODES) {
        saved += (uint64_t)(glyd_coded_price_far(&p->prices.offsets, seqs[i].offset) - price);
      } else if (how.code >> 3 >= 8) {
        p->low_bytes[n_low++] = (uint8_t)how.extra;
        c->low[how.extra & 255]++;
      }
    }
  }
  for (; ip < block + len; ip++) before = count_literal(c, before, *ip);
  c->has_low = glyd_coded_low_bytes_pay(p->low_bytes, n_low);
  return saved;
}

/* ---- the parse -------------------------------------------------------------- */

typedef struct walk_state {
  const uint8_t *segment;
  size_t start, end; /* of the block */
  glyd_sequence *seqs;
  size_t n;
  size_t anchor; /* where the last match ended */
  int last;      /* pass over the block */
  uint64_t bits; /* of the parse, in 1/256 */
  uint32_t repeat[GLYD_CODED_REPEATS];
  unsigned table; /* of the next command */
} walk_state;

GLYD_INLINE void offer(glyd_coded_parser *p, size_t to, int32_t price, uint32_t offset, uint32_t length) {
  if (price >= p->price[to]) return;
  p->price[to] = price;
  p->steps[to] = (step){offset, length, 0, 0};
}

/* Lengths from … to of a match at node i, whose other costs are in price. */
GLYD_INLINE void offer_lengths(glyd_coded_parser *p, size_t i, size_t from, size_t to, const int32_t *match,
                               int32_t price, uint32_t offset) {
  if (to >= LENGTHS) {
    offer(p, i + to, price + match[LENGTHS - 1] + (int32_t)(10 * BIT), offset, (uint32_t)to);
    to = LENGTHS - 1;
  }
  for (size_t l = to; l >= from && l > EVERY; l -= EVERY_STEP) offer(p, i + l, price + match[l], offset, (uint32_t)l);
  if (to > EVERY) to = EVERY;
  for (size_t l = from; l <= to; l++) offer(p, i + l, price + match[l], offset, (uint32_t)l);
}

/* Table of the command that follows one. */
GLYD_INLINE unsigned table_after(const glyd_coded_parser *p, unsigned slot, size_t length, unsigned run) {
  const unsigned code = p->prices.code_of[length < LENGTHS ? length : LENGTHS];
  return p->tables[slot << 6 | code << 2 | (run < 3 ? run : 3)];
}

/* A match of len bytes at node i, a few literals and a match at the same offset,
 * as one step: which offsets a place knows depends on the cheapest way there
 * alone, and that of the first match may not be it. */
GLYD_INLINE void offer_again(glyd_coded_parser *p, size_t i, const uint8_t *ip, size_t len, size_t most, int32_t price,
                             uint32_t offset, unsigned table) {
  const prices *const pr = &p->prices;
  if (len + 1 + MATCH_MIN > most) return;
  price += pr->literal[ip[len]];
  for (unsigned gap = 1; gap <= GAP_MOST && len + gap + MATCH_MIN <= most; gap++) {
    const uint8_t *const after = ip + len + gap;
    if (glyd_load16(after) == glyd_load16(after - offset)) {
      size_t again = 2 + glyd_match_count(after + 2, after + 2 - offset, ip + most);
      if (again >= LENGTHS) again = LENGTHS - 1;
      const size_t length = len + gap + again;
      price += pr->run[gap] + pr->match[table][gap < 3 ? gap : 3][again] + MATCH_PRICE;
      if (price >= p->price[i + length]) return;
      p->price[i + length] = price;
      p->steps[i + length] = (step){offset, (uint32_t)length, (uint16_t)again, (uint16_t)gap};
      return;
    }
    price += pr->after[CLASS(after[-1])][*after];
  }
}

/* Which of the 16 places from at on begin with the four bytes at ip. */
GLYD_INLINE uint32_t equal_places(const uint8_t *at, const uint8_t *ip) {
#if defined(__SSE2__)
  __m128i equal = _mm_set1_epi8(-1);
  for (unsigned k = 0; k < 4; k++)
    equal = _mm_and_si128(
        equal, _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)(at + k)), _mm_set1_epi8((char)ip[k])));
  return (uint32_t)_mm_movemask_epi8(equal);
#else
  const uint32_t v = glyd_load32(ip);
  uint32_t mask = 0;
  for (unsigned k = 0; k < 16; k++) mask |= (uint32_t)(glyd_load32(at + k) == v) << k;
  return mask;
#endif
}

/* Matches at node i, at pos of the segment, from places near those that the
 * slots stand for: the tree knows the nearest place of each length alone. */
GLYD_INLINE void offer_near(glyd_coded_parser *p, size_t i, const uint8_t *ip, size_t pos, size_t most,
                            const uint8_t *iend, unsigned field, int32_t price) {
  for (unsigned k = 0; k < NEAR_SLOTS; k++) {
    const uint32_t slot = p->nodes[i].repeat[k];
    if (slot <= NEAR_REACH || slot + NEAR_REACH > pos) continue;
    unsigned left = NEAR_HITS;
    for (uint32_t at = 0; at < 2 * NEAR_REACH; at += 16) {
      const uint8_t *const near = ip - slot - NEAR_REACH + at;
      for (uint32_t hits = equal_places(near, ip); hits != 0 && left != 0; hits &= hits - 1, left--) {
        const uint8_t *const mp = near + glyd_ctz64(hits);
        const uint32_t offset = (uint32_t)(ip - mp);
        if (offset == slot) continue;
        size_t len = 4 + glyd_match_count(ip + 4, mp + 4, iend);
        if (len > most) len = most;
        const unsigned code = glyd_coded_near_offset(offset, slot, k).code;
        offer_lengths(p, i, NEAR_LEAST, len, p->prices.match[p->nodes[i].table][12 | field],
                      price + p->prices.offsets.code[code], offset);
      }
    }
  }
}

/* Write the way to node k of the window that starts at pos. */
static void settle(glyd_coded_parser *p, walk_state *w, size_t pos, size_t k) {
  node *const nodes = p->nodes;
  memcpy(w->repeat, nodes[k].repeat, sizeof w->repeat);
  w->table = nodes[k].table;
  size_t next = 0; /* link the path forwards: length is that of the step from here */
  for (size_t i = k; i > 0;) {
    nodes[i].run = (uint32_t)next;
    next = i;
    i -= p->steps[i].length;
  }
  for (size_t i = next; i != 0 && next != 0; i = nodes[i].run) {
    const step *const s = &p->steps[i];
    if (s->offset != 0) {
      const size_t to = pos + i, from = to - s->length;
      w->seqs[w->n++] = (glyd_sequence){(uint32_t)(from - w->anchor), s->length - s->again - s->gap, s->offset};
      if (s->again != 0) w->seqs[w->n++] = (glyd_sequence){s->gap, s->again, s->offset};
      w->anchor = to;
    }
    if (i == k) break;
  }
}

/* Nodes from pos on until the window is full, the block ends or a match is so
 * long that it is taken at once. Returns where that is, the match in *nice. */
GLYD_INLINE size_t walk_window(glyd_coded_parser *p, walk_state *w, size_t pos, glyd_tree_match *nice) {
  node *const nodes = p->nodes;
  const prices *const pr = &p->prices;
  const uint8_t *const segment = w->segment, *const iend = segment + w->end;
  const size_t size = w->end - pos < WINDOW ? w->end - pos : WINDOW;
  for (size_t i = 1; i <= size; i++) p->price[i] = INT32_MAX;
  p->price[0] = 0;
  nodes[0].run = (uint32_t)(pos - w->anchor);
  nodes[0].table = w->table;
  memcpy(nodes[0].repeat, w->repeat, sizeof w->repeat);
  nice->length = 0;
  for (size_t i = 0;; i++) {
    node *const nd = nodes + i;
    if (i != 0) {
      const step *const s = &p->steps[i];
      const node *const before = nd - s->length;
      memcpy(nd->repeat, before->repeat, sizeof nd->repeat);
      if (s->offset == 0) {
        nd->run = before->run + 1;
        nd->table = before->table;
      } else {
        nd->run = 0;
        const unsigned slot = glyd_match_use_offset(nd->repeat, s->offset);
        nd->table = s->again != 0 ? table_after(p, 0, s->again, s->gap) : table_after(p, slot, s->length, before->run);
      }
    }
    if (i == size) return i;
    const uint8_t *const ip = segment + pos + i;
    const uint32_t run = nd->run < RUNS - 1 ? nd->run : RUNS - 2;
    const int32_t literal = nd->run != 0 ? pr->after[CLASS(ip[-1])][*ip] : pr->literal[*ip];
    offer(p, i + 1, p->price[i] + literal + pr->run[run + 1] - pr->run[run], 0, 1);
    const size_t most = size - i;
    if (most < MATCH_MIN) continue;
    const unsigned field = run < 3 ? run : 3;
    const int32_t price = p->price[i] + pr->run[0] + MATCH_PRICE;
    const uint16_t v = glyd_load16(ip);
    for (unsigned k = 0; k < GLYD_CODED_REPEATS; k++) {
      const size_t offset = nd->repeat[k];
      if (offset > pos + i || glyd_load16(ip - offset) != v) continue;
      size_t len = 2 + glyd_match_count(ip + 2, ip + 2 - offset, iend);
      if (len >= GLYD_MATCH_TREE_NICE) {
        *nice = (glyd_tree_match){(uint32_t)len, (uint32_t)offset};
        return i;
      }
      if (len > most) len = most;
      const int32_t *const match = pr->match[nd->table][k << 2 | field];
      offer_lengths(p, i, MATCH_MIN, len, match, price, (uint32_t)offset);
      if (len < LENGTHS)
        offer_again(p, i, ip, len, most, price + match[len], (uint32_t)offset, table_after(p, k, len, run));
    }
    const size_t place = pos + i - w->start;
    const uint32_t first = p->at[place], last = p->at[place + 1];
    const size_t longest = first == last ? 0 : p->matches[last - 1].length;
    if (w->last && p->near && longest < NEAR_BELOW && (size_t)(iend - ip) >= NEAR_END)
      offer_near(p, i, ip, pos + i, most, iend, field, price);
    if (first == last) continue;
    if (longest >= GLYD_MATCH_TREE_NICE) {
      *nice = p->matches[last - 1];
      return i;
    }
    const int32_t *const match = pr->match[nd->table][GLYD_CODED_REPEATS << 2 | field];
    size_t from = MATCH_MIN + 1; /* two bytes pay at a repeated offset alone */
    for (uint32_t k = first; k < last && from <= most; k++) {
      size_t len = p->matches[k].length;
      if (len > most) len = most;
      if (len < from) continue;
      const uint32_t offset = p->matches[k].offset;
      glyd_coded_offset how;
      const int32_t with_offset = price + glyd_coded_price_offset(&pr->offsets, offset, nd->repeat, &how);
      offer_lengths(p, i, from, len, match, with_offset, offset);
      if (len < LENGTHS)
        offer_again(p, i, ip, len, most, with_offset + match[len], offset, table_after(p, 3, len, run));
      from = len + 1;
    }
  }
}

GLYD_INLINE size_t parse(glyd_coded_parser *p, walk_state *w, const uint32_t repeat[GLYD_CODED_REPEATS]) {
  w->n = 0;
  w->bits = 0;
  w->anchor = w->start;
  memcpy(w->repeat, repeat, sizeof w->repeat);
  w->table = p->tables[0];
  for (size_t pos = w->start; pos < w->end;) {
    glyd_tree_match nice;
    const size_t k = walk_window(p, w, pos, &nice);
    settle(p, w, pos, k);
    w->bits += (uint64_t)p->price[k];
    pos += k;
    if (nice.length == 0) continue;
    w->seqs[w->n++] = (glyd_sequence){(uint32_t)(pos - w->anchor), nice.length, nice.offset};
    const unsigned slot = glyd_match_use_offset(w->repeat, nice.offset);
    w->table = table_after(p, slot, nice.length, (unsigned)(pos - w->anchor));
    pos += nice.length;
    w->anchor = pos;
  }
  return w->n;
}

static size_t parse_plain(glyd_coded_parser *p, walk_state *w, const uint32_t repeat[GLYD_CODED_REPEATS]) {
  return parse(p, w, repeat);
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2,lzcnt"))) static size_t parse_bmi2(glyd_coded_parser *p, walk_state *w,
                                                                   const uint32_t repeat[GLYD_CODED_REPEATS]) {
  return parse(p, w, repeat);
}
#endif

size_t glyd_coded_parse(glyd_coded_parser *p, const uint8_t *segment, size_t start, size_t end,
                        const uint32_t repeat[GLYD_CODED_REPEATS], const uint8_t *tables, glyd_sequence *seqs) {
  static const uint8_t one[256];
  p->tables = tables != NULL ? tables : one;
  walk_state w = {.segment = segment, .start = start, .end = end, .seqs = seqs};
  glyd_match_tree_find(&p->tree, segment, start, end, p->matches, MATCHES, p->at);
  unsigned passes = 2;
  if (!p->begun) {
    first_counts(segment + start, end - start, &p->counts);
    passes = 3;
  } else if (!p->near) {
    memcpy(p->counts.offsets + GLYD_CODED_OFFSET_CODES, p->near_counts, sizeof p->near_counts);
  }
  p->begun = p->near = 1;
  size_t n = 0;
  for (unsigned pass = 0; pass < passes; pass++) {
    w.last = pass + 1 == passes;
    make_prices(&p->counts, &p->prices);
    if (!p->near) forbid_near(&p->prices);
#if defined(__x86_64__)
    if (p->cpu & GLYD_CPU_AVX2)
      n = parse_bmi2(p, &w, repeat);
    else
#endif
      n = parse_plain(p, &w, repeat);
    const uint64_t saved = count_parse(p, segment + start, end - start, seqs, n, repeat, &p->counts);
    if (p->near && pass + 2 == passes && saved < w.bits / NEAR_PART) { /* they take longer to read */
      p->near = 0;
      memcpy(p->near_counts, p->counts.offsets + GLYD_CODED_OFFSET_CODES, sizeof p->near_counts);
      forbid_near(&p->prices);
      count_parse(p, segment + start, end - start, seqs, n, repeat, &p->counts);
    }
  }
  return n;
}

const glyd_coded_offset_prices *glyd_coded_parse_offset_prices(const glyd_coded_parser *p) {
  return &p->prices.offsets;
}
