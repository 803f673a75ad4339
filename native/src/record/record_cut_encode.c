/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Slots whose values are made alike, such as addresses, identifiers, names of
 * two words, times or decimals finer than a number holds, are cut into a slot a part.
 * Only slots whose values hardly repeat: others are better off in a dictionary.
 */
#include "record/record_rows_encode.h"
#include "record/record_text_encode.h"

#define SAMPLE 512u
#define PARTS_MAX 12u
#define DIGITS 9u                /* that surely fit a value */
#define RANGE ((int64_t)1 << 31) /* of the values of a column */

enum {
  PART_WORD,  /* a run of letters and digits */
  PART_BYTES, /* so many bytes */
  PART_HEAD,  /* a decimal up to so many digits after the point, or any other text as a whole */
  PART_UP_TO, /* so many bytes, or what there is */
  PART_REST   /* what there is */
};

typedef struct part {
  uint8_t kind;
  uint32_t size;
  glyd_record_text_ref after; /* literal text */
} part;

typedef struct plan {
  uint32_t n; /* parts, 0: the slot stays as it is */
  glyd_record_text_ref before;
  part parts[PARTS_MAX];
} plan;

typedef struct cutter {
  glyd_record_rows *rows;
  glyd_record_row_list lists[GLYD_RECORD_TEMPLATES_MAX];
  uint8_t word[256]; /* letters and digits */
} cutter;

static int is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

/* Digits after the point, 0: it has no point; -1: it is no decimal, spaces in front or not. */
static int count_decimals(const uint8_t *p, uint32_t n) {
  uint32_t i = 0, point = n;
  while (i < n && p[i] == ' ') i++;
  i += i < n && p[i] == '-';
  for (; i < n; i++) {
    if (*(p + i) == '.' && point == n)
      point = i;
    else if (!is_digit(p[i]))
      return -1;
  }
  return point < n ? (int)(n - point - 1) : 0;
}

/* Parts of the value, or 0: it is not made like that. */
static int cut_value(const cutter *x, const plan *q, glyd_record_span value, glyd_record_span *out) {
  const uint8_t *const in = x->rows->in, *p = in + value.at, *const end = p + value.len;
  if ((size_t)(end - p) < q->before.len || !glyd_record_same(p, q->before.p, q->before.len)) return 0;
  p += q->before.len;
  const part *const last = &q->parts[q->n - 1];
  const uint8_t *stop = end; /* of a decimal */
  if (last->kind == PART_REST) {
    if ((size_t)(end - p) < last->after.len) return 0;
    stop -= last->after.len;
  }
  for (uint32_t i = 0; i < q->n; i++) {
    const part *const t = &q->parts[i];
    const uint8_t *const from = p;
    switch (t->kind) {
    case PART_WORD:
      while (p < end && x->word[*p]) p++;
      if (p == from) return 0;
      break;
    case PART_BYTES:
      if ((size_t)(end - p) < t->size) return 0;
      p += t->size;
      break;
    case PART_HEAD: {
      const int decimals = count_decimals(p, (uint32_t)(stop - p));
      p = decimals > (int)t->size ? stop - (decimals - (int)t->size) : stop;
      break;
    }
    case PART_UP_TO: p = (size_t)(stop - p) > t->size ? p + t->size : stop; break;
    default: p = stop;
    }
    out[i] = (glyd_record_span){(uint32_t)(from - in), (uint32_t)(p - from)};
    if ((size_t)(end - p) < t->after.len || !glyd_record_same(p, t->after.p, t->after.len)) return 0;
    p += t->after.len;
  }
  return p == end;
}

/* Words and what is between them. */
static int plan_words(const cutter *x, glyd_record_span value, plan *q) {
  const uint8_t *p = x->rows->in + value.at, *const end = p + value.len;
  const uint8_t *from = p;
  while (p < end && !x->word[*p]) p++;
  q->n = 0;
  q->before = (glyd_record_text_ref){from, (uint32_t)(p - from)};
  while (p < end) {
    if (q->n == PARTS_MAX) return 0;
    while (p < end && x->word[*p]) p++;
    from = p;
    while (p < end && !x->word[*p]) p++;
    q->parts[q->n++] = (part){PART_WORD, 0, {from, (uint32_t)(p - from)}};
  }
  return q->n >= 2;
}

/* Long numbers of the same length: what is left and the last digits. */
static int plan_digits(glyd_record_span value, plan *q, const uint8_t *in) {
  const uint8_t *const p = in + value.at;
  if (value.len <= DIGITS || value.len > 4 * DIGITS) return 0;
  for (uint32_t i = 0; i < value.len; i++)
    if (!is_digit(p[i])) return 0;
  uint32_t first = value.len % DIGITS;
  if (first == 0) first = DIGITS;
  q->n = 0;
  q->before = (glyd_record_text_ref){p, 0};
  for (uint32_t at = first; at <= value.len; at += DIGITS)
    q->parts[q->n++] = (part){PART_BYTES, at == first ? first : DIGITS, {p, 0}};
  return 1;
}

/* Times with a fraction: up to the point, and what follows. */
static int plan_time(const glyd_record_date *date, glyd_record_span value, plan *q, const uint8_t *in) {
  const uint8_t *const p = in + value.at;
  if (date->fraction < 2) return 0;
  const uint32_t first = (uint32_t)date->fraction - 1;
  q->n = 2;
  q->before = (glyd_record_text_ref){p, 0};
  q->parts[0] = (part){PART_BYTES, first, {p + first, 1}};
  q->parts[1] = (part){PART_BYTES, value.len - first - 1, {p, 0}};
  return 1;
}

typedef struct sample {
  glyd_record_span value[SAMPLE];
  uint32_t n;
  uint32_t which, slot; /* of which template, UINT32_MAX: of all */
} sample;

#define DECIMALS_MAX 24u /* after the point */
#define MANY 8192u       /* values that tell whether they come up again */
#define ROWS_LEAST 1000u /* of fewer, parts take more than the digits they save */
#define FEW_SHORT 8u     /* different values with fewer decimals than a part has: exceptions of its column */

typedef struct decimals {
  uint32_t n;                       /* decimals, values without a point included */
  uint32_t count[DECIMALS_MAX + 1]; /* by digits after the point */
  uint32_t few[DECIMALS_MAX + 1];   /* different values among the first FEW_SHORT + 1 of these */
  uint32_t most;
  int64_t least_whole, most_whole;
} decimals;

static void count_all_decimals(const cutter *x, const sample *s, uint32_t quotes, decimals *d) {
  glyd_record_span seen[DECIMALS_MAX + 1][FEW_SHORT];
  const uint8_t *const in = x->rows->in;
  *d = (decimals){0};
  for (uint32_t i = 0; i < s->n; i++) {
    const glyd_record_span v = {s->value[i].at + quotes, s->value[i].len - 2 * quotes};
    const uint8_t *p = in + v.at;
    const int n = count_decimals(p, v.len);
    if (n < 0 || n > (int)DECIMALS_MAX || v.len == 0 || p[v.len - 1] == ' ') continue;
    d->n++;
    d->count[n]++;
    d->most = (uint32_t)n > d->most ? (uint32_t)n : d->most;
    int64_t whole = 0;
    while (*p == ' ') p++;
    const int minus = *p == '-';
    for (p += minus; p < in + v.at + v.len && *p != '.' && whole < RANGE; p++) whole = whole * 10 + (*p - '0');
    if (minus) whole = -whole - 1;
    d->least_whole = d->n == 1 || whole < d->least_whole ? whole : d->least_whole;
    d->most_whole = d->n == 1 || whole > d->most_whole ? whole : d->most_whole;
    uint32_t k = 0;
    if (d->few[n] > FEW_SHORT) continue;
    while (k < d->few[n] && !(seen[n][k].len == v.len && glyd_record_same(in + seen[n][k].at, in + v.at, v.len))) k++;
    if (k < d->few[n]) continue;
    if (k < FEW_SHORT) seen[n][k] = v;
    d->few[n]++;
  }
}

/* Have most values so many decimals, and the others are few or the same ones? */
static int have_decimals(const decimals *d, uint32_t digits) {
  uint32_t count = 0, few = 0;
  for (uint32_t k = 0; k < digits; k++) {
    count += d->count[k];
    few += d->few[k];
  }
  return count * 64 <= d->n || (few <= FEW_SHORT && count * 2 <= d->n);
}

static uint32_t mark_of(const uint8_t *p, uint32_t n) {
  uint64_t h = n;
  for (uint32_t k = 0; k < n; k++) h = (h ^ p[k]) * 0x100000001B3u;
  return (uint32_t)(h * 0x9E3779B97F4A7C15u >> 32) | 1;
}

/* Do nine tenths of many values come up once only? Others take less as a dictionary. */
static int never_repeats(const cutter *x, uint32_t which, uint32_t slot) {
  const glyd_record_rows *const rows = x->rows;
  uint32_t seen[2 * MANY] = {0}, fresh = 0, n = 0;
  const uint32_t all = which == UINT32_MAX ? rows->n : x->lists[which].n;
  if (all < ROWS_LEAST) return 0;
  for (; n < all && n < MANY; n++) {
    const glyd_record_span v = rows->fields[rows->first[which == UINT32_MAX ? n : x->lists[which].row[n]] + slot];
    const uint32_t mark = mark_of(rows->in + v.at, v.len);
    uint32_t k = mark >> 3 & (2 * MANY - 1);
    while (seen[k] != 0 && seen[k] != mark) k = (k + 1) & (2 * MANY - 1);
    fresh += seen[k] == 0;
    seen[k] = mark;
  }
  return fresh * 10 > n * 9;
}

/* 1: all values stand in quotes. */
static uint32_t all_quoted(const cutter *x, const sample *s) {
  for (uint32_t i = 0; i < s->n; i++) {
    const uint8_t *const p = x->rows->in + s->value[i].at;
    const uint32_t n = s->value[i].len;
    if (n < 2 || p[0] != '"' || p[n - 1] != '"') return 0;
  }
  return 1;
}

/* Decimals with more digits than a column holds: as many as it does hold, and the others. */
static int plan_decimals(const cutter *x, const sample *s, plan *q) {
  static const uint8_t quote[1] = {'"'};
  const uint32_t quotes = all_quoted(x, s);
  const glyd_record_text_ref nothing = {quote, 0}, end = {quote, quotes};
  decimals d;
  count_all_decimals(x, s, quotes, &d);
  if (d.n * 20 < s->n * 19 || d.most == 0 || !never_repeats(x, s->which, s->slot)) return 0;
  /* room for values sixteen times as large as those of the sample */
  uint64_t room = (uint64_t)RANGE / 16 / ((uint64_t)(d.most_whole - d.least_whole) + 1);
  uint32_t head = 0, middle = 0, digits = 0;
  for (; room >= 10 && digits < DIGITS; room /= 10)
    if (have_decimals(&d, ++digits)) head = digits;
  if (head == 0 || d.most <= head) return 0;
  if (d.most - head >= DIGITS) { /* some rows may have a digit more than those of the sample */
    for (digits = 1; digits <= DIGITS; digits++)
      if (have_decimals(&d, head + digits)) middle = digits;
    if (middle == 0 || d.most - head - middle > DIGITS) return 0;
  }
  q->n = 0;
  q->before = end;
  q->parts[q->n++] = (part){PART_HEAD, head, nothing};
  if (middle > 0) q->parts[q->n++] = (part){PART_UP_TO, middle, nothing};
  q->parts[q->n++] = (part){PART_REST, 0, end};
  return 1;
}

static int is_number(const cutter *x, const sample *s, int *wide) {
  const uint8_t *const in = x->rows->in, *const end = in + x->rows->len;
  glyd_record_numbers numbers = {0};
  glyd_record_column c = {0};
  for (uint32_t i = 0; i < s->n; i++) glyd_record_count_number(&numbers, in + s->value[i].at, s->value[i].len);
  if (!glyd_record_number_format(&numbers, &c)) return 0;
  int64_t least = INT64_MAX, most = INT64_MIN, v;
  for (uint32_t i = 0; i < s->n; i++) {
    if (!glyd_record_number_read(&c, in + s->value[i].at, s->value[i].len, end, &v)) continue;
    least = v < least ? v : least;
    most = v > most ? v : most;
  }
  *wide = most >= least && (uint64_t)most - (uint64_t)least >= (uint64_t)RANGE;
  return 1;
}

/* Most values are dates; *date has the pattern. */
static int is_date(const cutter *x, const sample *s, glyd_record_date *date, int *wide) {
  const uint8_t *const in = x->rows->in, *const end = in + x->rows->len;
  for (unsigned variant = 0; variant < 32; variant++) {
    *date = (glyd_record_date){0};
    if (!glyd_record_date_find(date, in + s->value[0].at, s->value[0].len, variant)) continue;
    glyd_record_date_cache cache;
    glyd_record_date_begin(&cache, date);
    int64_t least = INT64_MAX, most = INT64_MIN, v;
    uint32_t good = 0;
    for (uint32_t i = 0; i < s->n; i++) {
      if (!glyd_record_date_read(&cache, date, in + s->value[i].at, s->value[i].len, end, &v)) continue;
      good++;
      least = v < least ? v : least;
      most = v > most ? v : most;
    }
    if (good * 10 < s->n * 8) continue;
    *wide = (uint64_t)most - (uint64_t)least >= (uint64_t)RANGE;
    return 1;
  }
  return 0;
}

/* Do at least half of the values come up once only, in so many rows one after the other? */
static int hardly_repeats(const cutter *x, const sample *s) {
  uint32_t seen[2 * SAMPLE] = {0}, fresh = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    const uint32_t mark = mark_of(x->rows->in + s->value[i].at, s->value[i].len);
    uint32_t k = mark >> 3 & (2 * SAMPLE - 1);
    while (seen[k] != 0 && seen[k] != mark) k = (k + 1) & (2 * SAMPLE - 1);
    fresh += seen[k] == 0;
    seen[k] = mark;
  }
  return fresh * 2 > s->n;
}

static int fits_most(const cutter *x, const sample *s, const plan *q) {
  glyd_record_span parts[PARTS_MAX];
  uint32_t lacking = 0;
  for (uint32_t i = 0; i < s->n; i++) lacking += !cut_value(x, q, s->value[i], parts);
  return lacking * 64 <= s->n;
}

/* How values like these are cut; 0 parts: not at all. */
static void choose_plan(const cutter *x, const sample *s, plan *q) {
  const uint8_t *const in = x->rows->in;
  glyd_record_date date;
  int wide = 0;
  q->n = 0;
  if (s->n < 32) return;
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < s->n; i++) bytes += s->value[i].len;
  if (bytes < 7 * s->n || !hardly_repeats(x, s)) return;
  const glyd_record_span value = s->value[s->n / 2];
  int found = 0;
  if (is_number(x, s, &wide))
    found = wide && (plan_digits(value, q, in) || plan_decimals(x, s, q) || plan_words(x, value, q));
  else if (is_date(x, s, &date, &wide))
    found = wide && plan_time(&date, value, q, in);
  else
    found = plan_decimals(x, s, q) || plan_words(x, value, q);
  if (!found || !fits_most(x, s, q)) q->n = 0;
}

/* The same rows of a template, or of all of them for what they share. */
typedef struct choice {
  plan *plans; /* a slot */
  uint32_t n_slots, n_after;
} choice;

static void take_sample(const cutter *x, uint32_t which, uint32_t slot, sample *s) {
  const glyd_record_rows *const rows = x->rows;
  /* some rows one after the other, where there are enough */
  const uint32_t all = which == UINT32_MAX ? rows->n : x->lists[which].n;
  s->n = 0;
  s->which = which;
  s->slot = slot;
  for (uint32_t i = all > 4 * SAMPLE ? all / 3 : 0; i < all && s->n < SAMPLE; i++) {
    const uint32_t r = which == UINT32_MAX ? i : x->lists[which].row[i];
    s->value[s->n++] = rows->fields[rows->first[r] + slot];
  }
}

static uint32_t total_parts(const plan *plans, uint32_t n) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += plans[i].n > 0 ? plans[i].n : 1;
  return sum;
}

static int join(glyd_record_memory *memory, glyd_record_text_ref *to, glyd_record_text_ref a, glyd_record_text_ref b) {
  if (b.len == 0) {
    *to = a;
    return 1;
  }
  uint8_t *const p = glyd_record_memory_get(memory, (uint64_t)a.len + b.len, 1);
  if (!p) return 0;
  memcpy(p, a.p, a.len);
  memcpy(p + a.len, b.p, b.len);
  *to = (glyd_record_text_ref){p, a.len + b.len};
  return 1;
}

static int new_literals(glyd_record_rows *rows, glyd_record_template *t, const choice *c) {
  glyd_record_text_ref *const literal = glyd_record_memory_get(rows->memory, c->n_after + 1, sizeof *literal);
  if (!literal) return 0;
  uint32_t k = 0;
  glyd_record_text_ref pending = t->literal[0];
  for (uint32_t i = 0; i < t->n_slots; i++) {
    const plan *const q = &c->plans[i];
    if (q->n > 0 && !join(rows->memory, &pending, pending, q->before)) return 0;
    literal[k++] = pending;
    for (uint32_t j = 0; j + 1 < q->n; j++) literal[k++] = q->parts[j].after;
    pending = t->literal[i + 1];
    if (q->n > 0 && !join(rows->memory, &pending, q->parts[q->n - 1].after, pending)) return 0;
  }
  literal[k] = pending;
  t->literal = literal;
  t->n_slots = c->n_after;
  return 1;
}

/* Plans that do not do for one row in 64 are given up; of slots that templates share, in all of them. 0: no memory. */
static int drop_plans(const cutter *x, choice *choices, uint32_t shared) {
  const glyd_record_rows *const rows = x->rows;
  uint32_t *unfit[GLYD_RECORD_TEMPLATES_MAX];
  for (uint32_t t = 0; t < rows->n_templates; t++) {
    unfit[t] = glyd_record_memory_get(rows->memory, choices[t].n_slots, sizeof *unfit[t]);
    if (!unfit[t]) return 0;
    memset(unfit[t], 0, choices[t].n_slots * sizeof *unfit[t]);
  }
  for (uint32_t r = 0; r < rows->n; r++) {
    const uint32_t t = rows->which[r];
    const choice *const c = &choices[t];
    glyd_record_span parts[PARTS_MAX];
    if (c->n_after == c->n_slots) continue;
    for (uint32_t i = 0; i < c->n_slots; i++)
      unfit[i < shared ? 0 : t][i] +=
          c->plans[i].n > 0 && !cut_value(x, &c->plans[i], rows->fields[rows->first[r] + i], parts);
  }
  for (uint32_t t = 0; t < rows->n_templates; t++) {
    choice *const c = &choices[t];
    for (uint32_t i = 0; i < c->n_slots; i++) {
      const uint32_t of = i < shared ? rows->n : rows->templates[t].rows;
      if ((uint64_t)unfit[i < shared ? 0 : t][i] * 64 > of) c->plans[i].n = 0;
    }
    c->n_after = total_parts(c->plans, c->n_slots);
  }
  return 1;
}

/* Rows that do not fit the plan of one of their slots become escapes. 0: too many, or no memory. */
static int drop_unfit(const cutter *x, const choice *choices) {
  glyd_record_rows *const rows = x->rows;
  uint8_t *const drop = glyd_record_memory_get(rows->memory, rows->n, 1);
  if (!drop) return 0;
  uint32_t dropped[GLYD_RECORD_TEMPLATES_MAX] = {0}, all = 0;
  for (uint32_t r = 0; r < rows->n; r++) {
    const choice *const c = &choices[rows->which[r]];
    glyd_record_span parts[PARTS_MAX];
    drop[r] = 0;
    if (c->n_after == c->n_slots) continue;
    for (uint32_t i = 0; i < c->n_slots && !drop[r]; i++)
      drop[r] = c->plans[i].n > 0 && !cut_value(x, &c->plans[i], rows->fields[rows->first[r] + i], parts);
    dropped[rows->which[r]] += drop[r];
    all += drop[r];
  }
  for (uint32_t t = 0; t < rows->n_templates; t++)
    if (dropped[t] * 32 > rows->templates[t].rows) return 0;
  uint8_t keep[256];
  memset(keep, 1, sizeof keep);
  return all == 0 || glyd_record_rows_reduce(rows, keep, drop);
}

static int cut_rows(const cutter *x, const choice *choices) {
  glyd_record_rows *const rows = x->rows;
  uint64_t total = 0;
  for (uint32_t t = 0; t < rows->n_templates; t++) total += (uint64_t)rows->templates[t].rows * choices[t].n_after;
  glyd_record_span *const fields = glyd_record_memory_get(rows->memory, total, sizeof *fields);
  if (!fields) return 0;
  uint32_t at = 0;
  for (uint32_t r = 0; r < rows->n; r++) {
    const choice *const c = &choices[rows->which[r]];
    const glyd_record_span *const f = rows->fields + rows->first[r];
    rows->first[r] = at;
    for (uint32_t i = 0; i < c->n_slots; i++) {
      if (c->plans[i].n == 0) {
        fields[at++] = f[i];
      } else {
        (void)cut_value(x, &c->plans[i], f[i], fields + at);
        at += c->plans[i].n;
      }
    }
  }
  rows->fields = fields;
  rows->n_fields = rows->cap_fields = at;
  for (uint32_t t = 0; t < rows->n_templates; t++)
    if (choices[t].n_after != choices[t].n_slots && !new_literals(rows, &rows->templates[t], &choices[t])) return 0;
  return 1;
}

int glyd_record_rows_cut(glyd_record_rows *rows, uint32_t shared) {
  cutter x = {.rows = rows};
  for (unsigned c = 0; c < 256; c++) x.word[c] = is_digit((uint8_t)c) || (c | 32) - 'a' < 26 || c == '_' || c >= 128;
  const uint32_t T = rows->n_templates;
  choice *const choices = glyd_record_memory_get(rows->memory, T, sizeof *choices);
  sample *const s = glyd_record_memory_get(rows->memory, 1, sizeof *s);
  if (!choices || !s || !glyd_record_rows_list(rows, x.lists)) return 0;
  for (uint32_t t = 0; t < T; t++) {
    const uint32_t n = rows->templates[t].n_slots;
    choice *const c = &choices[t];
    c->n_slots = n;
    c->plans = glyd_record_memory_get(rows->memory, n, sizeof *c->plans);
    if (!c->plans) return 0;
    for (uint32_t i = 0; i < n; i++) {
      if (i < shared && t > 0) {
        c->plans[i] = choices[0].plans[i];
        continue;
      }
      take_sample(&x, i < shared ? UINT32_MAX : t, i, s);
      choose_plan(&x, s, &c->plans[i]);
      if (total_parts(c->plans, i + 1) + (n - i - 1) > GLYD_RECORD_SLOTS_MAX) c->plans[i].n = 0;
    }
    c->n_after = total_parts(c->plans, n);
  }
  if (!drop_plans(&x, choices, shared)) return 0;
  uint32_t cut = 0;
  for (uint32_t t = 0; t < T; t++) cut += choices[t].n_after - choices[t].n_slots;
  if (cut == 0 || !drop_unfit(&x, choices)) return 1;
  if (rows->n_templates != T) return 0; /* a template cannot have lost all its rows */
  return cut_rows(&x, choices);
}
