#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests floors.py with small trees: calls down only, one call up, one header from above. Prints KTAP.
cd "$(dirname "$(readlink -f "$0")")/../.." || exit
. selftests/vm/lib.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

object() { # PATH C-TEXT
	mkdir -p "$tree/kernel/${1%/*}"
	printf '%s\n' "$2" > "$tree/kernel/$1.c"
	cc -I "$tree/kernel" -c -o "$tree/kernel/$1.o" "$tree/kernel/$1.c" 2> "$tree/cc.log" || cat "$tree/cc.log"
}

finds() { # NAME PATTERN
	local said
	said=$(selftests/lint/floors.py "$tree")
	if [ $? -eq 1 ] && [ "$(wc -l <<< "$said")" = 1 ] && grep -q "$2" <<< "$said"; then
		ktap_pass "$1"
	else
		ktap_fail "$1" "$said"
	fi
}

ktap_header
object verbs/qp 'void put(void); void make(void) { put(); }'
object base/ref 'void put(void) { }'
if selftests/lint/floors.py "$tree"; then ktap_pass "calls down pass"; else ktap_fail "calls down pass"; fi
object base/ref 'void make(void); void put(void) { make(); }'
finds "a call up is found" 'base/ref.o .*refers to make of verbs/qp.o'
: > "$tree/kernel/verbs/verbs.h"
: > "$tree/kernel/verbs/verbs_types.h"
object base/ref '#include "verbs/verbs.h"
#include "verbs/verbs_types.h"
void put(void) { }'
finds "a header from above is found, one with types only passes" 'base/ref.c .*includes verbs/verbs.h'
ktap_end
