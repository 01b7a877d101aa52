#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# features on one device, over IPv4 and IPv6: its lines are the tests. The paths have an MTU of 1024, or, where WIRE says a
# greater one of the wire, of 4096.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/pair.sh"
ktap_header
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
[ "$(wire_value mtu || echo 0)" -le 4096 ] || PATHS="-m 4096"
! wire_loses || PATHS="${PATHS:-} -L"
for o in "" -6; do
	# shellcheck disable=SC2086
	a timeout 290 "$PROGRAMS/features" -d "$ADEV" $o ${PATHS:-} > /tmp/features.out 2>&1
	ktap_relay /tmp/features.out features $? "${o:+IPv6: }"
done
ktap_end
