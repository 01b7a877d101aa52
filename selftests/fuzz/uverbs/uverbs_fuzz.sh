#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# In a guest whose roan.ko was built with COVERAGE=y: two hosts, and the fuzzer between them. uverbs.sh boots the guest.
#   uverbs_fuzz.sh [ARG...]	arguments of uverbs_fuzz; without -r it gets -o /out/kept
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"

set_up() {
	load_modules && two_hosts && modprobe -q udmabuf
	[ -e /sys/kernel/debug/roan_coverage ]
}

ktap_header
set_up > /tmp/setup.log 2>&1 || { cat /tmp/setup.log; ktap_fail "set-up"; ktap_end; }
mkdir -p /out/kept
case " $* " in *" -r "*) ;; *) set -- -o /out/kept "$@" ;; esac
"$PROGRAMS/uverbs_fuzz" "$@"
rc=$?
if [ $rc = 0 ]; then ktap_pass "uverbs_fuzz"; else ktap_fail "uverbs_fuzz" "status $rc"; fi
ktap_end
