/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * replay FOLDER [N]: run a fuzz target on every file of a folder, and on N
 * mutations of each. For compilers without libFuzzer; the same every time.
 */
#include <dirent.h>

#include "fuzz.h"

static uint64_t seed = 0x9E3779B97F4A7C15u;

static uint64_t next_random(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

static void mutate(uint8_t *data, size_t *size) {
  for (uint64_t n = 1 + next_random() % 4; n > 0 && *size > 0; n--) {
    const size_t at = (size_t)(next_random() % *size);
    switch (next_random() % 4) {
    case 0: data[at] ^= (uint8_t)(1u << (next_random() % 8)); break;
    case 1: data[at] = (uint8_t)next_random(); break;
    case 2: *size = at; break;
    default:
      memmove(data + at, data + at + 1, *size - at - 1);
      *size -= 1;
      break;
    }
  }
}

/* Memory of the exact size, so that a sanitizer sees a read past its end. */
static void run(const uint8_t *data, size_t size) {
  uint8_t *exact = malloc(size);
  if (size > 0 && !exact) abort();
  if (size > 0) memcpy(exact, data, size);
  (void)LLVMFuzzerTestOneInput(exact, size);
  free(exact);
}

/* Names in the same order on every machine: the mutations of a file follow from what came before. */
static int by_name(const void *a, const void *b) { return strcmp(a, b); }

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  const long mutations = argc > 2 ? atol(argv[2]) : 0;
  unsigned long runs = 0;
  static char names[1024][256];
  size_t n_names = 0;
  DIR *folder = opendir(argv[1]);
  if (!folder) return 2;
  for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    if (n_names == sizeof names / sizeof *names) return 2;
    (void)snprintf(names[n_names++], sizeof *names, "%s", entry->d_name);
  }
  (void)closedir(folder);
  qsort(names, n_names, sizeof *names, by_name);
  for (size_t k = 0; k < n_names; k++) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", argv[1], names[k]);
    FILE *file = fopen(path, "rb");
    if (!file) return 2;
    static uint8_t data[1 << 20];
    static uint8_t changed[1 << 20];
    const size_t size = fread(data, 1, sizeof data, file);
    (void)fclose(file);
    run(data, size);
    runs++;
    for (long i = 0; i < mutations; i++, runs++) {
      size_t n = size;
      memcpy(changed, data, size);
      mutate(changed, &n);
      run(changed, n);
    }
  }
  printf("%lu passed, 0 failed\n", runs);
  return runs == 0;
}
