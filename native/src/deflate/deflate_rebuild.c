/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "deflate/deflate_rebuild.h"

#include "bitstream/arith_reader.h"

typedef glyd_arith_reader coder;
#define IS_WRITING 0

static uint32_t code_bit(coder *c, uint32_t chance, uint32_t bit) {
  (void)bit;
  return glyd_arith_reader_get(c, chance);
}

#include "deflate/deflate_describe.h"

/* Bits into memory that may end anywhere. */
typedef struct sink {
  uint64_t acc;
  unsigned count; /* below 8 between calls */
  uint8_t *at, *end;
  int is_full;
} sink;

typedef struct glyd_deflate_reader {
  glyd_arith_reader code;
  glyd_deflate_settings last;
  glyd_deflate_chances chances;
  opening opening;
  glyd_deflate_model model;
  glyd_deflate_block block, predicted;
  uint32_t break_sizes[BREAKS_MAX];
  glyd_deflate_token tokens[GLYD_DEFLATE_TOKENS_MAX];
} glyd_deflate_reader;

size_t glyd_deflate_rebuild_workspace(void) { return (sizeof(glyd_deflate_reader) + 63) & ~(size_t)63; }

static glyd_deflate_reader *begin(void *workspace, const uint8_t *in, size_t len) {
  glyd_deflate_reader *const r = workspace;
  glyd_arith_reader_init(&r->code, in, in + len);
  r->last = (glyd_deflate_settings){6, 0, 8, 15, 0};
  begin_chances(&r->chances);
  glyd_deflate_model_init(&r->model);
  return r;
}

/* What comes before the next stream. */
static glyd_status read_opening(glyd_deflate_reader *r) {
  opening *const o = &r->opening;
  memset(o, 0, sizeof *o);
  code_opening(&r->code, &r->chances, &r->last, o);
  if (r->code.is_short || !settings_valid(&o->settings) || o->n_breaks > BREAKS_MAX || o->content_size > INT32_MAX)
    return GLYD_E_CORRUPT;
  uint32_t size = 0;
  for (uint32_t i = 0; i < o->n_breaks; i++) {
    r->break_sizes[i] = size = code_break(&r->code, &r->chances, size, 0);
    if (r->code.is_short) return GLYD_E_CORRUPT;
  }
  return GLYD_OK;
}

/* The n low bits of v, n at most 48; those above must be 0. */
GLYD_INLINE void put(sink *s, uint64_t v, unsigned n) {
  s->acc |= v << s->count;
  s->count += n;
  if (GLYD_LIKELY(s->end - s->at >= 8)) {
    glyd_store64(s->at, s->acc);
    const unsigned bytes = s->count >> 3;
    s->at += bytes;
    s->acc >>= 8 * bytes;
    s->count &= 7;
    return;
  }
  for (; s->count >= 8; s->count -= 8, s->acc >>= 8) {
    if (s->at == s->end)
      s->is_full = 1;
    else
      *s->at++ = (uint8_t)s->acc;
  }
}

static void put_stored(sink *s, const glyd_deflate_block *block, const uint8_t *content) {
  const unsigned rest = -s->count & 7;
  put(s, block->padding, rest);
  put(s, block->n_tokens | (uint64_t)(block->n_tokens ^ 0xFFFF) << 16, 32);
  if (block->n_tokens > (size_t)(s->end - s->at)) {
    s->is_full = 1;
  } else if (block->n_tokens > 0) {
    memcpy(s->at, content, block->n_tokens);
    s->at += block->n_tokens;
  }
}

static void put_header(sink *s, const glyd_deflate_block *block) {
  uint16_t codes[GLYD_DEFLATE_HEADER_CODES];
  put(s, block->n_litlens - 257, 5);
  put(s, block->n_distances - 1, 5);
  put(s, block->n_header_codes - 4, 4);
  for (unsigned i = 0; i < block->n_header_codes; i++) put(s, block->header_lengths[glyd_deflate_header_order[i]], 3);
  glyd_deflate_trees_codes(block->header_lengths, GLYD_DEFLATE_HEADER_CODES, codes);
  for (unsigned i = 0; i < block->n_items; i++) {
    const unsigned symbol = block->items[i].symbol;
    put(s, codes[symbol], block->header_lengths[symbol]);
    put(s, block->items[i].extra, glyd_deflate_item_bits(symbol));
  }
}

static void put_tokens(sink *s, const glyd_deflate_block *block, const glyd_deflate_token *tokens) {
  uint8_t fixed_litlens[288], fixed_distances[32];
  const uint8_t *litlens = block->lengths, *distances = block->lengths + block->n_litlens;
  unsigned n_litlens = block->n_litlens, n_distances = block->n_distances;
  if (block->type == GLYD_DEFLATE_FIXED) {
    glyd_deflate_trees_fixed(fixed_litlens, fixed_distances);
    litlens = fixed_litlens;
    distances = fixed_distances;
    n_litlens = 288;
    n_distances = 32;
  }
  uint16_t litlen_codes[288], distance_codes[32];
  glyd_deflate_trees_codes(litlens, n_litlens, litlen_codes);
  glyd_deflate_trees_codes(distances, n_distances, distance_codes);
  for (uint32_t i = 0; i < block->n_tokens && !s->is_full; i++) {
    const glyd_deflate_token token = tokens[i];
    if (token < 256) {
      put(s, litlen_codes[token], litlens[token]);
      continue;
    }
    unsigned bits;
    uint32_t extra;
    const unsigned length = glyd_deflate_length_code(token >> 16, &bits, &extra);
    uint64_t v = litlen_codes[length] | (uint64_t)extra << litlens[length];
    unsigned n = litlens[length] + bits;
    const unsigned distance = glyd_deflate_distance_code(token & 0xFFFF, &bits, &extra);
    v |= (distance_codes[distance] | (uint64_t)extra << distances[distance]) << n;
    n += distances[distance] + bits;
    put(s, v, n);
  }
  put(s, litlen_codes[GLYD_DEFLATE_END], litlens[GLYD_DEFLATE_END]);
}

/* Make room for what interrupts a stream of n bytes, from its end on. 0: it is not so long. */
static int spread(uint8_t *out, size_t n, const uint32_t *sizes, uint32_t n_breaks, const uint8_t *between) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n_breaks; i++) sum += sizes[i];
  if (sum > n) return 0;
  size_t from = n, to = n + (size_t)n_breaks * GLYD_DEFLATE_BREAK, size = n - (size_t)sum;
  for (uint32_t i = n_breaks; i-- > 0; size = sizes[i]) {
    from -= size;
    to -= size;
    memmove(out + to, out + from, size);
    to -= GLYD_DEFLATE_BREAK;
    memcpy(out + to, between + (size_t)i * GLYD_DEFLATE_BREAK, GLYD_DEFLATE_BREAK);
  }
  return 1;
}

/* The stream of some content, with what interrupts it. */
static glyd_status make_stream(glyd_deflate_reader *r, const uint8_t *content, const uint8_t *between, uint8_t *out,
                               size_t cap, size_t *out_len) {
  coder *const c = &r->code;
  const size_t inserted = (size_t)r->opening.n_breaks * GLYD_DEFLATE_BREAK;
  if (inserted > cap) return GLYD_E_CORRUPT;
  glyd_deflate_model *const m = &r->model;
  glyd_deflate_model_begin(m, &r->opening.settings, content, r->opening.content_size);
  state s = {&r->chances, m, r->tokens, 0, 0};
  sink bits = {0, 0, out, out + (cap - inserted), 0};
  int is_cut = 0;
  do {
    const uint8_t *const start = content + s.at;
    memset(&r->block, 0, sizeof r->block);
    if (!code_block(c, &s, &r->block, &r->predicted, 0) || c->is_short) return GLYD_E_CORRUPT;
    put(&bits, r->block.is_last | r->block.type << 1, 3);
    if (r->block.type == GLYD_DEFLATE_STORED) {
      put_stored(&bits, &r->block, start);
    } else {
      if (r->block.type == GLYD_DEFLATE_DYNAMIC) put_header(&bits, &r->block);
      put_tokens(&bits, &r->block, r->tokens);
    }
    if (bits.is_full) return GLYD_E_CORRUPT;
    if (!r->block.is_last && s.at == m->n) is_cut = code_is_cut(c, &r->chances, 0);
  } while (!r->block.is_last && !is_cut);
  if (s.at != m->n) return GLYD_E_CORRUPT;
  glyd_deflate_model_end(m);
  if (!is_cut) {
    const uint32_t padding = code_padding(c, &r->chances, 0);
    const unsigned rest = -bits.count & 7;
    put(&bits, padding & ((1u << rest) - 1), rest);
    if (bits.is_full) return GLYD_E_CORRUPT;
  }
  const size_t n = (size_t)(bits.at - out);
  if (!spread(out, n, r->break_sizes, r->opening.n_breaks, between)) return GLYD_E_CORRUPT;
  *out_len = n + inserted;
  return GLYD_OK;
}

glyd_status glyd_deflate_rebuild(void *workspace, uint64_t n_streams, const glyd_deflate_parts *parts, uint8_t *out,
                                 size_t out_len) {
  glyd_deflate_reader *const r = begin(workspace, parts->description, parts->description_size);
  const uint8_t *inside = parts->inside, *kept = parts->kept;
  size_t inside_left = parts->inside_size, kept_left = parts->kept_size;
  for (uint64_t i = 0; i < n_streams; i++) {
    glyd_status status = read_opening(r);
    if (status) return status;
    const opening *const o = &r->opening;
    const size_t between = (size_t)o->n_breaks * GLYD_DEFLATE_BREAK;
    if (o->gap > kept_left || o->gap > out_len || o->content_size > inside_left || between > kept_left - o->gap)
      return GLYD_E_CORRUPT;
    if (o->gap > 0) memcpy(out, kept, o->gap);
    out += o->gap;
    out_len -= o->gap;
    kept += o->gap;
    size_t size;
    status = make_stream(r, inside, kept, out, out_len, &size);
    if (status) return status;
    out += size;
    out_len -= size;
    kept += between;
    kept_left -= o->gap + between;
    inside += o->content_size;
    inside_left -= o->content_size;
  }
  if (inside_left != 0 || kept_left != out_len || r->code.at != r->code.end || r->code.is_short) return GLYD_E_CORRUPT;
  if (out_len > 0) memcpy(out, kept, out_len);
  return GLYD_OK;
}
