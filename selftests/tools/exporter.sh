#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What Prometheus gets: `roan exporter` by HTTP and as a text file, checked by promtool, and node_exporter's infiniband
# collector, all with traffic. The rules of tools/monitoring raise each alert, and dashboard and rules use only metrics
# that exist. promtool and node_exporter are unpacked in build/unpacked by tools/setup, or installed.
#
#	h1: roan1 v1 ======== v2 roan2 :h2	exporters in the first namespace
#
#	exporter.sh [static]	static: only the part that needs no kernel module
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
PATH=$PATH:$REPO/build/unpacked/prometheus/usr/bin:$REPO/build/unpacked/prometheus-node-exporter/usr/bin
MONITORING=$REPO/tools/monitoring
PORT=/sys/class/infiniband/roan1/ports/1

roan() { "$REPO/tools/roan" "$@"; }
every_alert_has_a_case() {
	diff <(sed -n 's/.*alert: //p' "$MONITORING/roan.rules.yml" | sort) <(sed -n 's/^ *alertname: //p' "$HERE/roan.rules.test.yml" | sort -u) &&
		diff <(sed -n 's/.*alert: //p' "$MONITORING/roan.rules.yml" | sort) <(sed -n 's/.*alertname: \(.*\), exp_alerts: \[\]}$/\1/p' "$HERE/roan.rules.test.yml" | sort)
}
dashboard() { python3 "$HERE/dashboard.py" "$@"; }
dashboard_expressions() { # the variables are replaced, and promtool parses the result
	dashboard rules > /tmp/dashboard.yml && [ "$(grep -c expr: /tmp/dashboard.yml)" -gt 12 ] && promtool check rules /tmp/dashboard.yml
}

get() { # URL FILE [ACCEPT]
	python3 -c 'import sys, urllib.request as u; sys.stdout.buffer.write(u.urlopen(u.Request(sys.argv[1], headers={"Accept": sys.argv[2]}), timeout=60).read())' "$1" "${3:-text/plain}" > "$2"
}
scrape() { get http://127.0.0.1:9791/metrics "$@"; }
# value FILE METRIC LABELS...: of the only sample that has these labels, each written as in the file
value() {
	local file=$1 lines
	lines=$(grep "^$2[{ ]" "$file")
	shift 2
	for label; do lines=$(grep -F "$label" <<< "$lines"); done
	[ "$(wc -l <<< "$lines")" = 1 ] && echo "${lines##* }"
}
more() { python3 -c 'import sys; a, b = map(float, sys.argv[1:]); print(a, b); sys.exit(not a > b)' "$@"; }

start_flow() {
	on h2 timeout 900 "$PROGRAMS/traffic" -d roan2 -k 1 > /dev/null 2>&1 & SERVER=$!
	wait_for 60 on h2 sh -c 'ss -Hltn "sport = :18600" | grep -q .' || return
	ip netns exec h1 "$PROGRAMS/traffic" -d roan1 -z 800000 -q 4 $H2IP > /tmp/flow 2>&1 & CLIENT=$!
	wait_for 60 sh -c "[ \$(cat $PORT/hw_counters/sent_pkts) -gt 1000 ]"
}
start_exporter() {
	roan exporter --top 1 > /tmp/exporter.log 2>&1 & EXPORTER=$!
	wait_for 60 scrape /tmp/m1 || { cat /tmp/exporter.log; return 1; }
}
counters_move() {
	scrape /tmp/m1 && sleep 1 && scrape /tmp/m2 || return
	for metric in roan_sent_bytes_total roan_sent_packets_total roan_rcvd_packets_total; do
		more "$(value /tmp/m2 $metric 'device="roan1"')" "$(value /tmp/m1 $metric 'device="roan1"')" || return
	done
	[ "$(value /tmp/m2 roan_port_active 'device="roan2"')" = 1.0 ]
}
queue_pairs_move() { # --top 1: the flow's sender or receiver; its owner is the program
	local info
	info=$(grep '^roan_qp_info{' /tmp/m2)
	echo "$info"
	[ "$(wc -l <<< "$info")" = 1 ] && grep -q 'owner="traffic/' <<< "$info" || return
	more "$(awk '/^roan_qp_(acknowledged|executed)_packets_total/ { n += $2 } END { print n + 0 }' /tmp/m2)" 100 &&
		more "$(awk '/^roan_rtt_seconds.*device="roan1"/ { print $2; exit }' /tmp/m2)" 0 &&
		[ "$(awk '/^roan_queue_pairs{/ { n += $2 } END { print n }' /tmp/m2)" -ge 2 ]
}
times_are_counted() { # METRIC LABELS...: the count rises; the sum is that of times below a second
	local sum count name=$1
	shift
	more "$(value /tmp/m2 "${name}_count" 'device="roan1"' "$@")" "$(value /tmp/m1 "${name}_count" 'device="roan1"' "$@")" || return
	count=$(value /tmp/m2 "${name}_count" 'device="roan1"' "$@") sum=$(value /tmp/m2 "${name}_sum" 'device="roan1"' "$@")
	more "$count" "$sum" && more "$sum" 0 && [ "$(value /tmp/m2 "${name}_bucket" 'device="roan1"' 'le="+Inf"' "$@")" = "$count" ]
}
drops_have_a_reason() {
	on h2 bash -c "echo junk > /dev/udp/$H1IP/4791"
	scrape /tmp/m3 && [ "$(value /tmp/m3 roan_dropped_packets_total 'device="roan1"' 'reason="truncated"' 'direction="received"')" = 1.0 ]
}
every_counter_is_there() { # and has a meaning
	local n
	n=$(grep '^roan_[a-z_]*{.*device="roan1"' /tmp/m2 | grep -vcE '^roan_(qp_|rtt_seconds|round_trip_|request_|queue_pairs|device_info)')
	echo "$n samples, $(find $PORT/hw_counters -type f | wc -l) counters"
	[ "$n" -ge "$(find $PORT/hw_counters -type f ! -name lifespan | wc -l)" ]
}
open_metrics() {
	scrape /tmp/om "application/openmetrics-text; version=1.0.0" && [ "$(tail -n 1 /tmp/om)" = "# EOF" ] && grep -q '^# TYPE roan_sent_bytes counter' /tmp/om
}
names_exist() { dashboard names "$MONITORING/roan.rules.yml" "$MONITORING/roan-dashboard.json" /tmp/m2; }
textfile() {
	mkdir -p /tmp/tf && roan exporter --textfile /tmp/tf/roan.prom --once && promtool check metrics < /tmp/tf/roan.prom &&
		more "$(value /tmp/tf/roan.prom roan_sent_bytes_total 'device="roan1"')" 0
}
unprivileged() { # the RDMA core hides PSNs; the figures are absent and the scrape says so
	rm -f /tmp/plain.prom
	setpriv --bounding-set=-net_admin "$REPO/tools/roan" exporter --textfile /tmp/plain.prom --once 2> /tmp/out
	cat /tmp/out
	grep -q "needs CAP_NET_ADMIN" /tmp/out && [ "$(value /tmp/plain.prom roan_scrape_success)" = 0.0 ]
}
refused() { # REASON ARGS...
	local why=$1
	shift
	timeout 100 "$REPO/tools/roan" exporter "$@" > /tmp/out 2>&1 && return 1
	grep "^roan: .*$why" /tmp/out || { cat /tmp/out; return 1; }
}

node() { get http://127.0.0.1:9100/metrics "$@"; }
start_node_exporter() {
	prometheus-node-exporter --web.listen-address=127.0.0.1:9100 --collector.disable-defaults --collector.infiniband --collector.textfile \
		--collector.textfile.directory=/tmp/tf > /tmp/node.log 2>&1 & NODE=$!
	wait_for 60 node /tmp/n1 || { cat /tmp/node.log; return 1; }
}
# The port's figures are between roan's own counters before and after.
node_value() { value "$1" "$2" 'device="roan1"' 'port="1"'; }
node_counts() {
	local before after got
	before=$(cat $PORT/hw_counters/sent_bytes)
	node /tmp/n1 && got=$(node_value /tmp/n1 node_infiniband_port_data_transmitted_bytes_total)
	after=$(cat $PORT/hw_counters/sent_bytes)
	python3 -c 'import sys; b, g, a = map(float, sys.argv[1:]); print(b, g, a); sys.exit(not b - 4 < g <= a)' "$before" "$got" "$after" || return
	sleep 1
	node /tmp/n2 && for name in data_transmitted_bytes packets_transmitted data_received_bytes packets_received; do
		more "$(node_value /tmp/n2 node_infiniband_port_${name}_total)" "$(node_value /tmp/n1 node_infiniband_port_${name}_total)" || return
	done
}
node_state() {
	grep '^node_infiniband_\(info\|state_id\|physical_state_id\|rate_bytes\)' /tmp/n1
	[ "$(node_value /tmp/n1 node_infiniband_state_id)" = 4 ] && [ "$(node_value /tmp/n1 node_infiniband_physical_state_id)" = 5 ] &&
		more "$(node_value /tmp/n1 node_infiniband_rate_bytes_per_second)" 0 && grep -q '^node_infiniband_info{.*device="roan1"' /tmp/n1 &&
		[ "$(value /tmp/n1 node_scrape_collector_success 'collector="infiniband"')" = 1 ]
}
node_passes_the_textfile() { [ -n "$(value /tmp/n1 roan_sent_bytes_total 'device="roan1"')" ] && [ "$(value /tmp/n1 node_textfile_scrape_error)" = 0 ]; }
# The files that ib_core makes for adapters with the extended counters; all have a number.
counters_folder() {
	local f
	for f in symbol_error link_error_recovery link_downed port_rcv_errors port_rcv_remote_physical_errors port_rcv_switch_relay_errors \
		port_xmit_discards port_xmit_constraint_errors port_rcv_constraint_errors local_link_integrity_errors \
		excessive_buffer_overrun_errors VL15_dropped port_xmit_data port_rcv_data port_xmit_packets port_rcv_packets port_xmit_wait \
		unicast_xmit_packets unicast_rcv_packets multicast_xmit_packets multicast_rcv_packets; do
		grep -Exq '[0-9]+' "$PORT/counters/$f" || { echo "$f: $(cat "$PORT/counters/$f" 2>&1)"; return 1; }
	done
}

ktap_header
command -v promtool > /dev/null || { ktap_skip "exporter" "needs promtool: tools/setup"; ktap_end; }
ktap_check "promtool: the rules are valid" promtool check rules "$MONITORING/roan.rules.yml"
ktap_check "promtool: each fault raises its alert, a healthy device none" promtool test rules "$HERE/roan.rules.test.yml"
ktap_check "every alert has a case" every_alert_has_a_case
ktap_check "the dashboard has the structure that Grafana imports" dashboard structure "$MONITORING/roan-dashboard.json"
ktap_check "promtool: the dashboard's expressions are valid" dashboard_expressions
[ "${1:-}" != static ] || ktap_end
/usr/bin/python3 -c 'import prometheus_client' 2> /dev/null || { ktap_skip "metrics" "needs python3-prometheus-client"; ktap_end; }
load_modules && two_hosts && ip link set lo up || { ktap_fail "two hosts"; ktap_end; }
ktap_check "the port has the counters of an adapter" counters_folder
ktap_check "traffic" start_flow
ktap_check "the exporter serves" start_exporter
ktap_check "counters of the device move" counters_move
ktap_check "promtool: names, units and help of the metrics" promtool check metrics < /tmp/m2
ktap_check "the busiest queue pair is shown with its owner and moves" queue_pairs_move
ktap_check "a histogram of round trips" times_are_counted roan_round_trip_seconds
ktap_check "a histogram of the times of WRITEs" times_are_counted roan_request_seconds 'operation="write"'
ktap_check "no counter is missing" every_counter_is_there
ktap_check "a dropped packet counts under its reason" drops_have_a_reason
ktap_check "OpenMetrics on request" open_metrics
ktap_check "dashboard and rules use only metrics that exist" names_exist
ktap_check "the port is taken: refused" refused "9791: Address already in use"
ktap_check "--once without a file is refused" refused "needs --textfile" --once
ktap_check "a text file" textfile
ktap_check "without CAP_NET_ADMIN the scrape fails and says why" unprivileged
if command -v prometheus-node-exporter > /dev/null; then
	ktap_check "node_exporter serves" start_node_exporter
	ktap_check "node_exporter: bytes and packets equal the device's and move" node_counts
	ktap_check "node_exporter: state, physical state, rate, info" node_state
	ktap_check "node_exporter passes the text file on" node_passes_the_textfile
else
	ktap_skip "node_exporter" "needs prometheus-node-exporter: tools/setup"
fi
kill $CLIENT $SERVER $EXPORTER $NODE 2> /dev/null
ktap_end
