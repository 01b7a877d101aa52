#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Compares two builds of roan by instructions per message: those of the client, of the server and of the kernel. Runs in a
# guest with one CPU whose clock counts instructions (ICOUNT=y of run.sh), so the load of the machine does not change the
# result. Does not measure caches, locks between CPUs and waiting; `make bench` does. Does not measure latency, which on
# one CPU depends on the scheduler's choice of program. compare.sh builds the other commit and starts the guest.
#	OLD_KO=FILE OLD_PROVIDER=DIR: the other build	LIMIT=1.02: fails if a test's ratio is above	ROUNDS=1
#	ONLY="NAME|NAME...": runs these tests only
# Each round measures the old build, then the new one. Prints the mean of the rounds of each test, in instructions per message.
. "$(dirname "$0")/../vm/lib.sh"
LIMIT=${LIMIT:-1.02} ROUNDS=${ROUNDS:-1}
NEW_KO=$(roan_ko) NEW_PROVIDER=${PROVIDER:-$REPO/build/provider}
OLD_PROVIDER=${OLD_PROVIDER:-$NEW_PROVIDER}
# Name, program, number of messages, bytes of a message.
TESTS='write-64 ib_write_bw 50000 64
write-4096 ib_write_bw 10000 4096
write-65536 ib_write_bw 2000 65536
send-64 ib_send_bw 50000 64
read-64 ib_read_bw 20000 64
read-65536 ib_read_bw 2000 65536'

use_provider() { # DIR: overwrites the file that selftests/vm/guest.sh made
	echo "driver $1/libroan" > /etc/libibverbs.d/roan.driver
}

# Instructions per message. perftest prints messages per microsecond, and each instruction takes 1 ns of the guest's clock.
measured() { awk '/^ *#bytes/ { getline; print 1000 / $5; exit }' /tmp/client; }

run_test() { # PROGRAM COUNT SIZE
	local server
	on h2 "$1" -F -m 4096 -d $H2DEV -x "$(gid_index $H2DEV $H2IP h2)" -n "$2" -s "$3" > /tmp/server 2>&1 &
	server=$!
	wait_for 20 listening h2 18515
	on h1 "$1" -F -m 4096 -d $H1DEV -x "$(gid_index $H1DEV $H1IP h1)" -n "$2" -s "$3" $H2IP > /tmp/client 2>&1
	wait $server
	measured
}

listening() { [ -n "$(on "$1" ss -Hltn "sport = :$2")" ]; }

round() { # NAME KO PROVIDER
	local test program count size value
	rmmod roan 2> /dev/null
	ROAN_KO=$2 load_modules || return
	use_provider "$3"
	two_hosts || return
	while read -r test program count size; do
		value=$(run_test "$program" "$count" "$size")
		[ -n "$value" ] || { sed 's/^/# /' /tmp/client; return 1; }
		echo "@ $test $1 $value"
	done <<< "$(grep -E "^(${ONLY:-.*}) " <<< "$TESTS")"
	two_hosts_down
	rmmod roan
}

[ -e "${OLD_KO:-}" ] || { echo "OLD_KO must be the roan.ko of the other build"; exit 2; }
for ((n = 1; n <= ROUNDS; n++)); do
	round old "$OLD_KO" "$OLD_PROVIDER" && round new "$NEW_KO" "$NEW_PROVIDER" || exit 1
done | tee /tmp/values
[ "${PIPESTATUS[0]}" = 0 ] || exit 1
awk -v limit="$LIMIT" '
$1 == "@" { sum[$2, $3] += $4; n[$2, $3]++; if (!seen[$2]++) order[++tests] = $2 }
END {
	printf "%-14s %10s %10s %8s\n", "test", "old", "new", "new/old"
	for (i = 1; i <= tests; i++) {
		test = order[i]
		if (!sum[test, "old"] || !sum[test, "new"]) { bad = 1; continue }
		old = sum[test, "old"] / n[test, "old"]; new = sum[test, "new"] / n[test, "new"]
		printf "%-14s %10.0f %10.0f %8.3f%s\n", test, old, new, new / old, (new / old > limit ? "  above " limit : "")
		bad = bad || new / old > limit
	}
	exit bad || !tests
}' /tmp/values
