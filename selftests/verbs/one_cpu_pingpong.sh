#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two programs in a ping-pong on one CPU that poll their memory: after answering, a program yields the CPU and does not
# get it back before the peer has answered. Needs a machine with one CPU (lab uml, or QEMU with -c 1) and a kernel
# faster than uml-debug's.
#
#	h1: v1, roan1  =veth=  v2, roan2: h2	the program runs in the first namespace, which sees both devices
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"

converse() {
	[ "$(nproc)" = 1 ] || return 4
	timeout 100 "$PROGRAMS/one_cpu_pingpong" -d $H1DEV -D $H2DEV -n 2000 > /tmp/turns || { echo "status $?"; cat /tmp/turns; return 1; }
	sed 's/^/# /' /tmp/turns >&3
}

exec 3>&1
ktap_header
{ load_modules && two_hosts; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
for n in first second; do	# whether the first run begins with a used-up time slice is chance
	ktap_check "alternating WRITEs, the $n time" converse
done
ktap_end
