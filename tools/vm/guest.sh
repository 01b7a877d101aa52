#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# First program in the root of every guest, of the labs and of `roan vm`: mounts file systems, configures the provider, runs the script, writes
# its status, the kernel log and kmemleak's report to /out, and powers off. /out is a folder of the host.
#   guest.sh REPO LAB SCRIPT [ARG...]
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
REPO=$1 LAB=$2
shift 2
export REPO LAB
# shellcheck disable=SC1091 # written by run.sh or roan-vm.sh: variables of the caller for the script
. /out/env
# Start few programs here: each takes 0.1 s on an emulated CPU.
mount -a -T /out/fstab 2> /dev/kmsg
mkdir -p /run/netns /etc/libibverbs.d
ln -sf /proc/self/fd /dev/fd
# perftest divides by the "cpu MHz" value, which UML's /proc/cpuinfo lacks.
[ ! -e /out/cpuinfo ] || mount --bind /out/cpuinfo /proc/cpuinfo
ulimit -l unlimited
echo "$LAB" > /proc/sys/kernel/hostname
# A debootstrap root has no /etc/hosts. Written in every guest, so that names resolve to the same addresses.
printf '127.0.0.1 localhost %s\n::1 localhost ip6-localhost ip6-loopback\n' "$LAB" > /etc/hosts
ip link set lo up
PROVIDER=${PROVIDER:-$REPO/build/provider}
if compgen -G "$PROVIDER/libroan-rdmav*.so" > /dev/null; then
	echo "driver $PROVIDER/libroan" > /etc/libibverbs.d/roan.driver
fi
# A verbs program loads every provider listed there. Keep only those whose kernel driver exists in some guest.
shopt -s extglob
rm -f /etc/libibverbs.d/!(roan*|rxe*|siw*).driver
shopt -u extglob
leak=/sys/kernel/debug/kmemleak
read -r cmdline < /proc/cmdline
[[ " $cmdline " != *" kmemleak=off "* ]] || leak=/none	# with kmemleak=off the file exists, but writes to it fail
[ ! -e $leak ] || echo clear > $leak
# qemu.sh boots a kernel with maxcpus=1: start the other CPUs.
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
	# kmemleak reports an object only some seconds after its allocation.
	sleep 6
	echo scan > $leak; echo scan > $leak
	cat $leak > /out/kmemleak
	dmesg > /out/dmesg	# what was reported meanwhile, of deferred work and timers
fi
echo $rc > /out/rc
sync
echo o > /proc/sysrq-trigger
sleep 10 2> /dev/null	# the file systems may already be gone
