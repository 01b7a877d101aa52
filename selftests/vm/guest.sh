#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The first thing that runs in a guest's root, in either lab: makes it a usable machine, runs the script, leaves its
# status, the kernel's log and kmemleak's finds in /out, and powers off. /out is a folder of the host.
#   guest.sh REPO LAB SCRIPT [ARG...]
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
REPO=$1 LAB=$2
shift 2
export REPO LAB
# shellcheck disable=SC1091 # written by run.sh: variables of the caller that the script may want
. /out/env
mount -t tmpfs t /run
ln -sf /proc/self/fd /dev/fd
mkdir -p /dev/pts /dev/shm /run/netns
mount -t devpts d /dev/pts; mount -t tmpfs t /dev/shm
mount -t debugfs d /sys/kernel/debug; mount -t tracefs t /sys/kernel/tracing 2> /dev/null
modprobe -q configfs
mount -t configfs c /sys/kernel/config
# perftest divides by the "cpu MHz" line, which UML lacks.
[ ! -e /out/cpuinfo ] || mount --bind /out/cpuinfo /proc/cpuinfo
ulimit -l unlimited
hostname "$LAB"
ip link set lo up
PROVIDER=${PROVIDER:-$REPO/build/provider}
if ls "$PROVIDER"/libroan-rdmav*.so > /dev/null 2>&1; then
	mkdir -p /etc/libibverbs.d
	echo "driver $PROVIDER/libroan" > /etc/libibverbs.d/roan.driver
fi
# Every program that uses verbs loads all providers that are named there; only these have a driver in some guest.
find /etc/libibverbs.d -name '*.driver' ! -name 'roan*' ! -name 'rxe*' ! -name 'siw*' -delete
leak=/sys/kernel/debug/kmemleak
! grep -qw kmemleak=off /proc/cmdline || leak=/none	# the file is there nevertheless, and refuses
[ ! -e $leak ] || echo clear > $leak
# run.sh has QEMU's kernel start with one CPU.
for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
	[ ! -e "$cpu" ] || echo 1 > "$cpu"
done
cd /tmp || exit
touch /out/started
echo "roan-lab: script starts" > /dev/kmsg
[ -x "$1" ] || set -- bash "$@"
"$@"
rc=$?
dmesg > /out/dmesg
if [ -e $leak ]; then
	# An object must be seen unreferenced for a while before it counts.
	sleep 6
	echo scan > $leak; echo scan > $leak
	cat $leak > /out/kmemleak
fi
echo $rc > /out/rc
sync
echo o > /proc/sysrq-trigger
sleep 10
