#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# rdma-core's own Python tests on one device. Passes if none fails and at least MIN_OK (94) pass.
#	pyverbs.sh [ROUNDS]	(default 1; 20 is the soak: each makes other random choices)
# NETDEV=KIND,KIND: on an interface without a MAC address instead of a veth: tun, wireguard, lo. On lo three cases are
# skipped: they call rdma_resolve_addr() for a multicast group. The route of a group leaves by lo, and for such a route
# the RDMA core (rdma_set_src_addr_rcu() in addr.c) of Linux 6.12 requires that the destination is an address of an
# interface: ENODEV, for any driver. net/interfaces/no_mac.sh shows that a group can be joined after rdma_bind_addr().
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/pair.sh"
ROUNDS=${1:-1} MIN_OK=${MIN_OK:-94} DIR=/tmp/pyverbs-tests
# shellcheck disable=SC2034 # wire_options.sh reads it
WIRE_SINGLE=y
PY=/usr/bin/python3	# pyverbs belongs to the distribution's interpreter
# The tests choose QP parameters at random and are skipped where those exceed the device: 119 to 123 of them pass.
# The round's number is the seed, so a round repeats its choices.
DRAW="import random, runpy, sys
random.seed(int(sys.argv.pop(1)))
runpy.run_path('$DIR/run_tests.py', run_name='__main__')"

one_round() {
	local ok bad skip rc
	# A Python warning would come between a test's name and its "ok".
	(cd $DIR && ROAN_NETDEV=$KIND a timeout 800 $PY -W ignore -c "$DRAW" "$1" --dev "$ADEV" --port 1 --gid "$GID" -v) > /tmp/pyverbs.log 2>&1
	rc=$?
	ok=$(grep -c '\.\.\. ok$' /tmp/pyverbs.log)
	bad=$(grep -cE '\.\.\. (FAIL|ERROR)$' /tmp/pyverbs.log)
	skip=$(grep -c '\.\.\. skipped' /tmp/pyverbs.log)
	echo "# round $1: $ok ok, $bad failed, $skip skipped, status $rc" >&3
	[ $rc = 0 ] && [ "$bad" = 0 ] && [ "$ok" -ge "$MIN_OK" ] && return 0
	grep -E '\.\.\. (FAIL|ERROR)$' /tmp/pyverbs.log
	grep -A 25 -E '^(FAIL|ERROR):' /tmp/pyverbs.log | head -n "${PYVERBS_LINES:-60}"
	tail -n 3 /tmp/pyverbs.log
	return 1
}

# One end on an interface without a MAC address. Both programs of a test run there, so its packets go by lo.
no_mac_up() { # KIND
	local dev=u1
	ADEV=$H1DEV AIP=$H1IP
	load_modules && ip netns add h1 && on h1 ip link set lo up || return
	case $1 in
	lo)	# the tests take the interface's first address, and rdma_cm refuses this one
		dev=lo
		on h1 ip addr del 127.0.0.1/8 dev lo && on h1 ip addr del ::1/128 dev lo || return ;;
	tun)	# it has a carrier while a program has it open
		modprobe -q tun
		on h1 python3 -c '
import fcntl, struct, time
f = open("/dev/net/tun", "r+b", buffering=0)
fcntl.ioctl(f, 0x400454ca, struct.pack("16sH22x", b"u1", 0x1001))
time.sleep(3600)' &
		HOLDER=$!
		wait_for 30 on h1 ip link show u1 || return ;;
	wireguard) on h1 ip link add u1 type wireguard || return ;;
	esac
	on h1 ip addr add $AIP/24 dev $dev && on h1 ip addr add $H1IP6/64 dev $dev nodad && on h1 ip link set $dev up &&
		link_add "$ADEV" $dev h1
}
no_mac_down() {
	rdma link del "$ADEV"
	[ -z "$HOLDER" ] || { kill "$HOLDER"; wait "$HOLDER"; }
	HOLDER=
	ip netns del h1
} > /dev/null 2>&1
HOLDER=

rounds() { # NAME
	GID=$(gid_index "$ADEV" "$AIP" "$([ "$LINK_TYPE" = roan ] && echo h1)")
	for ((i = 1; i <= ROUNDS; i++)); do
		ktap_check "$1 round $i" one_round "$i" || break
	done
	[ -z "${PYVERBS_LOG:-}" ] || cat /tmp/pyverbs.log
}

group_cases_not_on_lo() {
	sed -i 's/^    def test_rdmacm_async_\(ex_\|ex_leave_\)\?multicast_traffic(/    @__import__("unittest").skipIf(\
        __import__("os").environ["ROAN_NETDEV"] == "lo", "the RDMA core resolves no group on lo: ENODEV")\n&/' \
		$DIR/test_rdmacm.py
}

# Seconds that a guest may stand still.
patient() { sed -i 's/^POLL_CQ_TIMEOUT = .*/POLL_CQ_TIMEOUT = 100/' $DIR/utils.py && sed -i 's/timeout=15)/timeout=100)/' $DIR/base.py; }

ktap_header
exec 3>&1
[ -d /usr/share/doc/rdma-core/tests ] || { ktap_skip "pyverbs" "rdma-core's tests are not installed"; ktap_end; }
needs_every_packet
rm -rf $DIR && cp -r /usr/share/doc/rdma-core/tests $DIR && find $DIR -name '*.gz' -exec gunzip -f {} + && group_cases_not_on_lo && patient
[ ! -e /proc/sys/vm/nr_hugepages ] || echo 8 2> /dev/null > /proc/sys/vm/nr_hugepages	# s390x may have none
KIND=
for KIND in ${NETDEV//,/ }; do
	if no_mac_up "$KIND" > /tmp/setup.log 2>&1; then
		rounds "pyverbs on $KIND"
	else
		cat /tmp/setup.log; ktap_fail "set-up of $KIND"
	fi
	no_mac_down
done
[ -z "${NETDEV:-}" ] || ktap_end
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
rounds pyverbs
ktap_end
