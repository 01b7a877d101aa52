#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by tests of the packages, after selftests/vm/lib.sh: a Debian 12 root with systemd, three programs that configure
# networks, DKMS, and what builds and checks packages. Its first use makes it by debootstrap, in the cache (ROAN_CACHE). Tests
# change an overlay over it only. PACKAGES, set before: another root, with these packages.
#
#	root_up			$root: the root under an overlay in $work, both removed at exit; $work/changes: what has changed
#	in_root COMMAND...	runs a command there, by chroot
#	root_debs		builds the packages there, from this tree: $root/build/build/deb/*.deb
# A script that sources this file runs in a mount namespace of its own, where that is possible (debian.sh says where it is not).
CACHE=${ROAN_CACHE:-$HOME/.cache/roan}
MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
PACKAGES=${PACKAGES:-"systemd-sysv udev dbus kmod python3 iproute2 iputils-ping ifupdown network-manager
	rdma-core ibverbs-utils perftest libibverbs-dev pkg-config build-essential xz-utils libelf1
	dkms dh-dkms pahole debhelper lintian rpm rpmlint man-db bash-completion python3-prometheus-client"}
[ "$(id -u)" = 0 ] || { ktap_header; ktap_skip "all" "needs root, for chroot"; ktap_end; }
if [ -z "${ROAN_MOUNTS:-}" ]; then
	export ROAN_MOUNTS=private
	! unshare -m true 2> /dev/null || exec unshare -m "$0" "$@"
fi

# apt resolves dependencies that debootstrap does not.
root_make() { # FOLDER
	rm -rf "$1"
	debootstrap --variant=minbase bookworm "$1" "$MIRROR" || return
	# shellcheck disable=SC2086 # a list
	chroot "$1" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $PACKAGES || return
	chroot "$1" apt-get clean && touch "$1/ready"
}

root_ready() { # sets `lower`
	lower=$CACHE/root-systemd-$(echo "$MIRROR" $PACKAGES | sha256sum | cut -c1-8)
	mkdir -p "$CACHE"
	exec 9> "$CACHE/root-systemd.lock"
	flock 9
	[ -e "$lower/ready" ] || { root_make "$lower" > "$CACHE/root-systemd.log" 2>&1 && echo "# built $lower in $SECONDS s"; } ||
		{ tail -n 20 "$CACHE/root-systemd.log"; return 1; }
	exec 9>&-
}

# shellcheck disable=SC2317 # called by the trap
root_down() {
	# What is mounted there must not be removed with it.
	! mountpoint -q "$root" || umount -R -l "$root" || return
	rm -rf --one-file-system "$work"
}

root_up() {
	root_ready || return
	work=$(mktemp -d /var/tmp/roan-root.XXXXXX)
	root=$work/root
	trap root_down EXIT
	mkdir -p "$root" "$work"/{changes,overlay}
	mount -t overlay -o "lowerdir=$lower,upperdir=$work/changes,workdir=$work/overlay" packages "$root" && mount -t proc proc "$root/proc"
}

in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@" < /dev/null; }

root_debs() {
	mkdir -p "$root/build" && cp -a "$REPO"/{Kbuild,Makefile,kernel,include,provider,tools} "$root/build" || return
	in_root make -s -C /build deb > "$work/deb.log" 2>&1 || { tail -n 20 "$work/deb.log"; return 1; }
}

# There is no address in the packages: whoever builds them is their maintainer.
lint_debs() { # PATTERN: of files in the root
	in_root sh -c "lintian --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog --allow-root $1" > "$work/lintian.log" 2>&1
	[ ! -s "$work/lintian.log" ] || { cat "$work/lintian.log"; return 1; }
}
