#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Debian 12 for another CPU, in the cache: fetched if missing. Nothing of it runs on this machine, so its packages are unpacked,
# not configured. Needs gcc-TRIPLET.
#   foreign.sh root ARCH		prints the folder of a root with rdma-core and its tests, perftest, development files
#   foreign.sh kernel LAB		prints the folder of its newest kernel: boot/vmlinuz-*, lib/modules/*, kdir (to build modules)
#   foreign.sh with ARCH COMMAND...	runs a command here with CC and pkg-config for that root
#   foreign.sh words LAB		prints the name that Linux has for it, the prefix of its compiler, the kernel's series
# ARCH: arm64, s390x. LAB: these, arm64-16k (pages of 16 KiB), or for `words` arm64-64k. A folder's name has a hash of
# the steps that make it, a root's also of its package list; its file `ready` exists once it is complete.
# ROAN_CACHE: the cache.
set -eu -o pipefail
shopt -s inherit_errexit
CACHE=${ROAN_CACHE:-$HOME/.cache/roan}
MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
SECURITY=${DEBIAN_SECURITY:-http://deb.debian.org/debian-security}
PACKAGES="busybox-static mount procps kmod udev iproute2 ethtool iputils-ping netbase tshark tcpdump nftables
	libc6-dev libibverbs-dev librdmacm-dev ibverbs-providers ibverbs-utils rdmacm-utils rdma-core python3-pyverbs perftest qperf
	infiniband-diags"

words_of() { # LAB
	case $1 in
	arm64 | arm64-16k | arm64-64k) echo arm64 aarch64-linux-gnu 6.12 ;;
	s390x) echo s390 s390x-linux-gnu 6.1 ;;
	*) echo "foreign.sh: no such architecture: $1" >&2; return 1 ;;
	esac
}

# apt with the lists of that architecture, and of this machine's for the programs that build modules. apt regards no package as
# installed.
apt_of() { # ARCH COMMAND...
	local dir=$CACHE/apt-foreign-$1 arch=$1 key=/usr/share/keyrings/debian-archive-keyring.gpg here
	here=$(dpkg --print-architecture)
	shift
	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	touch "$dir/status"
	printf "deb [arch=$arch,$here signed-by=$key] %s main\n" "$MIRROR bookworm" "$SECURITY bookworm-security" > "$dir/list"
	"$@" -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Architectures::="$here" -o Dir::Etc::SourceList="$dir/list" \
		-o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::PreferencesParts=/dev/null -o Dir::State="$dir" -o Dir::State::Status="$dir/status" \
		-o Dir::Cache="$dir" -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Sandbox::User=root
}

# /bin, /lib and /sbin are links into /usr, which packages that have files there do not replace.
unpack() { # FOLDER PACKAGE-FILE...
	local deb
	for deb in "${@:2}"; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$1"
	done
}

# What the packages' scripts would do that the tests need: users, awk.
make_root() { # FOLDER ARCH
	local apt=$CACHE/apt-foreign-$2 d
	apt_of "$2" apt-get update
	# shellcheck disable=SC2086 # a list of packages
	apt_of "$2" apt-get install --download-only -y --no-install-recommends "?and(?essential,?architecture($2))" $PACKAGES
	for d in bin lib sbin; do
		mkdir -p "$1/usr/$d"
		ln -s "usr/$d" "$1/$d"
	done
	unpack "$1" "$apt"/archives/*.deb
	rm -rf "$apt"
	for d in passwd group; do
		cp "$1/usr/share/base-passwd/$d.master" "$1/etc/$d"
	done
	ln -s mawk "$1/usr/bin/awk"
}

# The headers' Makefile names a folder below /usr/src.
make_kernel() { # FOLDER LAB
	local arch=${2%%-*} flavour=$2 series release kbuild apt=$CACHE/apt-foreign-${2%%-*}
	read -r _ _ series <<< "$(words_of "$flavour")"
	apt_of "$arch" apt-get update
	release=$(apt_of "$arch" apt-cache pkgnames "linux-headers-$series." | sed -nE "s/^linux-headers-([0-9.]+[+-][a-z0-9]+-$flavour)$/\1/p" | sort -V | tail -n 1)
	[ -n "$release" ] || { echo "foreign.sh: apt knows no linux-headers-$series.*-$flavour"; return 1; }
	kbuild=${release%-"$flavour"}
	[ "$series" != 6.1 ] || kbuild=6.1	# of all releases of 6.1
	(cd "$apt/archives" && apt_of "$arch" apt-get download "linux-image-$release" "linux-headers-$release" "linux-headers-${release%"$flavour"}common" \
		"linux-kbuild-$kbuild:$(dpkg --print-architecture)")
	mkdir -p "$1/usr/lib"
	ln -s usr/lib "$1/lib"
	unpack "$1" "$apt"/archives/*.deb
	rm -rf "$apt"
	# shellcheck disable=SC2016 # for make
	sed -i 's|/usr/src/|$(dir $(lastword $(MAKEFILE_LIST)))../|' "$1/usr/src/linux-headers-$release/Makefile"
	ln -s "usr/src/linux-headers-$release" "$1/kdir"
	/sbin/depmod -b "$1" "$release"
}

ready() { # FOLDER COMMAND...: runs the command, which fills FOLDER, unless that is complete
	exec 9> "$CACHE/foreign.lock"
	flock 9
	if [ ! -e "$1/ready" ]; then
		echo "foreign.sh: making $1" >&2
		rm -rf "$1" && mkdir -p "$1"
		"$2" "$1" "${@:3}" >&2
		touch "$1/ready"
		echo "# built $1 in $SECONDS s" >&2
	fi
	exec 9>&-
	echo "$1"
}

made_from() { # TEXT FUNCTION: prints a hash
	{ echo "$1"; declare -f apt_of unpack "$2"; } | sha256sum | cut -c1-8
}

root_of() { # ARCH
	ready "$CACHE/root-bookworm-$1-$(made_from "$MIRROR $PACKAGES" make_root)" make_root "$1"
}

with_root() { # ARCH COMMAND...
	local root triplet
	root=$(root_of "$1")
	read -r _ triplet _ <<< "$(words_of "$1")"
	export CC="$triplet-gcc --sysroot=$root" PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root/usr/lib/$triplet/pkgconfig
	"${@:2}"
}

mkdir -p "$CACHE"
case ${1:-} in
root) root_of "$2" ;;
kernel) ready "$CACHE/linux-foreign-$2-$(made_from "$MIRROR" make_kernel)" make_kernel "$2" ;;
with) with_root "${@:2}" ;;
words) words_of "$2" ;;
*) sed -n 3,10p "$0"; exit 2 ;;
esac
