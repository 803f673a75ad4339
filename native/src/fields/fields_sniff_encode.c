/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * First bytes of models. Whatever follows them, the content comes back byte for
 * byte: a wrong guess costs a little time.
 */
#include "common/mem.h"
#include "fields/fields_choose_encode.h"

#define SAFETENSORS_HEADER_MAX ((uint64_t)1 << 29)

static int ends_with(const uint8_t *name, size_t len, const char *end) {
  const size_t n = strlen(end);
  return len >= n && memcmp(name + len - n, end, n) == 0;
}

/* A zip whose first entry is stored and one of those that models begin with. */
static int is_model_zip(const uint8_t *in, size_t len) {
  enum { METHOD = 8, NAME_SIZE = 26, NAME = 30 }; /* of the local header */
  if (len < NAME || memcmp(in, "PK\x03\x04", 4) != 0 || glyd_load16(in + METHOD) != 0) return 0;
  const size_t size = glyd_load16(in + NAME_SIZE);
  if (size > len - NAME) return 0;
  const uint8_t *name = in + NAME;
  return ends_with(name, size, "/data.pkl") || ends_with(name, size, "/version") || ends_with(name, size, ".npy");
}

uint64_t glyd_fields_safetensors_data(const uint8_t *in, size_t len) {
  if (len < 10 || in[8] != '{' || (in[9] != '"' && in[9] != ' ' && in[9] != '}')) return 0;
  const uint64_t size = glyd_load64(in);
  return size >= 2 && size <= SAFETENSORS_HEADER_MAX ? 8 + size : 0;
}

int glyd_fields_sniff(const uint8_t *in, size_t len) {
  static const uint8_t torch_pickle[] = {0x80, 0x02, 0x8A, 0x0A, 0x6C, 0xFC, 0x9C,
                                         0x46, 0xF9, 0x20, 0x6A, 0xA8, 0x50, 0x19};
  if (len > GLYD_FIELDS_SNIFF_MAX) len = GLYD_FIELDS_SNIFF_MAX;
  if (glyd_fields_safetensors_data(in, len) != 0) return 1;
  if (len >= 8 && memcmp(in, "GGUF", 4) == 0 && glyd_load32(in + 4) >= 1 && glyd_load32(in + 4) < 256) return 1;
  if (len >= 8 && memcmp(in, "\x93NUMPY", 6) == 0) return 1;
  if (len >= sizeof torch_pickle && memcmp(in, torch_pickle, sizeof torch_pickle) == 0) return 1;
  return is_model_zip(in, len);
}
