/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Exported functions that read dictionaries and objects.
 */
#include "common/checksum.h"
#include "common/cpu.h"
#include "frame/frame_common.h"
#include "object/object_decode.h"
#include "object/object_dictionary.h"

glyd_status glyd_dictionary_create(glyd_dictionary **dictionary, const void *in, size_t len,
                                   const glyd_allocator *allocator) {
  return glyd_object_dictionary_create(dictionary, in, len, allocator);
}

void glyd_dictionary_free(glyd_dictionary *dictionary) { glyd_object_dictionary_free(dictionary); }

uint32_t glyd_dictionary_id(const glyd_dictionary *dictionary) { return dictionary->id; }

glyd_status glyd_object_read_header(const void *in, size_t len, glyd_object_info *info) {
  uint64_t expected = 0;
  return glyd_object_decode_header(in, len, info, &expected);
}

/* What must hold before anything of the object is decoded. */
static glyd_status check_object(const glyd_object_info *info, const glyd_dictionary *dictionary,
                                const glyd_limits *limits, size_t cap, glyd_error *error) {
  if (limits && limits->max_output != 0 && info->content_size > limits->max_output)
    return glyd_frame_fail(error, GLYD_E_LIMIT_OUTPUT, 0, limits->max_output, info->content_size);
  if (info->content_size > cap) return glyd_frame_fail(error, GLYD_E_BUFFER, 0, cap, info->content_size);
  if (info->form == GLYD_OBJECT_FORM_RAW) return GLYD_OK;
  if (!dictionary) return glyd_frame_fail(error, GLYD_E_DICT_MISSING, 0, info->dictionary_id, 0);
  if (dictionary->id != info->dictionary_id)
    return glyd_frame_fail(error, GLYD_E_DICT_WRONG, 0, info->dictionary_id, dictionary->id);
  return GLYD_OK;
}

glyd_status glyd_object_decompress(void *out, size_t cap, const void *in, size_t len, const glyd_dictionary *dictionary,
                                   const glyd_limits *limits, const glyd_allocator *allocator, size_t *out_len,
                                   size_t *used, glyd_error *error) {
  glyd_object_info info;
  uint64_t expected = 0;
  *out_len = *used = 0;
  if (error) *error = (glyd_error){.status = GLYD_OK};
  glyd_status status = glyd_object_decode_header(in, len, &info, &expected);
  if (status) return glyd_frame_fail(error, status, 0, expected, len);
  status = check_object(&info, dictionary, limits, cap, error);
  if (status) return status;
  const unsigned cpu = glyd_cpu_select(limits ? limits->cpu : GLYD_CPU_CHOICE_BEST);
  const uint64_t need = glyd_object_decode_workspace(&info, dictionary);
  void *workspace = NULL;
  if (need != 0) {
    const uint64_t most = limits && limits->max_memory != 0 ? limits->max_memory : (uint64_t)2 << 30;
    if (need > most) return glyd_frame_fail(error, GLYD_E_LIMIT_MEMORY, 0, most, need);
    workspace = glyd_alloc_get(allocator, need);
    if (!workspace) return glyd_frame_fail(error, GLYD_E_MEMORY, 0, need, 0);
  }
  status = glyd_object_decode(cpu, &info, dictionary, workspace, out, (const uint8_t *)in + info.header_size);
  glyd_alloc_put(allocator, workspace);
  if (status) return glyd_frame_fail(error, status, 0, info.content_size, 0);
  if (info.check_size != 0) {
    const uint64_t hash = glyd_checksum_xxh3(cpu, out, info.content_size);
    const uint32_t found = info.check_size == 2 ? (uint32_t)hash & 0xFFFF : (uint32_t)hash;
    if (found != info.check) return glyd_frame_fail(error, GLYD_E_CHECKSUM, 0, info.check, found);
  }
  *out_len = info.content_size;
  *used = info.header_size + (size_t)info.payload_size;
  return GLYD_OK;
}
