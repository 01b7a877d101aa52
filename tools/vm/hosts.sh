#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by command.sh in the guest of `roan vm`, and by tools/ci/rdma.sh in the running kernel: hosts as namespaces.
#
#	h1  roan1 on eth0 --+
#	h2  roan2 on eth0 --+-- switch (a bridge)	10.7.0.N/24, fd07::N/64; MTU 4200, so that the path MTU is 4096
#	...                 |				each eth0: tc netem for rate, delay and loss
#	hN  roanN on eth0 --+				the switch's ports: tc tbf for the rate
#
# hosts_up FOLDER	loads the module ROAN_KO and makes the hosts; FOLDER gets the program `on`: on HOST COMMAND...
# hosts_down		removes them, and the module
# hosts_free		true if nothing has the names that hosts_up takes, and hosts_down removes
# Variables: hosts (their number), gbps, rtt, loss, as options of `roan vm`; empty: none
# shellcheck disable=SC2154 # the caller's variables
PATH=$PATH:/usr/sbin:/sbin

# Each host delays what it sends by half of the round-trip time. A GSO packet counts once for netem, so with loss each packet
# is an skb of its own.
shape() { # HOST
	local words=()
	[ -z "$rtt" ] || words+=(delay "$(LC_ALL=C awk -v t="$rtt" 'BEGIN { match(t, /[a-z]+/); printf "%.3f%s", substr(t, 1, RSTART - 1) / 2, substr(t, RSTART) }')")
	[ -z "$loss" ] || words+=(loss "$loss%")
	[ -z "$gbps" ] || words+=(rate "$(LC_ALL=C awk -v g="$gbps" 'BEGIN { printf "%dmbit", g * 1000 }')")
	[ ${#words[@]} -gt 0 ] || return 0
	[ -z "$loss" ] || ip -n "$1" link set eth0 gso_max_segs 1 || return
	tc -n "$1" qdisc add dev eth0 root netem "${words[@]}" limit 100000 || return
	[ -z "$gbps" ] || tc qdisc add dev "$1" root tbf rate "${words[-1]}" burst 256kb limit 4mb
}

hosts_free() {
	local n
	[ ! -e /sys/class/net/switch ] || return
	for n in $(seq "$hosts"); do
		[ ! -e "/run/netns/h$n" ] && [ ! -e "/sys/class/net/h$n" ] || return
	done
}

hosts_up() {
	local n m
	for m in ib_core ib_uverbs rdma_cm rdma_ucm ib_umad udp_tunnel ip6_udp_tunnel veth bridge; do
		modprobe -q "$m" || true	# some are built in
	done
	insmod "$ROAN_KO" || return
	# A program then sees its own host's device only. Not possible while there are other namespaces.
	rdma_mode=$(rdma system show | grep -o 'netns [a-z]*')
	rdma system set netns exclusive 2> /dev/null || echo "all hosts see all devices: other network namespaces exist"
	{
		echo "link add switch type bridge"
		echo "link set switch up mtu 4200"
		for n in $(seq "$hosts"); do
			echo "netns add h$n"
			echo "link add h$n mtu 4200 master switch type veth peer name eth0 mtu 4200 netns h$n"
			echo "link set h$n up"
		done
	} | ip -batch - || return
	for n in $(seq "$hosts"); do
		ip -n "h$n" -batch - <<-END || return
			link set lo up
			addr add 10.7.0.$n/24 dev eth0
			addr add fd07::$n/64 dev eth0 nodad
			link set eth0 up
		END
		ip netns exec "h$n" rdma link add "roan$n" type roan netdev eth0 || return
		# With exclusive RDMA namespaces a new device starts in the first one, before Linux 6.17.
		case $(rdma system) in *exclusive*) ! rdma dev show "roan$n" > /dev/null 2>&1 || rdma dev set "roan$n" netns "h$n" || return ;; esac
		shape "h$n" || return
	done
	for n in $(seq "$hosts"); do
		echo "10.7.0.$n h$n # roan"
		echo "fd07::$n h$n # roan"
	done >> /etc/hosts
	printf '#!/bin/sh\nexec ip netns exec "$@"\n' > "$1/on"
	chmod 755 "$1/on"
}

hosts_down() {
	local n etc_hosts
	for n in $(seq "$hosts"); do
		ip netns exec "h$n" rdma link del "roan$n" 2> /dev/null
		ip netns pids "h$n" 2> /dev/null | xargs -r kill -9
		ip netns del "h$n" 2> /dev/null
	done
	ip link del switch 2> /dev/null
	# shellcheck disable=SC2086 # two words, as before hosts_up
	[ -z "${rdma_mode:-}" ] || rdma system set $rdma_mode 2> /dev/null
	rmmod roan 2> /dev/null
	etc_hosts=$(sed '/ # roan$/d' /etc/hosts) && printf '%s\n' "$etc_hosts" > /etc/hosts
}
