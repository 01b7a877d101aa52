#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The commands of Documentation/getting-started.md, as the page has them: from a Debian 12 without any of it to ib_write_bw between
# two hosts in a guest, two virtual machines, two containers. Counts commands and seconds of each way. Needs root, for chroot; takes
# packages from Debian's mirror.
#
#	page --blocks clone, guest, install, lines with apt--> a new root, by chroot: an ordinary user's `roan vm`, packages, DKMS
#	     --link, more, doctor--> that root as the disk of two guests of QEMU, A and B, each with Debian's kernel
#	     --containers--> A
#
# A block begins with ```sh NAME. A remark behind a command says where it runs: `# A`, `# B`, `# A, B`; with "waits" or "until" it runs
# in the background, the next one starts when it listens, and it must end by itself, or is ended.
# first_hour.sh static: only compares the page with itself, and its codes with doctor.md. KEEP=FOLDER: keeps the guests' disk
# and consoles; DISK=FOLDER: takes that disk, and runs only what runs in the guests.
# shellcheck disable=SC2034,SC2154,SC2317 # variables of qemu.sh and root.sh; functions are called by name
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
PAGE=$REPO/Documentation/getting-started.md
PACKAGES="systemd-sysv udev dbus kmod iproute2 iputils-ping ca-certificates linux-image-amd64"

# ---- the page ----

commands_of() { # BLOCK: sets `commands`
	local line text='' inside=''
	commands=()
	while IFS= read -r line; do
		case $line in
		'```sh '"$1") inside=y; continue ;;
		'```'*) inside='' ;;
		esac
		[ -n "$inside" ] || continue
		text+=$line
		if [[ $line == *\\ ]] || ! bash -n <<< "$text" 2> /dev/null; then
			text+=$'\n'
		else
			commands+=("$text")
			text=''
		fi
	done < "$PAGE"
	[ "${#commands[@]}" != 0 ] && [ -z "$text" ]
}

remark() { [[ $1 != *'# '* ]] || echo "${1##*\# }"; }
is_for() { [[ $(remark "$1") =~ ^(A, )?$2 || ( $2 = A && $(remark "$1") =~ ^A ) ]]; } # COMMAND HOST

number() { # BLOCK...: commands that one host, A, takes
	local block c n=0
	for block; do
		commands_of "$block"
		for c in "${commands[@]}"; do
			[ "$block" = link ] && ! is_for "$c" A || n=$((n + 1))
		done
	done
	echo $n
}

counted() { # "ROW" BLOCK...: the page's table says how many commands these blocks have
	local said
	said=$(sed -n "s/^| $1[^|]*| \([0-9]*\) |.*/\1/p" "$PAGE")
	[ "$said" = "$(number "${@:2}")" ] || { echo "the page says '$said' commands, the blocks ${*:2} have $(number "${@:2}")"; return 1; }
}

codes_exist() {
	local code unknown=''
	# shellcheck disable=SC2016 # backquotes of the page
	for code in $(sed -n '/^## 5/,/^Faults that/s/^|.*|\(.*\)|$/\1/p' "$PAGE" | grep -o '`[a-z0-9-]*`' | tr -d '`'); do
		grep -q "^| \`$code\` " "$REPO/Documentation/doctor.md" || unknown+=" $code"
	done
	[ -n "${code:-}" ] || { echo "the page names no codes"; return 1; }
	[ -z "$unknown" ] || { echo "not in doctor.md:$unknown"; return 1; }
}

static() {
	local block
	for block in clone guest install link more containers doctor; do
		ktap_check "block $block" commands_of $block
	done
	ktap_check "commands of way 1" counted "hosts in a guest" clone guest
	ktap_check "commands of way 2" counted "hosts, physical or virtual" clone install link
	ktap_check "commands of way 3" counted "containers" clone install containers
	ktap_check "codes are the doctor's" codes_exist
}

# ---- the new root ----

# Debian's sources, and what stands for the user's Y, the guest's release, and an ordinary user.
new_root() {
	release=$(basename "$root"/boot/vmlinuz-*) release=${release#vmlinuz-}
	printf 'deb %s bookworm main\ndeb %s-security bookworm-security main\n' "$MIRROR" "$MIRROR" > "$root/etc/apt/sources.list"
	echo 'APT::Get::Assume-Yes "true"; Acquire::Retries "3";' > "$root/etc/apt/apt.conf.d/99first-hour"
	echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/first-hour"
	printf '#!/bin/sh\n[ "$*" != -r ] || { echo %s; exit; }\nexec /usr/bin/uname "$@"\n' "$release" > "$root/usr/local/bin/uname"
	chmod 755 "$root/usr/local/bin/uname"
	echo "user:x:1000:1000::/home/user:/bin/bash" >> "$root/etc/passwd"
	install -d -o 1000 -g 1000 "$root/home/user"
	git clone -q --bare --depth 1 "file://$REPO" "$root/srv/roan.git" && chown -R 1000:1000 "$root/srv/roan.git"
}

cd_to=/home/user
here() { # COMMAND HOME [PROGRAM...]: in the root, in the folder of the source tree
	local command=${1//sudo /}
	chroot "$root" env -i HOME="$2" LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		"${@:3}" bash -c "cd $cd_to && ${command/ URL / file:\/\/\/srv\/roan.git }" < /dev/null
}
as_root() { here "$1" /root; }
as_user() { here "$1" /home/user setpriv --reuid 1000 --regid 1000 --clear-groups; }

# ---- two guests ----

# In the guest, on a port of virtio-serial: a word and a command in base64 each line; answers with output and "@STATUS".
agent() {
	cat <<-'END'
		#!/bin/bash
		export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
		[ "$(hostname)" = A ] && n=1 || n=2
		until ip addr add 10.0.0.$n/24 dev eth0; do sleep 0.5; done; ip link set eth0 up
		cd /root; until [ -e /dev/virtio-ports/agent ]; do sleep 0.5; done; exec 3<> /dev/virtio-ports/agent
		listeners() { { for p in $(lsns -rnt net -o PID); do nsenter -t $p -n ss -Hltn; done; rdma resource show cm_id | grep LISTEN; } | wc -l; }
		echo "@0" >&3
		while read -ru 3 word line; do
			line=$(base64 -d <<< "$line")
			rc=0
			: > out
			case $word in
			run) timeout 600 bash -c "$line" > out 2>&1 < /dev/null; rc=$? ;;
			start)
				before=$(listeners)
				setsid bash -c "$line" > background 2>&1 < /dev/null & pid=$!
				until [ "$(listeners)" -gt "$before" ]; do kill -0 $pid || { rc=1; break; }; sleep 0.5; done 2> /dev/null ;;
			end)
				for i in $(seq 600); do kill -0 $pid || break; sleep 0.5; done 2> /dev/null
				! kill -TERM -- -$pid 2> /dev/null || echo "does not end" >> background
				wait $pid; rc=$?; cp background out ;;
			stop) kill -TERM -- -$pid; wait $pid; cp background out ;;
			esac
			cat out - <<< "@$rc" >&3
		done
	END
}

disk() {
	mkdir -p "$root/test"
	agent > "$root/test/agent"
	printf '[Service]\nExecStart=/bin/bash /test/agent\n[Install]\nWantedBy=multi-user.target\n' > "$root/etc/systemd/system/agent.service"
	echo "/dev/vda / ext4 defaults 0 0" > "$root/etc/fstab"
	in_root systemctl -q enable agent.service
	in_root systemctl -q mask apt-daily.timer apt-daily-upgrade.timer systemd-timesyncd.service getty@tty1.service serial-getty@ttyS0.service
	cp "$root"/boot/{vmlinuz,initrd.img}-"$release" "$work"
	# What builds packages is not needed any more.
	rm -rf "$root"/home/user "$root"/srv/roan.git "$root"/usr/lib/gcc "$root"/usr/share/{doc,locale,man} "$root"/usr/src/* "$root"/var/cache/apt "$root/usr/local/bin/uname"
	umount "$root/proc"
	truncate -s 6G "$work/disk" && mke2fs -q -t ext4 -O ^has_journal -d "$root" "$work/disk"
}

declare -A to=() guests=()
boot() { # HOST NETDEV
	local wire=addr.type=unix,addr.path=$work/wire
	mkfifo "$work/$1.in" "$work/$1.out"
	exec {fd}<> "$work/$1.in" {out}<> "$work/$1.out"
	to[$1]=$fd from[$1]=$out
	# shellcheck disable=SC2046 # several words
	TMPDIR=$work timeout "${LIMIT:-2400}" "${qemu[@]}" -accel $(qemu_accelerator "$work/vmlinuz-$release") -smp 1 -m 1500M -display none -monitor none -no-reboot \
		-serial "file:$work/$1.console" -kernel "$work/vmlinuz-$release" -initrd "$work/initrd.img-$release" \
		-append "root=/dev/vda rw console=ttyS0 quiet panic=-1 mitigations=off no_timer_check net.ifnames=0 systemd.show_status=0 systemd.hostname=$1" \
		-drive "file=$work/disk,format=raw,if=virtio,snapshot=on,cache=unsafe" \
		-netdev "stream,id=n,server=$2,$wire" -device "virtio-net-pci,netdev=n,mac=52:54:00:72:6f:$3,romfile=" \
		-device virtio-serial-pci -chardev "pipe,id=c,path=$work/$1" -device virtserialport,chardev=c,name=agent < /dev/null > "$work/$1.qemu" 2>&1 &
	guests[$1]=$!
}

declare -A from=()
answer() { # HOST: prints what it answers; its status
	local line
	while read -rt "${LIMIT_STEP:-900}" -u "${from[$1]}" line; do
		case $line in @*) return "${line#@}" ;; *) echo "$line" ;; esac
	done
	echo "no answer from $1"; tail -n 5 "$work/$1".{console,qemu}
	return 99
}
tell() { # HOST WORD [COMMAND]
	kill -0 "${guests[$1]}" && printf '%s %s\n' "$2" "$(base64 -w0 <<< "${3:-true}")" >&"${to[$1]}" && answer "$1"
}

two_guests() {
	mapfile -t qemu < <(if [ -n "${EMULATOR:-}" ]; then echo "$EMULATOR"; else "$REPO/selftests/vm/debian.sh" emulator; fi)
	boot A on 01
	wait_for 30 test -S "$work/wire" || { cat "$work/A.qemu"; return 1; }
	boot B off 02
}

# ---- steps ----

declare -A spent=()
step() { # BLOCK NAME COMMAND...: a result, and seconds
	local since=$EPOCHREALTIME
	ktap_check "$1: $2" "${@:3}" || failed=y
	spent[$1]=$(awk -v a="${spent[$1]:-0}" -v b="$since" -v c="$EPOCHREALTIME" 'BEGIN { print a + c - b }')
}
short() { local text=${1%%$'\n'*}; text=${text%%  *}; echo "${text:0:70}"; }

in_chroot() { # BLOCK COMMAND-OF-THE-TEST
	local c user
	commands_of "$1"
	for c in "${commands[@]}"; do
		user=$2
		[[ $c != sudo* ]] || user=as_root
		step "$1" "$(short "$c")" "$user" "$c"
		[[ $c != 'cd '* ]] || cd_to+=/${c#cd }
	done
}

in_guests() { # BLOCK
	local c h r waiting='' how=''
	commands_of "$1"
	for c in "${commands[@]}"; do
		r=$(remark "$c")
		[[ $c != 'apt install '* ]] || continue
		case $r in
		*waits* | *until*)
			waiting=A how=end
			! is_for "$c" B || waiting=B
			[[ $r != *until* ]] || how=stop
			step "$1" "$(short "$c") ($waiting)" tell $waiting start "$c"
			continue ;;
		esac
		for h in A B; do
			is_for "$c" $h || { [ $h = A ] && ! is_for "$c" B; } || continue
			step "$1" "$(short "$c") ($h)" tell $h run "$c"
		done
		[ -z "$waiting" ] || step "$1" "... and the one that waited ends ($waiting)" tell $waiting $how
		waiting=''
	done
}

way() { # NAME BLOCK...
	local b s=0
	for b in "${@:2}"; do s=$(awk -v a="$s" -v b="${spent[$b]:-0}" 'BEGIN { printf "%.0f", a + b }'); done
	echo "# $1: $(number "${@:2}") commands, $s s"
}

# From nothing to a disk with all that the guests need.
host_part() {
	local c
	{ root_up && new_root; } || { ktap_fail "a new root"; ktap_end; }
	in_chroot clone as_user
	in_chroot guest as_user
	in_chroot install as_root
	commands_of containers
	for c in "${commands[@]}"; do
		[[ $c != 'apt install '* ]] || step containers "$(short "$c")" as_root "$c"
	done
	[ -z "$failed" ] || ktap_end
	ktap_check "a disk" disk || ktap_end
	[ -z "${KEEP:-}" ] || cp --sparse=always "$work"/{disk,vmlinuz-*,initrd.img-*} "$KEEP"
}

[ "${1:-}" != static ] || { ktap_header; static; ktap_end; }
. "$HERE/root.sh"
. "$REPO/tools/vm/qemu.sh"
say() { echo "# $*"; }
ktap_header
static
for need in debootstrap mke2fs git; do
	command -v $need > /dev/null || { ktap_skip "all" "needs $need"; ktap_end; }
done
failed=''
if [ -n "${DISK:-}" ]; then
	work=$(mktemp -d /var/tmp/roan-root.XXXXXX)
	root=$work/root
	ln -s "$(readlink -f "$DISK")"/{disk,vmlinuz-*,initrd.img-*} "$work"
	release=$(basename "$work"/vmlinuz-*) release=${release#vmlinuz-}
else
	host_part
fi
trap 'kill "${guests[@]}" 2> /dev/null; wait "${guests[@]}" 2> /dev/null; root_down' EXIT
# Not by ktap_check: it runs a subshell, and their variables would be lost.
two_guests || { ktap_fail "two guests start"; ktap_end; }
for h in A B; do
	ktap_check "guest $h is there" answer $h || ktap_end
done
for block in link more doctor containers; do
	in_guests $block
done
for h in A B; do
	ktap_check "the kernel of $h reported no error" tell $h run "! dmesg | grep -E 'WARNING:|BUG:|Oops|blocked for more than'"
done
way "two hosts in a guest" clone guest
way "two hosts, each" clone install link
way "two containers" clone install containers
[ -z "${KEEP:-}" ] || cp "$work"/*.{console,qemu} "$KEEP"
ktap_end
