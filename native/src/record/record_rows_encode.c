/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "record/record_rows_encode.h"

void *glyd_record_memory_get(glyd_record_memory *memory, uint64_t n, size_t size) {
  const uint64_t left = (uint64_t)(memory->end - memory->at);
  if (n > left / size) return NULL;
  const uint64_t bytes = GLYD_RECORD_ALIGN(n * size);
  if (bytes > left) return NULL;
  void *const p = memory->at;
  memory->at += bytes;
  return p;
}

int glyd_record_rows_escape(glyd_record_rows *rows, uint32_t at, uint32_t len) {
  if (len == 0) return 1;
  if (rows->n_escapes > 0) {
    glyd_record_escape *const last = &rows->escapes[rows->n_escapes - 1];
    if (last->row == rows->n && last->at + last->len == at) {
      last->len += len;
      return 1;
    }
  }
  if (rows->n_escapes == rows->cap_escapes) return 0;
  rows->escapes[rows->n_escapes++] = (glyd_record_escape){rows->n, at, len};
  return 1;
}

glyd_record_template *glyd_record_rows_template(glyd_record_rows *rows, uint32_t n_slots) {
  if (rows->n_templates == GLYD_RECORD_TEMPLATES_MAX || n_slots > GLYD_RECORD_SLOTS_MAX) return NULL;
  glyd_record_template *const t = &rows->templates[rows->n_templates];
  t->literal = glyd_record_memory_get(rows->memory, n_slots + 1, sizeof *t->literal);
  if (!t->literal) return NULL;
  t->n_slots = n_slots;
  t->rows = 0;
  t->next = rows->n_templates++;
  return t;
}

/* ---- what is it? ---- */

#define SEPARATORS 5u
static const uint8_t separators[SEPARATORS] = {'\t', ',', ';', '|', ' '};

/* Lines by how many of each separator they have, outside quotes. */
typedef struct line_counts {
  uint32_t lines, of[SEPARATORS][257];
} line_counts;

static void count_separators(const uint8_t *in, uint32_t len, line_counts *out) {
  enum { QUOTE = SEPARATORS + 1, END };
  uint8_t kind[256] = {['"'] = QUOTE, ['\n'] = END};
  uint32_t n[SEPARATORS + 1] = {0};
  int first = 1, quoted = 0;
  for (unsigned k = 0; k < SEPARATORS; k++) kind[separators[k]] = (uint8_t)(k + 1);
  memset(out, 0, sizeof *out);
  for (uint32_t i = 0; i < len; i++) {
    const uint8_t c = kind[in[i]];
    if (c == 0) continue;
    if (c < QUOTE) {
      n[c] += !quoted;
      continue;
    }
    quoted ^= 1;
    if (c == QUOTE) continue;
    for (unsigned k = 0; k < SEPARATORS && !first; k++) out->of[k][n[k + 1] < 256 ? n[k + 1] : 256]++;
    out->lines += !first;
    memset(n, 0, sizeof n);
    first = quoted = 0;
  }
}

/* Share, in 1/256, of lines that have a number of separators that is common, and that number. */
static unsigned regularity(const line_counts *all, unsigned separator, unsigned *columns) {
  const uint32_t *const count = all->of[separator], lines = all->lines;
  uint32_t good = 0, best = 0;
  for (uint32_t k = 1; k <= 256; k++) {
    if (count[k] * 16 >= lines) good += count[k];
    if (count[k] > count[best] || best == 0) best = k;
  }
  *columns = best;
  /* tabs: tables of a dump, one after the other */
  if (separators[separator] != '\t' && count[best] * 10 < lines * 7) return 0;
  return lines < 4 ? 0 : good * 256 / lines;
}

static int is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

/* Is the first comma of most lines that of a time, as in 12:30:59,250? */
static int has_comma_times(const uint8_t *in, uint32_t len) {
  uint32_t lines = 0, times = 0;
  int first = 1;
  for (uint32_t i = 0; i + 1 < len; i++) {
    if (in[i] == '\n') {
      lines++;
      first = 1;
    } else if (in[i] == ',' && first) {
      first = 0;
      times += i > 3 && len - i > 4 && in[i - 3] == ':' && is_digit(in[i - 1]) && is_digit(in[i + 1]) &&
               is_digit(in[i + 2]) && is_digit(in[i + 3]) && !is_digit(in[i + 4]) && in[i + 4] != ',' &&
               in[i + 4] != '.';
    }
  }
  return times * 4 > lines * 3;
}

static uint32_t count_text(const uint8_t *in, uint32_t len, const char *text) {
  const uint32_t n = (uint32_t)strlen(text);
  uint32_t found = 0;
  for (const uint8_t *p = in, *const end = in + len;;) {
    p = memchr(p, text[0], (size_t)(end - p));
    if (!p || (size_t)(end - p) < n) return found;
    if (memcmp(p, text, n) == 0) {
      found++;
      p += n;
    } else {
      p++;
    }
  }
}

uint32_t glyd_record_line_size(const uint8_t *in, uint32_t len) {
  uint16_t count[GLYD_RECORD_LINE_MAX] = {0};
  uint32_t lines = 0, from = UINT32_MAX, best = 0, spaces = 0;
  for (uint32_t i = 0; i < len; i++) {
    spaces += in[i] == ' ';
    if (in[i] != '\n') continue;
    if (from != UINT32_MAX && i - from < GLYD_RECORD_LINE_MAX) {
      count[i - from]++;
      if (count[i - from] > count[best]) best = i - from;
    }
    lines += from != UINT32_MAX;
    from = i + 1;
  }
  return lines >= 16 && best >= 16 && count[best] * 8u >= lines * 7 && spaces * 8 >= len ? best : 0;
}

static unsigned detect_piece(const uint8_t *in, uint32_t len, uint8_t *separator) {
  uint32_t lines = 0, objects = 0, controls = 0;
  for (uint32_t i = 0; i < len; i++) {
    controls += in[i] < 32 && in[i] != '\n' && in[i] != '\r' && in[i] != '\t';
    if (in[i] == '\n') {
      lines++;
      objects += i + 1 < len && in[i + 1] == '{';
    }
  }
  if (controls > len / 16) return GLYD_SHAPE_NONE; /* no text */
  if (lines > 2 && objects * 2 > lines) return GLYD_SHAPE_JSON;
  const uint32_t tuples = count_text(in, len, "),(");
  if (tuples > 16 && tuples > 4 * lines) return GLYD_SHAPE_SQL; /* inside a long statement */
  const uint32_t statements = count_text(in, len, "\nINSERT"), rows = tuples + count_text(in, len, "),\n");
  if (count_text(in, len, "VALUES") > 0 && rows + statements > 16 && 2 * (rows + statements) > lines)
    return GLYD_SHAPE_SQL;
  line_counts counts;
  count_separators(in, len, &counts);
  unsigned best = 0, shape = lines > 8 ? GLYD_SHAPE_LOG : GLYD_SHAPE_NONE;
  for (unsigned k = 0; k < SEPARATORS; k++) {
    unsigned columns;
    unsigned share = regularity(&counts, k, &columns);
    if (separators[k] == ',' && share > 0 && has_comma_times(in, len)) continue;
    if (share < (separators[k] == ' ' ? 240u : 205u)) continue;
    share += columns > 2 ? 16 : 0;
    if (share > best) {
      best = share;
      *separator = separators[k];
      shape = GLYD_SHAPE_DELIMITED;
    }
  }
  if (shape == GLYD_SHAPE_LOG && glyd_record_line_size(in, len) > 0) {
    *separator = GLYD_RECORD_FIXED;
    shape = GLYD_SHAPE_DELIMITED;
  }
  return shape;
}

unsigned glyd_record_detect(const uint8_t *in, uint32_t len, uint8_t *separator) {
  *separator = ',';
  if (len < 512) return GLYD_SHAPE_NONE;
  /* a piece from the middle speaks for most of the content, one from the start for its rest */
  const uint32_t n = len < GLYD_RECORD_SAMPLE ? len : GLYD_RECORD_SAMPLE;
  const uint32_t at = (len - n) / 2;
  const unsigned middle = detect_piece(in + at, n, separator);
  if (middle != GLYD_SHAPE_NONE && middle != GLYD_SHAPE_LOG) return middle;
  uint8_t other = ',';
  const unsigned start = detect_piece(in, n, &other);
  if (start == GLYD_SHAPE_NONE || (start == GLYD_SHAPE_LOG && middle == GLYD_SHAPE_LOG)) return middle;
  if (middle == GLYD_SHAPE_LOG) return middle;
  *separator = other;
  return start;
}

#define WORDS_LEAST 4u   /* blanks in a text that may be a line of a log */
#define WRAPPED_LEAST 8u /* such texts have one byte in so many, or more */
#define LONG_FIELD 16u   /* bytes between commas, as a mean, of what may be a log */

int glyd_record_may_be_wrapped(const uint8_t *in, uint32_t len) {
  const uint32_t n = len < GLYD_RECORD_SAMPLE ? len : GLYD_RECORD_SAMPLE;
  const uint8_t *p = in + (len - n) / 2, *const end = p + n;
  uint64_t texts = 0;
  while (p < end) {
    uint32_t longest = 0;
    const uint8_t *stop = memchr(p, '\n', (size_t)(end - p));
    if (!stop) stop = end;
    while (p < stop) {
      p = memchr(p, '"', (size_t)(stop - p));
      if (!p) break;
      const uint8_t *const from = ++p;
      uint32_t blanks = 0;
      for (; p < stop && *p != '"'; p++) {
        blanks += *p == ' ';
        p += *p == '\\' && p + 1 < stop;
      }
      const uint32_t size = (uint32_t)(p - from);
      if (blanks >= WORDS_LEAST && size > longest) longest = size;
      p += p < stop;
    }
    texts += longest;
    p = stop + 1;
  }
  return texts * WRAPPED_LEAST > n;
}

int glyd_record_may_be_log(const uint8_t *in, uint32_t len, uint8_t separator) {
  const uint32_t n = len < GLYD_RECORD_SAMPLE ? len : GLYD_RECORD_SAMPLE;
  const uint8_t *const p = in + (len - n) / 2;
  uint32_t fields = 0;
  if (separator == GLYD_RECORD_FIXED) return 0;
  if (separator != ',' && separator != '\t') return 1;
  for (uint32_t i = 0; i < n; i++) fields += p[i] == separator || p[i] == '\n';
  return fields * LONG_FIELD < n;
}

#define FOREIGN 16u /* one byte in so many outside of texts that JSON has in texts only: a log with brackets in it */

/* Has JSON this byte in texts only? All but a few are. */
static int is_foreign(uint8_t c) {
  static const uint32_t letters =
      1u << 0 | 1u << 4 | 1u << 5 | 1u << 11 | 1u << 13 | 1u << 17 | 1u << 18 | 1u << 19 | 1u << 20;
  if (c < 0x40) return c > ' ' && c != '"' && c != ',' && c != '-' && c != '.' && c != '+' && (c < '0' || c > ':');
  if (c == '[' || c == ']' || c == '{' || c == '}' || c == 'E') return 0;
  return c < 'a' || c > 'z' || !(letters >> (c - 'a') & 1);
}

int glyd_record_may_be_document(const uint8_t *in, uint32_t len) {
  const uint32_t n = len < GLYD_RECORD_SAMPLE ? len : GLYD_RECORD_SAMPLE;
  const uint8_t *const p = in + (len - n) / 2;
  uint32_t marks = 0;
  struct {
    uint32_t open, foreign, n;
  } part[2] = {{0, 0, 0}, {0, 0, 0}}; /* outside of quotes and in them, unless the sample begins in a text */
  unsigned quoted = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint8_t c = p[i];
    part[quoted].open += c == '{' || c == '[';
    part[quoted].foreign += (uint32_t)is_foreign(c);
    part[quoted].n++;
    marks += c == '"' || c == ':' || c == ',' || c == ']' || c == '}';
    quoted ^= c == '"';
    i += c == '\\'; /* what follows ends no text */
  }
  const uint32_t open = part[0].open + part[1].open;
  const unsigned outside = part[0].open < part[1].open;
  return open >= 8 && (open + marks) * 16 > n && part[outside].foreign < part[outside].n / FOREIGN;
}

/* ---- reducing ---- */

static uint32_t row_end(const glyd_record_rows *rows, uint32_t r) {
  const glyd_record_template *const t = &rows->templates[rows->which[r]];
  if (t->n_slots == 0) return rows->start[r] + t->literal[0].len;
  const glyd_record_span last = rows->fields[rows->first[r] + t->n_slots - 1];
  return last.at + last.len + t->literal[t->n_slots].len;
}

int glyd_record_rows_reduce(glyd_record_rows *rows, const uint8_t *keep, const uint8_t *drop) {
  const uint32_t n = rows->n, n_escapes = rows->n_escapes;
  glyd_record_escape *const old = glyd_record_memory_get(rows->memory, n_escapes, sizeof *old);
  if (!old) return 0;
  memcpy(old, rows->escapes, n_escapes * sizeof *old);
  uint32_t e = 0;
  rows->n = rows->n_escapes = 0;
  for (uint32_t r = 0; r <= n; r++) {
    for (; e < n_escapes && old[e].row == r; e++)
      if (!glyd_record_rows_escape(rows, old[e].at, old[e].len)) return 0;
    if (r == n) break;
    if (keep[rows->which[r]] && !(drop && drop[r])) {
      const uint32_t k = rows->n++;
      rows->first[k] = rows->first[r];
      rows->which[k] = rows->which[r];
      rows->start[k] = rows->start[r];
    } else {
      rows->templates[rows->which[r]].rows--;
      /* rows->n <= r, so what row_end reads has not been moved over */
      if (!glyd_record_rows_escape(rows, rows->start[r], row_end(rows, r) - rows->start[r])) return 0;
    }
  }
  uint8_t number[256];
  uint32_t m = 0;
  for (uint32_t t = 0; t < rows->n_templates; t++) {
    number[t] = (uint8_t)m;
    if (keep[t] && rows->templates[t].rows > 0) rows->templates[m++] = rows->templates[t];
  }
  for (uint32_t r = 0; r < rows->n; r++) rows->which[r] = number[rows->which[r]];
  rows->n_templates = m;
  return 1;
}

static int drop_rare(glyd_record_rows *rows) {
  uint8_t keep[256] = {0};
  const uint32_t least = rows->n / 4096 > 8 ? rows->n / 4096 : 8;
  for (uint32_t t = 0; t < rows->n_templates; t++)
    keep[t] = rows->templates[t].rows * (uint64_t)(rows->templates[t].n_slots + 1) >= 4 * least &&
              rows->templates[t].rows >= 4;
  return glyd_record_rows_reduce(rows, keep, NULL);
}

/* Leading slots that two templates share, literals before them included. */
static uint32_t shared_slots(const glyd_record_template *a, const glyd_record_template *b) {
  uint32_t i = 0;
  while (i < a->n_slots && i < b->n_slots && a->literal[i].len == b->literal[i].len &&
         memcmp(a->literal[i].p, b->literal[i].p, a->literal[i].len) == 0)
    i++;
  return i;
}

static int can_share(const glyd_record_rows *rows) {
  return rows->n_templates >= 2 && !rows->in_pieces &&
         (rows->shape == GLYD_SHAPE_LOG || rows->shape == GLYD_SHAPE_JSON);
}

/* Leading slots that all templates share. */
static uint32_t count_shared(const glyd_record_rows *rows) {
  if (!can_share(rows)) return 0;
  uint32_t n = rows->templates[0].n_slots;
  for (uint32_t t = 1; t < rows->n_templates; t++) {
    const uint32_t m = shared_slots(&rows->templates[0], &rows->templates[t]);
    if (m < n) n = m;
  }
  return n;
}

/* A few lines without what all others begin with, such as traces of errors, would
 * keep it out of table 0: they become escapes. */
static int drop_strangers(glyd_record_rows *rows) {
  uint8_t keep[256] = {0};
  if (!can_share(rows) || count_shared(rows) > 0) return 1;
  const glyd_record_template *first = &rows->templates[0];
  for (uint32_t t = 1; t < rows->n_templates; t++)
    if (rows->templates[t].rows > first->rows) first = &rows->templates[t];
  uint32_t kept = 0;
  for (uint32_t t = 0; t < rows->n_templates; t++) {
    keep[t] = shared_slots(first, &rows->templates[t]) > 0;
    kept += keep[t] ? rows->templates[t].rows : 0;
  }
  return kept < rows->n - rows->n / 12 || glyd_record_rows_reduce(rows, keep, NULL);
}

/* ---- refining ---- */

int glyd_record_rows_list(const glyd_record_rows *rows, glyd_record_row_list *lists) {
  uint32_t *const row = glyd_record_memory_get(rows->memory, rows->n, sizeof *row);
  uint32_t at[GLYD_RECORD_TEMPLATES_MAX + 1] = {0};
  if (!row) return 0;
  for (uint32_t r = 0; r < rows->n; r++) at[rows->which[r] + 1]++;
  for (uint32_t t = 0; t < rows->n_templates; t++) {
    lists[t] = (glyd_record_row_list){row + at[t], at[t + 1]};
    at[t + 1] += at[t];
  }
  for (uint32_t r = 0; r < rows->n; r++) row[at[rows->which[r]]++] = r;
  return 1;
}

/* Affixes stop where a number, a word or a date might begin. */
static uint32_t common_prefix(const glyd_record_rows *rows, const uint32_t *sample, uint32_t n, uint32_t slot) {
  const glyd_record_span a = rows->fields[rows->first[sample[0]] + slot];
  const uint8_t *const s = rows->in + a.at;
  uint32_t len = a.len;
  for (uint32_t i = 1; i < n && len > 0; i++) {
    const glyd_record_span b = rows->fields[rows->first[sample[i]] + slot];
    const uint8_t *const p = rows->in + b.at;
    if (b.len < len) len = b.len;
    uint32_t k = 0;
    while (k < len && p[k] == s[k]) k++;
    len = k;
  }
  for (uint32_t k = 0; k < len; k++)
    if (is_digit(s[k])) len = k;          /* what follows may be a date or a number */
  for (uint32_t k = 0; k + 3 <= len; k++) /* so may be what a month begins */
    for (unsigned m = 0; m < 12; m++)
      if (memcmp(s + k, glyd_record_months + 3 * m, 3) == 0 && (k == 0 || s[k - 1] == ' ' || s[k - 1] == '"')) len = k;
  if (len > 0 && (s[len - 1] == '-' || s[len - 1] == '+')) len--;
  return len;
}

static uint32_t common_suffix(const glyd_record_rows *rows, const uint32_t *sample, uint32_t n, uint32_t slot,
                              uint32_t prefix) {
  const glyd_record_span a = rows->fields[rows->first[sample[0]] + slot];
  const uint8_t *const s = rows->in + a.at + a.len;
  uint32_t len = a.len - prefix;
  for (uint32_t i = 1; i < n && len > 0; i++) {
    const glyd_record_span b = rows->fields[rows->first[sample[i]] + slot];
    const uint8_t *const p = rows->in + b.at + b.len;
    if (b.len - prefix < len) len = b.len - prefix;
    uint32_t k = 0;
    while (k < len && p[-1 - (int64_t)k] == s[-1 - (int64_t)k]) k++;
    len = k;
  }
  for (uint32_t k = 1; k <= len; k++)
    if (is_digit(s[-(int64_t)k])) len = k - 1;
  return len;
}

static uint32_t constant_len(const glyd_record_rows *rows, glyd_record_row_list list, uint32_t slot,
                             glyd_record_span *value) {
  uint32_t found = 0;
  const uint8_t *p = NULL;
  for (uint32_t i = 0; i < list.n; i++) {
    const glyd_record_span f = rows->fields[rows->first[list.row[i]] + slot];
    if (!found) {
      *value = f;
      p = rows->in + f.at;
      found = 1;
    } else if (f.len != value->len || !glyd_record_same(p, rows->in + f.at, f.len)) {
      return 0;
    }
  }
  return found;
}

static int join(glyd_record_memory *memory, glyd_record_text_ref *to, const glyd_record_text_ref *parts, unsigned n) {
  uint64_t len = 0;
  for (unsigned i = 0; i < n; i++) len += parts[i].len;
  if (len > GLYD_RECORD_LITERAL_MAX / 2) return 0;
  uint8_t *const p = glyd_record_memory_get(memory, len + 1, 1);
  if (!p) return 0;
  uint32_t at = 0;
  for (unsigned i = 0; i < n; i++) {
    memcpy(p + at, parts[i].p, parts[i].len);
    at += parts[i].len;
  }
  *to = (glyd_record_text_ref){p, at};
  return 1;
}

#define REFINE_SAMPLE 512u

/* Cut affixes off the slots of a template; rows that lack one are marked. */
static int cut_affixes(glyd_record_rows *rows, uint32_t t, glyd_record_row_list list, uint8_t *drop) {
  glyd_record_template *const tm = &rows->templates[t];
  uint32_t sample[REFINE_SAMPLE], n = 0;
  const uint32_t step = list.n / REFINE_SAMPLE + 1;
  for (uint32_t i = 0; i < list.n && n < REFINE_SAMPLE; i += step) sample[n++] = list.row[i];
  if (n == 0) return 1;
  for (uint32_t slot = 0; slot < tm->n_slots; slot++) {
    const uint32_t prefix = common_prefix(rows, sample, n, slot);
    const uint32_t suffix = common_suffix(rows, sample, n, slot, prefix);
    if (prefix + suffix == 0) continue;
    const glyd_record_span a = rows->fields[rows->first[sample[0]] + slot];
    const uint8_t *const head = rows->in + a.at, *const tail = rows->in + a.at + a.len - suffix;
    uint32_t lacking = 0;
    for (uint32_t i = 0; i < list.n; i++) {
      const uint32_t r = list.row[i];
      if (drop[r]) continue;
      const glyd_record_span f = rows->fields[rows->first[r] + slot];
      lacking += f.len < prefix + suffix || !glyd_record_same(rows->in + f.at, head, prefix) ||
                 !glyd_record_same(rows->in + f.at + f.len - suffix, tail, suffix);
    }
    /* a row that lacks it costs as much as thousands that are spared a slot */
    if (lacking * (rows->shape == GLYD_SHAPE_SQL && slot + 1 == tm->n_slots ? 16384u : 64u) > tm->rows) continue;
    for (uint32_t i = 0; i < list.n; i++) {
      const uint32_t r = list.row[i];
      if (drop[r]) continue;
      glyd_record_span *const f = &rows->fields[rows->first[r] + slot];
      if (f->len < prefix + suffix || !glyd_record_same(rows->in + f->at, head, prefix) ||
          !glyd_record_same(rows->in + f->at + f->len - suffix, tail, suffix)) {
        drop[r] = 1;
      } else {
        f->at += prefix;
        f->len -= prefix + suffix;
      }
    }
    const glyd_record_text_ref before[2] = {tm->literal[slot], {head, prefix}};
    const glyd_record_text_ref after[2] = {{tail, suffix}, tm->literal[slot + 1]};
    if (!join(rows->memory, &tm->literal[slot], before, 2) || !join(rows->memory, &tm->literal[slot + 1], after, 2))
      return 0;
  }
  return 1;
}

/* Slots that never vary become literal text; shared ones stay as they are. */
static int cut_constants(glyd_record_rows *rows, uint32_t t, glyd_record_row_list list, uint32_t from) {
  glyd_record_template *const tm = &rows->templates[t];
  uint8_t constant[GLYD_RECORD_SLOTS_MAX] = {0};
  glyd_record_span value[GLYD_RECORD_SLOTS_MAX];
  uint32_t found = 0;
  for (uint32_t slot = from; slot < tm->n_slots; slot++) {
    constant[slot] = (uint8_t)constant_len(rows, list, slot, &value[slot]);
    found += constant[slot];
  }
  if (found == 0) return 1;
  uint32_t m = 0;
  for (uint32_t slot = 0; slot < tm->n_slots; slot++) {
    if (!constant[slot]) {
      tm->literal[++m] = tm->literal[slot + 1];
      continue;
    }
    const glyd_record_text_ref parts[3] = {
        tm->literal[m], {rows->in + value[slot].at, value[slot].len}, tm->literal[slot + 1]};
    if (!join(rows->memory, &tm->literal[m], parts, 3)) return 0;
  }
  for (uint32_t i = 0; i < list.n; i++) {
    glyd_record_span *const f = &rows->fields[rows->first[list.row[i]]];
    uint32_t k = 0;
    for (uint32_t slot = 0; slot < tm->n_slots; slot++)
      if (!constant[slot]) f[k++] = f[slot];
  }
  tm->n_slots = m;
  return 1;
}

int glyd_record_rows_refine(glyd_record_rows *rows) {
  uint8_t *const drop = glyd_record_memory_get(rows->memory, rows->n, 1);
  if (!drop) return 0;
  glyd_record_row_list lists[GLYD_RECORD_TEMPLATES_MAX];
  if (!glyd_record_rows_list(rows, lists)) return 0;
  memset(drop, 0, rows->n);
  for (uint32_t t = 0; t < rows->n_templates; t++)
    if (!cut_affixes(rows, t, lists[t], drop)) return 0;
  const uint32_t n = rows->n, n_escapes = rows->n_escapes;
  glyd_record_escape *const old = glyd_record_memory_get(rows->memory, n_escapes, sizeof *old);
  if (!old) return 0;
  memcpy(old, rows->escapes, n_escapes * sizeof *old);
  uint32_t e = 0;
  rows->n = rows->n_escapes = 0;
  for (uint32_t r = 0; r <= n; r++) {
    for (; e < n_escapes && old[e].row == r; e++)
      if (!glyd_record_rows_escape(rows, old[e].at, old[e].len)) return 0;
    if (r == n) break;
    if (!drop[r]) {
      const uint32_t k = rows->n++;
      rows->first[k] = rows->first[r];
      rows->which[k] = rows->which[r];
      rows->start[k] = rows->start[r];
      continue;
    }
    rows->templates[rows->which[r]].rows--;
    /* up to the next row or escape: affixes have moved to the literals, so that fields do not tell */
    uint32_t until = r + 1 < n ? rows->start[r + 1] : rows->len;
    if (e < n_escapes && old[e].row == r + 1) until = old[e].at;
    if (!glyd_record_rows_escape(rows, rows->start[r], until - rows->start[r])) return 0;
  }
  rows->shared = count_shared(rows);
  if (!glyd_record_rows_list(rows, lists)) return 0;
  for (uint32_t t = 0; t < rows->n_templates; t++)
    if (!cut_constants(rows, t, lists[t], rows->shared)) return 0;
  return 1;
}

int glyd_record_split(glyd_record_rows *rows, glyd_record_memory *memory, const uint8_t *in, uint32_t len,
                      unsigned shape, uint8_t separator) {
  *rows = (glyd_record_rows){.in = in, .len = len, .memory = memory, .shape = shape};
  rows->cap = len / 4 + 64;
  rows->cap_fields = len / 2 + 64;
  rows->cap_escapes = len / 16 + 64;
  rows->first = glyd_record_memory_get(memory, rows->cap, sizeof *rows->first);
  rows->start = glyd_record_memory_get(memory, rows->cap, sizeof *rows->start);
  rows->which = glyd_record_memory_get(memory, rows->cap, 1);
  rows->escapes = glyd_record_memory_get(memory, rows->cap_escapes, sizeof *rows->escapes);
  rows->fields = glyd_record_memory_get(memory, rows->cap_fields, sizeof *rows->fields);
  if (!rows->first || !rows->start || !rows->which || !rows->escapes || !rows->fields) return 0;
  int done = 0;
  switch (shape) {
  case GLYD_SHAPE_DELIMITED:
    done =
        separator == GLYD_RECORD_FIXED ? glyd_record_split_columns(rows) : glyd_record_split_delimited(rows, separator);
    break;
  case GLYD_SHAPE_JSON: done = glyd_record_split_json(rows); break;
  case GLYD_SHAPE_PIECES:
    rows->shape = GLYD_SHAPE_JSON;
    rows->in_pieces = 1;
    done = glyd_record_split_pieces(rows);
    break;
  case GLYD_SHAPE_DOCUMENT:
    rows->shape = GLYD_SHAPE_JSON;
    done = glyd_record_split_document(rows);
    break;
  case GLYD_SHAPE_SQL: done = glyd_record_split_sql(rows); break;
  case GLYD_SHAPE_LOG: done = glyd_record_split_log(rows, 0); break;
  case GLYD_SHAPE_WRAPPED:
    rows->shape = GLYD_SHAPE_LOG;
    done = glyd_record_split_log(rows, 1);
    break;
  default: break;
  }
  return done && drop_rare(rows) && drop_strangers(rows) && rows->n >= 8 &&
         glyd_record_rows_cut(rows, count_shared(rows)) && rows->n >= 8 && glyd_record_rows_refine(rows);
}
