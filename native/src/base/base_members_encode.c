/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "base/base_members_encode.h"

#define NAME_SIZE 100u
#define SIZE_AT 124u
#define SIZE_DIGITS 11u
#define TYPE_AT 156u
#define PREFIX_AT 345u
#define PREFIX_SIZE 155u
#define SHORT_MAX (PREFIX_SIZE + 1 + NAME_SIZE)

/* Bytes before the first one of a value, or size. Most fields end within a few words. */
static size_t size_before(const uint8_t *field, size_t size, uint8_t byte) {
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    const uint64_t v = glyd_load64(field + i) ^ 0x0101010101010101u * byte;
    const uint64_t zero = (v - 0x0101010101010101u) & ~v & 0x8080808080808080u;
    if (zero) return i + glyd_ctz64(zero) / 8; /* the lowest one is exact */
  }
  while (i < size && field[i] != byte) i++;
  return i;
}

/* The path in a header. */
static size_t short_path(const uint8_t *block, uint8_t *path) {
  size_t size = 0;
  if (block[PREFIX_AT] != 0) {
    size = size_before(block + PREFIX_AT, PREFIX_SIZE, 0);
    memcpy(path, block + PREFIX_AT, size);
    path[size++] = '/';
  }
  memcpy(path + size, block, NAME_SIZE);
  return size + size_before(block, NAME_SIZE, 0);
}

/* The path that a block of attributes, or of a long name, has for the member
 * after it; NULL: none. */
static const uint8_t *long_path(const uint8_t *data, uint8_t type, size_t *size) {
  static const uint8_t key[] = {' ', 'p', 'a', 't', 'h', '='};
  const uint8_t *at = data, *const end = data + GLYD_BASE_MEMBER_BLOCK;
  if (type != 'L') {
    while ((at = memchr(at, key[0], (size_t)(end - at))) && (end - at) > (ptrdiff_t)sizeof key &&
           memcmp(at, key, sizeof key) != 0)
      at++;
    if (!at || end - at <= (ptrdiff_t)sizeof key) return NULL;
    at += sizeof key;
  }
  *size = size_before(at, (size_t)(end - at), type == 'L' ? 0 : '\n');
  return at;
}

static void set_path(glyd_base_member *member, const uint8_t *path, size_t size) {
  size_t first = size_before(path, size, '/') + 1;
  if (first > size) first = 0;
  if (size - first > GLYD_BASE_MEMBER_PATH) first = size - GLYD_BASE_MEMBER_PATH;
  member->size = size - first;
  memcpy(member->path, path + first, member->size);
  memset(member->path + member->size, 0, 8);
  uint64_t hash = member->size;
  for (size_t i = 0; i < member->size; i += 8) {
    hash = (hash ^ glyd_load64(member->path + i)) * 0x9E3779B185EBCA87u;
    hash ^= hash >> 29;
  }
  member->hash = hash * 0x9FB21C651E98DF25u;
}

uint64_t glyd_base_member_blocks(const uint8_t *header) {
  uint64_t size = 0;
  for (unsigned i = 0; i < SIZE_DIGITS; i++) {
    const unsigned digit = header[SIZE_AT + i] - (unsigned)'0';
    if (digit > 7) return 0;
    size = size << 3 | digit;
  }
  return (size + GLYD_BASE_MEMBER_BLOCK - 1) & ~(uint64_t)(GLYD_BASE_MEMBER_BLOCK - 1);
}

int glyd_base_member_read(const uint8_t *blocks, glyd_base_member *member) {
  const uint8_t *header = blocks, *path = NULL;
  uint8_t whole[SHORT_MAX];
  size_t size = 0;
  if (!glyd_base_is_member(blocks)) {
    header = blocks + GLYD_BASE_MEMBER_HEADERS - GLYD_BASE_MEMBER_BLOCK;
    if (!glyd_base_is_header(header) || !glyd_base_is_member(header)) return -1;
    path = long_path(blocks + GLYD_BASE_MEMBER_BLOCK, blocks[TYPE_AT], &size);
  }
  if (!path) {
    path = whole;
    size = short_path(header, whole);
  }
  set_path(member, path, size);
  return (int)(header - blocks);
}
