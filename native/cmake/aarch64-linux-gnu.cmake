# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
#
# Cross-build for aarch64 Linux; ctest runs the (static) programs under qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
