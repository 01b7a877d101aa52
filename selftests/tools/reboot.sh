#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Devices of `roan add` come back: a Debian 12 with systemd and a stock kernel in QEMU, on a disk of its own, installs the packages,
# reboots, and carries data; a boot each with systemd-networkd, ifupdown and NetworkManager. Needs root, for the image.
#
#	guest: systemd, /etc/roan           network namespace h2
#	roan0 on an e1000e ================ roan9 on an e1000e		10.7.0.1, 10.7.0.2: a hub of QEMU
#
# reboot_guest.sh runs at each boot and writes its results to the second serial port. KEEP=FOLDER: keeps the consoles.
# shellcheck disable=SC2034,SC2154 # variables of qemu.sh and root.sh
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/root.sh"
. "$REPO/tools/vm/qemu.sh"
LIMIT=${LIMIT:-1500}
say() { echo "# $*"; }

# The same packages once more with a higher version.
next_version() {
	local deb dir=$work/next
	for deb in "$root"/test/*.deb; do
		rm -rf "$dir" && dpkg-deb -R "$deb" "$dir" || return
		sed -i 's/^Version: .*/&.1/' "$dir/DEBIAN/control"
		dpkg-deb --root-owner-group -b "$dir" "$root/test/next/" > /dev/null || return
	done
}

packages() {
	local deb
	mkdir -p "$root/test/next"
	root_debs || return
	"$REPO/tools/package" module "$release" > "$work/deb.log" 2>&1 || { tail -n 20 "$work/deb.log"; return 1; }
	cp "$root"/build/build/deb/{roan_*_all,libroan_*}.deb "$REPO/build/deb/roan-modules-${release}"_*.deb "$root/test" && next_version
}

# A disk with the root, the kernel's modules that the test needs, and the test as a unit.
disk() {
	local f modules=lib/modules/$release
	mkdir -p "$root/$modules/kernel"
	cp "$folder/$modules"/modules.{builtin*,order} "$root/$modules"
	guest_modules "$folder" "$release" e1000e dummy veth autofs4 ib_uverbs rdma_ucm ib_umad ib_ipoib \
		udp_tunnel ip6_udp_tunnel crc32c_generic libcrc32c | while read -r f; do
		cp "$f" "$root/$modules/kernel"
	done
	depmod -b "$root" "$release" || return
	cp "$HERE/reboot_guest.sh" "$root/test"
	cat > "$root/etc/systemd/system/reboot-test.service" <<-'UNIT'
		[Unit]
		After=network.target dbus.service
		[Service]
		Type=oneshot
		TimeoutStartSec=infinity
		ExecStart=/bin/bash /test/reboot_guest.sh
		StandardOutput=file:/dev/ttyS1
		StandardError=inherit
		[Install]
		WantedBy=multi-user.target
	UNIT
	echo "/dev/vda / ext4 defaults 0 0" > "$root/etc/fstab"
	echo roan-host > "$root/etc/hostname"
	in_root systemctl -q enable reboot-test.service systemd-networkd.service
	in_root systemctl -q disable NetworkManager.service networking.service
	in_root systemctl -q mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer man-db.timer \
		e2scrub_reap.service systemd-timesyncd.service NetworkManager-wait-online.service systemd-networkd-wait-online.service \
		getty@tty1.service serial-getty@ttyS0.service systemd-binfmt.service
	# Only what builds packages needs these.
	rm -rf "$root"/build "$root"/usr/lib/gcc "$root"/usr/share/{doc,locale,perl,man,lintian} "$root"/usr/src/*
	umount "$root/proc"
	# Paths in the image are the guest's.
	truncate -s 3G "$work/disk" && mke2fs -q -t ext4 -O ^has_journal -d "$root" "$work/disk"
}

initrd() {
	local dir=$work/initrd.d n=10 f
	mkdir -p "$dir"/{bin,proc,sys,dev,mods,new}
	cp "$(command -v busybox)" "$dir/bin/busybox"
	for f in $(guest_modules "$folder" "$release" virtio_pci virtio_blk ext4 crc32c_generic); do
		case $f in *.xz) xz -dc "$f" > "$dir/mods/$n-$(basename "$f" .xz)" ;; *) cp "$f" "$dir/mods/$n-$(basename "$f")" ;; esac
		n=$((n + 1))
	done
	cat > "$dir/init" <<-'END'
		#!/bin/busybox sh
		/bin/busybox --install -s /bin
		mount -t devtmpfs d /dev
		for m in /mods/*; do insmod $m; done
		until mount -t ext4 /dev/vda /new; do sleep 1; done
		mount --move /dev /new/dev
		exec switch_root /new /sbin/init
	END
	chmod +x "$dir/init"
	(cd "$dir" && find . | cpio -o -H newc -R +0:+0 2> /dev/null) > "$work/initrd"
}

# One CPU: the race of the emulator with several is not met (qemu.sh). Not virtio adapters: one of them sends nothing while the other is down.
# loglevel=5: warnings are on the console. With `quiet` only what is worse than them is.
boot() {
	local nic
	mapfile -t qemu < <(if [ -n "${EMULATOR:-}" ]; then echo "$EMULATOR"; else "$REPO/selftests/vm/debian.sh" emulator; fi)
	nic=$(for n in 1 2; do echo -netdev "hubport,id=n$n,hubid=1" -device "e1000e,netdev=n$n,mac=52:54:00:72:6f:0$n,romfile="; done)
	# shellcheck disable=SC2086,SC2046 # several words
	timeout "$LIMIT" "${qemu[@]}" -accel $(qemu_accelerator "$folder/boot/vmlinuz-$release") -smp 1 -m 1G -display none -monitor none \
		-serial "file:$work/console" -serial "file:$work/results" -kernel "$folder/boot/vmlinuz-$release" -initrd "$work/initrd" \
		-append "console=ttyS0 loglevel=5 mitigations=off net.ifnames=1 slub_debug=FZPU systemd.show_status=0" \
		-drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" $nic < /dev/null > "$work/qemu.log" 2>&1
}

ktap_header
for need in debootstrap cpio busybox mke2fs; do
	PATH=$PATH:/usr/sbin:/sbin command -v $need > /dev/null || { ktap_skip "all" "needs $need"; ktap_end; }
done
root_up || { ktap_fail "a root with systemd"; ktap_end; }
release=$("$REPO/tools/vm/kernel.sh" -c release 6.12) && folder=$("$REPO/tools/vm/kernel.sh" image "$release") || { ktap_fail "a kernel"; ktap_end; }
ktap_check "packages, and the module for $release as a package" packages || ktap_end
ktap_check "lintian has nothing to say about the module's package" lint_debs "/test/roan-modules*.deb"
ktap_check "a disk" disk || ktap_end
initrd
echo "# the disk was ready after $SECONDS s"
boot
echo "# the guest ended after $SECONDS s"
tr -d '\r' < "$work/results" > "$work/lines"
while read -r line; do
	case $line in
	"ok "*) ktap_pass "${line#ok }" ;;
	"not ok "*) ktap_fail "${line#not ok }" ;;
	*) echo "# ${line#\# }" ;;
	esac
done < "$work/lines"
ktap_check "the guest came to its end" grep -qx '# end' "$work/lines" || tail -n 30 "$work/console" "$work/qemu.log" | sed 's/^/# /'
ktap_check "the kernel reported no error" eval "[ -s '$work/console' ] && ! grep -aE '$KERNEL_REPORTS' '$work/console'"
[ -z "${KEEP:-}" ] || cp "$work"/{console,results,qemu.log} "$KEEP"
ktap_end
