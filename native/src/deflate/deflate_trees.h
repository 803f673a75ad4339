/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Codes as zlib chooses them for a block.
 */
#ifndef GLYD_DEFLATE_TREES_H
#define GLYD_DEFLATE_TREES_H

#include "deflate/deflate_common.h"

typedef struct glyd_deflate_counts {
  uint32_t litlens[GLYD_DEFLATE_LITLENS];
  uint32_t distances[GLYD_DEFLATE_DISTANCES];
} glyd_deflate_counts;

/* What the tokens of a block and its end use. */
void glyd_deflate_trees_count(const glyd_deflate_token *tokens, size_t n, glyd_deflate_counts *counts);

/* Code lengths of n symbols, at most `longest` bits: Huffman's algorithm with a
 * heap, ties by depth, too long codes shortened from the longest on. */
void glyd_deflate_trees_lengths(const uint32_t *counts, unsigned n, unsigned longest, uint8_t *lengths);

/* Codes for lengths, bits in the order in which they are written. */
void glyd_deflate_trees_codes(const uint8_t *lengths, unsigned n, uint16_t *codes);

/* Code lengths of blocks of type fixed. */
void glyd_deflate_trees_fixed(uint8_t *litlens, uint8_t *distances);

/* The item that zlib writes at place i of lengths[0..n): runs are taken as long as they are. */
glyd_deflate_item glyd_deflate_trees_item(const uint8_t *lengths, unsigned i, unsigned n);

/* How many lengths an item stands for. */
unsigned glyd_deflate_trees_item_size(glyd_deflate_item item);

/* The block's type by zlib's rule, given its predicted dynamic header and the bytes of its content. */
unsigned glyd_deflate_trees_type(const glyd_deflate_counts *counts, const glyd_deflate_block *dynamic, uint64_t size);

/* Fill in what zlib would write as the dynamic header. */
void glyd_deflate_trees_header(const glyd_deflate_counts *counts, glyd_deflate_block *block);

/* Items of block->lengths: runs end at the border of the two codes, unless they may cross it. */
void glyd_deflate_trees_items(glyd_deflate_block *block);

/* header_lengths and n_header_codes for the items. */
void glyd_deflate_trees_item_codes(glyd_deflate_block *block);

#endif
