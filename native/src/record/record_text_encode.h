/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading numbers and date-times that can be written back byte for byte.
 */
#ifndef GLYD_RECORD_TEXT_ENCODE_H
#define GLYD_RECORD_TEXT_ENCODE_H

#include "record/record_common.h"

/* Kinds of number, as samples of a column show them. */
typedef struct glyd_record_numbers {
  uint32_t integers, padded, decimals, others;
  uint32_t width;         /* most of those of digits only */
  uint32_t with_width;    /* of these, those that have it */
  uint32_t least, most;   /* digits after the point of decimals */
  uint32_t with_most;     /* decimals that have so many */
  uint32_t zeros, zeros1; /* decimals that end in 0; those that end in ".0" */
  uint32_t naught, bare;  /* decimals below 1 with a 0 before the point, and without */
  uint32_t empty;         /* no text, in others too */
  uint32_t longer;        /* numbers without a point that are too long for a tail */
  uint32_t round;         /* of these, those that end in 0 */
  uint32_t aligned;       /* with spaces in front */
  uint32_t size, sizes;   /* bytes of all texts, spaces included; sizes > 1: they differ */
} glyd_record_numbers;

void glyd_record_count_number(glyd_record_numbers *numbers, const uint8_t *p, uint32_t n);

/* Format for such numbers: 1, and format, point and width of the column are set; 0: none. */
int glyd_record_number_format(const glyd_record_numbers *numbers, glyd_record_column *column);

/* Pattern for a text like this; 0: none. */
int glyd_record_date_find(glyd_record_date *date, const uint8_t *p, uint32_t n, unsigned variant);

/* Dates read one after the other. */
typedef struct glyd_record_date_cache {
  int year, month, day;
  int64_t days;
  uint64_t literal[4], mask[4];
} glyd_record_date_cache;

void glyd_record_date_begin(glyd_record_date_cache *cache, const glyd_record_date *date);

/* The value of a text, n bytes at p of which more may be read up to end; 0: it has none. */
int glyd_record_date_read(glyd_record_date_cache *cache, const glyd_record_date *date, const uint8_t *p, uint32_t n,
                          const uint8_t *end, int64_t *value);
int glyd_record_number_read(const glyd_record_column *column, const uint8_t *p, uint32_t n, const uint8_t *end,
                            int64_t *value);

/* The number of up to eight digits, the first of them in the lowest byte. 0: it is none. */
GLYD_INLINE int glyd_record_eight_digits(uint64_t v, uint32_t n, uint64_t *out) {
  v <<= 64 - 8 * n;
  if (n < 8) v |= (uint64_t)0x3030303030303030 >> (8 * n);
  const uint64_t x = v ^ 0x3030303030303030;
  if ((x | (x + 0x7676767676767676)) & 0x8080808080808080) return 0;
  const uint64_t y = x * 10 + (x >> 8);
  *out = (((y & 0x000000FF000000FF) * 0x000F424000000064) + (((y >> 16) & 0x000000FF000000FF) * 0x0000271000000001)) >>
             32 &
         0xFFFFFFFF;
  return 1;
}

#endif
