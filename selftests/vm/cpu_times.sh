#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by suites.sh and ktap_count.sh.

# Seconds of CPU that what this shell waited for has taken. In a $() they would be that shell's, so they go into SPENT.
cpu_seconds() { # FILE, to be overwritten
	times > "$1"
	# shellcheck disable=SC2034 # read by who calls
	SPENT=$(awk -F'[ms ]' 'NR == 2 { printf "%d", $1 * 60 + $2 + $4 * 60 + $5 }' "$1")
}
