#!/bin/sh
# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
#
# Install the glyd command for this user, in an environment of its own:
#
#   scripts/install.sh [--models | --no-models]
#
# A machine with an NVIDIA GPU gets glyd with all that running models takes, and
# vLLM; any other the command for files and archives. --models, --no-models say
# which. Nothing outside of GLYD_HOME is written but one link in GLYD_BIN. A run
# that fails leaves the command that was there. The last lines are glyd doctor's.
#
#   GLYD_HOME     where it goes (default: ~/.local/share/glyd)
#   GLYD_BIN      where the link goes (default: ~/.local/bin)
#   GLYD_WHEELS   a folder of wheels of the glyd packages, instead of PyPI's
#   GLYD_PYTHON   version of Python (default: what is there, 3.10 or newer)
set -eu

say() { printf '%s\n' "$*" >&2; }
fail() { say "install.sh: $*"; exit 1; }

# uv, which makes the environment: this version, and no other bytes
uv_wheels() {
  cat << 'END'
uv==0.13.9 \
    --hash=sha256:d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19 \
    --hash=sha256:5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe \
    --hash=sha256:66c512266d633bef48384a1f53003f41f2a8e7b36fe6e7fbfd3e0fd52d96fa63 \
    --hash=sha256:c16ed11e013557536b3e60065f1b912f6407bd6518e041b961e23ef9e6b4fbf5
END
}

find_wheel() {
  set -- "$GLYD_WHEELS/$1"-*.whl
  [ $# -eq 1 ] && [ -f "$1" ] || fail "GLYD_WHEELS=$GLYD_WHEELS must hold one wheel like $1"
  printf '%s\n' "$1"
}

has_gpu() { command -v nvidia-smi > /dev/null && nvidia-smi -L 2> /dev/null | grep -q GPU; }

main() {
  models=auto
  for word in "$@"; do
    case $word in
      --models) models=yes ;;
      --no-models) models=no ;;
      *) fail "usage: install.sh [--models | --no-models]" ;;
    esac
  done
  [ -n "${HOME:-}" ] || fail "HOME is not set"
  case $(uname -s) in
    Linux | Darwin) ;;
    *) fail "this is $(uname -s): Linux, macOS and Windows' subsystem for Linux are supported" ;;
  esac
  with=
  if [ "$models" = auto ]; then
    if has_gpu; then models=yes with=vllm; else models=no; fi
  fi
  command -v python3 > /dev/null || fail "python3 is not on PATH: install Python 3.10 or newer"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || [ -n "${GLYD_PYTHON:-}" ] ||
    fail "python3 is $(python3 -V): glyd needs 3.10 or newer (GLYD_PYTHON=3.12 has uv fetch one)"
  python3 -m pip --version > /dev/null 2>&1 || fail "python3 has no pip: install it (on Debian: apt install python3-pip)"

  home=${GLYD_HOME:-$HOME/.local/share/glyd} bin=${GLYD_BIN:-$HOME/.local/bin}
  mkdir -p "$home" "$bin"
  home=$(cd "$home" && pwd)
  new=$home/new.$$
  trap 'rm -rf "$new"' EXIT
  trap 'exit 130' INT TERM HUP
  mkdir "$new"
  if [ ! -x "$home/uv-0.13.9/bin/uv" ]; then
    say "uv 0.13.9, checked by its sha256"
    uv_wheels > "$new/uv.txt"
    python3 -m pip install -q --no-deps --only-binary :all: --require-hashes --root-user-action ignore --target "$new/uv" -r "$new/uv.txt" ||
      fail "uv could not be installed"
    mv "$new/uv" "$home/uv-0.13.9"
  fi
  uv=$home/uv-0.13.9/bin/uv

  extras=store,models
  [ "$models" = no ] || extras=store,models,serve
  set -- "glyd-cli[$extras]"
  if [ -n "${GLYD_WHEELS:-}" ]; then
    # assigned first: a failure inside of an argument would not end this
    cli=$(find_wheel glyd_cli)
    codec=$(find_wheel glyd_codec)
    store=$(find_wheel glyd_store)
    set -- "$cli[$extras]" "$codec" "$store"
    if [ "$models" = yes ]; then
      gpu=$(find_wheel glyd_gpu)
      set -- "$@" "$gpu"
    fi
  fi
  if [ -n "$with" ]; then set -- "$@" "$with"; fi
  say "glyd with $extras${with:+ and $with}$([ "$models" = no ] || echo ': some gigabytes the first time')"
  "$uv" venv -q --no-config --relocatable ${GLYD_PYTHON:+--python "$GLYD_PYTHON"} "$new/env"
  "$uv" pip install -q --no-config --python "$new/env/bin/python" "$@" || fail "not installed; what was there before still is"
  "$new/env/bin/python" -m glyd_cli --version > /dev/null || fail "what was installed does not run; what was there before still is"

  # the old environment goes only when the new one stands
  rm -rf "$home/old"
  [ ! -e "$home/env" ] || mv "$home/env" "$home/old"
  mv "$new/env" "$home/env"
  rm -rf "$home/old"
  ln -sf "$home/env/bin/glyd" "$bin/glyd"
  case :$PATH: in
    *":$bin:"*) ;;
    *) say "add $bin to PATH: export PATH=\"$bin:\$PATH\"" ;;
  esac
  PATH=$bin:$PATH "$bin/glyd" doctor || say "glyd is installed; see what doctor says above"
}

main "$@"
