/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "huffman/huffman_context_encode.h"

#include "bitstream/bit_writer.h"
#include "huffman/huffman_code_encode.h"

#define ROUNDS 6u       /* of dealing out contexts to clusters */
#define ROUNDS_AFTER 2u /* once they are few */
/* Contexts must save this part of a plane, and GAIN_LEAST bytes: they read at a third of
 * the speed. Those that are given for some bytes must save the same part once more. */
#define GAIN_SHIFT 5u
#define GAIN_LEAST 12u
#define KEPT_BITS 128u /* a new table must save so many: it takes time to read */

static size_t chunk_of(size_t n) { return (n + GLYD_HUFFMAN_STREAMS - 1) / GLYD_HUFFMAN_STREAMS; }

/* A plane, and where its contexts come from. */
typedef struct plane {
  const uint8_t *in, *contexts;
  size_t n, chunk;
  int how;
} plane;

/* Context of symbol i, which is at `at` of its stream; the first has none before it. */
GLYD_INLINE unsigned context_of(const plane *p, size_t i, size_t at) {
  if (p->how == GLYD_CONTEXTS_ARE_GIVEN) return p->contexts[i];
  if (p->how == GLYD_CONTEXTS_ARE_MIXED && p->contexts[i] != 0) return GLYD_CONTEXTS_SOME + p->contexts[i];
  return at == 0 ? 0 : p->in[i - 1];
}

static void count_contexts(glyd_context_work *w, const plane *p) {
  memset(w->counts, 0, sizeof w->counts);
  for (size_t from = 0; from < p->n; from += p->chunk)
    for (size_t at = 0; at < p->chunk && from + at < p->n; at++)
      w->counts[context_of(p, from + at, at)][p->in[from + at]]++;
}

/* Bits, in 1/256, of symbols with these counts in a code of their own, and of
 * that code: about three a symbol. */
static uint64_t cost_of(const uint32_t counts[256]) {
  uint32_t total = 0, used = 0;
  uint64_t sum = 0;
  for (unsigned s = 0; s < 256; s++) {
    if (counts[s] == 0) continue;
    total += counts[s];
    used++;
    sum += (uint64_t)counts[s] * glyd_huffman_log2_256(counts[s]);
  }
  if (used == 0) return 0;
  return (uint64_t)total * glyd_huffman_log2_256(total) - sum + (3 * used + 24) * 256;
}

/* Deal the contexts out to n clusters, each to the one in whose code it takes the
 * fewest bits: w->sums of before, then of after, and the map. */
static void deal(glyd_context_work *w, unsigned n, uint8_t map[GLYD_CONTEXTS_MAX]) {
  for (unsigned k = 0; k < n; k++) glyd_huffman_price_symbols(w->sums[k], w->prices[k]);
  memset(w->sums, 0, sizeof w->sums);
  for (unsigned c = 0; c < GLYD_CONTEXTS_MAX; c++) {
    if (w->totals[c] == 0) continue;
    uint8_t used[256];
    unsigned n_used = 0;
    for (unsigned s = 0; s < 256; s++) {
      used[n_used] = (uint8_t)s;
      n_used += w->counts[c][s] != 0;
    }
    uint64_t least = UINT64_MAX;
    for (unsigned k = 0; k < n; k++) {
      uint64_t price = 0;
      for (unsigned i = 0; i < n_used; i++) price += (uint64_t)w->counts[c][used[i]] * w->prices[k][used[i]];
      if (price < least) {
        least = price;
        map[c] = (uint8_t)k;
      }
    }
    for (unsigned i = 0; i < n_used; i++) w->sums[map[c]][used[i]] += w->counts[c][used[i]];
  }
}

/* The last of n clusters becomes number k. */
static void move_last(glyd_context_work *w, unsigned k, unsigned n, uint8_t map[GLYD_CONTEXTS_MAX]) {
  memcpy(w->sums[k], w->sums[n - 1], sizeof w->sums[k]);
  for (unsigned c = 0; c < GLYD_CONTEXTS_MAX; c++)
    if (map[c] == n - 1) map[c] = (uint8_t)k;
}

static void price_joined(glyd_context_work *w, unsigned i, unsigned j) {
  uint32_t sum[256];
  for (unsigned s = 0; s < 256; s++) sum[s] = w->sums[i][s] + w->sums[j][s];
  w->joined[i][j] = w->joined[j][i] = cost_of(sum);
}

/* Join clusters while there are more than most, or that saves more bits for tables
 * than it costs. Returns how many are left. */
static unsigned join(glyd_context_work *w, unsigned n, unsigned most, uint8_t map[GLYD_CONTEXTS_MAX]) {
  for (unsigned i = 0; i < n; i++) {
    w->joined[i][i] = cost_of(w->sums[i]);
    for (unsigned j = i + 1; j < n; j++) price_joined(w, i, j);
  }
  for (;;) {
    int64_t saved = n > most ? INT64_MIN : 0;
    unsigned a = 0, b = 0;
    for (unsigned i = 0; i < n; i++)
      for (unsigned j = i + 1; j < n; j++) {
        const int64_t saves = (int64_t)(w->joined[i][i] + w->joined[j][j] - w->joined[i][j]);
        if (saves < saved) continue;
        saved = saves;
        a = i;
        b = j;
      }
    if (a == b) return n;
    for (unsigned s = 0; s < 256; s++) w->sums[a][s] += w->sums[b][s];
    for (unsigned c = 0; c < GLYD_CONTEXTS_MAX; c++)
      if (map[c] == b) map[c] = (uint8_t)a;
    w->joined[a][a] = w->joined[a][b];
    move_last(w, b, n, map);
    n--;
    for (unsigned k = 0; k < n; k++)
      if (k != b) w->joined[b][k] = w->joined[k][b] = w->joined[n][k];
    w->joined[b][b] = w->joined[n][n];
    for (unsigned k = 0; k < n; k++)
      if (k != a) price_joined(w, a, k);
  }
}

/* Deal the contexts out to at most so many clusters of like counts: w->sums, and
 * the map. Returns their number. */
static unsigned cluster(glyd_context_work *w, unsigned most, uint8_t map[GLYD_CONTEXTS_MAX]) {
  unsigned n_contexts = 0, n = 0;
  for (unsigned c = 0; c < GLYD_CONTEXTS_MAX; c++) {
    w->totals[c] = 0;
    for (unsigned s = 0; s < 256; s++) w->totals[c] += w->counts[c][s];
    n_contexts += w->totals[c] != 0;
  }
  uint8_t taken[GLYD_CONTEXTS_MAX] = {0};
  for (; n < GLYD_CONTEXTS_CLUSTERS && n < n_contexts; n++) { /* the most frequent ones to begin with */
    unsigned best = GLYD_CONTEXTS_MAX;
    for (unsigned c = 0; c < GLYD_CONTEXTS_MAX; c++)
      if (!taken[c] && w->totals[c] != 0 && (best == GLYD_CONTEXTS_MAX || w->totals[c] > w->totals[best])) best = c;
    taken[best] = 1;
    memcpy(w->sums[n], w->counts[best], sizeof w->sums[n]);
  }
  memset(map, 0, GLYD_CONTEXTS_MAX);
  for (unsigned round = 0; round < ROUNDS; round++) deal(w, n, map);
  n = join(w, n, most, map);
  for (unsigned round = 0; round < ROUNDS_AFTER; round++) deal(w, n, map);
  for (unsigned k = n; k-- > 0;) { /* none may be empty */
    uint32_t total = 0;
    for (unsigned s = 0; s < 256; s++) total += w->sums[k][s];
    if (total == 0) move_last(w, k, n--, map);
  }
  return n;
}

static unsigned bits_for(unsigned tables) {
  unsigned bits = 0;
  while (1u << bits < tables) bits++;
  return bits;
}

/* Make the code of these counts and write its table, as differences from the code
 * before if there is one; marks its symbols in some. */
static uint8_t *put_table(uint8_t *out, const uint32_t counts[256], unsigned k, uint8_t *singles,
                          const glyd_huffman_code *last, glyd_huffman_code *code, uint8_t some[256]) {
  unsigned used = 0, symbol = 0;
  for (unsigned s = 0; s < 256; s++)
    if (counts[s] != 0) {
      symbol = s;
      used++;
      some[s] = 1;
    }
  memset(code->length, 0, sizeof code->length);
  if (used == 1) {
    *singles |= (uint8_t)(1u << k);
    *out++ = (uint8_t)symbol;
    code->code[symbol] = 0;
    code->valid = 2 + (int)symbol; /* its only symbol has no bits */
    return out;
  }
  glyd_huffman_make_lengths(counts, code->length);
  glyd_huffman_make_codes(code->length, code->code);
  code->valid = 1;
  if (last != NULL && last->valid == 1) return glyd_huffman_put_differences(out, last->length, code->length);
  return glyd_huffman_put_lengths(out, code->length);
}

/* Make codes of the clusters, write tables and map; returns the end. */
static uint8_t *put_tables(uint8_t *out, const glyd_context_work *w, int how, glyd_huffman_context_codes *c) {
  uint8_t *const singles = out + 1, some[256] = {0};
  c->mixed = how == GLYD_CONTEXTS_ARE_MIXED;
  *out = (uint8_t)(c->tables | (c->mixed ? GLYD_CONTEXTS_SOME_FLAG : 0));
  *singles = 0;
  out += 2;
  for (unsigned k = 0; k < c->tables; k++) out = put_table(out, w->sums[k], k, singles, NULL, &c->code[k], some);
  glyd_bit_writer bits;
  glyd_bit_writer_init(&bits, out);
  const unsigned width = bits_for(c->tables);
  for (unsigned s = 0; s < 256; s++)
    if (how == GLYD_CONTEXTS_ARE_GIVEN ? s < GLYD_CONTEXTS_GIVEN : s == 0 || some[s])
      glyd_bit_writer_put(&bits, c->map[s], width);
  for (unsigned s = 0; c->mixed && s < 256; s++)
    if (GLYD_CONTEXTS_LISTED(s)) glyd_bit_writer_put(&bits, c->map[GLYD_CONTEXTS_SOME + s], width);
  return glyd_bit_writer_end(&bits);
}

/* Bits of symbols with these counts in a code; UINT64_MAX where one has none. */
static uint64_t bits_of(const uint32_t counts[256], const glyd_huffman_code *code) {
  uint64_t bits = 0;
  for (unsigned s = 0; s < 256; s++) {
    if (counts[s] == 0) continue;
    if (code->length[s] == 0 && code->valid != 2 + (int)s) return UINT64_MAX;
    bits += (uint64_t)counts[s] * code->length[s];
  }
  return bits;
}

/* Bits of all symbols in these codes. */
static uint64_t bits_in(const glyd_context_work *w, const glyd_huffman_context_codes *codes) {
  uint64_t bits = 0;
  for (unsigned c = 0; c < GLYD_CONTEXTS_MAX; c++) bits += bits_of(w->counts[c], &codes->code[codes->map[c]]);
  return bits;
}

/* Codes by the last map, some of them new: those that save bits. Writes what
 * changed, and returns the end of that; *bits: of all symbols. */
static uint8_t *put_changes(uint8_t *out, glyd_context_work *w, const glyd_huffman_context_codes *last,
                            uint64_t *bits) {
  glyd_huffman_context_codes *const codes = &w->changed;
  uint8_t *const changed = out, *const singles = out + 1, some[256];
  *codes = *last;
  *changed = *singles = 0;
  out += 2;
  *bits = 0;
  memset(w->sums, 0, sizeof w->sums);
  for (unsigned c = 0; c < GLYD_CONTEXTS_MAX; c++)
    for (unsigned s = 0; s < 256; s++) w->sums[last->map[c]][s] += w->counts[c][s];
  for (unsigned k = 0; k < last->tables; k++) {
    uint64_t kept = bits_of(w->sums[k], &last->code[k]);
    if (kept == 0) continue;
    const uint8_t before = *singles;
    uint8_t *const end = put_table(out, w->sums[k], k, singles, &last->code[k], &codes->code[k], some);
    const uint64_t fresh = bits_of(w->sums[k], &codes->code[k]);
    if (kept <= fresh + 8 * (uint64_t)(end - out) + KEPT_BITS) {
      codes->code[k] = last->code[k];
      *singles = before;
      *bits += kept;
    } else {
      *changed |= (uint8_t)(1u << k);
      *bits += fresh;
      out = end;
    }
  }
  return out;
}

static uint8_t *put_streams(uint8_t *out, const plane *p, const glyd_huffman_context_codes *codes) {
  uint8_t *const sizes = out;
  out += GLYD_HUFFMAN_SIZES_BYTES;
  for (size_t j = 0; j < GLYD_HUFFMAN_STREAMS; j++) {
    const size_t from = j * p->chunk;
    glyd_bit_writer w;
    glyd_bit_writer_init(&w, out);
    for (size_t at = 0; at < p->chunk && from + at < p->n; at++) {
      const uint8_t symbol = p->in[from + at];
      const glyd_huffman_code *const code = &codes->code[codes->map[context_of(p, from + at, at)]];
      glyd_bit_writer_put(&w, code->code[symbol], code->length[symbol]);
    }
    uint8_t *const stop = glyd_bit_writer_end(&w);
    if (j < GLYD_HUFFMAN_STREAMS - 1) glyd_store16(sizes + 2 * j, (uint16_t)(stop - out));
    out = stop;
  }
  return out;
}

#define TABLES_BUFFER (GLYD_CONTEXTS_TABLES_MAX * GLYD_HUFFMAN_LENGTHS_BUFFER + 192)

/* The cheapest way to write a plane with contexts. */
typedef struct choice {
  uint64_t bytes; /* without sizes of streams, with a price for what takes time to read */
  plane plane;
  unsigned mode;
  size_t written; /* of tables */
  uint8_t tables[TABLES_BUFFER];
} choice;

/* By tables of its own, w->best, or those before with some changes, w->changed. */
static void consider(glyd_context_work *w, const plane *p, unsigned most, const glyd_huffman_context_codes *last,
                     uint64_t price, choice *best) {
  uint8_t tables[TABLES_BUFFER];
  count_contexts(w, p);
  w->fresh.tables = cluster(w, most, w->fresh.map);
  size_t written = (size_t)(put_tables(tables, w, p->how, &w->fresh) - tables);
  const uint64_t own = bits_in(w, &w->fresh) / 8 + written + price;
  if (own < best->bytes) {
    best->bytes = own;
    best->plane = *p;
    best->mode = GLYD_PLANE_CONTEXTS;
    best->written = written;
    memcpy(best->tables, tables, written);
    w->best = w->fresh;
  }
  if (last->tables == 0 || last->mixed != (p->how == GLYD_CONTEXTS_ARE_MIXED)) return;
  uint64_t bits;
  written = (size_t)(put_changes(tables, w, last, &bits) - tables);
  if (bits / 8 + written + price > best->bytes) return;
  best->bytes = bits / 8 + written + price;
  best->plane = *p;
  best->mode = tables[0] != 0 ? GLYD_PLANE_CHANGED_CONTEXTS : GLYD_PLANE_LAST_CONTEXTS;
  best->written = tables[0] != 0 ? written : 0;
  memcpy(best->tables, tables, written);
}

uint8_t *glyd_huffman_encode_fine_plane(unsigned cpu, uint8_t *out, const uint8_t *in, size_t n, int how,
                                        const uint8_t *contexts, uint64_t price, unsigned most, glyd_huffman_code *last,
                                        glyd_huffman_context_codes *last_contexts, glyd_context_work *w) {
  const glyd_huffman_code before = *last;
  uint8_t *const plain = glyd_huffman_encode_plane_headed(cpu, out, in, n, NULL, last, 5, GLYD_PLANE_FINE_BITS);
  if (n < GLYD_CONTEXTS_FROM) return plain;
  const size_t size = (size_t)(plain - out);
  if (size < 8) return plain; /* one byte repeated */
  choice best;
  best.bytes = UINT64_MAX;
  plane p = {in, contexts, n, chunk_of(n), how == GLYD_CONTEXTS_ARE_MIXED ? GLYD_CONTEXTS_ARE_BEFORE : how};
  consider(w, &p, most, last_contexts, (size >> GAIN_SHIFT) + GAIN_LEAST, &best);
  if (how == GLYD_CONTEXTS_ARE_MIXED) {
    p.how = how;
    consider(w, &p, most, last_contexts, 2 * (size >> GAIN_SHIFT) + GAIN_LEAST + price, &best);
  }
  const uint64_t streams = best.bytes + GLYD_HUFFMAN_SIZES_BYTES + GLYD_HUFFMAN_STREAMS + 3;
  if (streams >= size) return plain;
  *last = before;
  out = glyd_put_varint(out, n << GLYD_PLANE_FINE_BITS | best.mode);
  memcpy(out, best.tables, best.written);
  if (best.mode == GLYD_PLANE_CONTEXTS) *last_contexts = w->best;
  if (best.mode == GLYD_PLANE_CHANGED_CONTEXTS) *last_contexts = w->changed;
  return put_streams(out + best.written, &best.plane, last_contexts);
}
