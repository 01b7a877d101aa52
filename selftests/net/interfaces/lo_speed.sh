#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# WRITEs over lo against WRITEs over a veth pair within one namespace, in turn in one boot: medians of ROUNDS, of which
# lo's must not be below the veth's. The kernel sends packets between two of its own addresses by lo. In namespace V
# policy routing takes precedence over that, so that they cross the veth; the interfaces' counters verify it.
#
#	L: pl on lo, both ends at 10.9.2.1		V: p1 on w1, 10.9.1.1 ==veth== w2, p2, 10.9.1.2
#
# With ICOUNT=y of run.sh and one CPU the time is the number of instructions, which the load of the machine does not
# change. Both ways end in the same receive queue of the CPU, so the figures are close. TOLERANCE: how many per cent lo may
# be below.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
ROUNDS=${ROUNDS:-3} TOLERANCE=${TOLERANCE:-1}
# Name, bytes of a message, number of messages, perftest's column, unit
TESTS='64KiB 65536 1500 4 MiB/s
4KiB 4096 8000 4 MiB/s
64B 64 30000 5 million/s'

lo_up() { ip netns add L && on L ip link set lo up && on L ip addr add 10.9.2.1/32 dev lo && link_add pl lo L; }
veth_up() {
	local n
	ip netns add V && on V ip link set lo up && on V ip link add w1 mtu 4200 type veth peer name w2 mtu 4200 || return
	for n in 1 2; do
		on V ip link set w$n up && on V ip addr add 10.9.1.$n/24 dev w$n && on V sysctl -qw net.ipv4.conf.w$n.accept_local=1 \
			net.ipv4.conf.w$n.rp_filter=0 net.ipv4.conf.w$n.arp_ignore=1 &&
			on V ip route add 10.9.1.$((3 - n)) dev w$n table 7 || return
	done
	# Packets of this host ("iif lo") go by table 7; what a veth receives is for this host as before.
	on V ip rule add pref 10 iif lo lookup 7 && on V ip rule add pref 20 lookup local && on V ip rule del pref 0 &&
		link_add p1 w1 V && link_add p2 w2 V && wait_for 30 on V ping -c1 -W1 -I 10.9.1.1 10.9.1.2
}

listening() { [ -n "$(on "$1" ss -Hltn "sport = :$2")" ]; }
packets() { on "$1" cat "/sys/class/net/$2/statistics/tx_packets"; }

# Sets VALUE to the figure that perftest prints. The server is at address A and receives the WRITEs.
write_bw() { # NAMESPACE DEV-A A DEV-B B BYTES COUNT COLUMN
	local server rc
	on "$1" ib_write_bw -F -m 4096 -d "$2" -x "$(gid_index "$2" "$3" "$1")" -s "$6" -n "$7" > /tmp/server 2>&1 &
	server=$!
	wait_for 60 listening "$1" 18515
	on "$1" timeout 200 ib_write_bw -F -m 4096 -d "$4" -x "$(gid_index "$4" "$5" "$1")" -s "$6" -n "$7" "$3" > /tmp/client 2>&1
	rc=$?
	[ $rc = 0 ] || kill $server
	wait $server
	VALUE=$(awk -v f="$8" '/^ *#bytes/ { getline; print $f }' /tmp/client)
	[ $rc = 0 ] && [[ $VALUE =~ [1-9] ]] || { echo "no figure: status $rc"; tail -n 5 /tmp/client; return 1; }
}

# Passes if the command succeeds and its packets went by the interface. A train of packets is one skb.
by() { # NAMESPACE INTERFACE COMMAND...
	local before
	before=$(packets "$1" "$2")
	"${@:3}" || return
	[ $(($(packets "$1" "$2") - before)) -ge 100 ] || { echo "packets did not go by $2"; return 1; }
}

round() { # NAME BYTES COUNT COLUMN
	by L lo write_bw L pl 10.9.2.1 pl 10.9.2.1 "${@:2}" && echo "$VALUE" >> "/tmp/lo.$1" || return
	by V w2 write_bw V p1 10.9.1.1 p2 10.9.1.2 "${@:2}" && echo "$VALUE" >> "/tmp/veth.$1"
}
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

compare() { # NAME BYTES COUNT COLUMN UNIT
	local n lo veth
	rm -f "/tmp/lo.$1" "/tmp/veth.$1"
	for ((n = 0; n < ROUNDS; n++)); do round "${@:1:4}" || return; done
	lo=$(median "/tmp/lo.$1") veth=$(median "/tmp/veth.$1")
	echo "# $1: lo $lo, veth $veth $5; ratio $(awk "BEGIN { printf \"%.2f\", $lo / $veth }"); lo:" \
		"$(paste -sd' ' "/tmp/lo.$1"), veth: $(paste -sd' ' "/tmp/veth.$1")" >> /tmp/figures
	awk "BEGIN { exit !($lo * 100 >= $veth * (100 - $TOLERANCE)) }"
}

ktap_header
{ load_modules && lo_up && veth_up; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
while read -r name bytes count column unit; do
	ktap_check "$name WRITEs: lo is as fast as a veth pair" compare "$name" "$bytes" "$count" "$column" "$unit"
done <<< "$TESTS"
cat /tmp/figures 2> /dev/null
ktap_end
