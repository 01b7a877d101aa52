#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs the given commands one after the other, also after failures, and counts the KTAP results they print. Of nested
# results only the innermost count. A command that fails without a "not ok" counts as one failure, one that passes
# without any result as one pass. The end has the time it took and repeats the failed lines below the name of their row (or
# command), for readers of the tail alone. Before each are its diagnostic lines, of many the first and the last twenty.
# The last line is "N passed, N failed, N skipped"; the status is 1 if any failed.
. "$(dirname "$(readlink -f "$0")")/cpu_times.sh"
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"*' EXIT

# suites.sh prints a line with the row's name after the row's output: "# LAB: SCRIPT: N s, N s of CPU".
failures() { # COMMAND
	awk -v part="$1" '
		/^# [^ ]+: .*: [0-9]+ s, [0-9]+ s of CPU$/ { tell($0); next }
		/^ *#/ { said[++lines] = $0; next }
		/^ *not ok / {
			for (i = 1; i <= lines; i++)
				if (i <= 20 || i > lines - 20) bad[++n] = said[i]
			bad[++n] = $0
		}
		{ lines = 0 }
		END { tell("# " part) }
		function tell(whose, i) {
			if (n) print whose
			for (i = 1; i <= n; i++) { sub(/^ *(# *)?/, "#     ", bad[i]); print substr(bad[i], 1, 300) }
			n = lines = 0
		}' "$log"
}

# Time spent: a sum over the rows of each lab (several rows run at a time), and the "# built" lines of suites.sh,
# kernel.sh and debian.sh.
took() {
	awk '/^# built .* in [0-9]+ s$/ { print "#     " substr($0, 3) }
		/^# [^ ]+: .*: [0-9]+ s, [0-9]+ s of CPU$/ { rows[$2]++; wall[$2] += $(NF - 5); cpu[$2] += $(NF - 3) }
		END { for (l in rows) printf "#     %s %d rows, %d s, %d s of CPU\n", l, rows[l], wall[l], cpu[l] }' "$log"
}

for part; do
	echo "# $part"
	bash -c "$part" 2>&1 | tee "$log"
	rc=${PIPESTATUS[0]}
	# A result that follows deeper ones is their summary: do not count it. But a row that failed says so behind its results.
	read -r p f s < <(awk '
		/^ *(not )?ok( |$)/ {
			match($0, /^ */); depth = RLENGTH
			if (deep > depth && !/ # status [0-9]+$/) { deep = depth; next }
			deep = depth
			if ($1 == "not") f++
			else if (/# SKIP/) s++
			else p++
		}
		END { print p + 0, f + 0, s + 0 }' "$log")
	[ "$rc" = 0 ] || [ "$f" -gt 0 ] || { echo "not ok $part # status $rc" | tee -a "$log"; f=1; }
	failures "$part" >> "$log.failed"
	took >> "$log.took"
	[ "$rc" != 0 ] || [ $((p + f + s)) -gt 0 ] || { echo "ok $part"; p=1; }
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
cpu_seconds "$log.times"
echo "# $SECONDS s, $SPENT s of CPU, on $(nproc) CPUs"
cat "$log.took"
[ ! -s "$log.failed" ] || { echo "# what failed:"; cat "$log.failed"; }
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
