/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Rows of delimited lines, lines of columns and SQL INSERT lists. No scan goes past
 * the last line end of the content, where every scan stops.
 */
#include "record/record_rows_encode.h"

#define QUOTED_MAX 65536u /* bytes a quoted value may have, so that an unclosed one costs little */

/* ---- delimited ---- */

/* End of the quoted field at p, or NULL: it is none. */
static const uint8_t *quoted_field(const uint8_t *p, const uint8_t *end, uint8_t separator) {
  const uint8_t *const most = (size_t)(end - p) > QUOTED_MAX ? p + QUOTED_MAX : end;
  for (p++; p < most; p++) {
    p = memchr(p, '"', (size_t)(most - p));
    if (!p) return NULL;
    const uint8_t next = p + 1 < end ? p[1] : '\n';
    if (next == '"') {
      p++;
      continue;
    }
    return next == separator || next == '\n' || next == '\r' ? p + 1 : NULL;
  }
  return NULL;
}

#define HEADER_ROWS 8u /* among which the line of names is looked for */

static uint32_t count_numbers(const glyd_record_rows *rows, uint32_t r) {
  const uint32_t n = rows->templates[rows->which[r]].n_slots;
  uint32_t numbers = 0;
  for (uint32_t i = 0; i < n; i++) {
    const glyd_record_span f = rows->fields[rows->first[r] + i];
    const uint8_t c = f.len > 0 ? rows->in[f.at + (f.len > 1 && (rows->in[f.at] == '"' || rows->in[f.at] == '-'))] : 0;
    numbers += c >= '0' && c <= '9';
  }
  return numbers;
}

/* A line of names only, at the start and above lines with numbers, is no row:
 * its number, or UINT32_MAX. */
static uint32_t find_header(const glyd_record_rows *rows) {
  for (uint32_t r = 0; r < HEADER_ROWS && r + 1 < rows->n; r++) {
    const uint32_t which = rows->which[r];
    if (rows->templates[which].rows * 2 < rows->n) continue; /* a line above the table */
    return which == rows->which[r + 1] && count_numbers(rows, r) == 0 && count_numbers(rows, r + 1) > 0 ? r
                                                                                                        : UINT32_MAX;
  }
  return UINT32_MAX;
}

static glyd_record_template *new_delimited(glyd_record_rows *rows, uint32_t n_slots, const uint8_t *separator) {
  glyd_record_template *const t = glyd_record_rows_template(rows, n_slots);
  if (!t) return NULL;
  static const uint8_t line_end[1] = {'\n'};
  t->literal[0] = (glyd_record_text_ref){line_end, 0};
  for (uint32_t i = 1; i < n_slots; i++) t->literal[i] = (glyd_record_text_ref){separator, 1};
  t->literal[n_slots] = (glyd_record_text_ref){line_end, 1};
  return t;
}

int glyd_record_split_delimited(glyd_record_rows *rows, uint8_t separator) {
  const uint8_t *const in = rows->in;
  const uint32_t len = glyd_record_rows_after_last_line(rows);
  const uint8_t *const end = in + len, *p = in, *a_separator = NULL;
  uint8_t stop[256] = {0};
  uint16_t by_count[GLYD_RECORD_SLOTS_MAX + 1];
  stop[separator] = stop['\n'] = 1;
  memset(by_count, 0xFF, sizeof by_count);
  while (p < end) {
    const uint8_t *const row = p;
    uint32_t n = 0;
    glyd_record_span *const f = rows->fields + rows->n_fields;
    if (!glyd_record_rows_room(rows, GLYD_RECORD_SLOTS_MAX)) return 0;
    for (;;) {
      const uint8_t *const s = p;
      const uint8_t *const q = *p == '"' ? quoted_field(p, end, separator) : NULL;
      if (q) p = q;
      while (p < end && !stop[*p]) p++;
      if (n < GLYD_RECORD_SLOTS_MAX) f[n] = (glyd_record_span){(uint32_t)(s - in), (uint32_t)(p - s)};
      n++;
      if (p == end || *p == '\n') break;
      a_separator = p++;
      if (p == end) break;
    }
    if (p < end) p++;
    const uint32_t start = (uint32_t)(row - in), size = (uint32_t)(p - row);
    if (n < 2 || n > GLYD_RECORD_SLOTS_MAX || p[-1] != '\n') {
      if (!glyd_record_rows_escape(rows, start, size)) return 0;
      continue;
    }
    if (by_count[n] == UINT16_MAX && new_delimited(rows, n, a_separator))
      by_count[n] = (uint16_t)(rows->n_templates - 1);
    if (by_count[n] != UINT16_MAX)
      glyd_record_rows_add(rows, by_count[n], start);
    else if (!glyd_record_rows_escape(rows, start, size))
      return 0;
  }
  if (!glyd_record_rows_escape(rows, len, rows->len - len)) return 0;
  const uint32_t header = find_header(rows);
  if (header == UINT32_MAX) return 1;
  uint8_t keep[256];
  memset(keep, 1, sizeof keep);
  uint8_t *const drop = glyd_record_memory_get(rows->memory, rows->n, 1);
  if (!drop) return 0;
  memset(drop, 0, rows->n);
  drop[header] = 1;
  return glyd_record_rows_reduce(rows, keep, drop);
}

/* ---- columns at fixed places ---- */

/* Where the columns of lines of so many bytes end, judged by those in the middle: each is what
 * is not blank in some line, with the blanks before it. Their number. */
static uint32_t find_columns(const glyd_record_rows *rows, uint32_t len, uint32_t size, uint16_t *ends) {
  uint8_t filled[GLYD_RECORD_LINE_MAX] = {0};
  const uint32_t most = len < GLYD_RECORD_SAMPLE ? len : GLYD_RECORD_SAMPLE;
  const uint8_t *p = rows->in + (len - most) / 2, *const end = p + most;
  for (p = memchr(p, '\n', most); p && ++p < end;) {
    const uint8_t *const q = memchr(p, '\n', (size_t)(end - p));
    if (!q) break;
    if (q - p == (ptrdiff_t)size)
      for (uint32_t i = 0; i < size; i++) filled[i] |= p[i] != ' ';
    p = q;
  }
  uint32_t n = 0;
  for (uint32_t i = 1; i < size; i++)
    if (filled[i - 1] && !filled[i] && n < GLYD_RECORD_SLOTS_MAX - 1) ends[n++] = (uint16_t)i;
  if (size > 0 && (n == 0 || filled[size - 1])) ends[n++] = (uint16_t)size;
  ends[n - (n > 0)] = (uint16_t)size;
  return n;
}

int glyd_record_split_columns(glyd_record_rows *rows) {
  static const uint8_t line_end[1] = {'\n'};
  const uint8_t *const in = rows->in;
  const uint32_t len = glyd_record_rows_after_last_line(rows);
  uint16_t ends[GLYD_RECORD_SLOTS_MAX];
  const uint32_t sample = rows->len < GLYD_RECORD_SAMPLE ? rows->len : GLYD_RECORD_SAMPLE;
  const uint32_t size = glyd_record_line_size(in + (rows->len - sample) / 2, sample);
  const uint32_t n = find_columns(rows, len, size, ends);
  if (n < 2) return 0;
  glyd_record_template *const t = new_delimited(rows, n, line_end);
  if (!t) return 0;
  for (uint32_t i = 1; i < n; i++) t->literal[i].len = 0;
  for (uint32_t at = 0; at < len;) {
    const uint8_t *const q = memchr(in + at, '\n', len - at);
    const uint32_t next = (uint32_t)(q - in) + 1;
    if (next - at != size + 1) {
      if (!glyd_record_rows_escape(rows, at, next - at)) return 0;
    } else {
      if (!glyd_record_rows_room(rows, n)) return 0;
      glyd_record_span *const f = rows->fields + rows->n_fields;
      for (uint32_t i = 0, from = 0; i < n; from = ends[i++]) f[i] = (glyd_record_span){at + from, ends[i] - from};
      glyd_record_rows_add(rows, 0, at);
    }
    at = next;
  }
  return glyd_record_rows_escape(rows, len, rows->len - len);
}

/* ---- SQL ---- */

static const uint8_t *skip_space(const uint8_t *p, const uint8_t *end) {
  while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
  return p;
}

static const uint8_t *sql_value(const uint8_t *p, const uint8_t *end) {
  if (*p == '\'') {
    const uint8_t *const most = (size_t)(end - p) > QUOTED_MAX ? p + QUOTED_MAX : end;
    for (p++; p < most; p++) {
      if (*p == '\\') {
        p++;
      } else if (*p == '\'') {
        if (p + 1 == end || p[1] != '\'') return p + 1;
        p++;
      }
    }
    return NULL;
  }
  while (p < end && *p != ',' && *p != ')' && *p != '(' && *p != '\'' && *p != '\n') p++;
  return p < end && (*p == ',' || *p == ')') ? p : NULL;
}

/* Just after the parenthesis that opens the next row; NULL: no row follows at once. */
static const uint8_t *next_row(const uint8_t *p, const uint8_t *end) {
  p = skip_space(p, end);
  if (p < end && *p == ',') {
    p = skip_space(p + 1, end);
    return p < end && *p == '(' ? p + 1 : NULL;
  }
  if (p == end || *p != ';') return NULL;
  p = skip_space(p + 1, end);
  if ((size_t)(end - p) < 6 || memcmp(p, "INSERT", 6) != 0) return NULL;
  const uint8_t *const most = (size_t)(end - p) > 2048 ? p + 2048 : end;
  for (; p + 8 < most; p++) {
    if (*p == ';' || *p == '\'') return NULL;
    if (*p != 'V' || memcmp(p, "VALUES", 6) != 0) continue;
    p = skip_space(p + 6, end);
    return p < end && *p == '(' ? p + 1 : NULL;
  }
  return NULL;
}

/* After the next "VALUES (" wherever it is, or the end. */
static const uint8_t *find_rows(const uint8_t *p, const uint8_t *end) {
  while (p < end) {
    p = memchr(p, 'V', (size_t)(end - p));
    if (!p) return end;
    if ((size_t)(end - p) > 8 && memcmp(p, "VALUES", 6) == 0) {
      const uint8_t *const q = skip_space(p + 6, end);
      if (q < end && *q == '(') return q + 1;
    }
    p++;
  }
  return end;
}

/* Where rows begin: the content may start within a statement. */
static const uint8_t *find_first(const uint8_t *in, const uint8_t *end) {
  const uint8_t *const p = find_rows(in, end);
  for (const uint8_t *q = in; q + 2 < p; q++) {
    q = memchr(q, ')', (size_t)(p - q));
    if (!q || q + 2 >= p) break;
    if (q[1] == ',' && q[2] == '(') return q + 3;
  }
  return p;
}

/* Values between commas, or commas and a space (then all have it), up to the parenthesis that
 * closes the row, or NULL. *n: how many. */
static const uint8_t *tuple_values(const uint8_t *in, const uint8_t *p, const uint8_t *end, uint32_t space,
                                   glyd_record_span *f, uint32_t *n) {
  *n = 0;
  while (p < end && *n < GLYD_RECORD_SLOTS_MAX - 1) {
    const uint8_t *const s = p;
    p = sql_value(p, end);
    if (!p || p == end) return NULL;
    f[(*n)++] = (glyd_record_span){(uint32_t)(s - in), (uint32_t)(p - s)};
    if (*p == ')') return p;
    if (*p != ',') return NULL;
    p++;
    if (!space) continue;
    if (p == end || *p != ' ') return NULL;
    p++;
  }
  return NULL;
}

static glyd_record_template *new_tuple(glyd_record_rows *rows, uint32_t n, uint32_t space) {
  static const uint8_t comma[3] = {',', ' ', ')'};
  glyd_record_template *const t = glyd_record_rows_template(rows, n);
  if (!t) return NULL;
  for (uint32_t i = 0; i <= n; i++) t->literal[i] = (glyd_record_text_ref){comma, i > 0 && i < n ? 1u + space : 0u};
  t->literal[n - 1] = (glyd_record_text_ref){comma + 2, 1}; /* before the last slot, the text up to the next row */
  return t;
}

int glyd_record_split_sql(glyd_record_rows *rows) {
  const uint8_t *const in = rows->in;
  const uint8_t *const end = in + rows->len, *p = find_first(in, end);
  uint16_t by_count[2][GLYD_RECORD_SLOTS_MAX + 1]; /* templates without and with spaces after commas */
  uint32_t space = 0;
  memset(by_count, 0xFF, sizeof by_count);
  if (!glyd_record_rows_escape(rows, 0, (uint32_t)(p - in))) return 0;
  while (p < end) {
    const uint8_t *const row = p;
    if (!glyd_record_rows_room(rows, GLYD_RECORD_SLOTS_MAX)) return 0;
    glyd_record_span *const f = rows->fields + rows->n_fields;
    uint32_t n;
    p = tuple_values(in, row, end, space, f, &n);
    if (!p) {
      space ^= 1;
      p = tuple_values(in, row, end, space, f, &n);
    }
    if (!p) { /* not a row: on with the next statement */
      p = find_rows(row, end);
      if (!glyd_record_rows_escape(rows, (uint32_t)(row - in), (uint32_t)(p - row))) return 0;
      continue;
    }
    const uint8_t *const tail = p + 1;
    const uint8_t *const next = next_row(tail, end);
    p = next ? next : find_rows(tail, end);
    const uint8_t *const tail_end = next ? next : tail;
    f[n++] = (glyd_record_span){(uint32_t)(tail - in), (uint32_t)(tail_end - tail)};
    uint16_t *const which = &by_count[space][n];
    if (*which == UINT16_MAX && new_tuple(rows, n, space)) *which = (uint16_t)(rows->n_templates - 1);
    if (*which == UINT16_MAX) {
      if (!glyd_record_rows_escape(rows, (uint32_t)(row - in), (uint32_t)(p - row))) return 0;
      continue;
    }
    glyd_record_rows_add(rows, *which, (uint32_t)(row - in));
    if (!glyd_record_rows_escape(rows, (uint32_t)(tail_end - in), (uint32_t)(p - tail_end))) return 0;
  }
  return 1;
}
