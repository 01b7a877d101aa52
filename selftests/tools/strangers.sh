#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What other users and hosts choose does not stop the tool, or reach the terminal as it is: names of processes, answers of a
# peer's doctor, columns of a CSV file. Files of /etc/roan that cannot be read, and closed outputs. Needs no module and no root.
. "$(dirname "$(readlink -f "$0")")/../vm/lib.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
port=$dir/class/roan0/ports/1
mkdir -p "$dir/bin" "$port"/{cc_param,hw_counters,counters} "$dir/etc/a.conf"
echo '4: ACTIVE' > "$port/state"
echo '10 Gb/sec (1X QDR)' > "$port/rate"
echo dcqcn > "$port/cc_param/algo"
echo 0 | tee "$port/hw_counters/sent_bytes" > "$port/hw_counters/rcvd_bytes"
# `rdma` writes a process's name as it is: here with an escape sequence, and a byte that is not UTF-8.
cat > "$dir/bin/rdma" <<'END'
#!/bin/sh
printf '[{"ifname":"roan0","lqpn":17,"rqpn":5,"type":"RC","state":"RTS","pid":42,"comm":"a\033[2J\001\377b",
	"drv_una_psn":1,"drv_end_psn":1,"drv_next_psn":1,"drv_epsn":1,"drv_mtu":4096,"drv_window_pkts":256}]'
END
chmod +x "$dir/bin/rdma"

roan() { env PATH="$dir/bin:$PATH" ROAN_SYSFS="$dir/class" ROAN_CONFIG="$dir/etc" "$REPO/tools/roan" "$@" > "$dir/out" 2>&1; }
top_shows_it() { roan top --once -i 0.1 && grep -q 'a?\[2J' "$dir/out" && ! grep -q $'\033' "$dir/out"; }
watch_goes_on() { roan watch roan0 -c 1 -i 0.1 && grep -q '^ *17 ' "$dir/out"; }
exporter_goes_on() { roan exporter --once --textfile "$dir/prom" && grep -q '^roan_qp_info.*/42' "$dir/prom"; }

# One of two devices goes while it is read, then rdma's output is cut off: the others' figures, and no counter starts again.
exporter_outlives_a_device() {
	python3 - "$REPO/tools" <<-'END'
		import sys
		sys.dont_write_bytecode = True
		sys.path.insert(0, sys.argv[1])
		import roan_exporter, roan_figures
		packets = iter([10, 30, 60])
		def queue_pairs(dev=None):
		    sent = next(packets)
		    if sent == 30:
		        raise ValueError("Expecting value: line 1 column 1")
		    return [{"ifname": "roan1", "lqpn": 17, "rqpn": 5, "type": "RC", "state": "RTS", "pid": 42, "comm": "a", "mtu": 4096,
		             "una_psn": sent, "end_psn": sent, "next_psn": sent, "epsn": 1, "window_pkts": 256}]
		def histograms(name):
		    if name == "roan0":
		        raise OSError("No such file or directory")
		    return {}
		roan_figures.queue_pairs, roan_figures.devices = queue_pairs, lambda: ["roan0", "roan1"]
		roan_figures.device = lambda name: {"device": name, "state": "active", "algo": "dcqcn", "mbps": 100, "paused_us": 0, "counters": {}}
		roan_exporter.histograms = histograms
		collector = roan_exporter.Collector(9)
		looks = [{(s.name, s.labels.get("device")): s.value for f in collector.collect() for s in f.samples} for _ in range(3)]
		active, good = ("roan_port_active", "roan1"), ("roan_scrape_success", None)
		sys.exit(not (active in looks[0] and ("roan_port_active", "roan0") not in looks[0] and [l[good] for l in looks] == [1, 0, 1] and
		              looks[2]["roan_qp_acknowledged_packets_total", "roan1"] == 50))
	END
}

# Wrong configurations of the CNI plug-in: status 1 and an error with this code; a newer version is accepted.
cni() { CNI_COMMAND=$1 CNI_NETNS=/nonexistent CNI_CONTAINERID=0123456789 CNI_IFNAME=eth0 "$REPO/tools/roan-cni" > "$dir/out"; }
cni_refuses_it() { # CODE CONFIGURATION
	! echo "$2" | cni ADD && grep -q "\"code\": $1, \"msg\"" "$dir/out" || { echo "$2"; cat "$dir/out"; return 1; }
}
cni_answers() {
	cni_refuses_it 7 '[]' && cni_refuses_it 7 '{"cniVersion":"1.0.0","prevResult":null}' && cni_refuses_it 7 '{"cniVersion":5}' &&
		cni_refuses_it 7 '{"cniVersion":"1.0.0","prefix":5,"prevResult":{"ips":[]}}' &&
		cni_refuses_it 100 '{"cniVersion":"1.1.0","prefix":null,"prevResult":{"ips":[]}}' &&
		cni_refuses_it 6 '{' && echo '{"cniVersion":"1.1.0"}' | cni STATUS && [ ! -s "$dir/out" ]
}

peer_is_cleaned() {
	python3 - "$REPO/tools" <<-'END'
		import sys
		sys.dont_write_bytecode = True
		sys.path.insert(0, sys.argv[1])
		from roan_doctor_peer import cleaned
		answer = cleaned({"device": {"netdev": "e\033[2Jth0", "mtu": 1500}, "moved": {"rx_\007": 1}, "error": "one\ntwo" + "x" * 9999})
		text = str(answer)
		sys.exit("\\x" in text or "\\n" in text or len(text) > 999 or answer["device"]["mtu"] != 1500)
	END
}

# The device and its counters go while a visitor's program runs, and then the visitor: the next one is answered.
listener_goes_on() {
	python3 - "$REPO/tools" <<-'END'
		import json, socket, sys, threading, types
		sys.dont_write_bytecode = True
		sys.path.insert(0, sys.argv[1])
		import roan_doctor_peer
		class Device:
		    name, netdev, mtu, addresses, looks = "roan0", "eth0", 1500, ["127.0.0.1"], 0
		    setting = gid_index = lambda self, what: 1
		    def counters(self):
		        self.looks += 1
		        if self.looks > 1:
		            raise roan_doctor_peer.NotChecked("rdma statistic: error: No such device")
		        return {}
		roan_doctor_peer.listening = lambda port: True
		roan_doctor_peer.pingpong = lambda *args: ["sleep", "60"]
		free = socket.create_server(("127.0.0.1", 0))
		port = free.getsockname()[1]
		free.close()
		threading.excepthook = lambda args: print("the listener has ended:", args.exc_value)
		listener = threading.Thread(target=roan_doctor_peer.listen, daemon=True,
		                            args=(port, lambda: (types.SimpleNamespace(findings=[]), [Device()])))
		listener.start()
		def visit(*requests):
		    for _ in range(100):
		        try:
		            tcp = socket.create_connection(("127.0.0.1", port), timeout=10)
		            break
		        except ConnectionRefusedError:
		            listener.join(0.05)
		    line = roan_doctor_peer.Line(tcp)
		    answers = [line.call(**r) for r in requests]
		    line.file.close()
		    tcp.close()
		    return answers
		visit({"do": "hello"}, {"do": "start", "what": "pingpong", "mtu": 1024})
		listener.join(1)
		sys.exit(not listener.is_alive() or visit({"do": "hello"})[0]["device"]["name"] != "roan0")
	END
}

plot_runs_nothing() {
	printf "time_ms,x';system('touch %s/owned');'_gbps\n1,2\n2,3\n" "$dir" > "$dir/it's.csv"
	roan plot "$dir/it's.csv" -o "$dir/o'.svg" -t "it's" && grep -q '</svg>' "$dir/o'.svg" && [ ! -e "$dir/owned" ]
}

# The file after the one that is a folder is read, too; its interface does not exist.
up_goes_on() {
	printf 'device=roan1 # caf\xe9\nwrong\n' > "$dir/etc/b.conf"
	! roan up && grep -q 'a.conf' "$dir/out" && grep -q "b.conf: 'wrong' is not NAME=VALUE" "$dir/out"
}

closed_output() { # the reader has ended: no traceback, status 0
	local rc
	env PATH="$dir/bin:$PATH" ROAN_SYSFS="$dir/class" bash -c '{ "$0" watch roan0 -i 0.05 -c 20; echo $? > "$1/rc"; } 2> "$1/err" | head -n 1 > /dev/null' "$REPO/tools/roan" "$dir"
	rc=$(cat "$dir/rc")
	cat "$dir/err"
	[ "$rc" = 0 ] && [ ! -s "$dir/err" ]
}

# The name of a mount point is not UTF-8. Any user can make such a mount point with FUSE.
doctor_goes_on() {
	# shellcheck disable=SC2016 # for the other shell
	unshare -m sh -c 'mkdir "$1" && mount -t tmpfs none "$1" && shift && exec "$@"' sh "$dir/caf"$'\xe9' \
		"$REPO/tools/roan" doctor --only rdma_cgroup
}

ktap_header
ktap_check "top: a process's name with an escape sequence" top_shows_it
ktap_check "watch: the same" watch_goes_on
if python3 -c 'import prometheus_client' 2> /dev/null; then
	ktap_check "exporter: the same" exporter_goes_on
	ktap_check "exporter: a device goes, the output of rdma is cut off" exporter_outlives_a_device
else
	ktap_skip "exporter: the same" "no prometheus_client"
	ktap_skip "exporter: a device goes, the output of rdma is cut off" "no prometheus_client"
fi
ktap_check "roan-cni: wrong configurations" cni_answers
ktap_check "doctor: texts of a peer" peer_is_cleaned
ktap_check "doctor --listen: its device goes during a visit" listener_goes_on
if command -v gnuplot > /dev/null; then
	ktap_check "plot: quotation marks in names" plot_runs_nothing
else
	ktap_skip "plot: quotation marks in names" "no gnuplot"
fi
if unshare -m true 2> /dev/null; then
	ktap_check "doctor: a mount point whose name is not UTF-8" doctor_goes_on
else
	ktap_skip "doctor: a mount point whose name is not UTF-8" "no mount namespace of its own"
fi
if [ "$(id -u)" = 0 ]; then
	ktap_check "up: a file that is a folder" up_goes_on
else
	ktap_skip "up: a file that is a folder" "not root"
fi
ktap_check "watch: its output is closed" closed_output
ktap_end
