#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Real drivers on emulated adapters (NICS of run.sh): the stack segments GSO skbs above the driver, GRO aggregates
# packets in the receiver. Compares the bytes, and checks by counters that this happened.
#
#	h1: roan1 on v1, an adapter ==== a hub ==== v2, another adapter, with roan2 :h2
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"

counts() { echo "$(total sent_pkts) $(total sent_skbs) $(total rcvd_pkts) $(total rcvd_skbs) $(total rx_bad_icrc)"; }

# carry trains|single OPTIONS...: whether the receiver must get aggregated skbs or single packets. ACKs and small
# messages are single packets.
carry() {
	local rcvd=$1 before after
	shift
	before=$(counts)
	STRESS_BOTH="-k 18 $*" stress 300 -t rc -q 2 -w 32 -n 3 -l 100000 -o write,read -B || return
	after=$(counts)
	# shellcheck disable=SC2086 # numbers
	set -- $before $after
	echo "# sent $(($6 - $1)) packets in $(($7 - $2)) skbs, received $(($8 - $3)) in $(($9 - $4))" >&3
	[ "${10}" = "$5" ] && shaped trains $(($6 - $1)) $(($7 - $2)) && shaped "$rcvd" $(($8 - $3)) $(($9 - $4))
}

shaped() { # WHICH PACKETS SKBS
	case $1 in
	trains) [ $((4 * $2)) -ge $((5 * $3)) ] ;;
	single) [ "$2" = "$3" ] ;;
	esac
}

ktap_header
exec 3>&1
[ -n "${NICS:-}" ] || { ktap_skip "adapters" "run.sh was started without NICS"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
echo "# $(a ethtool -i v1 | head -n 1)"
ktap_check "IPv4: GRO aggregates packets" carry trains
ktap_check "IPv6: GRO aggregates packets" carry trains -6
a ethtool -K v1 gro off && b ethtool -K v2 gro off
ktap_check "without GRO packets arrive one by one" carry single
ktap_end
