/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Rows of JSON: an object a line, or the objects or arrays of one level of a document.
 */
#include "record/record_rows_encode.h"

#define ARRAY_MAX 65536 /* bytes of an array that is a text */
#define LINE_END '\n'   /* what no value of an object a line has */
#define NO_BYTE 0       /* nor one of a document */

/* End of the string at p (its first quote), or NULL; never past a line end. */
static const uint8_t *json_string(const uint8_t *p, const uint8_t *end) {
  for (p++; p < end; p++) {
    if (*p == '"') return p + 1;
    if (*p == '\n') return NULL;
    if (*p == '\\') {
      p++;
      if (p < end && *p == '\n') return NULL;
    }
  }
  return NULL;
}

/* End of the array at p, strings in it skipped. stop: a byte that may not come up in it. */
static const uint8_t *json_array(const uint8_t *p, const uint8_t *end, uint8_t stop) {
  uint32_t depth = 0;
  if (end - p > ARRAY_MAX) end = p + ARRAY_MAX;
  while (p < end && *p != stop) {
    if (*p == '"') {
      p = json_string(p, end);
      if (!p) return NULL;
      continue;
    }
    if (*p == '[' || *p == '{') depth++;
    if (*p == ']' || *p == '}') {
      if (--depth == 0) return p + 1;
    }
    p++;
  }
  return NULL;
}

static const uint8_t *json_value(const uint8_t *p, const uint8_t *end, uint8_t stop) {
  if (*p == '"') return json_string(p, end);
  if (*p == '[') return json_array(p, end, stop);
  while (p < end && *p != ',' && *p != '}' && *p != ']' && *p != ' ' && *p != '\t' && *p != '\r' && *p != '\n') p++;
  return p;
}

/* Is the row like this template? Its fields, and the row's end, or NULL. */
static const uint8_t *match_template(const glyd_record_template *t, const uint8_t *in, const uint8_t *p,
                                     const uint8_t *end, uint8_t stop, glyd_record_span *f) {
  for (uint32_t i = 0;; i++) {
    const uint32_t n = t->literal[i].len;
    if (n > (size_t)(end - p) || !glyd_record_same(p, t->literal[i].p, n)) return NULL;
    p += n;
    if (i == t->n_slots) return p;
    if (p == end) return NULL;
    const uint8_t *const s = p;
    p = json_value(p, end, stop);
    if (!p || p == s) return NULL;
    f[i] = (glyd_record_span){(uint32_t)(s - in), (uint32_t)(p - s)};
  }
}

uint64_t glyd_record_json_mix(uint64_t h, const uint8_t *p, size_t n) {
  for (; n >= 8; n -= 8, p += 8) {
    h = (h ^ glyd_load64(p)) * 0x9FB21C651E98DF25u;
    h ^= h >> 32;
  }
  uint64_t tail = n;
  for (size_t i = 0; i < n; i++) tail = tail << 8 | p[i];
  h = (h ^ tail) * 0x9FB21C651E98DF25u;
  return h ^ h >> 29;
}

uint32_t glyd_record_walk_object(const uint8_t *in, const uint8_t *p, const uint8_t *end, glyd_record_span *f,
                                 uint64_t *hash, const uint8_t **after) {
  uint32_t n = 0, depth = 0;
  uint64_t h = 0;
  const uint8_t *from = p;
  if (*p != '{') return UINT32_MAX;
  while (p < end) {
    switch (*p) {
    case '\n':
      *hash = glyd_record_json_mix(h, from, (size_t)(p + 1 - from));
      *after = p + 1;
      return depth == 0 && n > 0 ? n : UINT32_MAX;
    case '{':
      depth++;
      p++;
      break;
    case '}':
      depth--;
      p++;
      break;
    case '"': /* a key */
      p = json_string(p, end);
      if (!p) return UINT32_MAX;
      break;
    case ':': {
      p++;
      while (p < end && (*p == ' ' || *p == '\t')) p++;
      if (p == end || *p == '{') break;
      const uint8_t *const s = p;
      p = json_value(p, end, LINE_END);
      if (!p || p == s || n == GLYD_RECORD_SLOTS_MAX) return UINT32_MAX;
      h = glyd_record_json_mix(h, from, (size_t)(s - from));
      f[n++] = (glyd_record_span){(uint32_t)(s - in), (uint32_t)(p - s)};
      from = p;
      break;
    }
    case ',':
    case ' ':
    case '\t':
    case '\r': p++; break;
    default: return UINT32_MAX;
    }
  }
  return UINT32_MAX;
}

static glyd_record_template *new_object(glyd_record_rows *rows, const glyd_record_span *f, uint32_t n, uint64_t hash,
                                        const uint8_t *row, const uint8_t *after) {
  glyd_record_template *const t = glyd_record_rows_template(rows, n);
  if (!t) return NULL;
  t->hash = hash;
  const uint8_t *from = row;
  for (uint32_t i = 0; i < n; i++) {
    const uint8_t *const s = rows->in + f[i].at;
    t->literal[i] = (glyd_record_text_ref){from, (uint32_t)(s - from)};
    from = s + f[i].len;
  }
  t->literal[n] = (glyd_record_text_ref){from, (uint32_t)(after - from)};
  if (after - row > GLYD_RECORD_LITERAL_MAX / 2) { /* too much text for a template */
    rows->n_templates--;
    return NULL;
  }
  return t;
}

int glyd_record_split_json(glyd_record_rows *rows) {
  const uint8_t *const in = rows->in;
  const uint32_t len = glyd_record_rows_after_last_line(rows);
  const uint8_t *const end = in + len, *p = in;
  uint32_t before = 0, misses = 0;
  while (p < end) {
    const uint32_t start = (uint32_t)(p - in);
    if (!glyd_record_rows_room(rows, GLYD_RECORD_SLOTS_MAX)) return 0;
    glyd_record_span *const f = rows->fields + rows->n_fields;
    if (rows->n_templates > 0) {
      const uint32_t guess = rows->templates[before].next;
      const uint8_t *const after = match_template(&rows->templates[guess], in, p, end, LINE_END, f);
      if (after) {
        glyd_record_rows_add(rows, guess, start);
        before = guess;
        p = after;
        continue;
      }
    }
    uint64_t hash = 0;
    const uint8_t *after = NULL;
    const uint32_t n = glyd_record_walk_object(in, p, end, f, &hash, &after);
    uint32_t which = UINT32_MAX;
    if (n != UINT32_MAX) {
      for (uint32_t t = 0; t < rows->n_templates; t++)
        if (rows->templates[t].hash == hash && rows->templates[t].n_slots == n &&
            match_template(&rows->templates[t], in, p, end, LINE_END, f) == after) {
          which = t;
          break;
        }
      if (which == UINT32_MAX && new_object(rows, f, n, hash, p, after)) which = rows->n_templates - 1;
    }
    if (which == UINT32_MAX) {
      const uint8_t *const q = memchr(p, '\n', (size_t)(end - p));
      if (!glyd_record_rows_escape(rows, start, (uint32_t)(q + 1 - p))) return 0;
      if (++misses > 4096 && misses > 4 * rows->n) return 0;
      p = q + 1;
      continue;
    }
    rows->templates[before].next = which;
    before = which;
    glyd_record_rows_add(rows, which, start);
    p = after;
  }
  return glyd_record_rows_escape(rows, len, rows->len - len);
}

/* ---- documents ---- */

#define LEVELS 64u      /* of nesting, those the content may begin in included */
#define LEVEL_START 32u /* that of its first byte */
#define CONTAINERS_LEAST 32u
#define CONTAINER_MOST 4096u /* bytes, as a mean */
#define ROW_MAX 16384        /* bytes of a row, nested containers included */
#define NESTED_MAX 16u       /* levels in a row */
#define FEW_NUMBERS 4u       /* in an array of numbers that is not kept as one text */

static const uint8_t *skip_json_space(const uint8_t *p, const uint8_t *end) {
  while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
  return p;
}

/* After the string that p is in, or the end. */
static const uint8_t *skip_string(const uint8_t *p, const uint8_t *end) {
  for (; p < end; p++) {
    if (*p == '"') return p + 1;
    if (*p == '\\' && ++p == end) break;
  }
  return end;
}

/* What there is of each level. */
typedef struct json_level {
  uint32_t n, number_n; /* objects and arrays; arrays of nothing but numbers */
  uint64_t bytes, number_bytes;
} json_level;

/* The level whose objects or arrays are rows, or LEVELS: there is none. */
static unsigned find_level(const uint8_t *in, const uint8_t *end) {
  json_level levels[LEVELS] = {{0}};
  const uint8_t *open[LEVELS] = {NULL};
  uint8_t numbers[LEVELS + 1] = {0};
  unsigned depth = LEVEL_START;
  const uint64_t len = (uint64_t)(end - in);
  for (const uint8_t *p = in; p < end;) {
    const uint8_t c = *p;
    if (c == '"') {
      numbers[depth] = 0;
      p = skip_string(p + 1, end);
      continue;
    }
    if (c == '[' || c == '{') {
      if (depth + 1 == LEVELS) return LEVELS;
      numbers[depth] = 0;
      open[depth++] = p;
      numbers[depth] = c == '[';
    } else if (c == ']' || c == '}') {
      if (depth == 0) return LEVELS;
      depth--;
      if (open[depth]) {
        const uint64_t size = (uint64_t)(p + 1 - open[depth]);
        levels[depth].n++;
        levels[depth].bytes += size;
        if (numbers[depth + 1]) {
          levels[depth].number_n++;
          levels[depth].number_bytes += size;
        }
      }
    }
    p++;
  }
  for (unsigned k = LEVELS; k-- > 0;)
    if (levels[k].number_n > 2 * CONTAINERS_LEAST && levels[k].number_bytes * 10 > len * 7 &&
        levels[k].number_bytes < (uint64_t)levels[k].number_n * CONTAINER_MOST)
      return k;
  for (unsigned k = 0; k < LEVELS; k++)
    if (levels[k].n > CONTAINERS_LEAST && levels[k].bytes * 2 > len &&
        levels[k].bytes < (uint64_t)levels[k].n * CONTAINER_MOST)
      return k;
  return LEVELS;
}

/* Is the array at p one of a few numbers? */
static int has_few_numbers(const uint8_t *p, const uint8_t *end) {
  unsigned n = 1;
  for (p++; p < end; p++) {
    if (*p == ']') return n <= FEW_NUMBERS;
    n += *p == ',';
    if (n > FEW_NUMBERS || *p == '"' || *p == '[' || *p == '{') return 0;
  }
  return 0;
}

/* A row as it is being taken apart. */
typedef struct json_row {
  const uint8_t *in, *from; /* from: the end of the field before */
  glyd_record_span *f;
  uint32_t n;
  uint64_t hash;
} json_row;

/* The field [s, p) ends here. 0: too many. */
static int put_field(json_row *row, const uint8_t *s, const uint8_t *p) {
  if (row->n == GLYD_RECORD_SLOTS_MAX - 1) return 0;
  row->hash = glyd_record_json_mix(row->hash, row->from, (size_t)(s - row->from));
  row->f[row->n++] = (glyd_record_span){(uint32_t)(s - row->in), (uint32_t)(p - s)};
  row->from = p;
  return 1;
}

/* What comes before the object or array of a row: a comma, and its key. NULL: something else. */
static const uint8_t *before_container(json_row *row, const uint8_t *p, const uint8_t *end) {
  p = skip_json_space(p, end);
  if (p < end && *p == ',') p = skip_json_space(p + 1, end);
  if (p < end && *p == '"') {
    const uint8_t *const s = p;
    p = json_string(p, end);
    if (!p || !put_field(row, s, p)) return NULL;
    p = skip_json_space(p, end);
    if (p == end || *p != ':') return NULL;
    p = skip_json_space(p + 1, end);
  }
  return p < end && (*p == '{' || *p == '[') ? p : NULL;
}

/* Fields of an object or array and of what it has in it, and what is before it. Its end, or NULL. */
static const uint8_t *walk_container(json_row *row, const uint8_t *p, const uint8_t *end) {
  uint8_t kind[NESTED_MAX];
  uint32_t depth = 0;
  int key = 0; /* a key may come */
  if (end - p > ROW_MAX) end = p + ROW_MAX;
  p = before_container(row, p, end);
  while (p && p < end) {
    switch (*p) {
    case '{':
      if (depth == NESTED_MAX) return NULL;
      kind[depth++] = '{';
      key = 1;
      p++;
      break;
    case '[':
      if (depth > 0 && !has_few_numbers(p, end)) {
        const uint8_t *const s = p;
        p = json_array(p, end, NO_BYTE);
        if (!p || !put_field(row, s, p)) return NULL;
        break;
      }
      if (depth == NESTED_MAX) return NULL;
      kind[depth++] = '[';
      key = 0;
      p++;
      break;
    case '}':
    case ']':
      if (kind[depth - 1] != *p - 2) return NULL; /* { and }, [ and ] are two apart */
      p++;
      if (--depth > 0) break;
      row->hash = glyd_record_json_mix(row->hash, row->from, (size_t)(p - row->from));
      return p;
    case ',':
      key = kind[depth - 1] == '{';
      p++;
      break;
    case ':':
      key = 0;
      p++;
      break;
    case ' ':
    case '\t':
    case '\r':
    case '\n': p++; break;
    default: {
      const uint8_t *const s = p;
      p = json_value(p, end, NO_BYTE);
      if (!p || p == s || (key && *s != '"') || (!key && !put_field(row, s, p))) return NULL;
    }
    }
  }
  return NULL;
}

/* The next place at this level from p, which is there itself: after the object or array that
 * begins next if skip is set, before it if not; or the end. */
static const uint8_t *next_place(const uint8_t *p, const uint8_t *end, unsigned depth, unsigned level, int skip) {
  while (p < end) {
    const uint8_t c = *p;
    if (c == '"') {
      p = skip_string(p + 1, end);
      continue;
    }
    if (c == '[' || c == '{') {
      if (depth == level && !skip) return p;
      depth++;
      skip = 0;
    } else if (c == ']' || c == '}') {
      if (depth == 0) return end;
      if (--depth == level) return p + 1;
    }
    p++;
  }
  return end;
}

/* Of the strings at the start, how many are not followed by what may follow one? inside: it begins in one. */
static uint32_t count_odd_strings(const uint8_t *p, const uint8_t *end, int inside) {
  uint32_t odd = 0;
  if (end - p > ROW_MAX) end = p + ROW_MAX;
  while (p < end) {
    if (!inside && *p++ != '"') continue;
    inside = 0;
    p = skip_string(p, end);
    const uint8_t *const q = skip_json_space(p, end);
    odd += q < end && *q != ',' && *q != ':' && *q != ']' && *q != '}';
  }
  return odd;
}

int glyd_record_split_document(glyd_record_rows *rows) {
  const uint8_t *const in = rows->in, *const end = in + rows->len;
  /* a segment of a long document may begin in a string */
  const int inside = count_odd_strings(in, end, 1) < count_odd_strings(in, end, 0);
  const uint8_t *p = inside ? skip_string(in, end) : in;
  const unsigned level = find_level(p, end);
  if (level == LEVELS) return 0;
  p = next_place(p, end, LEVEL_START, level, 0);
  uint32_t before = 0;
  uint64_t lost = 0, kept = 0; /* bytes looked at that are no row; of rows */
  if (!glyd_record_rows_escape(rows, 0, (uint32_t)(p - in))) return 0;
  while (p < end) {
    const uint32_t start = (uint32_t)(p - in);
    if (!glyd_record_rows_room(rows, GLYD_RECORD_SLOTS_MAX)) return 0;
    glyd_record_span *const f = rows->fields + rows->n_fields;
    const uint8_t *after = NULL;
    uint32_t which = rows->n_templates > 0 ? rows->templates[before].next : UINT32_MAX;
    if (which != UINT32_MAX) after = match_template(&rows->templates[which], in, p, end, NO_BYTE, f);
    if (!after) {
      json_row row = {in, p, f, 0, 0};
      after = walk_container(&row, p, end);
      which = UINT32_MAX;
      for (uint32_t t = 0; after && t < rows->n_templates && which == UINT32_MAX; t++)
        if (rows->templates[t].hash == row.hash && rows->templates[t].n_slots == row.n &&
            match_template(&rows->templates[t], in, p, end, NO_BYTE, f) == after)
          which = t;
      if (after && which == UINT32_MAX && new_object(rows, f, row.n, row.hash, p, after)) which = rows->n_templates - 1;
    }
    if (which == UINT32_MAX) {
      lost += ROW_MAX;
      const uint8_t *const q = next_place(p, end, level, level, 1);
      if (lost > 4 * kept + ((uint64_t)4 << 20) || !glyd_record_rows_escape(rows, start, (uint32_t)(q - p))) return 0;
      p = q;
      continue;
    }
    rows->templates[before].next = which;
    before = which;
    glyd_record_rows_add(rows, which, start);
    kept += (uint64_t)(after - p);
    p = after;
  }
  return kept * 2 > rows->len;
}
