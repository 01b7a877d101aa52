#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs the commands given, each to its end whatever the others did, and counts the KTAP results they print. Of nested
# results only the innermost count. A command that fails without a "not ok" counts as one failure, one that passes
# without any result as one pass. The last line is "N passed, N failed, N skipped"; the status says whether any failed.
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for part; do
	echo "# $part"
	bash -c "$part" 2>&1 | tee "$log"
	rc=${PIPESTATUS[0]}
	# A result that closes deeper ones is their sum, so it is not counted.
	read -r p f s < <(awk '
		/^ *(not )?ok( |$)/ {
			match($0, /^ */); depth = RLENGTH
			if (deep > depth) { deep = depth; next }
			deep = depth
			if ($1 == "not") f++
			else if (/# SKIP/) s++
			else p++
		}
		END { print p + 0, f + 0, s + 0 }' "$log")
	[ "$rc" = 0 ] || [ "$f" -gt 0 ] || { echo "not ok $part # status $rc"; f=1; }
	[ "$rc" != 0 ] || [ $((p + f + s)) -gt 0 ] || { echo "ok $part"; p=1; }
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
