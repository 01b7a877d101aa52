#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs the scripts that `suites` lists, each in a fresh guest, after building what they need. UML is one thread and QEMU
# about two, so one guest of each kind runs at a time; what a script prints is shown when it is done. A script that is
# listed but not there is a failure, and so is a guest that ends badly after its script printed only passes.
#   suites.sh [LAB [SCRIPT]]		LAB: a word of run.sh, or a part of it; SCRIPT: part of a name
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# NAME=VALUE words go into the script's environment, options are run.sh's, other words are its arguments.
one() { # LAB SECONDS SCRIPT [WORD...]
	local lab=$1 seconds=$2 script=$3 rc w args=() opts=() began=$SECONDS
	shift 3
	for w; do
		case $w in
		-*) opts+=("$w") ;;
		[A-Z]*=*) export "${w?}"; LAB_ENV="${LAB_ENV:-} ${w%%=*}" ;;
		*) args+=("$w") ;;
		esac
	done
	# The first script of a lab has the module built for its kernel.
	[ ! -e "$work/built.$lab" ] || opts=(-n)
	export LAB_ENV
	"$HERE/run.sh" "$lab" -s "$seconds" "${opts[@]}" "$REPO/$script" "${args[@]}" < /dev/null
	rc=$?
	[ $rc = 97 ] || touch "$work/built.$lab"
	case $rc in
	0 | 4) ;;
	1) touch "$work/bad" ;;		# the script said which
	*) touch "$work/bad"; echo "not ok $script in $lab # status $rc" ;;
	esac
	echo "# $lab: $script: $((SECONDS - began)) s"
}

lane() { # KIND WANTED-LAB WANTED-SCRIPT
	local lab seconds script words
	while read -r lab seconds script words <&3; do
		[[ $lab == "$1"* && $lab == *"$2"* && $script == *"$3"* ]] || continue
		echo "# $lab: $script $words"
		# shellcheck disable=SC2086 # a list of words
		(one "$lab" "$seconds" "$script" $words) > "$work/$lab.out" 2>&1
		flock "$work" cat "$work/$lab.out"
	done 3< <(grep -v '^ *#' "$HERE/suites")
}

make -s -C "$REPO" provider programs || { echo "not ok the provider and the tests' programs build"; exit 1; }
lane uml "${1:-}" "${2:-}" &
lane qemu "${1:-}" "${2:-}"
wait
[ ! -e "$work/bad" ]
