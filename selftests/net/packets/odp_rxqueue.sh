#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Packets whose page is not present are queued until the page fault ends, and the sender gets pause frames.
# odp_rxqueue.py has the cases. A page fault lasts as long as the file system of the mapped file is frozen.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/python.sh"

slow_file() {
	truncate -s 32M /tmp/slow.img && mkfs.ext2 -qF /tmp/slow.img && mkdir /tmp/slow && modprobe -q loop
	mount -o loop /tmp/slow.img /tmp/slow && dd if=/dev/zero of=/tmp/slow/file bs=1M count=8
}

ktap_header
python_needs odp_rxqueue
{ load_modules && two_hosts && in_order && slow_file; } > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
on h2 cat /sys/class/net/v2/address > /run/mac2
python_runs odp_rxqueue 550 env
fsfreeze -u /tmp/slow 2> /dev/null
ktap_end
