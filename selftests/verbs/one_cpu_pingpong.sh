#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Programs that converse on one CPU, polling their memory: who has answered gives way, and does not get the CPU back
# before the other has answered too. Wants a machine with one CPU (lab uml, or QEMU
# with -c 1) and a kernel that is not as slow as uml-debug's.
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
for n in first second; do	# whether a time slice was used up before, is chance
	ktap_check "WRITEs in turn, the $n time" converse
done
ktap_end
