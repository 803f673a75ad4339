/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "record/record_fuse_decode.h"

#include "common/mem.h"

#define ENTRIES_MAX 512u /* of a table: half of the fastest cache, at 32 bytes each */
#define ROWS_AN_ENTRY 8u /* at least, or making the table takes longer than it saves */

static uint32_t most_entries(const glyd_record_table *table) {
  const uint32_t n = table->rows / ROWS_AN_ENTRY;
  return n < ENTRIES_MAX ? n : ENTRIES_MAX;
}

int glyd_record_group_takes(const glyd_record_group *group, const glyd_record_table *table, const glyd_record_field *f,
                            unsigned len) {
  const uint32_t entries = group->n > 0 ? group->entries : 1, longest = group->n > 0 ? group->len : 0;
  return f->slot == GLYD_SLOT_TABLE && group->n < GLYD_RECORD_FUSED_MAX &&
         glyd_record_slots(f) * entries <= most_entries(table) && longest + len < 1u << table->slot_log;
}

void glyd_record_group_add(glyd_record_group *group, const glyd_record_field *f, unsigned len, uint32_t at) {
  if (group->n == 0) *group = (glyd_record_group){.first = at, .entries = 1};
  group->entries *= (uint32_t)glyd_record_slots(f);
  group->len += len;
  group->fields[group->n++] = f;
}

/* Slots for all values of the columns together, those of the last one change fastest. */
static void put_slots(const glyd_record_group *group, const glyd_record_piece *pieces, unsigned size, uint8_t *slots) {
  uint32_t value[GLYD_RECORD_FUSED_MAX] = {0};
  for (uint32_t i = 0; i < group->entries; i++, slots += size) {
    uint8_t text[64] = {0}; /* whole slots are copied: the last begins before byte 31 */
    uint8_t *end = text;
    for (uint32_t k = 0; k < group->n; k++) {
      const uint8_t *const slot = pieces[k].slots + (size_t)value[k] * size;
      memcpy(end, slot, size);
      end += slot[size - 1];
    }
    memcpy(slots, text, size);
    slots[size - 1] = (uint8_t)(end - text);
    for (uint32_t k = group->n; k-- > 0;) {
      if (++value[k] < glyd_record_slots(group->fields[k])) break;
      value[k] = 0;
    }
  }
}

uint32_t glyd_record_group_close(glyd_record_group *group, glyd_record_arena *arena, uint64_t reserve,
                                 glyd_record_table *table, glyd_record_piece *pieces, uint32_t n) {
  const unsigned size = 1u << table->slot_log;
  const uint64_t batch = table->rows < GLYD_RECORD_BATCH ? table->rows : GLYD_RECORD_BATCH;
  const uint64_t left = (uint64_t)(arena->end - arena->at);
  const uint64_t need = (uint64_t)group->entries * size + batch * sizeof(int32_t) + sizeof(glyd_record_fusion) + 256;
  const uint32_t members = group->n;
  group->n = 0;
  if (members < 2 || left < reserve || left - reserve < need) return n;
  uint8_t *const slots = glyd_record_arena_get(arena, (uint64_t)group->entries * size);
  int32_t *const index = glyd_record_arena_get(arena, batch * sizeof *index);
  glyd_record_fusion *const fusion = glyd_record_arena_get(arena, sizeof *fusion);
  if (!slots || !index || !fusion) return n;
  group->n = members;
  put_slots(group, pieces + group->first, size, slots);
  *fusion = (glyd_record_fusion){.next = table->fusions, .index = index, .n = members};
  for (uint32_t k = 0; k < members; k++) fusion->fields[k] = group->fields[k];
  table->fusions = fusion;
  group->n = 0;
  pieces[group->first] = (glyd_record_piece){slots, index};
  const uint32_t after = group->first + members;
  for (uint32_t k = after; k < n; k++) pieces[group->first + 1 + (k - after)] = pieces[k];
  return n - members + 1;
}
