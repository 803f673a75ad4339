/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Sizes of the tables of cold segments: part of the format, as headers state them.
 */
#ifndef GLYD_COLD_MEMORY_H
#define GLYD_COLD_MEMORY_H

#include <stdint.h>

#define GLYD_COLD_TABLES 12u                       /* of contexts that are found by hash */
#define GLYD_COLD_FIXED_MEMORY ((uint64_t)2 << 20) /* whatever does not depend on the content */

/* Log of the bytes of a table of contexts. */
static inline uint32_t glyd_cold_table_log(uint64_t content) {
  uint32_t log = 12;
  while (log < 24 && ((uint64_t)1 << log) < content) log++;
  return log;
}

/* Log of the entries of each of the two tables of matches. */
static inline uint32_t glyd_cold_match_log(uint64_t content) {
  const uint32_t log = glyd_cold_table_log(content) - 2;
  return log < 20 ? log : 20;
}

/* Bytes of workspace, aligned to 64, for content of at most this size. */
static inline uint64_t glyd_cold_memory(uint64_t content) {
  return GLYD_COLD_FIXED_MEMORY + ((uint64_t)8 << glyd_cold_match_log(content)) +
         ((uint64_t)GLYD_COLD_TABLES << glyd_cold_table_log(content));
}

#endif
