#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A soak of HOURS (2): ../net/soak.sh again and again, MINUTES (20) in a guest, always in the lab that has run least so far.
# Stops at the first failure or report of a kernel. LABS="LAB ...": only these; `fuzz` is ../fuzz/uverbs, whose calls count
# as rounds. Each guest's figures are a line of soak.csv in ROAN_CACHE, so an interrupted soak goes on; the sums of each lab are printed at the end.
set -eu
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
table=${ROAN_CACHE:-$HOME/.cache/roan}/soak.csv
minutes=${MINUTES:-20}
labs=${LABS:-uml-debug fuzz qemu-6.12 qemu-6.1 smp-debug smp-kcsan arm64 s390x}
mkdir -p "${table%/*}"
[ -e "$table" ] || echo "date,commit,lab,seed,seconds,rounds,messages,bytes,lost,corrupted,kib" > "$table"

# Prints the lab of $labs that has run for the least time.
next_lab() {
	awk -F, -v labs="$labs" 'NR > 1 { took[$3] += $5 }
		END { n = split(labs, lab, " "); for (i = 1; i <= n; i++) if (!least || took[lab[i]] < took[least]) least = lab[i]; print least }' "$table"
}

guest() { # LAB SEED
	export MINUTES=$minutes SEED=$2
	case $1 in
	fuzz) LAB='' "$REPO/selftests/fuzz/uverbs/uverbs.sh" ;;
	qemu*) LAB_ENV="MINUTES SEED" "$HERE/run.sh" "$1" -k slub_debug=FZP -s $((minutes * 60 + 600)) "$REPO/selftests/net/soak.sh" ;;
	*) LAB_ENV="MINUTES SEED" "$HERE/run.sh" "$1" -s $((minutes * 60 + 600)) "$REPO/selftests/net/soak.sh" ;;
	esac
}

run() { # LAB SEED
	local out commit figures
	out=$(mktemp)
	commit=$(git -C "$REPO" rev-parse --short HEAD)
	if ! (guest "$@") > "$out" 2>&1; then
		cat "$out"
		echo "not ok soak in $1, seed $2 # output in $out"
		exit 1
	fi
	figures=$(sed -n 's/^# soak: //p' "$out" | grep -oE -- '-?[0-9]+ ' | tr -d ' ' | paste -sd ,)
	[ "$1" != fuzz ] || figures=$((minutes * 60)),$(sed -n 's/^# fuzz: \([0-9]*\) calls.*/\1/p' "$out"),0,0,0,0,0
	rm "$out"
	echo "$(date +%F),$commit,$1,$2,$figures" >> "$table"
	echo "# $1, seed $2: $figures"
}

sums() {
	awk -F, 'NR > 1 { t[$3] += $5; r[$3] += $6; m[$3] += $7; b[$3] += $8; l[$3] += $9; c[$3] += $10; if ($11 > k[$3]) k[$3] = $11 }
		END { print "| lab | hours | rounds | messages | GB compared | packets lost | corrupted | most memory, KiB |\n|---|---|---|---|---|---|---|---|"
			for (i in t) printf "| %s | %.1f | %d | %d | %.1f | %d | %d | %d |\n", i, t[i] / 3600, r[i], m[i], b[i] / 1e9, l[i], c[i], k[i] }' "$table"
}

make -s -C "$REPO" provider programs
until=$((SECONDS + $(awk "BEGIN { print int(${HOURS:-2} * 3600) }")))
while [ $SECONDS -lt $until ]; do
	lab=$(next_lab)
	run "$lab" $((RANDOM + 1))
done
sums
echo "ok soak"
