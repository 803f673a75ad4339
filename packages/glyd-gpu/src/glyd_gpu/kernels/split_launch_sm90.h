/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * How a product with split roles is set up.
 */
#ifndef GLYD_SPLIT_LAUNCH_SM90_H
#define GLYD_SPLIT_LAUNCH_SM90_H

#include "ring_launch_sm90.h"

namespace glyd {

struct SplitArgs;

struct SplitConfig {
  int tokens;              /* of a tile: 64 or 128 */
  int consumers, decoders; /* warpgroups: 64-row blocks of a tile, and those that decode */
  int cluster;             /* blocks along the columns; 0: stream-K */
  int workers;             /* stream-K: blocks */
  int dependent;           /* as in RingConfig */
};

constexpr int kSplitBars = 864 + 32, kSplitPatches = 60, kSplitPatchBytes = 16 + 4 * kSplitPatches,
              kSplitExponentMax = 127 + 24; /* of an exception among decoded weights: sums must not overflow by it */

constexpr int kSplitXSlots = 4; /* at most 8: so far may those that multiply be apart */

struct SplitRoom {
  int packed_slots, decoded_slots, x_slots, packed_slot_bytes, escape_slot;
  int shared; /* bytes in all; negative: this does not fit */
};

inline SplitRoom split_room(const SplitConfig &c, int escape_max, int shared_max) {
  SplitRoom r = {};
  const int x_slot = c.tokens * 128;
  r.escape_slot = escape_max + 16;
  r.packed_slot_bytes = (GLYD_WEIGHTS_TIERED_TILE + r.escape_slot + kSplitPatchBytes + 127) & ~127;
  const int fixed = 1024 + kRingTables + kSplitBars + c.consumers * 4 * kRingOut;
  r.decoded_slots = r.packed_slots = c.decoders + 1;
  int left = shared_max - fixed - r.decoded_slots * 16384 - r.packed_slots * r.packed_slot_bytes;
  while (r.x_slots < kSplitXSlots && left >= x_slot) r.x_slots++, left -= x_slot;
  while (left >= r.packed_slot_bytes && r.packed_slots < c.decoders * 4 - 2 && r.packed_slots < 16)
    r.packed_slots++, left -= r.packed_slot_bytes;
  const bool partials_fit =
      c.cluster < 2 || c.consumers * 64 * c.tokens * 4 <= r.decoded_slots * 16384 + r.x_slots * x_slot;
  if (r.x_slots < 2 || !partials_fit)
    r.shared = -1;
  else
    r.shared = fixed + r.decoded_slots * 16384 + r.packed_slots * r.packed_slot_bytes + r.x_slots * x_slot;
  return r;
}

__attribute__((weak)) int split_launch_tiered(const CUtensorMap &mx, const SplitArgs &p, const SplitConfig &c,
                                              const SplitRoom &room, cudaStream_t stream);

} // namespace glyd

#endif
