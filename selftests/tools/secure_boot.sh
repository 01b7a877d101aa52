#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# roan.ko where the kernel demands signatures: OVMF with Microsoft's keys and Secure Boot, Debian's shim, GRUB and stock kernel, in QEMU over
# this machine's root. The steps of "Secure Boot" in Documentation/getting-started.md, with a throw-away key.
#
#	boot 1: the key is unknown: the module is refused unsigned and signed -> mokutil --import -> power off
#	boot 2: shim starts MokManager: keys typed at its serial console enrol the key -> the signed module loads, the unsigned one does not
#
# secure_boot_guest.sh runs at each boot. KEEP=FOLDER keeps the consoles and logs.
# shellcheck disable=SC2034,SC2154 # variables of qemu.sh
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$REPO/tools/vm/qemu.sh"
CACHE=${ROAN_CACHE:-$HOME/.cache/roan}
LIMIT=${LIMIT:-600}	# seconds, of a boot
PASSWORD=throwaway
say() { echo "# $*"; }

firmware() { # sets `packages`: the firmware and the boot loaders, unpacked
	packages=$CACHE/secure-boot
	exec 9> "$packages.lock"
	flock 9
	[ -e "$packages/ready" ] || { rm -rf "$packages" && "$REPO/tools/vm/kernel.sh" unpack "$packages" ovmf shim-signed \
		shim-helpers-amd64-signed grub-efi-amd64-signed mokutil > "$work/log" 2>&1 && touch "$packages/ready"; } || { tail "$work/log"; return 1; }
	exec 9>&-
	cp "$packages/usr/share/OVMF/OVMF_VARS_4M.ms.fd" "$work/vars"
}

# The commands of getting-started.md for a module without DKMS.
module() {
	local headers out=$work/out
	headers=$("$REPO/tools/vm/kernel.sh" headers "$release") || return
	make -s -j"$(nproc)" -C "$REPO" module KDIR="$headers" > "$work/log" 2>&1 || { tail "$work/log"; return 1; }
	cp "$REPO/build/$release/roan.ko" "$out/unsigned.ko"
	cp "$out/unsigned.ko" "$out/signed.ko"
	openssl req -new -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=roan throw-away key" -addext extendedKeyUsage=codeSigning \
		-outform DER -keyout "$work/mok.key" -out "$out/mok.pub" 2> "$work/log" || { cat "$work/log"; return 1; }
	"$headers/scripts/sign-file" sha256 "$work/mok.key" "$out/mok.pub" "$out/signed.ko"
}

# A FAT file system that QEMU makes of a folder.
esp() {
	mkdir -p "$work"/esp/EFI/{BOOT,debian}
	cp "$packages/usr/lib/shim/shimx64.efi.signed" "$work/esp/EFI/BOOT/BOOTX64.EFI"
	cp "$packages/usr/lib/shim/mmx64.efi.signed" "$work/esp/EFI/BOOT/mmx64.efi"
	cp "$packages/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed" "$work/esp/EFI/BOOT/grubx64.efi"
	cp "$folder/boot/vmlinuz-$release" "$work/esp/vmlinuz"
	qemu_initrd "$folder" "$release" "/out/guest.sh $REPO secure-boot $HERE/secure_boot_guest.sh > /dev/hvc0 2>&1" && mv "$work/initrd" "$work/esp"
	cat > "$work/esp/EFI/debian/grub.cfg" <<-'END'
		linux /vmlinuz console=ttyS0 quiet panic=-1 mitigations=off
		initrd /initrd
		boot
	END
}

typed() { # TEXT KEYS: types the keys once the text is on the console, after what was there before
	for _ in $(seq $((LIMIT * 2))); do
		! tail -c "+$seen" "$work/console" | grep -aq "$1" || break
		kill -0 "$emulator" 2> /dev/null || return
		sleep 0.5
	done
	seen=$(stat -c %s "$work/console")
	sleep 1
	printf '%b' "$2" > "$work/serial.in"
}

# MokManager's menus: it waits ten seconds for any key, then shows lists in which the cursor keys move.
enrol() {
	typed 'Press any key' ' '
	typed 'Enroll MOK' '\e[B\r'
	typed 'View key 0' '\e[B\r'
	typed 'Enroll the key' '\e[B\r'
	typed 'Password' "$PASSWORD\\r"
	typed 'Reboot' '\r'
}

no_report() { [ -s "$out/dmesg" ] && ! complaints | grep .; }

boot() { # NAME [enrol]
	local exports shares=() reader seen=1
	: > "$work/console"
	rm -f "$out"/{started,rc,log,dmesg}
	rm -f "$work"/serial.*
	mkfifo "$work"/serial.{in,out}
	cat "$work/serial.out" > "$work/console" & reader=$!
	export_folders "$folder" "$release"
	# One CPU: the race of the emulator with several is not met (qemu.sh).
	# shellcheck disable=SC2086 # $accel is several words
	timeout "$LIMIT" "${qemu[@]}" -machine q35,smm=on -global driver=cfi.pflash01,property=secure,value=on -accel $accel -smp 1 -m 2G \
		-drive "if=pflash,format=raw,unit=0,readonly=on,file=$packages/usr/share/OVMF/OVMF_CODE_4M.secboot.fd" \
		-drive "if=pflash,format=raw,unit=1,file=$work/vars" -drive "if=virtio,format=raw,readonly=on,file=fat:$work/esp" \
		-display none -monitor none -nic none -serial "pipe:$work/serial" \
		-device virtio-serial "${exports[@]}" -chardev "file,id=c0,path=$work/results" -device virtconsole,chardev=c0 \
		< /dev/null > "$work/qemu.log" 2>&1 & emulator=$!
	[ -z "${2:-}" ] || enrol
	wait $emulator
	kill $reader 2> /dev/null
	say "$1 ended after $SECONDS s"
	tr -d '\r' < "$work/results" > "$work/lines"
	ktap_relay "$work/lines" "secure_boot_guest.sh" "$(cat "$out/rc" 2> /dev/null || echo 99)" "$1: "
	ktap_check "$1: the kernel reported no error" no_report
	[ -z "${KEEP:-}" ] || { mkdir -p "$KEEP" && for f in console results qemu.log; do cp "$work/$f" "$KEEP/$f.$1"; done; }
	ktap_check "$1: the guest came to its end" test -e "$out/rc" || tail -n 30 "$work/console" "$work/qemu.log" | sed 's/^/# /'
}

ktap_header
for need in cpio busybox openssl; do
	command -v $need > /dev/null || { ktap_skip "all" "needs $need"; ktap_end; }
done
work=$(mktemp -d /var/tmp/roan-secure.XXXXXX)
trap 'rm -rf "$work"' EXIT
out=$work/out lower=/ mem=2G
mkdir "$out"
cp "$REPO"/tools/vm/{guest.sh,fstab} "$out"
: > "$out/env"
mapfile -t qemu < <(if [ -n "${EMULATOR:-}" ]; then echo "$EMULATOR"; else "$REPO/selftests/vm/debian.sh" emulator; fi)
release=$("$REPO/tools/vm/kernel.sh" -c release 6.12) && folder=$("$REPO/tools/vm/kernel.sh" image "$release") || { ktap_fail "a kernel"; ktap_end; }
firmware || { ktap_skip "all" "the packages with the firmware and boot loaders cannot be fetched"; ktap_end; }
ktap_check "roan.ko for $release, signed by the commands of the page" module || ktap_end
accel=$(qemu_accelerator "$folder/boot/vmlinuz-$release")
cp "$packages/usr/bin/mokutil" "$out"
find "$packages" -name 'libefivar.so*' -exec cp {} "$out" \;
echo "$PASSWORD" > "$out/password"
esp
boot "boot 1"
boot "boot 2" enrol
ktap_end
