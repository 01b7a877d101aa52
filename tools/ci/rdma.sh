#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs a command over RDMA in a CI job: installs the packages that are missing, then runs COMMAND in the first of N hosts
# that roan connects. action.yml (GitHub) and gitlab-ci.yml use it; it depends on neither.
#
#	rdma.sh [--how vm|module|auto] [OPTION OF roan vm]... -- COMMAND...
#
#	vm	in a QEMU guest by `roan vm`: any container or runner with Debian's packages; no rights needed but to install these
#	module	in the running kernel: builds and loads the module; root (or sudo without a password) and the kernel's headers
#	auto	module if that is possible, else vm (default)
# Options of roan vm for the module: --hosts, --gbps, --rtt, --loss. ROAN_KO: the module, if it is built already.
# The status is COMMAND's; 125: it was not started.
set -eu
ROAN=$(readlink -f "$(dirname "$0")/../..")
say() { echo "roan ci: $*" >&2; }
die() { say "$*"; exit 125; }

how=auto options=() hosts=2 gbps='' rtt='' loss='' vm_only=''
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	case $1 in --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;; esac
	[ $# -gt 1 ] || break
	case $1 in
	--how) how=$2 ;;
	--hosts | --gbps | --rtt | --loss)
		[ -z "$2" ] || { declare "${1#--}=${2%\%}"; options+=("$1" "$2"); } ;;
	*) [ -z "$2" ] || { options+=("$1" "$2"); vm_only=$1; } ;;
	esac
	shift 2
done
[ $# -gt 1 ] || die "usage: rdma.sh [--how vm|module|auto] [OPTION OF roan vm]... -- COMMAND..."
shift

root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

may_install() { "${root[@]}" true 2> /dev/null; }

install() { # PACKAGE...
	local p missing=()
	for p; do
		dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2> /dev/null | grep -q '^ii' || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get > /dev/null || die "no apt here; install the equivalents of: ${missing[*]}"
	may_install || die "these packages are missing, and installing them needs root: ${missing[*]}"
	say "installing ${missing[*]}"
	"${root[@]}" apt-get update -qq >&2 &&
		"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >&2 ||
		die "apt-get failed"
}

# A container has no CAP_SYS_MODULE (bit 16), or not the kernel's modules.
module_possible() {
	may_install && [ ! -e /sys/module/roan ] && [ ! -e /sys/module/rdma_rxe ] && modinfo ib_uverbs > /dev/null 2>&1 &&
		{ [ -n "${ROAN_KO:-}" ] || [ -e "/lib/modules/$(uname -r)/build/Makefile" ]; } &&
		[ $(($("${root[@]}" sed -n 's/^CapEff:\t/0x/p' /proc/self/status) >> 16 & 1)) = 1 ]
}

build_module() { # sets ROAN_KO
	local release
	release=$(uname -r)
	install gcc libc6-dev make kmod libibverbs-dev pkg-config
	say "building the module for $release"
	make -s -C "$ROAN" module provider KDIR="/lib/modules/$release/build" >&2 || die "the module does not build for $release"
	ROAN_KO=$ROAN/build/$release/roan.ko
}

run_module() { # COMMAND...
	local rc=0 bin
	[ -z "$vm_only" ] || die "$vm_only is an option for --how vm"
	install iproute2 kmod
	[ -n "${ROAN_KO:-}" ] || build_module
	# A program finds libroan by this variable; sudo removes it.
	[ -e /etc/libibverbs.d/roan.driver ] || export IBV_DRIVERS=$ROAN/build/provider/libroan
	. "$ROAN/tools/vm/hosts.sh"
	hosts_free || die "a network namespace h1 to h$hosts or an interface 'switch' exists already: remove it, or use --how vm"
	bin=$(mktemp -d /tmp/roan-ci.XXXXXX)
	chmod 755 "$bin"
	trap 'hosts_down; rm -rf "$bin"' EXIT
	hosts_up "$bin" >&2 || die "the hosts could not be set up: $(dmesg 2> /dev/null | grep 'roan' | tail -n 1)"
	say "running the command in Linux $(uname -r), $hosts hosts"
	PATH=$PATH:$bin ip netns exec h1 "$@" || rc=$?
	exit $rc
}

case $how in
auto) how=vm; ! module_possible || [ -n "$vm_only" ] || how=module ;;
vm | module) ;;
*) die "--how $how: vm, module or auto" ;;
esac
if [ $how = module ]; then
	[ "$(id -u)" = 0 ] || exec sudo -n -E "$0" --how module "${options[@]}" -- "$@"
	run_module "$@"
fi
install qemu-system-x86 busybox-static cpio kmod xz-utils iproute2 gcc libc6-dev make libelf1 libibverbs-dev pkg-config
exec "$ROAN/tools/vm/roan-vm.sh" "${options[@]}" -- "$@"
