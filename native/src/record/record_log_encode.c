/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Rows of logs: lines of text with numbers, times and names in it. A line's
 * skeleton is what is left when those are cut out; skeletons that are common
 * become templates. Fields (what stands between spaces) that vary on their own,
 * such as levels and names of loggers, are cut out whole, or there would be a
 * template for each of their combinations. Lines with a rare skeleton are tried
 * with more of their words cut out, and then with all that follows their head
 * as one slot.
 */
#include "record/record_rows_encode.h"

#define HEAD 3u       /* level: fields at the head, and the rest of the line */
#define SLOTS_MAX 48u /* of a line */
#define TABLE_LOG 15u /* skeletons counted */
#define WORDS_KEPT 2u /* words at the start that stay in the skeleton of level 1 */
#define HEAD_SLOTS 4u /* of level 2, before the rest */
#define LINE_MAX 4096u
#define COMMON 64u        /* lines: so many with the same skeleton surely gain from a template */
#define COMMON_SHARE 512u /* or, of wrapped lines, one in so many */
#define COMMON_LEAST 4u
#define TAKEN_MAX 160u /* skeletons that become templates at once */
#define FIELDS_MAX 64u /* of a line that may be cut out; what follows stays as it is */
#define LEADING 8u     /* fields whose texts are counted */
#define TEXTS_MAX 192u /* different texts of a field of heads that are no numbers */
#define TEXTS_LOG 9u
#define TOGETHER 3u                     /* fields that vary together at most */
#define TOGETHER_GAIN 8u                /* without them one skeleton in so many is left */
#define GROUP_MAX 1024u                 /* skeletons of lines with the same number of fields that are compared */
#define PARTS 16u                       /* of long content that are looked at for fields */
#define PART_BYTES ((uint32_t)32 << 10) /* of each, at most; else half of all */
#define PARTED ((uint32_t)128 << 10)    /* content that is not looked at as a whole */

enum { OTHER = 0, DIGIT = 1, LETTER = 2 };

typedef struct skeleton {
  uint64_t hash;
  uint32_t count, which; /* which: template, UINT32_MAX: none */
} skeleton;

typedef struct splitter {
  glyd_record_rows *rows;
  const uint8_t *end;
  uint8_t kind[256];
  int wrapped; /* lines are objects of JSON: a text of several words is taken apart */
  skeleton *table;
  uint32_t table_mask;          /* places less 1: a power of two, 1 << TABLE_LOG at most */
  uint64_t cut[FIELDS_MAX + 1]; /* fields that are cut out whole, by the number of fields of the line */
  uint32_t head;                /* fields that most lines begin with */
  uint32_t *taken;              /* of each line: 1 + skeleton + level << TABLE_LOG, 0: none yet */
  glyd_record_span *kept;       /* slots of level 0, line by line, so that lines need not be walked again */
  uint32_t *kept_at;            /* of each line, and of the one past the last that has them there */
  uint32_t n_kept, cap_kept;    /* lines; slots */
} splitter;

static uint64_t mix(uint64_t h, const uint8_t *p, size_t n) {
  for (; n >= 8; n -= 8, p += 8) {
    h = (h ^ glyd_load64(p)) * 0x9FB21C651E98DF25u;
    h ^= h >> 32;
  }
  uint64_t tail = n;
  if (n >= 4)
    tail += glyd_load32(p) ^ (uint64_t)glyd_load32(p + n - 4) << 31;
  else if (n > 0)
    tail += (uint64_t)p[0] << 8 | (uint64_t)p[n >> 1] << 16 | (uint64_t)p[n - 1] << 24;
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

/* Are these eight bytes the shape, with digits where it has zeros? */
GLYD_INLINE int is_like(const uint8_t *p, const char *shape) {
  const uint64_t zeros = 0x3030303030303030u, high = 0x8080808080808080u;
  const uint64_t x = glyd_load64(p) ^ zeros, y = glyd_load64(shape) ^ zeros;
  const uint64_t is_zero = ~(((y & ~high) + 0x7F7F7F7F7F7F7F7Fu) | y) & high; /* constants, as the shape is one */
  const uint64_t digits = (is_zero >> 7) * 0xFFu;
  const uint64_t v = x & digits; /* 9 at most in each byte: with 118 more its highest bit stays 0 */
  return ((x ^ y) & ~digits) == 0 && ((((v & ~high) + 0x7676767676767676u) | v) & high) == 0;
}

/* End of the time at p, where 8 bytes can be read, without its fraction, or p. */
static const uint8_t *skip_seconds(const splitter *s, const uint8_t *p) {
  if (p[2] == ':') return is_like(p, "00:00:00") ? p + 8 : p;
  const uint8_t *const clock = p + 11;
  if (p[2] == '/') return has_shape(s, p, "dd/aaa/dddd:dd:dd:dd") ? p + 20 : p;
  if (s->end - p < 19 || (clock[-1] != ' ' && clock[-1] != 'T') || !is_like(clock, "00:00:00")) return p;
  if (s->kind[clock[-3]] != DIGIT || s->kind[clock[-2]] != DIGIT) return p;
  const int like = p[4] == '-' ? is_like(p, "0000-00-") : clock[-1] == ' ' && is_like(p, "0000/00/");
  return like ? clock + 8 : p;
}

/* End of the time at p, or p. */
static const uint8_t *skip_time(const splitter *s, const uint8_t *p) {
  if (s->end - p < 8 || (p[2] != ':' && p[2] != '/' && p[4] != '-' && p[4] != '/')) return p;
  const uint8_t *const time = skip_seconds(s, p);
  if (time == p) return p;
  if (s->end - time < 2 || (*time != '.' && *time != ',') || s->kind[time[1]] != DIGIT) return time;
  const uint8_t *q = time + 1;
  while (q < s->end && s->kind[*q] == DIGIT) q++;
  return q - time <= 7 ? q : time;
}

/* End of the address or identifier at p, or p. */
static const uint8_t *skip_identifier(const splitter *s, const uint8_t *p) {
  static const struct {
    const char *shape; /* x: a hexadecimal digit */
    uint32_t len;
  } shapes[] = {{"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", 36}, {"xx:xx:xx:xx:xx:xx", 17}};
  if (s->end - p < 16) return p;
  for (unsigned i = 0; i < sizeof shapes / sizeof *shapes && (p[8] == '-' || p[2] == ':'); i++) {
    const char *c = shapes[i].shape;
    const uint8_t *q = p;
    for (; *c && q < s->end; c++, q++)
      if (*c == 'x' ? s->kind[*q] != DIGIT && (uint8_t)((*q | 32) - 'a') > 5 : *c != (char)*q) break;
    if (*c == 0 && (q == s->end || s->kind[*q] == OTHER)) return q;
  }
  const uint8_t *q = p;
  for (unsigned i = 0; i < 4; i++) { /* four numbers */
    const uint8_t *const from = q;
    while (q < s->end && s->kind[*q] == DIGIT) q++;
    if (q == from || q - from > 3 || q == s->end || (i < 3 && *q++ != '.')) return p;
  }
  return s->kind[*q] == OTHER && *q != '.' ? q : p;
}

/* A month's name and a day, as syslog writes them. */
static const uint8_t *skip_month(const splitter *s, const uint8_t *p) {
  if (has_shape(s, p, "aaa  d dd:dd:dd") || has_shape(s, p, "aaa dd dd:dd:dd")) return p + 15;
  return p;
}

/* End of what is one slot although it has spaces or points in it, or p. */
static const uint8_t *skip_whole(const splitter *s, const uint8_t *p, const uint8_t *begin) {
  const uint8_t *q = p;
  if (s->kind[*p] == DIGIT || (uint8_t)((*p | 32) - 'a') < 6) q = skip_identifier(s, p);
  if (q > p) return q;
  return s->kind[*p] == DIGIT ? skip_time(s, p) : p == begin ? skip_month(s, p) : p;
}

/* After a number, its decimals, unless more points follow, as in versions. */
static const uint8_t *skip_decimals(const splitter *s, const uint8_t *p, const uint8_t *stop) {
  if (stop - p < 2 || *p != '.' || s->kind[p[1]] != DIGIT) return p;
  const uint8_t *q = p + 1;
  while (q < stop && s->kind[*q] == DIGIT) q++;
  const uint8_t *r = q; /* a unit may follow at once */
  while (r < stop && s->kind[*r] == LETTER) r++;
  if (r < stop && (s->kind[*r] == DIGIT || (*r == '.' && stop - r > 1 && s->kind[r[1]] != OTHER))) return p;
  return q;
}

typedef struct line {
  glyd_record_span slot[SLOTS_MAX];
  uint32_t n;
  uint64_t hash;
  const uint8_t *begin, *next; /* line */
  /* level 0: */
  uint32_t n_fields;
  glyd_record_span field[FIELDS_MAX];
  uint64_t before[FIELDS_MAX + 1], skeleton[FIELDS_MAX + 1]; /* hashes; the last of what follows the fields */
  uint8_t slots_until[FIELDS_MAX + 1];
} line;

/* One more slot of a line, t .. p, after literal text from `from`. 0: too many. */
static int put_slot(const splitter *s, line *out, uint64_t *h, const uint8_t *from, const uint8_t *t,
                    const uint8_t *p) {
  if (out->n == SLOTS_MAX) return 0;
  *h = mix(*h, from, (size_t)(t - from));
  out->slot[out->n++] = (glyd_record_span){(uint32_t)(t - s->rows->in), (uint32_t)(p - t)};
  return 1;
}

/* Does the quote at p begin the value of a key? */
static int is_value(const uint8_t *p, const uint8_t *begin) {
  const uint8_t *const before = p > begin && p[-1] == ' ' ? p - 1 : p;
  return before > begin && before[-1] == ':';
}

/* Fields, slots and skeleton of the line at p, of so many fields at most; 0: too many slots. */
static int walk_fields(const splitter *s, const uint8_t *p, uint32_t most, line *out) {
  const uint8_t *const in = s->rows->in, *const begin = p;
  const uint8_t *const stop = memchr(p, '\n', (size_t)(s->end - p)); /* there is one */
  const uint8_t *from = p; /* where the literal text before the next slot begins */
  out->begin = begin;
  out->next = stop + 1;
  out->n = out->n_fields = 0;
  if (stop - p > (ptrdiff_t)LINE_MAX) return 0;
  for (;;) {
    while (p < stop && (*p == ' ' || *p == '\t')) p++;
    const uint32_t f = out->n_fields;
    out->before[f] = p - from == 1 && *from == ' ' ? 1 : mix(1, from, (size_t)(p - from)); /* nearly always one */
    if (p == stop || f == most) break;
    const uint8_t *const field = p;
    uint64_t h = 2;
    from = p;
    while (p < stop && *p != ' ' && *p != '\t') {
      const uint8_t *const t = p;
      if (s->kind[*p] != OTHER) {
        const uint8_t *const whole = skip_whole(s, p, begin);
        int digits = 1;
        if (whole > p && whole <= stop) {
          p = whole;
        } else {
          unsigned kinds = 0;
          for (uint8_t k; (k = s->kind[*p]) != OTHER; p++) kinds |= k; /* the end of the line is no letter */
          digits = (kinds & DIGIT) != 0;
          if (kinds == DIGIT) p = skip_decimals(s, p, stop);
        }
        if (!digits) continue;
      } else if (*p == '"') {
        const uint8_t *const close = memchr(p + 1, '"', (size_t)(stop - p - 1));
        if (s->wrapped && close && is_value(p, begin) && memchr(p + 1, ' ', (size_t)(close - p - 1))) {
          p++;
          continue;
        }
        if (!close || close == p + 1) {
          p = close ? close + 1 : p + 1;
          continue;
        }
        if (!put_slot(s, out, &h, from, p + 1, close)) return 0;
        from = close;
        p = close + 1;
        continue;
      } else {
        p++;
        continue;
      }
      if (!put_slot(s, out, &h, from, t, p)) return 0;
      from = p;
    }
    out->field[f] = (glyd_record_span){(uint32_t)(field - in), (uint32_t)(p - field)};
    out->skeleton[f] = mix(h, from, (size_t)(p - from));
    out->slots_until[f] = (uint8_t)out->n;
    out->n_fields = f + 1;
    from = p;
  }
  /* more fields: the rest is one text; else the line's end */
  uint64_t h = 3;
  if (p < stop && !put_slot(s, out, &h, from, p, stop)) return 0;
  out->skeleton[out->n_fields] = mix(h, p < stop ? stop : from, (size_t)(stop + 1 - (p < stop ? stop : from)));
  out->slots_until[out->n_fields] = (uint8_t)out->n;
  return 1;
}

/* The line's hash with the fields of the mask cut out. */
static uint64_t hash_fields(const line *l, uint64_t mask) {
  uint64_t h = l->n_fields;
  for (uint32_t f = 0; f <= l->n_fields; f++) {
    const int cut = f < l->n_fields && (mask >> f & 1);
    h = (h ^ l->before[f]) * 0x9FB21C651E98DF25u;
    h = (h ^ h >> 29 ^ (cut ? 5 : l->skeleton[f])) * 0x9FB21C651E98DF25u;
    h ^= h >> 32;
  }
  return h == 0 ? 1 : h;
}

/* The same, and the fields that are cut out become slots. 0: no slots. */
static int cut_fields(const splitter *s, line *l) {
  const uint64_t mask = s->cut[l->n_fields];
  l->hash = hash_fields(l, mask);
  if (mask == 0) return l->n > 0;
  glyd_record_span slot[SLOTS_MAX + FIELDS_MAX];
  uint32_t n = 0, from = 0;
  for (uint32_t f = 0; f <= l->n_fields; f++) {
    if (f < l->n_fields && (mask >> f & 1))
      slot[n++] = l->field[f];
    else
      for (uint32_t i = from; i < l->slots_until[f]; i++) slot[n++] = l->slot[i];
    from = l->slots_until[f];
  }
  if (n > SLOTS_MAX) return 0;
  memcpy(l->slot, slot, n * sizeof *slot);
  l->n = n;
  return n > 0;
}

/* Is a field a number or a time, but for a bracket or a colon or two? */
static int is_numeric(const line *l, uint32_t f) {
  const uint32_t from = f > 0 ? l->slots_until[f - 1] : 0;
  return l->slots_until[f] == from + 1 && l->slot[from].len + 3 >= l->field[f].len;
}

/* The fields at the head of the line as slots, and what follows them as one. 0: it has no such. */
static int cut_head(const splitter *s, line *l) {
  const uint8_t *const in = s->rows->in;
  glyd_record_span slot[LEADING + 1];
  if (l->n_fields <= s->head) return 0;
  for (uint32_t f = 0; f < s->head; f++)
    slot[f] = is_numeric(l, f) ? l->slot[f > 0 ? l->slots_until[f - 1] : 0] : l->field[f];
  /* spaces but one belong to it, or lines with more of them would be another template */
  const glyd_record_span last = l->field[s->head - 1];
  const uint32_t rest = last.at + last.len + 1, end = (uint32_t)(l->next - 1 - in);
  slot[s->head] = (glyd_record_span){rest, end - rest};
  l->n = s->head + 1;
  const uint8_t *from = l->begin;
  uint64_t h = 4;
  for (uint32_t i = 0; i < l->n; i++) {
    h = mix(h, from, (size_t)(in + slot[i].at - from));
    from = in + slot[i].at + slot[i].len;
    l->slot[i] = slot[i];
  }
  l->hash = h == 0 ? 1 : h;
  return 1;
}

/* Slots and skeleton of the line at p; 0: too many slots. */
static int walk(const splitter *s, const uint8_t *p, unsigned level, line *out) {
  if (level == 0) return walk_fields(s, p, FIELDS_MAX, out) && cut_fields(s, out);
  if (level == HEAD) return walk_fields(s, p, s->head + 1, out) && cut_head(s, out); /* what follows is one slot */
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
  const uint32_t mask = s->table_mask;
  uint32_t k = (uint32_t)(hash >> 20) & mask;
  for (uint32_t i = 0; i < 64; i++, k = (k + 1) & mask)
    if (s->table[k].hash == hash || s->table[k].hash == 0) return &s->table[k];
  return NULL;
}

/* ---- fields that vary on their own ---- */

typedef struct group {
  uint32_t n_skeletons, lines;
  uint32_t numeric[LEADING];       /* lines whose field is a number */
  const uint8_t *first[GROUP_MAX]; /* a line of each skeleton */
} group;

typedef struct finder {
  splitter *s;
  group *groups[FIELDS_MAX + 1];
  line *l;
  uint64_t *hashes; /* of fields: skeleton by skeleton */
  uint64_t *set;    /* of hashes of lines, 2 * GROUP_MAX */
  uint32_t *head;   /* LEADING sets of hashes of texts of all lines, as far as they go */
  uint32_t lines;
} finder;

static group *new_group(glyd_record_memory *memory) {
  group *const g = glyd_record_memory_get(memory, 1, sizeof *g);
  if (!g) return NULL;
  memset(g, 0, sizeof *g);
  return g;
}

/* Skeletons and texts of the lines from p on. 0: no memory. */
static int collect(finder *x, const uint8_t *p, const uint8_t *end) {
  line *const l = x->l;
  const uint32_t mask = x->s->table_mask;
  for (; p < end; p = l->next) {
    if (!walk_fields(x->s, p, FIELDS_MAX, l)) continue;
    group *g = x->groups[l->n_fields];
    if (!g) g = x->groups[l->n_fields] = new_group(x->s->rows->memory);
    if (!g) return 0;
    g->lines++;
    x->lines++;
    for (uint32_t f = 0; f < l->n_fields && f < LEADING; f++) {
      const uint64_t hash = mix(0, x->s->rows->in + l->field[f].at, l->field[f].len);
      g->numeric[f] += (uint32_t)is_numeric(l, f);
      x->head[(f << TEXTS_LOG) + (hash >> 20 & ((1u << TEXTS_LOG) - 1))] = 1;
    }
    const uint64_t hash = hash_fields(l, 0);
    uint32_t k = (uint32_t)(hash >> 20) & mask, tries = 0;
    while (tries < 64 && x->s->table[k].hash != 0 && x->s->table[k].hash != hash) k = (k + 1) & mask, tries++;
    if (tries == 64 || x->s->table[k].hash == hash) continue;
    x->s->table[k].hash = hash;
    if (g->n_skeletons < GROUP_MAX) g->first[g->n_skeletons++] = p;
  }
  return 1;
}

/* How many skeletons differ when these fields are cut out? */
static uint32_t count_different(const finder *x, uint32_t n, uint32_t n_fields, uint64_t cut) {
  uint32_t different = 0;
  uint32_t mask = 63; /* of a set twice as large */
  while (mask + 1 < 2 * n) mask = 2 * mask + 1;
  memset(x->set, 0, (mask + 1) * sizeof *x->set);
  for (uint32_t i = 0; i < n; i++) {
    const uint64_t *const fields = x->hashes + (size_t)i * (FIELDS_MAX + 1);
    uint64_t h = 7;
    for (uint32_t f = 0; f <= n_fields; f++) {
      if (f < n_fields && cut >> f & 1) continue;
      h = (h ^ fields[f]) * 0x9FB21C651E98DF25u;
      h ^= h >> 32;
    }
    h |= 1;
    uint32_t k = (uint32_t)(h >> 20) & mask;
    while (x->set[k] != 0 && x->set[k] != h) k = (k + 1) & mask;
    different += x->set[k] == 0;
    x->set[k] = h;
  }
  return different;
}

/* How many skeletons has a field of those compared? */
static uint32_t count_variants(const finder *x, uint32_t n, uint32_t n_fields, uint32_t f) {
  return count_different(x, n, n_fields, ~((uint64_t)1 << f));
}

/* The field without which fewest of the skeletons differ, if those are fewer than now: its bit, or 0. */
static uint64_t best_field(const finder *x, uint32_t n, uint32_t n_fields, uint64_t may, uint64_t cut, uint32_t *now) {
  uint64_t best = 0;
  for (uint32_t f = 0; f < n_fields; f++) {
    const uint64_t bit = (uint64_t)1 << f;
    if (!(may & bit) || cut & bit) continue;
    const uint32_t d = count_different(x, n, n_fields, cut | bit);
    if (d >= *now) continue;
    *now = d;
    best = bit;
  }
  return best;
}

/* Fields that vary together, as a name that stands in a line twice: none of them alone leaves fewer skeletons. Those
 * with the most skeletons are cut until few are left, and then those kept that make no difference. 0: no few such. */
static uint64_t cut_together(const finder *x, uint32_t n, uint32_t n_fields, uint64_t may, uint64_t cut,
                             uint32_t *now) {
  uint32_t variants[FIELDS_MAX];
  for (uint32_t f = 0; f < n_fields; f++)
    variants[f] = may >> f & 1 && !(cut >> f & 1) ? count_variants(x, n, n_fields, f) : 0;
  uint64_t all = cut;
  uint32_t left = *now;
  for (uint32_t k = 0; k < TOGETHER && left * TOGETHER_GAIN > *now; k++) {
    uint32_t most = 0;
    for (uint32_t f = 1; f < n_fields; f++) most = variants[f] > variants[most] ? f : most;
    if (variants[most] * 4 < *now) return 0;
    variants[most] = 0;
    all |= (uint64_t)1 << most;
    left = count_different(x, n, n_fields, all);
  }
  if (left * TOGETHER_GAIN > *now) return 0;
  for (uint32_t f = 0; f < n_fields; f++) {
    const uint64_t without = all & ~((uint64_t)1 << f);
    if (without != all && !(cut >> f & 1) && count_different(x, n, n_fields, without) == left) all = without;
  }
  *now = left;
  return all & ~cut;
}

/* Fields whose skeletons go with many skeletons of the rest: the most telling first. */
static uint64_t choose_cut(const finder *x, const group *g, uint32_t n_fields) {
  const uint32_t n = g->n_skeletons;
  uint64_t cut = 0, may = 0;
  if (n < 3) return 0;
  for (uint32_t i = 0; i < n; i++) {
    (void)walk_fields(x->s, g->first[i], FIELDS_MAX, x->l);
    for (uint32_t f = 0; f <= n_fields; f++)
      x->hashes[(size_t)i * (FIELDS_MAX + 1) + f] = x->l->skeleton[f] ^ x->l->before[f] * 3;
  }
  for (uint32_t f = 0; f < n_fields; f++)
    for (uint32_t i = 1; i < n; i++)
      if (x->hashes[(size_t)i * (FIELDS_MAX + 1) + f] != x->hashes[f]) may |= (uint64_t)1 << f;
  for (uint32_t now = count_different(x, n, n_fields, 0); now > 2;) {
    uint32_t left = now;
    uint64_t more = best_field(x, n, n_fields, may, cut, &left);
    if (left * 4 > now * 3) {
      left = now;
      more = cut_together(x, n, n_fields, may, cut, &left);
    }
    if (more == 0) break;
    cut |= more;
    now = left;
  }
  return cut;
}

/* How many fields most lines begin with that are numbers, times or one of few texts. */
static void find_head(finder *x) {
  uint32_t n = 0;
  for (; n < LEADING; n++) {
    uint32_t lines = 0, numeric = 0, texts = 0;
    for (uint32_t k = n + 1; k <= FIELDS_MAX; k++) {
      if (!x->groups[k]) continue;
      lines += x->groups[k]->lines;
      numeric += x->groups[k]->numeric[n];
    }
    for (uint32_t i = 0; i < 1u << TEXTS_LOG; i++) texts += x->head[(n << TEXTS_LOG) + i] != 0;
    if (lines < x->lines - x->lines / 8) break;
    if (numeric < lines - lines / 16 && (texts > TEXTS_MAX || texts * 8 > lines)) break;
  }
  x->s->head = n;
}

static int find_fields(splitter *s, line *l) {
  const uint8_t *const in = s->rows->in;
  const uint32_t len = (uint32_t)(s->end - in);
  glyd_record_memory *const memory = s->rows->memory;
  uint8_t *const before = memory->at;
  finder *const x = glyd_record_memory_get(memory, 1, sizeof *x);
  if (!x) return 0;
  *x = (finder){.s = s, .l = l};
  x->hashes = glyd_record_memory_get(memory, (uint64_t)GROUP_MAX * (FIELDS_MAX + 1), sizeof *x->hashes);
  x->set = glyd_record_memory_get(memory, 2 * GROUP_MAX, sizeof *x->set);
  x->head = glyd_record_memory_get(memory, LEADING << TEXTS_LOG, sizeof *x->head);
  if (!x->hashes || !x->set || !x->head) return 0;
  memset(x->head, 0, sizeof *x->head * LEADING << TEXTS_LOG);
  const uint32_t parts = len > PARTED ? PARTS : 1, part = len / PARTS / 2 < PART_BYTES ? len / PARTS / 2 : PART_BYTES;
  const uint32_t size = parts > 1 ? part : len;
  for (uint32_t i = 0; i < parts; i++) {
    const uint8_t *p = in + (uint64_t)(len - size) * i / PARTS;
    if (p > in) p = (const uint8_t *)memchr(p, '\n', (size_t)(s->end - p)) + 1;
    if (!collect(x, p, in + (uint64_t)(len - size) * i / PARTS + size)) return 0;
  }
  uint32_t weight[LEADING] = {0};
  for (uint32_t n = 0; n <= FIELDS_MAX; n++) {
    if (!x->groups[n]) continue;
    s->cut[n] = choose_cut(x, x->groups[n], n);
    for (uint32_t f = 0; f < LEADING; f++) weight[f] += s->cut[n] >> f & 1 ? x->groups[n]->lines : 0;
  }
  /* what most lines begin with is cut in the same way in all, to have it in common */
  for (uint32_t f = 0; f < LEADING; f++)
    for (uint32_t n = f + 1; weight[f] * 2 > x->lines && n <= FIELDS_MAX; n++) s->cut[n] |= (uint64_t)1 << f;
  find_head(x);
  memset(s->table, 0, (s->table_mask + 1) * sizeof *s->table);
  memory->at = before;
  return 1;
}

/* ---- templates ---- */

/* A line's skeleton, and the level that it was found on. */
static skeleton *taken_by(const splitter *s, uint32_t i, unsigned *level) {
  if (s->taken[i] == 0) return NULL;
  *level = (s->taken[i] - 1) >> TABLE_LOG;
  return &s->table[(s->taken[i] - 1) & ((1u << TABLE_LOG) - 1)];
}

/* Keep the line's slots, while there is room. */
static void keep_slots(splitter *s, uint32_t i, const line *l, uint32_t n) {
  if (s->n_kept != i || s->cap_kept - s->kept_at[i] < n) return;
  memcpy(s->kept + s->kept_at[i], l->slot, n * sizeof *l->slot);
  s->kept_at[i + 1] = s->kept_at[i] + n;
  s->n_kept = i + 1;
}

/* The slots of line i at p as on this level; 0: it has none. */
static int walk_again(const splitter *s, const uint8_t *p, uint32_t i, unsigned level, line *l) {
  if (level > 0 || i >= s->n_kept) return walk(s, p, level, l);
  l->n = s->kept_at[i + 1] - s->kept_at[i];
  memcpy(l->slot, s->kept + s->kept_at[i], l->n * sizeof *l->slot);
  return l->n > 0;
}

/* Count the skeletons of lines that no template takes yet. */
static void count_level(splitter *s, const uint8_t *in, unsigned level, line *l) {
  uint32_t i = 0;
  for (const uint8_t *p = in; p < s->end; p = l->next, i++) {
    unsigned before;
    const skeleton *const of = taken_by(s, i, &before);
    if (of && of->which != UINT32_MAX) {
      l->next = (const uint8_t *)memchr(p, '\n', (size_t)(s->end - p)) + 1;
      continue;
    }
    const int has_slots = walk(s, p, level, l);
    if (level == 0) keep_slots(s, i, l, has_slots ? l->n : 0);
    if (!has_slots) continue;
    skeleton *const k = find(s, l->hash);
    if (!k) continue;
    k->hash = l->hash;
    k->which = UINT32_MAX;
    k->count++;
    s->taken[i] = 1 + (uint32_t)(k - s->table) + (level << TABLE_LOG);
  }
}

/* Lines whose skeleton so many have. */
static uint32_t common_lines(const splitter *s, uint32_t least) {
  uint32_t sum = 0;
  for (uint32_t k = 0; k <= s->table_mask; k++)
    if (s->table[k].count >= least) sum += s->table[k].count;
  return sum;
}

/* By falling count. */
static int is_before(const skeleton *a, const skeleton *b) {
  return a->count != b->count ? a->count > b->count : a->hash < b->hash;
}

/* The most common skeletons that have no template get one; literals come with their first row. */
static void take_common(splitter *s, uint32_t least, uint32_t most) {
  skeleton *best[TAKEN_MAX];
  uint32_t n = 0;
  const uint32_t room = GLYD_RECORD_TEMPLATES_MAX - s->rows->n_templates;
  if (most > room) most = room;
  for (uint32_t k = 0; k <= s->table_mask; k++) {
    skeleton *const x = &s->table[k];
    if (x->hash == 0 || x->which != UINT32_MAX || x->count < least) continue;
    if (n == most && !(n > 0 && is_before(x, best[n - 1]))) continue;
    uint32_t at = n < most ? n++ : n - 1;
    for (; at > 0 && is_before(x, best[at - 1]); at--) best[at] = best[at - 1];
    best[at] = x;
  }
  for (uint32_t i = 0; i < n; i++) {
    best[i]->which = s->rows->n_templates;
    s->rows->templates[s->rows->n_templates++] = (glyd_record_template){.literal = NULL};
  }
  for (uint32_t k = 0; k <= s->table_mask; k++) /* rare ones make room */
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
    if (t->literal[i].len != (size_t)(at - from) || !glyd_record_same(t->literal[i].p, from, t->literal[i].len))
      return 0;
    if (i < l->n) from = at + l->slot[i].len;
  }
  return 1;
}

static int put_rows(splitter *s, line *l) {
  glyd_record_rows *const rows = s->rows;
  uint32_t i = 0;
  for (const uint8_t *p = rows->in; p < s->end; p = l->next, i++) {
    const uint32_t start = (uint32_t)(p - rows->in);
    uint32_t which = UINT32_MAX;
    unsigned level;
    const skeleton *const k = taken_by(s, i, &level);
    l->next = (const uint8_t *)memchr(p, '\n', (size_t)(s->end - p)) + 1;
    if (k && k->which != UINT32_MAX && walk_again(s, p, i, level, l)) {
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

int glyd_record_split_log(glyd_record_rows *rows, int wrapped) {
  uint32_t len = rows->len, lines = 0;
  while (len > 0 && rows->in[len - 1] != '\n') len--;
  splitter s = {.rows = rows, .end = rows->in + len, .wrapped = wrapped};
  for (unsigned c = 0; c < 256; c++)
    s.kind[c] = c >= '0' && c <= '9' ? DIGIT : (c | 32) - 'a' < 26 || c == '_' || c >= 128 ? LETTER : OTHER;
  for (uint32_t i = 0; i < len; i++) lines += rows->in[i] == '\n';
  s.table_mask = 255;
  while (s.table_mask < (uint64_t)4 * lines && s.table_mask < (1u << TABLE_LOG) - 1)
    s.table_mask = 2 * s.table_mask + 1;
  s.table = glyd_record_memory_get(rows->memory, s.table_mask + 1, sizeof *s.table);
  line *const l = glyd_record_memory_get(rows->memory, 1, sizeof *l);
  if (!s.table || !l) return 0;
  memset(s.table, 0, (s.table_mask + 1) * sizeof *s.table);
  s.taken = glyd_record_memory_get(rows->memory, lines, sizeof *s.taken);
  if (!s.taken) return 0;
  memset(s.taken, 0, lines * sizeof *s.taken);
  if (!find_fields(&s, l)) return 0;
  /* at the other end, as literals are taken meanwhile that stay */
  glyd_record_memory *const memory = rows->memory;
  uint8_t *const end = memory->end;
  s.kept_at = glyd_record_memory_get(memory, (uint64_t)lines + 1, sizeof *s.kept_at);
  if (!s.kept_at) return 0;
  s.kept_at[0] = 0;
  const uint64_t half = (uint64_t)(memory->end - memory->at) / 128 * 64;
  s.kept = (glyd_record_span *)(void *)(memory->at + half);
  s.cap_kept = half / sizeof *s.kept < UINT32_MAX ? (uint32_t)(half / sizeof *s.kept) : UINT32_MAX;
  memory->end = memory->at + half;
  static const uint32_t most[4] = {TAKEN_MAX, 60, 30, 8};
  const uint32_t share = lines / COMMON_SHARE, common = share < COMMON_LEAST ? COMMON_LEAST
                                                        : share < COMMON     ? share
                                                                             : COMMON;
  int few = 0; /* templates take few of the lines */
  for (unsigned level = 0; level < 3; level++) {
    if (few && level == 1) continue;
    const unsigned at = level == 2 && s.head > 0 ? HEAD : level;
    count_level(&s, rows->in, at, l);
    if (level == 0 && s.head > 0) few = (uint64_t)common_lines(&s, COMMON) * 4 < (uint64_t)lines * 3;
    if (wrapped && level == 0 && (uint64_t)common_lines(&s, common) * 4 < (uint64_t)lines * 3) { /* prose */
      memory->end = end;
      return 0;
    }
    const uint32_t least = !few || level > 0 ? 8 : lines / 8 > COMMON ? lines / 8 : COMMON;
    take_common(&s, lines / 4000 > least ? lines / 4000 : least, most[at]);
  }
  const int done = put_rows(&s, l) && glyd_record_rows_escape(rows, len, rows->len - len);
  memory->end = end;
  return done;
}
