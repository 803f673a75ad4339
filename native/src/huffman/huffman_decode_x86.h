/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The loops over streams for BMI2 and LZCNT; they exist on x86-64 only.
 */
#ifndef GLYD_HUFFMAN_DECODE_X86_H
#define GLYD_HUFFMAN_DECODE_X86_H

#include "huffman/huffman_kernel.h"

#if defined(__x86_64__)
void glyd_huffman_one_bmi2(glyd_huffman_streams *s);
void glyd_huffman_two_bmi2(glyd_huffman_streams *s);
void glyd_huffman_eight_bmi2(glyd_huffman_streams *s);
/* As glyd_huffman_rounds_contexts. */
void glyd_huffman_contexts_bmi2(glyd_context_streams *s);
void glyd_huffman_given_bmi2(glyd_context_streams *s);
void glyd_huffman_mixed_bmi2(glyd_context_streams *s);
#endif

#endif
