#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Roots, programs and sources of other Debian releases, in the cache: fetched if missing. The host is not changed.
#   debian.sh root RELEASE		prints the folder of a root (trixie) with a compiler, rdma-core and its tests, perftest,
#					QEMU, headers of the newest kernel it or its backports have; that kernel in /kernel
#   debian.sh root RELEASE-apps	the same with the programs that ../apps runs: UCX, MPI, libfabric, fio, librpma
#   debian.sh run RELEASE COMMAND...	runs a command in that root, with this repository and the cache at their own paths
#   debian.sh emulator			prints the words of the command of QEMU: trixie's if its root exists
#   debian.sh herd7			prints the words of the command of herd7, the simulator of memory models, from sid
#   debian.sh source			prints the folder of rdma-core's source: the newest that the provider supports
# A root's name has a hash of its package list and of the steps that make it; its file `ready` exists once it is complete.
# ROAN_CACHE: the cache.
set -eu
shopt -s inherit_errexit
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
CACHE=${ROAN_CACHE:-$HOME/.cache/roan}
MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
PACKAGES=ca-certificates,gcc,make,pkg-config,file,xz-utils,libelf-dev,kmod,udev,procps,iproute2,ethtool,iputils-ping,tshark
PACKAGES=$PACKAGES,libibverbs-dev,librdmacm-dev,ibverbs-providers,ibverbs-utils,rdmacm-utils,rdma-core
PACKAGES=$PACKAGES,python3-pyverbs,perftest,qperf,infiniband-diags,qemu-system-x86
APPS="ucx-utils openmpi-bin libopenmpi-dev mpich libmpich-dev libfabric-bin fio librpma-dev netcat-traditional"
APPS="$APPS python3-mpi4py python3-numpy openssh-client"
export DEBIAN_FRONTEND=noninteractive

# Fetches the kernel that matches the headers into /kernel/boot and /kernel/lib/modules. Package names and paths vary by
# release.
# shellcheck disable=SC2016 # expanded in the root
KERNEL='
	v=$(ls /lib/modules | sort -V | tail -n 1)
	mkdir /kernel && cd /kernel
	for p in image binary modules base; do
		[ -z "$(apt-cache policy linux-$p-$v)" ] || apt-get download -qq -o APT::Sandbox::User=root linux-$p-$v
	done
	for d in *.deb; do dpkg -x "$d" .; rm "$d"; done
	[ -e lib ] || ln -s usr/lib lib
	[ -e boot ] || { mkdir boot; mv lib/modules/$v/vmlinuz boot/vmlinuz-$v; }
	depmod -b /kernel $v'

make_root() { # RELEASE FOLDER
	rm -rf "$2"
	debootstrap --variant=minbase --include="$PACKAGES" "$1" "$2" "$MIRROR"
	local suite=$1
	if [ "$1" != sid ]; then
		suite=$1-backports
		echo "deb $MIRROR $suite main" >> "$2/etc/apt/sources.list"
	fi
	chroot "$2" sh -ec "apt-get update -qq
		apt-get install -qq -y --no-install-recommends -t $suite linux-headers-amd64
		$KERNEL
		apt-get clean"
	touch "$2/ready"
}

add_apps() { # RELEASE FOLDER
	rm -rf "$2"
	cp -a "$(ready_root "$1")" "$2"
	rm "$2/ready"
	chroot "$2" sh -ec "apt-get update -qq
		apt-get install -qq -y --no-install-recommends $APPS
		apt-get clean"
	touch "$2/ready"
}

steps() { # RELEASE: what its root is made of
	echo "$MIRROR $PACKAGES $KERNEL"
	declare -f make_root
	[[ $1 != *-apps ]] || { echo "$APPS"; declare -f add_apps; }
}

root_of() { # RELEASE
	echo "$CACHE/root-$1-$(steps "$1" | sha256sum | cut -c1-8)"
}

ready_root() { # RELEASE
	local dir
	dir=$(root_of "$1")
	exec 9> "$CACHE/root-$1.lock"
	flock 9
	if [ ! -e "$dir/ready" ]; then
		echo "debian.sh: making $dir" >&2
		case $1 in
		*-apps) add_apps "${1%-apps}" "$dir" >&2 ;;
		*) make_root "$1" "$dir" >&2 ;;
		esac
		echo "# built $dir in $SECONDS s" >&2
	fi
	exec 9>&-
	echo "$dir"
}

run_in() { # RELEASE COMMAND...
	local root
	root=$(ready_root "$1")
	shift
	mkdir -p "$root$REPO" "$root$CACHE"
	# The mounts are private to this command. In a chroot whose root is not a mount point unshare cannot make them
	# private, so they are always unmounted at the end.
	local private=(unshare -m)
	"${private[@]}" true 2> /dev/null || private+=(--propagation unchanged)
	exec "${private[@]}" sh -ec 'root=$1 repo=$2 cache=$3; shift 3
		trap "cd /; umount -l \"$root/proc\" \"$root/dev\" \"$root$cache\" \"$root$repo\" 2> /dev/null || :" EXIT
		trap "exit 1" INT TERM
		mount --bind "$repo" "$root$repo"; mount --bind "$cache" "$root$cache"
		mount --bind /dev "$root/dev"; mount -t proc proc "$root/proc"
		chroot "$root" "$@"' sh "$root" "$REPO" "$CACHE" "$@"
}

# QEMU of that root with its own libraries, but without chroot: the files it exports to the guest are in this machine's
# root.
emulator() {
	local root lib
	root=$(root_of trixie)
	lib=$root/usr/lib/x86_64-linux-gnu
	[ -e "$root/ready" ] || { echo qemu-system-x86_64; return; }
	# This QEMU would load the modules for sound of the machine's own one, and abort.
	printf '%s\n' env "QEMU_MODULE_DIR=$lib/qemu" "$lib/ld-linux-x86-64.so.2" --library-path "$lib" \
		"$root/usr/bin/qemu-system-x86_64" -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" \
		-audiodev none,id=none
}

# Runs apt with separate lists, of one kind of entry only. sid's lists are valid for a week, and a mirror's may be older:
# signatures are checked, dates are not.
apt_with() { # FOLDER "deb | deb-src SUITE..." COMMAND...
	local dir=$1 kind=${2%% *} suites
	read -ra suites <<< "${2#* }"
	shift 2
	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	touch "$dir/status"
	printf "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $MIRROR %s main\n" "${suites[@]}" > "$dir/list"
	"$@" -qq -o Dir::Etc::SourceList="$dir/list" -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
		-o Acquire::Check-Valid-Until=false -o Acquire::Languages=none -o Dir::State="$dir" -o Dir::State::Status="$dir/status" -o Dir::Cache="$dir" -o APT::Sandbox::User=root
}

apt_sources() { # FOLDER COMMAND...
	apt_with "$1" "deb-src trixie sid" "${@:2}"
}

# herdtools7 with the libraries that it needs, which are newer than this machine's.
fetch_herd7() { # FOLDER
	local apt=$1/apt deb
	rm -rf "$1" && mkdir -p "$1"
	apt_with "$apt" "deb sid" apt-get update
	(cd "$1" && apt_with "$apt" "deb sid" apt-get download herdtools7 libc6 libgmp10)
	for deb in "$1"/*.deb; do
		dpkg -x "$deb" "$1"
	done
	find "$1/usr/bin" ! -name herd7 -type f -delete
	rm -rf "$apt" "$1"/*.deb
	touch "$1/ready"
}

ready_herd7() {
	local dir=$CACHE/herd7 lib=$CACHE/herd7/usr/lib/x86_64-linux-gnu
	if type -P herd7 > /dev/null; then
		echo herd7
		return
	fi
	exec 9> "$CACHE/herd7.lock"
	flock 9
	[ -e "$dir/ready" ] || { echo "debian.sh: making $dir" >&2; fetch_herd7 "$dir" >&2; echo "# built $dir in $SECONDS s" >&2; }
	exec 9>&-
	printf '%s\n' "$lib/ld-linux-x86-64.so.2" --library-path "$lib" "$dir/usr/bin/herd7" -set-libdir "$dir/usr/share/herdtools7/herd"
}

# Prints the highest rdma-core release that verbs_private.h has a layout for.
known_release() {
	sed -n 's/^#elif ROAN_RDMA_CORE \(<=\|==\) \([0-9]*\)$/\2/p' "$REPO/provider/verbs_private.h" | sort -n | tail -n 1
}

fetch_source() { # FOLDER: leaves FOLDER/src
	local apt=$1/apt versions version
	rm -rf "$1" && mkdir -p "$1"
	apt_sources "$apt" apt-get update
	versions=$(apt_sources "$apt" apt-cache showsrc rdma-core | sed -n 's/^Version: //p' | sort -V)
	version=$(echo "$versions" | awk -F. -v known="$(known_release)" '$1 <= known' | tail -n 1)
	[ -n "$version" ] || { echo "debian.sh: apt has no rdma-core the provider knows, but: $versions"; return 1; }
	# Only the upstream tarball is needed; a mirror may lack the packaging.
	(cd "$1" && apt_sources "$apt" apt-get source --download-only --tar-only "rdma-core=$version") || true
	mkdir "$1/src"
	tar -C "$1/src" --strip-components=1 -xf "$1"/rdma-core_*.orig.tar.*
	rm -rf "$apt" "$1"/*.tar.*
	touch "$1/ready"
}

ready_source() {
	local dir
	dir=$CACHE/rdma-core-$(known_release)
	exec 9> "$CACHE/rdma-core.lock"
	flock 9
	[ -e "$dir/ready" ] || { echo "debian.sh: making $dir" >&2; fetch_source "$dir" >&2; echo "# built $dir in $SECONDS s" >&2; }
	echo "$dir/src"
}

mkdir -p "$CACHE"
case ${1:-} in
root) ready_root "$2" ;;
run) shift; run_in "$@" ;;
emulator) emulator ;;
herd7) ready_herd7 ;;
source) ready_source ;;
*) sed -n 3,10p "$0"; exit 2 ;;
esac
