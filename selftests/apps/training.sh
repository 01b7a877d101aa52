#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Data-parallel training (train.py: numpy, mpi4py) on two hosts over roan: the loss curve is the single process's, and the
# gradients went through roan. Two ranks must agree bit by bit, as each sum has two terms; four ranks within 1e-12 of each
# loss, as MPI may add four terms in another order.
#
#	h1: rank 0 (, 1)          h2: rank 1 (, 2 ...)
#	Open MPI, UCX: roan1 ======== roan2		Allreduce of 0.6 MB in each of 40 steps
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/../verbs/pair.sh"
. "$HERE/mpi.sh"
WORK=$(mktemp -d)
STEPS=40
PYTHON=/usr/bin/python3			# mpi4py and numpy are Debian's
export OPENBLAS_NUM_THREADS=1

train() { $PYTHON "$HERE/train.py" --steps $STEPS "$@"; }
single() { train --shards "$1" > "$WORK/single.$1" && [ "$(wc -l < "$WORK/single.$1")" = $STEPS ]; }

# The gradient has 8 * 71,179 bytes. Each of the two hosts needs the other's, so each sends at least this in packets of
# 4096 bytes.
PACKETS=$((2 * STEPS * 8 * 71179 / 4096))
distributed() { # RANKS TRANSPORT OPTIONS
	mpi_run $PACKETS "$1" "$3" -x OPENBLAS_NUM_THREADS $PYTHON "$HERE/train.py" --steps $STEPS > "$WORK/ranks.$1.$2"
}
same_bits() { cmp "$WORK/single.$1" "$WORK/ranks.$1.$2"; }

learns() { # the last loss is less than a tenth of the first
	awk '{ last = $2 } NR == 1 { first = $2 } END { print first, last; exit !(last * 10 < first) }' "$WORK/single.1"
}

# close_to FILE FILE: equal step numbers, each loss within 1e-12 of the other file's
close_to() {
	$PYTHON - "$WORK/$1" "$WORK/$2" <<- 'END'
		import sys
		curves = [[(int(w[0]), float.fromhex(w[2])) for w in map(str.split, open(f))] for f in sys.argv[1:]]
		worst = max(abs(x - y) / abs(y) if n == m else 1 for (n, x), (m, y) in zip(*curves))
		print("largest relative difference", worst)
		sys.exit(len(curves[0]) != len(curves[1]) or worst > 1e-12)
	END
}

ktap_header
if ! command -v mpirun > /dev/null || ! $PYTHON -c 'import mpi4py, numpy' 2> /dev/null; then
	ktap_skip "training" "not installed: openmpi-bin python3-mpi4py python3-numpy"
	ktap_end
fi
{ pair_up && mpi_hosts; } > "$WORK/setup" 2>&1 || { cat "$WORK/setup"; ktap_fail "set-up"; ktap_end; }

ktap_check "one process, whole batches" single 1
ktap_check "the model learns" learns
ktap_check "one process, batches in 2 parts" single 2
ktap_check "one process, batches in 4 parts" single 4
ktap_check "2 parts: the same curve within 1e-12" close_to single.1 single.2
ktap_check "two hosts, 2 ranks, over rc_verbs" distributed 2 rc "$RC_OPTIONS"
ktap_check "2 ranks over rc_verbs: each loss equals the single process's to the bit" same_bits 2 rc
ktap_check "two hosts, 2 ranks, over ud_verbs" distributed 2 ud "$UD_OPTIONS"
ktap_check "2 ranks over ud_verbs: each loss equals the single process's to the bit" same_bits 2 ud
ktap_check "two hosts, 4 ranks, over rc_verbs" distributed 4 rc "$RC_OPTIONS"
ktap_check "4 ranks: the single process's curve within 1e-12" close_to single.4 ranks.4.rc
mpi_hosts_down
rm -rf "$WORK"
ktap_end
