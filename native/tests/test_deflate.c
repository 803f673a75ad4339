/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Descriptions of DEFLATE streams: streams that no sensible encoder writes come
 * back bit for bit, damage is refused or gives something else, and nothing is
 * touched beside. Streams of zlib are tested from Python.
 */
#include "codec_test.h"
#include "deflate/deflate_encode.h"
#include "deflate/deflate_find_encode.h"
#include "deflate/deflate_rebuild.h"
#include "deflate/deflate_trees.h"

#define MOST ((size_t)60000)
#define STREAM_MOST (4 * MOST + 4096)

static uint8_t *content, *stream, *description, *inside;
static void *workspace, *reading;

/* Bits of a stream, as they are made here. */
static size_t bits;

static void put(uint32_t v, unsigned n) {
  for (unsigned i = 0; i < n; i++, bits++) {
    CHECK(bits >> 3 < STREAM_MOST);
    if ((bits & 7) == 0) stream[bits >> 3] = 0;
    stream[bits >> 3] |= (uint8_t)((v >> i & 1) << (bits & 7));
  }
}

/* Some tokens from `at` on, chosen without any sense. */
static uint32_t choose_tokens(size_t at, size_t n, glyd_deflate_token *tokens, uint32_t most, size_t *end) {
  uint32_t count = 0;
  while (at < n && count < most) {
    uint32_t best = 0, distance = 0;
    if (test_below(4) != 0)
      for (unsigned i = 0; i < 6; i++) {
        const size_t reach = at < 32768 ? at : 32768;
        const size_t d = 1 + test_below(test_below(2) ? reach < 64 ? reach : 64 : reach);
        uint32_t length = 0;
        while (d <= at && length < 258 && at + length < n && content[at + length] == content[at + length - d]) length++;
        if (length > best) {
          best = length;
          distance = (uint32_t)d;
        }
      }
    if (best >= 3) best = 3 + (uint32_t)test_below(best - 2);
    tokens[count++] = best >= 3 ? best << 16 | distance : content[at];
    at += best >= 3 ? best : 1;
  }
  *end = at;
  return count;
}

static void put_codes(const uint8_t *litlens, unsigned n_litlens, const uint8_t *distances, unsigned n_distances,
                      const glyd_deflate_token *tokens, uint32_t n) {
  uint16_t codes[288], far_codes[32];
  glyd_deflate_trees_codes(litlens, n_litlens, codes);
  glyd_deflate_trees_codes(distances, n_distances, far_codes);
  for (uint32_t i = 0; i < n; i++) {
    if (tokens[i] < 256) {
      put(codes[tokens[i]], litlens[tokens[i]]);
      continue;
    }
    unsigned extra_bits;
    uint32_t extra;
    unsigned code = glyd_deflate_length_code(tokens[i] >> 16, &extra_bits, &extra);
    put(codes[code], litlens[code]);
    put(extra, extra_bits);
    code = glyd_deflate_distance_code(tokens[i] & 0xFFFF, &extra_bits, &extra);
    put(far_codes[code], distances[code]);
    put(extra, extra_bits);
  }
  put(codes[256], litlens[256]);
}

static void put_dynamic(const glyd_deflate_token *tokens, uint32_t n) {
  glyd_deflate_counts counts;
  glyd_deflate_block block;
  glyd_deflate_trees_count(tokens, n, &counts);
  if (test_below(3) == 0) /* codes for what does not occur */
    for (unsigned i = 0; i < 40; i++) counts.litlens[test_below(286)] += 1 + (uint32_t)test_below(5);
  glyd_deflate_trees_header(&counts, &block);
  if (test_below(3) == 0) { /* an item that could be a repeat is none */
    unsigned items = 0;
    for (unsigned i = 0; i < block.n_litlens + block.n_distances; i++)
      block.items[items++] = (glyd_deflate_item){block.lengths[i], 0};
    block.n_items = items;
    glyd_deflate_trees_item_codes(&block);
  }
  if (test_below(3) == 0) block.n_header_codes = 19;
  put(block.n_litlens - 257, 5);
  put(block.n_distances - 1, 5);
  put(block.n_header_codes - 4, 4);
  uint16_t codes[19];
  glyd_deflate_trees_codes(block.header_lengths, 19, codes);
  for (unsigned i = 0; i < block.n_header_codes; i++) put(block.header_lengths[glyd_deflate_header_order[i]], 3);
  for (unsigned i = 0; i < block.n_items; i++) {
    put(codes[block.items[i].symbol], block.header_lengths[block.items[i].symbol]);
    put(block.items[i].extra, glyd_deflate_item_bits(block.items[i].symbol));
  }
  put_codes(block.lengths, block.n_litlens, block.lengths + block.n_litlens, block.n_distances, tokens, n);
}

/* A stream of content[0..n) with blocks of every kind; its bytes. */
static size_t make_stream(size_t n) {
  static glyd_deflate_token tokens[MOST];
  size_t at = 0;
  bits = 0;
  for (int is_last = 0; !is_last;) {
    const unsigned type = (unsigned)test_below(3);
    const size_t start = at;
    uint32_t count = 0;
    if (type == GLYD_DEFLATE_STORED)
      at += n - at < 65535 ? test_below(n - at + 1) : test_below(65536);
    else
      count = choose_tokens(at, n, tokens, test_below(5) == 0 ? 0 : 1 + (uint32_t)test_below(9000), &at);
    is_last = at == n && test_below(4) != 0;
    put((uint32_t)is_last | type << 1, 3);
    if (type == GLYD_DEFLATE_STORED) {
      put((uint32_t)test_random() & 127, (unsigned)(-bits & 7));
      put((uint32_t)(at - start), 16);
      put((uint32_t)(at - start) ^ 0xFFFF, 16);
      for (size_t i = start; i < at; i++) put(content[i], 8);
    } else if (type == GLYD_DEFLATE_FIXED) {
      uint8_t litlens[288], distances[32];
      glyd_deflate_trees_fixed(litlens, distances);
      put_codes(litlens, 288, distances, 32, tokens, count);
    } else {
      put_dynamic(tokens, count);
    }
  }
  put((uint32_t)test_random() & 127, test_below(2) ? (unsigned)(-bits & 7) : 0);
  return (bits + 7) >> 3;
}

static size_t describe(size_t len, size_t cap, const glyd_deflate_breaks *breaks, uint32_t gap,
                       glyd_deflate_stream *found) {
  uint64_t cost;
  glyd_deflate_writer *const w = glyd_deflate_encode_begin(workspace, description, STREAM_MOST);
  CHECK(glyd_deflate_encode_read(w, stream, len, inside, cap, found));
  CHECK(glyd_deflate_encode_stream(w, gap, stream, inside, found, breaks, 15, UINT64_MAX, &cost));
  const size_t size = glyd_deflate_encode_end(w);
  CHECK(size > 0);
  return size;
}

static void check_rebuilt(const glyd_deflate_stream *found, size_t described, const uint8_t *kept, size_t kept_size,
                          const uint8_t *want, size_t len) {
  for (int at_start = 0; at_start < 2; at_start++) {
    const guarded data = guarded_new(found->content_size, at_start), text = guarded_new(described, at_start),
                  back = guarded_new(len, at_start), other = guarded_new(kept_size, at_start);
    memcpy(data.p, inside, found->content_size);
    memcpy(text.p, description, described);
    if (kept_size) memcpy(other.p, kept, kept_size);
    const glyd_deflate_parts parts = {data.p, found->content_size, other.p, kept_size, text.p, described};
    CHECK(glyd_deflate_rebuild(reading, 1, &parts, back.p, len) == GLYD_OK);
    CHECK(memcmp(back.p, want, len) == 0);
    guarded_free(data);
    guarded_free(text);
    guarded_free(back);
    guarded_free(other);
  }
}

static void check_whole(size_t n) {
  const size_t len = make_stream(n);
  glyd_deflate_stream found;
  const size_t described = describe(len, n + 1, NULL, 0, &found);
  CHECK(found.stored_size == len && found.content_size == n && !found.is_cut && memcmp(inside, content, n) == 0);
  check_rebuilt(&found, described, NULL, 0, stream, len);
  /* one byte less, one more */
  uint8_t *const back = malloc(len + 1);
  const glyd_deflate_parts parts = {inside, n, NULL, 0, description, described};
  CHECK(back && glyd_deflate_rebuild(reading, 1, &parts, back, len - 1) == GLYD_E_CORRUPT);
  CHECK(glyd_deflate_rebuild(reading, 1, &parts, back, len + 1) == GLYD_E_CORRUPT);
  free(back);
}

/* What is no stream is said to have no content, whatever was there before. */
static void check_no_stream(void) {
  const uint8_t bad[2] = {7, 0}; /* there is no block of type 3 */
  glyd_deflate_stream found;
  memset(&found, 255, sizeof found);
  glyd_deflate_writer *const w = glyd_deflate_encode_begin(workspace, description, STREAM_MOST);
  CHECK(!glyd_deflate_encode_read(w, bad, sizeof bad, inside, 64, &found));
  CHECK(found.content_size == 0);
}

/* Cut off by the end of the input, or for want of room: what is left is kept. */
static void check_cut(size_t n) {
  const size_t len = make_stream(n), have = len - test_below(len / 2);
  glyd_deflate_stream found;
  uint64_t cost;
  glyd_deflate_writer *const w = glyd_deflate_encode_begin(workspace, description, STREAM_MOST);
  if (!glyd_deflate_encode_read(w, stream, have, inside, n - test_below(n / 2), &found)) return;
  CHECK(glyd_deflate_encode_stream(w, 0, stream, inside, &found, NULL, 15, UINT64_MAX, &cost));
  const size_t described = glyd_deflate_encode_end(w);
  CHECK(found.stored_size <= have && memcmp(inside, content, found.content_size) == 0);
  check_rebuilt(&found, described, stream + found.stored_size, have - found.stored_size, stream, have);
}

static void check_breaks(size_t n) {
  const size_t len = make_stream(n);
  uint32_t sizes[64];
  uint8_t kept[5 + 64 * 12], *want = malloc(len + sizeof kept);
  glyd_deflate_breaks breaks = {sizes, 0};
  size_t at = 0, to = 5, used = 5;
  CHECK(want);
  for (size_t i = 0; i < sizeof kept; i++) kept[i] = (uint8_t)test_random();
  memcpy(want, kept, 5);
  while (breaks.n < 64 && at < len) {
    const size_t part = test_below(len / 8 + 2);
    if (part > len - at) break;
    sizes[breaks.n++] = (uint32_t)part;
    memcpy(want + to, stream + at, part);
    memcpy(want + to + part, kept + used, 12);
    at += part;
    to += part + 12;
    used += 12;
  }
  memcpy(want + to, stream + at, len - at);
  glyd_deflate_stream found;
  const size_t described = describe(len, n + 1, &breaks, 5, &found);
  check_rebuilt(&found, described, kept, used, want, to + len - at);
  free(want);
}

/* Any change of the description is refused or gives other bytes; nothing beside is touched. */
static void check_damage(size_t n) {
  const size_t len = make_stream(n);
  glyd_deflate_stream found;
  const size_t described = describe(len, n + 1, NULL, 0, &found);
  const guarded text = guarded_new(described, 0), back = guarded_new(len, 0), data = guarded_new(n, 0);
  memcpy(data.p, inside, n);
  for (unsigned i = 0; i < 300; i++) {
    memcpy(text.p, description, described);
    for (unsigned k = 0; k < 1 + i % 3; k++) text.p[test_below(described)] ^= (uint8_t)(1 + test_below(255));
    const glyd_deflate_parts parts = {data.p, n, NULL, 0, text.p, described};
    const glyd_status status = glyd_deflate_rebuild(reading, 1 + i % 2, &parts, back.p, len);
    CHECK(status == GLYD_OK || status == GLYD_E_CORRUPT);
  }
  for (size_t cut = 0; cut < described; cut += 1 + described / 50) {
    const glyd_deflate_parts parts = {data.p, n, NULL, 0, description, cut};
    CHECK(glyd_deflate_rebuild(reading, 1, &parts, back.p, len) == GLYD_E_CORRUPT);
  }
  guarded_free(text);
  guarded_free(back);
  guarded_free(data);
}

/* Lengths are those of a code that uses all its space, shortest for the most frequent. */
static void check_trees(void) {
  for (unsigned round = 0; round < 400; round++) {
    uint32_t counts[GLYD_DEFLATE_LITLENS];
    uint8_t lengths[GLYD_DEFLATE_LITLENS];
    const unsigned n = 2 + (unsigned)test_below(GLYD_DEFLATE_LITLENS - 1), longest = n <= 19 ? 7 : 15;
    const unsigned shape = (unsigned)test_below(3);
    for (unsigned i = 0; i < n; i++)
      counts[i] = shape == 0 ? (uint32_t)test_below(20) : shape == 1 ? 1u << (i % 24) : (uint32_t)test_below(2);
    glyd_deflate_trees_lengths(counts, n, longest, lengths);
    uint32_t space = 0;
    for (unsigned i = 0; i < n; i++) {
      CHECK(lengths[i] <= longest && (counts[i] == 0 || lengths[i] > 0));
      if (lengths[i]) space += 1u << (longest - lengths[i]);
      for (unsigned k = 0; k < i; k++) CHECK(counts[k] <= counts[i] || !counts[i] || lengths[k] <= lengths[i]);
    }
    CHECK(space == 1u << longest);
  }
}

static void check_find(void) {
  static const uint8_t gzip[] = {9, 0x1F, 0x8B, 8, 0x1A, 0, 0, 0, 0, 0, 3, 'n', 0, 'c', 0, 1, 2, 3, 0};
  glyd_deflate_place place = glyd_deflate_find(gzip, sizeof gzip, 0);
  CHECK(place.kind == GLYD_FOUND_GZIP && place.at == 17); /* after name, comment and header check */
  for (size_t len = 0; len < 17; len++) CHECK(glyd_deflate_find(gzip, len, 0).kind == GLYD_FOUND_NONE);
  static const uint8_t zlib[] = {0, 0x38, 0x11, 0x78, 0x9C, 1};
  place = glyd_deflate_find(zlib, sizeof zlib, 0);
  CHECK(place.kind == GLYD_FOUND_ZLIB && place.at == 3 && place.window_log == 11);
  place = glyd_deflate_find(zlib, sizeof zlib, 2);
  CHECK(place.kind == GLYD_FOUND_ZLIB && place.at == 5 && place.window_log == 15);
  CHECK(glyd_deflate_find_check((const uint8_t *)"Wikipedia", 9) == 0x11E60398);
}

int main(void) {
  content = malloc(MOST);
  inside = malloc(MOST + 1);
  stream = malloc(STREAM_MOST);
  description = malloc(STREAM_MOST);
  workspace = aligned_alloc(64, glyd_deflate_encode_workspace());
  reading = aligned_alloc(64, glyd_deflate_rebuild_workspace());
  CHECK(content && inside && stream && description && workspace && reading);
  check_trees();
  check_find();
  check_no_stream();
  for (unsigned round = 0; round < 4; round++)
    for (unsigned kind = 0; kind < TEST_KINDS; kind++) {
      const size_t n = round == 0 ? 1 + test_below(40) : 1 + test_below(MOST);
      test_content(kind, content, n);
      check_whole(n);
      check_cut(n);
      check_breaks(n);
      if (round == 1) check_damage(n < 4000 ? n : 4000);
    }
  return 0;
}
