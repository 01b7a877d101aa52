#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the provider and the test programs, then runs the rows of `suites`, each script in a fresh guest. A guest
# sleeps much of its time, so there are three lanes for two CPUs: one for QEMU guests, which use two CPUs, and two for
# all other rows. A lane takes the next row of its kind that no lane has taken; one of the two then helps with QEMU's
# rows. Each of the two binds its UML guests to one CPU. A row's output is printed when the row ends. A missing script
# is a failure, and so is a guest that ends with an error although its script printed only passes.
#   suites.sh [-j CPUS] [-f LIST] [LAB [SCRIPT]]
#	LAB: a LAB of run.sh, or part of one; `guests`: all rows but those of `host`	SCRIPT: part of a script's name
#	CPUS: number of CPUs to use (default: all)	LIST: a file instead of `suites`
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
. "$HERE/cpu_times.sh"
work=$(mktemp -d)
# Each lane is a process group. A time limit makes one of its own, so that ends with its parent.
trap 'for n in $(jobs -p); do kill -- "-$n" 2> /dev/null; done; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# Of the row's words NAME=VALUE go into the script's environment, options to run.sh, and the rest to the script.
guest() { # LAB SECONDS SCRIPT [WORD...]
	local lab=$1 seconds=$2 script=$3 rc w args=() opts=() allocator=(-k slub_debug=FZP)
	shift 3
	for w; do
		case $w in
		-*) opts+=("$w") ;;
		[A-Z]*=*) export "${w?}"; LAB_ENV="${LAB_ENV:-} ${w%%=*}" ;;
		*) args+=("$w") ;;
		esac
	done
	# Only the first row of a lab builds the module for that kernel.
	[ ! -e "$work/built.$lab" ] || opts+=(-n)
	export LAB_ENV
	if [[ $lab == qemu* ]]; then
		export STRICT=1				# same flags as lint.sh, so that its build is reused
	fi
	# A stock kernel has no KASAN, but checks every object of its allocator: 5 % of the time, and twice the memory. Not where
	# the row measures.
	[[ $lab == qemu* && " $* " != *" ICOUNT=y "* && " $* " != *" -kslub_debug="* ]] || allocator=()
	opts+=("${allocator[@]}")
	if [[ $lab != uml* ]]; then
		# trixie's QEMU takes a quarter less CPU time. If its root cannot be made, do not try again for each
		# row.
		[ -n "${EMULATOR:-}" ] || [ -e "$work/no_root" ] || "$HERE/debian.sh" root trixie > /dev/null || touch "$work/no_root"
	fi
	"$HERE/run.sh" "$lab" -s "$seconds" "${opts[@]}" "$REPO/$script" "${args[@]}"
	rc=$?
	[ $rc = 97 ] || touch "$work/built.$lab"
	return $rc
}

# A row's results are the KTAP lines it prints. A row of `host` that prints none counts as one result, by its status. A
# guest's script prints a plan in any case.
row() { # OUTPUT LAB SECONDS SCRIPT [WORD...]
	local out=$1 lab=$2 rc said=y began=$SECONDS
	shift
	echo "# $lab: ${*:3}"
	case $lab in
	host) setpriv --pdeathsig TERM timeout $((3 * $2)) "${@:3}" ;;	# as run.sh does for guests
	*) guest "$@" ;;
	esac < /dev/null
	rc=$?
	case $lab,$rc in
	host,*) grep -qE '^ *(not )?ok' "$out" || said= ;;
	*,[014]) grep -qE '^ *1\.\.[0-9]' "$out" || said= ;;	# a script that ended before ktap_end
	*) said= ;;
	esac
	[ $rc = 0 ] || [ $rc = 4 ] || grep -qE '^ *not ok' "$out" || said=
	case $lab,$rc,$said in
	host,0,) echo "ok ${*:3}" ;;
	host,4,) echo "ok ${*:3} # SKIP" ;;
	*,) echo "not ok ${*:3} in $lab # status $rc" ;;
	esac
	cpu_seconds "$out.times"
	echo "# $lab: ${*:3:2}: $((SECONDS - began)) s, $SPENT s of CPU"
}

lane() { # KIND WANTED-LAB WANTED-SCRIPT
	local kind lab seconds words n=0
	while read -r lab seconds words <&3; do
		n=$((n + 1)) kind=light
		case $lab in qemu* | smp* | arm64* | s390x) kind=qemu ;; esac
		[[ $kind == "$1" && $lab == *"$2"* && $words == *"$3"* ]] || continue
		mkdir "$work/$n" 2> /dev/null || continue	# taken by another lane
		echo "# $lab: $words starts"
		# shellcheck disable=SC2086 # a list of words
		(row "$work/$n/out" "$lab" "$seconds" $words) > "$work/$n/out" 2>&1 ||
			echo "not ok $words in $lab # the row was killed: status $?" >> "$work/$n/out"
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
set -m
for ((n = 0; n == 0 || n < cpus / 2; n++)); do
	lane qemu "${1:-}" "${2:-}" &
	LAB_CPU=$((2 * n)) lane light "${1:-}" "${2:-}" &
	{ LAB_CPU=$((2 * n + 1)) lane light "${1:-}" "${2:-}"; lane qemu "${1:-}" "${2:-}"; } &
done
set +m
wait
compgen -G "$work/*/out" > /dev/null || { echo "not ok a row of $list ran # none is of '${*:-}'"; exit 1; }
! grep -qE '^ *not ok' "$work"/*/out
