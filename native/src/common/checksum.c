/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * XXH3-64 and XXH3-128. Up to 240 bytes take short paths; longer input goes through eight
 * 64-bit lanes, a stripe of 64 bytes at a time, mixed after each 16 stripes.
 */
#include "common/checksum.h"

#include "common/cpu.h"
#include "common/mem.h"

#define PRIME32_1 0x9E3779B1u
#define PRIME32_2 0x85EBCA77u
#define PRIME32_3 0xC2B2AE3Du
#define PRIME64_1 0x9E3779B185EBCA87u
#define PRIME64_2 0xC2B2AE3D27D4EB4Fu
#define PRIME64_3 0x165667B19E3779F9u
#define PRIME64_4 0x85EBCA77C2B2AE63u
#define PRIME64_5 0x27D4EB2F165667C5u
#define PRIME_MX1 0x165667919E3779F9u
#define PRIME_MX2 0x9FB21C651E98DF25u

#define STRIPE 64u
#define SECRET_SIZE 192u
#define BLOCK_STRIPES ((SECRET_SIZE - STRIPE) / 8u)
#define BLOCK (STRIPE * BLOCK_STRIPES)
#define SCRAMBLE_KEY (SECRET_SIZE - STRIPE)
#define LAST_KEY (SECRET_SIZE - STRIPE - 7u)
#define MERGE_KEY 11u

/* Bytes copied before they are hashed. On a Zen 5 core with 1 MiB of L2, 4 MiB
 * copied: 32.9 GB/s without a hash, 32.3 with pieces of 128 KiB, 31.0 of 64 KiB,
 * 19.1 as one piece. One loop that stores what it hashes: 17.7, or 30.7 with
 * stores past the cache, which every later reader pays for. */
#define COPY_PIECE ((size_t)128 << 10)

_Static_assert(BLOCK == 1024, "XXH3 mixes its lanes once a KiB with the default secret");

static const uint8_t secret[] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4,
    0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
    0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43,
    0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
    0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
    0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
    0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78,
    0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16,
    0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
    0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

_Static_assert(sizeof secret == SECRET_SIZE, "a byte short would go unseen in most lengths");

static const uint64_t initial_acc[8] = {PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3,
                                        PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1};

GLYD_INLINE uint64_t secret64(size_t at) { return glyd_load64(secret + at); }
GLYD_INLINE uint64_t rotl64(uint64_t v, unsigned n) { return (v << n) | (v >> (64u - n)); }

GLYD_INLINE uint64_t mul_fold(uint64_t a, uint64_t b) {
  const unsigned __int128 p = (unsigned __int128)a * b;
  return (uint64_t)p ^ (uint64_t)(p >> 64);
}

GLYD_INLINE uint64_t avalanche_xxh64(uint64_t h) {
  h ^= h >> 33;
  h *= PRIME64_2;
  h ^= h >> 29;
  h *= PRIME64_3;
  return h ^ (h >> 32);
}

GLYD_INLINE uint64_t avalanche_xxh3(uint64_t h) {
  h ^= h >> 37;
  h *= PRIME_MX1;
  return h ^ (h >> 32);
}

GLYD_INLINE uint64_t mix16(const uint8_t *in, size_t key) {
  return mul_fold(glyd_load64(in) ^ secret64(key), glyd_load64(in + 8) ^ secret64(key + 8));
}

static uint64_t hash_0_16(const uint8_t *in, size_t len) {
  if (len > 8) {
    const uint64_t lo = glyd_load64(in) ^ secret64(24) ^ secret64(32);
    const uint64_t hi = glyd_load64(in + len - 8) ^ secret64(40) ^ secret64(48);
    return avalanche_xxh3(len + __builtin_bswap64(lo) + hi + mul_fold(lo, hi));
  }
  if (len >= 4) {
    const uint64_t both = glyd_load32(in + len - 4) + ((uint64_t)glyd_load32(in) << 32);
    uint64_t h = both ^ secret64(8) ^ secret64(16);
    h ^= rotl64(h, 49) ^ rotl64(h, 24);
    h *= PRIME_MX2;
    h ^= (h >> 35) + len;
    h *= PRIME_MX2;
    return h ^ (h >> 28);
  }
  if (len > 0) {
    const uint32_t mix = (uint32_t)in[0] << 16 | (uint32_t)in[len >> 1] << 24 | in[len - 1] | (uint32_t)len << 8;
    return avalanche_xxh64((uint64_t)mix ^ (glyd_load32(secret) ^ glyd_load32(secret + 4)));
  }
  return avalanche_xxh64(secret64(56) ^ secret64(64));
}

static uint64_t hash_17_128(const uint8_t *in, size_t len) {
  uint64_t h = len * PRIME64_1;
  for (size_t i = (len - 1) / 32 + 1; i-- > 0;)
    h += mix16(in + 16 * i, 32 * i) + mix16(in + len - 16 * (i + 1), 32 * i + 16);
  return avalanche_xxh3(h);
}

static uint64_t hash_129_240(const uint8_t *in, size_t len) {
  uint64_t h = len * PRIME64_1;
  for (size_t i = 0; i < 8; i++) h += mix16(in + 16 * i, 16 * i);
  h = avalanche_xxh3(h);
  for (size_t i = 8; i < len / 16; i++) h += mix16(in + 16 * i, 16 * (i - 8) + 3);
  return avalanche_xxh3(h + mix16(in + len - 16, 136 - 17));
}

GLYD_INLINE void accumulate(uint64_t *acc, const uint8_t *in, size_t key) {
  for (size_t i = 0; i < 8; i++) {
    const uint64_t data = glyd_load64(in + 8 * i);
    const uint64_t keyed = data ^ secret64(key + 8 * i);
    acc[i ^ 1] += data;
    acc[i] += (keyed & 0xFFFFFFFFu) * (keyed >> 32);
  }
}

GLYD_INLINE void scramble(uint64_t *acc) {
  for (size_t i = 0; i < 8; i++) {
    uint64_t v = acc[i];
    v ^= v >> 47;
    v ^= secret64(SCRAMBLE_KEY + 8 * i);
    acc[i] = v * PRIME32_1;
  }
}

static uint64_t merge_with(const uint64_t *acc, size_t key, uint64_t h) {
  for (size_t i = 0; i < 4; i++)
    h += mul_fold(acc[2 * i] ^ secret64(key + 16 * i), acc[2 * i + 1] ^ secret64(key + 16 * i + 8));
  return avalanche_xxh3(h);
}

static uint64_t merge(const uint64_t *acc, uint64_t len) { return merge_with(acc, MERGE_KEY, len * PRIME64_1); }

static glyd_hash128 merge_128(const uint64_t *acc, uint64_t len) {
  return (glyd_hash128){merge(acc, len), merge_with(acc, SECRET_SIZE - STRIPE - MERGE_KEY, ~(len * PRIME64_2))};
}

static void hash_scalar(uint64_t *acc, const uint8_t *in, size_t blocks) {
  for (size_t b = 0; b < blocks; b++, in += BLOCK) {
    for (size_t s = 0; s < BLOCK_STRIPES; s++) accumulate(acc, in + s * STRIPE, 8 * s);
    scramble(acc);
  }
}

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx2"))) static inline __m256i load256(const void *p) {
  return _mm256_loadu_si256((const __m256i *)p);
}

__attribute__((target("avx2"))) static inline __m256i step256(__m256i acc, __m256i data, __m256i key) {
  const __m256i keyed = _mm256_xor_si256(data, key);
  const __m256i product = _mm256_mul_epu32(keyed, _mm256_srli_epi64(keyed, 32));
  return _mm256_add_epi64(acc, _mm256_add_epi64(product, _mm256_shuffle_epi32(data, _MM_SHUFFLE(1, 0, 3, 2))));
}

__attribute__((target("avx2"))) static inline __m256i scramble256(__m256i acc, __m256i key) {
  const __m256i prime = _mm256_set1_epi64x((long long)PRIME32_1);
  const __m256i v = _mm256_xor_si256(_mm256_xor_si256(acc, _mm256_srli_epi64(acc, 47)), key);
  const __m256i hi = _mm256_mul_epu32(_mm256_srli_epi64(v, 32), prime);
  return _mm256_add_epi64(_mm256_mul_epu32(v, prime), _mm256_slli_epi64(hi, 32));
}

__attribute__((target("avx2"))) static void hash_avx2(uint64_t *acc, const uint8_t *in, size_t blocks) {
  __m256i a0 = load256(acc);
  __m256i a1 = load256(acc + 4);
  for (size_t b = 0; b < blocks; b++) {
    for (size_t s = 0; s < BLOCK_STRIPES; s++, in += STRIPE) {
      _mm_prefetch((const char *)in + 1024, _MM_HINT_T0);
      a0 = step256(a0, load256(in), load256(secret + 8 * s));
      a1 = step256(a1, load256(in + 32), load256(secret + 8 * s + 32));
    }
    a0 = scramble256(a0, load256(secret + SCRAMBLE_KEY));
    a1 = scramble256(a1, load256(secret + SCRAMBLE_KEY + 32));
  }
  _mm256_storeu_si256((__m256i *)acc, a0);
  _mm256_storeu_si256((__m256i *)(acc + 4), a1);
}

/* Stripes of a KiB that is not complete, then the last stripe. */
__attribute__((target("avx2"))) static void end_avx2(uint64_t *acc, const uint8_t *in, size_t stripes,
                                                     const uint8_t *last) {
  __m256i a0 = load256(acc);
  __m256i a1 = load256(acc + 4);
  for (size_t s = 0; s < stripes; s++, in += STRIPE) {
    a0 = step256(a0, load256(in), load256(secret + 8 * s));
    a1 = step256(a1, load256(in + 32), load256(secret + 8 * s + 32));
  }
  a0 = step256(a0, load256(last), load256(secret + LAST_KEY));
  a1 = step256(a1, load256(last + 32), load256(secret + LAST_KEY + 32));
  _mm256_storeu_si256((__m256i *)acc, a0);
  _mm256_storeu_si256((__m256i *)(acc + 4), a1);
}

__attribute__((target("avx512f"))) static inline __m512i step512(__m512i acc, const void *in, const void *key) {
  const __m512i data = _mm512_loadu_si512(in);
  const __m512i keyed = _mm512_xor_si512(data, _mm512_loadu_si512(key));
  const __m512i product = _mm512_mul_epu32(keyed, _mm512_srli_epi64(keyed, 32));
  return _mm512_add_epi64(
      acc, _mm512_add_epi64(product, _mm512_shuffle_epi32(data, (_MM_PERM_ENUM)_MM_SHUFFLE(1, 0, 3, 2))));
}

__attribute__((target("avx512f"))) static void hash_avx512(uint64_t *acc, const uint8_t *in, size_t blocks) {
  const __m512i prime = _mm512_set1_epi64((long long)PRIME32_1);
  __m512i a = _mm512_loadu_si512(acc);
  for (size_t b = 0; b < blocks; b++) {
    for (size_t s = 0; s < BLOCK_STRIPES; s++, in += STRIPE) {
      _mm_prefetch((const char *)in + 1024, _MM_HINT_T0);
      a = step512(a, in, secret + 8 * s);
    }
    const __m512i v =
        _mm512_xor_si512(_mm512_xor_si512(a, _mm512_srli_epi64(a, 47)), _mm512_loadu_si512(secret + SCRAMBLE_KEY));
    const __m512i hi = _mm512_mul_epu32(_mm512_srli_epi64(v, 32), prime);
    a = _mm512_add_epi64(_mm512_mul_epu32(v, prime), _mm512_slli_epi64(hi, 32));
  }
  _mm512_storeu_si512(acc, a);
}
#endif

/* Mix in whole KiBs. */
static void hash_blocks(unsigned cpu, uint64_t *acc, const uint8_t *in, size_t blocks) {
#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX512) {
    hash_avx512(acc, in, blocks);
    return;
  }
  if (cpu & GLYD_CPU_AVX2) {
    hash_avx2(acc, in, blocks);
    return;
  }
#endif
  (void)cpu;
  hash_scalar(acc, in, blocks);
}

void glyd_checksum_pass_begin(glyd_checksum_pass *pass, unsigned cpu, const void *data, size_t len) {
  memcpy(pass->acc, initial_acc, sizeof initial_acc);
  pass->data = data;
  pass->len = len;
  pass->done = 0;
  pass->cpu = cpu;
}

void glyd_checksum_pass_advance(glyd_checksum_pass *pass, size_t upto) {
  if (pass->len <= 240 || upto <= pass->done) return;
  /* The last KiB, if complete, ends without being mixed. */
  const size_t blocks = (upto == pass->len ? upto - 1 : upto) / BLOCK - pass->done / BLOCK;
  hash_blocks(pass->cpu, pass->acc, pass->data + pass->done, blocks);
  pass->done += blocks * BLOCK;
}

void glyd_checksum_pass_copy(glyd_checksum_pass *pass, void *out, const void *in, size_t at, size_t n) {
  for (size_t i = 0; i < n;) {
    const size_t piece = n - i < COPY_PIECE ? n - i : COPY_PIECE;
    memcpy((uint8_t *)out + i, (const uint8_t *)in + i, piece);
    i += piece;
    glyd_checksum_pass_advance(pass, at + i);
  }
}

/* The lanes of more than 240 bytes, all of them hashed. */
static void finish_lanes(glyd_checksum_pass *pass) {
  glyd_checksum_pass_advance(pass, pass->len);
  const uint8_t *const end = pass->data + pass->len, *p = pass->data + pass->done;
  const size_t stripes = (size_t)(end - 1 - p) / STRIPE;
#if defined(__x86_64__)
  if (pass->cpu & GLYD_CPU_AVX2) {
    end_avx2(pass->acc, p, stripes, end - STRIPE);
    return;
  }
#endif
  for (size_t s = 0; s < stripes; s++) accumulate(pass->acc, p + s * STRIPE, 8 * s);
  accumulate(pass->acc, end - STRIPE, LAST_KEY);
}

uint64_t glyd_checksum_pass_end(glyd_checksum_pass *pass) {
  const uint8_t *in = pass->data;
  const size_t len = pass->len;
  if (len <= 16) return hash_0_16(in, len);
  if (len <= 128) return hash_17_128(in, len);
  if (len <= 240) return hash_129_240(in, len);
  finish_lanes(pass);
  return merge(pass->acc, len);
}

static glyd_hash128 hash128_0_16(const uint8_t *in, size_t len) {
  if (len > 8) {
    const uint64_t lo = glyd_load64(in), hi = glyd_load64(in + len - 8);
    unsigned __int128 m = (unsigned __int128)(lo ^ hi ^ secret64(32) ^ secret64(40)) * PRIME64_1;
    const uint64_t flipped = hi ^ secret64(48) ^ secret64(56);
    const uint64_t high = (uint64_t)(m >> 64) + flipped + (flipped & 0xFFFFFFFFu) * (PRIME32_2 - 1u);
    const uint64_t low = ((uint64_t)m + ((uint64_t)(len - 1) << 54)) ^ __builtin_bswap64(high);
    m = (unsigned __int128)low * PRIME64_2;
    return (glyd_hash128){avalanche_xxh3((uint64_t)m), avalanche_xxh3((uint64_t)(m >> 64) + high * PRIME64_2)};
  }
  if (len >= 4) {
    const uint64_t both = glyd_load32(in) + ((uint64_t)glyd_load32(in + len - 4) << 32);
    const unsigned __int128 m =
        (unsigned __int128)(both ^ secret64(16) ^ secret64(24)) * (PRIME64_1 + ((uint64_t)len << 2));
    const uint64_t high = (uint64_t)(m >> 64) + ((uint64_t)m << 1);
    uint64_t low = (uint64_t)m ^ (high >> 3);
    low ^= low >> 35;
    low *= PRIME_MX2;
    return (glyd_hash128){low ^ (low >> 28), avalanche_xxh3(high)};
  }
  if (len > 0) {
    const uint32_t mix = (uint32_t)in[0] << 16 | (uint32_t)in[len >> 1] << 24 | in[len - 1] | (uint32_t)len << 8;
    const uint32_t swapped = __builtin_bswap32(mix), turned = swapped << 13 | swapped >> 19;
    return (glyd_hash128){avalanche_xxh64((uint64_t)mix ^ (glyd_load32(secret) ^ glyd_load32(secret + 4))),
                          avalanche_xxh64((uint64_t)turned ^ (glyd_load32(secret + 8) ^ glyd_load32(secret + 12)))};
  }
  return (glyd_hash128){avalanche_xxh64(secret64(64) ^ secret64(72)), avalanche_xxh64(secret64(80) ^ secret64(88))};
}

GLYD_INLINE void mix32(glyd_hash128 *h, const uint8_t *a, const uint8_t *b, size_t key) {
  h->low = (h->low + mix16(a, key)) ^ (glyd_load64(b) + glyd_load64(b + 8));
  h->high = (h->high + mix16(b, key + 16)) ^ (glyd_load64(a) + glyd_load64(a + 8));
}

static glyd_hash128 hash128_17_240(const uint8_t *in, size_t len) {
  glyd_hash128 h = {len * PRIME64_1, 0};
  if (len <= 128) {
    for (size_t i = (len - 1) / 32 + 1; i-- > 0;) mix32(&h, in + 16 * i, in + len - 16 * (i + 1), 32 * i);
  } else {
    for (size_t i = 0; i < 4; i++) mix32(&h, in + 32 * i, in + 32 * i + 16, 32 * i);
    h = (glyd_hash128){avalanche_xxh3(h.low), avalanche_xxh3(h.high)};
    for (size_t i = 4; i < len / 32; i++) mix32(&h, in + 32 * i, in + 32 * i + 16, 32 * (i - 4) + 3);
    mix32(&h, in + len - 16, in + len - 32, 136 - 17 - 16);
  }
  const uint64_t high = h.low * PRIME64_1 + h.high * PRIME64_4 + len * PRIME64_2;
  return (glyd_hash128){avalanche_xxh3(h.low + h.high), 0 - avalanche_xxh3(high)};
}

glyd_hash128 glyd_checksum_pass_end_128(glyd_checksum_pass *pass) {
  const size_t len = pass->len;
  if (len <= 16) return hash128_0_16(pass->data, len);
  if (len <= 240) return hash128_17_240(pass->data, len);
  finish_lanes(pass);
  return merge_128(pass->acc, len);
}

glyd_hash128 glyd_checksum_xxh3_128(unsigned cpu, const void *data, size_t len) {
  glyd_checksum_pass pass;
  glyd_checksum_pass_begin(&pass, cpu, data, len);
  return glyd_checksum_pass_end_128(&pass);
}

uint64_t glyd_checksum_xxh3(unsigned cpu, const void *data, size_t len) {
  glyd_checksum_pass pass;
  glyd_checksum_pass_begin(&pass, cpu, data, len);
  return glyd_checksum_pass_end(&pass);
}

void glyd_checksum_init(glyd_checksum_state *state) {
  memset(state, 0, sizeof *state);
  memcpy(state->acc, initial_acc, sizeof initial_acc);
}

static unsigned consume(uint64_t *acc, const uint8_t *in, size_t stripes, unsigned stripe) {
  for (size_t s = 0; s < stripes; s++, in += STRIPE) {
    accumulate(acc, in, 8 * (size_t)stripe);
    if (++stripe == BLOCK_STRIPES) {
      scramble(acc);
      stripe = 0;
    }
  }
  return stripe;
}

void glyd_checksum_update(glyd_checksum_state *state, const void *data, size_t len) {
  const uint8_t *in = data;
  state->total += len;
  while (len > 0) {
    /* A full buffer is used only once a byte follows it: the last stripe is special. */
    if (state->buffered == GLYD_CHECKSUM_BUFFER) {
      state->stripe = consume(state->acc, state->buffer, GLYD_CHECKSUM_BUFFER / STRIPE, state->stripe);
      state->buffered = 0;
    }
    const size_t room = GLYD_CHECKSUM_BUFFER - state->buffered;
    const size_t n = len < room ? len : room;
    memcpy(state->buffer + state->buffered, in, n);
    state->buffered += n;
    in += n;
    len -= n;
  }
}

static void digest_lanes(const glyd_checksum_state *state, uint64_t acc[8]) {
  memcpy(acc, state->acc, sizeof state->acc);
  consume(acc, state->buffer, (state->buffered - 1) / STRIPE, state->stripe);
  if (state->buffered >= STRIPE) {
    accumulate(acc, state->buffer + state->buffered - STRIPE, LAST_KEY);
  } else {
    uint8_t last[STRIPE];
    const size_t old = STRIPE - state->buffered;
    memcpy(last, state->buffer + GLYD_CHECKSUM_BUFFER - old, old);
    memcpy(last + old, state->buffer, state->buffered);
    accumulate(acc, last, LAST_KEY);
  }
}

uint64_t glyd_checksum_digest(const glyd_checksum_state *state) {
  if (state->total <= 240) return glyd_checksum_xxh3(GLYD_CPU_SCALAR, state->buffer, state->buffered);
  uint64_t acc[8];
  digest_lanes(state, acc);
  return merge(acc, state->total);
}

glyd_hash128 glyd_checksum_digest_128(const glyd_checksum_state *state) {
  if (state->total <= 240) return glyd_checksum_xxh3_128(GLYD_CPU_SCALAR, state->buffer, state->buffered);
  uint64_t acc[8];
  digest_lanes(state, acc);
  return merge_128(acc, state->total);
}
