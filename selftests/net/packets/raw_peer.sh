#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced after lib.sh and python.sh by tests in which a Python program that sends raw packets is the peer. It has no
# verdict.
#
#	h1: v1 (no device)  ======== v2 roan2 :h2	the program runs in h2 and sends by a packet socket on v1
#
# alone_up NAME: set-up; skips the script if NAME cannot run. alone NAME: runs NAME.py beside this file and relays its
# KTAP lines.

# Tests count outgoing packets. So no other peer may use the device, and neighbour entries are static.
alone_up() {
	local ip
	python_needs "$1"
	{ load_modules && two_hosts; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
	on h1 rdma link del "$H1DEV" || rdma link del "$H1DEV"
	for ip in $H1IP $H1IP6; do
		on h2 ip neigh replace $ip lladdr "$(on h1 cat /sys/class/net/v1/address)" dev v2
	done
}

alone() {
	python_runs "$1" 550 on h2
	ktap_end
}
