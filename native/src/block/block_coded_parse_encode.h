/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Parse of level ultra: of all ways to write a block as literals and matches
 * the one that takes the fewest bits, priced by what the planes of the parse
 * before took.
 */
#ifndef GLYD_BLOCK_CODED_PARSE_ENCODE_H
#define GLYD_BLOCK_CODED_PARSE_ENCODE_H

#include "block/block_coded_common.h"
#include "block/block_coded_price_encode.h"
#include "match/match_tree.h"

typedef struct glyd_coded_parser glyd_coded_parser;

/* Bytes of memory, aligned to 64, for segments of at most segment_size bytes. */
uint64_t glyd_coded_parse_workspace(uint64_t segment_size);

/* Start a segment of len bytes, of which the reader has the first history. */
glyd_coded_parser *glyd_coded_parse_reset(unsigned cpu, void *memory, const uint8_t *segment, size_t history,
                                          size_t len);

/* Parse [start, end), at most GLYD_BLOCK_MAX bytes; blocks come in order. repeat
 * holds the slots at its start. seqs has room for GLYD_CODED_PARSED_MAX.
 * tables: the table of a command by the one before, as in the last block; NULL: they
 * had no contexts there. Returns the number of sequences. */
size_t glyd_coded_parse(glyd_coded_parser *p, const uint8_t *segment, size_t start, size_t end,
                        const uint32_t repeat[GLYD_CODED_REPEATS], const uint8_t *tables, glyd_sequence *seqs);

/* Prices of offsets that the last parse went by. */
const glyd_coded_offset_prices *glyd_coded_parse_offset_prices(const glyd_coded_parser *p);

#endif
