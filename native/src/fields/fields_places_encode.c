/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Headers are read as far as it is needed, and what is odd is passed over: a
 * wrong place costs a little time.
 */
#include "fields/fields_places_encode.h"

#include <stdlib.h>

#include "common/alloc.h"
#include "common/mem.h"
#include "fields/fields_choose_encode.h"

#define DIGITS_MAX 18

typedef struct span {
  const uint8_t *at, *end;
} span;

typedef struct named {
  uint64_t key;
  uint64_t begin, end;
} named;

/* Tensors of a header, under their names and under these less what is before the first dot. */
typedef struct list {
  named *of; /* NULL: they are counted only */
  size_t n, most;
} list;

static uint64_t hash_of(const uint8_t *name, size_t len) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < len; i++) hash = (hash ^ name[i]) * 0x100000001B3u;
  return hash;
}

static void skip_space(span *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r')) s->at++;
}

/* A text, from its quote on; 0: it does not end. */
static int read_text(span *s, span *text) {
  text->at = ++s->at;
  while (s->at < s->end && *s->at != '"') s->at += *s->at == '\\' ? 2 : 1;
  if (s->at >= s->end) return 0;
  text->end = s->at++;
  return 1;
}

static int read_number(span *s, uint64_t *v) {
  skip_space(s);
  *v = 0;
  int n = 0;
  for (; s->at < s->end && *s->at >= '0' && *s->at <= '9' && n < DIGITS_MAX; n++) *v = *v * 10 + *s->at++ - '0';
  skip_space(s);
  return n > 0 && s->at < s->end;
}

/* [a, b], after a colon. */
static int read_offsets(span s, uint64_t *begin, uint64_t *end) {
  skip_space(&s);
  if (s.at >= s.end || *s.at++ != ':') return 0;
  skip_space(&s);
  if (s.at >= s.end || *s.at++ != '[') return 0;
  return read_number(&s, begin) && *s.at++ == ',' && read_number(&s, end) && *s.at == ']' && *begin <= *end;
}

/* Pass over a value; 1: it has offsets, 0: none, -1: it does not end. */
static int read_value(span *s, uint64_t *begin, uint64_t *end) {
  static const char offsets[] = "data_offsets";
  int found = 0;
  for (unsigned depth = 0; s->at < s->end;) {
    const uint8_t c = *s->at;
    if (c == '"') {
      span text;
      if (!read_text(s, &text)) return -1;
      if (depth == 1 && (size_t)(text.end - text.at) == sizeof offsets - 1 &&
          memcmp(text.at, offsets, sizeof offsets - 1) == 0)
        found = read_offsets(*s, begin, end);
      continue;
    }
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) return found;
    depth += c == '{' || c == '[';
    depth -= c == '}' || c == ']';
    s->at++;
  }
  return -1;
}

static void add_name(list *l, const uint8_t *name, size_t len, uint64_t begin, uint64_t end) {
  if (l->n == l->most) return;
  if (l->of) l->of[l->n] = (named){hash_of(name, len), begin, end};
  l->n++;
}

static void add(list *l, span name, uint64_t begin, uint64_t end) {
  const uint8_t *const dot = memchr(name.at, '.', (size_t)(name.end - name.at));
  add_name(l, name.at, (size_t)(name.end - name.at), begin, end);
  if (dot) add_name(l, dot + 1, (size_t)(name.end - dot) - 1, begin, end);
}

/* Add what a header has; it and its data start at from. Returns where the data
 * ends; 0: this is no header, or it does not end within size. */
static uint64_t read_header(list *l, const uint8_t *file, uint64_t from, uint64_t size) {
  const uint64_t left = size - from;
  const uint64_t data = glyd_fields_safetensors_data(file + from, left < SIZE_MAX ? (size_t)left : SIZE_MAX);
  if (data == 0 || data > left) return 0;
  span s = {file + from + 9, file + from + data};
  uint64_t most = 0;
  for (;;) {
    skip_space(&s);
    if (s.at < s.end && *s.at == ',') {
      s.at++;
      skip_space(&s);
    }
    span name;
    if (s.at >= s.end || *s.at != '"' || !read_text(&s, &name)) break;
    skip_space(&s);
    if (s.at >= s.end || *s.at++ != ':') break;
    uint64_t begin = 0, end = 0;
    const int has = read_value(&s, &begin, &end);
    if (has < 0) break;
    if (!has) continue;
    add(l, name, from + data + begin, from + data + end);
    if (most < end) most = end;
  }
  return from + data + most;
}

static void read_all(list *l, const uint8_t *file, uint64_t size) {
  l->n = 0;
  for (uint64_t at = 0, next; at < size; at = next)
    if ((next = read_header(l, file, at, size)) == 0) return;
}

static int compare_named(const void *a, const void *b) {
  const named *const x = a, *const y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int compare_places(const void *a, const void *b) {
  const glyd_fields_place *const x = a, *const y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

static const named *find(const list *l, uint64_t key) {
  size_t low = 0, high = l->n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (l->of[middle].key < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low < l->n && l->of[low].key == key ? &l->of[low] : NULL;
}

/* A tensor of the content has one or two entries, the one under its whole name first. */
static size_t match(const list *content, const list *older, glyd_fields_place *out) {
  size_t n = 0;
  for (size_t i = 0; i < content->n; i++) {
    const named *const c = &content->of[i];
    if (n > 0 && out[n - 1].begin == c->begin && out[n - 1].end == c->end) continue;
    const named *const o = find(older, c->key);
    if (!o || c->begin == c->end) continue;
    const uint64_t common = o->end - o->begin < c->end - c->begin ? o->end - o->begin : c->end - c->begin;
    out[n++] = (glyd_fields_place){c->begin, c->begin + common, o->begin};
  }
  return n;
}

/* Names of the base, and as many times more of the content are looked at: of more than that, most are not in the base. */
#define CONTENT_SHARE 2u

/* Bytes for the places, and for the names until they are made. */
static uint64_t places_size(size_t n) { return sizeof(glyd_fields_places) + n * sizeof(glyd_fields_place); }
static uint64_t names_size(size_t content, size_t base) { return (uint64_t)(content + base) * sizeof(named); }

static size_t count_names(const uint8_t *older, uint64_t older_size) {
  list base = {NULL, 0, SIZE_MAX / sizeof(named) / (CONTENT_SHARE + 1)};
  read_all(&base, older, older_size);
  return base.n;
}

uint64_t glyd_fields_places_memory(const uint8_t *older, uint64_t older_size) {
  const size_t n = count_names(older, older_size);
  if (n == 0) return 0;
  return places_size(CONTENT_SHARE * n) + names_size(CONTENT_SHARE * n, n) + 2 * GLYD_ALLOC_OVERHEAD;
}

glyd_status glyd_fields_places_make(glyd_fields_places **places, const uint8_t *in, size_t len, const uint8_t *older,
                                    uint64_t older_size, const glyd_allocator *allocator) {
  *places = NULL;
  list base = {NULL, 0, count_names(older, older_size)}, content = {NULL, 0, CONTENT_SHARE * base.most};
  if (base.most == 0 || read_header(&content, in, 0, len) == 0 || content.n == 0) return GLYD_OK;
  content.most = content.n;
  content.of = glyd_alloc_get(allocator, names_size(content.most, base.most));
  *places = glyd_alloc_get(allocator, places_size(content.most));
  if (!content.of || !*places) {
    glyd_alloc_put(allocator, content.of);
    glyd_alloc_put(allocator, *places);
    *places = NULL;
    return GLYD_E_MEMORY;
  }
  base.of = content.of + content.most;
  content.n = 0;
  (void)read_header(&content, in, 0, len);
  read_all(&base, older, older_size);
  qsort(base.of, base.n, sizeof *base.of, compare_named);
  (*places)->n = match(&content, &base, (*places)->of);
  qsort((*places)->of, (*places)->n, sizeof *(*places)->of, compare_places);
  glyd_alloc_put(allocator, content.of);
  return GLYD_OK;
}

int glyd_fields_places_shift(const glyd_fields_places *places, uint64_t at, int64_t *shift) {
  size_t low = 0, high = places ? places->n : 0; /* of the first that starts after at */
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (places->of[middle].begin <= at)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0 || at >= places->of[low - 1].end) return 0;
  *shift = (int64_t)places->of[low - 1].older - (int64_t)places->of[low - 1].begin;
  return 1;
}
