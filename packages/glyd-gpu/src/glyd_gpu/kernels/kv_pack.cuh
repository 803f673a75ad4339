/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Pages packed and unpacked, a block a page, a warp a strip of 16 channels.
 * Pages are packed to places of the largest size, as their sizes are not known
 * before; then, when the caller has placed them, they are copied. Their bytes
 * are the codec's.
 */
#ifndef GLYD_GPU_KV_PACK_CUH
#define GLYD_GPU_KV_PACK_CUH

#include "kv_page.cuh"

struct KvPackArgs {
  const uint16_t *in; /* [pages, 128, D] bf16 */
  int64_t *sizes;     /* [pages] */
  uint8_t *out;       /* [pages, GLYD_KV_PLAIN_SIZE(D)] */
};

__host__ __device__ constexpr int kv_pack_threads(int channels) { return channels * 2; }

constexpr uint8_t kKvCosts[GLYD_KV_DISTANCES] = GLYD_KV_COSTS;
/* By distances before, what the others may cost, and a distance: codes of quads whose next distance is less. */
struct KvRanks {
  uint16_t of[4][GLYD_KV_COST_LIMIT + 1][GLYD_KV_DISTANCES];
};
constexpr KvRanks kv_make_ranks() {
  KvRanks r = {};
  uint16_t ways[GLYD_KV_COST_LIMIT + 1] = {};
  for (int room = 0; room <= GLYD_KV_COST_LIMIT; room++) ways[room] = 1;
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

struct KvPackShared {
  KvRanks ranks;
  uint32_t corrections[GLYD_KV_CHANNELS_MAX / 16], exceptions[GLYD_KV_CHANNELS_MAX / 16]; /* of each strip */
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

/* Code of a quad, and a bit for each distance that had to become the commonest. */
__device__ __forceinline__ uint32_t kv_code(const KvRanks &ranks, const uint32_t (&exponents)[4], uint32_t base,
                                            uint32_t &replaced) {
  uint32_t d[4], cost[4], sum = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    d[i] = base + GLYD_KV_ABOVE - exponents[i];
    const bool coded = d[i] < GLYD_KV_DISTANCES;
    cost[i] = coded ? (uint32_t)(kKvCostBits >> (coded ? 5 * d[i] : 0)) & 31 : kKvTooFar;
    sum += cost[i];
  }
  replaced = 0;
  while (sum > GLYD_KV_COST_LIMIT) {
    const uint32_t most = max(max(cost[0], cost[1]), max(cost[2], cost[3]));
    bool found = false;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (found || cost[i] != most) continue;
      found = true;
      cost[i] = 0;
      d[i] = GLYD_KV_COMMONEST;
      replaced |= 1u << i;
    }
    sum -= most;
  }
  uint32_t code = 0, room = GLYD_KV_COST_LIMIT;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    code += ranks.of[i][room][d[i]];
    room -= cost[i];
  }
  return code;
}

/* Exclusive sum over the lanes in the order of what they hold: channel by channel, its first tokens before its last. */
__device__ __forceinline__ uint32_t kv_before_in_order(uint32_t n) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t sum = before_in_warp(__shfl_sync(~0u, n, (int)(lane % 2 * 16 + lane / 2)));
  return __shfl_sync(~0u, sum, (int)(lane % 16 * 2 + lane / 16));
}

/* What a lane leaves in its own row, where it has read: a note for each exponent that its code has not. The token among
 * the lane's, then five bits of a correction, or the high bit for an exception. */
constexpr uint32_t kKvNoteException = 0x8000;

/* A lane's tokens of its channel into the strip; gives numbers of corrections and exceptions. */
__device__ __forceinline__ void kv_encode_row(uint8_t *strip, uint8_t *row, const KvRanks &ranks, uint32_t base,
                                              uint32_t &n_corrections, uint32_t &n_exceptions) {
  const uint32_t lane = threadIdx.x % 32;
  uint16_t *notes = (uint16_t *)row;
  uint32_t words[6] = {0, 0, 0, 0, 0, 0}, n = 0;
  n_exceptions = 0;
#pragma unroll
  for (int part = 0; part < 4; part++) {
    uint32_t kept[4];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint4 x = *(const uint4 *)(row + 32 * part + 16 * half);
      const uint32_t v[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (int k = 0; k < 2; k++) {
        const int j = 4 * part + 2 * half + k; /* the quad */
        const uint32_t a = v[2 * k], b = v[2 * k + 1];
        const uint32_t e[4] = {kv_exponent(a), kv_exponent(a >> 16), kv_exponent(b), kv_exponent(b >> 16)};
        uint32_t code = 0, replaced = 0;
        if (base != 0) code = kv_code(ranks, e, base, replaced);
        uint32_t s = (prmt(a, b, 0x6420) & 0x7F7F7F7Fu) | (prmt(a, b, 0x7531) & 0x80808080u);
        if (replaced != 0) {
#pragma unroll
          for (int i = 0; i < 4; i++) {
            if ((replaced >> i & 1) == 0) continue;
            const uint32_t below = base + GLYD_KV_CORRECTED_ABOVE - e[i], token = 4 * j + i;
            const bool corrected = e[i] == 0 || below < GLYD_KV_CORRECTED_ZERO;
            const uint32_t to = e[i] == 0 ? GLYD_KV_CORRECTED_ZERO : below;
            notes[n++] = (uint16_t)(corrected ? token | to << 6 : token | kKvNoteException);
            if (!corrected) s &= ~(0xFFu << (8 * i)), n_exceptions++;
          }
        }
        kept[2 * half + k] = s;
        const uint32_t bit = GLYD_KV_CODE_BITS * j;
        words[bit / 32] |= code << bit % 32;
        if (bit % 32 + GLYD_KV_CODE_BITS > 32) words[bit / 32 + (bit / 32 < 5)] |= code >> (32 - bit % 32) % 32;
      }
    }
    *(uint4 *)(strip + part * 512 + lane * 16) = make_uint4(kept[0], kept[1], kept[2], kept[3]);
  }
  *(uint4 *)(strip + GLYD_KV_CODES_AT + lane * 16) = make_uint4(words[0], words[1], words[2], words[3]);
  *(uint32_t *)(strip + GLYD_KV_CODES_AT + 512 + lane * 4) = words[4];
  *(uint16_t *)(strip + GLYD_KV_CODES_AT + 640 + lane * 2) = (uint16_t)words[5];
  n_corrections = n - n_exceptions;
}

template <int D> __global__ void __launch_bounds__(kv_pack_threads(D)) kv_pack_kernel(const KvPackArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(128) uint8_t shared[];
#endif
  KvPackShared &s = *(KvPackShared *)(shared + D / 16 * kKvTile);
  constexpr int strips = D / 16, threads = kv_pack_threads(D);
  const int64_t page = blockIdx.x;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint16_t *in = p.in + page * kKvTokens * D;
  uint8_t *out = p.out + page * GLYD_KV_PLAIN_SIZE(D);
  for (uint32_t i = threadIdx.x; i < sizeof(KvRanks) / 2; i += threads)
    (&s.ranks.of[0][0][0])[i] = (&kKvRanks.of[0][0][0])[i];
  /* to rows of channels: a lane takes two tokens of eight channels */
#pragma unroll 2
  for (uint32_t i = warp; i < D / 8 * 2; i += strips) {
    const uint32_t pair = i % 2 * 32 + lane;
    const uint4 x = __ldcs((const uint4 *)(in + 2 * pair * D + i / 2 * 8)), y = __ldcs((const uint4 *)(in + (2 * pair + 1) * D + i / 2 * 8));
    const uint32_t a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
    uint8_t *to = shared + i / 2 * 8 * kKvRow + pair * 4;
#pragma unroll
    for (int j = 0; j < 8; j++) *(uint32_t *)(to + j * kKvRow) = prmt(a[j / 2], b[j / 2], j % 2 ? 0x7632 : 0x5410);
  }
  __syncthreads();
  uint8_t *row = shared + warp * kKvTile + lane % 16 * kKvRow + lane / 16 * kKvTokens;
  const uint32_t base = kv_base(row);
  uint32_t n_corrections, n_exceptions;
  kv_encode_row(out + GLYD_KV_STRIPS_AT(D) + warp * GLYD_KV_STRIP, row, s.ranks, base, n_corrections, n_exceptions);
  if (lane < 16) out[GLYD_KV_BASES_AT(D) + warp * 16 + lane] = (uint8_t)base;
  uint32_t before = kv_before_in_order(n_corrections), before_exceptions = kv_before_in_order(n_exceptions);
  if (lane == 31) s.corrections[warp] = before + n_corrections, s.exceptions[warp] = before_exceptions + n_exceptions;
  __syncthreads();
  uint32_t all = 0, all_exceptions = 0, end = 0;
#pragma unroll
  for (int i = 0; i < strips; i++) {
    if (i == (int)warp) before += all, before_exceptions += all_exceptions, end = all + s.corrections[i];
    all += s.corrections[i], all_exceptions += s.exceptions[i];
  }
  const uint32_t plain = GLYD_KV_PLAIN_SIZE(D), used = GLYD_KV_CORRECTIONS_AT(D) + 2 * all + 4 * all_exceptions;
  const uint32_t packed = (used + GLYD_KV_ALIGN - 1) / GLYD_KV_ALIGN * GLYD_KV_ALIGN;
  const bool pays = packed <= plain / 16 * 15;
  const uint32_t size = pays ? packed : plain;
  if (threadIdx.x == 0) {
    p.sizes[page] = size;
    *(uint4 *)out = make_uint4(GLYD_KV_MAGIC | GLYD_KV_VERSION << 16 | (pays ? GLYD_KV_PACKED : GLYD_KV_PLAIN) << 24,
                               (uint32_t)D | (uint32_t)kKvTokens << 16, size, pays ? all_exceptions : 0);
  }
  if (!pays) {
    for (uint32_t i = threadIdx.x; i < kKvTokens * D / 8; i += threads)
      ((uint4 *)(out + GLYD_KV_HEADER))[i] = ((const uint4 *)in)[i];
    for (uint32_t i = threadIdx.x; i < GLYD_KV_HEADER - GLYD_KV_AT_ENDS; i += threads) out[GLYD_KV_AT_ENDS + i] = 0;
    for (uint32_t i = GLYD_KV_HEADER + 2 * kKvTokens * D + threadIdx.x; i < size; i += threads) out[i] = 0;
    return;
  }
  if (lane == 0) *(uint16_t *)(out + GLYD_KV_AT_ENDS + 2 * warp) = (uint16_t)end;
  for (uint32_t i = GLYD_KV_AT_ENDS + 2 * strips + threadIdx.x; i < GLYD_KV_BASES_AT(D); i += threads) out[i] = 0;
  for (uint32_t i = used + threadIdx.x; i < size; i += threads) out[i] = 0;
  uint16_t *corrections = (uint16_t *)(out + GLYD_KV_CORRECTIONS_AT(D)) + before;
  uint16_t *places = (uint16_t *)(out + GLYD_KV_CORRECTIONS_AT(D)) + all + before_exceptions;
  const uint16_t *notes = (const uint16_t *)row;
  const uint32_t first = lane % 16 * kKvTokens + lane / 16 * 64; /* place of the lane's first token in the strip */
  for (uint32_t i = 0; i < n_corrections + n_exceptions; i++) {
    const uint32_t note = notes[i], place = first + (note & 63);
    if (note & kKvNoteException) {
      places[0] = (uint16_t)(warp << GLYD_KV_PLACE_BITS | place);
      places[all_exceptions] = in[place % kKvTokens * D + warp * 16 + place / kKvTokens];
      places++;
    } else {
      *corrections++ = (uint16_t)(place | note >> 6 << GLYD_KV_PLACE_BITS);
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
};

template <int D> __host__ __device__ constexpr int kv_unpack_shared() { return D / 16 * kKvTile + kKvQuadRows * 4; }

template <int D> __global__ void __launch_bounds__(kv_pack_threads(D)) kv_unpack_kernel(const KvUnpackArgs p) {
#ifdef GLYD_EMULATION
  uint8_t *shared = emulated_shared();
#else
  extern __shared__ __align__(128) uint8_t shared[];
#endif
  const uint8_t *page = (const uint8_t *)p.pages[blockIdx.x];
  uint8_t *out = (uint8_t *)(p.out + (int64_t)blockIdx.x * kKvTokens * D);
  constexpr int strips = D / 16, threads = kv_pack_threads(D);
  if (!kv_is_packed(page)) {
    for (uint32_t i = threadIdx.x; i < kKvTokens * D / 8; i += threads)
      ((uint4 *)out)[i] = __ldcs((const uint4 *)(page + GLYD_KV_HEADER) + i);
    return;
  }
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint8_t *tile = shared + warp * kKvTile;
  uint32_t *table = (uint32_t *)(shared + strips * kKvTile);
  kv_fill_quads<1>(table);
  __syncthreads();
  const KvExtras extras = kv_extras<D>(page);
  const uint32_t base = page[GLYD_KV_BASES_AT(D) + warp * 16 + lane % 16];
  kv_decode_strip<1>(tile, kv_load_strip(page + GLYD_KV_STRIPS_AT(D) + warp * GLYD_KV_STRIP), table, base);
  const uint32_t end = kv_corrections_end<D>(page, extras.most, (int)warp);
  const uint32_t first = warp ? kv_corrections_end<D>(page, extras.most, (int)warp - 1) : 0;
  __syncwarp();
  kv_correct(tile, (const uint16_t *)(page + GLYD_KV_CORRECTIONS_AT(D)) + first, 0, end > first ? end - first : 0, base);
  if (extras.n_exceptions != 0) kv_put_exceptions(tile, page, extras, warp);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < kKvTokens * D / 2; i += threads) {
    const uint32_t token = i / (D / 2), c = i % (D / 2) * 2;
    const uint8_t *at = shared + c / 16 * kKvTile + c % 16 * kKvRow + token * 2;
    ((uint32_t *)out)[i] = *(const uint16_t *)at | (uint32_t)*(const uint16_t *)(at + kKvRow) << 16;
  }
}

#endif
