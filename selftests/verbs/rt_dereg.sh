#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A thread of real-time priority deregisters MRs to which another thread WRITEs on the same CPU. Needs one CPU (QEMU
# with -c 1). The result is significant only on a kernel with PREEMPT_RT (lab qemu-rt).
#
#	h1: v1, roan1  =veth=  v2, roan2: h2	the program runs in h1, over the loopback of its one device
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"

ktap_header
{ load_modules && two_hosts; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
on h1 timeout 300 "$PROGRAMS/rt_dereg" -d $H1DEV > /tmp/rt_dereg 2>&1
ktap_relay /tmp/rt_dereg rt_dereg $?
ktap_end
