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
# Few programs are started here, as each takes an emulated CPU 0.1 s.
mount -a -T "$REPO/selftests/vm/fstab" 2> /dev/kmsg
mkdir -p /run/netns /etc/libibverbs.d
ln -sf /proc/self/fd /dev/fd
# perftest divides by the "cpu MHz" line, which UML lacks.
[ ! -e /out/cpuinfo ] || mount --bind /out/cpuinfo /proc/cpuinfo
ulimit -l unlimited
echo "$LAB" > /proc/sys/kernel/hostname
# A root that debootstrap made has no such file, and the names mean the same in every guest.
printf '127.0.0.1 localhost %s\n::1 localhost ip6-localhost ip6-loopback\n' "$LAB" > /etc/hosts
ip link set lo up
PROVIDER=${PROVIDER:-$REPO/build/provider}
if compgen -G "$PROVIDER/libroan-rdmav*.so" > /dev/null; then
	echo "driver $PROVIDER/libroan" > /etc/libibverbs.d/roan.driver
fi
# Every program that uses verbs loads all providers that are named there; only these have a driver in some guest.
shopt -s extglob
rm -f /etc/libibverbs.d/!(roan*|rxe*|siw*).driver
shopt -u extglob
leak=/sys/kernel/debug/kmemleak
read -r cmdline < /proc/cmdline
[[ " $cmdline " != *" kmemleak=off "* ]] || leak=/none	# the file is there nevertheless, and refuses
[ ! -e $leak ] || echo clear > $leak
# run.sh has QEMU's kernel start with one CPU.
for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
	[ ! -e "$cpu" ] || echo 1 > "$cpu"
done
cd /tmp || exit
: > /out/started
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
