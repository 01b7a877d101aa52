#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Builds the provider inside a copy of an rdma-core source tree, with that tree's build system and warnings as errors.
# It installs nothing and does not change SRC.
#   rdma-core.sh SRC OUT	libraries, libroan and programs in OUT/build/lib and OUT/build/bin, to be run from there
# Needs cmake, ninja and the development files of libnl. A second run rebuilds only changed files.
set -eu
here=$(dirname "$(realpath "$0")")
src=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")

# Adds the provider to the top CMakeLists.txt, before siw, and to the list of providers for static builds.
copy_tree() {
	rm -rf "$out/tree" "$out/build"
	cp -r "$src" "$out/tree"
	sed -i '/^add_subdirectory(providers\/siw)/i add_subdirectory(providers/roan)' "$out/tree/CMakeLists.txt"
	sed -i '/verbs_provider_rxe;/i extern const struct verbs_device_ops verbs_provider_roan;' "$out/tree/libibverbs/verbs.h"
	grep -q providers/roan "$out/tree/CMakeLists.txt" && grep -q verbs_provider_roan "$out/tree/libibverbs/verbs.h"
	echo "$src" > "$out/from"
}

[ "$(cat "$out/from" 2> /dev/null)" = "$src" ] || copy_tree
to=$out/tree/providers/roan
mkdir -p "$to/rdma"
cp -u "$here"/*.c "$here"/*.h "$here/CMakeLists.txt" "$to/"
cp -u "$here/../include/uapi/rdma/roan-abi.h" "$to/rdma/"
[ -e "$out/build/build.ninja" ] || cmake -GNinja -S "$out/tree" -B "$out/build" -DIN_PLACE=1 -DENABLE_WERROR=1 \
	-DNO_PYVERBS=1 -DNO_MAN_PAGES=1
pabi=$(sed -n 's/.*IBVERBS_PABI_VERSION "\([0-9]*\)".*/\1/p' "$out/tree/CMakeLists.txt")
# An installed perftest is linked with libefa and libmlx5: they must come from the same tree as libibverbs.
exec ninja -C "$out/build" ibverbs rdmacm "roan-rdmav$pabi" ibv_devices ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong \
	ibv_ud_pingpong ibv_srq_pingpong rping efa mlx5
