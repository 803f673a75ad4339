/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What the writer of coded blocks and the parse that prices them share.
 */
#ifndef GLYD_BLOCK_CODED_PRICE_ENCODE_H
#define GLYD_BLOCK_CODED_PRICE_ENCODE_H

#include "block/block_coded_common.h"
#include "match/match_common.h"

/* Choose the 15 most frequent match lengths if that saves escapes; returns 1
 * and fills lengths (ascending) if so, or if a fine block needs them. */
int glyd_coded_choose_lengths(const glyd_sequence *seqs, size_t n, int fine, uint8_t lengths[GLYD_CODED_LENGTHS]);

/* Whether a Huffman coded plane of the n low offset bytes is clearly smaller
 * than 8 bits each. */
int glyd_coded_low_bytes_pay(const uint8_t *low, size_t n);

#endif
