#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs what `suites` lists, each script in a fresh guest, after building what they need. A guest sleeps for much of its
# time, so two CPUs have three lanes: each takes the next row that is its kind and that none has taken. QEMU's guests use
# two CPUs, everything else one, so one lane is theirs and two are for the rest, one of which helps when that is done; each
# of these keeps its UML guests on a CPU of its own. What a row prints is shown when it is done. A script that is listed
# but not there is a failure, and so is a guest that ends badly after its script printed only passes.
#   suites.sh [-j CPUS] [-f LIST] [LAB [SCRIPT]]
#	LAB: a word of run.sh, or a part of it; `guests`: all but the host	SCRIPT: part of a name
#	CPUS: how many to count on (default: as many as there are)	LIST: another file than `suites`
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
. "$HERE/cpu_times.sh"
work=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null; rm -rf "$work"' EXIT
trap exit INT TERM

# NAME=VALUE words go into the script's environment, options are run.sh's, other words are its arguments.
guest() { # LAB SECONDS SCRIPT [WORD...]
	local lab=$1 seconds=$2 script=$3 rc w args=() opts=()
	shift 3
	for w; do
		case $w in
		-*) opts+=("$w") ;;
		[A-Z]*=*) export "${w?}"; LAB_ENV="${LAB_ENV:-} ${w%%=*}" ;;
		*) args+=("$w") ;;
		esac
	done
	# The first script of a lab has the module built for its kernel.
	[ ! -e "$work/built.$lab" ] || opts+=(-n)
	export LAB_ENV
	if [[ $lab == qemu* ]]; then
		export STRICT=1				# as lint.sh builds it
		# Its emulator takes a quarter less of the host's time. If it cannot be had, that is found out once.
		[ -n "${EMULATOR:-}" ] || [ -e "$work/no_root" ] || "$HERE/debian.sh" root trixie > /dev/null || touch "$work/no_root"
	fi
	"$HERE/run.sh" "$lab" -s "$seconds" "${opts[@]}" "$REPO/$script" "${args[@]}"
	rc=$?
	[ $rc = 97 ] || touch "$work/built.$lab"
	return $rc
}

# A row passes or fails by what it prints; one that prints no result has its status for one.
row() { # OUTPUT LAB SECONDS SCRIPT [WORD...]
	local out=$1 lab=$2 rc said=y began=$SECONDS
	shift
	echo "# $lab: ${*:3}"
	case $lab in
	host) timeout "$2" "${@:3}" ;;
	*) guest "$@" ;;
	esac < /dev/null
	rc=$?
	case $lab,$rc in
	host,*) grep -qE '^ *(not )?ok' "$out" || said= ;;
	*,[014]) ;;
	*) said= ;;
	esac
	[ $rc = 0 ] || [ $rc = 4 ] || grep -qE '^ *not ok' "$out" || said=
	case $rc,$said in
	[04],) echo "ok ${*:3}" ;;
	*,) echo "not ok ${*:3} in $lab # status $rc" ;;
	esac
	cpu_seconds "$out.times"
	echo "# $lab: ${*:3:2}: $((SECONDS - began)) s, $SPENT s of CPU"
}

lane() { # KIND WANTED-LAB WANTED-SCRIPT
	local kind lab seconds words n=0
	while read -r lab seconds words <&3; do
		n=$((n + 1)) kind=light
		[[ $lab != qemu* ]] || kind=qemu
		[[ $kind == "$1" && $lab == *"$2"* && $words == *"$3"* ]] || continue
		mkdir "$work/$n" 2> /dev/null || continue	# another lane's
		echo "# $lab: $words starts"
		# shellcheck disable=SC2086 # a list of words
		(row "$work/$n/out" "$lab" "$seconds" $words) > "$work/$n/out" 2>&1
		flock "$work" cat "$work/$n/out"
	done 3< "$work/rows"
}

cpus=$(nproc)
list=$HERE/suites
while getopts j:f: o; do
	case $o in
	j) cpus=$OPTARG ;;
	f) list=$(readlink -f "$OPTARG") ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
cd "$REPO" || exit
grep -v '^ *#' "$list" > "$work/rows"
[ "${1:-}" != guests ] || { sed -i '/^host/d' "$work/rows"; shift; }
began=$SECONDS
{ make -s provider programs && make -s -C selftests/unit ktap; } || { echo "not ok the provider and the tests' programs build"; exit 1; }
echo "# built the provider and the tests' programs in $((SECONDS - began)) s"
for ((n = 0; n == 0 || n < cpus / 2; n++)); do
	lane qemu "${1:-}" "${2:-}" &
	LAB_CPU=$((2 * n)) lane light "${1:-}" "${2:-}" &
	{ LAB_CPU=$((2 * n + 1)) lane light "${1:-}" "${2:-}"; lane qemu "${1:-}" "${2:-}"; } &
done
wait
! grep -qE '^ *not ok' "$work"/*/out
