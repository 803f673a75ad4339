/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "huffman/huffman_codes.h"

#include "huffman/huffman_common.h"

void glyd_huffman_make_codes(const uint8_t length[256], uint16_t code[256]) {
  uint32_t of_length[GLYD_HUFFMAN_BITS + 1] = {0}, next[GLYD_HUFFMAN_BITS + 1], c = 0;
  for (unsigned s = 0; s < 256; s++) of_length[length[s]]++;
  of_length[0] = 0;
  next[0] = 0;
  for (unsigned l = 1; l <= GLYD_HUFFMAN_BITS; l++) {
    c = (c + of_length[l - 1]) << 1;
    next[l] = c;
  }
  for (unsigned s = 0; s < 256; s++) {
    unsigned l = length[s];
    if (l == 0) continue;
    uint32_t v = next[l]++; /* its 16 bits in reverse order, and of these the l upper ones */
    v = (v & 0x5555) << 1 | (v >> 1 & 0x5555);
    v = (v & 0x3333) << 2 | (v >> 2 & 0x3333);
    v = (v & 0x0F0F) << 4 | (v >> 4 & 0x0F0F);
    v = (v & 0x00FF) << 8 | v >> 8;
    code[s] = (uint16_t)(v >> (16 - l));
  }
}
