#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs herd7 with the kernel's memory model on each test of this folder and those below it, and compares its answer with the
# line `Result:` of the test. Prints KTAP. Needs no guest. herd7 and the model come from Debian's packages (debian.sh,
# kernel.sh of ../vm), into the cache.
#   litmus.sh [TEST...]		TEST: a file; default: all
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"

observed() { # FILE: prints Never, Sometimes or Always
	"${herd7[@]}" -conf linux-kernel.cfg "$1" 2>&1 | tee "$log" | awk '$1 == "Observation" { print $3 }'
}

check() { # FILE
	local expected found
	expected=$(sed -n 's/^ \* Result: //p' "$1")
	found=$(observed "$1")
	[ -n "$expected" ] && [ "$found" = "$expected" ] && return
	cat "$log"
	echo "$1: ${expected:-no line Result:} expected, herd7 says ${found:-nothing}"
	return 1
}

tests=("$@")
[ $# -gt 0 ] || tests=("$HERE"/*.litmus "$HERE"/*/*.litmus)
mapfile -t tests < <(readlink -f "${tests[@]}")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
ktap_header
if ! words=$("$HERE/../vm/debian.sh" herd7 2> "$log") || ! model=$("$HERE/../vm/kernel.sh" memory-model 2> "$log"); then
	ktap_skip "litmus tests" "herd7 or the kernel's memory model cannot be fetched: $(tail -n 1 "$log")"
	ktap_end
fi
mapfile -t herd7 <<< "$words"
cd "$model/linux-source-6.12/tools/memory-model" || exit
for f in "${tests[@]}"; do
	name=${f#"$HERE"/}
	ktap_check "${name%.litmus}: $(sed -n 's/^ \* Result: //p' "$f")" check "$f"
done
ktap_end
