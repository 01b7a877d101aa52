#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Run by secure_boot.sh in a guest with Secure Boot. At its first boot the key of signed.ko is unknown to the kernel, and is handed to shim;
# at the second it is enrolled.
. "$REPO/selftests/vm/lib.sh"
updates=/lib/modules/$(uname -r)/updates
mokutil() { LD_LIBRARY_PATH=/out /out/mokutil "$@"; }

installed() { # FILE: as make install does
	mkdir -p "$updates" && cp "/out/$1" "$updates/roan.ko" && depmod
}

# The answer of modprobe is that of the page "When it does not work".
refused() { # FILE
	installed "$1" && ! modprobe roan 2> /tmp/said && grep -q 'Key was rejected by service' /tmp/said && [ ! -e /sys/module/roan ]
}

doctor_says() { # CODE...
	local codes
	codes=$("$REPO/tools/roan" doctor --only module --json | tee /tmp/doctor | sed -n 's/.*"code": "\(.*\)".*/\1/p' | xargs)
	[ "$codes" = "$*" ] || { echo "# $codes"; cat /tmp/doctor; return 1; }
}

mkdir -p /run/lib
mount -t tmpfs t /run/lib && mkdir -p /run/lib/u /run/lib/w &&
	mount -t overlay -o lowerdir=/lib/modules,upperdir=/run/lib/u,workdir=/run/lib/w o /lib/modules
modprobe efivarfs && mount -t efivarfs e /sys/firmware/efi/efivars && mount -t securityfs s /sys/kernel/security
ktap_header
ktap_check "Secure Boot is on, and the kernel is locked down" eval 'mokutil --sb-state | grep -qx "SecureBoot enabled" && grep -q "\[integrity\]" /sys/kernel/security/lockdown'
ktap_check "the unsigned module is refused" refused unsigned.ko
ktap_check "the doctor: module-unsigned" doctor_says module-unsigned
if [ ! -e /out/imported ]; then
	ktap_check "the module signed with an unknown key is refused" refused signed.ko
	ktap_check "the doctor: module-key" doctor_says module-key
	ktap_check "mokutil --import" eval 'mokutil --generate-hash="$(cat /out/password)" > /tmp/hash && mokutil --import /out/mok.pub --hash-file /tmp/hash && touch /out/imported'
else
	ktap_check "the key is enrolled" eval 'mokutil --list-enrolled | grep -q "CN *= *roan throw-away key"'
	ktap_check "the signed module is installed; the doctor: module-not-loaded" eval "installed signed.ko && doctor_says module-not-loaded"
	ktap_check "it loads" modprobe roan
	ktap_check "the doctor: nothing" doctor_says
	ktap_check "it makes a device" eval "rdma link add roan0 type roan netdev lo && rdma link show roan0/1"
fi
ktap_end
