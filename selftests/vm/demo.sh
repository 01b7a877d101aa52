#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Demo: two hosts (namespaces) joined by a veth run ib_write_bw, ib_send_lat and rping and show their output; the last
# line is a summary. Runs in a guest, or as root in the running kernel (make demo HOST=1), where it removes everything
# it made.
REPO=${REPO:-$(readlink -f "$(dirname "$0")/../..")}
. "$REPO/selftests/vm/lib.sh"
[ "$(id -u)" = 0 ] || { echo "demo: needs root"; exit 1; }
# If the provider is not installed, point libibverbs to the one in build/.
[ -e /etc/libibverbs.d/roan.driver ] || export IBV_DRIVERS=$REPO/build/provider/libroan
table=$(mktemp) server_log=$(mktemp)
loaded=
[ -e "/sys/module/$LINK_TYPE" ] || loaded=$LINK_TYPE
# shellcheck disable=SC2317 # called by the trap
cleanup() {
	two_hosts_down
	[ "$loaded" != roan ] || rmmod roan 2> /dev/null
	rm -f "$table" "$server_log"
}
trap cleanup EXIT
if ip netns list | grep -q '^h[12]\b'; then
	trap - EXIT
	echo "demo: there are namespaces named h1 or h2 here already"
	exit 1
fi
echo "== two hosts (network namespaces h1 and h2) and a cable (veth)"
load_modules && two_hosts || { echo "demo: no two hosts"; dmesg | tail -n 5; exit 1; }
on h1 rdma link show "$H1DEV/1"
on h2 rdma link show "$H2DEV/1"

# pair NAME PORT "SERVER COMMAND" "CLIENT COMMAND": the server on h2, the client on h1. The client's output is printed
# and saved in $table.
pair() {
	local server rc
	echo; echo "== $1, h1 to h2: $4"
	# shellcheck disable=SC2086 # commands are word lists
	on h2 timeout 90 $3 > "$server_log" 2>&1 &
	server=$!
	# rping's server listens in rdma_cm, which ss does not show: wait 2 s instead.
	[ "$2" != 0 ] && wait_for 20 on h2 sh -c "ss -Hltn 'sport = :$2' | grep -q ." || sleep 2
	# shellcheck disable=SC2086
	on h1 timeout 90 $4 2>&1 | tee "$table"
	rc=${PIPESTATUS[0]}
	[ "$rc" = 0 ] || { kill $server 2> /dev/null; echo "-- the server said:"; cat "$server_log"; }
	wait $server 2> /dev/null
	return "$rc"
}

result() { awk -v n="$1" '$1 ~ /^[0-9]+$/ && NF > 4 { print $n }' "$table" | tail -n 1; }

x=$(gid_index "$H1DEV" $H1IP h1) y=$(gid_index "$H2DEV" $H2IP h2)
pair ib_write_bw 18515 "ib_write_bw -d $H2DEV -x $y -s 65536 -n 500 -F" "ib_write_bw -d $H1DEV -x $x -s 65536 -n 500 -F $H2IP" || exit
said="RDMA writes of 64 KiB ($(result 4) MiB/s)"
pair ib_send_lat 18516 "ib_send_lat -d $H2DEV -x $y -p 18516 -s 64 -n 500 -F" \
	"ib_send_lat -d $H1DEV -x $x -p 18516 -s 64 -n 500 -F $H2IP" || exit
said="$said, sends of 64 bytes (typically $(result 5) us)"
pair rping 0 "rping -s -a $H2IP -C 5" "rping -c -a $H2IP -C 5 -v" || exit
echo
echo "Shown: between two hosts, over $LINK_TYPE on Linux $(uname -r): $said, and rping over rdma_cm."
