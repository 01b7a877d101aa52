#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs a program that breaks every rule it can (hostile.c) beside a well-behaved one, which must not be affected.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../pair.sh"

honest() {
	local n=0
	while [ ! -e /tmp/hostile.done ]; do
		stress 300 -t rc -q 1 -w 16 -n 4 -l 5000 || return
		n=$((n + 1))
	done
	echo "$n rounds"
	[ $n -gt 0 ]
}

# After the end of the hostile program it has no object. Of all devices: `rdma` takes QPs by link, others by dev.
nothing_held() {
	local o held
	for o in qp cq mr pd srq; do
		held=$(a rdma resource show $o) || return
		! grep "comm hostile" <<< "$held" || { echo "a $o is left"; return 1; }
	done
}

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "hostile" "needs roan's rings"; ktap_end; }
[ -x "$PROGRAMS/hostile" ] || { ktap_fail "hostile was built"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
rm -f /tmp/hostile.done
honest > /tmp/honest.log 2>&1 &
honest=$!
a timeout -k 5 520 "$PROGRAMS/hostile" -d "$ADEV" > /tmp/hostile.log 2>&1
ktap_relay /tmp/hostile.log hostile $?
touch /tmp/hostile.done
ktap_check "all objects of the hostile program are destroyed" nothing_held
if wait $honest; then
	ktap_pass "a well-behaved pair on the same device is not affected"
else
	sed 's/^/# /' /tmp/honest.log | tail -n 20
	ktap_fail "a well-behaved pair on the same device is not affected"
fi
ktap_end
