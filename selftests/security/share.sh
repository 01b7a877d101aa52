#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced after lib.sh by the tests of what users share: programs that take something and hold it, as several users, on
# roan1 in namespace h1. It has no verdict.
#
# share_up; take ID "OPTIONS" WORD...: starts user_share, until it has what it can get; got ID TEXT: it said so; drop ID:
# ends it; share_check [-k] NAME COMMAND...: ktap_check, then ends all (-k: but the one with ID one).

share_up() {
	ktap_header
	{ load_modules && two_hosts && chmod 666 /dev/infiniband/uverbs*; } > /tmp/setup.log 2>&1 ||
		{ cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
}

# The process ids are in files, as ktap_check runs its command in a subshell.
take() {
	local id=$1 opts=$2 pid rc
	shift 2
	rm -f "/tmp/share.$id"	# the file may be of an earlier program
	# shellcheck disable=SC2086 # a list of options
	ip netns exec h1 timeout -k 2 500 "$PROGRAMS/user_share" -d "$H1DEV" $opts "$@" > "/tmp/share.$id" 2>&1 &
	pid=$!
	echo $pid > "/tmp/holder.$id"
	wait_for 300 taken_or_gone "$id" $pid
	grep -q '^got' "/tmp/share.$id" && return
	wait $pid
	rc=$?
	rm "/tmp/holder.$id"
	cat "/tmp/share.$id"
	[ $rc = 4 ] || rc=1
	return $rc
}
taken_or_gone() { grep -q '^got' "/tmp/share.$1" || ! kill -0 "$2"; }
got() { grep -q "^got $2\$" "/tmp/share.$1" || { echo "$1 $(cat "/tmp/share.$1"), not $2"; return 1; }; }
drop() {
	local pid
	pid=$(cat "/tmp/holder.$1") && rm "/tmp/holder.$1" && kill "$pid" && wait_for 300 gone "$pid"
}
gone() { ! kill -0 "$1"; }

share_check() {
	local file keep=none
	[ "$1" != -k ] || { keep=one; shift; }
	ktap_check "$@"
	for file in /tmp/holder.*; do
		[ ! -e "$file" ] || [ "${file#*.}" = $keep ] || drop "${file#*.}"
	done
}
