#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tools/roan says what is so, changes what it is told to, and refuses the rest with a reason.
# shellcheck source=selftests/vm/lib.sh
. "$REPO/selftests/vm/lib.sh"
roan() { "$REPO/tools/roan" "$@" > /tmp/out 2>&1; }
says() { grep -Eq -- "$1" /tmp/out || { cat /tmp/out; return 1; }; }
# What a refusal is: status 1, the reason on stderr, no traceback.
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
		grep -Eq "^${f##*/} +$(cat "$f") +[^ ].*[a-z]" /tmp/out || { echo "${f##*/} is not explained"; return 1; }
		n=$((n + 1))
	done
	[ $n -gt 20 ]
}

set_changes() {
	roan cc set roan1 rpg_ai_rate=1G min_time_between_cnps=7 && [ "$(value rpg_ai_rate)" = 1000 ] &&
		[ "$(value min_time_between_cnps)" = 7 ]
}

# The second value is bad, so the first must not be written either.
nothing_changes() {
	refused "min_time_between_cnps: .*out of range: 0 to 131071 us" cc set roan1 rpg_ai_rate=50 min_time_between_cnps=131072 &&
		[ "$(value rpg_ai_rate)" = 1000 ]
}

sees_a_flow() {
	on h2 timeout 60 "$PROGRAMS/traffic" -d roan2 -k 1 &
	wait_for 5 on h2 sh -c 'ss -Hltn "sport = :18600" | grep -q .' || return
	on h1 timeout 60 "$PROGRAMS/traffic" -d roan1 -n 2 -z 4000 "$H2IP" > /tmp/flows &
	sleep 1
	roan watch roan1 -i 0.5 -c 2
	wait
	cat /tmp/out
	[ "$(awk '$1 ~ /^[0-9]+$/ && $2 > 0.01 { n++ } END { print n + 0 }' /tmp/out)" = 4 ]
}

names_trouble() {
	on h2 bash -c "echo junk > /dev/udp/$H1IP/4791"
	roan && says "trouble: .*rx_truncated 1"
}

ktap_header
load_modules && two_hosts || { ktap_fail "two hosts"; ktap_end; }
ktap_check "status names both devices" eval 'roan && says "^roan1: .*active" && says "^roan2: "'
ktap_check "every parameter is shown with its meaning" every_parameter_has_a_meaning
ktap_check "set writes, with units" set_changes
ktap_check "all or nothing" nothing_changes
ktap_check "a parameter that does not exist" refused "no parameter nonsense" cc set roan1 nonsense=1
ktap_check "a value that is no number" refused "'fast' is not a number" cc set roan1 rpg_ai_rate=fast
ktap_check "a device that does not exist" refused "no device roan9" cc show roan9
ktap_check "watch sees two flows, twice" sees_a_flow
ktap_check "status names what went wrong" names_trouble
if command -v gnuplot > /dev/null; then
	printf 'time_ms,a_gbps,queue_kb\n0,1,5\n1,2,9\n' > /tmp/s.csv
	ktap_check "plot draws" eval 'roan plot /tmp/s.csv -o /tmp/s.svg && grep -q "</svg>" /tmp/s.svg'
else
	ktap_skip "plot draws" "no gnuplot"
fi
ktap_check "plot refuses what is no series" eval 'echo x > /tmp/x.csv; refused "has no time_ms" plot /tmp/x.csv -o /tmp/x.svg'
ktap_end
