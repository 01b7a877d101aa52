#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# features on one device, over IPv4 and IPv6: its lines are the tests.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/pair.sh"
ktap_header
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
for o in "" -6; do
	# shellcheck disable=SC2086
	a timeout 140 "$PROGRAMS/features" -d "$ADEV" $o > /tmp/features.out 2>&1
	rc=$?
	while read -r line; do
		case $line in
		"not ok "*) ktap_fail "${o:+IPv6: }${line#*- }" ;;
		"ok "*) ktap_pass "${o:+IPv6: }${line#*- }" ;;
		FAIL*) echo "# $line" ;;
		esac
	done < /tmp/features.out
	grep -q '^1\.\.' /tmp/features.out || ktap_fail "features ran to its end" "status $rc"
done
ktap_end
