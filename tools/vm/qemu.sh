#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by selftests/vm/run.sh and by roan-vm.sh: boots a Debian kernel in QEMU over this machine's root. Needs no root.
#
#	this machine's /  --9p, read-only--+
#	programs that start often (tmpfs) --+-- overlay = root of the guest; guest.sh is its first program
#	changes (tmpfs) --------------------+
#
# qemu_initrd FOLDER VERSION COMMAND	makes $work/initrd, which mounts the root and executes COMMAND of a shell there
# qemu_accelerator VMLINUZ		prints the arguments of -accel and -cpu
# qemu_run FOLDER VERSION ACCEL OPTION...	boots, again if the emulator failed; ends with the guest. The guest's console hvc0
#					is the chardev c0, which the OPTIONs define
# The caller defines
#	say MESSAGE	prints a message
#	work, out	folders: for this guest's own files, and exported to the guest as /out
#	qemu		array: the command of QEMU	mem, cpus, append, limit (seconds; 0: none)
#	lower		the root: /, or a folder with that of another release, in which $shown is this machine's folder of that name
#	shares		array of folders of this machine that the guest can write to, by 9p	retry: not empty: a script that
#			had started and died with the emulator is started again
# and, for a guest with another CPU than this machine's,
#	cpu		model of the emulated CPU	serial	name of its first serial port	busybox	a static busybox for it
# shellcheck disable=SC2154 # the caller's variables

# Programs that are started often are copied into the guest's memory: starting a program with its libraries over 9p
# takes twice as long, and many scripts spend most of their time on it.
OFTEN="bash awk cat cmp cp date dd grep head ip ls mkdir python3 rm sed sh sleep sort tail tc timeout tr ping rdma ss sysctl
	ib_atomic_bw ib_atomic_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_write_bw ib_write_lat
	ibv_devices ibv_devinfo ibv_rc_pingpong ibv_ud_pingpong rping ucx_perftest"

copy_often() ( # INTO
	PATH=/usr/sbin:/usr/bin
	umask 022
	mkdir "$1"
	[ "$lower" = / ] || exit 0	# these are this machine's programs, not the other release's
	files=$(for f in $OFTEN; do type -P "$f"; done | xargs readlink -f | sort -u)
	# shellcheck disable=SC2086 # a list of files
	for f in $files $(ldd $files 2> /dev/null | grep -o '/[^ :]*' | sort -u); do
		echo "$(readlink -f "${f%/*}")/${f##*/}"
		readlink -f "$f"
	done | sort -u | tar -c --no-recursion -T - 2> /dev/null | tar -x -C "$1"
)

# Cloud kernels are built without 9p. Their root comes by virtiofs, whose daemon needs root on this machine.
has_9p() { # FOLDER VERSION
	modprobe -d "$1" -S "$2" --show-depends 9pnet_virtio > /dev/null 2>&1
}

guest_modules() { # FOLDER VERSION MODULE...: prints the files that insmod needs, in their order
	local m
	for m in "${@:3}"; do
		modprobe -d "$1" -S "$2" --show-depends "$m" 2> /dev/null
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

# The folders that the guest can write to are mounted at their own paths, after the root.
mount_shares() { # OPTIONS
	local n
	for n in "${!shares[@]}"; do
		printf 'mkdir -p /new%q; mount -t 9p -o %s share%d /new%q\n' "${shares[n]}" "$1" "$n" "${shares[n]}"
	done
}

qemu_initrd() {
	local root=$work/initrd.d n=10 f b type=9p o=trans=virtio,version=9p2000.L,msize=524288 ro
	ro=$o,ro,cache=loose
	has_9p "$1" "$2" || type=virtiofs o=rw ro=ro
	rm -rf "$root" && mkdir -p "$root"/{bin,proc,sys,dev,mods,new}
	cp "${busybox:-$(command -v busybox)}" "$root/bin/busybox"
	copy_often "$root/often"
	for f in $(guest_modules "$1" "$2" virtio_pci virtio_ccw 9p 9pnet_virtio virtiofs overlay virtio_console); do
		b=$root/mods/$n-$(basename "$f" .xz)
		case $f in *.xz) xz -dc "$f" > "$b" ;; *) cp "$f" "$b" ;; esac
		n=$((n + 1))
	done
	cat > "$root/init" <<-END
		#!/bin/busybox sh
		/bin/busybox --install -s /bin
		export PATH=/bin
		mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev
		for m in /mods/*; do insmod \$m 2>/dev/null; done
		mkdir -p /lower /rw /k
		mount -t $type -o $ro root /lower
		mount -t $type -o $ro kernel /k
		mount -t tmpfs -o size=60% t /rw; mkdir /rw/u /rw/w; mv /often /rw
		mount -t overlay -o lowerdir=/rw/often:/lower$lower,upperdir=/rw/u,workdir=/rw/w o /new
		mkdir -p /new/lib/modules /new/out /new$shown
		[ $lower = / ] || mount --bind /lower$shown /new$shown
		for d in proc sys dev; do mount --move /\$d /new/\$d; done
		mount --bind /k/lib/modules /new/lib/modules
		mount -t $type -o $o out /new/out
		$(mount_shares "$o,cache=mmap")
		exec switch_root /new /bin/bash -c $(printf %q "$3")
	END
	chmod +x "$root/init"
	(cd "$root" && find . | cpio -o -H newc -R +0:+0 2> /dev/null) > "$work/initrd"
	rm -rf "$root"
}

# A writable /dev/kvm may still fail to run a stock kernel. Use it only if a probe boot prints to the console.
qemu_accelerator() {
	# TCG emulates `rep movsb` byte by byte. Nehalem does not announce ERMS, so the kernel does not use it.
	local model=${cpu:-Nehalem}
	[ -z "${ICOUNT:-}" ] || { echo "tcg,thread=single -cpu $model -icount shift=0,sleep=off"; return; }
	if [ -w /dev/kvm ] && [ -z "${cpu:-}" ]; then
		timeout 8 "${qemu[@]}" -accel kvm -cpu host -m 256M -display none -no-reboot -serial "file:$work/probe" \
			-monitor none -nic none -kernel "$1" -append "console=ttyS0 panic=-1" > /dev/null 2>&1 < /dev/null || true
		! grep -q 'Linux version' "$work/probe" 2> /dev/null || { echo "kvm -cpu host"; return; }
	fi
	echo "tcg,thread=multi -cpu $model"
}

# Kills a guest that panicked (-no-reboot alone does not always end it) or that did not start the script within 240 s.
# Pauses with a timed read: a sleep would outlive this process and hold its caller's pipes open.
watch_guest() {
	local until=$((SECONDS + 240)) why='' silence
	exec {silence}<> <(:)
	while [ -d "$work" ]; do
		read -rt 1 -u "$silence" || :
		if grep -q 'Kernel panic' "$work/console" 2> /dev/null; then
			why=panic
		elif [ ! -e "$out/started" ] && [ $SECONDS -ge $until ]; then
			why='slow boot'
		fi
		[ -z "$why" ] || break
	done
	read -rt 1 -u "$silence" || :
	kill "$(cat "$work/pid")" 2> /dev/null
}

# Sets the array `exports`: QEMU's options for the folders that the guest mounts. security_model=none: a file that the
# guest makes belongs to the user who runs QEMU.
export_folders() { # FOLDER VERSION
	local n tags=(root kernel out) paths=(/ "$1" "$out") ro
	for n in "${!shares[@]}"; do
		tags+=("share$n") paths+=("${shares[n]}")
	done
	exports=()
	has_9p "$1" "$2" || exports=(-object "memory-backend-memfd,id=mem,size=$mem,share=on" -machine memory-backend=mem)
	for n in "${!tags[@]}"; do
		ro=
		[ "$n" -gt 1 ] || ro=,readonly=on
		if has_9p "$1" "$2"; then
			exports+=(-virtfs "local,path=${paths[n]//,/,,},mount_tag=${tags[n]},security_model=none$ro,multidevs=remap")
		else
			virtiofs_daemon "${tags[n]}" "${paths[n]}" || return
			exports+=(-chardev "socket,id=${tags[n]},path=$work/${tags[n]}.sock" -device "vhost-user-fs-pci,chardev=${tags[n]},tag=${tags[n]}")
		fi
	done
}

# The daemon ends when QEMU closes its socket. Its other kind of sandbox needs a root that is a mount point, as a container's
# may not be.
virtiofs_daemon() { # TAG FOLDER
	local daemon=/usr/lib/qemu/virtiofsd socket=$work/$1.sock n
	[ -x $daemon ] && [ "$(id -u)" = 0 ] || { say "this kernel has no 9p, and $daemon, as root, is not possible here"; return 1; }
	rm -f "$socket"
	$daemon --socket-path="$socket" -o source="$2" -o cache=auto -o sandbox=chroot > "$work/$1.log" 2>&1 < /dev/null &
	for n in $(seq 50); do
		[ ! -S "$socket" ] || return 0
		sleep 0.1
	done
	say "virtiofsd does not start: $(tail -n 1 "$work/$1.log")"
	return 1
}

qemu_boot() { # FOLDER VERSION ACCEL OPTION...
	local watcher exports
	: > "$work/console"
	rm -f "$work/pid"
	export_folders "$1" "$2" || return
	watch_guest > /dev/null & watcher=$!
	# In the background: this shell then ends at once by a signal, and QEMU with it.
	# shellcheck disable=SC2086 # $3 is several words
	setpriv --pdeathsig TERM timeout "$limit" "${qemu[@]}" -accel $3 -smp "$cpus" -m "$mem" -display none -no-reboot -monitor none \
		-pidfile "$work/pid" -serial "file:$work/console" -kernel "$1/boot/vmlinuz-$2" -initrd "$work/initrd" \
		-append "console=${serial:-ttyS0} quiet oops=panic panic=-1 mitigations=off log_buf_len=1M maxcpus=1 $append" \
		-device virtio-serial "${exports[@]}" "${@:4}" -device virtconsole,chardev=c0 < /dev/null &
	wait $! || true
	kill $watcher 2> /dev/null || true
	wait $watcher 2> /dev/null || true
}

# Under TCG one CPU may execute the int3 that another CPU places for a moment while it patches code. The int3 is no
# longer in memory when the trap is handled, so the kernel cannot attribute it and dies: about one boot in twenty. So
# the guest boots with one CPU (maxcpus=1) and guest.sh starts the others. A guest that did not reach the script, or
# died of an int3 (no C code compiles to one), gets two more attempts. Any other death is a failure.
emulated_badly() { grep -q 'int3: 0000 \[#1\]' "$work/console"; }

qemu_run() {
	local attempt
	for attempt in 1 2 3; do
		say "booting $2 in QEMU: $cpus CPUs, -accel $3"
		qemu_boot "$@"
		if [ ! -e "$out/started" ]; then
			say "boot $attempt of 3 did not reach the script"
		elif [ ! -e "$out/rc" ] && [ -n "$retry" ] && emulated_badly; then
			say "boot $attempt of 3 died of the emulator: $(grep -m 1 -o 'RIP: .*' "$work/console")"
			rm -rf "$out/started" "$out/kept" "$out/dmesg" "$out/kmemleak"
		else
			break
		fi
	done
}

# What an error report in the kernel's log has; SLUB's are "BUG kmalloc-64 (...)". Some reports of lockdep name no warning, but
# all end with lockdep turned off. kmemleak turns itself off when it lacks memory.
KERNEL_REPORTS='WARNING:|BUG:|kernel BUG|BUG [^ ]+ \(|KASAN:|UBSAN:|possible recursive locking|possible circular locking|inconsistent lock state|blocked for more than|Oops|refcount_t:|turning off the locking correctness validator|leak detector disabled'

complaints() { # error reports in the kernel log since the script's start; earlier ones do not concern roan
	# KCSAN names the functions of both accesses. Races between two functions of the kernel are not roan's.
	# Counts of memory by line take memory, too: the kernel warns if that allocation fails, as tests of failures want.
	# All of the log if its begin is gone: it is full, or a script has cleared it.
	local from='/roan-lab: script starts/'
	grep -qs 'roan-lab: script starts' "$out/dmesg" || from=1
	sed -n "$from,\$p" "$out/dmesg" 2> /dev/null | awk '!/BUG: KCSAN:/ || /\[roan/' |
		grep -v 'WARNING:.*alloc_tagging_slab_alloc_hook' |
		grep -E "$KERNEL_REPORTS" || true
	grep -s -A12 'unreferenced object' "$out/kmemleak" || true
}
