#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the module and the provider of another commit and compares them with those of this tree by instructions per
# message (instructions.sh). Takes about ten minutes. Exits with 1 if a test needs over 2 % more instructions.
#	compare.sh COMMIT
set -eu
[ $# = 1 ] || { sed -n 3,5p "$0"; exit 2; }
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
folder=$("$REPO/selftests/vm/kernel.sh" 6.12)
version=$(basename "$folder"/boot/vmlinuz-*)
version=${version#vmlinuz-}
commit=$(git -C "$REPO" rev-parse --short "$1^{commit}")
old=$REPO/build/compare/$commit
mkdir -p "$old"
git -C "$REPO" archive "$commit" | tar -x -C "$old"
make -s -j"$(nproc)" -C "$old" module KDIR="/lib/modules/$version/build"
make -s -C "$old" provider
make -s -C "$REPO" provider
ICOUNT=y LAB_ENV="OLD_KO OLD_PROVIDER ONLY" OLD_KO=$old/build/$version/roan.ko OLD_PROVIDER=$old/build/provider \
	"$REPO/selftests/vm/run.sh" qemu-6.12 -c 1 -s 400 "$HERE/instructions.sh"
