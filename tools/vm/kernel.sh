#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Debian's kernels and their headers, in a cache: fetched if missing. Needs no root; changes nothing outside the cache.
#   kernel.sh [-c] release KERNEL	prints the kernel's newest release; -c: the newest in the cache, if there is one
#   kernel.sh image RELEASE		prints a folder with boot/vmlinuz-RELEASE and lib/modules/RELEASE
#   kernel.sh headers RELEASE		prints the folder that modules are built against
#   kernel.sh unpack FOLDER PACKAGE...	unpacks packages
# KERNEL: a series (6.12, 6.1), its cloud kernel (6.12-cloud), rt, or a release such as 6.12.117+deb12-amd64. A folder's file
# `ready` exists once it is complete. Concurrent callers are serialised by a lock file. ROAN_CACHE: the cache (default
# ~/.cache/roan). If apt has no package lists, or old ones, lists of the same sources are fetched into the cache.
set -eu
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C
CACHE=${ROAN_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/roan}
USER_NAME=$(id -un 2> /dev/null || id -u)	# in a container a user may have no name
lists=()	# apt's options for the lists in the cache

own_lists() {
	lists=(-o "Dir::State::Lists=$CACHE/apt/lists" -o "Dir::Cache=$CACHE/apt" -o APT::Sandbox::User="$USER_NAME")
	mkdir -p "$CACHE/apt/lists/partial" "$CACHE/apt/archives/partial"
	echo "kernel.sh: fetching apt's package lists" >&2
	apt-get "${lists[@]}" update -qq >&2 || true
}

dependencies() { # PACKAGE PATTERN: prints the packages of this name that it depends on
	apt-cache "${lists[@]}" depends "$1" 2> /dev/null | sed -n "s/^ *Depends: \($2\)$/\1/p"
}

is_of() { # RELEASE KERNEL
	case $2 in
	rt) [[ $1 == *-rt-amd64 ]] ;;
	*-cloud) [[ $1 == "${2%-cloud}"[.+-]*-cloud-amd64 ]] ;;
	*) [[ $1 == "$2" || ( $1 == "$2"[.+-]*-amd64 && $1 != *-cloud-* && $1 != *-rt-* ) ]] ;;
	esac
}

cached() { # KERNEL
	local f release
	for f in "$CACHE"/linux-image-*/ready; do
		release=${f#"$CACHE/linux-image-"} release=${release%/ready}
		! is_of "$release" "$1" || echo "$release"
	done | sort -V | tail -n 1
}

# Meta packages such as linux-image-6.12-amd64 depend on the package that has the kernel. A Debian release's own series
# has a meta package without a number.
newest() { # KERNEL
	local series=$1 flavour=amd64 meta image
	case $1 in
	*-amd64)
		[ -z "$(apt-cache "${lists[@]}" policy "linux-image-$1" 2> /dev/null)" ] || echo "$1"
		return ;;
	*-cloud) series=${1%-cloud} flavour=cloud-amd64 ;;
	rt) series='' flavour=rt-amd64 ;;
	esac
	for meta in "linux-image-$series-$flavour" "linux-image-$flavour"; do
		image=$(dependencies "$meta" 'linux-image-.*' | head -n 1)
		! is_of "${image#linux-image-}" "$1" || { echo "${image#linux-image-}"; return; }
	done
}

find_release() { # KERNEL
	local release others
	release=$(newest "$1")
	[ -n "$release" ] || { own_lists; release=$(newest "$1"); }
	[ -n "$release" ] && echo "$release" && return
	others=$(apt-cache "${lists[@]}" pkgnames linux-image- |
		sed -nE 's/^linux-image-([0-9]+\.[0-9]+)[^a-z]*(\+[a-z0-9]+)?(-cloud)?-amd64$/\1\3/p' | sort -uV | paste -sd' ')
	[ -n "$others" ] || others="none of Debian's for x86-64; this needs Debian 12 or newer"
	echo "kernel.sh: apt has no kernel $1, but: $others" >&2
	return 1
}

download() { # PACKAGE...
	apt-get "${lists[@]}" download -qq -o APT::Sandbox::User="$USER_NAME" -o Acquire::Retries=3 "$@"
}

unpack() { # INTO PACKAGE...
	local tmp into=$1 deb
	shift
	tmp=$(mktemp -d "$CACHE/deb.XXXXXX")
	chmod 755 "$tmp"
	echo "kernel.sh: fetching $*" >&2
	# A mirror deletes superseded versions. If the download fails the lists may be outdated.
	(cd "$tmp" && { download "$@" || { own_lists && download "$@"; } } >&2)
	for deb in "$tmp"/*.deb; do
		dpkg -x "$deb" "$into"
	done
	rm -rf "$tmp"
}

fetch_image() { # FOLDER RELEASE
	unpack "$1" "linux-image-$2"
	[ -e "$1/lib" ] || ln -s usr/lib "$1/lib"
	depmod -b "$1" "$2"
}

# The package's Makefile names a folder below /usr/src. With its vmlinux each module would get type information (BTF), for
# which the build needs pahole.
fetch_headers() { # FOLDER RELEASE
	local package=linux-headers-$2
	[ -n "$(dependencies "$package" 'linux-.*')" ] || own_lists
	# shellcheck disable=SC2046 # a list of packages
	unpack "$1" "$package" $(dependencies "$package" 'linux-\(headers\|kbuild\)-.*')
	rm -f "$1/usr/src/$package/vmlinux"
	# shellcheck disable=SC2016 # for make
	sed -i 's|/usr/src/|$(dir $(lastword $(MAKEFILE_LIST)))../|' "$1/usr/src/$package/Makefile"
}

ready() { # FOLDER COMMAND...: runs the command, which makes FOLDER, unless that is complete
	local dir=$1
	shift
	# Take the lock only to make it: a caller that finds it ready does not wait for another one.
	[ ! -e "$dir/ready" ] || return 0
	exec 9> "$dir.lock"
	flock 9
	[ ! -e "$dir/ready" ] || return 0
	rm -rf "$dir" && mkdir -p "$dir"
	"$@" >&2
	touch "$dir/ready"
	echo "# built $dir in $SECONDS s" >&2
}

mkdir -p "$CACHE"
fresh=y
[ "${1:-}" != -c ] || { fresh=; shift; }
[ $# -ge 2 ] || { sed -n 4,10p "$0"; exit 2; }
dir=$CACHE/linux-$1-$2
case $1 in
release)
	release=
	[ -n "$fresh" ] || release=$(cached "$2")
	[ -n "$release" ] && echo "$release" || find_release "$2" ;;
image)
	ready "$dir" fetch_image "$dir" "$2"
	echo "$dir" ;;
headers)
	# Headers that are installed need not be fetched.
	if [ -e "/lib/modules/$2/build/Makefile" ]; then
		echo "/lib/modules/$2/build"
	else
		ready "$dir" fetch_headers "$dir" "$2"
		echo "$dir/usr/src/linux-headers-$2"
	fi ;;
unpack) unpack "${@:2}" ;;
*)
	sed -n 4,10p "$0"
	exit 2 ;;
esac
