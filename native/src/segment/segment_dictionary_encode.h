/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing the payload of a segment that is stored with a dictionary.
 */
#ifndef GLYD_SEGMENT_DICTIONARY_ENCODE_H
#define GLYD_SEGMENT_DICTIONARY_ENCODE_H

#include "block/block_common.h"
#include "glyd/dictionary.h"

/* Bytes of workspace, aligned to 64, for segments of at most config->segment_size
 * bytes. cold: a model is tried, beside blocks of config. */
uint64_t glyd_segment_dictionary_encode_workspace(const glyd_lz_config *config, const glyd_dictionary *dictionary,
                                                  int cold);

/* Encode in[0..len), 1 to config->segment_size bytes, into out[0..cap).
 * GLYD_E_BUFFER: it takes more than cap. With cold: PARAMETER for more content
 * than a model is for, GLYD_SEGMENT_DICTIONARY_FIRST bytes. */
glyd_status glyd_segment_dictionary_encode(const glyd_lz_config *config, uint8_t *workspace,
                                           const glyd_dictionary *dictionary, int cold, const uint8_t *in, size_t len,
                                           uint8_t *out, size_t cap, size_t *out_len);

#endif
