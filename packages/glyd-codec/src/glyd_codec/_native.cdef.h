/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What the Python package uses of the headers of native/include/glyd, in the subset of C that cffi
 * reads. "..." leaves values and layouts to the compiler, so that nothing here
 * can disagree with the header without an error when the module is built.
 */

#define GLYD_SIZE_UNKNOWN ...

#define GLYD_HEADER_MIN ...
#define GLYD_SEGMENT_HEADER_MAX ...
#define GLYD_TAIL_SIZE ...
#define GLYD_SEGMENT_LOG_MIN ...
#define GLYD_SEGMENT_LOG_MAX ...
#define GLYD_EXTENSIONS_MAX ...

#define GLYD_FLAG_CONTENT_SIZE ...
#define GLYD_FLAG_TRAILER ...
#define GLYD_FLAG_EXTENSIONS ...

#define GLYD_CHECK_NONE ...
#define GLYD_CHECK_XXH3_32 ...
#define GLYD_CHECK_XXH3_64 ...

#define GLYD_FRAME_MAGIC ...
#define GLYD_SKIPPABLE_MAGIC ...

#define GLYD_KIND_END ...
#define GLYD_KIND_RAW ...
#define GLYD_KIND_FILL ...
#define GLYD_KIND_LZ ...
#define GLYD_KIND_RECORD ...
#define GLYD_KIND_COLD ...
#define GLYD_KIND_BASE ...
#define GLYD_KIND_WEIGHTS ...
#define GLYD_KIND_FILTERED ...
#define GLYD_KIND_OPENED ...
#define GLYD_KIND_DICTIONARY ...

#define GLYD_WEIGHTS_OFF ...
#define GLYD_WEIGHTS_AUTO ...
#define GLYD_WEIGHTS_ON ...
#define GLYD_CONTAINERS_OFF ...
#define GLYD_CONTAINERS_AUTO ...
#define GLYD_CONTAINERS_ON ...
#define GLYD_OPENED_AREA_MAX ...
#define GLYD_OPENED_INNER_MAX ...

#define GLYD_LEVEL_TURBO ...
#define GLYD_LEVEL_FAST ...
#define GLYD_LEVEL_DEFAULT ...
#define GLYD_LEVEL_MAX ...
#define GLYD_LEVEL_HIGH ...
#define GLYD_LEVEL_ULTRA ...
#define GLYD_LEVEL_COLD ...

typedef enum glyd_status {
  GLYD_OK,
  GLYD_E_MAGIC,
  GLYD_E_VERSION,
  GLYD_E_FEATURE,
  GLYD_E_HEADER,
  GLYD_E_CORRUPT,
  GLYD_E_CHECKSUM,
  GLYD_E_TRUNCATED,
  GLYD_E_TRAILING,
  GLYD_E_BASE_MISSING,
  GLYD_E_BASE_WRONG,
  GLYD_E_DICT_MISSING,
  GLYD_E_DICT_WRONG,
  GLYD_E_PARAMETER,
  GLYD_E_LIMIT_OUTPUT,
  GLYD_E_LIMIT_MEMORY,
  GLYD_E_LIMIT_SEGMENTS,
  GLYD_E_MEMORY,
  GLYD_E_STATE,
  GLYD_E_BUFFER,
  ...
} glyd_status;

const char *glyd_status_text(glyd_status status);
uint64_t glyd_checksum(const void *data, size_t len);
void glyd_checksum128(const void *data, size_t len, uint8_t hash[16]);

typedef struct glyd_allocator {
  ...;
} glyd_allocator;

typedef struct glyd_base glyd_base;
typedef struct glyd_dictionary glyd_dictionary;

typedef struct glyd_params {
  int level;
  int threads;
  int checksum;
  int long_distance;
  int records;
  uint64_t segment_size;
  uint64_t content_size;
  const glyd_base *base;
  int weights;
  int containers;
  const glyd_dictionary *dictionary;
  ...;
} glyd_params;

void glyd_params_init(glyd_params *params, int level);

typedef struct glyd_limits {
  uint64_t max_output;
  uint64_t max_memory;
  uint64_t max_segments;
  ...;
} glyd_limits;

typedef struct glyd_error {
  glyd_status status;
  uint64_t offset;
  uint64_t expected;
  uint64_t found;
  ...;
} glyd_error;

uint64_t glyd_compress_bound(uint64_t len, const glyd_params *params);
glyd_status glyd_compress(void *out, size_t cap, const void *in, size_t len, const glyd_params *params,
                          size_t *out_len);
glyd_status glyd_content_size(const void *in, size_t len, const glyd_limits *limits, uint64_t *size, glyd_error *error);
typedef struct glyd_references {
  const glyd_base *base;
  const glyd_dictionary *dictionary;
} glyd_references;

glyd_status glyd_decompress_references(void *out, size_t cap, const void *in, size_t len,
                                       const glyd_references *references, int threads,
                                       const glyd_limits *limits, const glyd_allocator *allocator, size_t *out_len,
                                       glyd_error *error);

uint64_t glyd_base_size(const glyd_base *base);
glyd_status glyd_base_create_frames(glyd_base **base, const void *in, size_t len, int is_mapped,
                                    const glyd_base *below,
                                    const glyd_limits *limits, const glyd_allocator *allocator, glyd_error *error);
glyd_status glyd_base_create(glyd_base **base, const void *data, uint64_t size, int is_mapped,
                             const glyd_allocator *allocator);
void glyd_base_free(glyd_base *base);
glyd_status glyd_base_index(glyd_base *base);
void glyd_base_get_id(const glyd_base *base, uint8_t id[16]);

typedef struct glyd_frame_info {
  uint32_t version;
  uint32_t header_size;
  uint64_t content_size;
  uint64_t segment_size;
  uint64_t decoder_memory;
  int level;
  int check;
  int has_trailer;
  int has_records;
  int has_cold;
  int has_opened;
  int has_base;
  uint8_t base_id[16];
  uint64_t base_size;
  int has_dictionary;
  uint32_t dictionary_id;
  int is_skippable;
  uint64_t skip_size;
  uint32_t skip_tag;
  ...;
} glyd_frame_info;

glyd_status glyd_read_frame_header(const void *in, size_t len, glyd_frame_info *info, glyd_error *error);

typedef struct glyd_segment_info {
  int kind;
  uint32_t header_size;
  uint64_t content_size;
  uint64_t payload_size;
  uint64_t check;
  ...;
} glyd_segment_info;

glyd_status glyd_read_segment_header(const void *in, size_t len, const glyd_frame_info *frame,
                                     glyd_segment_info *segment, glyd_error *error);

typedef struct glyd_records_info {
  int shape;
  uint32_t n_tables, n_columns;
  uint64_t n_rows, n_escapes, escapes_size;
  uint64_t model_stored, dictionaries_stored, escapes_stored, selector_stored;
  ...;
} glyd_records_info;

typedef struct glyd_column_info {
  uint32_t table, place;
  int kind, prediction;
  uint64_t n_rows, n_entries, n_exceptions, stored;
  char least[...], most[...];
  uint32_t hint_size;
  char hint[...];
  ...;
} glyd_column_info;

uint64_t glyd_read_records_workspace(uint64_t content_size);
glyd_status glyd_read_records(const void *payload, size_t size, uint64_t content_size, void *workspace,
                              glyd_records_info *info, glyd_column_info *columns, size_t cap);

typedef struct glyd_opened_info {
  uint64_t n_streams;
  int is_cut;
  uint64_t inside_size;
  uint64_t kept_size;
  uint64_t description_size;
  ...;
} glyd_opened_info;

glyd_status glyd_read_opened(const glyd_frame_info *frame, const void *in, size_t len, glyd_opened_info *info);

typedef struct glyd_stream_info {
  int kind;
  int outcome;
  int is_cut;
  uint64_t offset;
  uint64_t stored_size;
  uint64_t content_size;
  uint64_t description_bits;
  ...;
} glyd_stream_info;

glyd_status glyd_survey_streams(const void *in, size_t len, const glyd_allocator *allocator, glyd_stream_info *streams,
                                size_t cap, size_t *n);

#define GLYD_OPENED_CONTENT_MAX ...

uint64_t glyd_open_streams_bound(uint64_t len);
glyd_status glyd_open_streams(const void *in, size_t len, const glyd_allocator *allocator, void *out, size_t cap,
                              size_t *out_len);
glyd_status glyd_opened_content_size(const void *in, size_t len, uint64_t *size);
glyd_status glyd_close_streams(const void *in, size_t len, const glyd_allocator *allocator, void *out, size_t cap,
                               size_t *out_len);

typedef struct glyd_tail {
  uint64_t content_size;
  uint64_t frame_size;
  uint32_t trailer_size;
  ...;
} glyd_tail;

glyd_status glyd_read_tail(const void *in, size_t len, glyd_tail *tail);

/* Exact layout: entries are read as an array of 64-bit pairs. */
typedef struct glyd_index_entry {
  uint64_t content_size;
  uint64_t stored_size;
} glyd_index_entry;

glyd_status glyd_read_trailer(const void *in, size_t len, const glyd_frame_info *frame, glyd_index_entry *entries,
                              uint64_t *n, glyd_error *error);

typedef struct glyd_cctx glyd_cctx;
typedef struct glyd_dctx glyd_dctx;

typedef struct glyd_in {
  const void *data;
  size_t size;
  size_t pos;
} glyd_in;

typedef struct glyd_out {
  void *data;
  size_t size;
  size_t pos;
} glyd_out;

typedef enum glyd_op { GLYD_CONTINUE, GLYD_FLUSH, GLYD_END, ... } glyd_op;

uint64_t glyd_cctx_memory(const glyd_params *params);
glyd_status glyd_cctx_create(glyd_cctx **ctx, const glyd_params *params);
void glyd_cctx_free(glyd_cctx *ctx);
glyd_status glyd_cctx_reset(glyd_cctx *ctx, uint64_t content_size);
glyd_status glyd_compress_stream(glyd_cctx *ctx, glyd_out *out, glyd_in *in, glyd_op op, size_t *pending);

glyd_status glyd_dctx_create(glyd_dctx **ctx, int threads, const glyd_limits *limits, const glyd_allocator *allocator);
void glyd_dctx_free(glyd_dctx *ctx);
glyd_status glyd_dctx_reset(glyd_dctx *ctx);
void glyd_dctx_set_base(glyd_dctx *ctx, const glyd_base *base);
void glyd_dctx_set_dictionary(glyd_dctx *ctx, const glyd_dictionary *dictionary);
glyd_status glyd_decompress_stream(glyd_dctx *ctx, glyd_out *out, glyd_in *in, int *at_end);
void glyd_dctx_error(const glyd_dctx *ctx, glyd_error *error);
glyd_status glyd_decode_inside(glyd_dctx *ctx, const glyd_frame_info *frame, void *out, size_t cap, const void *in,
                               size_t len, size_t *out_len);

#define GLYD_WEIGHTS_MMA12 ...
#define GLYD_WEIGHTS_TIERED ...
#define GLYD_WEIGHTS_MAGIC ...
#define GLYD_WEIGHTS_VERSION ...
#define GLYD_WEIGHTS_HEADER ...
#define GLYD_WEIGHTS_ALIGN ...
#define GLYD_WEIGHTS_ROWS ...
#define GLYD_WEIGHTS_COLS_MAX ...
#define GLYD_WEIGHTS_ROWS_MAX ...

typedef struct glyd_weights_shape {
  int layout;
  uint64_t rows;
  uint64_t cols;
  ...;
} glyd_weights_shape;

typedef struct glyd_weights_info {
  glyd_weights_shape shape;
  uint64_t size;
  uint64_t row_blocks;
  uint64_t tiles;
  uint32_t tile_cols;
  uint32_t tile_bytes;
  uint32_t tile_escape_max;
  uint32_t block_exc_max;
  uint64_t n_exceptions;
  uint64_t n_escape_units;
  uint64_t blocks_at;
  uint64_t index_at;
  uint64_t tiles_at;
  uint64_t escapes_at;
  uint64_t exc_places_at;
  uint64_t exc_values_at;
  ...;
} glyd_weights_info;

size_t glyd_weights_workspace(void);
uint64_t glyd_weights_pack_bound(const glyd_weights_shape *shape);
uint64_t glyd_weights_plan_size(const glyd_weights_shape *shape);
glyd_status glyd_weights_plan_rows(void *out, size_t cap, const glyd_weights_shape *shape, uint64_t first_row,
                                   uint64_t n_rows, const void *in, void *workspace, size_t workspace_len, int cpu);
glyd_status glyd_weights_plan_end(void *out, size_t cap, const glyd_weights_shape *shape, size_t *out_len);
glyd_status glyd_weights_pack_rows(void *out, size_t cap, const glyd_weights_shape *shape, uint64_t first_row,
                                   uint64_t n_rows, const void *in, void *workspace, size_t workspace_len, int cpu);
glyd_status glyd_weights_read_info(const void *in, size_t len, glyd_weights_info *info);
glyd_status glyd_weights_unpack_rows(void *out, size_t cap, const void *in, size_t len, uint64_t first_row,
                                     uint64_t n_rows, void *workspace, size_t workspace_len, int cpu);

#define GLYD_KV_MAGIC ...
#define GLYD_KV_PACKED ...
#define GLYD_KV_HEADER ...
#define GLYD_KV_TOKENS ...
#define GLYD_KV_CHANNELS_STEP ...
#define GLYD_KV_CHANNELS_MAX ...

typedef struct glyd_kv_info {
  int form;
  uint32_t channels;
  uint32_t size;
  uint32_t n_exceptions;
  ...;
} glyd_kv_info;

size_t glyd_kv_workspace(void);
size_t glyd_kv_page_bound(uint32_t channels);
glyd_status glyd_kv_pack(void *out, size_t cap, const void *in, uint32_t channels, size_t stride, void *workspace,
                         size_t workspace_len, int cpu, size_t *out_len);
glyd_status glyd_kv_read_info(const void *in, size_t len, glyd_kv_info *info);
glyd_status glyd_kv_unpack(void *out, size_t cap, size_t stride, const void *in, size_t len, void *workspace,
                           size_t workspace_len, int cpu);

#define GLYD_FINGERPRINT_SPACING ...

typedef struct glyd_fingerprint_state {
  uint32_t wait;
  uint32_t tail_size;
  ...;
} glyd_fingerprint_state;

size_t glyd_fingerprints(glyd_fingerprint_state *state, const void *data, size_t len, uint64_t *out);

#define GLYD_DICTIONARY_SIZE_MIN ...
#define GLYD_DICTIONARY_SIZE_MAX ...
#define GLYD_DICTIONARY_SIZE_DEFAULT ...
#define GLYD_OBJECT_MAGIC ...
#define GLYD_OBJECT_MAX ...

typedef struct glyd_object_encoder glyd_object_encoder;
typedef struct glyd_object_info {
  uint32_t header_size;
  uint32_t content_size;
  uint32_t payload_size;
  uint32_t dictionary_id;
  int form;
  int check_size;
  ...;
} glyd_object_info;
glyd_status glyd_dictionary_create(glyd_dictionary **dictionary, const void *in, size_t len,
                                   const glyd_allocator *allocator);
void glyd_dictionary_free(glyd_dictionary *dictionary);
uint32_t glyd_dictionary_id(const glyd_dictionary *dictionary);
glyd_status glyd_dictionary_index(glyd_dictionary *dictionary);
glyd_status glyd_dictionary_train(void *out, size_t max_size, const void *samples, const size_t *sizes, size_t n,
                                  const glyd_allocator *allocator, size_t *out_len);
size_t glyd_object_bound(size_t len);
glyd_status glyd_object_encoder_create(glyd_object_encoder **encoder, const glyd_dictionary *dictionary, int check_size,
                                       const glyd_allocator *allocator);
void glyd_object_encoder_free(glyd_object_encoder *encoder);
glyd_status glyd_object_compress(glyd_object_encoder *encoder, void *out, size_t cap, const void *in, size_t len,
                                 size_t *out_len);
glyd_status glyd_object_read_header(const void *in, size_t len, glyd_object_info *info);
glyd_status glyd_object_decompress(void *out, size_t cap, const void *in, size_t len, const glyd_dictionary *dictionary,
                                   const glyd_limits *limits, const glyd_allocator *allocator, size_t *out_len,
                                   size_t *used, glyd_error *error);
