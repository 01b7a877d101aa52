#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Tests a built libroan without a device: its symbols, loading by the installed libibverbs, and on a simulated device
# (uverbs.c) rings.c, and that a libibverbs of another release (other_release.c) is refused. The simulated device needs
# root, a mount namespace of its own and a host without RDMA devices; otherwise both are skipped, with a message: root of
# an unprivileged container, in which packages are often built, may not mount.
# Usage: check.sh LIBRARY, with PABI (provider ABI number) and CC in the environment
set -eu
lib=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

die() { echo "FAIL $*"; exit 1; }

defined=$(nm -D --defined-only "$lib")
[ -z "$defined" ] || die "exports symbols: $defined"
nm -D "$lib" | grep -q "U verbs_register_driver_$PABI@IBVERBS_PRIVATE_$PABI" || die "does not register for $PABI"
foreign=$(nm -D --undefined-only "$lib" | grep ' U ' | grep -v '@\(GLIBC\|IBVERBS_PRIVATE_'"$PABI"'$\|IBVERBS_1\)' || true)
[ -z "$foreign" ] || die "needs symbols that are neither libc's nor libibverbs': $foreign"
echo "ok symbols"

out=$(LD_BIND_NOW=1 LD_PRELOAD="$lib" ibv_devices 2>&1 || true)
case $out in
*"cannot be preloaded"*|*"undefined symbol"*) die "does not load: $out" ;;
esac
echo "ok load"

may_mount() { unshare -m mount -t tmpfs tmpfs /dev/shm 2> /dev/null; }
if [ "$(id -u)" != 0 ] || [ -d /sys/class/infiniband_verbs ] || ! may_mount; then
	echo "skip rings, other release: needs root that may mount, and a host without RDMA devices"
	exit 0
fi
mkdir -p "$tmp/sys/class/infiniband_verbs/uverbs0" "$tmp/sys/class/infiniband/roan0"
echo 6 > "$tmp/sys/class/infiniband_verbs/abi_version"
echo roan0 > "$tmp/sys/class/infiniband_verbs/uverbs0/ibdev"
echo 1:3 > "$tmp/sys/class/infiniband_verbs/uverbs0/dev"
echo 29185 > "$tmp/sys/class/infiniband_verbs/uverbs0/abi_version"	# 0x7201
echo "1: CA" > "$tmp/sys/class/infiniband/roan0/node_type"
echo "0001:0203:0405:0607" > "$tmp/sys/class/infiniband/roan0/node_guid"
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -rdynamic -I"$here/../../include/uapi" -o "$tmp/rings" \
	"$here/rings.c" "$here/uverbs.c" -libverbs
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -shared -fPIC -o "$tmp/other.so" "$here/other_release.c"
export SYSFS_PATH="$tmp/sys" IBV_DRIVERS="${lib%-rdmav*}"
on_simulated_device() {
	unshare -m sh -ec '
		mount -t tmpfs tmpfs /dev/shm
		mkdir /dev/shm/infiniband
		mknod /dev/shm/infiniband/uverbs0 c 1 3
		[ -d /dev/infiniband ] || mkdir /dev/infiniband
		mount --bind /dev/shm/infiniband /dev/infiniband
		exec "$@"
	' sh "$@"
}
on_simulated_device "$tmp/rings" || die "rings"

out=$(on_simulated_device env LD_PRELOAD="$tmp/other.so" ibv_devinfo -d roan0 2>&1 || true)
case $out in
*"libroan: built for another release of rdma-core"*) echo "ok other release" ;;
*) die "opens with a libibverbs of another release: $out" ;;
esac

# libibverbs 36 to 56 load what was built for each other: 36 to 43 lack two members of struct ibv_qp_ex.
if [ "$PABI" = 34 ] && [ "$(uname -m)" = x86_64 ]; then
	mkdir -p "$tmp/include/infiniband"
	sed '/^\tvoid (\*wr_\(atomic_write\|flush\))/,/;/d; /^static inline void ibv_wr_\(atomic_write\|flush\)/,/^}/d' \
		/usr/include/infiniband/verbs.h > "$tmp/include/infiniband/verbs.h"
	make -s -C "$here/.." OUT="$tmp/43" RELEASE=43 CPPFLAGS="-I$tmp/include"
	export IBV_DRIVERS="$tmp/43/libroan"
	on_simulated_device "$tmp/rings" || die "rings of a library for rdma-core 43"
fi
