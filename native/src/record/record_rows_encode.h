/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Content cut into rows of templates: the step that knows CSV, JSON lines, SQL
 * and logs apart. All that follows sees templates with slots.
 */
#ifndef GLYD_RECORD_ROWS_ENCODE_H
#define GLYD_RECORD_ROWS_ENCODE_H

#include "record/record_common.h"

#define GLYD_RECORD_TEMPLATES_MAX 255
#define GLYD_RECORD_SLOTS_MAX 1024 /* of a template */
#define GLYD_RECORD_SAMPLE 65536u  /* bytes that speak for the content */
#define GLYD_RECORD_LINE_MAX 4096  /* bytes of lines of columns at fixed places */
#define GLYD_RECORD_FIXED '\n'     /* the separator of such lines */

/* shapes, informational in the model, but for the last ones, which are stored as others */
enum {
  GLYD_SHAPE_NONE = 0,
  GLYD_SHAPE_DELIMITED = 1,
  GLYD_SHAPE_JSON = 2,
  GLYD_SHAPE_SQL = 3,
  GLYD_SHAPE_LOG = 4,
  GLYD_SHAPE_DOCUMENT = 5,
  GLYD_SHAPE_WRAPPED = 6, /* lines of a log as texts of JSON objects: stored as a log */
  GLYD_SHAPE_PIECES = 7   /* JSON lines whose keys vary, cut in pieces: stored as JSON */
};

/* Memory handed out from the front; what was taken last can be given back. */
typedef struct glyd_record_memory {
  uint8_t *at, *end;
} glyd_record_memory;

/* n elements of so many bytes, aligned to 64; NULL: no room. */
void *glyd_record_memory_get(glyd_record_memory *memory, uint64_t n, size_t size);

/* Are n bytes the same? Most texts are short: a call of memcmp takes longer than they do. */
GLYD_INLINE int glyd_record_same(const uint8_t *a, const uint8_t *b, uint32_t n) {
  if (n >= 8) {
    for (uint32_t i = 0; i + 8 < n; i += 8)
      if (glyd_load64(a + i) != glyd_load64(b + i)) return 0;
    return glyd_load64(a + n - 8) == glyd_load64(b + n - 8);
  }
  if (n >= 4) return glyd_load32(a) == glyd_load32(b) && glyd_load32(a + n - 4) == glyd_load32(b + n - 4);
  if (n == 0) return 1;
  return a[0] == b[0] && a[n - 1] == b[n - 1] && a[n >> 1] == b[n >> 1];
}

typedef struct glyd_record_span {
  uint32_t at, len;
} glyd_record_span;

typedef struct glyd_record_text {
  const uint8_t *p;
  uint32_t len;
} glyd_record_text_ref;

typedef struct glyd_record_template {
  uint32_t n_slots;
  uint32_t rows;
  glyd_record_text_ref *literal; /* n_slots + 1 */
  uint64_t hash;
  uint32_t next; /* template that came after this one last */
} glyd_record_template;

typedef struct glyd_record_escape {
  uint32_t row, at, len;
} glyd_record_escape;

typedef struct glyd_record_rows {
  const uint8_t *in;
  uint32_t len;
  glyd_record_memory *memory;
  unsigned shape;
  uint32_t n, cap; /* rows */
  uint32_t *first; /* of a row: its first field */
  uint8_t *which;  /* of a row: its template */
  uint32_t *start; /* of a row: its first byte */
  uint32_t n_fields, cap_fields;
  glyd_record_span *fields;
  uint32_t n_escapes, cap_escapes;
  glyd_record_escape *escapes;
  uint32_t n_templates;
  glyd_record_template templates[GLYD_RECORD_TEMPLATES_MAX];
  int in_pieces;   /* rows are pieces of lines: templates have nothing in common */
  uint32_t shared; /* leading slots that all templates have in common, kept in table 0 */
} glyd_record_rows;

/* What the content looks like, judged by samples: GLYD_SHAPE_*, and the separator. */
unsigned glyd_record_detect(const uint8_t *in, uint32_t len, uint8_t *separator);

/* May delimited lines be a log whose lines happen to have as many separators? */
int glyd_record_may_be_log(const uint8_t *in, uint32_t len, uint8_t separator);

/* Are many bytes of lines of JSON in one text a line with several words? */
int glyd_record_may_be_wrapped(const uint8_t *in, uint32_t len);

/* Do lines of JSON have many different sets of keys? */
int glyd_record_keys_vary(const uint8_t *in, uint32_t len);

/* May it be a document of JSON, rather than an object a line? */
int glyd_record_may_be_document(const uint8_t *in, uint32_t len);

/* Cut in[0..len) into rows. 0: not worth it, or too little memory. */
int glyd_record_split(glyd_record_rows *rows, glyd_record_memory *memory, const uint8_t *in, uint32_t len,
                      unsigned shape, uint8_t separator);

/* ---- for the splitters ---- */

/* Bytes [at, at + len) fit no template. */
int glyd_record_rows_escape(glyd_record_rows *rows, uint32_t at, uint32_t len);

/* Room for the fields of one more row? */
GLYD_INLINE int glyd_record_rows_room(const glyd_record_rows *rows, uint32_t n) {
  return rows->cap_fields - rows->n_fields >= n && rows->n < rows->cap;
}

/* The row whose fields were put at fields[n_fields..) is complete. */
GLYD_INLINE void glyd_record_rows_add(glyd_record_rows *rows, uint32_t which, uint32_t start) {
  rows->first[rows->n] = rows->n_fields;
  rows->which[rows->n] = (uint8_t)which;
  rows->start[rows->n] = start;
  rows->n++;
  rows->n_fields += rows->templates[which].n_slots;
  rows->templates[which].rows++;
}

/* Bytes up to the last line end. */
GLYD_INLINE uint32_t glyd_record_rows_after_last_line(const glyd_record_rows *rows) {
  uint32_t n = rows->len;
  while (n > 0 && rows->in[n - 1] != '\n') n--;
  return n;
}

/* A new template with room for its literals; NULL: too many. */
glyd_record_template *glyd_record_rows_template(glyd_record_rows *rows, uint32_t n_slots);

int glyd_record_split_delimited(glyd_record_rows *rows, uint8_t separator);
/* Bytes that most lines have, 0: they differ, or their fields do not stand apart. */
uint32_t glyd_record_line_size(const uint8_t *in, uint32_t len);

int glyd_record_split_columns(glyd_record_rows *rows);
int glyd_record_split_json(glyd_record_rows *rows);
int glyd_record_split_pieces(glyd_record_rows *rows);

/* Values of the object in the line at p, whatever its keys, after a hash of what is between them; *after: the next
 * line. Their number, GLYD_RECORD_SLOTS_MAX at most, or UINT32_MAX: it is none. There is a line end before `end`. */
uint32_t glyd_record_walk_object(const uint8_t *in, const uint8_t *p, const uint8_t *end, glyd_record_span *f,
                                 uint64_t *hash, const uint8_t **after);

uint64_t glyd_record_json_mix(uint64_t h, const uint8_t *p, size_t n);

int glyd_record_split_document(glyd_record_rows *rows);
int glyd_record_split_sql(glyd_record_rows *rows);
int glyd_record_split_log(glyd_record_rows *rows, int wrapped);

/* Turn rows of templates with keep[template] == 0 and rows with drop[row] != 0
 * (may be NULL) into escapes; templates are numbered anew. */
int glyd_record_rows_reduce(glyd_record_rows *rows, const uint8_t *keep, const uint8_t *drop);

/* The rows of a template. */
typedef struct glyd_record_row_list {
  const uint32_t *row;
  uint32_t n;
} glyd_record_row_list;

/* Those of each template; lists: one for each. 0: no memory. */
int glyd_record_rows_list(const glyd_record_rows *rows, glyd_record_row_list *lists);

/* Cut slots whose values are made alike into a slot a part. shared: leading slots
 * that all templates have in common, and keep in common. 0: no memory. */
int glyd_record_rows_cut(glyd_record_rows *rows, uint32_t shared);

/* Move text that all values of a slot begin or end with into the literals, and
 * drop slots that never vary. */
int glyd_record_rows_refine(glyd_record_rows *rows);

#endif
