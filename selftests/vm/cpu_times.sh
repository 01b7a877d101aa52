#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by suites.sh and ktap_count.sh.

# Sets SPENT to the CPU seconds of the child processes this shell has waited for. In $() `times` would be the
# subshell's.
cpu_seconds() { # FILE, to be overwritten
	times > "$1"
	# shellcheck disable=SC2034 # read by the caller
	SPENT=$(awk -F'[ms ]' 'NR == 2 { printf "%d", $1 * 60 + $2 + $4 * 60 + $5 }' "$1")
}
