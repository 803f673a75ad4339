#!/bin/sh
# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
#
# check_symbols.sh LIBRARY HEADERS: the shared library exports exactly the
# functions that the public headers declare.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$1" | awk '$2 ~ /^[A-Z]$/ {print $3}' | grep -v '^__\(asan\|ubsan\|odr_asan\)' | sort >"$work/exported"
sed -n 's/^GLYD_API .*[ *]\(glyd_[a-z0-9_]*\)(.*/\1/p' "$2"/*.h | sort >"$work/declared"
if ! diff "$work/declared" "$work/exported"; then
  echo "declared (<) and exported (>) functions differ"
  exit 1
fi
count=$(wc -l <"$work/exported")
test "$count" -gt 20
echo "$count passed, 0 failed"
