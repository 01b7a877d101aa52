#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by nvme.sh, scsi.sh and rnbd.sh, which export the file /tmp/disk of MB MiB. Their disk() prints the path of the
# initiator's block device, or nothing. No verdict of its own.

have_disk() { [ -n "$(disk)" ]; }
no_disk() { ! have_disk; }
# Half of the disk, without page cache; compared by the initiator and in the target's file.
write_and_compare() { # BYTES: of each request
	dd if=/dev/urandom of=/tmp/data bs=1M count=$((MB / 2)) 2> /dev/null
	timeout 400 dd if=/tmp/data of="$(disk)" bs="$1" oflag=direct conv=fsync 2>&1 &&
		timeout 400 dd if="$(disk)" of=/tmp/back bs="$1" count=$((MB / 2 * 1048576 / $1)) iflag=direct 2>&1 &&
		cmp /tmp/data /tmp/back && cmp -n $((MB << 19)) /tmp/data /tmp/disk
}
