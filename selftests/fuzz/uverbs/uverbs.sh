#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Fuzzes the user interface in a guest for MINUTES (1) and prints calls, calls a second, and the share of kernel/ that ran.
# The corpus stays in ROAN_CACHE/uverbs-corpus, and each run's figures are a line of ROAN_CACHE/uverbs.csv. LAB: uml-debug
# (default) or another with a KASAN kernel that run.sh builds with COVERAGE=y. SEED: default: the number of the run.
# KEEP=FOLDER: guest's files. After a report: the batch of programs that ran, and the command that runs it again.
set -eu
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../../..")
cache=${ROAN_CACHE:-$HOME/.cache/roan}
corpus=$cache/uverbs-corpus table=$cache/uverbs.csv
lab=${LAB:-uml-debug}
seconds=$((${MINUTES:-1} * 60))
kept=${KEEP:-$(mktemp -d)}
mkdir -p "$corpus" "$kept"
[ -e "$table" ] || echo "date,commit,lab,seed,seconds,calls,programs,corpus,blocks" > "$table"
seed=${SEED:-$(wc -l < "$table")}

make -s -C "$HERE"
# A batch may take a minute more on a loaded machine.
COVERAGE=y "$REPO/selftests/vm/run.sh" "$lab" -s $((seconds + 120)) -o "$kept" "$HERE/uverbs_fuzz.sh" \
	-t "$seconds" -s "$seed" -c "$corpus" | tee "$kept/log" || true
# A guest that died after the program's end has a result, too, but another status.
rc=${PIPESTATUS[0]}
if [ "$rc" != 0 ] || ! grep -q '^ok 1 uverbs_fuzz' "$kept/log"; then
	found=$cache/uverbs-found-$(date +%Y%m%d-%H%M%S)
	cp "$kept/last" "$found" || true
	echo "# again: COVERAGE=y selftests/vm/run.sh $lab selftests/fuzz/uverbs/uverbs_fuzz.sh -r $found -k 100"
	exit 1
fi
# Only programs that still add something are kept.
rm -rf "$corpus"
cp -r "$kept/corpus" "$corpus"
sed -n 's/^# fuzz: //p' "$kept/log" | tr -d , | {
	read -r calls _ _ _ programs _ programs_kept _ _ _ blocks _
	echo "$(date +%F),$(git -C "$REPO" rev-parse --short HEAD),$lab,$seed,$seconds,$calls,$programs,$programs_kept,$blocks" >> "$table"
}
for ko in "$REPO"/build/*coverage/roan.ko; do
	case $lab,$ko in uml-debug,*-um-debug-*|smp-*,*"$lab"*) "$HERE/lines.py" "$ko" "${ko%/*}/ran/$lab-uverbs_fuzz.sh" | sed 's/^/# /' ;; esac
done
awk -F, 'NR > 1 { calls += $6; s += $5 } END { printf "# %d runs: %d calls in %.1f hours without a report\n", NR - 1, calls, s / 3600 }' "$table"
[ -n "${KEEP:-}" ] || rm -rf "$kept"
