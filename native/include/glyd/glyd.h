/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * glyd: lossless compression with parallel, seekable frames.
 *
 * Rules that hold for every function:
 *   - returns a glyd_status (or a size, where documented); 0 is success
 *   - no global state: contexts are independent, a context is used by one
 *     thread at a time, different contexts by any number of threads
 *   - buffers belong to the caller and are only read or written during the call
 *   - decoders treat input as hostile: they never read or write outside the
 *     buffers given, and their work is bounded by input plus output size
 *   - on failure output buffers hold unspecified bytes, never more than cap
 */
#ifndef GLYD_H
#define GLYD_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/format.h"
#include "glyd/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(GLYD_SHARED) && defined(__GNUC__)
#define GLYD_API __attribute__((visibility("default")))
#else
#define GLYD_API
#endif

#define GLYD_VERSION_MAJOR 0
#define GLYD_VERSION_MINOR 1
#define GLYD_VERSION_PATCH 0

#define GLYD_SIZE_UNKNOWN UINT64_MAX

/* ---- versions, names -------------------------------------------------- */

/* Library version as major * 10000 + minor * 100 + patch. */
GLYD_API uint32_t glyd_version(void);

/* One English phrase for a status, never NULL; unknown values included. */
GLYD_API const char *glyd_status_text(glyd_status status);

/* Name of a level id ("turbo", "fast", "default", "max", "high",
 * "ultra", "cold"), or NULL. */
GLYD_API const char *glyd_level_name(int level);

/* Name of the best code variant of this CPU: "scalar", "avx2", "avx512", "neon". */
GLYD_API const char *glyd_cpu_variant(void);

/* XXH3-64 (seed 0) of len bytes: the hash of all checks of the format. */
GLYD_API uint64_t glyd_checksum(const void *data, size_t len);

/* XXH3-128 (seed 0) in its canonical order, what xxh128sum prints and bases are named by. */
GLYD_API void glyd_checksum128(const void *data, size_t len, uint8_t hash[16]);

/* ---- parameters -------------------------------------------------------- */

/* Memory functions; both or neither set. alloc returns memory aligned for any
 * type, or NULL. free is never called with NULL. */
typedef struct glyd_allocator {
  void *(*alloc)(void *opaque, size_t size);
  void (*free)(void *opaque, void *ptr);
  void *opaque;
} glyd_allocator;

/* Code variants to use: the best this CPU has, plain C, AVX2 at most. */
#define GLYD_CPU_CHOICE_BEST 0
#define GLYD_CPU_CHOICE_SCALAR 1
#define GLYD_CPU_CHOICE_AVX2 2

/* Whether tables and logs are stored as columns. */
#define GLYD_RECORDS_OFF 0
#define GLYD_RECORDS_ON 1
#define GLYD_RECORDS_AUTO 2 /* in one call: if the first segment looks like one; else as ON */

/* Older content that frames are stored against: glyd/base.h. */
typedef struct glyd_base glyd_base;

/* What content of one kind has in common, learned from samples: glyd/dictionary.h. */
typedef struct glyd_dictionary glyd_dictionary;

/* When tensors and other arrays of numbers are split into their fields. */
#define GLYD_WEIGHTS_OFF 0
#define GLYD_WEIGHTS_AUTO 1 /* content that starts like a model: safetensors, GGUF, PyTorch, NumPy */
#define GLYD_WEIGHTS_ON 2   /* wherever it gains, whatever the content starts with */

/* When DEFLATE streams (gzip, zip, PNG, zlib) are opened: stored as what they decompress to. */
#define GLYD_CONTAINERS_OFF 0
#define GLYD_CONTAINERS_AUTO 1 /* where the first segment of the content has such streams */
#define GLYD_CONTAINERS_ON 2   /* wherever they are */

typedef struct glyd_params {
  int level;         /* GLYD_LEVEL_TURBO … GLYD_LEVEL_COLD */
  int threads;       /* worker threads; 1 none extra, 0 one a core */
  int checksum;      /* 0 leaves the segment checks out */
  int long_distance; /* 1: matches reach over a 128 MiB segment (levels max and up) */
  int records;       /* GLYD_RECORDS_*: tables and logs as columns, where that takes fewer bytes */
  uint64_t
      segment_size; /* content bytes a segment, 2^10 … 2^30; 0: 4 MiB (max: 8, high, base, records: 16, ultra: 32, cold: 64) or less */
  uint64_t content_size; /* streaming only: exact total, or GLYD_SIZE_UNKNOWN */
  int weights;           /* GLYD_WEIGHTS_* */
  int containers;        /* GLYD_CONTAINERS_*; not with a base, and not in glyd_encode_segment unless ON */
  int cpu;               /* GLYD_CPU_CHOICE_*: which code variants (for tests; same bytes) */
  const glyd_base *base; /* NULL, or an indexed base to store against; it must outlive the use of params */
  const glyd_dictionary
      *dictionary;          /* NULL, or one to store with; not with a base; it must outlive the use of params */
  glyd_allocator allocator; /* zeros: malloc and free */
} glyd_params;

/* Fill params with the defaults of a level: 1 thread, checks on, size unknown.
 * An unknown level is reported by the call that uses it. */
GLYD_API void glyd_params_init(glyd_params *params, int level);

typedef struct glyd_limits {
  uint64_t max_output;   /* content bytes; 0: no limit */
  uint64_t max_memory;   /* bytes the decoder may allocate; 0: 2 GiB */
  uint64_t max_segments; /* segments of one call or context; 0: no limit */
  int cpu;               /* GLYD_CPU_CHOICE_*, as in glyd_params */
} glyd_limits;

/* Where and why a call failed. */
typedef struct glyd_error {
  glyd_status status;
  uint64_t offset;   /* input byte the failing item starts at (frame, segment, trailer) */
  uint64_t expected; /* meaning depends on status: sizes, limits or checks */
  uint64_t found;
} glyd_error;

/* ---- one call ---------------------------------------------------------- */

/* Largest frame that len bytes can become with these params; 0 when they are invalid. */
GLYD_API uint64_t glyd_compress_bound(uint64_t len, const glyd_params *params);

/* Compress len bytes into one frame. content_size of params is ignored. The
 * frame is the same for any number of threads. Bytes of out past the frame, up
 * to cap, may be overwritten. Memory: for each thread that has a segment to do
 * the level's workspace, and where cap is below glyd_compress_bound two segments
 * (one when there is one thread); no thread is started for a single segment.
 * Errors: PARAMETER, MEMORY, BUFFER (cap below the frame; glyd_compress_bound
 * always suffices). */
GLYD_API glyd_status glyd_compress(void *out, size_t cap, const void *in, size_t len, const glyd_params *params,
                                   size_t *out_len);

/* Content size of all frames in the input, found by hopping over segments;
 * checks structure and limits but decodes nothing. error may be NULL. */
GLYD_API glyd_status glyd_content_size(const void *in, size_t len, const glyd_limits *limits, uint64_t *size,
                                       glyd_error *error);

/* Decompress all frames of the input, which must hold nothing else. limits
 * (NULL: defaults), allocator (NULL: malloc) and error may be NULL. cap may
 * be larger than the content; bytes of out past the content are not written.
 * Segments are decoded in place, so that threads (0: one a core) only cost a
 * workspace of at most 1 MiB each (base, record and cold segments: more, see
 * docs/format.md). Of several errors the first in the input is
 * reported, whatever the number of threads.
 * Errors: header, content, limit and memory statuses, BUFFER. */
GLYD_API glyd_status glyd_decompress(void *out, size_t cap, const void *in, size_t len, int threads,
                                     const glyd_limits *limits, const glyd_allocator *allocator, size_t *out_len,
                                     glyd_error *error);

/* What frames may need beside themselves; each may be NULL. */
typedef struct glyd_references {
  const glyd_base *base;
  const glyd_dictionary *dictionary;
} glyd_references;

/* glyd_decompress for frames that may be stored against a base, or with a
 * dictionary. references may be NULL. BASE_MISSING, BASE_WRONG (glyd/base.h),
 * DICT_MISSING and DICT_WRONG (expected and found: ids) before anything of such a
 * frame is decoded. */
GLYD_API glyd_status glyd_decompress_references(void *out, size_t cap, const void *in, size_t len,
                                                const glyd_references *references, int threads,
                                                const glyd_limits *limits, const glyd_allocator *allocator,
                                                size_t *out_len, glyd_error *error);

/* ---- looking into frames ------------------------------------------------ */

typedef struct glyd_frame_info {
  uint32_t version;
  uint32_t header_size;    /* bytes from the magic number to the first segment */
  uint64_t content_size;   /* or GLYD_SIZE_UNKNOWN */
  uint64_t segment_size;   /* most content bytes a segment holds, a power of two */
  uint64_t decoder_memory; /* bytes, from the memory code */
  int level;               /* informational */
  int check;               /* GLYD_CHECK_* */
  int has_trailer;
  int has_records;     /* 1: segments may be records, which take more memory to read */
  int has_cold;        /* 1: segments may be cold, which take more memory and time to read */
  int has_opened;      /* 1: segments may be opened, which take more memory and time to read */
  int has_base;        /* 1: the frame is stored against the base that the next two fields name */
  uint8_t base_id[16]; /* XXH3-128 in canonical order, see glyd/base.h */
  uint64_t base_size;
  int has_dictionary; /* 1: the frame is stored with the dictionary that the next field names */
  uint32_t dictionary_id;
  int is_skippable; /* 1: only header_size (20), skip_size and skip_tag are set */
  uint64_t skip_size;
  uint32_t skip_tag;
} glyd_frame_info;

/* Read the header of the (skippable) frame that starts at in. TRUNCATED when
 * more bytes are needed; error.expected then says how many at least. */
GLYD_API glyd_status glyd_read_frame_header(const void *in, size_t len, glyd_frame_info *info, glyd_error *error);

typedef struct glyd_segment_info {
  int kind;             /* GLYD_KIND_*; GLYD_KIND_END: the trailer starts here, rest 0 */
  uint32_t header_size; /* bytes before the payload */
  uint64_t content_size;
  uint64_t payload_size;
  uint64_t check; /* 0 without checks */
} glyd_segment_info;

/* Read the segment header at in (or the 0 byte of a trailer). TRUNCATED as
 * above; GLYD_SEGMENT_HEADER_MAX bytes always suffice. */
GLYD_API glyd_status glyd_read_segment_header(const void *in, size_t len, const glyd_frame_info *frame,
                                              glyd_segment_info *segment, glyd_error *error);

typedef struct glyd_tail {
  uint64_t content_size;
  uint64_t frame_size;
  uint32_t trailer_size;
} glyd_tail;

/* Read the last GLYD_TAIL_SIZE bytes of a frame with a trailer. Only sizes are
 * checked for sense; glyd_read_trailer checks the rest. HEADER: no tail. */
GLYD_API glyd_status glyd_read_tail(const void *in, size_t len, glyd_tail *tail);

typedef struct glyd_index_entry {
  uint64_t content_size;
  uint64_t stored_size; /* segment header and payload */
} glyd_index_entry;

/* Read a whole trailer (tail.trailer_size bytes). *n in: room in entries, out:
 * number of segments. BUFFER when there is not room enough (entries may be
 * NULL with *n 0 to ask). */
GLYD_API glyd_status glyd_read_trailer(const void *in, size_t len, const glyd_frame_info *frame,
                                       glyd_index_entry *entries, uint64_t *n, glyd_error *error);

/* ---- contexts ----------------------------------------------------------- */

typedef struct glyd_cctx glyd_cctx;
typedef struct glyd_dctx glyd_dctx;

typedef struct glyd_in {
  const void *data;
  size_t size;
  size_t pos; /* advanced by the call */
} glyd_in;

typedef struct glyd_out {
  void *data;
  size_t size;
  size_t pos;
} glyd_out;

typedef enum glyd_op {
  GLYD_CONTINUE = 0, /* take input, emit when convenient */
  GLYD_FLUSH = 1,    /* end the current segment: all input so far can be decoded from the output */
  GLYD_END = 2       /* end the frame */
} glyd_op;

/* Bytes a compression context allocates, all of them, for these params; 0 when
 * they are invalid. Exact for frames of up to 6,552 segments; longer ones (more
 * than 25 GiB with the default segments) take 64 KiB more for each 6,552 or
 * more segments of their index, until they end. What depends on the content
 * counts at its most: containers that are opened, and, against a base with
 * tensors, finding them by name. */
GLYD_API uint64_t glyd_cctx_memory(const glyd_params *params);

/* Create a context for one frame after the other with the same params.
 * *ctx is NULL on failure. Errors: PARAMETER, MEMORY. */
GLYD_API glyd_status glyd_cctx_create(glyd_cctx **ctx, const glyd_params *params);
GLYD_API void glyd_cctx_free(glyd_cctx *ctx);

/* Forget an unfinished frame; params stay. content_size sets the exact size of
 * the next frame's content, or GLYD_SIZE_UNKNOWN. */
GLYD_API glyd_status glyd_cctx_reset(glyd_cctx *ctx, uint64_t content_size);

/* Take from in, write to out, until in is used up (CONTINUE) or the op is done
 * (FLUSH, END) or out is full. *pending: 0 when the op is complete, else call
 * again with room in out. After END completes the next call starts a frame;
 * CONTINUE and FLUSH without input start none. With threads > 1 up to that many
 * segments are gathered, then compressed together before the call returns.
 * Errors: PARAMETER (content unlike the declared content_size), MEMORY, STATE. */
GLYD_API glyd_status glyd_compress_stream(glyd_cctx *ctx, glyd_out *out, glyd_in *in, glyd_op op, size_t *pending);

/* Compress one segment on its own (segment header and payload), for callers
 * that lay out frames themselves. len: 1 … the segment size of the ctx. */
GLYD_API glyd_status glyd_encode_segment(glyd_cctx *ctx, void *out, size_t cap, const void *in, size_t len,
                                         size_t *out_len);

/* Most bytes a decompression context has allocated at once to decode frames
 * with this header (streaming; glyd_decode_segment needs less). With one thread
 * never more than info->decoder_memory. */
GLYD_API uint64_t glyd_dctx_memory(const glyd_frame_info *info, int threads);

/* Create a context. limits and allocator may be NULL. Memory for segments is
 * allocated when a header has been read. */
GLYD_API glyd_status glyd_dctx_create(glyd_dctx **ctx, int threads, const glyd_limits *limits,
                                      const glyd_allocator *allocator);
GLYD_API void glyd_dctx_free(glyd_dctx *ctx);

/* Forget everything; limits, threads and allocator stay. */
GLYD_API glyd_status glyd_dctx_reset(glyd_dctx *ctx);

/* The dictionary of the frames that the context reads from now on; it must
 * outlive that use, and reset keeps it. NULL: none. */
GLYD_API void glyd_dctx_set_dictionary(glyd_dctx *ctx, const glyd_dictionary *dictionary);

/* Take from in, write to out. *at_end is 1 when a frame has just been decoded
 * and delivered in full (in.pos is then at its end, and nothing beyond is
 * taken before the next call), or when nothing was given yet. Skippable frames
 * are passed over and count as frames without content. After an error the
 * context only takes reset. Every segment that is complete is decoded and
 * delivered before the call returns, as far as out has room. With threads > 1
 * the complete segments a call finds are decoded together: give it input of
 * several segments at a time for that, and room for their content to save a copy. */
GLYD_API glyd_status glyd_decompress_stream(glyd_dctx *ctx, glyd_out *out, glyd_in *in, int *at_end);

/* Details of the last failure of this context. */
GLYD_API void glyd_dctx_error(const glyd_dctx *ctx, glyd_error *error);

/* Decode one segment (header and payload: len bytes exactly) of a frame with
 * this header into out; *out_len is its content size. The rest of out, up to
 * cap, may be overwritten. */
GLYD_API glyd_status glyd_decode_segment(glyd_dctx *ctx, const glyd_frame_info *frame, void *out, size_t cap,
                                         const void *in, size_t len, size_t *out_len);

/* ---- opened containers --------------------------------------------------- */

/* What the payload of an opened segment says of itself. */
typedef struct glyd_opened_info {
  uint64_t n_streams;
  int is_cut;                /* 1: streams were opened in part, what is inside is not all that they hold */
  uint64_t inside_size;      /* bytes that they decompress to */
  uint64_t kept_size;        /* bytes of the segment's content that are no part of a stream */
  uint64_t description_size; /* bytes that say how the streams were made */
  uint32_t head_size;        /* bytes before the segments inside */
} glyd_opened_info;

/* Read what an opened segment (header and payload: len bytes exactly) says. PARAMETER: it is of another kind. */
GLYD_API glyd_status glyd_read_opened(const glyd_frame_info *frame, const void *in, size_t len, glyd_opened_info *info);

/* Decode what is inside an opened segment: what its streams decompress to, one
 * after the other, without making the streams again. *out_len: info.inside_size. */
GLYD_API glyd_status glyd_decode_inside(glyd_dctx *ctx, const glyd_frame_info *frame, void *out, size_t cap,
                                        const void *in, size_t len, size_t *out_len);

#define GLYD_STREAM_GZIP 1
#define GLYD_STREAM_ZIP 2
#define GLYD_STREAM_PNG 3
#define GLYD_STREAM_ZLIB 4

#define GLYD_STREAM_OPENED 0
#define GLYD_STREAM_INVALID 1 /* no stream, or one of an unusual form */
#define GLYD_STREAM_SMALL 2   /* too short to gain */
#define GLYD_STREAM_UNLIKE 3  /* made by an encoder so unlike zlib, or so slow, that opening does not pay */

/* What becomes of a place where a stream begins. */
typedef struct glyd_stream_info {
  int kind;                  /* GLYD_STREAM_GZIP … */
  int outcome;               /* GLYD_STREAM_OPENED … */
  int is_cut;                /* 1: only the first part of the stream is opened */
  uint64_t offset;           /* of the first byte of the stream */
  uint64_t stored_size;      /* bytes of it that are opened, or would be */
  uint64_t content_size;     /* bytes they decompress to */
  uint64_t description_bits; /* that say how they were made */
} glyd_stream_info;

/* Look for streams in one segment's content and say what opening them gives: at
 * most `cap` of them in order of their places; *n: how many there are.
 * Errors: MEMORY. */
GLYD_API glyd_status glyd_survey_streams(const void *in, size_t len, const glyd_allocator *allocator,
                                         glyd_stream_info *streams, size_t cap, size_t *n);

/* Content with its streams opened, for what compresses it next: what is inside
 * as it is, and how the streams are made again (deflate/spec.md, "Opened
 * content"). *out_len 0: nothing in it can be opened. in and out must not overlap.
 * It is not read back: see that glyd_close_streams gives the content before letting go of it.
 * Errors: PARAMETER (more than GLYD_OPENED_CONTENT_MAX bytes), BUFFER (cap is
 * less than glyd_open_streams_bound and too little), MEMORY. */
GLYD_API uint64_t glyd_open_streams_bound(uint64_t len);
GLYD_API glyd_status glyd_open_streams(const void *in, size_t len, const glyd_allocator *allocator, void *out,
                                       size_t cap, size_t *out_len);

/* The way back. What was opened is not checked but for its form: whoever keeps it
 * keeps a check. *size: bytes of the content. Errors: MAGIC, TRUNCATED, CORRUPT, BUFFER (cap is less), MEMORY. */
GLYD_API glyd_status glyd_opened_content_size(const void *in, size_t len, uint64_t *size);
GLYD_API glyd_status glyd_close_streams(const void *in, size_t len, const glyd_allocator *allocator, void *out,
                                        size_t cap, size_t *out_len);

/* ---- fingerprints ------------------------------------------------------- */

#define GLYD_FINGERPRINT_SPACING 64 /* bytes from one fingerprint to the next, at least */

/* Where a walk over content stands; zeros before its first byte. */
typedef struct glyd_fingerprint_state {
  uint32_t wait;
  uint32_t tail_size;
  uint8_t tail[GLYD_FINGERPRINT_SPACING - 1]; /* the last bytes: what follows decides */
} glyd_fingerprint_state;

/* Fingerprints of the next len bytes of some content, about one in 4,096 bytes:
 * values that depend on the 64 bytes from a place on, and places that are chosen
 * by the same bytes. Contents that have parts in common have fingerprints in
 * common, wherever these parts are and however the content is cut into calls.
 * They are the same on every machine and in every version.
 * out: room for len / GLYD_FINGERPRINT_SPACING + 2. Returns their number. */
GLYD_API size_t glyd_fingerprints(glyd_fingerprint_state *state, const void *data, size_t len, uint64_t *out);

#ifdef __cplusplus
}
#endif
#endif
