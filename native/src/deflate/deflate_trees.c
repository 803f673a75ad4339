/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "deflate/deflate_trees.h"

const uint8_t glyd_deflate_header_order[GLYD_DEFLATE_HEADER_CODES] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                                      11, 4,  12, 3, 13, 2, 14, 1, 15};

#define NODES_MAX (2 * GLYD_DEFLATE_LITLENS + 1)

void glyd_deflate_trees_count(const glyd_deflate_token *tokens, size_t n, glyd_deflate_counts *counts) {
  memset(counts, 0, sizeof *counts);
  unsigned bits;
  uint32_t extra;
  for (size_t i = 0; i < n; i++) {
    if (tokens[i] < 256) {
      counts->litlens[tokens[i]]++;
    } else {
      counts->litlens[glyd_deflate_length_code(tokens[i] >> 16, &bits, &extra)]++;
      counts->distances[glyd_deflate_distance_code(tokens[i] & 0xFFFF, &bits, &extra)]++;
    }
  }
  counts->litlens[GLYD_DEFLATE_END]++;
}

/* A binary heap of nodes; of equal counts the shallower is less. */
typedef struct heap {
  uint32_t count[NODES_MAX];
  uint8_t depth[NODES_MAX];
  uint16_t parent[NODES_MAX];
  uint16_t at[NODES_MAX + 1]; /* the heap is at[1..size] */
  unsigned size;
} heap;

static int less(const heap *h, unsigned a, unsigned b) {
  return h->count[a] < h->count[b] || (h->count[a] == h->count[b] && h->depth[a] <= h->depth[b]);
}

/* Let the node at place k sink. */
static void sink(heap *h, unsigned k) {
  const uint16_t node = h->at[k];
  for (unsigned child = 2 * k; child <= h->size; child = 2 * k) {
    if (child < h->size && less(h, h->at[child + 1], h->at[child])) child++;
    if (less(h, node, h->at[child])) break;
    h->at[k] = h->at[child];
    k = child;
  }
  h->at[k] = node;
}

static unsigned take_least(heap *h) {
  const unsigned node = h->at[1];
  h->at[1] = h->at[h->size--];
  sink(h, 1);
  return node;
}

void glyd_deflate_trees_lengths(const uint32_t *counts, unsigned n, unsigned longest, uint8_t *lengths) {
  heap h;
  uint16_t order[NODES_MAX]; /* nodes as they leave the heap */
  unsigned taken = 0, nodes = n;
  int last = -1;
  h.size = 0;
  for (unsigned i = 0; i < n; i++) {
    lengths[i] = 0;
    h.count[i] = counts[i];
    h.depth[i] = 0;
    if (counts[i] == 0) continue;
    h.at[++h.size] = (uint16_t)i;
    last = (int)i;
  }
  /* A code has two symbols at least. */
  while (h.size < 2) {
    const unsigned node = last < 2 ? (unsigned)++last : 0;
    h.at[++h.size] = (uint16_t)node;
    h.count[node] = 1;
  }
  for (unsigned k = h.size / 2; k > 0; k--) sink(&h, k);
  while (h.size >= 2) {
    const unsigned a = take_least(&h), b = h.at[1];
    order[taken++] = (uint16_t)a;
    order[taken++] = (uint16_t)b;
    h.count[nodes] = h.count[a] + h.count[b];
    h.depth[nodes] = (uint8_t)((h.depth[a] > h.depth[b] ? h.depth[a] : h.depth[b]) + 1);
    h.parent[a] = h.parent[b] = (uint16_t)nodes;
    h.at[1] = (uint16_t)nodes++;
    sink(&h, 1);
  }
  /* From the root down. */
  unsigned depth_of[NODES_MAX], used[GLYD_DEFLATE_CODE_MAX + 2] = {0};
  int overflow = 0;
  depth_of[nodes - 1] = 0;
  for (unsigned i = taken; i-- > 0;) {
    const unsigned node = order[i];
    unsigned bits = depth_of[h.parent[node]] + 1;
    if (bits > longest) {
      bits = longest;
      overflow++;
    }
    depth_of[node] = bits;
    if (node >= n) continue;
    lengths[node] = (uint8_t)bits;
    used[bits]++;
  }
  if (overflow == 0) return;
  for (; overflow > 0; overflow -= 2) {
    unsigned bits = longest - 1;
    while (used[bits] == 0) bits--;
    used[bits]--;
    used[bits + 1] += 2;
    used[longest]--;
  }
  /* The rarest get the longest. */
  unsigned next = 0;
  for (unsigned bits = longest; bits > 0; bits--)
    for (unsigned k = used[bits]; k > 0; next++)
      if (order[next] < n) {
        lengths[order[next]] = (uint8_t)bits;
        k--;
      }
}

void glyd_deflate_trees_codes(const uint8_t *lengths, unsigned n, uint16_t *codes) {
  unsigned used[GLYD_DEFLATE_CODE_MAX + 1] = {0}, next[GLYD_DEFLATE_CODE_MAX + 1];
  for (unsigned i = 0; i < n; i++) used[lengths[i]]++;
  used[0] = 0;
  unsigned code = 0;
  for (unsigned bits = 1; bits <= GLYD_DEFLATE_CODE_MAX; bits++) {
    code = (code + used[bits - 1]) << 1;
    next[bits] = code;
  }
  for (unsigned i = 0; i < n; i++) {
    unsigned turned = 0;
    if (lengths[i] != 0) {
      unsigned v = next[lengths[i]]++;
      for (unsigned k = 0; k < lengths[i]; k++, v >>= 1) turned = turned << 1 | (v & 1);
    }
    codes[i] = (uint16_t)turned;
  }
}

void glyd_deflate_trees_fixed(uint8_t *litlens, uint8_t *distances) {
  for (unsigned i = 0; i < 288; i++) litlens[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  memset(distances, 5, 32);
}

glyd_deflate_item glyd_deflate_trees_item(const uint8_t *lengths, unsigned i, unsigned n) {
  unsigned run = 1;
  while (run < 138 && i + run < n && lengths[i + run] == lengths[i]) run++;
  if (lengths[i] == 0) {
    if (run >= 11) return (glyd_deflate_item){18, (uint8_t)(run - 11)};
    if (run >= 3) return (glyd_deflate_item){17, (uint8_t)(run - 3)};
  } else if (i > 0 && lengths[i - 1] == lengths[i] && run >= 3) {
    return (glyd_deflate_item){16, (uint8_t)((run < 6 ? run : 6) - 3)};
  }
  return (glyd_deflate_item){lengths[i], 0};
}

unsigned glyd_deflate_trees_item_size(glyd_deflate_item item) {
  return item.symbol < 16 ? 1u : (unsigned)item.extra + (item.symbol == 18 ? 11u : 3u);
}

void glyd_deflate_trees_items(glyd_deflate_block *block) {
  unsigned n = 0;
  const unsigned parts[2] = {block->n_litlens, block->n_distances};
  const uint8_t *lengths = block->lengths;
  for (unsigned part = 0; part < 2; part++) {
    for (unsigned i = 0; i < parts[part]; n++) {
      block->items[n] = glyd_deflate_trees_item(lengths, i, parts[part]);
      i += glyd_deflate_trees_item_size(block->items[n]);
    }
    lengths += parts[part];
  }
  block->n_items = n;
}

void glyd_deflate_trees_item_codes(glyd_deflate_block *block) {
  uint32_t counts[GLYD_DEFLATE_HEADER_CODES] = {0};
  for (unsigned i = 0; i < block->n_items; i++) counts[block->items[i].symbol]++;
  glyd_deflate_trees_lengths(counts, GLYD_DEFLATE_HEADER_CODES, GLYD_DEFLATE_HEADER_CODE_MAX, block->header_lengths);
  unsigned n = GLYD_DEFLATE_HEADER_CODES;
  while (n > 4 && block->header_lengths[glyd_deflate_header_order[n - 1]] == 0) n--;
  block->n_header_codes = n;
}

static unsigned used_codes(const uint8_t *lengths, unsigned n, unsigned least) {
  while (n > least && lengths[n - 1] == 0) n--;
  return n;
}

void glyd_deflate_trees_header(const glyd_deflate_counts *counts, glyd_deflate_block *block) {
  uint8_t distances[GLYD_DEFLATE_DISTANCES];
  glyd_deflate_trees_lengths(counts->litlens, GLYD_DEFLATE_LITLENS, GLYD_DEFLATE_CODE_MAX, block->lengths);
  glyd_deflate_trees_lengths(counts->distances, GLYD_DEFLATE_DISTANCES, GLYD_DEFLATE_CODE_MAX, distances);
  block->n_litlens = used_codes(block->lengths, GLYD_DEFLATE_LITLENS, 257);
  block->n_distances = used_codes(distances, GLYD_DEFLATE_DISTANCES, 1);
  memcpy(block->lengths + block->n_litlens, distances, block->n_distances);
  glyd_deflate_trees_items(block);
  glyd_deflate_trees_item_codes(block);
}

unsigned glyd_deflate_trees_type(const glyd_deflate_counts *counts, const glyd_deflate_block *dynamic, uint64_t size) {
  uint8_t fixed_litlens[288], fixed_distances[32];
  glyd_deflate_trees_fixed(fixed_litlens, fixed_distances);
  uint64_t bits = 14 + 3 * (uint64_t)dynamic->n_header_codes, fixed = 0;
  for (unsigned i = 0; i < dynamic->n_items; i++) {
    const unsigned symbol = dynamic->items[i].symbol;
    bits += dynamic->header_lengths[symbol] + glyd_deflate_item_bits(symbol);
  }
  for (unsigned i = 0; i < GLYD_DEFLATE_LITLENS; i++) {
    const unsigned extra = i < 265 || i == 285 ? 0 : (i - 261) / 4;
    if (i < dynamic->n_litlens) bits += (uint64_t)counts->litlens[i] * (dynamic->lengths[i] + extra);
    fixed += (uint64_t)counts->litlens[i] * (fixed_litlens[i] + extra);
  }
  for (unsigned i = 0; i < GLYD_DEFLATE_DISTANCES; i++) {
    const unsigned extra = i < 4 ? 0 : (i - 2) / 2;
    if (i < dynamic->n_distances)
      bits += (uint64_t)counts->distances[i] * (dynamic->lengths[dynamic->n_litlens + i] + extra);
    fixed += (uint64_t)counts->distances[i] * (fixed_distances[i] + extra);
  }
  const uint64_t bytes = (bits + 3 + 7) >> 3, fixed_bytes = (fixed + 3 + 7) >> 3;
  const uint64_t least = fixed_bytes <= bytes ? fixed_bytes : bytes;
  if (size + 4 <= least) return GLYD_DEFLATE_STORED;
  return fixed_bytes <= bytes ? GLYD_DEFLATE_FIXED : GLYD_DEFLATE_DYNAMIC;
}
