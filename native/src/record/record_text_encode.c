/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "record/record_text_encode.h"

#define DIGITS_MAX 18u

GLYD_INLINE int is_digit(uint8_t c) { return (uint8_t)(c - '0') < 10; }

/* ---- numbers ---- */

void glyd_record_count_number(glyd_record_numbers *s, const uint8_t *p, uint32_t n) {
  if (s->sizes == 0) s->size = n;
  if (s->sizes < 2) s->sizes = s->size == n ? 1 : 2;
  s->empty += n == 0;
  if (n > 1 && *p == ' ') {
    s->aligned++;
    while (n > 1 && *p == ' ') {
      p++;
      n--;
    }
  }
  const uint32_t sign = n > 1 && *p == '-';
  uint32_t whole = 0;
  p += sign;
  n -= sign;
  while (whole < n && is_digit(p[whole])) whole++;
  uint32_t after = 0;
  if (whole < n && p[whole] == '.')
    while (whole + 1 + after < n && is_digit(p[whole + 1 + after])) after++;
  const int is_decimal = whole < n && p[whole] == '.' && after > 0 && whole + 1 + after == n;
  if ((whole == 0 && !is_decimal) || whole + after > DIGITS_MAX || (whole < n && !is_decimal) || after > 9 ||
      (is_decimal && whole > 1 && *p == '0')) {
    s->others++;
    return;
  }
  if (is_decimal) {
    if (s->decimals == 0 || after < s->least) s->least = after;
    if (after > s->most) s->with_most = 0;
    if (after > s->most) s->most = after;
    s->with_most += after == s->most;
    s->decimals++;
    s->naught += whole == 1 && *p == '0';
    s->bare += whole == 0;
    if (p[n - 1] == '0') {
      s->zeros++;
      s->zeros1 += after == 1;
    }
    return;
  }
  if (*p == '0' && n > 1) {
    s->padded++;
    if (sign) s->others++;
  } else {
    s->integers++;
  }
  s->longer += n > GLYD_RECORD_TAIL_MAX;
  s->round += p[n - 1] == '0';
  if (n > s->width) s->with_width = 0;
  if (n > s->width) s->width = n;
  s->with_width += n == s->width;
}

/* Numbers of one size, made so by spaces in front. */
static int aligned_format(const glyd_record_numbers *s, uint32_t numbers, glyd_record_column *c) {
  if (s->sizes > 1 || s->size > GLYD_RECORD_ALIGNED_MAX || s->padded * 50 > numbers || s->bare > 0) return 0;
  if (s->decimals > 0 && (s->least < s->most || s->integers * 8 > s->decimals)) return 0;
  c->format = GLYD_RECORD_ALIGNED;
  c->width = (uint8_t)s->size;
  c->point = (uint8_t)s->most;
  return 1;
}

int glyd_record_number_format(const glyd_record_numbers *s, glyd_record_column *c) {
  const uint32_t all = s->integers + s->padded + s->decimals + s->others;
  const uint32_t numbers = s->integers + s->padded + s->decimals;
  c->point = c->width = 0;
  c->format = GLYD_RECORD_PLAIN;
  if (s->decimals == 0 && s->padded * 50 > numbers && s->with_width < numbers && s->longer * 50 <= numbers &&
      s->round * 50 <= numbers && s->aligned == 0 && (numbers + s->empty) * 2 > all) {
    c->format = GLYD_RECORD_TAIL;
    c->width = GLYD_RECORD_TAIL_MAX;
    return 1;
  }
  if (numbers == 0 || numbers * 2 < all) return 0;
  if (s->aligned > 0) return aligned_format(s, numbers, c);
  if (s->decimals * 16 < numbers) {
    if (s->padded * 50 > numbers) {
      if (s->with_width * 20 < numbers * 19) return 0; /* a few others are exceptions */
      c->format = GLYD_RECORD_PADDED;
      c->width = (uint8_t)s->width;
    }
    return 1;
  }
  if (s->padded * 50 > numbers) return 0;
  c->point = (uint8_t)s->most;
  const int bare = s->bare > s->naught;
  if (bare) c->format = GLYD_RECORD_BARE;
  if (s->least == s->most && s->integers * 8 <= s->decimals) return 1;
  if (s->zeros * 50 <= s->decimals) {
    c->format = bare ? GLYD_RECORD_BARE_TRIMMED : GLYD_RECORD_TRIMMED;
  } else if (s->with_most * 20 >= s->decimals * 19 && s->integers * 8 <= s->decimals) {
    return 1; /* a few others are exceptions */
  } else if (bare) {
    return 0;
  } else if (s->zeros <= s->zeros1 + s->decimals / 50 && s->integers * 50 <= s->decimals) {
    c->format = GLYD_RECORD_TRIMMED1;
  } else {
    return 0;
  }
  return 1;
}

static int digits(const uint8_t *p, uint32_t n, const uint8_t *end, uint64_t *value) {
  uint64_t v = 0;
  if (n == 0 || n > DIGITS_MAX) return 0;
  if (n <= 8 && end - p >= 8) return glyd_record_eight_digits(glyd_load64(p), n, value);
  for (uint32_t i = 0; i < n; i++) {
    if (!is_digit(p[i])) return 0;
    v = v * 10 + (uint64_t)(p[i] - '0');
  }
  *value = v;
  return 1;
}

static const uint32_t powers[10] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

int glyd_record_number_read(const glyd_record_column *c, const uint8_t *p, uint32_t n, const uint8_t *end,
                            int64_t *value) {
  uint64_t whole, rest = 0;
  if (c->format == GLYD_RECORD_PADDED) {
    if (n != c->width || !digits(p, n, end, &whole)) return 0;
    *value = (int64_t)whole;
    return 1;
  }
  if (c->format == GLYD_RECORD_TAIL) {
    if (n > c->width || (n > 0 && p[n - 1] == '0') || (n > 0 && !digits(p, n, end, &rest))) return 0;
    *value = (int64_t)(rest * powers[c->width - n]);
    return 1;
  }
  if (c->format == GLYD_RECORD_ALIGNED) {
    const int spaces = n > 0 && *p == ' ';
    if (spaces ? n != c->width : n < c->width) return 0;
    while (n > 0 && *p == ' ') {
      p++;
      n--;
    }
  }
  const uint32_t sign = n > 1 && *p == '-';
  p += sign;
  n -= sign;
  if (n == 0) return 0;
  const int bare = glyd_record_is_bare(c->format);
  uint32_t w = n, after = 0;
  if (c->point > 0) {
    if (glyd_record_trimmed_to(c->format) < 0) {
      if (n < c->point + 1u + !bare) return 0;
      w = n - c->point - 1;
      after = c->point;
      if (p[w] != '.') return 0;
    } else {
      w = 0;
      while (w < n && p[w] != '.') w++;
      if (w < n) {
        after = n - w - 1;
        if (after == 0 || after > c->point) return 0;
        if (p[n - 1] == '0' && !(c->format == GLYD_RECORD_TRIMMED1 && after == 1)) return 0;
      } else if (c->format == GLYD_RECORD_TRIMMED1) {
        return 0;
      }
    }
  }
  if (w + c->point > DIGITS_MAX || (*p == '0' && (w > 1 || (bare && w < n)))) return 0;
  whole = 0;
  if (w == 0 && !bare) return 0;
  if ((w > 0 && !digits(p, w, end, &whole)) || (after > 0 && !digits(p + w + 1, after, end, &rest))) return 0;
  const uint64_t v = whole * powers[c->point] + rest * powers[c->point - after];
  if (sign && v == 0) return 0;
  *value = sign ? -(int64_t)v : (int64_t)v;
  return 1;
}

/* ---- date-times ---- */

/* Y, m, d … are fields; T stands for any one byte that is no digit, other bytes for themselves. */
static const char *const layouts[] = {"Y-m-dTH:M:S", "Y/m/dTH:M:S", "d/b/YTH:M:S", "b e H:M:S", "d/m/YTH:M:S",
                                      "m/d/YTH:M:S", "d.m.YTH:M:S", "YmdTH:M:S",   "Y-m-dTH:M", "Y-m-d",
                                      "Y/m/d",       "d/m/Y",       "m/d/Y",       "d.m.Y",     "H:M:S",
                                      "d-b-YTH:M:S", "b d YTH:M:S", "d b YTH:M:S", "b d H:M:S", "Y/m/dTH:M",
                                      "d/m/YTH:M",   "m/d/YTH:M",   "d.m.YTH:M",   "H:M"};

static uint32_t find_field(glyd_record_date *date, uint32_t at, char field, const uint8_t *p, uint32_t n) {
  static const char letters[] = "YmbdeHMS";
  static const uint8_t sizes[] = {4, 2, 3, 2, 2, 2, 2, 2};
  const char *const found = strchr(letters, field);
  const uint8_t code = found ? (uint8_t)(found - letters + 1) : 0;
  const uint32_t size = found ? sizes[found - letters] : 1;
  if (n < size || at + size > GLYD_RECORD_PATTERN_MAX) return 0;
  if (!found) {
    if (field == 'T' ? is_digit(*p) || *p < 32 : *p != (uint8_t)field) return 0;
    date->pattern[at] = *p;
    return 1;
  }
  for (uint32_t i = 0; i < size; i++) {
    if (field == 'b' ? (p[i] | 32) < 'a' || (p[i] | 32) > 'z'
                     : !is_digit(p[i]) && !(field == 'e' && i == 0 && p[i] == ' '))
      return 0;
    date->pattern[at + i] = code;
  }
  return size;
}

int glyd_record_date_find(glyd_record_date *date, const uint8_t *p, uint32_t n, unsigned variant) {
  if (n < 5 || variant >= sizeof layouts / sizeof *layouts) return 0;
  uint32_t at = 0;
  for (const char *l = layouts[variant]; *l; l++) {
    const uint32_t size = find_field(date, at, *l, p + at, n - at);
    if (size == 0) return 0;
    at += size;
  }
  if (at < n && is_digit(p[at])) return 0;
  if (strchr(layouts[variant], 'S') && at + 1 < n && (p[at] == '.' || p[at] == ',') && is_digit(p[at + 1])) {
    uint32_t k = 1;
    while (at + k < n && is_digit(p[at + k])) k++;
    if (k > 7 || at + k > GLYD_RECORD_PATTERN_MAX) return 0;
    date->pattern[at] = p[at];
    memset(date->pattern + at + 1, GLYD_DATE_FRACTION, k - 1);
    at += k;
  }
  for (; at < n; at++) {
    if (at == GLYD_RECORD_PATTERN_MAX || p[at] < 32) return 0;
    date->pattern[at] = p[at];
  }
  date->len = (uint8_t)at;
  return glyd_record_date_compile(date);
}

void glyd_record_date_begin(glyd_record_date_cache *cache, const glyd_record_date *date) {
  uint8_t literal[32] = {0}, mask[32] = {0};
  for (unsigned i = 0; i < date->len; i++) {
    if (date->pattern[i] != 0 && date->pattern[i] <= GLYD_DATE_FRACTION) continue;
    literal[i] = date->pattern[i];
    mask[i] = 255;
  }
  *cache = (glyd_record_date_cache){.year = -1};
  memcpy(cache->literal, literal, 32);
  memcpy(cache->mask, mask, 32);
}

GLYD_INLINE int two(const uint8_t *p) {
  const unsigned a = (unsigned)p[0] - '0', b = (unsigned)p[1] - '0';
  return a > 9 || b > 9 ? -10000 : (int)(a * 10 + b);
}

static int month_of(const uint8_t *p) {
  for (int m = 0; m < 12; m++)
    if (memcmp(p, glyd_record_months + 3 * m, 3) == 0) return m + 1;
  return -1;
}

int glyd_record_date_read(glyd_record_date_cache *cache, const glyd_record_date *date, const uint8_t *p, uint32_t n,
                          const uint8_t *end, int64_t *value) {
  uint8_t copy[32];
  if (n != date->len) return 0;
  if (end - p < 32) {
    memset(copy, 0, sizeof copy);
    memcpy(copy, p, n);
    p = copy;
  }
  uint64_t differ = 0;
  for (unsigned i = 0; i < 4; i++) differ |= (glyd_load64(p + 8 * i) ^ cache->literal[i]) & cache->mask[i];
  if (differ) return 0;
  int64_t v = 0;
  if (date->day >= 0) {
    const int year = date->year >= 0 ? two(p + date->year) * 100 + two(p + date->year + 2) : 1972;
    const int month = date->month >= 0 ? two(p + date->month) : month_of(p + date->name);
    int day;
    if (date->day_space && p[date->day] == ' ') {
      day = (int)p[date->day + 1] - '0';
      if (day < 1 || day > 9) return 0;
    } else {
      day = two(p + date->day);
      if (date->day_space && day < 10) return 0;
    }
    if (year < 0 || month < 1 || month > 12 || day < 1 || day > 31) return 0;
    if (year != cache->year || month != cache->month || day != cache->day) {
      int y, m, d;
      const int64_t days = glyd_record_days(year, month, day);
      glyd_record_civil(days, &y, &m, &d);
      if (y != year || m != month || d != day) return 0; /* no such day */
      cache->year = year;
      cache->month = month;
      cache->day = day;
      cache->days = date->year >= 0 ? days : days - GLYD_RECORD_DAY_ZERO;
    }
    v = cache->days;
  }
  if (date->unit != 0) {
    const int hour = date->hour >= 0 ? two(p + date->hour) : 0;
    const int minute = date->minute >= 0 ? two(p + date->minute) : 0;
    const int second = date->second >= 0 ? two(p + date->second) : 0;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return 0;
    v = v * 86400 + hour * 3600 + minute * 60 + second;
    int64_t fraction = 0;
    for (unsigned i = 0; i < date->digits; i++) {
      const uint8_t c = p[(unsigned)date->fraction + i];
      if (!is_digit(c)) return 0;
      fraction = fraction * 10 + (c - '0');
    }
    v = v * date->unit + fraction;
  }
  *value = v;
  return 1;
}
