/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Rows of JSON lines whose keys vary, in number or order: a template for each set of keys
 * would tear a key's values apart. A row is a piece of a line: the values, with the text
 * before each, that always follow one another. So a key has one column, or two.
 */
#include "record/record_rows_encode.h"

#define KINDS_LOG 10u
#define KINDS_MAX 600u /* of text before values, counted */
#define NONE UINT32_MAX
#define MANY (UINT32_MAX - 1)
#define VARIED 8u /* sets of keys in a sample that are many */

/* The text before a value, or at the end of a line. */
typedef struct kind {
  uint64_t hash;
  glyd_record_text_ref text;
  uint32_t after, before; /* the only kind that comes after, or before it; NONE: a line's end, or start; MANY */
  int seen, ends;
  uint32_t alone, chain; /* templates, NONE: not made yet */
} kind;

typedef struct pieces {
  glyd_record_rows *rows;
  const uint8_t *end;
  kind *kinds;
  uint32_t n_kinds;
  uint16_t *table;                                   /* 1 + kind, by hash */
  uint32_t of[GLYD_RECORD_SLOTS_MAX + 1];            /* kinds of a line, NONE: not counted */
  glyd_record_span value[GLYD_RECORD_SLOTS_MAX + 1]; /* the last is the empty one at the line's end */
  const uint8_t *from[GLYD_RECORD_SLOTS_MAX + 1];    /* where the text before each begins */
  uint32_t n;
} pieces;

/* The kind of a text; NONE: there are too many. */
static uint32_t find_kind(pieces *x, const uint8_t *p, uint32_t n, int ends) {
  uint64_t h = glyd_record_json_mix(ends ? 5 : 3, p, n);
  uint32_t k = (uint32_t)(h >> 20) & ((1u << KINDS_LOG) - 1);
  for (; x->table[k] != 0; k = (k + 1) & ((1u << KINDS_LOG) - 1)) {
    const kind *const t = &x->kinds[x->table[k] - 1];
    if (t->hash == h && t->ends == ends && t->text.len == n && glyd_record_same(t->text.p, p, n))
      return x->table[k] - 1u;
  }
  if (x->n_kinds == KINDS_MAX) return NONE;
  x->kinds[x->n_kinds] = (kind){.hash = h, .text = {p, n}, .ends = ends, .alone = NONE, .chain = NONE};
  x->table[k] = (uint16_t)(++x->n_kinds);
  return x->n_kinds - 1;
}

/* The values of the line at p and the kinds of text before them; its end, or NULL: it is no object. */
static const uint8_t *walk_line(pieces *x, const uint8_t *p) {
  const uint8_t *after = NULL, *from = p;
  uint64_t hash;
  const uint8_t *const in = x->rows->in;
  const uint32_t n = glyd_record_walk_object(in, p, x->end, x->value, &hash, &after);
  if (n == UINT32_MAX) return NULL;
  for (uint32_t i = 0; i < n; i++) {
    const uint8_t *const s = in + x->value[i].at;
    x->from[i] = from;
    x->of[i] = find_kind(x, from, (uint32_t)(s - from), 0);
    from = s + x->value[i].len;
  }
  x->from[n] = from;
  x->of[n] = find_kind(x, from, (uint32_t)(after - from), 1);
  x->value[n] = (glyd_record_span){(uint32_t)(after - in), 0};
  x->n = n + 1;
  return after;
}

static void count_neighbours(pieces *x) {
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->of[i] == NONE) continue;
    kind *const k = &x->kinds[x->of[i]];
    const uint32_t before = i > 0 ? x->of[i - 1] : NONE, after = i + 1 < x->n ? x->of[i + 1] : NONE;
    k->before = !k->seen || k->before == before ? before : MANY;
    k->after = !k->seen || k->after == after ? after : MANY;
    k->seen = 1;
  }
}

/* Does b always follow a, and nothing else? */
static int is_link(const pieces *x, uint32_t a, uint32_t b) {
  return a < x->n_kinds && b < x->n_kinds && x->kinds[a].after == b && x->kinds[b].before == a;
}

/* Kinds of the chain that begins at place i of the line, 1: none does. */
static uint32_t chain_length(const pieces *x, uint32_t i) {
  uint32_t n = 1;
  while (i + n < x->n && is_link(x, x->of[i + n - 1], x->of[i + n])) n++;
  /* the whole of it, or it is not the one that the template has */
  const uint32_t first = x->of[i], last = x->of[i + n - 1];
  return is_link(x, last, x->kinds[last].after) || is_link(x, x->kinds[first].before, first) ? 1 : n;
}

/* A template of n kinds from place i on, NONE: there is no more room. */
static uint32_t new_template(pieces *x, uint32_t i, uint32_t n) {
  const kind *const last = &x->kinds[x->of[i + n - 1]];
  const uint32_t slots = n - (uint32_t)last->ends;
  glyd_record_template *const t = glyd_record_rows_template(x->rows, slots);
  if (!t) return NONE;
  for (uint32_t k = 0; k < n; k++) t->literal[k] = x->kinds[x->of[i + k]].text;
  if (!last->ends) t->literal[slots] = (glyd_record_text_ref){last->text.p, 0};
  return x->rows->n_templates - 1;
}

/* The line as rows. 0: too much of it. */
static int put_line(pieces *x) {
  glyd_record_rows *const rows = x->rows;
  for (uint32_t i = 0; i < x->n;) {
    const uint32_t start = (uint32_t)(x->from[i] - rows->in);
    uint32_t n = 1, which = NONE;
    if (x->of[i] != NONE) {
      kind *const k = &x->kinds[x->of[i]];
      n = chain_length(x, i);
      uint32_t *const template = n > 1 ? &k->chain : &k->alone;
      if (*template == NONE) *template = new_template(x, i, n);
      which = *template;
    }
    const glyd_record_span last = x->value[i + n - 1];
    if (which == NONE) {
      if (!glyd_record_rows_escape(rows, start, last.at + last.len - start)) return 0;
    } else {
      if (!glyd_record_rows_room(rows, n)) return 0;
      memcpy(rows->fields + rows->n_fields, x->value + i, rows->templates[which].n_slots * sizeof *x->value);
      glyd_record_rows_add(rows, which, start);
    }
    i += n;
  }
  return 1;
}

static pieces *new_pieces(glyd_record_rows *rows) {
  pieces *const x = glyd_record_memory_get(rows->memory, 1, sizeof *x);
  if (!x) return NULL;
  *x = (pieces){.rows = rows, .end = rows->in + glyd_record_rows_after_last_line(rows)};
  x->kinds = glyd_record_memory_get(rows->memory, KINDS_MAX, sizeof *x->kinds);
  x->table = glyd_record_memory_get(rows->memory, (uint64_t)1 << KINDS_LOG, sizeof *x->table);
  if (!x->kinds || !x->table) return NULL;
  memset(x->table, 0, sizeof *x->table << KINDS_LOG);
  return x;
}

int glyd_record_split_pieces(glyd_record_rows *rows) {
  pieces *const x = new_pieces(rows);
  if (!x) return 0;
  for (unsigned pass = 0; pass < 2; pass++)
    for (const uint8_t *p = rows->in, *next; p < x->end; p = next) {
      next = walk_line(x, p);
      if (next) {
        if (pass == 0)
          count_neighbours(x);
        else if (!put_line(x))
          return 0;
        continue;
      }
      next = (const uint8_t *)memchr(p, '\n', (size_t)(x->end - p)) + 1;
      if (pass == 1 && !glyd_record_rows_escape(rows, (uint32_t)(p - rows->in), (uint32_t)(next - p))) return 0;
    }
  const uint32_t len = (uint32_t)(x->end - rows->in);
  return glyd_record_rows_escape(rows, len, rows->len - len);
}

int glyd_record_keys_vary(const uint8_t *in, uint32_t len) {
  const uint32_t n = len < GLYD_RECORD_SAMPLE ? len : GLYD_RECORD_SAMPLE;
  const uint8_t *p = in + (len - n) / 2, *end = p + n;
  uint64_t seen[VARIED];
  glyd_record_span value[GLYD_RECORD_SLOTS_MAX];
  uint32_t n_seen = 0;
  while (end > p && end[-1] != '\n') end--;
  while (p < end && n_seen < VARIED) {
    const uint8_t *const line = memchr(p, '\n', (size_t)(end - p));
    uint64_t hash;
    const uint8_t *after;
    p = line + 1;
    if (p == end || glyd_record_walk_object(in, p, end, value, &hash, &after) == UINT32_MAX) continue;
    uint32_t k = 0;
    while (k < n_seen && seen[k] != hash) k++;
    if (k == n_seen) seen[n_seen++] = hash;
  }
  return n_seen == VARIED;
}
