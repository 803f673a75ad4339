/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * cc example_roundtrip.c $(pkg-config --cflags --libs glyd)
 */
#include <glyd/glyd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  static char text[1000000];
  for (size_t i = 0; i < sizeof text; i++)
    text[i] = "glyd reads in parallel, "[i % 24 + (i % 997 == 0 ? -(i % 24) : 0)];
  glyd_params params;
  glyd_params_init(&params, GLYD_LEVEL_MAX);
  params.threads = 0; /* as many as there are cores */
  size_t cap = (size_t)glyd_compress_bound(sizeof text, &params), packed_len = 0, back_len = 0;
  char *packed = malloc(cap), *back = malloc(sizeof text);
  if (!packed || !back) return 1;
  glyd_status status = glyd_compress(packed, cap, text, sizeof text, &params, &packed_len);
  if (!status) status = glyd_decompress(back, sizeof text, packed, packed_len, 0, NULL, NULL, &back_len, NULL);
  if (status || back_len != sizeof text || memcmp(text, back, back_len) != 0) {
    fprintf(stderr, "failed: %s\n", glyd_status_text(status));
    return 1;
  }
  printf("%zu bytes became %zu and came back\n", sizeof text, packed_len);
  free(packed);
  free(back);
  return 0;
}
