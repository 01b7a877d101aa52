#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# FLUSH and ATOMIC_WRITE by ibv_wr_flush() and ibv_wr_atomic_write() (rdma-core 45 and newer), and on the wire. Also
# checks that the tools of this rdma-core run with the provider that was built for it.
#
#	h1: roan1 v1 ======== v2 roan2 :h2	captured on v1
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
. "$HERE/packets/capture.sh"

operations() { # [-6]: relays the program's KTAP lines
	both 310 18620 "$PROGRAMS/flush -d $ADEV $1" "$PROGRAMS/flush -d $BDEV $1 -c $AIP" > /tmp/both.log
	ktap_relay $OUT_B flush $? "${1:+IPv6: }"
}

# tshark (at least to 4.4) decodes the BTH of a FLUSH only. FETH (selectivity and placement in its last byte), RETH and
# ICRC take 36 bytes. The program sends 43 FLUSHes of a range and one of a whole region.
flushes() { # FILE
	$TSHARK -r "$1" -Y 'infiniband.bth.opcode == 28' -T fields -e udp.payload 2> /dev/null | tr -d : |
		awk '{ n[length($0) / 2 " " substr($0, 25, 8)]++ }
			END { for (k in n) print n[k], k; exit !(n["36 00000001"] >= 43 && n["36 00000011"] >= 1) }'
}

devinfo() {
	a ibv_devinfo -v -d "$ADEV" > /tmp/devinfo && grep -q 'PORT_ACTIVE' /tmp/devinfo && grep -q 'transport:.*InfiniBand' /tmp/devinfo
}

ktap_header
[ -x "$PROGRAMS/flush" ] || { ktap_skip "flush" "this rdma-core has no ibv_wr_flush"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
one_by_one
echo "# $(readlink -f "$(ldd "$(command -v ibv_devinfo)" | awk '/libibverbs/ { print $3 }')")"
ktap_check "ibv_devinfo" devinfo
ktap_check "ibv_rc_pingpong" both 150 18515 "ibv_rc_pingpong -d $ADEV -g 0" "ibv_rc_pingpong -d $BDEV -g 0 $AIP"
ktap_check "ib_write_bw" both 150 18515 "ib_write_bw -F -d $ADEV -n 200" "ib_write_bw -F -d $BDEV -n 200 $AIP"
for v in 4 6; do
	P=/tmp/flush.pcap.$v
	capture $P
	operations "$([ $v = 4 ] || echo -6)"
	stop
	if ! command -v tshark > /dev/null; then
		ktap_skip "IPv$v: packets on the wire" "no tshark"
		continue
	fi
	ktap_check "IPv$v: tshark finds nothing malformed" decodes $P 400
	ktap_check "IPv$v: FLUSH and ATOMIC_WRITE were seen" seen $P 28 29
	ktap_check "IPv$v: FETH and RETH of each FLUSH" flushes $P
	ktap_check "IPv$v: ICRC of every packet" python3 "$HERE/packets/icrc.py" $P
done
ktap_end
