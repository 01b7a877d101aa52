#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Kernels for the labs, in a cache: fetches or builds one if it is missing, and prints its folder. Does not boot it.
#   kernel.sh uml | uml-debug	Debian's linux-source-6.12 built as User-Mode Linux: FOLDER/linux-source-6.12, FOLDER/mods
#   kernel.sh 6.12 | 6.1 | rt	Debian's own kernel (rt: 6.1 with PREEMPT_RT): FOLDER/boot/vmlinuz-*, FOLDER/lib/modules/*
#   kernel.sh 6.12-cloud | 6.1-cloud	its kernel for virtual machines: the same folders (tools/vm/kernel.sh)
#   kernel.sh smp-debug | smp-kcsan	the same source built for x86-64 with several CPUs: FOLDER/boot/vmlinuz-*,
#				FOLDER/lib/modules/*, FOLDER/linux-source-6.12
#   kernel.sh arm64-64k		the same source built for arm64 with pages of 64 KiB: the same folders
#   kernel.sh memory-model	linux-source-6.12's description of the kernel's memory model: FOLDER/linux-source-6.12/tools/memory-model
#   kernel.sh new		the newest kernel in debian.sh's root of trixie: the same folders
# The folder's name has the package version and, if it was built, a hash of configuration and build steps. Its file `ready`
# exists once it is complete. Concurrent callers are serialised by a lock file. ROAN_CACHE: the cache (default
# ~/.cache/roan).
set -eu
HERE=$(dirname "$(readlink -f "$0")")
CACHE=${ROAN_CACHE:-$HOME/.cache/roan}
what=${1:-}

candidate() { # PACKAGE: prints the newest version in apt's lists
	apt-cache policy "$1" | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}

unpack() { # PACKAGE INTO
	ROAN_CACHE=$CACHE "$HERE/../../tools/vm/kernel.sh" unpack "$2" "$1"
}

# UML's configuration has no PCLMULQDQ CRC32. Build it as an external module, which runs there.
build_pclmul() { # SOURCE MODULES
	local src=$1 dir=$1/../pcl
	rm -rf "$dir" && mkdir "$dir"
	cp "$src"/arch/x86/crypto/crc32-pclmul_{asm.S,glue.c} "$dir"
	sed -i '/#include <asm\/simd.h>/a #define x86_match_cpu(t) 1\n#undef crypto_simd_usable\n#define crypto_simd_usable() 1' \
		"$dir/crc32-pclmul_glue.c"
	printf 'obj-m := crc32-pclmul.o\ncrc32-pclmul-y := crc32-pclmul_asm.o crc32-pclmul_glue.o\n' > "$dir/Kbuild"
	make -s -C "$src" ARCH=um M="$(readlink -f "$dir")" modules
	make -s -C "$src" ARCH=um M="$(readlink -f "$dir")" modules_install INSTALL_MOD_PATH="$2"
}

build_uml() { # FOLDER CONFIG...
	local dir=$1 src=$1/linux-source-6.12 opts
	local up='sp = bp > (long) sp \&\& !((bp ^ (long) sp) \& -THREAD_SIZE) ? (void *) bp + sizeof(bp) : sp + 1;'
	shift
	opts=$(cat "$@" | grep -v '^#' | tr '\n' ' ')
	unpack linux-source-6.12 "$dir/deb"
	# A third of the source is graphics drivers: do not unpack it.
	tar -C "$dir" --exclude='*/drivers/gpu/*.[ch]' -xf "$dir/deb/usr/src/linux-source-6.12.tar.xz"
	rm -rf "$dir/deb"
	# KASAN and kmemleak save a stack trace for each allocation. UML's unwinder looks up every word on the stack in
	# the symbol tables of kernel and modules, then drops those without a frame pointer. The patch follows the frame
	# pointers instead.
	sed -i -e 's/if (__kernel_text_address(addr))/if ((unsigned long) sp == bp + sizeof(long) \&\& __kernel_text_address(addr))/' \
		-e "s/^\t\tsp++;\$/\t\t$up/" "$src/arch/um/kernel/stacktrace.c"
	# Each guest process starts as a fork of the UML kernel, and fork copies the page tables of private mappings.
	# KASAN's shadow, an eighth of all memory, dominated the time to start a program. Map it shared.
	sed -i '/^void kasan_map_memory/,/^}/s/MAP_PRIVATE/MAP_SHARED/' "$src/arch/um/os-Linux/mem.c"
	# UML keeps 2696 bytes of a process's FPU state. A CPU with AMX has 11008, and its kernel takes all or none: the rest
	# is as at the start of a process, which bits 0 to 9 (without 8) of the header do not name.
	sed -i -e '/^int restore_fp_registers/i static char xsave_area[1 << 14];\n' \
		-e '/^int restore_fp_registers/,/^}/{
			s/iov.iov_base = fp_regs;/iov.iov_base = memcpy(xsave_area, fp_regs, FP_SIZE * sizeof(long));\n\t\t*(unsigned long *)(xsave_area + 512) \&= 0x2ff;/
			s/iov.iov_len = .*;/iov.iov_len = sizeof(xsave_area);/
		}' -e 's/^#include <errno.h>/&\n#include <string.h>/' "$src/arch/x86/um/os-Linux/registers.c"
	make -s -C "$src" ARCH=um defconfig
	# shellcheck disable=SC2086 # a list of options
	(cd "$src" && ./scripts/config $opts)
	make -s -C "$src" ARCH=um olddefconfig
	make -s -C "$src" ARCH=um -j"$(nproc)" KCFLAGS=-Wno-frame-larger-than
	make -s -C "$src" ARCH=um modules_install INSTALL_MOD_PATH="$dir/mods"
	build_pclmul "$src" "$dir/mods"
}

# To save time the sanitizers are compiled into external modules and the code around them only. Lockdep, debug objects and
# KASAN's quarantine cover the whole kernel.
build_small() { # "MAKE VARIABLES" IMAGE FOLDER CONFIG...
	local image=$2 dir=$3 src=$3/linux-source-6.12 opts missing release words kernel=(make -s -C "$3/linux-source-6.12")
	local checked='drivers/infiniband/% drivers/net/% drivers/dma-buf/% net/% lib/% kernel/time/%'
	read -ra words <<< "$1"
	kernel+=("${words[@]}")
	shift 3
	opts=$(cat "$@" | grep -v '^#' | tr '\n' ' ')
	unpack linux-source-6.12 "$dir/deb"
	tar -C "$dir" --exclude='*/drivers/gpu/*.[ch]' -xf "$dir/deb/usr/src/linux-source-6.12.tar.xz"
	rm -rf "$dir/deb"
	# shellcheck disable=SC2016 # for make
	sed -i 's/_SANITIZE)$(is-kernel-object)/_SANITIZE)$(is-checked)/' "$src/scripts/Makefile.lib"
	echo "is-checked = \$(if \$(KBUILD_EXTMOD)\$(filter $checked,\$(obj)/),\$(is-kernel-object))" >> "$src/scripts/Makefile.lib"
	"${kernel[@]}" tinyconfig
	# shellcheck disable=SC2086 # a list of options
	(cd "$src" && ./scripts/config $opts)
	"${kernel[@]}" olddefconfig
	missing=$(echo "$opts" | grep -oE -- '-e [A-Z0-9_]+' | sed 's/-e \(.*\)/CONFIG_\1=y/' | grep -vxFf "$src/.config" | paste -sd' ')
	[ -z "$missing" ] || { echo "kernel.sh: Kconfig did not take $missing"; return 1; }
	"${kernel[@]}" -j"$(nproc)"
	"${kernel[@]}" modules_install INSTALL_MOD_PATH="$dir"
	release=$(cat "$src/include/config/kernel.release")
	mkdir "$dir/boot"
	mv "$src/arch/$image" "$dir/boot/vmlinuz-$release"
}
build_smp() { build_small ARCH=x86_64 x86/boot/bzImage "$@"; }
build_arm64() { build_small "ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-" arm64/boot/Image "$@"; }

build_memory() { # FOLDER
	local model=linux-source-6.12/tools/memory-model
	unpack linux-source-6.12 "$1/deb"
	tar -C "$1" -xf "$1/deb/usr/src/linux-source-6.12.tar.xz" "$model"
	rm -rf "$1/deb"
}

# Installs the headers roan is built against. They are on the machine, not in the cache: a new machine may have an old
# cache.
install_headers() { # RELEASE
	[ "$(dpkg-query -Wf '${db:Status-Status}' "linux-headers-$1" 2> /dev/null)" = installed ] ||
		DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends -o DPkg::Lock::Timeout=600 \
			"linux-headers-$1" >&2
}

mkdir -p "$CACHE"
case $what in
uml | uml-debug)
	configs=("$HERE/config/uml.config")
	[ "$what" = uml ] || configs+=("$HERE/config/uml-debug.config")
	version=$(candidate linux-source-6.12)
	hash=$({ cat "${configs[@]}" | grep -v '^#'; declare -f build_uml build_pclmul; } | sha256sum | cut -c1-12)
	dir=$CACHE/$what-$version-$hash ;;
smp-debug | smp-kcsan | arm64-64k)
	configs=("$HERE"/config/{smp,smp-x86,"$what"}.config)
	[ "$what" != arm64-64k ] || configs=("$HERE"/config/{smp,"$what"}.config)
	version=$(candidate linux-source-6.12)
	hash=$({ cat "${configs[@]}" | grep -v '^#'; declare -f build_small "build_${what%%-*}"; } | sha256sum | cut -c1-12)
	dir=$CACHE/$what-$version-$hash ;;
memory-model)
	# A kernel that was built from this source has it.
	for dir in "$CACHE"/{uml,smp}*/ready; do
		[ ! -e "${dir%/*}/linux-source-6.12/tools/memory-model" ] || { echo "${dir%/*}"; exit; }
	done
	configs=()
	version=$(candidate linux-source-6.12)
	dir=$CACHE/$what-$version ;;
6.12 | 6.1 | rt | *-cloud)
	export ROAN_CACHE=$CACHE
	release=$("$HERE/../../tools/vm/kernel.sh" release "$what")
	dir=$("$HERE/../../tools/vm/kernel.sh" image "$release")
	# The headers of cloud kernels stay in the cache, so that make lint does not build for them.
	case $what in *-cloud) ;; *) install_headers "$release" ;; esac
	echo "$dir"
	exit ;;
new)
	dir=$("$HERE/debian.sh" root trixie)
	echo "$dir/kernel"
	exit ;;
*)
	sed -n 3,15p "$0"
	exit 2 ;;
esac
[ -n "$version" ] || { echo "kernel.sh: apt knows no kernel for $what" >&2; exit 1; }
# Take the lock only to build: a caller that finds the kernel ready does not wait for a build of another version.
[ -e "$dir/ready" ] || { exec 9> "$CACHE/$what.lock"; flock 9; }
if [ ! -e "$dir/ready" ]; then
	echo "kernel.sh: making $dir" >&2
	rm -rf "$dir" && mkdir -p "$dir"
	"build_${what%%-*}" "$dir" "${configs[@]}" >&2
	touch "$dir/ready"
	echo "# built $dir in $SECONDS s" >&2
fi
echo "$dir"
