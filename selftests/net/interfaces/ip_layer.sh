#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the IP layer of the hosts does to roan's packets: IPsec in transport mode. Data is compared; what is refused is
# counted. ONLY=CASE,CASE: these groups only.
#
#	h1: roan1 v1 10.7.0.1 ======== 10.7.0.2 v2 roan2 :h2	MTU 4200
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/../../verbs/pair.sh"

has() { [[ -z ${ONLY:-} || ,$ONLY, == *,$1,* ]]; } # CASE

# group CASE SETUP: false if the case is not asked for or its set-up failed (reported). Status 4 of SETUP skips it.
group() {
	has "$1" || return
	"$2" > /tmp/setup.log 2>&1
	case $? in
	0) return 0 ;;
	4) ktap_skip "$1" "$(tail -n 1 /tmp/setup.log)" ;;
	*) sed 's/^/# /' /tmp/setup.log; ktap_fail "$1: set-up" ;;
	esac
	return 1
}

total() { echo $(($(counter "$ADEV" "$1") + $(counter "$BDEV" "$1"))); } # COUNTER: of both ends
refused() { # packets that were refused or lost in a host, at both ends
	local c s=0
	for c in rx_policy rx_wrong_peer rx_no_device rx_unknown_qp rx_bad_icrc tx_no_route tx_dropped retry_exceeded_err; do
		s=$((s + $(total $c)))
	done
	echo $s
}
# carry [OPTIONS OF BOTH ENDS]: every byte is compared; nothing is refused.
carry() {
	local before rcvd
	before=$(refused) rcvd=$(total rcvd_pkts)
	STRESS_BOTH="$*" stress 100 -t rc -q 2 -w 16 -n 2 -l 40000 -B || return
	echo "received $(($(total rcvd_pkts) - rcvd)) packets, refused $(($(refused) - before))"
	[ "$(refused)" = "$before" ] && [ "$(total rcvd_pkts)" -gt $((rcvd + 100)) ]
}
# times_out [OPTIONS OF THE CLIENT]: a WRITE from B fails with IBV_WC_RETRY_EXC_ERR (12).
times_out() {
	both 60 18600 "ib_write_bw -F -d $ADEV -p 18600 -n 5 -u 10" "ib_write_bw -F -d $BDEV -p 18600 -n 5 -u 10 $* $AIP" > /tmp/both.log 2>&1 &&
		{ echo "the WRITEs completed"; return 1; }
	grep -q 'status 12' $OUT_B || { cat /tmp/both.log; return 1; }
}

# refused_at_rtr BYTES [OPTIONS OF BOTH ENDS]: a QP with path MTU 4096 is not connected, the log has the packet length; it has sent nothing.
refused_at_rtr() {
	local bytes=$1 sent
	shift
	sent=$(total sent_pkts)
	dmesg -C
	STRESS_BOTH="$*" stress 60 -t rc -q 1 -w 4 -n 1 && { echo "connected"; return 1; }
	dmesg
	dmesg | grep -q "path MTU 4096 needs packets of $bytes bytes, the route to .* takes" && [ "$(total sent_pkts)" = "$sent" ]
}

# ---- IPsec ----

# One direction of ESP in transport mode for UDP port 4791, at both ends.
esp() { # FROM TO SPI SENDER RECEIVER
	local end
	for end in a b; do
		$end ip xfrm state add src "$1" dst "$2" proto esp spi "$3" mode transport \
			aead 'rfc4106(gcm(aes))' 0x0123456789abcdef0123456789abcdef01234567 128 || return
	done
	"$4" ip xfrm policy add src "$1" dst "$2" proto udp dport 4791 dir out tmpl src "$1" dst "$2" proto esp mode transport &&
		"$5" ip xfrm policy add src "$1" dst "$2" proto udp dport 4791 dir in tmpl src "$1" dst "$2" proto esp mode transport
}
ipsec_up() {
	modprobe -q -a esp4 esp6 gcm aesni_intel seqiv echainiv
	a ip xfrm state count 2> /dev/null || { echo "the kernel has no IPsec"; return 4; }
	esp "$AIP" "$BIP" 0x1001 a b && esp "$BIP" "$AIP" 0x1002 b a && esp "$AIP6" "$BIP6" 0x1003 a b && esp "$BIP6" "$AIP6" 0x1004 b a
}
ipsec_down() {
	local end
	for end in a b; do $end ip xfrm policy flush; $end ip xfrm state flush; done
}
on_wire() { tcpdump -r /tmp/wire.pcap "$1" 2> /dev/null | wc -l; } # FILTER
# Nothing of the RDMA traffic is readable between the hosts.
encrypted() {
	local pid rc
	"${A[@]}" tcpdump -i v1 -U -s 96 -w /tmp/wire.pcap > /tmp/wire.log 2>&1 &
	pid=$!
	wait_for 30 grep -q listening /tmp/wire.log || return
	carry
	rc=$?
	kill $pid
	wait $pid
	echo "packets: $(on_wire esp) encrypted, $(on_wire "udp port 4791") RoCE"
	[ $rc = 0 ] && [ "$(on_wire esp)" -gt 50 ] && [ "$(on_wire "udp port 4791")" = 0 ]
}
# A's packets in the clear: B's policy wants ESP.
in_the_clear() {
	local before
	a ip xfrm policy delete src "$AIP" dst "$BIP" proto udp dport 4791 dir out || return
	before=$(counter "$BDEV" rx_policy)
	times_out && [ "$(counter "$BDEV" rx_policy)" -gt "$before" ]
}

ktap_header
[ "$LINK_TYPE" = roan ] || { ktap_skip "IP layer" "needs roan's counters"; ktap_end; }
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }

if group ipsec ipsec_up; then
	ktap_check "IPsec: data of many operations, nothing readable on the wire" encrypted
	# ESP takes up to 37 bytes: 4166 of 4200 are left. A packet with 4096 bytes of data has 4160 bytes in IPv4, 4180 in IPv6.
	ktap_check "IPsec, IPv6: path MTU 4096 is refused at RTR and logged, as ESP leaves 4166 bytes" refused_at_rtr 4180 -6
	ktap_check "IPsec, IPv6: path MTU 2048: data of many operations" carry -6 -m 2048
	ktap_check "IPsec: packets in the clear are refused and counted, the sender gets a retry error" in_the_clear
	ipsec_down
fi
ktap_end
