/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Constants of plain blocks (spec.md, "Plain blocks").
 */
#ifndef GLYD_BLOCK_PLAIN_COMMON_H
#define GLYD_BLOCK_PLAIN_COMMON_H

#define GLYD_PLAIN_FLAG_TABLE 0x04u  /* own match-length table */
#define GLYD_PLAIN_FLAG_REPEAT 0x08u /* repeat form of the offsets */
#define GLYD_PLAIN_FLAG_RESERVED 0xF0u

#define GLYD_PLAIN_LL_ESCAPE 7u /* in the token's 3 bits */
#define GLYD_PLAIN_ML_ESCAPE 15u
#define GLYD_PLAIN_ML_SHIFT 3
#define GLYD_PLAIN_F_SHIFT 7
#define GLYD_PLAIN_LONG 255u /* a length that continues in the long lengths */

#define GLYD_PLAIN_SEQUENCES_MAX (1u << 16)
#define GLYD_PLAIN_OFFSET_MAX ((1u << 24) - 1)        /* without flag repeat */
#define GLYD_PLAIN_REPEAT_OFFSET_MAX ((1u << 23) - 1) /* with it */

#endif
