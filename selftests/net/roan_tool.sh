#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tools/roan shows the state, changes settings, and refuses invalid requests with a reason.
# shellcheck source=selftests/vm/lib.sh
. "$REPO/selftests/vm/lib.sh"
roan() { "$REPO/tools/roan" "$@" > /tmp/out 2>&1; }
says() { grep -Eq -- "$1" /tmp/out || { cat /tmp/out; return 1; }; }
# refused: status 1, the reason on stderr, no traceback.
refused() { # REASON ARGS...
	local why=$1
	shift
	roan "$@" && return 1
	says "^roan: .*$why"
}
value() { cat "/sys/class/infiniband/roan1/ports/1/cc_param/$1"; }

every_parameter_has_a_meaning() {
	local f n=0
	roan cc show roan1 || return
	for f in /sys/class/infiniband/roan1/ports/1/cc_param/*; do
		grep -Eq "^${f##*/} +$(cat "$f") +[^ ].*[a-z]" /tmp/out || { echo "${f##*/} has no explanation"; return 1; }
		n=$((n + 1))
	done
	[ $n -gt 20 ]
}

# describe.json has the parameters and counters of this module, no others, each with unit and meaning.
description_is_the_modules() {
	python3 - "$REPO/tools" <<- 'END'
		import os, sys
		sys.path.insert(0, sys.argv[1])
		import roan_describe
		port = "/sys/class/infiniband/roan1/ports/1"
		for folder, entries in ("cc_param", roan_describe.parameters()), ("hw_counters", roan_describe.counters()):
		    names = {e["name"] for e in entries if e["unit"] and e["meaning"]}
		    there = set(os.listdir(os.path.join(port, folder))) - {"lifespan"}
		    if names != there:
		        sys.exit("%s: %s" % (folder, sorted(names ^ there)))
	END
}

# The kernel accepts both ends of each range, and refuses values beyond it and non-numbers; a refused write changes
# nothing.
every_range_is_kept() {
	roan cc show roan1 || return
	python3 - /sys/class/infiniband/roan1/ports/1/cc_param <<- 'END'
		import errno, os, re, sys
		def write(name, text):
		    try:
		        with open(os.path.join(sys.argv[1], name), "w") as f:
		            f.write(str(text))
		    except OSError as e:
		        return e.errno
		    return 0
		def value(name):
		    return int(open(os.path.join(sys.argv[1], name)).read())
		ranges = re.findall(r"^(\w+) .* (\d+)\.\.(\d+) ", open("/tmp/out").read(), re.M)
		bad = [] if len(ranges) > 40 else ["%d ranges" % len(ranges)]
		for name, low, high in ((n, int(l), int(h)) for n, l, h in ranges):
		    was = value(name)
		    for text in [high + 1, 2**32] + ([low - 1] if low else []):
		        if write(name, text) != errno.ERANGE or value(name) != was:
		            bad.append("%s=%s" % (name, text))
		    for text in ("much", "-1", "1.5"):
		        if write(name, text) != errno.EINVAL or value(name) != was:
		            bad.append("%s=%s" % (name, text))
		    for text in (low, high, was):
		        if write(name, text) or value(name) != text:
		            bad.append("%s=%s" % (name, text))
		print(len(ranges), "ranges; wrong:", *bad)
		sys.exit(bool(bad))
	END
}

set_changes() {
	roan cc set roan1 rpg_ai_rate=1G min_time_between_cnps=7 && [ "$(value rpg_ai_rate)" = 1000 ] &&
		[ "$(value min_time_between_cnps)" = 7 ]
}

# Each algorithm has its own values of the DCQCN sender: those named with one are its own, wherever they stand.
values_are_the_algorithms() {
	roan cc set roan1 rpg_ai_rate=77 algo=dcqcn-mlx && [ "$(value rpg_ai_rate)" = 77 ] &&
		roan cc set roan1 algo=dcqcn && [ "$(value rpg_ai_rate)" = 1000 ]
}

# What is no parameter of the DCQCN sender is one value, whatever the device's algorithm is and becomes.
values_are_the_devices() {
	local algo rc=0
	roan cc set roan1 cnp_dscp=46 min_time_between_cnps=9 window_max=640 swift_target_us=99 rpg_ai_rate=40 || return
	for algo in none dcqcn-mlx swift dcqcn; do
		roan cc set roan1 algo=$algo || return
		echo "$algo: $(value cnp_dscp) $(value min_time_between_cnps) $(value window_max) $(value swift_target_us)"
		[ "$(value cnp_dscp) $(value min_time_between_cnps) $(value window_max) $(value swift_target_us)" = "46 9 640 99" ] ||
			rc=1
	done
	roan cc set roan1 cnp_dscp=48 min_time_between_cnps=50 window_max=0 swift_target_us=150 rpg_ai_rate=1000 && return $rc
}

# The second value is invalid, so the first must not be written.
nothing_changes() {
	refused "min_time_between_cnps: .*out of range: 0 to 131071 us" cc set roan1 rpg_ai_rate=50 min_time_between_cnps=131072 &&
		[ "$(value rpg_ai_rate)" = 1000 ]
}

# A QP whose program chose an algorithm, and changes by the administrator. qp NAME...: prints these attributes of the
# only RC QP
qp() {
	rdma -j -dd resource show qp link roan1/1 | python3 -c '
import json, sys
print(*[q.get(n, q.get("drv_" + n)) for q in json.load(sys.stdin) if q["type"] == "RC" for n in sys.argv[1:]])' "$@"
}
flow() { # OPTIONS...: starts traffic in the background, until end_flow
	on h2 timeout 300 "$PROGRAMS/traffic" -d roan2 -k 1 &
	wait_for 60 on h2 sh -c 'ss -Hltn "sport = :18600" | grep -q .' || return
	ip netns exec h1 timeout 300 "$PROGRAMS/traffic" -d roan1 -z 280000 "$@" "$H2IP" > /tmp/flows 2>&1 & CLIENT=$!	# not on(): kill must reach it
	wait_for 60 is_sending roan1
}
moved() { # LINES: so many lines of roan watch show a QP with acknowledged data
	[ "$(awk '$1 ~ /^[0-9]+$/ && $2 > 0 { n++ } END { print n + 0 }' /tmp/out)" = "$1" ]
}
both_move() { roan watch roan1 -i 0.5 -c 1 && moved 2; }
both_move_twice() { roan watch roan1 -i 1 -c 2 && moved 4; }
sees_two_flows() { # wait until both flows have traffic: a busy host needs time to create them
	local rc
	flow -n 2 && wait_for 60 both_move && in_three_attempts both_move_twice
	rc=$?
	cat /tmp/out
	end_flow
	return $rc
}
end_flow() { kill $CLIENT; wait; }
program_chooses() {
	local rc qpn said window
	flow -c swift || return
	read -r qpn window said <<< "$(qp lqpn cc_window cc cc_own)"
	echo "$said window $window"
	[ "$said" = "swift 1" ] && [ "$window" -gt 0 ] || { end_flow; return 1; }
	roan qp roan1 "$qpn" algo=device && [ "$(qp cc cc_own cc_window)" = "dcqcn 0 0" ]
	rc=$?
	cat /tmp/out
	end_flow
	return $rc
}
environment_chooses() {
	local rc
	ROAN_CC=mlx flow && [ "$(qp cc cc_own)" = "dcqcn-mlx 1" ]
	rc=$?
	end_flow
	# Without a name that exists the program gets no QP.
	! ROAN_CC=fastest on h1 timeout 100 ibv_rc_pingpong -d roan1 > /tmp/flows 2>&1 &&
		grep "Couldn't create QP" /tmp/flows && return $rc
	cat /tmp/flows
	return 1
}
sent() { on h1 cat /sys/class/net/v1/statistics/tx_bytes; }
administrator_caps() { # 20 Mbit/s are 2.5 MB/s: the upper bound is strict, the lower one allows for a busy machine
	local qpn began from bytes ms rc
	flow || return
	qpn=$(qp lqpn)
	[ "$(qp rate_kbps)" = None ] || { echo "limited without a reason"; end_flow; return 1; }
	roan qp roan1 "$qpn" cap=20M && [ "$(qp cap_kbps rate_kbps)" = "20000 20000" ] || { cat /tmp/out; end_flow; return 1; }
	sleep 0.3
	roan watch roan1 -i 0.5 -c 1 && says "^ *$qpn +[0-9.]+ +0.020 "
	rc=$?
	began=$(date +%s%N) && from=$(sent) && sleep 1 && bytes=$(($(sent) - from)) ms=$((($(date +%s%N) - began) / 1000000))
	echo "$bytes bytes in $ms ms"
	[ $bytes -lt $((5000 * ms)) ] || rc=1
	roan qp roan1 "$qpn" cap=0.1k && [ "$(qp cap_kbps)" = 1 ] || { echo "cap=0.1k: $(qp cap_kbps)"; rc=1; }
	roan qp roan1 "$qpn" cap=0 && [ "$(qp cap_kbps rate_kbps)" = "0 0" ] || rc=1
	refused "no algorithm 'fastest'" qp roan1 "$qpn" algo=fastest && refused "is not a rate" qp roan1 "$qpn" cap=much &&
		refused "is not a rate" qp roan1 "$qpn" cap=-1 && refused "is not a rate" qp roan1 "$qpn" cap=inf || rc=1
	end_flow
	return $rc
}

# The index printed first is that of the IPv4 address, and perftest's -x accepts it.
names_gid_index() {
	local index
	roan && index=$(sed -n "/^roan1:/,/^roan2:/s/^ *GID index \([0-9]*\): ${H1IP//./\\.}\(,.*\)*$/\1/p" /tmp/out)
	[ -n "$index" ] && [ "$index" = "$(gid_index roan1 "$H1IP" h1)" ] || { cat /tmp/out; return 1; }
}
names_trouble() {
	on h2 bash -c "echo junk > /dev/udp/$H1IP/4791"
	roan && says "trouble: .*rx_truncated 1"
}

# A drop of any kind is shown, and each NAK.
trouble_has_all_drops() {
	python3 - "$REPO/tools" <<- 'END'
		import importlib.machinery, importlib.util, sys
		sys.path.insert(0, sys.argv[1])
		import roan_describe
		loader = importlib.machinery.SourceFileLoader("roan", sys.argv[1] + "/roan")
		tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("roan", loader))
		loader.exec_module(tool)
		words = ("drop", "NAK", "error", "retransmi", "acknowledge nothing")
		fine = ("sent_pkts", "roce_adp_retrans_to", "rx_early_kept")
		missing = [c["name"] for c in roan_describe.counters()
			   if any(w in c["meaning"] for w in words) and c["name"] not in fine and not tool.TROUBLE.match(c["name"])]
		sys.exit("not in the line: " + ", ".join(missing) if missing else 0)
	END
}

ktap_header
load_modules && two_hosts || { ktap_fail "two hosts"; ktap_end; }
ktap_check "status shows both devices" eval 'roan && says "^roan1: .*active" && says "^roan2: "'
ktap_check "status shows the GID index of the address" names_gid_index
ktap_check "every parameter is shown with its meaning" every_parameter_has_a_meaning
ktap_check "describe.json describes this module" description_is_the_modules
ktap_check "the kernel enforces every range" every_range_is_kept
ktap_check "cc set writes values with units" set_changes
ktap_check "cc set gives values to the algorithm that it sets" values_are_the_algorithms
ktap_check "the other parameters survive a change of the algorithm" values_are_the_devices
ktap_check "cc set with one invalid value changes nothing" nothing_changes
ktap_check "an unknown parameter is refused" refused "no parameter nonsense" cc set roan1 nonsense=1
ktap_check "a value that is not a number is refused" refused "'fast' is not a number" cc set roan1 rpg_ai_rate=fast
ktap_check "an unknown device is refused" refused "no device roan9" cc show roan9
ktap_check "watch shows two flows, twice" sees_two_flows
ktap_check "a program chooses swift for its QP, the administrator resets it to the device's algorithm" program_chooses
ktap_check "ROAN_CC chooses the algorithm for an unmodified program" environment_chooses
ktap_check "a QP's rate is capped, shown by watch, and uncapped" administrator_caps
ktap_check "an unknown QP is refused" refused "no such queue pair" qp roan1 9999999 algo=none
ktap_check "QP 1 has no congestion control" eval 'refused "the GSI queue pair has no" qp roan1 1 algo=none && refused "the GSI queue pair has no" qp roan1 1 cap=1G'
ktap_check "status shows error counters" names_trouble
ktap_check "each counter of drops and NAKs is one of them" trouble_has_all_drops
if command -v gnuplot > /dev/null; then
	printf 'time_ms,a_gbps,queue_kb\n0,1,5\n1,2,9\n' > /tmp/s.csv
	ktap_check "plot draws" eval 'roan plot /tmp/s.csv -o /tmp/s.svg && grep -q "</svg>" /tmp/s.svg'
else
	ktap_skip "plot draws" "no gnuplot"
fi
ktap_check "plot refuses a file that is not a time series" eval 'echo x > /tmp/x.csv; refused "has no time_ms" plot /tmp/x.csv -o /tmp/x.svg'
ktap_end
