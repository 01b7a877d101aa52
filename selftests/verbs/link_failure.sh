#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Allocations fail, one after the other, while a device is created and deleted (link_failure.c), in kernels with fault
# injection (uml-debug, smp-debug). STEP=1: each allocation, but for those of the GID table; SEED: which ones.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
ktap_header
[ -d /sys/kernel/debug/failslab ] || { ktap_skip "allocation failures" "the kernel has no fault injection"; ktap_end; }
load_modules && ip link add x0 type dummy && ip addr add 10.9.0.1/24 dev x0 && ip link set x0 up || ktap_fail "set-up"
every_allocation_may_fail
"$PROGRAMS/link_failure" roan0 x0 "${STEP:-8}" "${SEED:-1}" > /tmp/link_failure.out 2>&1
ktap_relay /tmp/link_failure.out link_failure $?
ktap_check "the device that is created afterwards works" wait_for 60 ibv_devinfo -d roan0
ktap_check "its netdev can be removed, and the module unloaded" sh -c 'ip link del x0 && rmmod roan'
ktap_end
