#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by nfs.sh and smb.sh: files of MB MiB that the client writes below MOUNT and the server has below EXPORT. Their
# client() and server() run a command where it sees that folder. No verdict of its own.

fill() { # NAME MIB
	timeout 500 dd if=/dev/urandom of="/tmp/$1" bs=1M count="$2" 2> /dev/null
}
write_file() { client timeout 500 dd if="/tmp/$1" of="$MOUNT/$1" bs="$2" conv=fsync 2>&1; } # NAME BYTES
same() { # NAME: what the server has, and what the client reads
	server cmp "/tmp/$1" "$EXPORT/$1" && echo 3 > /proc/sys/vm/drop_caches && client timeout 500 cmp "/tmp/$1" "$MOUNT/$1"
}
write_and_compare() { # BYTES: of each write
	fill file "$MB" && write_file file "$1" && same file
}
many_small_files() {
	client timeout 500 sh -c "mkdir $MOUNT/many && for i in \$(seq 200); do echo \"file \$i\" > $MOUNT/many/\$i; done" &&
		[ "$(server sh -c "cat $EXPORT/many/*" | sort -u | wc -l)" = 200 ]
}

write_until() { # FILE: it ends the writing
	until [ -e "$1" ]; do
		write_file again 64k || return
	done
	write_file again 64k
}
write_while() { # COMMAND...
	local pid rc=0
	fill again "$MB" || return
	rm -f /tmp/enough
	write_until /tmp/enough > /tmp/write.log 2>&1 & pid=$!
	sleep 1
	"$@" || rc=$?
	touch /tmp/enough
	wait $pid && [ $rc = 0 ] && same again || { cat /tmp/write.log; return 1; }
}
