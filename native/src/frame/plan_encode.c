/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "frame/plan_encode.h"

#include "base/base_source.h"
#include "common/alloc.h"
#include "common/cpu.h"
#include "common/thread.h"
#include "fields/fields_choose_encode.h"
#include "frame/frame_common.h"
#include "frame/opened_encode.h"
#include "record/record_encode.h"
#include "record/record_rows_encode.h"

#define SEGMENT_GRAIN ((uint64_t)4 << 10)
#define BALANCED_MAX ((uint64_t)128 << 20) /* with 33 segments one too many costs two threads 3% */

static int params_valid(const glyd_params *params) {
  if (!params || params->level < GLYD_LEVEL_TURBO || params->level > GLYD_LEVEL_COLD) return 0;
  if (params->threads < 0 || params->cpu < GLYD_CPU_CHOICE_BEST || params->cpu > GLYD_CPU_CHOICE_AVX2) return 0;
  if ((params->checksum & ~1) || (params->long_distance & ~1)) return 0;
  if (params->weights < GLYD_WEIGHTS_OFF || params->weights > GLYD_WEIGHTS_ON) return 0;
  if (params->records < GLYD_RECORDS_OFF || params->records > GLYD_RECORDS_AUTO) return 0;
  if (params->containers < GLYD_CONTAINERS_OFF || params->containers > GLYD_CONTAINERS_ON) return 0;
  if (params->containers == GLYD_CONTAINERS_ON && params->base) return 0;
  if (params->base && params->dictionary) return 0;
  if (params->long_distance && params->level < GLYD_LEVEL_MAX) return 0;
  const uint64_t size = params->segment_size;
  if (size != 0 && (size < (1u << GLYD_SEGMENT_LOG_MIN) || size > (1u << GLYD_SEGMENT_LOG_MAX))) return 0;
  if (params->level == GLYD_LEVEL_COLD) { /* its own model takes the place of these */
    if (params->long_distance || params->base || params->records == GLYD_RECORDS_ON || size > GLYD_COLD_CONTENT_MAX)
      return 0;
  }
  if (params->base && (!params->base->map || params->long_distance)) return 0;
  return glyd_alloc_valid(&params->allocator);
}

static unsigned segment_log_of(uint64_t size) {
  unsigned log = GLYD_SEGMENT_LOG_MIN;
  while (((uint64_t)1 << log) < size) log++;
  return log;
}

/* The more time goes into a level, the more a border costs it. */
static uint64_t level_segment(int level) {
  if (level == GLYD_LEVEL_COLD) return GLYD_SEGMENT_SIZE_COLD;
  if (level == GLYD_LEVEL_ULTRA) return GLYD_SEGMENT_SIZE_ULTRA;
  if (level == GLYD_LEVEL_HIGH) return GLYD_SEGMENT_SIZE_HIGH;
  return level == GLYD_LEVEL_MAX ? GLYD_SEGMENT_SIZE_MAX : GLYD_SEGMENT_SIZE_DEFAULT;
}

/* Content of a known size goes into an even number of equal segments, so that
 * two threads have the same to do. */
static uint64_t balanced_segment(uint64_t content, uint64_t most) {
  uint64_t n = (content + most - 1) / most;
  n += n & 1;
  const uint64_t size = ((content + n - 1) / n + (SEGMENT_GRAIN - 1)) & ~(SEGMENT_GRAIN - 1);
  return size < most ? size : most;
}

glyd_status glyd_plan_encode(glyd_plan *plan, const glyd_params *params, uint64_t content_size) {
  if (!params_valid(params)) return GLYD_E_PARAMETER;
  const int known = content_size != GLYD_SIZE_UNKNOWN;
  if (known && content_size > GLYD_CONTENT_SIZE_MAX) return GLYD_E_PARAMETER;
  const int cold = params->level == GLYD_LEVEL_COLD;
  const int records = params->records != GLYD_RECORDS_OFF && !cold;
  uint64_t segment = params->segment_size;
  if (segment == 0) {
    segment = params->long_distance ? GLYD_SEGMENT_SIZE_LONG
              : params->base        ? GLYD_SEGMENT_SIZE_BASE
              : records             ? GLYD_SEGMENT_SIZE_RECORDS
                                    : level_segment(params->level);
  }
  if (params->segment_size == 0 && !params->long_distance && !records && !cold && content_size > segment &&
      content_size <= BALANCED_MAX)
    segment = balanced_segment(content_size, segment);
  int check = GLYD_CHECK_NONE;
  if (params->checksum) check = known && content_size <= GLYD_SMALL_CONTENT ? GLYD_CHECK_XXH3_32 : GLYD_CHECK_XXH3_64;
  *plan = (glyd_plan){
      .level = params->level,
      .threads = glyd_thread_count(params->threads),
      .check = check,
      .weights = params->weights,
      .has_trailer = !(known && content_size <= segment),
      .segment_log = segment_log_of(content_size < segment ? content_size : segment),
      .segment_size = segment,
      .content_size = content_size,
      .base = params->base,
      .dictionary = params->dictionary,
      .records = records,
      .cold = cold,
      .containers = params->base ? GLYD_CONTAINERS_OFF : params->containers,
      .inner_segment =
          params->segment_size > level_segment(params->level) ? params->segment_size : level_segment(params->level),
      .lz = {.level = cold ? GLYD_LEVEL_MAX : params->level,
             .long_distance = params->long_distance,
             .segment_size = content_size < segment ? content_size : segment,
             .cpu = glyd_cpu_select(params->cpu)},
      .allocator = params->allocator,
  };
  return GLYD_OK;
}

glyd_status glyd_plan_encode_weights(glyd_plan *plan, const uint8_t *in, size_t len) {
  /* one segment is all that a stream has at hand */
  const size_t first = len < plan->segment_size ? len : (size_t)plan->segment_size;
  if (plan->base) {
    const uint64_t data = glyd_fields_safetensors_data(in, first);
    const uint64_t base_data = glyd_fields_safetensors_data(plan->base->data, (size_t)plan->base->size);
    plan->base_shift = data && base_data ? (int64_t)base_data - (int64_t)data : 0;
  }
  if (plan->weights == GLYD_WEIGHTS_AUTO)
    plan->weights = glyd_fields_sniff(in, first) ? GLYD_WEIGHTS_ON : GLYD_WEIGHTS_OFF;
  if (!plan->base || plan->weights == GLYD_WEIGHTS_OFF) return GLYD_OK;
  glyd_plan_encode_free(plan);
  return glyd_fields_places_make(&plan->places, in, first, plan->base->data, plan->base->size, &plan->allocator);
}

uint64_t glyd_plan_encode_memory(const glyd_plan *plan) {
  if (!plan->base || plan->weights == GLYD_WEIGHTS_OFF) return 0;
  return glyd_fields_places_memory(plan->base->data, plan->base->size);
}

void glyd_plan_encode_free(glyd_plan *plan) {
  glyd_alloc_put(&plan->allocator, plan->places);
  plan->places = NULL;
}

void glyd_plan_encode_containers(glyd_plan *plan, const uint8_t *in, size_t len) {
  if (plan->containers != GLYD_CONTAINERS_AUTO) return;
  const size_t first = len < plan->segment_size ? len : (size_t)plan->segment_size;
  plan->containers = glyd_opened_encode_sniff(in, first) ? GLYD_CONTAINERS_ON : GLYD_CONTAINERS_OFF;
  plan->opens_by_itself = 1;
}

/* Does any segment look as if it were records? */
static int may_have_records(const glyd_plan *plan, const uint8_t *in, size_t len) {
  glyd_record_way ways[GLYD_RECORD_WAYS];
  int compare;
  for (size_t at = 0; at < len; at += (size_t)plan->segment_size) {
    const size_t left = len - at, size = left < plan->segment_size ? left : (size_t)plan->segment_size;
    if (glyd_record_ways(in + at, size, ways, &compare) > 0) return 1;
  }
  return 0;
}

void glyd_plan_encode_content(glyd_plan *plan, const glyd_params *params, const uint8_t *in, size_t len) {
  if (!plan->records) return;
  if (params->records == GLYD_RECORDS_AUTO) {
    const size_t first = len < plan->segment_size ? len : (size_t)plan->segment_size;
    uint8_t separator;
    if (first <= UINT32_MAX && glyd_record_detect(in, (uint32_t)first, &separator) != GLYD_SHAPE_NONE) return;
  } else if (plan->containers != GLYD_CONTAINERS_OFF || may_have_records(plan, in, len)) {
    return; /* those in containers are not seen here */
  }
  glyd_params without = *params;
  without.records = GLYD_RECORDS_OFF;
  (void)glyd_plan_encode(plan, &without, len);
}
