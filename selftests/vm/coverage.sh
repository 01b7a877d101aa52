#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# In a guest, for run.sh with COVERAGE=y: runs a script and saves which basic blocks of roan.ko have run as /out/ran, a
# struct roan_coverage (../fuzz/uverbs/coverage.h).
#   coverage.sh SCRIPT [ARG...]
insmod "${ROAN_KO%/*}/roan_coverage.ko" || exit
[ -x "$1" ] || set -- bash "$@"
"$@"
rc=$?
cp /sys/kernel/debug/roan_coverage /out/ran || exit
exit $rc
