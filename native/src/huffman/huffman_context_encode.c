/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "huffman/huffman_context_encode.h"

#include "bitstream/bit_writer.h"
#include "huffman/huffman_code_encode.h"

#define ROUNDS 6u       /* of dealing out contexts to clusters */
#define ROUNDS_AFTER 2u /* once they are few */
#define GAIN_SHIFT \
  5u /* contexts must save this part of a plane, and GAIN_LEAST bytes: they read at a third of the speed */
#define GAIN_LEAST 12u
#define KEPT_BITS 128u /* a new table must save so many: it takes time to read */

static size_t chunk_of(size_t n) { return (n + GLYD_HUFFMAN_STREAMS - 1) / GLYD_HUFFMAN_STREAMS; }

/* Context of symbol i; the first of a stream has none before it. */
GLYD_INLINE uint8_t context_of(const uint8_t *in, const uint8_t *contexts, size_t i, size_t chunk) {
  return contexts ? contexts[i] : i % chunk == 0 ? 0 : in[i - 1];
}

static void count_contexts(glyd_context_work *w, const uint8_t *in, const uint8_t *contexts, size_t n) {
  memset(w->counts, 0, sizeof w->counts);
  const size_t chunk = chunk_of(n);
  if (contexts != NULL) {
    for (size_t i = 0; i < n; i++) w->counts[contexts[i]][in[i]]++;
    return;
  }
  for (size_t at = 0; at < n; at += chunk) {
    const size_t end = at + chunk < n ? at + chunk : n;
    w->counts[0][in[at]]++;
    for (size_t i = at + 1; i < end; i++) w->counts[in[i - 1]][in[i]]++;
  }
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
static void deal(glyd_context_work *w, unsigned n, uint8_t map[256]) {
  for (unsigned k = 0; k < n; k++) glyd_huffman_price_symbols(w->sums[k], w->prices[k]);
  memset(w->sums, 0, sizeof w->sums);
  for (unsigned c = 0; c < 256; c++) {
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
static void move_last(glyd_context_work *w, unsigned k, unsigned n, uint8_t map[256]) {
  memcpy(w->sums[k], w->sums[n - 1], sizeof w->sums[k]);
  for (unsigned c = 0; c < 256; c++)
    if (map[c] == n - 1) map[c] = (uint8_t)k;
}

static void price_joined(glyd_context_work *w, unsigned i, unsigned j) {
  uint32_t sum[256];
  for (unsigned s = 0; s < 256; s++) sum[s] = w->sums[i][s] + w->sums[j][s];
  w->joined[i][j] = w->joined[j][i] = cost_of(sum);
}

/* Join clusters while there are more than most, or that saves more bits for tables
 * than it costs. Returns how many are left. */
static unsigned join(glyd_context_work *w, unsigned n, unsigned most, uint8_t map[256]) {
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
    for (unsigned c = 0; c < 256; c++)
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
static unsigned cluster(glyd_context_work *w, unsigned most, uint8_t map[256]) {
  unsigned n_contexts = 0, n = 0;
  for (unsigned c = 0; c < 256; c++) {
    w->totals[c] = 0;
    for (unsigned s = 0; s < 256; s++) w->totals[c] += w->counts[c][s];
    n_contexts += w->totals[c] != 0;
  }
  uint8_t taken[256] = {0};
  for (; n < GLYD_CONTEXTS_CLUSTERS && n < n_contexts; n++) { /* the most frequent ones to begin with */
    unsigned best = 256;
    for (unsigned c = 0; c < 256; c++)
      if (!taken[c] && w->totals[c] != 0 && (best == 256 || w->totals[c] > w->totals[best])) best = c;
    taken[best] = 1;
    memcpy(w->sums[n], w->counts[best], sizeof w->sums[n]);
  }
  memset(map, 0, 256);
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
static uint8_t *put_tables(uint8_t *out, const glyd_context_work *w, int external, glyd_huffman_context_codes *c) {
  uint8_t *const singles = out + 1, some[256] = {0};
  *out = (uint8_t)c->tables;
  *singles = 0;
  out += 2;
  for (unsigned k = 0; k < c->tables; k++) out = put_table(out, w->sums[k], k, singles, NULL, &c->code[k], some);
  glyd_bit_writer bits;
  glyd_bit_writer_init(&bits, out);
  const unsigned width = bits_for(c->tables);
  for (unsigned s = 0; s < 256; s++)
    if (external ? s < GLYD_CONTEXTS_GIVEN : s == 0 || some[s]) glyd_bit_writer_put(&bits, c->map[s], width);
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
  for (unsigned c = 0; c < 256; c++) bits += bits_of(w->counts[c], &codes->code[codes->map[c]]);
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
  for (unsigned c = 0; c < 256; c++)
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

static uint8_t *put_streams(uint8_t *out, const uint8_t *in, const uint8_t *contexts, size_t n,
                            const glyd_huffman_context_codes *codes) {
  uint8_t *const sizes = out;
  const size_t chunk = chunk_of(n);
  out += GLYD_HUFFMAN_SIZES_BYTES;
  for (size_t j = 0; j < GLYD_HUFFMAN_STREAMS; j++) {
    const size_t end = (j + 1) * chunk < n ? (j + 1) * chunk : n;
    glyd_bit_writer w;
    glyd_bit_writer_init(&w, out);
    for (size_t i = j * chunk; i < end; i++) {
      const glyd_huffman_code *const code = &codes->code[codes->map[context_of(in, contexts, i, chunk)]];
      glyd_bit_writer_put(&w, code->code[in[i]], code->length[in[i]]);
    }
    uint8_t *const stop = glyd_bit_writer_end(&w);
    if (j < GLYD_HUFFMAN_STREAMS - 1) glyd_store16(sizes + 2 * j, (uint16_t)(stop - out));
    out = stop;
  }
  return out;
}

uint8_t *glyd_huffman_encode_fine_plane(unsigned cpu, uint8_t *out, const uint8_t *in, size_t n,
                                        const uint8_t *contexts, unsigned most, glyd_huffman_code *last,
                                        glyd_huffman_context_codes *last_contexts, glyd_context_work *w) {
  const glyd_huffman_code before = *last;
  uint8_t *const plain = glyd_huffman_encode_plane_headed(cpu, out, in, n, NULL, last, 5, GLYD_PLANE_FINE_BITS);
  if (n < GLYD_CONTEXTS_FROM) return plain;
  const size_t size = (size_t)(plain - out);
  if (size < 8) return plain; /* one byte repeated */
  count_contexts(w, in, contexts, n);
  w->fresh.tables = cluster(w, most, w->fresh.map);
  uint8_t tables[GLYD_CONTEXTS_TABLES_MAX * GLYD_HUFFMAN_LENGTHS_BUFFER + 128], changes[sizeof tables];
  size_t own_size = (size_t)(put_tables(tables, w, contexts != NULL, &w->fresh) - tables), changes_size = 0;
  const uint64_t own = bits_in(w, &w->fresh) / 8 + own_size;
  uint64_t changed = UINT64_MAX;
  if (last_contexts->tables != 0) {
    changes_size = (size_t)(put_changes(changes, w, last_contexts, &changed) - changes);
    changed = changed / 8 + changes_size;
  }
  const int fresh = own < changed;
  const uint64_t streams = (fresh ? own : changed) + GLYD_HUFFMAN_SIZES_BYTES + GLYD_HUFFMAN_STREAMS + 3;
  if (streams + (size >> GAIN_SHIFT) + GAIN_LEAST >= size) return plain;
  *last = before;
  const unsigned mode = fresh             ? GLYD_PLANE_CONTEXTS
                        : changes[0] != 0 ? GLYD_PLANE_CHANGED_CONTEXTS
                                          : GLYD_PLANE_LAST_CONTEXTS;
  out = glyd_put_varint(out, n << GLYD_PLANE_FINE_BITS | mode);
  if (mode != GLYD_PLANE_LAST_CONTEXTS) {
    const size_t written = fresh ? own_size : changes_size;
    memcpy(out, fresh ? tables : changes, written);
    out += written;
    *last_contexts = fresh ? w->fresh : w->changed;
  }
  return put_streams(out, in, contexts, n, last_contexts);
}
