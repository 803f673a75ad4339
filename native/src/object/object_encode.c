/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "object/object_encode.h"

#include "bitstream/bit_writer.h"
#include "block/block_encode.h"
#include "common/checksum.h"
#include "common/cpu.h"
#include "object/object_index_encode.h"

#define TABLE_BITS_MIN 8u
#define TABLE_BITS_MAX 14u
#define CONTENT_PAD 16     /* bytes before the content that the first repeats may look at */
#define BLOCKS_FROM 32768u /* bytes of content from which on blocks are tried */

/* ---- finding matches ------------------------------------------------------
 *
 * The content is copied behind that of the dictionary, so that a distance is a
 * distance wherever it leads. Places are counted from the dictionary's start. */

#define COMMAND_BITS 5    /* about what a sequence costs beside its offset */
#define NEW_OFFSET_BITS 4 /* a match with a new offset must save this much more: it takes time to read */

typedef struct match {
  size_t length; /* 0: none */
  uint32_t distance;
  int gain; /* bits saved, in 1/16 */
} match;

typedef struct finder {
  const glyd_dictionary *d;
  const glyd_object_index *x;
  const uint8_t *in; /* start of the dictionary's copy */
  const uint8_t *end;
  uint32_t *table; /* entries as those of the dictionary's index */
  unsigned bits;
  uint32_t repeat[GLYD_OBJECT_REPEATS];
} finder;

/* Symbol and extra bits of a new distance for a match at a place: as such, or as a place in the dictionary. */
GLYD_INLINE unsigned offset_symbol(const finder *f, size_t place, uint32_t distance, unsigned *bits, uint32_t *extra) {
  const uint32_t *const put = f->x->put[f->d->contexts + GLYD_OBJECT_OFFSETS];
  const uint32_t v = distance + GLYD_OBJECT_OFFSET_BIAS, from = (uint32_t)place - distance;
  const unsigned near_bits = glyd_log2_32(v) - 3, near = near_bits << 3 | (v >> near_bits & 7);
  *bits = near_bits;
  *extra = v & ((1u << near_bits) - 1);
  if (from >= f->d->size) return near;
  const unsigned there = GLYD_OBJECT_SYMBOLS_HERE + (from >> f->d->shift);
  if ((put[near] & 255) + near_bits <= (put[there] & 255) + f->d->shift) return near;
  *bits = f->d->shift;
  *extra = from & ((1u << f->d->shift) - 1);
  return there;
}

/* Bytes that a match at place ip with this distance has, at most up to the end of what it is copied from. */
GLYD_INLINE size_t count(const finder *f, const uint8_t *ip, size_t distance) {
  const uint8_t *const from = ip - distance, *const border = f->in + f->d->size;
  const uint8_t *end = f->end;
  if (from < border && border - from < end - ip) end = ip + (border - from);
  return glyd_match_count(ip, from, end);
}

GLYD_INLINE void consider(const finder *f, match *best, const uint8_t *ip, uint32_t distance) {
  const size_t n = count(f, ip, distance);
  if (n < GLYD_OBJECT_MATCH_MIN) return;
  unsigned bits;
  uint32_t extra;
  const unsigned s = offset_symbol(f, (size_t)(ip - f->in), distance, &bits, &extra);
  const unsigned cost =
      (f->x->put[f->d->contexts + GLYD_OBJECT_OFFSETS][s] & 255) + bits + COMMAND_BITS + NEW_OFFSET_BITS;
  const int gain = (int)n * f->x->literal_bits - 16 * (int)cost;
  if (gain > best->gain) *best = (match){n, distance, gain};
}

GLYD_INLINE int same_tag(uint32_t entry, uint32_t tag) {
  return ((entry ^ tag) & ((1u << GLYD_OBJECT_TAG_BITS) - 1)) == 0;
}

/* Best match at ip, which lies 8 bytes or more before the end. */
GLYD_INLINE match find(finder *f, const uint8_t *ip) {
  const uint64_t v = glyd_load64(ip);
  const uint32_t place = (uint32_t)(ip - f->in), v4 = (uint32_t)v;
  const uint64_t hl = glyd_object_hash_long(v), hs = glyd_object_hash_short(v);
  const uint32_t tl = glyd_object_tag(hl, GLYD_OBJECT_LONG_BITS), ts = glyd_object_tag(hs, GLYD_OBJECT_SHORT_BITS);
  uint32_t *const here = f->table + (hs >> (64 - f->bits));
  const uint32_t el = f->x->long_table[hl >> (64 - GLYD_OBJECT_LONG_BITS)];
  const uint32_t es = f->x->short_table[hs >> (64 - GLYD_OBJECT_SHORT_BITS)];
  const uint32_t eh = *here;
  *here = glyd_object_entry(place, ts);
  match best = {0, 0, 0};
  const uint32_t r0 = f->repeat[0], r1 = f->repeat[1], r2 = f->repeat[2];
  if ((int)(glyd_load32(ip - r0) == v4) | (glyd_load32(ip - r1) == v4) | (glyd_load32(ip - r2) == v4)) {
    for (unsigned r = 0; r < GLYD_OBJECT_REPEATS; r++) {
      const uint32_t distance = f->repeat[r];
      if (distance > place || glyd_load32(ip - distance) != v4) continue;
      const size_t n = count(f, ip, distance);
      const int gain = (int)n * f->x->literal_bits - 16 * (COMMAND_BITS + (int)r);
      if (n >= GLYD_OBJECT_MATCH_MIN && gain > best.gain) best = (match){n, distance, gain};
    }
  }
  if (eh != 0 && same_tag(eh, ts)) consider(f, &best, ip, place + 1 - (eh >> GLYD_OBJECT_TAG_BITS));
  if (el != 0 && same_tag(el, tl))
    consider(f, &best, ip, place + 1 - (el >> GLYD_OBJECT_TAG_BITS));
  else if (es != 0 && same_tag(es, ts) && best.length < 8)
    consider(f, &best, ip, place + 1 - (es >> GLYD_OBJECT_TAG_BITS));
  return best;
}

GLYD_INLINE void insert(finder *f, const uint8_t *p) {
  const uint64_t hash = glyd_object_hash_short(glyd_load64(p));
  f->table[hash >> (64 - f->bits)] =
      glyd_object_entry((uint32_t)(p - f->in), glyd_object_tag(hash, GLYD_OBJECT_SHORT_BITS));
}

/* Sequences of the object of len bytes in e->content; what they leave are literals. */
GLYD_INLINE size_t parse(glyd_object_encoder *e, size_t len) {
  finder f = {.d = e->dictionary,
              .x = e->dictionary->index,
              .in = e->content,
              .table = e->table,
              .bits = TABLE_BITS_MIN,
              .repeat = GLYD_OBJECT_REPEAT_START};
  if (len < 12) return 0;
  while (f.bits < TABLE_BITS_MAX && (size_t)1 << f.bits < len) f.bits++;
  memset(f.table, 0, sizeof *f.table << f.bits);
  const uint8_t *ip = f.in + f.d->size, *anchor = ip;
  f.end = ip + len;
  const uint8_t *const limit = f.end - 8;
  size_t n = 0;
  while (ip < limit) {
    match m = find(&f, ip);
    if (m.length == 0) {
      ip += 1 + ((size_t)(ip - anchor) >> 5);
      continue;
    }
    while (ip + 1 < limit && m.length < f.d->lazy_below) { /* a better one further on takes over */
      const match next = find(&f, ip + 1);
      if (next.length == 0 || next.gain - f.x->literal_bits / 4 <= m.gain) break;
      m = next;
      ip++;
    }
    const uint8_t *from = ip - m.distance;
    const int there = from < f.in + f.d->size; /* it must not go from one to the other */
    while (ip > anchor && from > (there ? f.in : f.in + f.d->size) && ip[-1] == from[-1]) {
      ip--;
      from--;
      m.length++;
    }
    (void)glyd_match_use_offset(f.repeat, m.distance);
    e->sequences[n++] = (glyd_sequence){(uint32_t)(ip - anchor), (uint32_t)m.length, m.distance};
    anchor = ip + m.length;
    if (anchor < limit) { /* two places of the match, as later ones may begin there */
      insert(&f, ip + 1);
      insert(&f, anchor - 2);
    }
    ip = anchor;
  }
  return n;
}

/* ---- what a payload holds ------------------------------------------------- */

typedef struct payload_writer {
  glyd_bit_writer w;
  const glyd_dictionary *d;
  const glyd_object_index *x;
  const uint8_t *stop; /* no sequences are written from here on */
  uint8_t *literals;   /* those written so far, growing downwards */
  const uint8_t *bottom;
  uint64_t acc;   /* bits not yet moved below literals, on top */
  unsigned count; /* how many */
} payload_writer;

GLYD_INLINE void write_literal(payload_writer *p, unsigned before, unsigned symbol) {
  const uint32_t put = p->x->put[p->d->context[before]][symbol], n = put & 255;
  if (p->literals < p->bottom) return;
  p->acc |= (uint64_t)(put >> 8) << (64 - n - p->count);
  p->count += n;
  glyd_store64(p->literals - 8, p->acc);
  const unsigned bytes = p->count >> 3;
  p->literals -= bytes;
  p->acc <<= bytes * 8;
  p->count &= 7;
}

GLYD_INLINE void write_raw(payload_writer *p, uint32_t bits, unsigned n) {
  if (p->w.p < p->stop) glyd_bit_writer_put(&p->w, bits, n);
}

/* A symbol of table t after the literals'. */
GLYD_INLINE void write_symbol(payload_writer *p, unsigned t, unsigned symbol) {
  const uint32_t put = p->x->put[p->d->contexts + t][symbol];
  write_raw(p, put >> 8, put & 255);
}

/* A length that a command has not: over what it has, or as such. */
GLYD_INLINE void write_escape(payload_writer *p, unsigned t, size_t length, size_t least) {
  const size_t over = length - least;
  write_symbol(p, t, over < GLYD_OBJECT_ESCAPE ? (unsigned)over : GLYD_OBJECT_ESCAPE);
  if (over >= GLYD_OBJECT_ESCAPE) write_raw(p, (uint32_t)length, 16);
}

GLYD_INLINE void write_lengths(payload_writer *p, size_t ll, size_t ml, unsigned slot) {
  if (p->x->step_escape != 0) {
    if (ll < GLYD_OBJECT_STEP_LITERALS) {
      const uint8_t(*const steps)[GLYD_OBJECT_STEP_LITERALS] = p->x->step_of[slot];
      const unsigned step = ml < 256 ? steps[ml][ll] : GLYD_OBJECT_NO_STEP;
      if (step != GLYD_OBJECT_NO_STEP) {
        write_symbol(p, GLYD_OBJECT_STEPS, step);
        return;
      }
      if (steps[0][ll] != GLYD_OBJECT_NO_STEP) {
        write_symbol(p, GLYD_OBJECT_STEPS, steps[0][ll]);
        write_escape(p, GLYD_OBJECT_MATCH_ESCAPES, ml, GLYD_OBJECT_MATCH_MIN);
        return;
      }
    }
    write_raw(p, p->x->step_escape >> 8, p->x->step_escape & 255);
  }
  const unsigned short_ll = ll < GLYD_OBJECT_LITERALS_ESCAPE ? (unsigned)ll : GLYD_OBJECT_LITERALS_ESCAPE;
  const unsigned code = ml < 255 ? p->x->code_of[ml] : GLYD_OBJECT_LENGTHS;
  write_symbol(p, GLYD_OBJECT_COMMANDS, slot << 6 | code << 2 | short_ll);
  if (short_ll == GLYD_OBJECT_LITERALS_ESCAPE) write_escape(p, GLYD_OBJECT_LITERAL_ESCAPES, ll, short_ll);
  if (code == GLYD_OBJECT_LENGTHS) write_escape(p, GLYD_OBJECT_MATCH_ESCAPES, ml, GLYD_OBJECT_MATCH_MIN);
}

GLYD_INLINE void write_payload(const glyd_object_encoder *e, const uint8_t *in, size_t len, size_t n,
                               payload_writer *p) {
  const finder f = {.d = e->dictionary, .x = e->dictionary->index};
  uint32_t repeat[GLYD_OBJECT_REPEATS] = GLYD_OBJECT_REPEAT_START;
  size_t pos = 0, literals = len;
  unsigned before = 0;
  for (size_t i = 0; i < n; i++) literals -= e->sequences[i].length;
  write_raw(p, (uint32_t)literals, glyd_object_count_bits((uint32_t)len));
  for (size_t i = 0; i <= n; i++) {
    const size_t ll = i < n ? e->sequences[i].literals : len - pos;
    for (size_t k = 0; k < ll; k++) {
      write_literal(p, before, in[pos + k]);
      before = in[pos + k];
    }
    pos += ll;
    if (i == n) return;
    const size_t ml = e->sequences[i].length;
    const uint32_t distance = e->sequences[i].offset;
    const unsigned slot = glyd_match_use_offset(repeat, distance);
    write_lengths(p, ll, ml, slot);
    if (slot == GLYD_OBJECT_REPEATS) {
      unsigned bits;
      uint32_t extra;
      const unsigned s = offset_symbol(&f, f.d->size + pos, distance, &bits, &extra);
      write_symbol(p, GLYD_OBJECT_OFFSETS, s);
      write_raw(p, extra, bits);
    }
    pos += ml;
  }
}

GLYD_INLINE size_t encode_compact(glyd_object_encoder *e, const uint8_t *in, size_t len) {
  uint8_t *const top = e->literals + sizeof e->literals;
  payload_writer p = {.d = e->dictionary,
                      .x = e->dictionary->index,
                      .stop = e->payload + len,
                      .literals = top,
                      .bottom = e->literals + 16};
  memcpy(e->content + e->dictionary->size, in, len);
  const size_t n = parse(e, len);
  glyd_bit_writer_init(&p.w, e->payload);
  write_payload(e, in, len, n, &p);
  const size_t whole = (size_t)(p.w.p - e->payload), literals = (size_t)(top - p.literals);
  const size_t size = whole + literals + (p.w.count + p.count + 7) / 8;
  if (size >= len || p.w.p >= p.stop || p.literals < p.bottom) return 0;
  /* The byte where both meet has sequences below and literals on top. */
  uint8_t middle[2] = {(uint8_t)p.w.acc, 0};
  middle[p.w.count + p.count > 8] |= (uint8_t)(p.acc >> 56);
  memcpy(e->payload + whole, middle, size - whole - literals);
  memcpy(e->payload + size - literals, p.literals, literals);
  return size;
}

static size_t encode_compact_portable(glyd_object_encoder *e, const uint8_t *in, size_t len) {
  return encode_compact(e, in, len);
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2,lzcnt"))) static size_t encode_compact_bmi2(glyd_object_encoder *e, const uint8_t *in,
                                                                            size_t len) {
  return encode_compact(e, in, len);
}
#endif

size_t glyd_object_encode_compact(glyd_object_encoder *e, const uint8_t *in, size_t len) {
#if defined(__x86_64__)
  if (e->cpu & GLYD_CPU_AVX2) return encode_compact_bmi2(e, in, len);
#endif
  return encode_compact_portable(e, in, len);
}

void glyd_object_encode_count(glyd_object_encoder *e, const uint8_t *in, size_t len, glyd_object_counts *counts) {
  memcpy(e->content + e->dictionary->size, in, len);
  const size_t n = parse(e, len);
  const finder f = {.d = e->dictionary, .x = e->dictionary->index};
  uint32_t repeat[GLYD_OBJECT_REPEATS] = GLYD_OBJECT_REPEAT_START;
  size_t pos = 0;
  unsigned before = 0;
  for (size_t i = 0; i <= n; i++) {
    const size_t ll = i < n ? e->sequences[i].literals : len - pos;
    for (size_t k = 0; k < ll; k++) {
      counts->literals[before][in[pos + k]]++;
      before = in[pos + k];
    }
    pos += ll;
    if (i == n) return;
    const size_t ml = e->sequences[i].length;
    const uint32_t distance = e->sequences[i].offset;
    const unsigned slot = glyd_match_use_offset(repeat, distance);
    counts->steps[slot][ml < 255 ? ml : 255][ll < 255 ? ll : 255]++;
    if (slot == GLYD_OBJECT_REPEATS) {
      unsigned bits;
      uint32_t extra;
      counts->offsets[offset_symbol(&f, f.d->size + pos, distance, &bits, &extra)]++;
    }
    pos += ml;
  }
}

/* ---- objects -------------------------------------------------------------- */

glyd_status glyd_object_encoder_make(glyd_object_encoder **encoder, const glyd_dictionary *dictionary, int check_size,
                                     const glyd_allocator *allocator) {
  *encoder = NULL;
  if (!glyd_alloc_valid(allocator) || (check_size != 0 && check_size != 2 && check_size != 4)) return GLYD_E_PARAMETER;
  if (!dictionary->index) return GLYD_E_STATE;
  glyd_object_encoder *const e =
      glyd_alloc_get(allocator, sizeof *e + CONTENT_PAD + dictionary->size + GLYD_OBJECT_COMPACT_MAX);
  if (!e) return GLYD_E_MEMORY;
  memset(e, 0, offsetof(glyd_object_encoder, table));
  e->content = (uint8_t *)(e + 1) + CONTENT_PAD;
  memset(e->content - CONTENT_PAD, 0, CONTENT_PAD);
  memcpy(e->content, dictionary->content, dictionary->size);
  if (allocator) e->allocator = *allocator;
  e->dictionary = dictionary;
  e->cpu = glyd_cpu_features();
  e->check_size = check_size;
  *encoder = e;
  return GLYD_OK;
}

void glyd_object_encoder_drop(glyd_object_encoder *encoder) {
  if (!encoder) return;
  const glyd_allocator a = encoder->allocator;
  glyd_alloc_put(&a, encoder->blocks);
  glyd_alloc_put(&a, encoder);
}

size_t glyd_object_encode_bound(size_t len) { return len > GLYD_OBJECT_MAX ? 0 : len + GLYD_OBJECT_HEADER_MAX; }

/* Blocks of in[0..len) after the dictionary's content; *size is 0 when they are not smaller than most. */
static glyd_status encode_blocks(glyd_object_encoder *e, const uint8_t *in, size_t len, size_t most,
                                 const uint8_t **payload, size_t *size) {
  const glyd_lz_config config = {
      .level = GLYD_LEVEL_MAX, .segment_size = (uint64_t)e->dictionary->size + len, .cpu = e->cpu};
  const uint64_t workspace = glyd_lz_encode_workspace(&config), history = e->dictionary->size;
  const uint64_t need = workspace + history + len + most;
  if (need > e->blocks_size) {
    glyd_alloc_put(&e->allocator, e->blocks);
    e->blocks_size = 0;
    e->blocks = glyd_alloc_get(&e->allocator, need);
    if (!e->blocks) return GLYD_E_MEMORY;
    e->blocks_size = need;
  }
  uint8_t *const content = e->blocks + workspace, *const out = content + history + len;
  memcpy(content, e->dictionary->content, history);
  memcpy(content + history, in, len);
  *payload = out;
  const glyd_status status = glyd_lz_encode_after(&config, e->blocks, content, history, len, out, most, size);
  if (status == GLYD_E_BUFFER) *size = 0;
  return status == GLYD_E_BUFFER ? GLYD_OK : status;
}

glyd_status glyd_object_encode(glyd_object_encoder *e, uint8_t *out, size_t cap, const uint8_t *in, size_t len,
                               size_t *out_len) {
  *out_len = 0;
  if (len > GLYD_OBJECT_MAX) return GLYD_E_PARAMETER;
  int form = GLYD_OBJECT_FORM_RAW;
  const uint8_t *payload = in;
  size_t size = len;
  if (len > 0 && len <= GLYD_OBJECT_COMPACT_MAX) {
    const size_t compact = glyd_object_encode_compact(e, in, len);
    if (compact != 0 && compact + 3 < size) {
      form = GLYD_OBJECT_FORM_COMPACT;
      payload = e->payload;
      size = compact;
    }
  }
  if (len >= BLOCKS_FROM) {
    const uint8_t *blocks;
    size_t n;
    const glyd_status status = encode_blocks(e, in, len, size - 1, &blocks, &n);
    if (status) return status;
    if (n != 0 && n + 4 < size) {
      form = GLYD_OBJECT_FORM_BLOCKS;
      payload = blocks;
      size = n;
    }
  }
  uint8_t header[GLYD_OBJECT_HEADER_MAX];
  glyd_store16(header, GLYD_OBJECT_MAGIC);
  header[2] = (uint8_t)(e->check_size / 2 | form << 2);
  glyd_store32(header + 3, e->dictionary->id);
  uint8_t *p = glyd_put_varint(header + 7, len);
  if (form != GLYD_OBJECT_FORM_RAW) p = glyd_put_varint(p, size);
  if (e->check_size != 0) {
    const uint64_t hash = glyd_checksum_xxh3(e->cpu, in, len);
    if (e->check_size == 2)
      glyd_store16(p, (uint16_t)hash);
    else
      glyd_store32(p, (uint32_t)hash);
    p += e->check_size;
  }
  const size_t header_size = (size_t)(p - header);
  if (cap < header_size || cap - header_size < size) return GLYD_E_BUFFER;
  memcpy(out, header, header_size);
  if (size > 0) memcpy(out + header_size, payload, size);
  *out_len = header_size + size;
  return GLYD_OK;
}
