#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Places the driver into a copy of Debian's linux-source-6.12 (tools/kernel-tree) and checks it as a part of that kernel: built W=1 C=1
# as module for x86 allmodconfig and for UML, and built-in for UML; undefined and doubly defined symbols; checkpatch --strict;
# kernel-doc; the uapi header. Prints KTAP. Leaves the copy and the results of the builds in build/kernel-tree.
#   kernel_tree.sh [SRC]	SRC: a clean source tree, which is changed; default: a copy of hard links of lab uml's, which stays as it is
cd "$(dirname "$(readlink -f "$0")")/../.." || exit
. selftests/vm/lib.sh
out=$PWD/build/kernel-tree
mkdir -p "$out"
log=$out/log

fresh_tree() { # FROM: links, and without what a build made: mrproper only removes
	[ "$(cat "$out/from" 2> /dev/null)" != "$1" ] || return 0
	rm -rf "$out/linux" "$out/from"
	{ cp -al "$1" "$out/linux" 2> /dev/null || cp -a "$1" "$out/linux"; } && make -s -C "$out/linux" ARCH=um mrproper && echo "$1" > "$out/from"
}

again_changes_nothing() {
	local said
	said=$(tools/kernel-tree "$src") && [ -z "$said" ] || { echo "$said"; return 1; }
}

# The objects of an earlier build are deleted, as C=1 checks only what is compiled.
builds() { # NAME ARCH [MAKE-ARGUMENT...]
	rm -rf "$out/$1/drivers/infiniband/sw/roan"
	make -s -j"$(nproc)" -C "$src" O="$out/$1" ARCH="$2" W=1 C=1 "${@:3}" drivers/infiniband/sw/roan/ > "$log" 2>&1 || { tail -n 20 "$log"; return 1; }
	! grep -E '(sw/roan/|roan-abi).*(warning|error):' "$log"
}

configures() { # NAME ARCH VALUE COMMAND...: the configuration has the driver as VALUE afterwards
	mkdir -p "$out/$1"
	"${@:4}" && [ "$(grep -c "^CONFIG_INFINIBAND_ROAN\(_PEERMEM\)\?=$3$" "$out/$1/.config")" = 2 ]
}

allmod() { make -s -C "$src" O="$out/x86" ARCH=x86 allmodconfig > "$log" 2>&1; }

uml_config() { # NAME STATE OPTION...
	local o args=()
	for o in "${@:3}" INFINIBAND_ROAN INFINIBAND_ROAN_PEERMEM; do args+=("$2" "$o"); done
	[ "$2" = -m ] || args+=(-d MODULES)	# a struct module is incomplete then, and elsewhere THIS_MODULE is NULL
	cp "$uml/.config" "$out/$1/.config" && "$src/scripts/config" --file "$out/$1/.config" "${args[@]}" &&
		make -s -C "$src" O="$out/$1" ARCH=um olddefconfig > "$log" 2>&1
}

objects() { find "$out/$1/drivers/infiniband/sw/roan" -name '*.o' ! -name 'roan.o' ! -name 'roan_peermem.o' ! -name '*.mod.o'; }

# What the kernel exports to modules, and the driver itself. Lab uml's kernel lacks AUXILIARY_BUS, which Kconfig selects.
symbols_are_exported() {
	objects um | xargs nm --defined-only -g | awk 'NF == 3 { print $3 }' | sort -u > "$out/own"
	objects um | xargs nm -u | awk '$1 == "U" { print $2 }' | sort -u | grep -vE '^(__this_module|_*auxiliary_device_(init|add))$' |
		comm -23 - <(sort -u "$out/own" <(cut -f 2 "$uml/Module.symvers")) > "$log"
	[ -s "$out/own" ] && ! grep . "$log"
}

# Nor may a built-in driver define what the kernel, or a module that might be built in, has.
symbols_are_unique() {
	objects um-y | xargs nm --defined-only -g | awk 'NF == 3 { print $3 }' | sort > "$out/own"
	uniq -d "$out/own"
	sort -u <(cut -f 2 "$uml/Module.symvers") <(nm -g --defined-only "$uml/vmlinux" | awk '{ print $3 }') | comm -12 - "$out/own" > "$log"
	[ -s "$out/own" ] && [ -z "$(uniq -d "$out/own")" ] && ! grep . "$log"
}

style() {
	local files
	mapfile -t files < <(find "$src/drivers/infiniband/sw/roan" -name '*.[ch]' ! -name '*.mod.c'; echo "$src/include/uapi/rdma/roan-abi.h")
	selftests/lint/checkpatch.sh "$src/scripts/checkpatch.pl" --strict "" "${files[@]}" "$src/drivers/infiniband/sw/roan/"{Kconfig,Makefile}
}

kernel_doc() {
	find "$src/drivers/infiniband/sw/roan" "$src/include/uapi/rdma/roan-abi.h" -name '*.[ch]' -exec "$src/scripts/kernel-doc" -none -Wall {} + > "$log" 2>&1 &&
		! grep . "$log"
}

ktap_header
uml=$(selftests/vm/kernel.sh uml)/linux-source-6.12 || { ktap_fail "the source of Linux" "kernel.sh uml"; ktap_end; }
src=$(readlink -f "${1:-$out/linux}")
[ -n "${1:-}" ] || ktap_check "a source tree without the driver" fresh_tree "$uml"
ktap_check "the driver is placed in it" eval "tools/kernel-tree '$src' > '$log'"
ktap_check "a second run changes nothing" again_changes_nothing
ktap_check "checkpatch --strict" style
ktap_check "kernel-doc" kernel_doc
ktap_check "the uapi header compiles alone" cc -std=c90 -Wall -Wextra -Werror -fsyntax-only -x c "$src/include/uapi/rdma/roan-abi.h"
# Sparse counts spin_trylock() twice in a kernel without SMP.
ktap_check "a module for UML is configured" configures um um m uml_config um -m
ktap_check "W=1 C=1 as module for UML" builds um um CF=-Wno-context
ktap_check "the module's symbols are exported" symbols_are_exported
ktap_check "built-in for UML, without modules, is configured" configures um-y um y uml_config um-y -e INFINIBAND INFINIBAND_USER_ACCESS
ktap_check "W=1 C=1 built-in for UML" builds um-y um CF=-Wno-context
ktap_check "built-in, its symbols are its own" symbols_are_unique
ktap_check "a module for x86 allmodconfig is configured" configures x86 x86 m allmod
ktap_check "W=1 C=1 as module for x86 allmodconfig" builds x86 x86
ktap_end
