#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests the scripts of this folder: guests end with the script that started them, and what goes wrong is a failure. Boots
# guests of its own.
#
#	this script --signal--> run.sh, or suites.sh - lane - row - run.sh        --> timeout --> guest
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/lib.sh"
cd "$REPO" || exit
dir=$(mktemp -d /tmp/roan-labs.XXXXXX)
log=$dir/log
trap 'rm -rf "$dir"' EXIT

family() { # PID...: prints these, and all processes that descend from them
	local p
	for p; do
		echo "$p"
		# shellcheck disable=SC2046 # a list of numbers
		family $(pgrep -P "$p")
	done
}

# shellcheck disable=SC2317 # called by wait_for
has_guest() { # PID
	ps -o comm= -p "$(family "$1" | paste -sd,)" | grep -qE '^(linux|qemu-system|ld-linux)'
}
# shellcheck disable=SC2317
all_ended() { # PID...
	local p
	for p; do [ ! -e "/proc/$p" ] || return; done
}

ends_by() { # SIGNAL COMMAND...
	local pids main
	set -m		# else the command ignores SIGINT
	setpriv --pdeathsig TERM "${@:2}" > "$log" 2>&1 < /dev/null &
	main=$!
	set +m
	wait_for 900 has_guest $main || { kill $main; ktap_fail "${*:2:2}: a guest starts" "$(tail -n 1 "$log")"; return; }
	pids=$(family $main)
	kill "-$1" $main
	wait $main
	# shellcheck disable=SC2086 # a list of numbers
	ktap_check "$2 $3 ended by SIG$1: nothing of it is left" wait_for 60 all_ended $pids
} 2> /dev/null		# bash says that a job was killed

rows() { printf '%s\n' "$@" > "$dir/rows"; }

# Runs TEXT in a guest.
guest_status() { # STATUS TEXT
	local rc
	printf '. "$REPO/selftests/vm/lib.sh"\n%s\n' "$2" > "$dir/script"
	selftests/vm/run.sh uml-debug -n -s 100 "$dir/script" > "$log" 2>&1
	rc=$?
	cat "$log"
	[ $rc = "$1" ]
}

report_is_printed() {
	guest_status 98 "for l in 'BUG a (b): c' 'Object 00ff: aa' ' ? guess+0x1/0x2' ' caller+0x1/0x2'; do echo \"\$l\" > /dev/kmsg; done" &&
		grep -q 'caller+0x1' "$log" && ! grep -qE 'Object 00ff|guess' "$log"
}

# Runs TEXT as the script of a row of lab `host`. The last result of suites.sh is that of the row: it must be RESULT.
host_row() { # RESULT TEXT
	echo "$2" > "$dir/script"
	rows "host 100 bash $dir/script"
	selftests/vm/suites.sh -f "$dir/rows" > "$log" 2>&1
	cat "$log"
	grep -E '^(not )?ok' "$log" | tail -n 1 | grep -qx "$1"
}

counted() { # "COUNTS" TEXT: TEXT is the output of a command that fails
	local said
	said=$(selftests/vm/ktap_count.sh "printf '$2'; exit 1" | tail -n 1)
	echo "$said"
	[ "$said" = "$1" ]
}

root_cannot_be_fetched() {
	! DEBIAN_MIRROR=http://127.0.0.1:9/debian ROAN_CACHE=$dir/cache selftests/vm/debian.sh run trixie true &&
		! compgen -G "$dir/cache/*/ready"
}

ktap_header
for signal in TERM INT; do
	ends_by $signal selftests/vm/run.sh uml-debug -n selftests/net/soak.sh
done
ends_by TERM selftests/vm/run.sh qemu-6.12 -n selftests/net/soak.sh
rows "uml-debug 100 selftests/net/soak.sh" "host 1000 selftests/vm/run.sh uml-debug -n selftests/net/loss.sh"
ends_by TERM selftests/vm/suites.sh -f "$dir/rows"
ktap_check "a warning of the guest's kernel after the script's end" guest_status 98 "(sleep 3; echo 'WARNING: late' > /dev/kmsg) &"
ktap_check "lockdep gives up without a warning" guest_status 98 "echo 'turning off the locking correctness validator.' > /dev/kmsg"
ktap_check "a report is printed, but for its dumps of memory" report_is_printed
ktap_check "kmemleak gives up" guest_status 98 'echo off > /sys/kernel/debug/kmemleak'
ktap_check "a guest that cannot save its kernel's log" guest_status 99 "chmod 0 /usr/bin/dmesg"
ktap_check "a script without a result in its row" host_row 'ok bash .*/script' true
ktap_check "... that skips" host_row 'ok bash .*/script # SKIP' 'exit 4'
ktap_check "... that fails" host_row 'not ok bash .*/script in host # status 3' 'exit 3'
# shellcheck disable=SC2016 # expanded there
ktap_check "a row that is killed" host_row 'not ok .*/script in host # the row was killed: status 137' 'kill -KILL $(ps -o ppid= -p $PPID)'
ktap_check "results below another result count, but not that one" counted "2 passed, 1 failed, 0 skipped" \
	'    ok 1 a\n    not ok 2 b\nnot ok 1 suite\nok 2 c\n'
ktap_check "the failure of a row that ended among such results counts" counted "1 passed, 2 failed, 0 skipped" \
	'    ok 1 a\nnot ok make test in host # status 124\nnot ok 1 c\n'
ktap_check "a root that cannot be fetched is not taken for complete" root_cannot_be_fetched
ktap_end
