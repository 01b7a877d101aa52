#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# KUnit suites in a guest whose kernel has KUnit: loads roan_test.ko, prints each case as one KTAP line, and checks that
# each case of the userspace run (its output is build/unit/ktap, made by `make kunit`) also ran here.
. "$REPO/selftests/vm/lib.sh"
ko=$(dirname "${ROAN_KO:?}")/roan_test.ko
userspace=$REPO/build/unit/ktap

cases() { # KTAP -> "pass|fail|skip SUITE: CASE"; deeper levels, the parameters of a case, are ignored
	awk '/^    # Subtest: / { suite = $3 }
	     /^    (not )?ok [0-9]/ { bad = $1 == "not"; print bad ? "fail" : /# SKIP/ ? "skip" : "pass", suite ":", $(3 + bad) }'
}

ktap_header
[ -e "$ko" ] || { ktap_fail "roan_test.ko was built"; ktap_end; }
load_modules > /dev/null 2>&1
log_mark
insmod "$ko" || { ktap_fail "roan_test.ko loads"; log_since | tail -n 20; ktap_end; }
log_since -t > /tmp/ktap
cases < /tmp/ktap > /tmp/cases
while read -r result name; do
	case $result in
	fail)	grep -B20 "not ok [0-9]* ${name#*: }\$" /tmp/ktap | sed 's/^/# /'
		ktap_fail "$name" ;;
	*)	"ktap_$result" "$name" ;;
	esac
done < /tmp/cases
[ "$KTAP_N" -gt 0 ] || ktap_fail "any case ran"
if [ -s "$userspace" ]; then
	cases < "$userspace" | cut -d' ' -f2- | sort > /tmp/want
	awk 'NR == FNR { pure[$1]; next } $2 in pure { print $2, $3 }' /tmp/want /tmp/cases | sort > /tmp/got
	ktap_check "the $(wc -l < /tmp/want) cases of userspace ran here too" diff /tmp/want /tmp/got
else
	ktap_fail "the cases of userspace ran here too" "no $userspace"
fi
ktap_check "roan_test.ko unloads" rmmod roan_test
ktap_end
