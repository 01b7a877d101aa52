#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Bare machine: makes a Debian 12 root with debootstrap (minbase, git, ca-certificates), clones the committed tree into
# it, and runs a command in the clone by chroot. Prints the time of each step; the last line is the command's.
#   bare.sh [-r] [COMMAND]	COMMAND: for sh, instead of .ci/run
#	-r: use the root of the last run, with all that was installed and built in it, and keep it
# CACHE=empty: make kernels and other roots anew; default: the root uses this machine's cache (ROAN_CACHE).
# The root has /proc, /dev/kvm if there is one, and nothing else of this machine. The mounts are made in a PID and mount
# namespace that ends with the command in every case. The root is removed if the command succeeds.
set -eu
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
ROAN_CACHE=${ROAN_CACHE:-$HOME/.cache/roan}
MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
ROOT=$ROAN_CACHE/bare
CLONE=/root/roan
reuse=''
while getopts r o; do
	case $o in
	r) reuse=y ;;
	*) sed -n 3,9p "$0"; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
command=${1:-.ci/run}

timed() { # NAME COMMAND...: prints the time, and the command's output only if it fails
	local name=$1 began=$SECONDS
	shift
	"$@" > "$ROAN_CACHE/bare.log" 2>&1 || { tail -n 30 "$ROAN_CACHE/bare.log"; echo "bare.sh: $name failed; $ROAN_CACHE/bare.log has all it printed"; exit 1; }
	echo "# $name: $((SECONDS - began)) s"
}

clone() {
	[ -e "$ROOT$CLONE" ] || git clone -q --depth 1 "file://$REPO" "$ROOT$CLONE" || return
	git -C "$ROOT$CLONE" fetch -q --depth 1 origin HEAD && git -C "$ROOT$CLONE" reset -q --hard FETCH_HEAD
}

# Runs in the new namespaces. The root is deliberately not a mount point: that is the harder case, as after a plain
# chroot.
# shellcheck disable=SC2016 # expanded there
INSIDE='
	root=$1 clone=$2 cache=$3 command=$4
	mount -t proc proc "$root/proc"
	[ -z "$cache" ] || { mkdir -p "$root$cache"; mount --bind "$cache" "$root$cache"; }
	[ ! -e /dev/kvm ] || { : > "$root/dev/kvm"; mount --bind /dev/kvm "$root/dev/kvm"; }
	cd "$root"
	exec chroot . /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		CI=true ${cache:+"ROAN_CACHE=$cache"} sh -c "cd $clone && $command"'

[ "$(id -u)" = 0 ] || { echo "bare.sh: needs root, for debootstrap and chroot"; exit 1; }
mkdir -p "$ROAN_CACHE"
exec 9> "$ROAN_CACHE/bare.lock"
flock -n 9 || { echo "bare.sh: another one is under way in $ROOT"; exit 1; }
if [ -z "$reuse" ] || [ ! -e "$ROOT/ready" ]; then
	rm -rf --one-file-system "$ROOT"
	timed debootstrap debootstrap --variant=minbase --include=git,ca-certificates bookworm "$ROOT" "$MIRROR"
	touch "$ROOT/ready"
fi
timed "git clone" clone
[ -z "$(git -C "$REPO" status --porcelain)" ] || echo "# not in the clone: changes that are not committed"
echo "# in $ROOT: $command"
[ "${CACHE:-}" != empty ] && cache=$ROAN_CACHE || cache=
unshare --mount --pid --fork --kill-child sh -ec "$INSIDE" sh "$ROOT" "$CLONE" "$cache" "$command" < /dev/null 9>&- &
trap 'kill -KILL $! 2> /dev/null || true; wait' EXIT
trap 'exit 1' INT TERM HUP
wait $!
trap - EXIT
[ -n "$reuse" ] || rm -rf --one-file-system "$ROOT"
