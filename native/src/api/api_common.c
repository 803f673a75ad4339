/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Exported functions that neither encode nor decode.
 */
#include "common/checksum.h"
#include "common/cpu.h"
#include "common/mem.h"
#include "glyd/glyd.h"

uint32_t glyd_version(void) { return GLYD_VERSION_MAJOR * 10000 + GLYD_VERSION_MINOR * 100 + GLYD_VERSION_PATCH; }

const char *glyd_status_text(glyd_status status) {
  switch (status) {
  case GLYD_OK: return "success";
  case GLYD_E_MAGIC: return "not a glyd frame";
  case GLYD_E_VERSION: return "format version not known to this library";
  case GLYD_E_FEATURE: return "frame uses a feature not known to this library";
  case GLYD_E_HEADER: return "frame header is damaged";
  case GLYD_E_CORRUPT: return "data is corrupt";
  case GLYD_E_CHECKSUM: return "checksum of the content differs";
  case GLYD_E_TRUNCATED: return "data ends before the frame does";
  case GLYD_E_TRAILING: return "bytes after the last frame are no frame";
  case GLYD_E_BASE_MISSING: return "frame needs a base";
  case GLYD_E_BASE_WRONG: return "base is not the one the frame names";
  case GLYD_E_DICT_MISSING: return "frame needs a dictionary";
  case GLYD_E_DICT_WRONG: return "dictionary is not the one the frame names";
  case GLYD_E_PARAMETER: return "argument outside its range";
  case GLYD_E_LIMIT_OUTPUT: return "content exceeds the output limit";
  case GLYD_E_LIMIT_MEMORY: return "frame exceeds the memory limit";
  case GLYD_E_LIMIT_SEGMENTS: return "frame exceeds the segment limit";
  case GLYD_E_MEMORY: return "out of memory";
  case GLYD_E_STATE: return "call out of order";
  case GLYD_E_BUFFER: return "output buffer too small";
  case GLYD_E_IO: return "input or output failed";
  }
  return "unknown status";
}

const char *glyd_level_name(int level) {
  switch (level) {
  case GLYD_LEVEL_TURBO: return "turbo";
  case GLYD_LEVEL_FAST: return "fast";
  case GLYD_LEVEL_DEFAULT: return "default";
  case GLYD_LEVEL_MAX: return "max";
  case GLYD_LEVEL_HIGH: return "high";
  case GLYD_LEVEL_ULTRA: return "ultra";
  case GLYD_LEVEL_COLD: return "cold";
  default: return NULL;
  }
}

const char *glyd_cpu_variant(void) {
  const unsigned features = glyd_cpu_features();
  if (features & GLYD_CPU_AVX512) return "avx512";
  if (features & GLYD_CPU_AVX2) return "avx2";
  if (features & GLYD_CPU_NEON) return "neon";
  return "scalar";
}

uint64_t glyd_checksum(const void *data, size_t len) { return glyd_checksum_xxh3(glyd_cpu_features(), data, len); }

void glyd_checksum128(const void *data, size_t len, uint8_t hash[16]) {
  const glyd_hash128 h = glyd_checksum_xxh3_128(glyd_cpu_features(), data, len);
  glyd_store64(hash, __builtin_bswap64(h.high));
  glyd_store64(hash + 8, __builtin_bswap64(h.low));
}
