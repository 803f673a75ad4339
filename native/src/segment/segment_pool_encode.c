/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "segment/segment_pool_encode.h"

#include "common/mem.h"
#include "record/record_common.h"

#define TEXTS_MAX (GLYD_RECORD_COLUMNS_MAX + GLYD_RECORD_STREAM_FIRST)
#define SEEN_LOG 16u /* places for samples */
#define SEEN_LEAST 8u
#define WINDOW 8u              /* bytes of a sample */
#define EVERY_LOG 4u           /* one position in 16, by its bytes, so that the same bytes are sampled everywhere */
#define SHORT 1024u            /* texts whose own tables cost more than they gain */
#define TINY 256u              /* the same, whatever they have in common with others */
#define FEW ((size_t)64 << 10) /* bytes of all texts, so that tables and contexts learned once count for more */

static uint64_t text_room(uint64_t n) { return GLYD_RECORD_ALIGN(n + n / 8 + 65536); }

uint64_t glyd_segment_pool_memory(uint64_t n) {
  return text_room(n) + GLYD_RECORD_ALIGN(TEXTS_MAX * sizeof(glyd_pool_text)) + (sizeof(uint32_t) << SEEN_LOG);
}

void glyd_segment_pool_init(glyd_text_pool *pool, void *memory, uint64_t n) {
  uint8_t *const at = memory;
  *pool = (glyd_text_pool){.bytes = at, .cap = (size_t)text_room(n), .cap_texts = TEXTS_MAX};
  pool->texts = (glyd_pool_text *)(void *)(at + text_room(n));
  pool->seen = (uint32_t *)(void *)(at + text_room(n) + GLYD_RECORD_ALIGN(TEXTS_MAX * sizeof(glyd_pool_text)));
}

int glyd_segment_pool_add(glyd_text_pool *pool, const uint8_t *data, size_t n, size_t before) {
  if (n > pool->cap - pool->n || pool->n_texts == pool->cap_texts) return 0;
  uint8_t *const to = pool->bytes + pool->n;
  memcpy(to, data, n);
  pool->n += n;
  pool->texts[pool->n_texts++] = (glyd_pool_text){.data = to, .n = n, .before = before};
  return 1;
}

/* Samples whose bytes were seen last in another text count for both. */
static void count_shared(glyd_text_pool *pool) {
  unsigned bits = SEEN_LEAST; /* places for twice as many samples as there are */
  while (bits < SEEN_LOG && pool->n >> (EVERY_LOG - 1) >> bits > 0) bits++;
  memset(pool->seen, 0, sizeof *pool->seen << bits);
  for (uint32_t t = 0; t < pool->n_texts; t++) {
    glyd_pool_text *const text = &pool->texts[t];
    for (size_t i = 0; i + WINDOW <= text->n; i++) {
      const uint64_t h = glyd_load64(text->data + i) * 0x9FB21C651E98DF25u;
      if (h >> (64 - EVERY_LOG) != 0) continue;
      uint32_t *const place = &pool->seen[h >> (64 - EVERY_LOG - bits) & ((1u << bits) - 1)];
      const uint32_t mark = (uint32_t)(h >> 16) & 0xFFFF0000u;
      const uint32_t before = *place & 0xFFFFu;
      if (*place != 0 && (*place & 0xFFFF0000u) == mark && before != t + 1) {
        text->shared++;
        pool->texts[before - 1].shared++;
      }
      *place = mark | (t + 1);
    }
  }
}

/* Does a text gain by the others? An eighth of its samples, or a sixteenth where all are few bytes. */
static int is_pooled(const glyd_text_pool *pool, const glyd_pool_text *text) {
  const int few = pool->n < FEW;
  if (text->n == 0) return 0;
  if (text->n < SHORT && (text->shared > 0 || few || text->n < TINY)) return 1;
  return text->shared >= text->n >> (EVERY_LOG + (few ? 4 : 3));
}

size_t glyd_segment_pool_choose(glyd_text_pool *pool) {
  _Static_assert(TEXTS_MAX < 0xFFFF, "a text's number and a mark fit a place");
  uint32_t pooled = 0;
  size_t n = 0;
  count_shared(pool);
  for (uint32_t t = 0; t < pool->n_texts; t++) {
    glyd_pool_text *const text = &pool->texts[t];
    text->pooled = is_pooled(pool, text);
    pooled += (uint32_t)text->pooled;
    n += text->pooled ? text->n : 0;
  }
  return pooled > 1 ? n : 0;
}
