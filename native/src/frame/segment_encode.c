/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "frame/segment_encode.h"

#include "block/block_encode.h"
#include "cold/cold_encode.h"
#include "common/alloc.h"
#include "common/checksum.h"
#include "common/mem.h"
#include "frame/frame_common.h"
#include "frame/header_encode.h"
#include "frame/opened_encode.h"
#include "segment/segment_base_encode.h"
#include "segment/segment_dictionary_common.h"
#include "segment/segment_dictionary_encode.h"
#include "segment/segment_filter_encode.h"
#include "segment/segment_record_encode.h"
#include "segment/segment_weights_encode.h"

/* Cold segments are small where blocks of level ultra are tried beside the model. */
static glyd_lz_config beside_cold(const glyd_plan *plan) {
  glyd_lz_config lz = plan->lz;
  lz.level = GLYD_LEVEL_ULTRA;
  if (lz.segment_size > GLYD_SMALL_CONTENT) lz.segment_size = GLYD_SMALL_CONTENT;
  return lz;
}

/* Blocks that are stored with a dictionary; at level cold those of level ultra, as far as a model is tried, too. */
static glyd_lz_config with_dictionary(const glyd_plan *plan) {
  glyd_lz_config lz = plan->lz;
  if (plan->cold) {
    lz.level = GLYD_LEVEL_ULTRA;
    lz.segment_size = glyd_segment_dictionary_first(lz.segment_size);
  }
  return lz;
}

static uint64_t dictionary_workspace(const glyd_plan *plan) {
  if (!plan->dictionary) return 0;
  const glyd_lz_config lz = with_dictionary(plan);
  return glyd_segment_dictionary_encode_workspace(&lz, plan->dictionary, plan->cold);
}

static uint64_t cold_workspace(const glyd_plan *plan) {
  const glyd_lz_config lz = beside_cold(plan);
  const uint64_t sizes[3] = {glyd_cold_encode_workspace(plan->lz.segment_size),
                             GLYD_SMALL_CONTENT + glyd_lz_encode_workspace(&lz), dictionary_workspace(plan)};
  uint64_t most = 0;
  for (unsigned i = 0; i < 3; i++)
    if (sizes[i] > most) most = sizes[i];
  return most;
}

uint64_t glyd_segment_encode_workspace(const glyd_plan *plan) {
  const uint64_t own = plan->weights == GLYD_WEIGHTS_OFF ? glyd_lz_encode_workspace(&plan->lz)
                                                         : glyd_segment_weights_encode_workspace(&plan->lz);
  if (plan->cold) {
    const uint64_t cold = cold_workspace(plan);
    return plan->weights == GLYD_WEIGHTS_OFF || cold > own ? cold : own;
  }
  const uint64_t base = plan->base ? glyd_segment_base_encode_workspace(&plan->lz) : dictionary_workspace(plan);
  const uint64_t first = GLYD_RECORD_ALIGN(base > own ? base : own) + glyd_segment_filter_encode_workspace(&plan->lz);
  return plan->records ? first + glyd_segment_record_encode_workspace(&plan->lz) : first;
}

/* A filtered segment, of any number of bytes below len; *size 0: no filter pays. */
static glyd_status encode_filtered(const glyd_plan *plan, void *workspace, const uint8_t *in, size_t len,
                                   uint8_t *payload, size_t *size) {
  const uint64_t records = plan->records ? glyd_segment_record_encode_workspace(&plan->lz) : 0;
  uint8_t *const own = (uint8_t *)workspace + glyd_segment_encode_workspace(plan) - records -
                       glyd_segment_filter_encode_workspace(&plan->lz);
  return glyd_segment_filter_encode(&plan->lz, workspace, own, in, len, payload, len - 1, size);
}

/* The segment of a plan without records: filtered if that pays, else of blocks. GLYD_E_BUFFER: blocks take more
 * than cap. */
static glyd_status encode_plain(const glyd_plan *plan, void *workspace, const uint8_t *in, size_t len, uint8_t *payload,
                                size_t cap, int *kind, size_t *size) {
  *kind = GLYD_KIND_FILTERED;
  const glyd_status status = encode_filtered(plan, workspace, in, len, payload, size);
  if (status || *size > 0) return status;
  *kind = GLYD_KIND_LZ;
  return glyd_lz_encode(&plan->lz, workspace, in, len, payload, cap, size);
}

#define SAMPLE ((size_t)256 << 10)

/* Are so many bytes surely fewer than a segment without records takes? Judged, where that takes long to make, by a
 * part of the content, which on its own takes more than its share. */
static glyd_status beats_plain(const glyd_plan *plan, void *workspace, const uint8_t *in, size_t len, uint8_t *scratch,
                               size_t size, int *beats) {
  size_t part;
  *beats = 0;
  if (plan->lz.level <= GLYD_LEVEL_MAX || len < 4 * SAMPLE) return GLYD_OK;
  const glyd_status status =
      glyd_lz_encode(&plan->lz, workspace, in + (len - SAMPLE) / 2, SAMPLE, scratch, SAMPLE, &part);
  if (status == GLYD_E_BUFFER) part = SAMPLE;
  *beats = (uint64_t)size * 3 < (uint64_t)part * (len / SAMPLE);
  return status == GLYD_E_BUFFER ? GLYD_OK : status;
}

#define SMALL_RECORD ((size_t)1 << 20) /* content up to which bytes count for more than the rate of writing */
#define SAID_BY_HEADER 3               /* bytes of a frame's header, to say that there may be records */

/* The segment without records instead of the one there is, if that is better; small ones at level max by the level
 * above, if that takes fewer bytes. It is read faster than columns: up to level max, those have to be a 32nd smaller.
 * own: what records are made in; cap: of the payload. */
static glyd_status encode_beside(const glyd_plan *plan, void *workspace, uint8_t *own, const uint8_t *in, size_t len,
                                 uint8_t *payload, size_t cap, int *kind, size_t *size) {
  const size_t less = plan->lz.level <= GLYD_LEVEL_MAX ? *size / 32 : 0,
               most = *size + (less > SAID_BY_HEADER ? less : SAID_BY_HEADER);
  const int small = plan->lz.level == GLYD_LEVEL_MAX && len <= SMALL_RECORD;
  const size_t room = most + (small ? *size / 8 : 0); /* the level above takes about so much less */
  int plain_kind;
  size_t plain_size;
  glyd_status status = encode_plain(plan, workspace, in, len, own, room, &plain_kind, &plain_size);
  if (status) return status == GLYD_E_BUFFER ? GLYD_OK : status;
  const uint8_t *plain = own;
  glyd_lz_config higher = plan->lz;
  higher.level = GLYD_LEVEL_HIGH;
  uint8_t *const other = own + GLYD_RECORD_ALIGN(room), *const lz = other + GLYD_RECORD_ALIGN(room);
  const uint64_t own_size = glyd_segment_record_encode_workspace(&plan->lz);
  if (small && (uint64_t)(lz - own) + glyd_lz_encode_workspace(&higher) <= own_size) {
    size_t higher_size;
    status = glyd_lz_encode(&higher, lz, in, len, other, plain_size, &higher_size);
    if (status == GLYD_OK) {
      plain = other;
      plain_size = higher_size;
    } else if (status != GLYD_E_BUFFER) {
      return status;
    }
  }
  if (plain_size > most || plain_size > cap) return GLYD_OK;
  memcpy(payload, plain, plain_size);
  *kind = plain_kind;
  *size = plain_size;
  return GLYD_OK;
}

/* The smaller of a record segment and one without records; *size 0: it is not a record. */
static glyd_status encode_record(const glyd_plan *plan, void *workspace, const uint8_t *in, size_t len,
                                 uint8_t *payload, size_t cap, int *kind, size_t *size) {
  uint8_t *const own =
      (uint8_t *)workspace + glyd_segment_encode_workspace(plan) - glyd_segment_record_encode_workspace(&plan->lz);
  if (!glyd_segment_record_encode(&plan->lz, workspace, own, in, len, payload, cap, size)) {
    *size = 0;
    return GLYD_OK;
  }
  int beats;
  const glyd_status status = beats_plain(plan, workspace, in, len, own, *size, &beats);
  *kind = GLYD_KIND_RECORD;
  if (status || beats) return status;
  return encode_beside(plan, workspace, own, in, len, payload, cap, kind, size);
}

/* A cold segment; a small one as blocks, if those are fewer bytes. */
static glyd_status encode_cold(const glyd_plan *plan, uint8_t *workspace, const uint8_t *in, size_t len,
                               uint8_t *payload, int *kind, size_t *size) {
  *kind = GLYD_KIND_COLD;
  const glyd_status status = glyd_cold_encode(plan->lz.cpu, workspace, in, len, payload, len - 1, size);
  if ((status != GLYD_OK && status != GLYD_E_BUFFER) || len > GLYD_SMALL_CONTENT) return status;
  const size_t room = status == GLYD_OK ? *size - 1 : len - 1;
  const glyd_lz_config lz = beside_cold(plan);
  size_t other;
  const glyd_status lz_status = glyd_lz_encode(&lz, workspace + GLYD_SMALL_CONTENT, in, len, workspace, room, &other);
  if (lz_status == GLYD_E_BUFFER) return status;
  if (lz_status != GLYD_OK) return lz_status;
  memcpy(payload, workspace, other);
  *kind = GLYD_KIND_LZ;
  *size = other;
  return GLYD_OK;
}

/* A weights segment; *size 0: it gains nothing. */
static glyd_status encode_weights(const glyd_plan *plan, void *workspace, uint64_t at, const uint8_t *in, size_t len,
                                  uint8_t *payload, size_t *size, size_t *n_differences) {
  const int known = at != GLYD_SIZE_UNKNOWN;
  const glyd_segment_older older = {.base = plan->base,
                                    .shift = known ? (int64_t)at + plan->base_shift : INT64_MIN,
                                    .places = known ? plan->places : NULL,
                                    .at = at};
  const glyd_status status =
      glyd_segment_weights_encode(&plan->lz, workspace, &older, in, len, payload, len - 1, size, n_differences);
  if (status != GLYD_E_BUFFER) return status;
  *size = 0;
  return GLYD_OK;
}

#define WORTH_RECORDS(len) ((len) / 64) /* fewer bytes of a base segment, and a record is hardly smaller */

/* A record segment instead of the base segment in payload, if it is smaller: rows in another order have little in
 * common with the base. */
static glyd_status or_record(const glyd_plan *plan, void *workspace, const uint8_t *in, size_t len, uint8_t *payload,
                             int *kind, size_t *size) {
  if (*size <= WORTH_RECORDS(len) || *size > len / 2) return GLYD_OK;
  int other;
  size_t record_size;
  uint8_t *const record = payload + *size;
  const glyd_status status = encode_record(plan, workspace, in, len, record, *size - 1, &other, &record_size);
  if (status || record_size == 0) return status;
  memmove(payload, record, record_size);
  *kind = other;
  *size = record_size;
  return GLYD_OK;
}

/* With a dictionary, unless what there is (*size 0: nothing) takes no more. */
static glyd_status or_dictionary(const glyd_plan *plan, void *workspace, const uint8_t *in, size_t len,
                                 uint8_t *payload, int *kind, size_t *size) {
  if (*size > len / 2 || (plan->cold && len > GLYD_SEGMENT_DICTIONARY_FIRST)) return GLYD_OK;
  const glyd_lz_config lz = with_dictionary(plan);
  const size_t most = *size > 0 ? *size - 1 : len - 1;
  uint8_t *const out = payload + *size;
  size_t other;
  const glyd_status status =
      glyd_segment_dictionary_encode(&lz, workspace, plan->dictionary, plan->cold, in, len, out, most, &other);
  if (status == GLYD_E_BUFFER) return GLYD_OK;
  if (status != GLYD_OK) return status;
  if (*size > 0) memmove(payload, out, other);
  *kind = GLYD_KIND_DICTIONARY;
  *size = other;
  return GLYD_OK;
}

#define COMPARED ((size_t)256 << 10) /* content up to which it is tried whether a dictionary is of use */

/* A record or filtered segment, or one with the dictionary, or without, whichever is smallest; *size 0: none is of
 * use. */
static glyd_status encode_with_dictionary(const glyd_plan *plan, void *workspace, const uint8_t *in, size_t len,
                                          uint8_t *payload, int *kind, size_t *size) {
  *size = 0;
  if (plan->records) {
    const glyd_status status = encode_record(plan, workspace, in, len, payload, len - 1, kind, size);
    if (status) return status;
  }
  if (*size == 0 && !plan->cold) {
    *kind = GLYD_KIND_FILTERED;
    const glyd_status status = encode_filtered(plan, workspace, in, len, payload, size);
    if (status) return status;
  }
  const int is_other = *size > 0;
  const glyd_status status = or_dictionary(plan, workspace, in, len, payload, kind, size);
  if (status || is_other || *size == 0 || *size > len / 2 || len > COMPARED || plan->cold) return status;
  /* a dictionary leads small content with matches of its own astray: up to 17% of its bytes */
  size_t plain;
  uint8_t *const out = payload + *size;
  const glyd_status without = glyd_lz_encode(&plan->lz, workspace, in, len, out, *size - 1, &plain);
  if (without != GLYD_OK) return without == GLYD_E_BUFFER ? GLYD_OK : without;
  memmove(payload, out, plain);
  *kind = GLYD_KIND_LZ;
  *size = plain;
  return GLYD_OK;
}

/* The payload of any kind but an opened one. pass (NULL: no check) has been begun for the content and may be
 * advanced. */
static glyd_status encode_closed(const glyd_plan *plan, void *workspace, uint64_t at, const uint8_t *in, size_t len,
                                 uint8_t *payload, int *kind, size_t *size, glyd_checksum_pass *pass) {
  /* Equal to itself moved by one: all bytes are the same. Ends at the first difference. */
  if (memcmp(in, in + 1, len - 1) == 0) {
    payload[0] = in[0];
    *kind = GLYD_KIND_FILL;
    *size = 1;
    return GLYD_OK;
  }
  size_t weights_size = 0;
  unsigned share = 0; /* of the segment that copies of the base cover */
  if (plan->weights == GLYD_WEIGHTS_ON && plan->base)
    share = glyd_segment_base_share(&plan->lz, workspace, plan->base, in, len);
  /* where nearly all of it is copies, nothing else has to be tried: a difference takes a bit a number at least */
  if (plan->weights == GLYD_WEIGHTS_ON && share + 1 < GLYD_SEGMENT_BASE_WHOLE) {
    size_t n_differences;
    const glyd_status status = encode_weights(plan, workspace, at, in, len, payload, &weights_size, &n_differences);
    if (status) return status;
    *kind = GLYD_KIND_WEIGHTS;
    *size = weights_size;
    /* where most is a difference, and much of it is left, or little of what copies would leave, which LZ hardly
     * halves, a base segment has less to offer */
    const size_t uncovered = len / GLYD_SEGMENT_BASE_WHOLE * (GLYD_SEGMENT_BASE_WHOLE - share);
    const int is_better = (n_differences >= len / 2 && (weights_size >= len >> 3 || weights_size < uncovered / 4)) ||
                          (share == 0 && n_differences > 0); /* no sample has a copy */
    if (weights_size > 0 && (!plan->base || is_better)) return GLYD_OK;
  }
  if (plan->base) {
    /* Beside the weights segment, if that leaves room for one that is smaller. LZ
     * hardly halves what copies leave of numbers. */
    const int is_beside = weights_size > 0 && weights_size <= len / 2;
    uint8_t *const out = payload + (is_beside ? weights_size : 0);
    const size_t cap = weights_size > 0 ? weights_size - 1 : len - 1, most_rest = weights_size > 0 ? 2 * cap : len;
    const glyd_status status =
        glyd_segment_base_encode(&plan->lz, workspace, plan->base, in, len, most_rest, out, cap, size);
    glyd_base_source_release_all(plan->base);
    if (status != GLYD_OK && status != GLYD_E_BUFFER) return status;
    if (status == GLYD_OK && *size > 0) {
      *kind = GLYD_KIND_BASE;
      if (is_beside) memmove(payload, out, *size);
      return plan->records ? or_record(plan, workspace, in, len, payload, kind, size) : GLYD_OK;
    }
    if (is_beside) {
      *size = weights_size;
      return GLYD_OK;
    }
  }
  if (weights_size > 0) { /* written over by the base segment that was not taken */
    size_t n_differences;
    *kind = GLYD_KIND_WEIGHTS;
    return encode_weights(plan, workspace, at, in, len, payload, size, &n_differences);
  }
  if (plan->dictionary) {
    const glyd_status status = encode_with_dictionary(plan, workspace, in, len, payload, kind, size);
    if (status || *size > 0) return status;
  } else if (plan->records) {
    const glyd_status status = encode_record(plan, workspace, in, len, payload, len - 1, kind, size);
    if (status || *size > 0) return status;
  }
  const glyd_status status = plan->cold ? encode_cold(plan, workspace, in, len, payload, kind, size)
                                        : encode_plain(plan, workspace, in, len, payload, len - 1, kind, size);
  if (status != GLYD_E_BUFFER) return status;
  if (pass)
    glyd_checksum_pass_copy(pass, payload, in, 0, len);
  else
    memcpy(payload, in, len);
  *kind = GLYD_KIND_RAW;
  *size = len;
  return GLYD_OK;
}

#define OPENED_PAYS 64 /* the least gain, a part of the bytes: opened segments are read at a fourth of the speed */
#define MOST_OPENED(len) ((len) - (len) / 10) /* so many bytes in streams, in at most so many, need no comparison */

/* Choose the kind and fill in payload (room for len bytes) and its size. */
static glyd_status encode_payload(const glyd_plan *plan, void *workspace, uint64_t at, const uint8_t *in, size_t len,
                                  uint8_t *payload, int *kind, size_t *size, glyd_checksum_pass *pass) {
  if (plan->containers != GLYD_CONTAINERS_ON)
    return encode_closed(plan, workspace, at, in, len, payload, kind, size, pass);
  size_t opened_size, opened;
  uint8_t *const other = glyd_alloc_get(&plan->allocator, len);
  if (!other) return GLYD_E_MEMORY;
  glyd_status status = glyd_opened_encode(plan, in, len, other, len, &opened_size, &opened);
  int is_opened = opened_size > 0;
  if (status == GLYD_OK && !(is_opened && opened >= MOST_OPENED(len) && opened_size < MOST_OPENED(len))) {
    status = encode_closed(plan, workspace, at, in, len, payload, kind, size, pass);
    const size_t gain = plan->opens_by_itself && plan->level != GLYD_LEVEL_COLD ? *size / OPENED_PAYS : 0;
    if (opened_size >= *size - gain) is_opened = 0;
  }
  if (status == GLYD_OK && is_opened) {
    memcpy(payload, other, opened_size);
    *kind = GLYD_KIND_OPENED;
    *size = opened_size;
  }
  glyd_alloc_put(&plan->allocator, other);
  return status;
}

glyd_status glyd_segment_encode(const glyd_plan *plan, void *workspace, uint64_t at, const uint8_t *in, size_t len,
                                uint8_t *payload, const uint8_t **start, size_t *size) {
  int kind;
  size_t payload_size;
  glyd_checksum_pass pass;
  const int checked = plan->check != GLYD_CHECK_NONE;
  if (checked) glyd_checksum_pass_begin(&pass, plan->lz.cpu, in, len);
  const glyd_status status =
      encode_payload(plan, workspace, at, in, len, payload, &kind, &payload_size, checked ? &pass : NULL);
  if (status) return status;
  const uint64_t hash = checked ? glyd_checksum_pass_end(&pass) : 0;
  *start = glyd_header_encode_segment(plan, kind, len, payload_size, hash, payload);
  *size = (size_t)(payload + payload_size - *start);
  return GLYD_OK;
}

int glyd_segment_may_be_record(const uint8_t *start) {
  return start[0] == GLYD_KIND_RECORD || start[0] == GLYD_KIND_OPENED;
}
