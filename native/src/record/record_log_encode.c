/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Rows of logs: lines of text with numbers, times and names in it. A line's
 * skeleton is what is left when those are cut out; skeletons that are common
 * become templates. Lines with a rare skeleton are tried with more of their
 * words cut out, and then with all that follows their head as one slot.
 */
#include "record/record_rows_encode.h"

#define LEVELS 3u     /* numbers; words too; the rest of the line */
#define SLOTS_MAX 48u /* of a line */
#define TABLE_LOG 15u /* skeletons counted */
#define WORDS_KEPT 2u /* words at the start that stay in the skeleton of level 1 */
#define HEAD_SLOTS 4u /* of level 2, before the rest */
#define LINE_MAX 4096u

enum { OTHER = 0, DIGIT = 1, LETTER = 2 };

typedef struct skeleton {
  uint64_t hash;
  uint32_t count, which; /* which: template, UINT32_MAX: none */
} skeleton;

typedef struct splitter {
  glyd_record_rows *rows;
  const uint8_t *end;
  uint8_t kind[256];
  skeleton *table;
} splitter;

static uint64_t mix(uint64_t h, const uint8_t *p, size_t n) {
  for (; n >= 8; n -= 8, p += 8) {
    h = (h ^ glyd_load64(p)) * 0x9FB21C651E98DF25u;
    h ^= h >> 32;
  }
  uint64_t tail = n;
  for (size_t i = 0; i < n; i++) tail = tail << 8 | p[i];
  h = (h ^ tail) * 0x9FB21C651E98DF25u;
  return h ^ h >> 29;
}

/* Does the text follow the shape? d: a digit, a: a letter, others themselves. */
static int has_shape(const splitter *s, const uint8_t *p, const char *shape) {
  for (; *shape; shape++, p++) {
    if (p == s->end) return 0;
    if (*shape == 'd' ? s->kind[*p] != DIGIT : *shape == 'a' ? s->kind[*p] != LETTER : *shape != (char)*p) return 0;
  }
  return 1;
}

/* End of the time at p, or p. */
static const uint8_t *skip_time(const splitter *s, const uint8_t *p) {
  static const struct {
    const char *shape;
    uint32_t len;
  } shapes[] = {{"dddd-dd-dd dd:dd:dd", 19},
                {"dddd-dd-ddTdd:dd:dd", 19},
                {"dddd/dd/dd dd:dd:dd", 19},
                {"dd/aaa/dddd:dd:dd:dd", 20},
                {"dd:dd:dd", 8}};
  for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    if (!has_shape(s, p, shapes[i].shape)) continue;
    p += shapes[i].len;
    if (s->end - p > 1 && (*p == '.' || *p == ',') && s->kind[p[1]] == DIGIT) {
      const uint8_t *q = p + 1;
      while (q < s->end && s->kind[*q] == DIGIT) q++;
      if (q - p <= 7) p = q;
    }
    return p;
  }
  return p;
}

/* A month's name and a day, as syslog writes them. */
static const uint8_t *skip_month(const splitter *s, const uint8_t *p) {
  if (has_shape(s, p, "aaa  d dd:dd:dd") || has_shape(s, p, "aaa dd dd:dd:dd")) return p + 15;
  return p;
}

typedef struct line {
  glyd_record_span slot[SLOTS_MAX];
  uint32_t n;
  uint64_t hash;
  const uint8_t *next; /* line */
} line;

/* Slots and skeleton of the line at p; 0: too many slots. */
static int walk(const splitter *s, const uint8_t *p, unsigned level, line *out) {
  const uint8_t *const in = s->rows->in, *from = p, *const begin = p;
  const uint8_t *const stop = memchr(p, '\n', (size_t)(s->end - p)); /* there is one */
  uint64_t h = level;
  uint32_t n = 0, words = 0;
  out->next = stop + 1;
  if (stop - p > (ptrdiff_t)LINE_MAX) return 0;
  while (p < stop) {
    const uint8_t *const t = p;
    int is_slot = 0;
    if (level == 2 && n >= 1 && (n >= HEAD_SLOTS || (t - begin > 1 && t[-1] == ' ' && t[-2] == ':'))) {
      p = stop;
      is_slot = 1;
    } else if (s->kind[*p] != OTHER) {
      const uint8_t *const time = s->kind[*p] == DIGIT ? skip_time(s, p) : p == begin ? skip_month(s, p) : p;
      if (time > p && time <= stop) {
        p = time;
        is_slot = 1;
      } else {
        int digits = 0;
        for (; p < stop && s->kind[*p] != OTHER; p++) digits |= s->kind[*p] == DIGIT;
        is_slot = digits || (level == 1 && words >= WORDS_KEPT);
        words++;
      }
    } else if (*p == '"') {
      const uint8_t *const close = memchr(p + 1, '"', (size_t)(stop - p - 1));
      p++;
      if (close && close > p) {
        if (n == SLOTS_MAX) return 0;
        h = mix(h, from, (size_t)(p - from));
        out->slot[n++] = (glyd_record_span){(uint32_t)(p - in), (uint32_t)(close - p)};
        from = p = close;
        p++;
      }
      continue;
    } else {
      p++;
      continue;
    }
    if (!is_slot) continue;
    if (n == SLOTS_MAX) return 0;
    h = mix(h, from, (size_t)(t - from));
    out->slot[n++] = (glyd_record_span){(uint32_t)(t - in), (uint32_t)(p - t)};
    from = p;
  }
  h = mix(h, from, (size_t)(stop + 1 - from));
  out->n = n;
  out->hash = h == 0 ? 1 : h;
  return n > 0;
}

static skeleton *find(const splitter *s, uint64_t hash) {
  const uint32_t mask = (1u << TABLE_LOG) - 1;
  uint32_t k = (uint32_t)(hash >> 20) & mask;
  for (uint32_t i = 0; i < 64; i++, k = (k + 1) & mask)
    if (s->table[k].hash == hash || s->table[k].hash == 0) return &s->table[k];
  return NULL;
}

/* Count the skeletons of lines that no template takes yet. */
static void count_level(splitter *s, const uint8_t *in, unsigned level, line *l) {
  for (const uint8_t *p = in; p < s->end; p = l->next) {
    int taken = 0;
    for (unsigned q = 0; q < level && !taken; q++) {
      const skeleton *const k = walk(s, p, q, l) ? find(s, l->hash) : NULL;
      taken = k && k->hash == l->hash && k->which != UINT32_MAX;
    }
    if (taken || !walk(s, p, level, l)) continue;
    skeleton *const k = find(s, l->hash);
    if (!k) continue;
    k->hash = l->hash;
    k->which = UINT32_MAX;
    k->count++;
  }
}

/* The most common skeletons that have no template get one; literals come with their first row. */
static void take_common(splitter *s, uint32_t least, uint32_t most) {
  for (uint32_t n = 0; n < most && s->rows->n_templates < GLYD_RECORD_TEMPLATES_MAX; n++) {
    skeleton *best = NULL;
    for (uint32_t k = 0; k < 1u << TABLE_LOG; k++) {
      skeleton *const x = &s->table[k];
      if (x->hash == 0 || x->which != UINT32_MAX || x->count < least) continue;
      if (!best || x->count > best->count || (x->count == best->count && x->hash < best->hash)) best = x;
    }
    if (!best) break;
    best->which = s->rows->n_templates;
    s->rows->templates[s->rows->n_templates++] = (glyd_record_template){.literal = NULL};
  }
  for (uint32_t k = 0; k < 1u << TABLE_LOG; k++) /* rare ones make room */
    if (s->table[k].which == UINT32_MAX) s->table[k].count = 0;
}

static int set_literals(glyd_record_rows *rows, glyd_record_template *t, const uint8_t *row, const line *l) {
  t->literal = glyd_record_memory_get(rows->memory, l->n + 1, sizeof *t->literal);
  if (!t->literal) return 0;
  const uint8_t *from = row;
  for (uint32_t i = 0; i < l->n; i++) {
    const uint8_t *const at = rows->in + l->slot[i].at;
    t->literal[i] = (glyd_record_text_ref){from, (uint32_t)(at - from)};
    from = at + l->slot[i].len;
  }
  t->literal[l->n] = (glyd_record_text_ref){from, (uint32_t)(l->next - from)};
  t->n_slots = l->n;
  return 1;
}

/* Hashes may collide: a row must really have its template's literals. */
static int same_literals(const glyd_record_rows *rows, const glyd_record_template *t, const uint8_t *row,
                         const line *l) {
  if (t->n_slots != l->n) return 0;
  const uint8_t *from = row;
  for (uint32_t i = 0; i <= l->n; i++) {
    const uint8_t *const at = i < l->n ? rows->in + l->slot[i].at : l->next;
    if (t->literal[i].len != (size_t)(at - from) || memcmp(t->literal[i].p, from, t->literal[i].len) != 0) return 0;
    if (i < l->n) from = at + l->slot[i].len;
  }
  return 1;
}

static int put_rows(splitter *s, line *l) {
  glyd_record_rows *const rows = s->rows;
  for (const uint8_t *p = rows->in; p < s->end; p = l->next) {
    const uint32_t start = (uint32_t)(p - rows->in);
    uint32_t which = UINT32_MAX;
    for (unsigned level = 0; level < LEVELS && which == UINT32_MAX; level++) {
      const skeleton *const k = walk(s, p, level, l) ? find(s, l->hash) : NULL;
      if (!k || k->hash != l->hash || k->which == UINT32_MAX) continue;
      glyd_record_template *const t = &rows->templates[k->which];
      if (!t->literal && !set_literals(rows, t, p, l)) return 0;
      if (same_literals(rows, t, p, l)) which = k->which;
    }
    if (which == UINT32_MAX) {
      if (!glyd_record_rows_escape(rows, start, (uint32_t)(l->next - p))) return 0;
      continue;
    }
    if (!glyd_record_rows_room(rows, l->n)) return 0;
    memcpy(rows->fields + rows->n_fields, l->slot, l->n * sizeof *l->slot);
    glyd_record_rows_add(rows, which, start);
  }
  return 1;
}

int glyd_record_split_log(glyd_record_rows *rows) {
  uint32_t len = rows->len, lines = 0;
  while (len > 0 && rows->in[len - 1] != '\n') len--;
  splitter s = {.rows = rows, .end = rows->in + len};
  for (unsigned c = 0; c < 256; c++)
    s.kind[c] = c >= '0' && c <= '9' ? DIGIT : (c | 32) - 'a' < 26 || c == '_' || c >= 128 ? LETTER : OTHER;
  s.table = glyd_record_memory_get(rows->memory, 1u << TABLE_LOG, sizeof *s.table);
  line *const l = glyd_record_memory_get(rows->memory, 1, sizeof *l);
  if (!s.table || !l) return 0;
  memset(s.table, 0, (sizeof *s.table) << TABLE_LOG);
  for (uint32_t i = 0; i < len; i++) lines += rows->in[i] == '\n';
  static const uint32_t most[LEVELS] = {160, 60, 30};
  for (unsigned level = 0; level < LEVELS; level++) {
    count_level(&s, rows->in, level, l);
    take_common(&s, lines / 4000 > 8 ? lines / 4000 : 8, most[level]);
  }
  return put_rows(&s, l) && glyd_record_rows_escape(rows, len, rows->len - len);
}
