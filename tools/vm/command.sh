#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs in the guest of roan-vm.sh, by guest.sh: makes the hosts, then executes /out/command in h1, with its output to the
# guest's ports stdout and stderr. Its status is the command's. /out/failed: the command was not started.
. /out/hosts.sh

port() { # NAME: prints the device file of the guest's port
	grep -lx "$1" /sys/class/virtio-ports/*/name | sed 's|.*/\(vport[^/]*\)/name|/dev/\1|'
}

hosts_up /usr/bin && out=$(port stdout) && err=$(port stderr) && [ -n "$out" ] && [ -n "$err" ] || { touch /out/failed; exit 125; }
# A port can be opened once, so that a program could not open /dev/stdout.
mkfifo /run/stdout /run/stderr
cat < /run/stdout > "$out" & readers=$!
cat < /run/stderr > "$err" & readers="$readers $!"
: > /out/command_starts
ip netns exec h1 /bin/bash /out/command > /run/stdout 2> /run/stderr < /dev/null
rc=$?
# What COMMAND left running holds the pipes open.
# shellcheck disable=SC2154 # read from /out/env by guest.sh
for n in $(seq "$hosts"); do
	ip netns pids "h$n"
done | xargs -r kill -9
# shellcheck disable=SC2086 # two numbers
wait $readers
exit $rc
