#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs the scripts that `suites` lists, each in a fresh guest. A script that is listed but not there is a failure, and so
# is a guest that ends badly after its script printed only passes.
#   suites.sh [LAB [SCRIPT]]
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
bad=0
while read -r lab seconds script args <&3; do
	case $lab in '' | \#*) continue ;; esac
	[ -z "${1:-}" ] || [ "$1" = "$lab" ] || continue
	[ -z "${2:-}" ] || [[ $script == *"$2"* ]] || continue
	echo "# $lab: $script $args"
	# shellcheck disable=SC2086 # $args is a list of words
	"$HERE/run.sh" "$lab" -s "$seconds" "$REPO/$script" $args < /dev/null
	rc=$?
	case $rc in
	0 | 4) ;;
	1) bad=1 ;;			# the script said which
	*) bad=1; echo "not ok $script in $lab # status $rc" ;;
	esac
done 3< "$HERE/suites"
exit $bad
