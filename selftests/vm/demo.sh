#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What `make demo` runs: builds roan, boots Debian's 6.12 kernel in QEMU and runs demo_hosts.sh in it: two hosts and three
# RDMA programs between them. Prints one line a step and a report; leaves with 0 only if every step succeeded.
#   demo.sh		HOST=1: no QEMU; as root in the running kernel, which is left as it was
# The output of all steps goes to /tmp/roan-demo.*/log, which is kept. The kernel comes from ROAN_CACHE (kernel.sh).
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
HOST=${HOST:-}
steps=$([ -n "$HOST" ] && echo 7 || echo 9)
step=0 title='' since=0 hosts='' results='' kernel='' machine='this machine' ticker=''

[ -z "$HOST" ] || [ "$(id -u)" = 0 ] || { echo "demo: HOST=1 loads a module and needs root"; exit 1; }
dir=$(mktemp -d /tmp/roan-demo.XXXXXX) || exit
log=$dir/log
trap '[ -z "$ticker" ] || kill "$ticker" 2> /dev/null' EXIT
trap 'echo; echo "demo: interrupted; log: $log"; exit 130' INT TERM

line() { printf '[%d/%d] %s... ' $step "$steps" "$title"; }

# On a terminal the line shows how many seconds the step has taken so far.
begin() { # TITLE
	step=$((step + 1)) title=$1 since=$SECONDS
	echo "== [$step/$steps] $title" >> "$log"
	line
	[ -t 1 ] || return 0
	while sleep 1; do printf '\r'; line; printf '%d s' $((SECONDS - since)); done 2> /dev/null &
	ticker=$!
}

end_line() {
	[ -n "$ticker" ] || return 0
	kill "$ticker" 2> /dev/null
	wait "$ticker" 2> /dev/null
	ticker=
	printf '\r'
	line
}

finish() { # [RESULT]
	end_line
	printf '%s%d s\n' "${1:+$1  }" $((SECONDS - since))
	title=
}

fail() { # [WHY]
	end_line
	printf 'FAILED after %d s\n' $((SECONDS - since))
	sed '/^== /h; //!H; $!d; x; s/^[^\n]*\n//' "$log" | tail -n 12 | sed 's/^/    | /'
	printf '\ndemo: step %d of %d failed: %s%s\n' $step "$steps" "$title" "${1:+ ($1)}"
	echo "      log: $log"
	[ ! -e "$dir/kernel.log" ] || echo "      log of the guest's kernel: $dir/kernel.log"
	exit 1
}

# Runs the commands in the log; ends the demo if they fail.
run() {
	"$@" >> "$log" 2>&1 < /dev/null || fail "status $?"
}

build() { # KDIR [VARIABLE=VALUE...]
	mkdir -p "$REPO/build/$kernel"
	run make -s -C "$REPO" provider
	# The lock is the one of run.sh.
	run flock "$REPO/build/$kernel" make -s -j"$(nproc)" -C "$REPO" module KDIR="$1" "${@:2}"
}

# Prints the lines of demo_hosts.sh, or of run.sh around it, and "@status N" at the end.
hosts() {
	if [ -n "$HOST" ]; then
		"$HERE/demo_hosts.sh"
	else
		DMESG=$dir/kernel.log "$HERE/run.sh" qemu -n "$HERE/demo_hosts.sh"
	fi 2>&1 < /dev/null
	echo "@status $?"
}

begin "packages"
run "$REPO/tools/setup"
finish
if [ -n "$HOST" ]; then
	kernel=$(uname -r)
else
	begin "Debian's kernel 6.12 for the guest"
	folder=$("$HERE/kernel.sh" 6.12 2>> "$log") || fail "status $?"
	kernel=$(basename "$folder"/boot/vmlinuz-*)
	kernel=${kernel#vmlinuz-}
	finish "$kernel"
fi
first=
[ -e "$REPO/build/$kernel/roan.ko" ] || first=' (first time: minutes)'
begin "building libroan, and roan.ko for $kernel$first"
# The same variables as in run.sh: a different set would make each of the two rebuild what the other has built.
if [ -n "$HOST" ]; then
	build "/lib/modules/$kernel/build"
else
	build "/lib/modules/$kernel/build" ROAN_TESTS=y
fi
finish
[ -n "$HOST" ] || begin "booting it in QEMU"

status=1
while read -r line; do
	[ "${line%% *}" = @status ] || echo "$line" >> "$log"
	case $line in
	"# booting "*)
		machine="a guest of QEMU, ${line#*QEMU: }"
		machine=${machine%%, -accel*}
		case $line in *kvm*) machine="$machine, KVM" ;; *) machine="$machine, emulated" ;; esac ;;
	"# boot "[123]" of 3 "*) printf 'again... ' ;;
	"@step "*)
		[ -z "$title" ] || finish
		begin "${line#@step }" ;;
	"@ok "*) finish "${line#@ok }" ;;
	"@host "*) hosts+="${line#@host }"$'\n' ;;
	"@result "*) results+="${line#@result }"$'\n' ;;
	"@kernel "*) kernel=${line#@kernel } ;;
	"@done") begin "$([ -n "$HOST" ] && echo "removing the hosts" || echo "the guest stops; no warning in its kernel's log")" ;;
	"@status "*) status=${line#@status } ;;
	esac
done < <(hosts)
if [ "$status" != 0 ]; then
	[ -n "$title" ] || begin "the next step"
	case $HOST$status in	# run.sh's own
	98) fail "the guest's kernel logged a warning" ;;
	99) fail "the guest stopped, or did not finish in time" ;;
	*) fail "status $status" ;;
	esac
fi
finish

echo
echo "Two hosts used RDMA over ${LINK_TYPE:-roan} in Linux $kernel ($machine)."
echo
# Fixed widths, as column(1) is not on every machine.
while read -r -a row; do
	printf '  %-5s %-7s %-10s %-8s %-5s %-7s %-7s %s\n' "${row[@]}"
done <<< "host netdev IPv4 IPv6 MTU device port GID"$'\n'"${hosts%$'\n'}"
echo
while IFS='|' read -r program what result; do
	printf '  %-12s %-36s %s\n' "$program" "$what" "$result"
done <<< "program|from h1 to h2|result"$'\n'"${results%$'\n'}"
cat <<-END

	It took $SECONDS s. All output of the programs: $log

	To go on:
END
if [ -n "$HOST" ]; then
	cat <<-END
	  less Documentation/getting-started.md                 a device on a real interface, clients, what to do about errors
	  make install && modprobe roan                         installs roan for this kernel
	  make demo                                             the same in a guest
	END
else
	cat <<-END
	  less Documentation/getting-started.md                 a device on a real interface, clients, what to do about errors
	  make demo HOST=1                                      the same in the running kernel, at the speed of this machine
	  selftests/vm/run.sh qemu selftests/net/interfaces/netstack.sh    one test script in such a guest (selftests/vm/suites lists them)
	END
fi
