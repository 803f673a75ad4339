/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Record segments without the frame around them. The first byte chooses: 0,
 * the rest is a payload; else the rest is a list of changes to the streams of a
 * table, made here and kept decoded, so that changes go behind the entropy
 * coding: number of a stream, place (2 bytes), what to do, a byte.
 */
#include "common/cpu.h"
#include "fuzz.h"
#include "glyd/records.h"
#include "record/record_common.h"
#include "record/record_decode.h"
#include "record/record_encode.h"
#include "segment/segment_record_decode.h"

#define CONTENT 12000u
#define STREAMS 512u
#define TABLES 7u

typedef struct streams {
  uint32_t n;
  uint8_t *data[STREAMS];
  size_t size[STREAMS];
} streams;

static int keep(void *arg, const uint8_t *data, size_t n, int text) {
  streams *s = arg;
  (void)text;
  if (!data) return n <= STREAMS;
  uint8_t *p = calloc(1, n + 300 + GLYD_RECORD_PAD); /* room to grow */
  if (!p) abort();
  memcpy(p, data, n);
  s->data[s->n] = p;
  s->size[s->n++] = n;
  return 1;
}

static uint32_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33);
}

/* A table with columns of all kinds, and relations between them. */
static size_t make_table(unsigned kind, char *out) {
  uint64_t r = kind;
  size_t n = 0;
  static const char *const words[4] = {"ab", "north, or not", "x", ""};
  for (uint32_t i = 0; n + 400 < CONTENT; i++) {
    const uint32_t a = next_random(&r) % 50, b = next_random(&r) % 1000, c = 515 + next_random(&r) % 3 * 100;
    const uint32_t k = next_random(&r) % 9, day = 1 + i / 90 % 28;
    char *p = out + n;
    switch (kind) {
    case 0:
      n += (size_t)snprintf(p, 400, "%u,%u,%u.%02u,2024-03-%02u %02u:%02u:%02u,%s%u,%u,%s,\"t%u\"\n", i, b, b / 7, a,
                            day, i / 60 % 24, i % 60, k, i % 13 ? "" : "NA", c, a + b, k < 4 ? words[k & 1] : "y",
                            k * k);
      break;
    case 1:
      n += (size_t)snprintf(p, 400, "{\"id\": %u, \"s\": \"%s %u %u\", \"t\": %s, \"u\": {\"v\": %u}%s}\n", i,
                            words[k & 3], b, b * b, k < 2 ? "null" : "true", a, i % 5 ? "" : ", \"extra\": [1, 2]");
      break;
    case 2:
      n += (size_t)snprintf(p, 400, "(%u,'%s',%u,NULL)%s", i, words[k & 3], a * 977,
                            i % 20 ? "," : ";\nINSERT INTO t VALUES ");
      break;
    case 3: /* texts in their order, large numbers, text of the row once more */
      n += (size_t)snprintf(p, 400, "\"k%05u\";%08x-%04x;town of %08x;%u;%u.%u.%u.%u\n", i * 3 + k / 8, b * 2654435u,
                            a * 1311, b * 2654435u, c * 1299709u * (k + 1), a, b % 256, k, i % 256);
      break;
    case 4: /* fields that vary on their own */
      n += (size_t)snprintf(p, 400, "2024-03-%02u 0%u:%02u:00 [%s-%u] %s app.%s - %s %u\n", day, k % 9, i % 60,
                            a & 1 ? "main" : "io", a % 3, k < 5 ? "INFO" : "WARN", b & 1 ? "db" : "web",
                            b & 2 ? "took" : "rows read:", c * a);
      break;
    case 5: /* texts that end with a byte, one with lengths, and text of the row once more */
      n += (size_t)snprintf(p, 400, "Mar %2u 0%u:%02u:00 host app%s: %08x of %0*x is %x\n", day, k, i % 60,
                            a & 1 ? "" : "[7]", b * 2654435u, 1 + (int)k, a * b * c, b * a * 77u);
      break;
    default: n += (size_t)snprintf(p, 400, i % 3 ? "%u\t%u\t%u\n" : "%u\t%u\t%u\t%u\n", b, k, c * b, a); break;
    }
  }
  return n;
}

static void decode_both(const streams *s, size_t len, const uint8_t *want) {
  glyd_record_stream in[STREAMS];
  for (uint32_t i = 0; i < s->n; i++) {
    in[i] = (glyd_record_stream){s->data[i], s->size[i], 0};
    memset(s->data[i] + s->size[i], 0, GLYD_RECORD_PAD);
  }
  const size_t room = (size_t)glyd_record_decode_memory(len);
  static _Alignas(64) uint8_t memory[3 * CONTENT + (4 << 20)];
  FUZZ_CHECK(room <= sizeof memory);
  uint8_t *out[2];
  glyd_status status[2];
  for (int k = 0; k < 2; k++) {
    out[k] = malloc(len);
    if (!out[k]) abort();
    glyd_record_arena arena = {memory, memory + room};
    status[k] = glyd_record_decode(k == 0 ? glyd_cpu_features() : GLYD_CPU_SCALAR, &arena, in, s->n, out[k], len);
  }
  FUZZ_CHECK((status[0] == GLYD_OK) == (status[1] == GLYD_OK));
  FUZZ_CHECK(status[0] != GLYD_OK || memcmp(out[0], out[1], len) == 0);
  FUZZ_CHECK(!want || (status[0] == GLYD_OK && memcmp(out[0], want, len) == 0));
  free(out[0]);
  free(out[1]);
}

static void change_streams(streams *s, const uint8_t *data, size_t size) {
  for (; size >= 5; data += 5, size -= 5) {
    const uint32_t i = data[0] % s->n;
    const size_t at = (size_t)(data[1] | data[2] << 8);
    switch (data[3] % 4) {
    case 0:
      if (s->size[i] > 0) s->data[i][at % s->size[i]] = data[4];
      break;
    case 1:
      if (s->size[i] > 0) s->data[i][at % s->size[i]] ^= (uint8_t)(1u << (data[4] & 7));
      break;
    case 2: s->size[i] = at < s->size[i] ? at : s->size[i]; break;
    default:
      if (s->size[i] > 0 && s->size[i] < 250) s->data[i][s->size[i]++] = data[4];
      break;
    }
  }
}

static void decode_payload(const uint8_t *data, size_t size) {
  const size_t len = size > 1 ? ((size_t)data[size - 1] << 8 | data[size - 2]) + 1 : 1;
  const size_t room = (size_t)glyd_segment_record_decode_workspace(len);
  uint8_t *workspace = aligned_alloc(64, (room + 63) & ~(size_t)63);
  uint8_t *in = malloc(size + 1), *out = malloc(len);
  if (!workspace || !in || !out) abort();
  memcpy(in, data, size);
  const glyd_status status = glyd_segment_record_decode(glyd_cpu_features(), workspace, out, len, in, size);
  static glyd_column_info columns[GLYD_RECORD_COLUMNS_MAX];
  glyd_records_info info;
  const glyd_status seen = glyd_read_records(in, size, len, workspace, &info, columns, GLYD_RECORD_COLUMNS_MAX);
  FUZZ_CHECK(seen == GLYD_OK || seen == GLYD_E_CORRUPT);
  FUZZ_CHECK(status != GLYD_OK || seen == GLYD_OK); /* what can be read can be described */
  free(workspace);
  free(in);
  free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  if (data[0] == 0) {
    decode_payload(data + 1, size - 1);
    return 0;
  }
  /* the streams of each table are made once */
  static char tables[TABLES][CONTENT];
  static size_t lens[TABLES];
  static streams made[TABLES];
  const unsigned kind = data[0] % TABLES;
  if (made[kind].n == 0) {
    lens[kind] = make_table(kind, tables[kind]);
    const size_t room = (size_t)glyd_record_encode_memory(lens[kind]);
    uint8_t *memory = aligned_alloc(64, (room + 63) & ~(size_t)63);
    if (!memory) abort();
    const uint8_t *const content = (const uint8_t *)tables[kind];
    glyd_record_way ways[GLYD_RECORD_WAYS];
    int compare;
    FUZZ_CHECK(glyd_record_ways(content, lens[kind], ways, &compare) > 0);
    FUZZ_CHECK(glyd_record_encode(memory, room, content, lens[kind], ways[0], keep, &made[kind]));
    free(memory);
    decode_both(&made[kind], lens[kind], (const uint8_t *)tables[kind]);
  }
  streams s = {0};
  for (uint32_t i = 0; i < made[kind].n; i++) (void)keep(&s, made[kind].data[i], made[kind].size[i], 0);
  change_streams(&s, data + 1, size - 1);
  decode_both(&s, lens[kind], NULL);
  for (uint32_t i = 0; i < s.n; i++) free(s.data[i]);
  return 0;
}
