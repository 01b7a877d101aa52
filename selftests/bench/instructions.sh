#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Compares two builds of roan by the instructions that a message takes: the program, both ends, and the kernel between
# them. Runs in a guest with one CPU whose clock counts instructions (ICOUNT=y of run.sh), so the load of the machine does
# not change the result. Caches, locks between CPUs and waiting are not measured; `make bench` does that. Nor is latency:
# with one CPU it depends on which program the scheduler runs. compare.sh builds the other commit and starts the guest.
#	OLD_KO=FILE OLD_PROVIDER=DIR: the other build	LIMIT=1.02: fails if a test's ratio is above	ROUNDS=1
#	ONLY="NAME|NAME...": these tests
# Each round measures the old build, then the new one. Prints per test the mean of the rounds, in instructions a message.
. "$(dirname "$0")/../vm/lib.sh"
LIMIT=${LIMIT:-1.02} ROUNDS=${ROUNDS:-1}
NEW_KO=$(roan_ko) NEW_PROVIDER=${PROVIDER:-$REPO/build/provider}
OLD_PROVIDER=${OLD_PROVIDER:-$NEW_PROVIDER}
# Name, program, and how many messages of which size.
TESTS='write-64 ib_write_bw 50000 64
write-4096 ib_write_bw 10000 4096
write-65536 ib_write_bw 2000 65536
send-64 ib_send_bw 50000 64
read-64 ib_read_bw 20000 64
read-65536 ib_read_bw 2000 65536'

use_provider() { # DIR: the file that guest.sh made
	echo "driver $1/libroan" > /etc/libibverbs.d/roan.driver
}

# Instructions a message: perftest prints messages a microsecond, and an instruction takes 1 ns.
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

[ -e "${OLD_KO:-}" ] || { echo "OLD_KO names no module"; exit 2; }
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
