#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Run by systemd at each boot of the guest of reboot.sh. Prints "ok NAME" or "not ok NAME" for each check, with the boot's number.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive
cd /test || exit
read -r boot 2> /dev/null < boot
boot=$((boot + 1))
echo $boot > boot
managers=('' systemd-networkd networking NetworkManager)	# units of the three boots
manager=${managers[boot]}

check() { # NAME COMMAND...
	local name="boot $boot, $manager: $1" out
	shift
	if out=$("$@" 2>&1); then
		echo "ok $name"
	else
		tail -n 20 <<< "$out" | sed 's/^/# /'
		echo "not ok $name"
	fi
}

wait_for() { # SECONDS COMMAND...
	local until=$((SECONDS + $1))
	shift
	until "$@" > /dev/null 2>&1; do
		[ $SECONDS -lt $until ] || { echo "not within the time: $*"; journalctl -b -o cat -n 8 -u 'roan-link@*'; rdma link; return 1; }
		sleep 0.3
	done
}

interface_of() { # MAC
	grep -qx "$1" /sys/class/net/*/address || return
	grep -lx "$1" /sys/class/net/*/address | sed 's|.*/net/\([^/]*\)/address|\1|'
}

is_on() { [ "$(rdma link show "$1/1" 2> /dev/null | sed -n 's/.* netdev \([^ ]*\).*/\1/p')" = "$2" ]; } # DEVICE INTERFACE
has() { [ "$(cat "/sys/class/infiniband/$1/ports/1/cc_param/$2")" = "$3" ]; } # DEVICE PARAMETER VALUE
ours() { is_on roan0 "$nic" && has roan0 algo dcqcn && has roan0 rpg_ai_rate 77; }
exporter_answers() { python3 -c 'from urllib.request import urlopen; print(urlopen("http://127.0.0.1:9791/metrics").read().decode())' | grep -q '^roan_port_active{device="roan0"} 1'; }
gone() { [ ! -e "/sys/class/infiniband/$1" ]; }
refused() { # "TEXT" COMMAND...
	local out
	out=$("${@:2}" 2>&1) && { echo "not refused"; return 1; }
	echo "$out"
	[[ $out == *"$1"* && $out != *Traceback* ]]
}

# An event of an interface that has a file starts its unit.
event_of() { # INTERFACE
	local last was
	last="systemctl show -P ExecMainExitTimestampMonotonic roan-link@$1"
	was=$($last)
	udevadm trigger --action=change "/sys/class/net/$1" && udevadm settle && wait_for 60 eval "[ \"\$($last)\" != '$was' ]"
}

# The other host. Its interface is not configured in /etc/roan, and by no manager.
second_host() {
	local other
	other=$(interface_of 52:54:00:72:6f:02)
	ip netns add h2 && ip link set "$other" netns h2 && ip -n h2 addr add 10.7.0.2/24 dev "$other" && ip -n h2 link set "$other" up &&
		ip netns exec h2 rdma link add roan9 type roan netdev "$other"
}

bandwidth() {
	wait_for 120 ping -c 1 -W 1 10.7.0.2 || return
	timeout 300 ip netns exec h2 ib_write_bw -F -d roan9 -n 50 > /tmp/server 2>&1 &
	wait_for 60 eval "ip netns exec h2 ss -Hltn 'sport = :18515' | grep -q ." || { cat /tmp/server; return 1; }
	timeout 300 ib_write_bw -F -d roan0 -n 50 10.7.0.2 > /tmp/client 2>&1
	cat /tmp/client
	wait $!
	awk '$1 == 65536 && $4 > 0 { found = 1 } END { exit !found }' /tmp/client
}

# Files that are no package's own data, program's log or cache.
files() { find / -xdev \( -path /proc -o -path /sys -o -path /var/log -o -path /var/lib/dpkg -o -path /var/cache -o -path /test -o -path /tmp -o -path /var/tmp -o -path /run \
	-o -path /var/lib/systemd -o -path /var/lib/NetworkManager -o -path /var/lib/apt \) -prune -o ! -path '*/modules.*' -print | sort; }

configure() { # UNIT: the address of $nic
	case $1 in
	systemd-networkd)
		printf '[Match]\nMACAddress=52:54:00:72:6f:01\n[Network]\nAddress=10.7.0.1/24\nLinkLocalAddressing=ipv6\nIPv6AcceptRA=no\n' > /etc/systemd/network/10-test.network ;;
	networking)
		printf 'auto lo\niface lo inet loopback\nallow-hotplug %s\niface %s inet static\n\taddress 10.7.0.1/24\n' "$nic" "$nic" > /etc/network/interfaces ;;
	NetworkManager)
		echo > /etc/network/interfaces
		printf '[main]\nno-auto-default=*\n' > /etc/NetworkManager/conf.d/test.conf
		printf '[connection]\nid=test\ntype=ethernet\ninterface-name=%s\nwait-device-timeout=120000\n[ipv4]\nmethod=manual\naddress1=10.7.0.1/24\n[ipv6]\nmethod=disabled\n' "$nic" > /etc/NetworkManager/system-connections/test.nmconnection
		chmod 600 /etc/NetworkManager/system-connections/test.nmconnection
		ordered_units ;;
	esac
}

# For the next boot: a unit behind network-online.target, and one of the interface that takes long.
ordered_units() {
	local dir=/etc/systemd/system
	systemctl -q unmask NetworkManager-wait-online.service
	mkdir -p $dir/roan-link@.service.d
	printf '[Service]\nExecStartPre=/bin/sleep 20\n' > $dir/roan-link@.service.d/slow.conf
	printf '[Unit]\nWants=network-online.target\nAfter=network-online.target\n[Service]\nType=oneshot\nExecStart=/bin/sh -c "%s"\n[Install]\nWantedBy=multi-user.target\n' \
		'rdma link show roan0/1 > /test/early.new; mv /test/early.new /test/early' > $dir/early.service
	systemctl -q enable early.service
}

first_boot() {
	configure systemd-networkd
	systemctl restart systemd-networkd
	files > files
	check "the packages install" dpkg -i ./*.deb
	check "a parameter that does not exist is refused" refused "no parameter nonsense" roan add "$nic" --set nonsense=1
	check "a value out of range is refused" refused "rpg_ai_rate: 0 is out of range" roan add "$nic" --set rpg_ai_rate=0
	check "nothing is left of what was refused" eval "gone roan0 && ! ls /etc/roan | grep ."
	check "roan add" roan add "$nic" --set algo=dcqcn
	check "roan add of one more parameter" roan add "$nic" --set rpg_ai_rate=77
	check "the device has the settings" ours
	check "the file is plain text" eval "grep -qx device=roan0 /etc/roan/$nic.conf && grep -qx rpg_ai_rate=77 /etc/roan/$nic.conf"
	check "roan add on lo" roan add lo --name roanlo
	check "roan add for an interface that is not there" roan add late0 --name roanlate
	check "a name that is taken is refused" refused "roanlo is the device of lo" roan add other0 --name roanlo
	check "another user is refused" refused "needs root" setpriv --reuid 65534 --clear-groups roan add lo
	check "the second host" second_host
	check "in another network namespace it is refused" refused "first network namespace" ip netns exec h2 roan add lo
	check "ib_write_bw" bandwidth
	check "a parameter until the next boot" roan cc set roan0 rpg_ai_rate=78
	check "it stays when udev reports a change of the interface" eval "event_of $nic && event_of $nic && has roan0 rpg_ai_rate 78"
	device=$(stat -c %i /sys/class/infiniband/roan0/)
	check "upgrade of the packages" eval "dpkg -i next/*.deb && dpkg -s roan | grep -q '^Version:.*[.]1$'"
	check "the device is the same as before the upgrade" eval "is_on roan0 $nic && has roan0 rpg_ai_rate 78 && [ $device = \$(stat -c %i /sys/class/infiniband/roan0/) ]"
	check "ib_write_bw after the upgrade" bandwidth
}

second_boot() {
	check "the device is there, with its settings" wait_for 60 ours
	check "the device on lo is there" wait_for 20 is_on roanlo lo
	check "the second host" second_host
	check "ib_write_bw" bandwidth
	check "the exporter answers once its unit is enabled" eval "! exporter_answers && systemctl -q enable --now roan-exporter && wait_for 60 exporter_answers"
	check "an interface that appears late" eval "gone roanlate && ip link add late0 type dummy && wait_for 30 is_on roanlate late0"
	check "it is removed" eval "ip link del late0 && wait_for 30 gone roanlate"
	check "it is added again" eval "ip link add late0 type dummy && wait_for 30 is_on roanlate late0"
	check "an interface that is renamed" eval "roan add moved-0 --name roanmoved && ip link add other0 type dummy && ip link set other0 name moved-0 && wait_for 30 is_on roanmoved moved-0"
	check "roan del by interface" eval "roan del moved-0 && gone roanmoved && [ ! -e /etc/roan/moved-0.conf ]"
	check "roan del by device" eval "roan del roanlate && gone roanlate && [ ! -e /etc/roan/late0.conf ]"
	check "roan del of something else is refused" refused "no file in /etc/roan is for roan9" roan del roan9
	check "roan down and roan up" eval "roan down $nic && gone roan0 && roan up && ours"
	check "no unit has failed" eval "! systemctl list-units --failed --plain --no-legend 'roan-link@*' | grep ."
}

third_boot() {
	check "a unit behind network-online.target finds the device" eval "wait_for 180 [ -e early ] && grep 'netdev $nic' early"
	check "there is no ordering cycle" eval "! journalctl -b -o cat | grep -i 'ordering cycle'"
	check "the device is there, with its settings" wait_for 60 ours
	check "the second host" second_host
	check "ib_write_bw" bandwidth
	check "the exporter answers" wait_for 60 exporter_answers
	check "a purge" dpkg --purge roan libroan "roan-modules-$(uname -r)"
	check "its devices are removed" eval "gone roan0 && gone roanlo"
	check "its exporter has stopped and does not start again" eval "! exporter_answers && ! systemctl is-enabled roan-exporter"
	check "no file is left" eval "files | comm -13 files - | grep -v -e /etc/NetworkManager -e /etc/systemd/ -e /etc/resolv -e '^/etc/network/' -e '\.pyc$' > left; cat left; [ ! -s left ]"
	check "no module is left" eval "! modinfo roan"
}

# networkd reaches network.target without interfaces.
wait_for 120 interface_of 52:54:00:72:6f:01 && udevadm settle
nic=$(interface_of 52:54:00:72:6f:01)
echo "# boot $boot: $(uname -r), $manager, $nic, up for $(cut -d' ' -f1 /proc/uptime) s"
case $boot in
1) first_boot ;;
2) second_boot ;;
3) third_boot
	echo "# end"
	systemctl poweroff
	exit ;;
*) systemctl poweroff; exit ;;
esac
next=${managers[boot + 1]}
configure "$next"
rm -f /etc/systemd/network/10-test.network
systemctl -q disable "$manager"
systemctl -q enable "$next"
systemctl reboot
