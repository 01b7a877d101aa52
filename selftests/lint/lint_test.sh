#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests lint.sh in a copy of this tree: the checks that cannot run fail, all others pass. Also that `make` deletes nothing
# outside of build/. Prints KTAP.
cd "$(dirname "$(readlink -f "$0")")/../.." || exit
. selftests/vm/lib.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

programs="selftests/lint/static-names.py selftests/lint/floors.py selftests/lint/litmus_code.py tools/check-conformance"
rules="conformance.md names files and tests that exist
floors.py finds a call up and a header from above
no static function has its name in two files
the code that litmus tests model is there"

# Replaces the programs by one of two lines, and expects that exactly their rules fail.
broken() { # HOW INTERPRETER LINE
	local p said bad
	for p in $programs; do
		printf '#!%s\n# SPDX-License-Identifier: GPL-2.0\n%s\n' "$2" "$3" > "$tree/$p"
	done
	said=$("$tree/selftests/lint/lint.sh" rules)
	bad=$(sed -n 's/^not ok [0-9]* \([^#]*[^# ]\).*/\1/p' <<< "$said" | sort)
	if [ "$bad" = "$rules" ]; then
		ktap_pass "$1"
	else
		diff <(echo "$rules") <(echo "$bad") | sed 's/^/# /'
		ktap_fail "$1"
	fi
}

# A case in a list of several, and a script of a folder.
missing_names_are_found() {
	local said
	sed -i 's/sack__tail_loss/sack__no_such/; s|security/rkey_guess\.sh|security/no_such.sh|' "$tree/Documentation/conformance.md"
	said=$("$tree/tools/check-conformance")
	git -C "$tree" checkout -q Documentation/conformance.md
	echo "$said"
	[ "$(grep -c 'no_such' <<< "$said")" = 2 ]
}

# `make module` empties its build folder when the kernel changes.
other_folder_is_kept() {
	! make -s -C "$tree" OUT="$1" module > "$tree/said" 2>&1 || return
	cat "$tree/said"
	grep -q 'OUT cannot be set' "$tree/said" && git -C "$tree" diff --exit-code --stat
}

ktap_header
git ls-files -co --exclude-standard | while read -r f; do [ ! -e "$f" ] || echo "$f"; done | tar -c -T - | tar -x -C "$tree"
git -C "$tree" init -q && git -C "$tree" add -A
ktap_check "the tree passes" "$tree/selftests/lint/lint.sh" rules
ktap_check "make OUT= is refused, and no file is deleted" other_folder_is_kept ""
ktap_check "make OUT=kernel is refused, and no file is deleted" other_folder_is_kept kernel
ktap_check "conformance.md: a case and a script that do not exist are found" missing_names_are_found
broken "programs that end with an exception fail" "/usr/bin/env python3" 'raise SystemError("broken by the test")'
broken "programs without their interpreter fail" /nowhere/interpreter ""
broken "programs that fail without a word fail" /bin/sh "exit 3"
ktap_end
