/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Constants of coded byte streams (record/spec.md).
 */
#ifndef GLYD_SEGMENT_STREAM_COMMON_H
#define GLYD_SEGMENT_STREAM_COMMON_H

enum { GLYD_STREAM_PLANES = 0, GLYD_STREAM_MASKED = 1, GLYD_STREAM_LZ = 2, GLYD_STREAM_POOLED = 3 };

#define GLYD_STREAM_PLANE 131072u /* bytes of content of a plane, but the last */
#define GLYD_STREAM_DEPTH 3       /* masked streams in masked streams */

#endif
