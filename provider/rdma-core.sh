#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The provider's other build: puts it into a copy of an rdma-core source tree, as its maintainers would, and has that
# tree's own build make both, with warnings as errors. It installs nothing and leaves SRC as it is.
#   rdma-core.sh SRC OUT	OUT/build/bin and OUT/build/lib: libraries, libroan, programs, to be run from there
# Wants cmake, ninja and libnl's development files. A second run does only what has changed since.
set -eu
here=$(dirname "$(realpath "$0")")
src=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")

# The one line in the top CMakeLists.txt puts it beside the other software devices; static builds list all providers.
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
# perftest, wherever it was built, links libefa and libmlx5, which must come from the tree then.
exec ninja -C "$out/build" ibverbs rdmacm "roan-rdmav$pabi" ibv_devices ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong \
	ibv_ud_pingpong ibv_srq_pingpong rping efa mlx5
