#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Checks that the tables of Documentation/observability.md and qos-pfc.md have the counters, parameters, tracepoints and
# values of the sources, in order: of counters and parameters also unit, range, defaults and meaning.
cd "$(dirname "$(readlink -f "$0")")/../.." || exit
page=Documentation/observability.md

# names HEADING: prints the first column of the tables under that heading
names() { sed -n "/^## $1\$/,/^## /s/^| \`\([a-zA-Z0-9_]*\)\` .*/\1/p" $page; }
source_of() { find kernel -name "$1" | head -n 1; }
same() { # HEADING FILE: compares the names on stdin with those under the heading
	diff - <(names "$1") && return
	echo "$page, \"$1\", and $2 differ: add or remove the line, with unit and meaning"
	return 1
}

failed=0
{
	sed -n '/^| name | unit | range/,/^$/{/^|/p}' Documentation/qos-pfc.md
	sed -n '/^## Counters$/,/^## /{/^|/p}' $page
	sed -n '/^## Histograms of times$/,/^## /{/^|/p}' Documentation/monitoring.md
} | diff <(tools/roan_describe.py tables) - || {
	echo "Documentation/qos-pfc.md, observability.md or monitoring.md (>) differs from the lists of params.h, pfc_rules.h, counters.h, latency.h (<)"
	failed=1
}
file=$(source_of trace.h)
sed -n 's/^TRACE_EVENT(\([a-z_]*\),.*/\1/p' "$file" | same Tracepoints "$file" || failed=1
file=$(source_of restrack.c)
{
	sed -n '/^int roan_fill_res_qp/,/^}/s/^\t\t{ "\([a-z0-9_]*\)",.*/\1/p' "$file"
	grep -o 'rdma_nl_put_driver_[a-z0-9]*(msg, "[a-z0-9_]*"' "$file" | sed 's/.*"\(.*\)"/\1/'
} | same "Values of a queue pair" "$file" || failed=1
sed -n '/^## All codes$/,${/^|/p}' Documentation/doctor.md | diff <(tools/roan doctor --codes) - || {
	echo "Documentation/doctor.md (>) differs from CODES of tools/roan_doctor_base.py (<)"
	failed=1
}
for code in $(tools/roan doctor --codes | sed -n 's/^| `\([a-z0-9-]*\)`.*/\1/p'); do
	grep -q "\"$code\"" selftests/tools/doctor_*.py || { echo "selftests/tools/doctor_*.py do not provoke $code"; failed=1; }
done
exit $failed
