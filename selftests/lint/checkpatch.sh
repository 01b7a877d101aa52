#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Prints the messages of the kernel's checkpatch.pl about files, except the kinds in checkpatch.ignore. Lines may have 120 columns.
# Exits 1 if there is any, and also if checkpatch does not work.
#   checkpatch.sh CHECKPATCH [--strict] IGNORED-KIND,... FILE...	CHECKPATCH: path of the program
ignore=$(dirname "$(readlink -f "$0")")/checkpatch.ignore
pl=$1 strict=
shift
[ "$1" != --strict ] || { strict=$1; shift; }
kinds=$(sed -nE 's/^([A-Z_]+)$/\1/p' "$ignore" | paste -sd,)
all=$(mktemp)
# It caches the names in CamelCase that a git checkout has.
trap 'rm -f "$all" .checkpatch-camelcase.*' EXIT
"$pl" --no-tree --terse --show-types --max-line-length=120 $strict --ignore "$kinds,$1" -f "${@:2}" > "$all" 2>&1
[ $? -le 1 ] || { tail -n 3 "$all"; exit 1; }	# 1: it found something
# A line `KIND FILE` of checkpatch.ignore is about this file only.
of_files=$(sed -nE 's|^([A-Z_]+) (.+)$|\2:[0-9]+: [A-Z]+:\1:|p' "$ignore" | paste -sd'|')
! grep -E ': (ERROR|WARNING|CHECK):' "$all" | grep -vE "${of_files:-^$}"
