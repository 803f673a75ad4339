/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Pages packed, a block a page, and unpacked, a warp a slab. Bases are found by
 * channels, a warp 16 of them; then quads by slabs and groups of channels, a lane
 * a piece; then, once it is known how many codes the page has, they are put
 * together by half pieces. Pages are packed to places of the largest size, as their sizes are not known
 * before; then, when the caller has placed them, they are copied. Their bytes
 * are the codec's.
 */
#ifndef GLYD_GPU_KV_PACK_CUH
#define GLYD_GPU_KV_PACK_CUH

#include "kv_slab.cuh"

struct KvPackArgs {
  const uint16_t *in; /* [pages, 128, D] bf16 */
  int64_t *sizes;     /* [pages] */
  uint8_t *out;       /* [pages, GLYD_KV_PLAIN_SIZE(D)] */
};

/* Lists of a page; and threads: a warp for 16 channels, and for a list where there are not more than 16. */
__host__ __device__ constexpr int kv_lists_of(int channels) { return GLYD_KV_SLABS * (int)GLYD_KV_GROUPS(channels); }
__host__ __device__ constexpr int kv_pack_threads(int channels) {
  return 32 * (channels / 16 > kv_lists_of(channels) ? channels / 16 : kv_lists_of(channels));
}
/* A row of channels: 16 bytes longer than its tokens, so that 16 bytes of eight rows meet in no bank. */
constexpr int kKvRow = kKvTokens * 2 + 16, kKvTile = 16 * kKvRow;

constexpr uint8_t kKvCosts[GLYD_KV_DISTANCES] = GLYD_KV_COSTS;
/* By distances before, what the others cost together, and a distance: codes of quads whose next distance is less; and by
 * what a quad costs: codes of those that cost less. */
struct KvRanks {
  uint16_t of[4][GLYD_KV_COST_LIMIT + 1][GLYD_KV_DISTANCES];
  uint16_t first[GLYD_KV_COST_LIMIT + 1];
};
constexpr KvRanks kv_make_ranks() {
  KvRanks r = {};
  uint16_t ways[GLYD_KV_COST_LIMIT + 1] = {1};
  for (int i = 3; i >= 0; i--) {
    uint16_t all[GLYD_KV_COST_LIMIT + 1] = {};
    for (int room = 0; room <= GLYD_KV_COST_LIMIT; room++) {
      int n = 0;
      for (int d = 0; d < GLYD_KV_DISTANCES; d++) {
        r.of[i][room][d] = (uint16_t)n;
        if (kKvCosts[d] <= room) n += ways[room - kKvCosts[d]];
      }
      all[room] = (uint16_t)n;
    }
    for (int room = 0; room <= GLYD_KV_COST_LIMIT; room++) ways[room] = all[room];
  }
  for (int cost = 0, before = 0; cost <= GLYD_KV_COST_LIMIT; cost++) {
    r.first[cost] = (uint16_t)before;
    before += ways[cost];
  }
  return r;
}
static __device__ const KvRanks kKvRanks = kv_make_ranks();
/* Costs, five bits each. */
constexpr uint64_t kv_costs_of() {
  uint64_t all = 0;
  for (int d = 0; d < GLYD_KV_DISTANCES; d++) all |= (uint64_t)kKvCosts[d] << (5 * d);
  return all;
}
constexpr uint64_t kKvCostBits = kv_costs_of();
constexpr uint32_t kKvTooFar = 64; /* cost of a distance without a code: more than all of a quad */

constexpr int kKvChoices = 4;
struct KvPackShared {
  KvRanks ranks;
  uint32_t words[GLYD_KV_SLABS * GLYD_KV_GROUPS(256)][kKvChoices]; /* of each list, by how many codes there are */
  uint32_t exceptions[16];                                          /* of 16 channels each */
  uint8_t bases[256];                                               /* as the page has them */
};
template <int D> __host__ __device__ constexpr int kv_pack_shared() { return D / 16 * kKvTile + (int)sizeof(KvPackShared); }

__device__ __forceinline__ uint32_t kv_exponent(uint32_t value) { return value >> 7 & 0xFF; }

/* What a base costs in a lane's 64 values and those of the lane that has the channel's others. */
__device__ __forceinline__ uint32_t kv_weigh(const uint8_t *row, uint32_t base) {
  uint32_t sum = 0;
#pragma unroll 2
  for (int i = 0; i < 8; i++) {
    const uint4 x = *(const uint4 *)(row + 16 * i);
    const uint32_t v[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 8; j++) {
      const uint32_t d = min(base + GLYD_KV_ABOVE - kv_exponent(v[j / 2] >> (j % 2 * 16)), 15u);
      sum += (uint32_t)(GLYD_KV_WEIGHTS >> (4 * d)) & 15;
    }
  }
  return sum + __shfl_xor_sync(~0u, sum, 16);
}

/* Base of a channel: from the mean exponent on, up or else down as long as that costs less; 0 for zeros only. */
__device__ __forceinline__ uint32_t kv_base(const uint8_t *row) {
  uint32_t sum = 0, any = 0;
#pragma unroll 2
  for (int i = 0; i < 8; i++) {
    const uint4 x = *(const uint4 *)(row + 16 * i);
    const uint32_t v[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      sum += kv_exponent(v[j]) + kv_exponent(v[j] >> 16);
      any |= v[j] & 0x7FFF7FFFu;
    }
  }
  sum += __shfl_xor_sync(~0u, sum, 16);
  any |= __shfl_xor_sync(~0u, any, 16);
  uint32_t base = sum / kKvTokens;
  base = base < GLYD_KV_BASE_MIN ? GLYD_KV_BASE_MIN : min(base, (uint32_t)GLYD_KV_BASE_MAX);
  uint32_t least = kv_weigh(row, base), step = 1;
  bool moved = false, done = any == 0;
  while (__any_sync(~0u, !done)) {
    const uint32_t next = base + step;
    const bool there = next >= GLYD_KV_BASE_MIN && next <= GLYD_KV_BASE_MAX;
    const uint32_t cost = kv_weigh(row, next);
    if (done) continue;
    if (there && cost < least) {
      base = next, least = cost, moved = true;
    } else {
      done = moved || step != 1;
      step = ~0u;
    }
  }
  return any == 0 ? 0 : base;
}

/* Exclusive sum over the lanes in the order of what they hold: channel by channel, its first tokens before its last. */
__device__ __forceinline__ uint32_t kv_before_in_order(uint32_t n) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t sum = before_in_warp(__shfl_sync(~0u, n, (int)(lane % 2 * 16 + lane / 2)));
  return __shfl_sync(~0u, sum, (int)(lane % 16 * 2 + lane / 16));
}

/* Whether a value is an exception to a base that is not 0. */
__device__ __forceinline__ bool kv_is_exception(uint32_t value, uint32_t base) {
  const uint32_t e = kv_exponent(value), d = base + GLYD_KV_ABOVE - e - (uint32_t)GLYD_KV_DISTANCE_MIN;
  return (value & 0x7FFF) != 0 && (e == 0 || e == 255 || d > GLYD_KV_DISTANCE_MAX - GLYD_KV_DISTANCE_MIN);
}

/* A quad, encoded. */
struct KvQuad {
  uint32_t kept, code, word, far; /* code among all, or GLYD_KV_QUADS; far: the second word, 0x10000 when there is one */
};
/* Of two words: channel c and c + 8 of two tokens, each with its base. */
__device__ __forceinline__ KvQuad kv_encode_quad(const KvRanks &ranks, uint32_t x, uint32_t y, uint32_t base_x, uint32_t base_y) {
  KvQuad r;
  r.kept = (prmt(x, y, 0x6240) & 0x7F7F7F7Fu) | (prmt(x, y, 0x7351) & 0x80808080u);
  r.word = r.far = 0;
  uint32_t d[4], sum = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const uint32_t value = (i % 2 ? y : x) >> (i / 2 * 16) & 0xFFFF, base = i % 2 ? base_y : base_x;
    d[i] = base + GLYD_KV_ABOVE - kv_exponent(value);
    uint32_t nibble = d[i];
    if (base == 0) {
      d[i] = nibble = GLYD_KV_COMMONEST;
    } else if ((value & 0x7FFF) == 0) {
      nibble = GLYD_KV_SPELLED_ZERO;
      d[i] = GLYD_KV_DISTANCES;
    } else if (kv_is_exception(value, base)) {
      d[i] = nibble = GLYD_KV_COMMONEST;
      r.kept &= ~(0xFFu << (8 * i));
    } else if (d[i] >= GLYD_KV_SPELLED_ZERO) {
      r.far |= 0x10000u | ((d[i] & 0x80000000u ? d[i] : d[i] - GLYD_KV_FAR) & 15) << (4 * i);
      nibble = GLYD_KV_SPELLED_FAR;
      d[i] = GLYD_KV_DISTANCES;
    }
    r.word |= nibble << (4 * i);
    sum += d[i] < GLYD_KV_DISTANCES ? (uint32_t)(kKvCostBits >> (5 * d[i])) & 31 : kKvTooFar;
  }
  r.code = GLYD_KV_QUADS;
  if (sum <= GLYD_KV_COST_LIMIT) {
    r.code = ranks.first[sum];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      r.code += ranks.of[i][sum][d[i]];
      sum -= (uint32_t)(kKvCostBits >> (5 * d[i])) & 31;
    }
  }
  return r;
}

template <int D> __global__ void __launch_bounds__(kv_pack_threads(D)) kv_pack_kernel(const KvPackArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(128) uint8_t shared[];
#endif
  KvPackShared &s = *(KvPackShared *)(shared + D / 16 * kKvTile);
  constexpr int threads = kv_pack_threads(D), warps = threads / 32, lists = kv_lists_of(D), groups = (int)GLYD_KV_GROUPS(D);
  static_assert(warps >= lists && warps >= D / 16, "a warp for each of what is done by warps");
  constexpr uint16_t choices[kKvChoices] = GLYD_KV_CHOICES;
  const int64_t page = blockIdx.x;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint16_t *in = p.in + page * kKvTokens * D;
  uint8_t *out = p.out + page * GLYD_KV_PLAIN_SIZE(D);
  for (uint32_t i = threadIdx.x; i < sizeof(KvRanks) / 2; i += threads) ((uint16_t *)&s.ranks)[i] = ((const uint16_t *)&kKvRanks)[i];
  /* to rows of channels: a lane takes two tokens of eight channels */
#pragma unroll 2
  for (uint32_t i = warp; i < D / 8 * 2; i += warps) {
    const uint32_t pair = i % 2 * 32 + lane;
    const uint4 x = __ldcs((const uint4 *)(in + 2 * pair * D + i / 2 * 8)), y = __ldcs((const uint4 *)(in + (2 * pair + 1) * D + i / 2 * 8));
    const uint32_t a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
    uint8_t *to = shared + i / 2 * 8 * kKvRow + pair * 4;
#pragma unroll
    for (int j = 0; j < 8; j++) *(uint32_t *)(to + j * kKvRow) = prmt(a[j / 2], b[j / 2], j % 2 ? 0x7632 : 0x5410);
  }
  __syncthreads();

  /* bases, and exceptions: a lane has 64 tokens of a channel */
  uint32_t base = 0, n_exceptions = 0, before_exceptions = 0;
  if (warp < D / 16) {
    const uint8_t *row = shared + warp * kKvTile + lane % 16 * kKvRow + lane / 16 * kKvTokens;
    base = kv_base(row);
    if (base != 0)
      for (int i = 0; i < 64; i++) n_exceptions += kv_is_exception(((const uint16_t *)row)[i], base);
    if (lane < 16) s.bases[warp * 16 + lane % 8 * 2 + lane / 8] = (uint8_t)base;
    before_exceptions = kv_before_in_order(n_exceptions);
    if (lane == 31) s.exceptions[warp] = before_exceptions + n_exceptions;
  }
  __syncthreads();

  /* quads: a lane has a piece of the four blocks of a group of a slab; codes and words of two quads in a register */
  uint32_t codes[8], words[8], n_words[kKvChoices] = {}, far = 0; /* far: a bit for each quad of two words */
  const uint32_t slab = warp / groups, group = warp % groups, piece = lane;
  const uint32_t blocks = warp < lists ? min((int)(D / 16 - 4 * group), 4) : 0;
  const uint32_t first_token = slab * kKvSlabTokens + piece % 4 * 4;
  uint8_t *slab_out = out + GLYD_KV_SLABS_AT(D) + slab * GLYD_KV_SLAB(D);
  auto quad_at = [&](uint32_t block, uint32_t step, uint32_t half) {
    const uint32_t c = (4 * group + block) * 16 + piece / 4;
    const uint8_t *at = shared + c * kKvRow + (first_token + 16 * step + 2 * half) * 2;
    const uint8_t *bases = s.bases + (4 * group + block) * 16 + piece / 4 * 2;
    return kv_encode_quad(s.ranks, *(const uint32_t *)at, *(const uint32_t *)(at + 8 * kKvRow), bases[0], bases[1]);
  };
#pragma unroll
  for (uint32_t block = 0; block < 4; block++) {
    if (block >= blocks) break;
    uint32_t kept[2][2]; /* [halves][steps] */
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
      const KvQuad quad = quad_at(block, k / 2, k % 2);
      const uint32_t i = 4 * block + k;
      kept[k % 2][k / 2] = quad.kept;
      codes[i / 2] = i % 2 ? codes[i / 2] | quad.code << 16 : quad.code;
      words[i / 2] = i % 2 ? words[i / 2] | quad.word << 16 : quad.word;
      far |= (quad.far >> 16) << i;
#pragma unroll
      for (int j = 0; j < kKvChoices; j++) n_words[j] += quad.code >= choices[j] ? 1 + (quad.far >> 16) : 0;
    }
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
      const uint32_t place = GLYD_KV_PLACE(piece, half);
      *(uint2 *)(slab_out + GLYD_KV_BLOCK * (4 * group + block) + 256 * half + 8 * place) = make_uint2(kept[half][0], kept[half][1]);
    }
  }
#pragma unroll
  for (int j = 0; j < kKvChoices; j += 2) { /* two in a register */
    uint32_t sum = n_words[j] | n_words[j + 1] << 16;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if (warp < lists && lane < 2) s.words[warp][j + lane] = sum >> (lane * 16) & 0xFFFF;
  }
  __syncthreads();

  /* how many codes there are: all threads find the same */
  int chosen = -1;
  uint32_t n_codes = 0;
#pragma unroll
  for (int j = kKvChoices - 1; j >= 0; j--) {
    bool fits = true;
    for (int i = 0; i < lists; i++) fits = fits && s.words[i][j] <= (1u << GLYD_KV_CODE_BITS) - choices[j];
    if (fits) chosen = j, n_codes = choices[j];
  }
  uint32_t all = 0, all_exceptions = 0, before = 0;
  for (int i = 0; i < lists && chosen >= 0; i++) {
    if (i == (int)warp) before = all;
    all += s.words[i][chosen];
  }
#pragma unroll
  for (int i = 0; i < D / 16; i++) {
    if (i == (int)warp) before_exceptions += all_exceptions;
    all_exceptions += s.exceptions[i];
  }
  const uint32_t plain = GLYD_KV_PLAIN_SIZE(D), used = GLYD_KV_LISTS_AT(D) + 2 * all + 4 * all_exceptions;
  const uint32_t packed = (used + GLYD_KV_ALIGN - 1) / GLYD_KV_ALIGN * GLYD_KV_ALIGN;
  const bool pays = chosen >= 0 && packed <= plain / 16 * 15;
  const uint32_t size = pays ? packed : plain;
  if (threadIdx.x == 0) {
    p.sizes[page] = size;
    *(uint4 *)out = make_uint4(GLYD_KV_MAGIC | GLYD_KV_VERSION << 16 | (pays ? GLYD_KV_PACKED : GLYD_KV_PLAIN) << 24,
                               (uint32_t)D | (uint32_t)kKvTokens << 16, size, pays ? all_exceptions | n_codes << 16 : 0);
  }
  if (!pays) {
    for (uint32_t i = threadIdx.x; i < kKvTokens * D / 8; i += threads)
      ((uint4 *)(out + GLYD_KV_HEADER))[i] = ((const uint4 *)in)[i];
    for (uint32_t i = threadIdx.x; i < GLYD_KV_HEADER - GLYD_KV_AT_ENDS; i += threads) out[GLYD_KV_AT_ENDS + i] = 0;
    for (uint32_t i = GLYD_KV_HEADER + 2 * kKvTokens * D + threadIdx.x; i < size; i += threads) out[i] = 0;
    return;
  }
  uint16_t *word_list = (uint16_t *)(out + GLYD_KV_LISTS_AT(D)), *ends = (uint16_t *)(out + GLYD_KV_AT_ENDS);
  uint16_t *places = word_list + all + before_exceptions;
  if (warp < lists && lane == 0) ends[warp] = (uint16_t)(before + s.words[warp][chosen]);
  for (uint32_t i = GLYD_KV_AT_ENDS + 2 * lists + threadIdx.x; i < GLYD_KV_BASES_AT(D); i += threads) out[i] = 0;
  for (uint32_t i = threadIdx.x; i < D; i += threads) out[GLYD_KV_BASES_AT(D) + i] = s.bases[i];
  for (uint32_t i = used + threadIdx.x; i < size; i += threads) out[i] = 0;
  if (n_exceptions != 0) { /* of this lane's tokens of a channel */
    const uint16_t *row = (const uint16_t *)(shared + warp * kKvTile + lane % 16 * kKvRow + lane / 16 * kKvTokens);
    for (uint32_t i = 0; i < 64; i++) {
      if (!kv_is_exception(row[i], base)) continue;
      places[0] = (uint16_t)((warp * 16 + lane % 16) * kKvTokens + lane / 16 * 64 + i);
      places[all_exceptions] = row[i];
      places++;
    }
  }
  /* lists, and codes to shared memory: [slabs][halves][pieces][2 D / 16] */
  uint32_t mine = 0;
#pragma unroll
  for (uint32_t i = 0; i < 16; i++)
    if (i / 4 < blocks) mine += (codes[i / 2] >> (i % 2 * 16) & 0xFFFF) >= n_codes ? 1 + (far >> i & 1) : 0;
  uint32_t number = before_in_warp(mine);
#pragma unroll
  for (uint32_t i = 0; i < 16; i++) {
    if (i / 4 >= blocks) break;
    uint32_t code = codes[i / 2] >> (i % 2 * 16) & 0xFFFF;
    if (code >= n_codes) {
      word_list[before + number] = (uint16_t)(words[i / 2] >> (i % 2 * 16));
      code = n_codes + number++;
      /* second words are rare: the quad is encoded again */
      if (far >> i & 1) word_list[before + number++] = (uint16_t)quad_at(i / 4, i % 4 / 2, i % 2).far;
    }
    codes[i / 2] = i % 2 ? (codes[i / 2] & 0xFFFF) | code << 16 : (codes[i / 2] & 0xFFFF0000u) | code;
  }
  __syncthreads(); /* nobody reads the values any more */
  uint16_t *together = (uint16_t *)shared;
#pragma unroll
  for (uint32_t block = 0; block < 4; block++) {
    if (block >= blocks) break;
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
      /* codes 4 block + half and 4 block + 2 + half: of the two steps */
      const uint32_t pair = prmt(codes[2 * block], codes[2 * block + 1], half ? 0x7632 : 0x5410);
      *(uint32_t *)(together + ((slab * 2 + half) * 32 + piece) * (D / 8) + 2 * (4 * group + block)) = pair;
    }
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < GLYD_KV_SLABS * 64; i += threads) {
    const uint32_t half = i / 32 % 2, l = i % 32;
    const uint16_t *from = together + i * (D / 8);
    uint8_t *to = out + GLYD_KV_SLABS_AT(D) + i / 64 * GLYD_KV_SLAB(D) + GLYD_KV_CODES_AT(D);
    uint32_t *words_to = (uint32_t *)to + half * GLYD_KV_WORDS(D) * 32 + GLYD_KV_PLACE(l, half);
    uint64_t held = 0;
    uint32_t n_held = 0, word = 0;
#pragma unroll
    for (uint32_t k = 0; k < D / 8; k++) {
      held |= (uint64_t)from[k] << n_held;
      n_held += GLYD_KV_CODE_BITS;
      if (n_held < 32) continue;
      words_to[32 * word++] = (uint32_t)held;
      held >>= 32;
      n_held -= 32;
    }
    constexpr uint32_t rest_bits = GLYD_KV_REST_BITS(D), rest = GLYD_KV_REST(D);
    uint8_t *rest_to = to + 256 * GLYD_KV_WORDS(D) + rest * l;
    if constexpr (rest_bits == 16) *(uint16_t *)(rest_to + 2 * half) = (uint16_t)held;
    if constexpr (rest_bits == 24)
      for (int k = 0; k < 3; k++) rest_to[3 * half + k] = (uint8_t)(held >> (8 * k));
    if constexpr (rest_bits == 4) { /* both halves in a byte */
      const uint16_t *other = from + 32 * (D / 8);
      uint64_t bits = 0;
      uint32_t at = 0;
#pragma unroll
      for (uint32_t k = 0; k < D / 8; k++) {
        bits |= (uint64_t)other[k] << at;
        at += GLYD_KV_CODE_BITS;
        if (at >= 32) bits >>= 32, at -= 32;
      }
      if (half == 0) rest_to[0] = (uint8_t)(held | bits << 4);
    }
  }
}

struct KvPlaceArgs {
  uint8_t *out;
  const int64_t *places; /* [pages] in out */
  const uint8_t *in;     /* [pages, nbytes], each page as long as it says */
  uint32_t nbytes;
};
constexpr int kKvPlaceThreads = 256;
__global__ void __launch_bounds__(kKvPlaceThreads) kv_place_kernel(const KvPlaceArgs p) {
  const uint8_t *from = p.in + (int64_t)blockIdx.x * p.nbytes;
  uint8_t *to = p.out + p.places[blockIdx.x];
  const uint32_t size = *(const uint32_t *)(from + GLYD_KV_AT_SIZE);
  for (uint32_t i = threadIdx.x; i < (size < p.nbytes ? size : p.nbytes) / 16; i += blockDim.x)
    ((uint4 *)to)[i] = ((const uint4 *)from)[i];
}

struct KvUnpackArgs {
  uint16_t *out;         /* [pages, 128, D] bf16 */
  const uint64_t *pages; /* [pages] addresses */
  int64_t n;             /* pages */
};

constexpr int kKvUnpackWarps = 8;
/* the table, lists, and what may be read past the last of them when a page is damaged */
template <int D> __host__ __device__ constexpr int kv_unpack_shared() {
  return (kKvQuadRows + 3) / 4 * 16 + kKvUnpackWarps * (int)kKvListRoom<D> * 4 + (int)kKvSpelled * 4;
}

/* A warp takes slabs: it has them as operands of keys, two channels of a token beside each other after a permutation. */
template <int D> __global__ void __launch_bounds__(kKvUnpackWarps * 32) kv_unpack_kernel(const KvUnpackArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(128) uint8_t shared[];
#endif
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t *list = (uint32_t *)(shared + (kKvQuadRows + 3) / 4 * 16) + warp * kKvListRoom<D>;
  kv_fill_quads<1>((uint32_t *)shared);
  __syncthreads();
  for (int64_t unit = (int64_t)blockIdx.x * kKvUnpackWarps + warp; unit < p.n * GLYD_KV_SLABS; unit += (int64_t)gridDim.x * kKvUnpackWarps) {
    const uint8_t *page = (const uint8_t *)p.pages[unit / GLYD_KV_SLABS];
    uint8_t *out = (uint8_t *)(p.out + unit * kKvSlabTokens * D);
    KvSlab<D> slab;
    slab.number = (int)(unit % GLYD_KV_SLABS);
    if (!kv_is_packed(page)) {
      const uint4 *from = (const uint4 *)(page + GLYD_KV_HEADER) + slab.number * (kKvSlabTokens * D / 8);
      for (uint32_t i = lane; i < kKvSlabTokens * D / 8; i += 32) ((uint4 *)out)[i] = __ldcs(from + i);
      continue;
    }
    slab.page = slab.header = page;
    slab.slot = (uint8_t *)page + GLYD_KV_SLABS_AT(D) + slab.number * GLYD_KV_SLAB(D);
    kv_each_block<D, KvForm<kKvUnpackWarps, 1, false>, false>(slab, shared, list, [&](int block, int step, const uint32_t (&a)[4]) {
      uint8_t *to = out + ((16 * step + lane / 4 * 2) * D + 16 * block + lane % 4 * 2) * 2;
#pragma unroll
      for (int i = 0; i < 2; i++) {
        *(uint32_t *)(to + i * 2 * D) = prmt(a[i], a[2 + i], 0x5410);
        *(uint32_t *)(to + i * 2 * D + 16) = prmt(a[i], a[2 + i], 0x7632);
      }
    });
  }
}

#endif
