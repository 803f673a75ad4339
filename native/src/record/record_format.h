/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Values as text in slots, a batch at a time: digits of all values first, in a
 * loop that vectorises, then their lengths and places, with no branch on a value.
 */
#ifndef GLYD_RECORD_FORMAT_H
#define GLYD_RECORD_FORMAT_H

#include "record/record_rebuild.h"

#define EIGHT_DIGITS 100000000u /* numbers below it have eight digits at most */
#define ZEROS 0x3030303030303030u

/* A slot's text is there: what follows it, and the length. */
GLYD_INLINE void put_slot(uint8_t *slot, unsigned size, unsigned len, const glyd_record_field *f) {
  if (f->suffix_len <= 8)
    memcpy(slot + len, f->suffix, 8);
  else
    memcpy(slot + len, f->suffix, 32);
  slot[size - 1] = (uint8_t)(len + f->suffix_len);
}

GLYD_INLINE uint32_t four_digits(uint32_t v) {
  /* multiplications by reciprocals, digits in separate bytes */
  const uint32_t b = v * 10486 >> 20;
  const uint32_t c = (v - b * 100) << 16 | b;
  const uint32_t d = c * 103 >> 10 & 0x000F000F;
  return ((c - d * 10) << 8 | d) + 0x30303030;
}

GLYD_INLINE uint64_t eight_digits(uint32_t v) {
  return four_digits(v / 10000) | (uint64_t)four_digits(v % 10000) << 32;
}

/* a is not const only because gcc 12 would then warn that it may have nothing in it. */
static GLYD_NOINLINE void digits_of(uint32_t *restrict a, uint32_t n, uint64_t *restrict out, uint32_t step) {
  uint64_t text[GLYD_RECORD_BATCH];
  for (uint32_t i = 0; i < n; i++) text[i] = eight_digits(a[i]);
  for (uint32_t i = 0; i < n; i++) out[i * step] = text[i];
}

/* How numbers of a column are written: at least so many digits, so many of them
 * after the point, of which so many may be left out if they are zeros. */
typedef struct number_form {
  unsigned least, point, trim;
  unsigned tail;  /* 1: zeros at the end of a whole number are left out */
  unsigned width; /* bytes, with spaces in front */
} number_form;

/* Zeros at the end of eight digits, less ZEROS. */
GLYD_INLINE unsigned zeros_after(uint64_t digits) { return digits ? (63 - glyd_log2_64(digits)) >> 3 : 8; }

/* The number of these eight digits at d, of which 24 bytes are written; returns its length. */
GLYD_INLINE unsigned put_number(uint8_t *d, uint64_t eight, number_form form) {
  const uint64_t value = eight ^ ZEROS;
  unsigned digits = 8 - (glyd_ctz64(value | (uint64_t)1 << 56) >> 3), point = form.point;
  digits = digits < form.least ? form.least : digits;
  const uint64_t text = eight >> (8 * (8 - digits));
  glyd_store64(d, text);
  if (form.point == 0) return form.tail && value ? digits - zeros_after(value) : form.tail ? 0 : digits;
  const unsigned whole = digits - point; /* 1 to 7 */
  d[whole] = '.';
  glyd_store64(d + whole + 1, text >> (8 * whole));
  if (form.trim > 0) {
    const unsigned zeros = (63 - glyd_log2_64(value | 1)) >> 3; /* at the end; all 8 are if value is 0 */
    point -= zeros < form.trim ? zeros : form.trim;
    if (whole + point == 0) { /* the bare form of 0 */
      d[0] = '0';
      return 1;
    }
  }
  return point > 0 ? whole + 1 + point : whole;
}

/* The same of sixteen digits, followed by 16 readable bytes, with 9 after the point at most; 40 bytes are written. */
GLYD_INLINE unsigned put_long_number(uint8_t *d, const uint64_t *sixteen, number_form form) {
  const uint64_t high = sixteen[0] ^ ZEROS, low = sixteen[1] ^ ZEROS;
  const unsigned begin = high ? glyd_ctz64(high) >> 3 : 8 + (glyd_ctz64(low | (uint64_t)1 << 56) >> 3);
  const unsigned from = begin + form.least < 16 ? begin : 16 - form.least;
  const unsigned whole = 16 - from - form.point;
  const uint8_t *const text = (const uint8_t *)sixteen + from;
  unsigned point = form.point;
  memcpy(d, text, 16);
  if (form.point == 0)
    return !form.tail ? whole : (high | low) == 0 ? 0 : whole - (low ? zeros_after(low) : 8 + zeros_after(high));
  d[whole] = '.';
  memcpy(d + whole + 1, text + whole, 16);
  if (form.trim > 0) {
    const unsigned zeros = low ? (63 - glyd_log2_64(low)) >> 3 : 8 + ((63 - glyd_log2_64(high | 1)) >> 3);
    point -= zeros < form.trim ? zeros : form.trim;
    if (whole + point == 0) {
      d[0] = '0';
      return 1;
    }
  }
  return point > 0 ? whole + 1 + point : whole;
}

/* Put spaces before a text of so many bytes; 56 bytes from d may be written over. */
GLYD_INLINE unsigned align_text(uint8_t *d, unsigned len, unsigned width) {
  uint8_t text[32];
  if (len >= width) return len;
  memcpy(text, d, 32);
  memset(d, ' ', 24);
  memcpy(d + (width - len), text, 32);
  return width;
}

typedef struct number_column {
  const glyd_record_field *f;
  number_form form;
  const int32_t *v;
  uint32_t n;
  uint8_t *slots;
} number_column;

GLYD_INLINE void put_short_numbers(const number_column *k, const uint8_t *minus, const uint64_t *text, unsigned size,
                                   number_form form) {
  uint8_t *d = k->slots;
  for (uint32_t i = 0; i < k->n; i++, d += size) {
    d[0] = '-';
    const unsigned len = minus[i] + put_number(d + minus[i], text[i], form);
    put_slot(d, size, form.width > 0 ? align_text(d, len, form.width) : len, k->f);
  }
}

/* All values of the column are below 10^8. */
static void short_numbers(const number_column *k, unsigned size) {
  const glyd_record_column *const c = k->f->column;
  const uint32_t base = (uint32_t)(uint64_t)c->base, divisor = c->divisor;
  uint32_t a[GLYD_RECORD_BATCH];
  uint64_t text[GLYD_RECORD_BATCH];
  uint8_t minus[GLYD_RECORD_BATCH];
  for (uint32_t i = 0; i < k->n; i++) a[i] = base + (uint32_t)k->v[i] * divisor;
  for (uint32_t i = 0; i < k->n; i++) minus[i] = (uint8_t)(a[i] >> 31);
  for (uint32_t i = 0; i < k->n; i++) a[i] = a[i] >> 31 ? 0 - a[i] : a[i];
  if (c->format == GLYD_RECORD_CLOCK)
    for (uint32_t i = 0; i < k->n; i++) a[i] += a[i] / 60 * 40;
  digits_of(a, k->n, text, 1);
  const number_form form = k->form;
  if (form.tail || form.width > 0)
    put_short_numbers(k, minus, text, size, form);
  else if (form.point == 0)
    put_short_numbers(k, minus, text, size, (number_form){form.least, 0, 0, 0, 0});
  else if (form.trim == 0)
    put_short_numbers(k, minus, text, size, (number_form){form.least, form.point, 0, 0, 0});
  else
    put_short_numbers(k, minus, text, size, (number_form){form.least, form.point, form.trim, 0, 0});
}

/* Below 10^16. */
static void long_numbers(const number_column *k, unsigned size) {
  const glyd_record_column *const c = k->f->column;
  uint32_t low[GLYD_RECORD_BATCH], high[GLYD_RECORD_BATCH];
  uint64_t text[2 * GLYD_RECORD_BATCH + 2];
  uint8_t minus[GLYD_RECORD_BATCH];
  for (uint32_t i = 0; i < k->n; i++) {
    const uint64_t x = (uint64_t)c->base + (uint64_t)(uint32_t)k->v[i] * c->divisor;
    const uint64_t a = x >> 63 ? 0 - x : x;
    minus[i] = (uint8_t)(x >> 63);
    high[i] = (uint32_t)(a / EIGHT_DIGITS);
    low[i] = (uint32_t)(a % EIGHT_DIGITS);
  }
  digits_of(high, k->n, text, 2);
  digits_of(low, k->n, text + 1, 2);
  text[2 * k->n] = text[2 * k->n + 1] = 0;
  uint8_t *d = k->slots;
  for (uint32_t i = 0; i < k->n; i++, d += size) {
    d[0] = '-';
    const unsigned len = minus[i] + put_long_number(d + minus[i], text + 2 * i, k->form);
    put_slot(d, size, k->form.width > 0 ? align_text(d, len, k->form.width) : len, k->f);
  }
}

static void format_numbers(const number_column *k, unsigned size) {
  const glyd_record_column *const c = k->f->column;
  const int64_t last = c->base + (int64_t)((uint64_t)c->range * c->divisor);
  const uint64_t a = c->base < 0 ? 0 - (uint64_t)c->base : (uint64_t)c->base;
  const uint64_t b = last < 0 ? 0 - (uint64_t)last : (uint64_t)last, most = a > b ? a : b;
  if (most < EIGHT_DIGITS && k->form.least <= 8 && k->form.point < 8) {
    short_numbers(k, size);
  } else if (most < (uint64_t)EIGHT_DIGITS * EIGHT_DIGITS && k->form.least <= 16) {
    long_numbers(k, size);
  } else {
    for (uint32_t i = 0; i < k->n; i++) {
      uint8_t text[32], *const d = k->slots + (size_t)i * size;
      const unsigned len = glyd_record_text(c, (uint32_t)k->v[i], text);
      memcpy(d, text, len);
      put_slot(d, size, len, k->f);
    }
  }
}

/* The text of values from begin on and before end: of a minute, or of a day where there are no times. */
typedef struct minute_text {
  int64_t begin, end, day_begin, day_end;
  uint8_t text[32];
} minute_text;

/* That of the minute, or the day, in which x lies. */
static GLYD_NOINLINE void find_minute(const glyd_record_date *date, int64_t x, minute_text *m) {
  const int64_t a_day = date->unit != 0 ? 86400 * date->unit : 1;
  if (x < m->day_begin || x >= m->day_end) {
    uint32_t second, fraction;
    const int64_t day = glyd_record_date_split(date, x, &second, &fraction);
    glyd_record_date_day(date, day, m->text);
    m->day_begin = day * a_day;
    m->day_end = m->day_begin + a_day;
  }
  m->begin = m->day_begin;
  m->end = m->day_end;
  if (date->unit == 0) return;
  /* a time of day is below 2^37, a minute at most 6 * 10^7 < 2^26: the product is exact */
  const uint64_t a_minute = 60 * (uint64_t)date->unit, reciprocal = UINT64_MAX / a_minute + 1;
  const uint32_t minute = (uint32_t)(((unsigned __int128)(uint64_t)(x - m->day_begin) * reciprocal) >> 64);
  m->begin += (int64_t)(minute * a_minute);
  m->end = m->begin + (int64_t)a_minute;
  if (date->hour >= 0) glyd_record_two(m->text + date->hour, minute / 60);
  if (date->minute >= 0) glyd_record_two(m->text + date->minute, minute % 60);
}

/* Times that follow one another share a minute: its text is copied, and the rest of a value is, in decimal, seconds and
 * fraction as they stand. */
static void format_dates(const number_column *k, unsigned size) {
  const glyd_record_column *const c = k->f->column;
  const glyd_record_date *const date = &c->date;
  minute_text m = {0, 0, 0, 0, {0}};
  uint8_t minutes[GLYD_RECORD_BATCH * 32 + 8]; /* what follows a slot's text reaches into the next one */
  uint32_t rest[GLYD_RECORD_BATCH];
  uint64_t digits[GLYD_RECORD_BATCH];
  for (uint32_t i = 0; i < k->n; i++) {
    const int64_t x = c->base + (int64_t)((uint64_t)(uint32_t)k->v[i] * c->divisor);
    if (x < m.begin || x >= m.end) find_minute(date, x, &m);
    memcpy(minutes + (size_t)i * 32, m.text, 32);
    rest[i] = (uint32_t)(x - m.begin);
  }
  if (date->unit > 0) digits_of(rest, k->n, digits, 1);
  const unsigned unused = 8 * (8u - date->digits), second = 8 * (6u - date->digits);
  const uint64_t keep = UINT64_MAX << (8 * date->digits);
  uint8_t *d = k->slots;
  for (uint32_t i = 0; i < k->n; i++, d += size) {
    const uint8_t *const minute = minutes + (size_t)i * 32;
    memcpy(d, minute, 32); /* of a size that the compiler knows */
    if (date->digits > 0)
      glyd_store64(d + date->fraction, digits[i] >> unused | (glyd_load64(minute + date->fraction) & keep));
    if (date->second >= 0) glyd_store16(d + date->second, (uint16_t)(digits[i] >> second));
    put_slot(d, size, date->len, k->f);
  }
}

GLYD_INLINE void format_sized(const number_column *k, unsigned size) {
  if (k->f->column->kind == GLYD_RECORD_DATE)
    format_dates(k, size);
  else
    format_numbers(k, size);
}

/* Slots of so many bytes (16 or 32) for n values of a column of numbers or date-times, n at most a
 * batch. 64 bytes after the last slot may be written over. */
static GLYD_NOINLINE void format(const glyd_record_field *f, const int32_t *v, uint32_t n, unsigned size,
                                 uint8_t *slots) {
  const glyd_record_column *const c = f->column;
  const int trimmed = glyd_record_trimmed_to(c->format);
  const unsigned trim = trimmed >= 0 && c->point > trimmed ? c->point - (unsigned)trimmed : 0;
  const unsigned tail = c->format == GLYD_RECORD_TAIL, padded = tail || c->format == GLYD_RECORD_PADDED;
  const unsigned least = padded && c->width > 0 ? c->width : c->point + (unsigned)!glyd_record_is_bare(c->format);
  const unsigned width = c->format == GLYD_RECORD_ALIGNED ? c->width : 0;
  const number_column k = {f, {least, c->point, trim, tail, width}, v, n, slots};
  if (size == 16)
    format_sized(&k, 16);
  else
    format_sized(&k, 32);
}

/* The same of texts of so many bytes that they fit; what follows them can be read. */
GLYD_INLINE void format_text(const glyd_record_field *f, uint8_t *slot, unsigned size, const uint8_t *text,
                             unsigned len) {
  memcpy(slot, text, size);
  put_slot(slot, size, len, f);
}

#endif
