/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Status codes of every glyd C function. Values are pinned in decades and
 * never change meaning:
 *   0 success · 10 header · 20 content · 30 base and dictionary · 40 parameters
 *   and limits · 60 memory and state · 70 buffers · 80 input and output.
 */
#ifndef GLYD_STATUS_H
#define GLYD_STATUS_H

typedef enum glyd_status {
  GLYD_OK = 0,

  GLYD_E_MAGIC = 10,   /* not a glyd frame: magic number differs */
  GLYD_E_VERSION = 11, /* format version newer than this library */
  GLYD_E_FEATURE = 12, /* a required feature, kind or record this library does not know */
  GLYD_E_HEADER = 13,  /* header is malformed or its check differs */

  GLYD_E_CORRUPT = 20,   /* content breaks a rule of the format */
  GLYD_E_CHECKSUM = 21,  /* content decoded, but its checksum differs */
  GLYD_E_TRUNCATED = 22, /* input ends before the frame does */
  GLYD_E_TRAILING = 23,  /* bytes after the last frame that are no frame */

  GLYD_E_BASE_MISSING = 30, /* frame needs a base and none was given */
  GLYD_E_BASE_WRONG = 31,   /* the base given is not the one the frame names */
  GLYD_E_DICT_MISSING = 32, /* frame needs a dictionary and none was given */
  GLYD_E_DICT_WRONG = 33,   /* the dictionary given is not the one the frame names */

  GLYD_E_PARAMETER = 40,      /* argument outside its documented range */
  GLYD_E_LIMIT_OUTPUT = 41,   /* content larger than limits.max_output */
  GLYD_E_LIMIT_MEMORY = 42,   /* frame needs more than limits.max_memory */
  GLYD_E_LIMIT_SEGMENTS = 43, /* frame has more than limits.max_segments */

  GLYD_E_MEMORY = 60, /* the allocator returned NULL */
  GLYD_E_STATE = 61,  /* calls out of order, or use after an error */

  GLYD_E_BUFFER = 70, /* output buffer too small */

  GLYD_E_IO = 80 /* reading or writing failed */
} glyd_status;

#endif
