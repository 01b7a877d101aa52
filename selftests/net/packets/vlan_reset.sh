#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A VLAN is deleted over which QPs were connected before they were reset. vlan_reset.py has the cases.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/python.sh"

vlans() {
	local n
	load_modules && two_hosts || return
	for n in 1 2; do
		ip -n h$n link add link v$n name v$n.5 type vlan id 5 && ip -n h$n addr add 10.5.0.$n/24 dev v$n.5 &&
			ip -n h$n link set v$n.5 up || return
	done
	wait_for 60 on h1 ping -c1 -W1 10.5.0.2 && wait_for 60 on h1 ping -c1 -W1 $H2IP && wait_for 60 gid_index $H1DEV 10.5.0.1
}

ktap_header
python_needs vlan_reset
vlans > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
python_runs vlan_reset 60 env
ktap_end
