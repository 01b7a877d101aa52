#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds roan.ko for another architecture against Debian's headers for it, with W=1 -Werror and sparse's endianness checks, then
# runs the core's suites and simulator there under qemu-user. Prints KTAP. Needs the packages gcc-TRIPLET, libc6-dev-ARCH-cross
# and qemu-user; an architecture that lacks its compiler is skipped.
#   cross.sh [ARCH...]		ARCH: s390x (big-endian), arm64, cloud-arm64 (the module only); default: all
cd "$(dirname "$(readlink -f "$0")")/../.." || exit
. selftests/vm/lib.sh
CACHE=${ROAN_CACHE:-$HOME/.cache/roan}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# apt with package lists of that architecture, in the cache.
apt_of() { # ARCH COMMAND...
	local dir=$CACHE/apt-$1 arch=$1 key=/usr/share/keyrings/debian-archive-keyring.gpg
	shift
	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	touch "$dir/status"
	printf "deb [arch=$arch signed-by=$key] %s main\n" "${DEBIAN_MIRROR:-http://deb.debian.org/debian} bookworm" \
		"http://deb.debian.org/debian-security bookworm-security" > "$dir/list"
	"$@" -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o Dir::Etc::SourceList="$dir/list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::Etc::PreferencesParts=/dev/null -o Dir::State="$dir" -o Dir::State::Status="$dir/status" -o Dir::Cache="$dir" \
		-o Acquire::Languages=none -o APT::Sandbox::User=root
}

# The newest headers of Linux 6.1 for the architecture. The programs of the build are those of this machine's package.
fetch_headers() { # ARCH FOLDER FLAVOUR
	local release deb
	apt_of "$1" apt-get update || return
	release=$(apt_of "$1" apt-cache pkgnames linux-headers-6.1.0- | sed -nE "s/^linux-headers-(6\.1\.0-[0-9]+-$3)$/\1/p" | sort -V | tail -n 1)
	[ -n "$release" ] || { echo "apt knows no linux-headers-6.1.0-*-$3"; return 1; }
	rm -rf "$2" && mkdir -p "$2/deb"
	(cd "$2/deb" && apt_of "$1" apt-get download "linux-headers-$release" "linux-headers-${release%"$3"}common") || return
	for deb in "$2"/deb/*.deb; do
		dpkg -x "$deb" "$2" || return
	done
	rm -r "$2/deb"
	mkdir -p "$2/usr/lib"
	ln -sfn /usr/lib/linux-kbuild-6.1 "$2/usr/lib/linux-kbuild-6.1"
	# shellcheck disable=SC2016 # for make
	sed -i 's|/usr/src/|$(dir $(lastword $(MAKEFILE_LIST)))../|' "$2/usr/src/linux-headers-$release/Makefile"
	ln -sfn "usr/src/linux-headers-$release" "$2/kdir"
	touch "$2/ready"
}

module_builds() { # ARCH KERNEL-ARCH TRIPLET [FLAVOUR]
	local flavour=${4:-$1}
	local dir=$CACHE/linux-headers-6.1-$flavour
	[ -e "$dir/ready" ] || fetch_headers "$1" "$dir" "$flavour" || return
	make -s -j"$(nproc)" module KDIR="$dir/kdir" ARCH="$2" STRICT=1 KARGS="CROSS_COMPILE=$3- C=2 CF=-D__CHECK_ENDIAN__" > "$log" 2>&1 ||
		{ tail -n 30 "$log"; return 1; }
	# gcc's warnings are errors, so these are sparse's.
	! grep "$PWD/build/.*\(warning\|error\):" "$log"
}

module() { # NAME ARCH KERNEL-ARCH TRIPLET [FLAVOUR]
	local name=$1
	shift
	if ! command -v "$3-gcc" > /dev/null; then
		ktap_skip "$name" "no $3-gcc"
	elif [ ! -e /usr/lib/linux-kbuild-6.1 ]; then
		ktap_skip "$name" "no linux-kbuild-6.1"
	else
		ktap_check "$name: W=1 -Werror and sparse" module_builds "$@"
	fi
}

cross() { # ARCH KERNEL-ARCH TRIPLET UNIT
	module "$1" "$1" "$2" "$3"
	if command -v "qemu-$4" > /dev/null && command -v "$3-gcc" > /dev/null; then
		ktap_check "$1: the core's suites and simulator" make -s -C selftests/unit cross CROSS="$4"
	else
		ktap_skip "$1: the core's suites and simulator" "no qemu-$4 or $3-gcc"
	fi
}

[ $# -gt 0 ] || set -- s390x arm64 cloud-arm64
ktap_header
for arch; do
	case $arch in
	s390x) cross s390x s390 s390x-linux-gnu s390x ;;
	arm64) cross arm64 arm64 aarch64-linux-gnu aarch64 ;;
	cloud-arm64) module cloud-arm64 arm64 arm64 aarch64-linux-gnu cloud-arm64 ;;
	*) ktap_fail "$arch" "no such architecture" ;;
	esac
done
ktap_end
