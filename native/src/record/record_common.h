/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What both sides of record segments share: limits, the model of a column,
 * dates, and the memory a reader may use. The bytes are in spec.md.
 */
#ifndef GLYD_RECORD_COMMON_H
#define GLYD_RECORD_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "common/mem.h"

#define GLYD_RECORD_BATCH 256             /* rows rebuilt at once */
#define GLYD_RECORD_TABLES_MAX 256        /* table 0 and one a template */
#define GLYD_RECORD_COLUMNS_MAX 4096      /* of all tables */
#define GLYD_RECORD_LITERAL_MAX (1 << 16) /* bytes of literal text of a row of one table */
#define GLYD_RECORD_KEYS_MAX (1 << 18)
#define GLYD_RECORD_PAIRS_MAX 262143
#define GLYD_RECORD_DICT_MAX 65536
#define GLYD_RECORD_RANGE_MAX 0x7FFFFFF0u
#define GLYD_RECORD_EXCEPTIONS_MAX 255
#define GLYD_RECORD_EXCEPTION_LEN 24
#define GLYD_RECORD_PATTERN_MAX 31
#define GLYD_RECORD_PAD 64           /* readable bytes after each stream */
#define GLYD_RECORD_SLOT_TABLE 16384 /* values up to which a column becomes a table */
#define GLYD_RECORD_PLANES_MAX 4u    /* of residuals */

/* streams with fixed places */
#define GLYD_RECORD_STREAM_MODEL 0
#define GLYD_RECORD_STREAM_TEXTS 1
#define GLYD_RECORD_STREAM_ESCAPES 2
#define GLYD_RECORD_STREAM_RAW 3
#define GLYD_RECORD_STREAM_FIRST 4

enum {
  GLYD_RECORD_INT = 1,
  GLYD_RECORD_DATE = 2,
  GLYD_RECORD_DICT = 3,
  GLYD_RECORD_TEXT = 4,
  GLYD_RECORD_SORTED = 5, /* dictionary in the order of its texts */
  GLYD_RECORD_MORE = 6,   /* text whose bytes follow, row by row, those of a text column */
  GLYD_RECORD_FRESH = 7   /* dictionary in the order in which its texts come up */
};

/* format of an integer column */
enum {
  GLYD_RECORD_PLAIN = 0,
  GLYD_RECORD_CLOCK = 1,
  GLYD_RECORD_PADDED = 2,
  GLYD_RECORD_TRIMMED = 3,
  GLYD_RECORD_TRIMMED1 = 4,
  GLYD_RECORD_BARE = 5,         /* as plain, without a 0 before the point */
  GLYD_RECORD_BARE_TRIMMED = 6, /* as trimmed, likewise */
  GLYD_RECORD_TAIL = 7,         /* the last digits of a number that was cut: padded, without zeros at the end */
  GLYD_RECORD_ALIGNED = 8,      /* as plain, with spaces in front */
  GLYD_RECORD_FORMATS = 9
};

#define GLYD_RECORD_WIDTH_MAX 18
#define GLYD_RECORD_ALIGNED_MAX 24
#define GLYD_RECORD_TAIL_MAX 9

/* Zeros at the end of decimals are left out, but for so many decimals; -1: they are not. */
GLYD_INLINE int glyd_record_trimmed_to(unsigned format) {
  return format == GLYD_RECORD_TRIMMED || format == GLYD_RECORD_BARE_TRIMMED ? 0
         : format == GLYD_RECORD_TRIMMED1                                    ? 1
                                                                             : -1;
}

GLYD_INLINE int glyd_record_is_bare(unsigned format) {
  return format == GLYD_RECORD_BARE || format == GLYD_RECORD_BARE_TRIMMED;
}

/* predictors */
enum {
  GLYD_PRED_ZERO = 0,
  GLYD_PRED_PREVIOUS = 1,
  GLYD_PRED_LINEAR = 2,
  GLYD_PRED_COLUMN = 3,
  GLYD_PRED_DELTA = 4,
  GLYD_PRED_SUM = 5,
  GLYD_PRED_DIFFERENCE = 6,
  GLYD_PRED_LAST = 7,
  GLYD_PRED_SAME = 8,
  GLYD_PRED_RANK = 9,
  GLYD_PRED_COUNT = 10
};

/* codes of a date-time pattern; other bytes stand for themselves */
enum {
  GLYD_DATE_YEAR = 1,
  GLYD_DATE_MONTH = 2,
  GLYD_DATE_NAME = 3,
  GLYD_DATE_DAY = 4,
  GLYD_DATE_DAY_SPACE = 5,
  GLYD_DATE_HOUR = 6,
  GLYD_DATE_MINUTE = 7,
  GLYD_DATE_SECOND = 8,
  GLYD_DATE_FRACTION = 9
};

typedef struct glyd_record_date {
  uint8_t len;
  uint8_t pattern[GLYD_RECORD_PATTERN_MAX + 1];
  int8_t year, month, name, day, hour, minute, second, fraction; /* offsets, -1: not there */
  uint8_t day_space, digits;                                     /* of the fraction */
  int64_t unit;                                                  /* values a second; 0: the value counts days */
} glyd_record_date;

typedef struct glyd_record_column {
  uint8_t kind, format, point, width;
  uint8_t wide; /* planes of residuals, less one */
  uint8_t pred;
  uint8_t exceptions;
  uint16_t position;
  int32_t j, k; /* columns in decode order, -1: none */
  int32_t mask; /* column whose exceptions this one's are compared with, -1: none */
  int64_t base;
  uint32_t range, divisor;
  uint32_t text_size; /* GLYD_RECORD_SORTED: bytes of all texts */
  uint16_t end;       /* of texts: the byte that each ends with, + 1; 0: their lengths are the values */
  uint32_t adjust;    /* added to predictions from other columns, modulo 2^32 */
  glyd_record_date date;
} glyd_record_column;

GLYD_INLINE int glyd_record_is_number(const glyd_record_column *c) {
  return c->kind == GLYD_RECORD_INT || c->kind == GLYD_RECORD_DATE;
}
GLYD_INLINE int glyd_record_is_dictionary(const glyd_record_column *c) {
  return c->kind == GLYD_RECORD_DICT || c->kind == GLYD_RECORD_SORTED || c->kind == GLYD_RECORD_FRESH;
}
GLYD_INLINE int glyd_record_is_text(const glyd_record_column *c) {
  return c->kind == GLYD_RECORD_TEXT || c->kind == GLYD_RECORD_MORE;
}

/* The residual from which on residuals of so many planes are escapes. */
GLYD_INLINE uint32_t glyd_record_escape_from(unsigned planes) { return UINT32_MAX >> (32 - 8 * planes); }

/* Bytes of workspace a reader may use for a segment of so many content bytes. */
static inline uint64_t glyd_record_decode_memory(uint64_t content) { return 3 * content + ((uint64_t)4 << 20); }

#define GLYD_RECORD_ALIGN(n) (((uint64_t)(n) + 63) & ~(uint64_t)63)

/* Days since 1970-01-01 of a date of the proleptic Gregorian calendar. */
static inline int64_t glyd_record_days(int64_t y, int m, int d) {
  y -= m <= 2;
  const int64_t era = (y >= 0 ? y : y - 399) / 400;
  const unsigned yoe = (unsigned)(y - era * 400);
  const unsigned doy = (153u * (unsigned)(m + (m > 2 ? -3 : 9)) + 2) / 5 + (unsigned)d - 1;
  const unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return era * 146097 + (int64_t)doe - 719468;
}

static inline void glyd_record_civil(int64_t z, int *y, int *m, int *d) {
  z += 719468;
  const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
  const unsigned doe = (unsigned)(z - era * 146097);
  const unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const unsigned mp = (5 * doy + 2) / 153;
  *d = (int)(doy - (153 * mp + 2) / 5 + 1);
  *m = (int)(mp < 10 ? mp + 3 : mp - 9);
  *y = (int)((int64_t)yoe + era * 400) + (*m <= 2);
}

static const char glyd_record_months[37] = "JanFebMarAprMayJunJulAugSepOctNovDec";

/* Find the places of a pattern's fields; 0 if it is no pattern. */
static inline int glyd_record_date_compile(glyd_record_date *date) {
  int8_t *const place[10] = {NULL,       &date->year, &date->month,  &date->name,   &date->day,
                             &date->day, &date->hour, &date->minute, &date->second, &date->fraction};
  static const uint8_t size[10] = {0, 4, 2, 3, 2, 2, 2, 2, 2, 0};
  date->year = date->month = date->name = date->day = date->hour = date->minute = date->second = date->fraction = -1;
  date->day_space = date->digits = 0;
  if (date->len == 0 || date->len > GLYD_RECORD_PATTERN_MAX) return 0;
  for (unsigned i = 0; i < date->len;) {
    const uint8_t code = date->pattern[i];
    if (code == 0 || code > GLYD_DATE_FRACTION) {
      i++;
      continue;
    }
    unsigned n = 0;
    while (i + n < date->len && date->pattern[i + n] == code) n++;
    if (*place[code] >= 0 || (size[code] != 0 && n != size[code]) || n > 6) return 0;
    *place[code] = (int8_t)i;
    if (code == GLYD_DATE_DAY_SPACE) date->day_space = 1;
    if (code == GLYD_DATE_FRACTION) date->digits = (uint8_t)n;
    i += n;
  }
  const int month = date->month >= 0 || date->name >= 0;
  if ((date->month >= 0 && date->name >= 0) || month != (date->day >= 0) || (date->year >= 0 && !month)) return 0;
  const int time = date->hour >= 0 || date->minute >= 0 || date->second >= 0 || date->fraction >= 0;
  if (!month && !time) return 0;
  date->unit = 0;
  if (time) {
    date->unit = 1;
    for (unsigned i = 0; i < date->digits; i++) date->unit *= 10;
  }
  return 1;
}

/* Day 0 of patterns without a year: 1972 has all days. */
#define GLYD_RECORD_DAY_ZERO 730

/* Smallest value and first value past the largest that a pattern can show. */
static inline void glyd_record_date_bounds(const glyd_record_date *date, int64_t *low, int64_t *high) {
  int64_t first = 0, last = 1;
  if (date->year >= 0) {
    first = glyd_record_days(0, 1, 1);
    last = glyd_record_days(10000, 1, 1);
  } else if (date->day >= 0) {
    last = 366;
  }
  const int64_t a_day = date->unit != 0 ? 86400 * date->unit : 1;
  *low = first * a_day;
  *high = last * a_day;
}

GLYD_INLINE void glyd_record_two(uint8_t *p, unsigned v) {
  p[0] = (uint8_t)('0' + v / 10);
  p[1] = (uint8_t)('0' + v % 10);
}

/* What a day looks like in the pattern: everything but hour, minute, second and fraction. */
static inline void glyd_record_date_day(const glyd_record_date *date, int64_t day, uint8_t *out) {
  int y, m, d;
  memcpy(out, date->pattern, date->len);
  if (date->day < 0) return;
  glyd_record_civil(date->year >= 0 ? day : day + GLYD_RECORD_DAY_ZERO, &y, &m, &d);
  if (date->year >= 0) {
    glyd_record_two(out + date->year, (unsigned)y / 100);
    glyd_record_two(out + date->year + 2, (unsigned)y % 100);
  }
  if (date->month >= 0) glyd_record_two(out + date->month, (unsigned)m);
  if (date->name >= 0) memcpy(out + date->name, glyd_record_months + 3 * (m - 1), 3);
  glyd_record_two(out + date->day, (unsigned)d);
  if (date->day_space && d < 10) out[date->day] = ' ';
}

/* Split a value into day and time of day. */
static inline int64_t glyd_record_date_split(const glyd_record_date *date, int64_t x, uint32_t *second,
                                             uint32_t *fraction) {
  if (date->unit == 0) {
    *second = *fraction = 0;
    return x;
  }
  const int64_t a_day = 86400 * date->unit;
  int64_t day = x / a_day;
  int64_t rest = x % a_day;
  if (rest < 0) {
    rest += a_day;
    day--;
  }
  *second = (uint32_t)(rest / date->unit);
  *fraction = (uint32_t)(rest % date->unit);
  return day;
}

static inline void glyd_record_date_time(const glyd_record_date *date, uint32_t second, uint32_t fraction,
                                         uint8_t *out) {
  if (date->hour >= 0) glyd_record_two(out + date->hour, second / 3600);
  if (date->minute >= 0) glyd_record_two(out + date->minute, second / 60 % 60);
  if (date->second >= 0) glyd_record_two(out + date->second, second % 60);
  for (unsigned i = date->digits; i-- > 0; fraction /= 10)
    out[(unsigned)date->fraction + i] = (uint8_t)('0' + fraction % 10);
}

/* Text of an integer of a column; out has 32 bytes. Returns its length. */
static inline unsigned glyd_record_int_text(const glyd_record_column *c, int64_t x, uint8_t *out) {
  uint8_t digits[24];
  unsigned n = 0, at = 0, point = c->point;
  uint64_t a = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
  const int trimmed = glyd_record_trimmed_to(c->format);
  while (trimmed >= 0 && point > (unsigned)trimmed && a % 10 == 0) {
    a /= 10;
    point--;
  }
  do {
    digits[n++] = (uint8_t)('0' + a % 10);
    a /= 10;
  } while (a != 0);
  const int padded = c->format == GLYD_RECORD_PADDED || c->format == GLYD_RECORD_TAIL;
  const unsigned whole = !(glyd_record_is_bare(c->format) && point > 0), least = padded ? c->width : point + whole;
  while (n < least) digits[n++] = '0';
  unsigned end = 0; /* zeros at the end that are left out */
  while (c->format == GLYD_RECORD_TAIL && end < n && digits[end] == '0') end++;
  const unsigned len = (x < 0) + n + (point > 0);
  for (unsigned i = len; c->format == GLYD_RECORD_ALIGNED && i < c->width; i++) out[at++] = ' ';
  if (x < 0) out[at++] = '-';
  while (n > point + end) out[at++] = digits[--n];
  if (point > 0) {
    out[at++] = '.';
    while (n > 0) out[at++] = digits[--n];
  }
  return at;
}

/* Text of value v of an integer or date-time column; out has 32 bytes. */
static inline unsigned glyd_record_text(const glyd_record_column *c, uint32_t v, uint8_t *out) {
  if (c->kind == GLYD_RECORD_INT) {
    if (c->format == GLYD_RECORD_CLOCK) {
      const int64_t minute = c->base + v;
      return glyd_record_int_text(c, minute / 60 * 100 + minute % 60, out);
    }
    return glyd_record_int_text(c, c->base + (int64_t)((uint64_t)v * c->divisor), out);
  }
  uint32_t second, fraction;
  const int64_t day =
      glyd_record_date_split(&c->date, c->base + (int64_t)((uint64_t)v * c->divisor), &second, &fraction);
  glyd_record_date_day(&c->date, day, out);
  glyd_record_date_time(&c->date, second, fraction, out);
  return c->date.len;
}

/* Most bytes that a value of an integer or date-time column can take. */
static inline unsigned glyd_record_text_max(const glyd_record_column *c) {
  if (c->kind == GLYD_RECORD_DATE) return c->date.len;
  uint8_t text[32];
  glyd_record_column plain = *c;
  if (c->format == GLYD_RECORD_TAIL) return c->width;
  if (glyd_record_trimmed_to(c->format) >= 0) plain.format = GLYD_RECORD_PLAIN;
  const unsigned a = glyd_record_text(&plain, 0, text);
  const unsigned b = glyd_record_text(&plain, c->range, text);
  return a > b ? a : b;
}

/* Keys of a column whose prediction has keys; 0: none, or too many. */
static inline uint32_t glyd_record_keys(const glyd_record_column *c, const glyd_record_column *columns) {
  if (c->pred < GLYD_PRED_LAST) return 0;
  uint64_t n = (uint64_t)columns[c->j].range + 1;
  if (c->k >= 0) n *= (uint64_t)columns[c->k].range + 1;
  return n <= GLYD_RECORD_KEYS_MAX ? (uint32_t)n : 0;
}

/* What a reader needs at least for a column, beside its streams: with this much
 * it can do without tables of slots. keys, pairs: of the prediction. */
static inline uint64_t glyd_record_column_memory(const glyd_record_column *c, uint32_t rows, uint64_t keys,
                                                 uint64_t pairs) {
  const uint64_t batch = rows < GLYD_RECORD_BATCH ? rows : GLYD_RECORD_BATCH;
  uint64_t n = 2048 + batch * (4 + 4 + 8 + 32) + c->exceptions * (uint64_t)80 + 4 * (keys + 16) + 2 * (pairs + 32);
  if (glyd_record_is_dictionary(c)) n += 4 * ((uint64_t)c->range + 2) + c->text_size + 2 * GLYD_RECORD_PAD;
  return n;
}

/* And for a table, without its columns. */
static inline uint64_t glyd_record_table_memory(uint64_t columns, uint64_t literal) {
  return 8192 + 512 * columns + 4 * literal;
}

#endif
