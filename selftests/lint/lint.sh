#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Static checks of the sources. Prints KTAP. Builds roan for each installed kernel's headers with W=1 -Werror and
# sparse, then runs floors.py, checkpatch, shellcheck and the rules below.
#   lint.sh [rules]	rules: only the rules of this repository, in seconds
cd "$(dirname "$(readlink -f "$0")")/../.." || exit
. selftests/vm/lib.sh
log=$(mktemp)
trap 'rm -f "$log"*' EXIT

sources() { # PATTERN...: files of the tree, tracked or new
	git ls-files -co --exclude-standard -- "$@"
}

clean() { # NAME: passes if $log is empty
	if [ -s "$log" ]; then
		sed 's/^/# /' "$log" | head -n 40
		ktap_fail "$1" "$(wc -l < "$log") lines"
	else
		ktap_pass "$1"
	fi
}

# Uses the same folder and flags as suites.sh for a guest's module, so each module is compiled once.
compiles() { # KDIR
	local name sparse=
	name=$(basename "$(dirname "$1")")
	! command -v sparse > /dev/null || sparse="C=2 CF=-D__CHECK_ENDIAN__"
	! grep -qs '^CONFIG_PREEMPT_RT=y' "$1/.config" || sparse=	# sparse cannot follow its lock functions
	mkdir -p "build/$name"
	if flock "build/$name" make -s -j"$(nproc)" module KDIR="$1" STRICT=1 ROAN_TESTS=y KARGS="$sparse" > "$log" 2>&1; then
		# gcc's warnings are errors, so the warnings of a successful build are sparse's.
		grep "$PWD/build/.*\(warning\|error\):" "$log" > "$log.sparse"
		: > "$log"
	else
		echo "the build failed before sparse had checked all files" > "$log.sparse"
		[ -s "$log" ] || echo "make failed without a word" > "$log"
	fi
	clean "W=1 -Werror on $name"
	if [ -e "build/$name/roan.ko" ]; then
		# Remove objects and links of files that are no longer in the tree.
		find "build/$name/kernel" -xtype l -delete
		find "build/$name/kernel" -name '*.o' | while read -r o; do [ -e "${o%.o}.c" ] || rm "$o"; done
		ktap_check "calls go down the floors on $name" selftests/lint/floors.py "build/$name"
	fi
	[ -n "$sparse" ] || { ktap_skip "sparse on $name" "not installed, or not for this kernel"; return; }
	mv "$log.sparse" "$log"
	clean "sparse on $name"
}

style() {
	local pl files
	pl=$(find /usr/src /lib/modules/*/build/ -path '*scripts/checkpatch.pl' 2> /dev/null | head -n 1)
	[ -n "$pl" ] || pl=$(find "${ROAN_CACHE:-$HOME/.cache/roan}"/ -follow -maxdepth 4 -path '*scripts/checkpatch.pl' 2> /dev/null | head -n 1)
	[ -n "$pl" ] || { ktap_skip "checkpatch" "no kernel source here"; return; }
	mapfile -t files < <(sources 'kernel/*.[ch]' 'include/*.h')
	ktap_check "checkpatch --strict" selftests/lint/checkpatch.sh "$pl" --strict "" "${files[@]}"
	mapfile -t files < <(sources 'selftests/kunit/*.[ch]' 'selftests/gpu/fake_*.[ch]' 'selftests/net/*.[ch]' selftests/cc/lossless.c selftests/cc/egress.c)
	ktap_check "checkpatch on the tests' modules" selftests/lint/checkpatch.sh "$pl" "" "${files[@]}"
	# Verbs return positive errnos; prototypes in libibverbs' tables have no parameter names; layout checks are macro
	# lists.
	mapfile -t files < <(sources 'provider/*.[ch]')
	ktap_check "checkpatch on the provider" selftests/lint/checkpatch.sh "$pl" USE_NEGATIVE_ERRNO,FUNCTION_ARGUMENTS,MULTISTATEMENT_MACRO_USE_DO_WHILE "${files[@]}"
}

house_rules() {
	sources 'kernel/*.[ch]' | grep -v '^kernel/compat/' | xargs grep -n 'LINUX_VERSION_CODE\|KERNEL_VERSION(' > "$log"
	clean "kernel versions are named in kernel/compat only"
	sources '*.[ch]' '*.sh' '*.py' Makefile '*/Makefile' Kbuild | while read -r f; do
		head -n 3 "$f" | grep -q SPDX-License-Identifier || echo "$f"
	done > "$log"
	clean "every file names its licence"
	sources '*.sh' | xargs grep -nE 'dmesg (-[cC]|--clear|--read-clear)' | grep -v '^selftests/gpu/memory.sh:' > "$log"
	clean "no script clears the kernel's log, in which run.sh looks for reports"
	sources '*.[ch]' '*.sh' '*.py' | xargs wc -l | awk '$2 != "total" && $1 >= 600' > "$log"
	clean "files are shorter than 600 lines"
	grep -nE '#include' kernel/core/*/*.[ch] 2> /dev/null | grep -v 'core_env.h:' | grep '<' > "$log"
	clean "the core includes nothing but its own headers"
	ktap_check "no static function has its name in two files" selftests/lint/static-names.py
	grep -vE '^(#|$)' selftests/lint/retired-names > "$log.retired"
	sources | grep -vE '^selftests/lint/retired-names$|\.svg$' | xargs grep -nwE -f "$log.retired" > "$log"
	clean "no retired name is back"
	ktap_check "the code that litmus tests model is there" selftests/lint/litmus_code.py
	ktap_check "conformance.md names files and tests that exist" tools/check-conformance
	sources 'Documentation/*.md' README.md | xargs wc -l | awk '$2 != "total" && $1 > ($2 == "README.md" ? 150 : 250)' > "$log"
	clean "pages are at most 250 lines, README.md 150"
	ktap_check "floors.py finds a call up and a header from above" selftests/lint/floors_test.sh
	find kernel provider tools selftests -type d | while read -r d; do
		n=$(sources "$d/*" | grep -c "^$d/[^/]*$")
		[ "$n" -le 25 ] || echo "$d: $n files"
	done > "$log"
	clean "folders have at most 25 files"
}

ktap_header
[ -n "$(sources Makefile)" ] || { ktap_fail "the files of the tree" "no git, or no checkout that it lists"; ktap_end; }
if [ "${1:-}" != rules ]; then
	built=
	for kdir in ${KDIRS:-/lib/modules/*/build}; do
		[ ! -e "$kdir/Makefile" ] || { compiles "$kdir"; built=y; }
	done
	[ -n "$built" ] || ktap_skip "W=1 -Werror, floors and sparse" "no kernel headers here"
	style
	if command -v shellcheck > /dev/null; then
		mapfile -t scripts < <(sources '*.sh')
		ktap_check "shellcheck" shellcheck -S warning -e SC1090,SC1091 "${scripts[@]}"
	else
		ktap_skip "shellcheck" "not installed"
	fi
	ktap_check "a check that fails to run is a failure" selftests/lint/lint_test.sh
fi
house_rules
ktap_end
