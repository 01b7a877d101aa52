#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs the scripts that `suites` lists, each in a fresh guest, after building what they need. A script that is listed but
# not there is a failure, and so is a guest that ends badly after its script printed only passes.
#   suites.sh [LAB [SCRIPT]]		SCRIPT: part of a name
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
bad=0 built=
make -s -C "$REPO" provider programs || { echo "not ok the provider and the tests' programs build"; exit 1; }
while read -r lab seconds script args <&3; do
	case $lab in '' | \#*) continue ;; esac
	[ -z "${1:-}" ] || [ "$1" = "$lab" ] || continue
	[ -z "${2:-}" ] || [[ $script == *"$2"* ]] || continue
	began=$SECONDS
	echo "# $lab: $script $args"
	# The first script of a lab has the module built for its kernel.
	again=
	[[ " $built " != *" $lab "* ]] || again=-n
	# shellcheck disable=SC2086 # $args is a list of words
	"$HERE/run.sh" "$lab" -s "$seconds" $again "$REPO/$script" $args < /dev/null
	rc=$?
	case $rc in
	0 | 4) ;;
	1) bad=1 ;;			# the script said which
	*) bad=1; echo "not ok $script in $lab # status $rc" ;;
	esac
	[ $rc = 97 ] || built="$built $lab"
	echo "# $lab: $script: $((SECONDS - began)) s"
done 3< "$HERE/suites"
exit $bad
