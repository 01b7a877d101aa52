#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Makes two hosts and a cable, runs ib_write_bw, ib_send_lat and rping between them, and removes all of it at the end.
# Runs as root in a guest or in the running kernel; builds and boots nothing. demo.sh starts it and reads these lines:
#	@step TITLE			a step begins
#	@ok RESULT			it succeeded
#	@host NAME NETDEV ADDRESS ADDRESS6 MTU DEVICE STATE GID-INDEX
#	@result PROGRAM|WHAT IT DID|RESULT
#	@kernel RELEASE
#	@done				all steps succeeded; what follows removes the hosts
# All other lines are the programs' own output. A status other than 0: the step that began last failed.
REPO=${REPO:-$(readlink -f "$(dirname "$0")/../..")}
. "$REPO/selftests/vm/lib.sh"
# If libroan is not installed libibverbs loads the one in build/.
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

describe() { # HOST NETDEV ADDRESS ADDRESS6 DEVICE GID-INDEX
	local state mtu
	{ read -r state && read -r mtu; } < <(on "$1" cat "/sys/class/infiniband/$5/ports/1/state" "/sys/class/net/$2/mtu") || return
	echo "@host $1 $2 $3 $4 $mtu $5 ${state#*: } $6"
}

# pair NAME PORT "SERVER COMMAND" "CLIENT COMMAND": runs the server on h2 and the client on h1. The client's output goes
# to stdout and $table.
pair() {
	local server rc
	echo "@step $1 from h1 to h2"
	echo "# $4"
	# shellcheck disable=SC2086 # commands are word lists
	on h2 timeout 90 $3 > "$server_log" 2>&1 &
	server=$!
	# rping's server listens in rdma_cm, which ss does not show.
	[ "$2" != 0 ] && wait_for 20 on h2 sh -c "ss -Hltn 'sport = :$2' | grep -q ." || sleep 2
	# shellcheck disable=SC2086
	on h1 timeout 90 $4 2>&1 | tee "$table"
	rc=${PIPESTATUS[0]}
	[ "$rc" = 0 ] || { kill $server 2> /dev/null; echo "# status $rc; the server printed:"; cat "$server_log"; }
	wait $server 2> /dev/null
	return "$rc"
}

column() { awk -v n="$1" '$1 ~ /^[0-9]+$/ && NF > 4 { print $n }' "$table" | tail -n 1; }

report() { # PROGRAM "WHAT IT DID" RESULT
	echo "@ok $3"
	echo "@result $1|$2|$3"
}

echo "@kernel $(uname -r)"
echo "@step two hosts: namespaces h1 and h2, a cable, a device on each end"
if ip netns list | grep -q '^h[12]\b'; then
	echo "Network namespaces named h1 or h2 exist already. If nothing uses them: ip netns del h1; ip netns del h2"
	exit 1
fi
trap cleanup EXIT
load_modules && two_hosts || { echo "# the end of the kernel's log:"; dmesg | tail -n 5; exit 1; }
x=$(gid_index "$H1DEV" $H1IP h1) && y=$(gid_index "$H2DEV" $H2IP h2) || { echo "no GID for $H1IP or $H2IP"; exit 1; }
describe h1 v1 $H1IP $H1IP6 "$H1DEV" "$x" && describe h2 v2 $H2IP $H2IP6 "$H2DEV" "$y" || exit
echo "@ok $H1DEV and $H2DEV"

pair ib_write_bw 18515 "ib_write_bw -d $H2DEV -x $y -s 65536 -n 500 -F" "ib_write_bw -d $H1DEV -x $x -s 65536 -n 500 -F $H2IP" || exit
# perftest's MiB/s
report ib_write_bw "500 RDMA WRITEs of 64 KiB" "$(awk -v m="$(column 4)" 'BEGIN { printf "%.2f GB/s", m * 1048576 / 1e9 }')"
pair ib_send_lat 18516 "ib_send_lat -d $H2DEV -x $y -p 18516 -s 64 -n 500 -F" \
	"ib_send_lat -d $H1DEV -x $x -p 18516 -s 64 -n 500 -F $H2IP" || exit
report ib_send_lat "500 SENDs of 64 bytes each way" "$(printf '%.0f us one way (typical), 99 %% within %.0f us' "$(column 5)" "$(column 8)")"
pair rping 0 "rping -s -a $H2IP -C 5" "rping -c -a $H2IP -C 5 -v" || exit
report rping "connects by rdma_cm; READ, WRITE" "$(grep -c '^ping data' "$table") of 5 pings"
echo "@done"
