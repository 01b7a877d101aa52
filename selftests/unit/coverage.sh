#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Lines of kernel/core that tests execute, by folder: the suites, the simulator (PACKETS, default 500000), ccsim,
# and the fuzzers with the corpus of earlier runs (build/fuzz/corpus), if there is one. Needs clang and llvm-cov.
#   selftests/unit/coverage.sh [-u]      -u: then list the lines that none of them executes
set -euo pipefail
cd "$(dirname "$0")/../.."

out=build/coverage
clang=$(command -v clang || command -v clang-14) || clang=
tool() { command -v "$1" || command -v "$1-14"; }
tool llvm-cov > /dev/null && [ -n "$clang" ] || { echo "needs clang and llvm-cov (apt install clang llvm)"; exit 1; }
flags=(-std=gnu11 -g -O1 -w -fprofile-instr-generate -fcoverage-mapping -Iselftests/unit -Iinclude/uapi -Ikernel
	-include selftests/unit/core_env.h)
mapfile -t core < <(make -s -C selftests/unit sources OF=CORE)
mapfile -t suites < <(make -s -C selftests/unit sources OF=SUITES)
mapfile -t sim < <(make -s -C selftests/unit sources OF=SIM)
mapfile -t sim_of_fuzzer < <(printf '%s\n' "${sim[@]}" | grep -v sim_main)
corpora=()

build() {	# NAME SOURCE...
	"$clang" "${flags[@]}" -o "$out/$1" "${@:2}" -lm
}

profile() {	# NAME COMMAND...
	LLVM_PROFILE_FILE="$out/$1.profraw" "${@:2}" >"$out/$1.log" 2>&1 || { tail -n 3 "$out/$1.log"; exit 1; }
	"$(tool llvm-profdata)" merge -o "$out/$1.profdata" "$out/$1.profraw"
}

# Lines executed of each folder, by the objects and profiles so far.
report() {	# NAME
	"$(tool llvm-cov)" export -summary-only -instr-profile "$out/$1.profdata" "${objects[@]}" "$PWD/kernel/core" >"$out/$1.json" 2>>"$out/$1.log"
}

rm -rf "$out"
mkdir -p "$out"
build suites "${core[@]}" selftests/unit/crc.c selftests/unit/main.c "${suites[@]}"
build sim "${core[@]}" selftests/unit/crc.c "${sim[@]}"
build ccsim kernel/core/cc/*.c kernel/core/flow/*.c selftests/unit/ccsim/*.c
profile suites "$out/suites"
profile sim "$out/sim" --packets "${PACKETS:-500000}"
profile ccsim "$out/ccsim" --check --quick
objects=("$out/suites" -object "$out/sim" -object "$out/ccsim")
for target in selftests/fuzz/*_fuzz.c; do
	name=$(basename "$target" _fuzz.c)
	[ -d "build/fuzz/corpus/$name" ] || continue
	flags+=(-fsanitize=fuzzer)
	extra=()
	[ "$name" = transport ] && extra=("${sim_of_fuzzer[@]}")
	build "fuzz_$name" "$target" "${core[@]}" selftests/unit/crc.c "${extra[@]}"
	profile "fuzz_$name" "$out/fuzz_$name" -runs=0 "build/fuzz/corpus/$name"
	corpora+=("$out/fuzz_$name.profdata")
	objects+=(-object "$out/fuzz_$name")
done
[ ${#corpora[@]} -gt 0 ] && "$(tool llvm-profdata)" merge -o "$out/fuzzers.profdata" "${corpora[@]}"
"$(tool llvm-profdata)" merge -o "$out/all.profdata" "$out"/{suites,sim,ccsim}.profdata "${corpora[@]}"
for name in suites sim ccsim fuzzers all; do
	[ -f "$out/$name.profdata" ] && report "$name"
done
python3 - "$out" <<'PY'
import json, os, sys
columns, rows = ["suites", "sim", "ccsim", "fuzzers", "all"], {}
for column in columns:
    path = os.path.join(sys.argv[1], column + ".json")
    for f in json.load(open(path))["data"][0]["files"] if os.path.exists(path) else []:
        folder = os.path.dirname(f["filename"].split("kernel/core/")[-1]) if "kernel/core/" in f["filename"] else None
        if folder:
            row = rows.setdefault(folder, {}).setdefault(column, [0, 0])
            row[0] += f["summary"]["lines"]["covered"]
            row[1] += f["summary"]["lines"]["count"]
print("%-12s%7s" % ("kernel/core/", "lines") + "".join("%9s" % c for c in columns))
for folder, row in sorted(rows.items()):
    print("%-12s%7d" % (folder, row["all"][1]) +
          "".join("%8.1f%%" % (100 * row[c][0] / row[c][1]) if c in row else "%9s" % "-" for c in columns))
PY
if [ "${1-}" = -u ]; then
	"$(tool llvm-cov)" show -instr-profile "$out/all.profdata" "${objects[@]}" "$PWD/kernel/core" 2>>"$out/all.log" |
		awk '/^\// { file = $0 } /^ *[0-9]+\| *0\|/ { print file, $0 }'
fi
