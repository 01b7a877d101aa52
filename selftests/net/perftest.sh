#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# perftest's programs over RC, UC and UD and their variants: that they finish and print a figure. The figure is not
# judged. ITER=N sets the iterations (default 100). QUICK=1 combines options instead of one run for each, and QUICK=2 has
# each program without options only.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
ITER=${ITER:-100}
PORT=18600

# Result lines start with the size and the number of iterations. The figures are inf or 0 if perftest cannot calibrate
# the cycle counter, which it reports: two programs that calibrate on one CPU at the same time disturb each other.
# Figures in MB/s are 0.00 if few small messages took long. The last figure is the rate, or a latency.
counted() {
	local figures=y
	! grep -q 'Correlation coefficient' "$1" || figures=
	awk -v figures=$figures '
		$1 ~ /^[0-9]+$/ && NF >= 4 { n++; if ($2 > 0) done++; if ($NF + 0 > 0 && $NF !~ /inf|nan/) good++ }
		END { exit !(n && done == n && (good == n || !figures)) }' "$1"
}

run() {
	local tool=$1
	shift
	if [[ " $* " = *" -R "* ]]; then
		cm_ordered
		tool="$ORDERED $tool"
	fi
	local common="-F -p $PORT $*"
	both 250 "$PORT" "$tool -d $ADEV $common" "$tool -d $BDEV $common $TARGET" || return
	counted $OUT_B && return
	tail -n 15 $OUT_B
	return 1
}

# Each run has its own port: the last one's is in TIME_WAIT.
t() { PORT=$((PORT + 1)); ktap_check "$*" run "$@"; }

ktap_header
needs_every_packet
# perftest divides by the "cpu MHz" value.
grep -q 'cpu MHz' /proc/cpuinfo || echo "# no cpu MHz in /proc/cpuinfo: figures may be inf"
pair_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
TARGET=$AIP

for op in write read send atomic; do
	t ib_${op}_bw -n "$ITER"
	t ib_${op}_lat -n "$ITER"
done
for op in write send; do
	t ib_${op}_bw -c UC -n "$ITER"
	t ib_${op}_lat -c UC -n "$ITER"
done
t ib_send_bw -c UD -n "$ITER"
t ib_send_lat -c UD -n "$ITER"

# The TCP handshake is on IPv4: perftest uses IPv6 for the GID only.
V6="--ipv6 -x $(gid_index "$ADEV" "$AIP6" "$([ "$LINK_TYPE" = roan ] && echo h1)")"

# Each option in a run of its own.
one_by_one() {
	local op mtu
	for op in write read send atomic; do
		t ib_${op}_bw -R -n "$ITER"
		t ib_${op}_lat -R -n "$ITER"
		[ $op = write ] || t ib_${op}_lat -e -n "$ITER"
		[ $op = write ] || t ib_${op}_bw -e -n "$ITER"
		t ib_${op}_bw -q 16 -n "$ITER"
		t ib_${op}_bw -b -n "$ITER"
		t ib_${op}_bw $V6 -n "$ITER"
		[ $op = atomic ] || t ib_${op}_bw -a -n 20
	done
	t ib_send_bw -c UD -R -n "$ITER"
	t ib_send_bw -c UD -e -n "$ITER"
	t ib_send_bw -c UD -b -n "$ITER"
	for op in write send; do
		t ib_${op}_lat -s 32 -n "$ITER"
		t ib_${op}_bw -c UC -b -n "$ITER"
	done
	for mtu in 256 512 1024 2048 4096; do
		for op in write read send; do
			t ib_${op}_bw -m $mtu -s 65536 -n "$ITER"
		done
		t ib_send_bw -c UD -m $mtu -s 256 -n "$ITER"
	done
}

# Each option with each program that has it, combined in half as many runs. The runs above had MTU 4096.
together() {
	local op
	t ib_write_bw -R -m 1024 -n "$ITER"
	t ib_read_bw -R -e -m 1024 -n "$ITER"
	t ib_send_bw -R -e -m 1024 -n "$ITER"
	t ib_write_lat -R -s 32 -n "$ITER"
	t ib_read_lat -R -e -s 32 -n "$ITER"
	t ib_send_lat -R -e -s 32 -n "$ITER"
	for op in write read send; do
		t ib_${op}_bw -q 16 -m 256 -s 65536 -n 20
		t ib_${op}_bw -b -m 512 $V6 -n "$ITER"
		t ib_${op}_bw -a -m 2048 -n 5
	done
	t ib_atomic_bw -R -e -n "$ITER"
	t ib_atomic_lat -R -e -n "$ITER"
	t ib_atomic_bw -q 16 -b $V6 -n "$ITER"
	t ib_write_bw -c UC -b -m 1024 -n "$ITER"
	t ib_send_bw -c UC -b -m 256 -n "$ITER"
	t ib_send_bw -c UD -R -n "$ITER"
	t ib_send_bw -c UD -e -b -m 256 -s 256 -n "$ITER"
	t ib_send_bw -c UD $V6 -m 1024 -s 1024 -n "$ITER"
}

case ${QUICK:-} in
2) ;;
1) together ;;
*) one_by_one ;;
esac
ktap_end
