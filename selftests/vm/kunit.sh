#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The KUnit suites, in a guest whose kernel has KUnit: loads roan_test.ko and prints each case as one line of KTAP.
. "$REPO/selftests/vm/lib.sh"
ko=$(dirname "${ROAN_KO:?}")/roan_test.ko
ktap_header
[ -e "$ko" ] || { ktap_fail "roan_test.ko was built"; ktap_end; }
load_modules > /dev/null 2>&1
dmesg -C
insmod "$ko" || { ktap_fail "roan_test.ko loads"; dmesg | tail -n 20; ktap_end; }
while read -r line; do
	case $line in
	"not ok "*) dmesg | grep -F -B12 "$line" | sed 's/^/# /'; ktap_fail "${line#not ok * }" ;;
	"ok "*"# SKIP"*) ktap_skip "${line#ok * }" ;;
	"ok "*) ktap_pass "${line#ok * }" ;;
	esac
done < <(dmesg | sed -n 's/^\[[^]]*\] \{5,\}\(\(not \)\?ok [0-9]* .*\)/\1/p')
[ "$KTAP_N" -gt 0 ] || ktap_fail "any case ran"
ktap_check "roan_test.ko unloads" rmmod roan_test
ktap_end
