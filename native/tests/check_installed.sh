#!/bin/sh
# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
#
# check_installed.sh CMAKE BUILD SOURCE CC: install to an empty folder, build
# the example against it through pkg-config, shared and static, and run both.
set -eu
command -v pkg-config >/dev/null || { echo "skipped: no pkg-config"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" --install "$2" --prefix "$work/usr" >/dev/null
PKG_CONFIG_PATH=$(dirname "$(find "$work/usr" -name glyd.pc)")
export PKG_CONFIG_PATH
prefix="--define-variable=prefix=$work/usr"
libdir=$(pkg-config $prefix --variable=libdir glyd)
# word splitting of the flags is wanted
"$4" -o "$work/shared" "$3/tests/example_roundtrip.c" $(pkg-config $prefix --cflags --libs glyd)
LD_LIBRARY_PATH=$libdir "$work/shared"
rm "$libdir"/libglyd.so*
"$4" -o "$work/static" "$3/tests/example_roundtrip.c" $(pkg-config $prefix --static --cflags --libs glyd)
"$work/static"
echo "2 passed, 0 failed"
