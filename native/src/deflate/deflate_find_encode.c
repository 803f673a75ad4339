/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "deflate/deflate_find_encode.h"

#include "deflate/deflate_common.h"

#define GZIP_HEADER 10u
#define ZIP_HEADER 30u
#define PNG_SIGNATURE 8u
#define PNG_CHUNK 12u      /* size, name and check */
#define PNG_CHUNKS_MAX 64u /* before the first with data */

/* Big-endian. */
static uint32_t load_big32(const uint8_t *p) { return __builtin_bswap32(glyd_load32(p)); }

/* Is this a header of RFC 1950, of a stream without a dictionary? */
static int is_zlib(const uint8_t *p) {
  return (p[0] & 15) == 8 && p[0] >> 4 <= 7 && ((unsigned)p[0] << 8 | p[1]) % 31 == 0 && (p[1] & 0x20) == 0;
}

static unsigned zlib_window(uint8_t first) {
  const unsigned log = 8u + (first >> 4);
  return log < 9 ? 9 : log;
}

/* Where the stream of a gzip member begins, or 0. */
static size_t gzip_stream(const uint8_t *in, size_t len, size_t at) {
  if (len - at < GZIP_HEADER + 2 || in[at + 1] != 0x8B || in[at + 2] != 8 || in[at + 3] >> 5) return 0;
  const unsigned flags = in[at + 3];
  at += GZIP_HEADER;
  if (flags & 4) {
    const size_t size = glyd_load16(in + at);
    at += 2;
    if (size > len - at) return 0;
    at += size;
  }
  for (unsigned flag = 8; flag <= 16; flag *= 2) {
    if (!(flags & flag)) continue;
    const uint8_t *const end = at < len ? memchr(in + at, 0, len - at) : NULL;
    if (!end) return 0;
    at = (size_t)(end - in) + 1;
  }
  if (flags & 2) at += 2;
  return at < len ? at : 0;
}

static size_t zip_stream(const uint8_t *in, size_t len, size_t at) {
  if (len - at < ZIP_HEADER || glyd_load32(in + at) != 0x04034B50) return 0;
  if (glyd_load16(in + at + 8) != 8 || (in[at + 6] & 1)) return 0;
  at += ZIP_HEADER + glyd_load16(in + at + 26) + glyd_load16(in + at + 28);
  return at < len ? at : 0;
}

/* Where the stream of an image begins, in its first chunk with data and after the header of zlib; or 0. */
static size_t png_stream(const uint8_t *in, size_t len, size_t at) {
  static const uint8_t signature[PNG_SIGNATURE] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  if (len - at < PNG_SIGNATURE || memcmp(in + at, signature, sizeof signature) != 0) return 0;
  at += PNG_SIGNATURE;
  for (unsigned i = 0; i < PNG_CHUNKS_MAX; i++) {
    if (len - at < PNG_CHUNK + 2) return 0;
    const uint32_t size = load_big32(in + at);
    if (memcmp(in + at + 4, "IDAT", 4) == 0) return size > 2 && is_zlib(in + at + 8) ? at + 10 : 0;
    if (size > len - at - PNG_CHUNK) return 0;
    at += size + PNG_CHUNK;
  }
  return 0;
}

glyd_deflate_place glyd_deflate_find(const uint8_t *in, size_t len, size_t from) {
  for (size_t i = from; i + 2 < len; i++) {
    const uint8_t byte = in[i];
    size_t at = 0;
    if (byte == 0x1F) {
      if ((at = gzip_stream(in, len, i))) return (glyd_deflate_place){GLYD_FOUND_GZIP, at, 15};
    } else if (byte == 'P') {
      if ((at = zip_stream(in, len, i))) return (glyd_deflate_place){GLYD_FOUND_ZIP, at, 15};
    } else if (byte == 0x89) {
      if ((at = png_stream(in, len, i))) return (glyd_deflate_place){GLYD_FOUND_PNG, at, zlib_window(in[at - 2])};
    }
    if ((byte & 15) == 8 && is_zlib(in + i)) return (glyd_deflate_place){GLYD_FOUND_ZLIB, i + 2, zlib_window(byte)};
  }
  return (glyd_deflate_place){GLYD_FOUND_NONE, len, 15};
}

size_t glyd_deflate_find_gather(const uint8_t *in, size_t len, size_t at, uint8_t *out, size_t cap, uint32_t *sizes,
                                uint32_t n_sizes, uint32_t *n) {
  size_t total = 0;
  uint32_t size = load_big32(in + at - 10) - 2; /* of the first chunk, whose first two bytes were read */
  *n = 0;
  for (;;) {
    const size_t left = len - at, part = size < left ? size : left;
    if (part > cap - total) return total;
    memcpy(out + total, in + at, part);
    total += part;
    at += part;
    if (part < size || *n == n_sizes || len - at < PNG_CHUNK + 4 || memcmp(in + at + 8, "IDAT", 4) != 0) return total;
    sizes[(*n)++] = size;
    size = load_big32(in + at + 4);
    at += PNG_CHUNK;
  }
}

uint32_t glyd_deflate_find_check(const uint8_t *content, size_t n) {
  uint32_t a = 1, b = 0;
  while (n > 0) {
    const size_t part = n < 5552 ? n : 5552; /* as many as 32 bits have room for */
    for (size_t i = 0; i < part; i++) b += a += content[i];
    a %= 65521;
    b %= 65521;
    content += part;
    n -= part;
  }
  return b << 16 | a;
}
