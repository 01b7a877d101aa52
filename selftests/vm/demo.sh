#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two hosts, one cable, three well-known programs between them, whose own tables are shown. Needs root; leaves nothing.
REPO=${REPO:-$(readlink -f "$(dirname "$0")/../..")}
. "$REPO/selftests/vm/lib.sh"
[ "$(id -u)" = 0 ] || { echo "demo: needs root"; exit 1; }
if [ ! -e /etc/libibverbs.d/roan.driver ]; then
	echo "demo: the provider is not installed (make install)"
	exit 1
fi
trap two_hosts_down EXIT
load_modules && two_hosts || { echo "demo: no two hosts"; dmesg | tail -n 5; exit 1; }
rdma link; on h1 rdma link show "$H1DEV/1"
shown=()
pair() { # NAME COMMAND...: the same command as server on h2 and as client on h1
	local name=$1 server rc
	shift
	echo; echo "== $name: h1 -> h2"
	on h2 timeout 60 "$@" -d "$H2DEV" > /tmp/demo.server 2>&1 &
	server=$!
	sleep 2
	on h1 timeout 60 "$@" -d "$H1DEV" "$H2IP"
	rc=$?
	kill $server 2> /dev/null
	wait $server 2> /dev/null
	[ $rc = 0 ] && shown+=("$name")
}
pair ib_write_bw ib_write_bw -x "$(gid_index "$H1DEV" $H1IP h1)" -s 65536 -n 500 -F
pair ib_send_lat ib_send_lat -x "$(gid_index "$H1DEV" $H1IP h1)" -s 64 -n 500 -F
echo; echo "== rping: h1 -> h2"
on h2 timeout 60 rping -s -a $H2IP -C 5 > /tmp/demo.server 2>&1 &
sleep 2
on h1 timeout 60 rping -c -a $H2IP -C 5 -v && shown+=(rping)
wait
echo
echo "shown over $LINK_TYPE on $(uname -r): ${shown[*]:-nothing}"
[ ${#shown[@]} = 3 ]
