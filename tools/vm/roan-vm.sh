#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# roan vm: runs COMMAND in a guest over this machine's root, in the first of N hosts that RDMA connects. Needs neither root
# nor a module in the running kernel.
#
#    roan vm [--hosts N] [--gbps R] [--rtt T] [--loss P] [--kernel K] [--cpus N] [--memory M] [--writable DIR]... -- COMMAND...
#
#	--hosts N	hosts h1 to hN, 1 to 100 (2). COMMAND runs in h1; `on h2 PROGRAM` runs a program in h2
#	--gbps R	rate of each host's link, Gb/s (no limit)
#	--rtt T		round-trip time between two hosts: 100us, 5ms (what the emulation takes)
#	--loss P	percentage of packets lost on each host's link (0)
#	--kernel K	Debian's kernel: 6.12, 6.1, rt or a full release (6.12)
#	--cpus N	CPUs of the guest (2)		--memory M	its memory (2G)
#	--writable DIR	a folder that COMMAND can change. All other changes are lost with the guest
#
# The status is COMMAND's; 125: the guest failed, and a message says why. ROAN_CACHE (default ~/.cache/roan): where the kernel
# and the module built for it are kept. EMULATOR: the QEMU to use.
# shellcheck disable=SC2034 # some variables are read by qemu.sh
set -eu
PATH=$PATH:/usr/sbin:/sbin
HERE=$(dirname "$(readlink -f "$0")")
CACHE=${ROAN_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/roan}
export ROAN_CACHE=$CACHE
. "$HERE/qemu.sh"
exec 3>&2
say() { echo "roan vm: $*" >&3; }
die() { say "$*"; exit 125; }

number() { # OPTION TEXT PATTERN EXAMPLE
	[[ $2 =~ ^($3)$ ]] || die "$1 $2: not a value such as $4"
}

hosts=2 gbps='' rtt='' loss='' kernel=6.12 cpus=2 mem=2G shares=()
while [ $# -gt 0 ]; do
	case $1 in
	--) shift; break ;;
	-h | --help) sed -n '/^#    roan vm/,/^set/{/^set/d; /shellcheck/d; s/^# \?//; p}' "$0"; exit 0 ;;
	--*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}"; continue ;;
	--hosts | --gbps | --rtt | --loss | --kernel | --cpus | --memory | --writable)
		[ $# -gt 1 ] || die "$1 needs a value; 'roan vm --help' lists the options" ;;
	-*) die "there is no option $1; 'roan vm --help' lists the options" ;;
	*) break ;;
	esac
	case $1 in
	--hosts) number "$1" "$2" '[1-9][0-9]?|100' 2; hosts=$2 ;;
	--gbps) number "$1" "$2" '[0-9]+(\.[0-9]+)?' 10; gbps=$2 ;;
	--rtt) number "$1" "$2" '[0-9]+(\.[0-9]+)?(us|ms|s)' 100us; rtt=$2 ;;
	--loss) number "$1" "${2%\%}" '[0-9]+(\.[0-9]+)?' 0.1; loss=${2%\%} ;;
	--kernel) number "$1" "$2" '[0-9a-z.+-]+' 6.12; kernel=$2 ;;
	--cpus) number "$1" "$2" '[1-9][0-9]?' 2; cpus=$2 ;;
	--memory) number "$1" "$2" '[1-9][0-9]*[MG]' 2G; mem=$2 ;;
	--writable) [ -d "$2" ] && [ -w "$2" ] || die "--writable $2: not a folder that you can write to"
		shares+=("$(readlink -f "$2")") ;;
	esac
	shift 2
done
[ $# -gt 0 ] || die "which command? roan vm [OPTION...] -- COMMAND; 'roan vm --help' lists the options"

mapfile -t qemu <<< "${EMULATOR:-qemu-system-x86_64}"
missing=
for need in "${qemu[0]}:qemu-system-x86" busybox:busybox-static cpio:cpio modprobe:kmod xz:xz-utils rdma:iproute2 gcc:gcc make:make apt-get:apt; do
	command -v "${need%%:*}" > /dev/null || missing+=" ${need##*:}"
done
# The kernel's build runs a program that needs it.
ldconfig -p | grep -q 'libelf\.so\.1' || missing+=" libelf1"
[ -e /usr/include/string.h ] || missing+=" libc6-dev"
[ -z "$missing" ] || die "missing programs. On Debian, once, as root: apt install$missing"
mkdir -p "$CACHE" 2> /dev/null && [ -w "$CACHE" ] || die "cannot write to $CACHE; ROAN_CACHE=DIR chooses another folder"

work=$(mktemp -d "${TMPDIR:-/tmp}/roan-vm.XXXXXX")
out=$work/out
guest=
mkdir "$out"
# shellcheck disable=SC2317 # called by the traps
stop() { # STATUS: ends the guest. QEMU writes its process id only once it runs.
	trap '' INT TERM
	say "ending the guest"
	[ -z "$guest" ] || until [ -s "$work/pid" ] || ! kill -0 "$guest" 2> /dev/null; do sleep 0.1; done
	kill "$guest" "$(cat "$work/pid" 2> /dev/null)" 2> /dev/null || true
	exit "$1"
}
trap 'rm -rf "$work"' EXIT
trap 'stop 130' INT
trap 'stop 143' TERM

# Runs a command whose output is shown only if it fails.
quietly() { # WHAT COMMAND...
	"${@:2}" > "$work/log" 2>&1 < /dev/null && return
	tail -n 20 "$work/log" >&2
	die "$1"
}

# This tool beside the sources, or installed in /usr/share/roan: then the module's sources are /usr/src/roan ('make install'), or
# /usr/src/roan-VERSION (the package); the newest of these.
sources=$(readlink -f "$HERE/../..")
installed=
if [ ! -e "$sources/Kbuild" ]; then
	installed=$(readlink -f "$HERE/../../..")
	sources=$(grep -Hs ^PACKAGE_VERSION "$installed"/src/roan{,-*}/dkms.conf | sort -t'"' -k2V | tail -n 1 | sed 's|/dkms.conf:.*||')
	[ -e "$sources/Kbuild" ] || die "the module's sources are missing in $installed/src (package roan-dkms, or 'make install-tool')"
fi

checksum() { # FOLDER NAME...: of the content of these files and folders
	(cd "$1" && shift && find "$@" -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-12)
}

module() { # KDIR RELEASE: sets ROAN_KO
	local dir
	dir=$CACHE/module-$2-$(checksum "$sources" Kbuild include kernel)
	ROAN_KO=$dir/roan.ko
	[ ! -e "$ROAN_KO" ] || return 0
	say "building the module for $2 (once)"
	rm -rf "$work/module" && mkdir "$work/module"
	cp -rL "$sources"/{Kbuild,include,kernel} "$work/module"
	quietly "the module does not build for $2" make -s -j"$(nproc)" -C "$1" M="$work/module" modules
	mkdir -p "$dir"
	cp "$work/module/roan.ko" "$dir/.roan.ko.$$"
	mv "$dir/.roan.ko.$$" "$ROAN_KO"	# another roan vm sees it whole or not at all
	rm -rf "$work/module"
}

provider() { # sets PROVIDER
	local version
	if [ -n "$installed" ]; then
		PROVIDER=$(find "$installed/lib" -path '*/libibverbs/libroan-rdmav*.so' -printf '%h\n' 2> /dev/null | tail -n 1)
		[ -n "$PROVIDER" ] || die "libroan is not installed (package libroan, or 'make install')"
		return 0
	fi
	version=$(pkg-config --modversion libibverbs 2> /dev/null) || die "libroan is built from these sources. On Debian, once, as root: apt install libibverbs-dev pkg-config"
	PROVIDER=$CACHE/provider-$version-$(checksum "$sources" provider include/uapi)
	compgen -G "$PROVIDER/libroan-rdmav*.so" > /dev/null && return
	say "building libroan for libibverbs $version (once)"
	quietly "libroan does not build" make -s -j"$(nproc)" -C "$sources/provider" OUT="$work/provider"
	mkdir -p "$PROVIDER"
	for so in "$work"/provider/libroan-rdmav*.so; do
		cp "$so" "$PROVIDER/.so.$$"
		mv "$PROVIDER/.so.$$" "$PROVIDER/${so##*/}"
	done
}

release=$("$HERE/kernel.sh" -c release "$kernel" 2> "$work/log") || die "$(tail -n 1 "$work/log")"
[ -e "$CACHE/linux-image-$release/ready" ] || say "fetching the kernel $release (once)"
image=$("$HERE/kernel.sh" image "$release" 2> "$work/log") || die "$(tail -n 3 "$work/log")"
has_9p "$image" "$release" || die "$release has no 9p file system, by which the guest gets this machine's root; choose another --kernel"
kdir=$("$HERE/kernel.sh" headers "$release" 2> "$work/log") || die "$(tail -n 3 "$work/log")"
module "$kdir" "$release"
provider

cp "$HERE"/{guest.sh,fstab,hosts.sh,command.sh} "$out"
declare -p ROAN_KO PROVIDER hosts gbps rtt loss | sed 's/^declare --/export/' > "$out/env"
{
	export -p
	printf 'cd %q 2> /dev/null || cd /\nexec %s\n' "$PWD" "$(printf '%q ' "$@")"
} > "$out/command"

# The ports of the guest for COMMAND's output are FIFOs here, as QEMU would truncate a file.
mkfifo "$work/stdout" "$work/stderr"
cat "$work/stdout" & readers=$!
cat "$work/stderr" >&2 & readers="$readers $!"
# Both ends open: the readers stay until QEMU is done with all attempts.
exec 7<> "$work/stdout" 8<> "$work/stderr"
lower=/ shown='' append='' limit=0 retry=''
qemu_initrd "$image" "$release" "/out/guest.sh / roan-vm /out/command.sh > /dev/hvc0 2>&1"
accel=$(qemu_accelerator "$image/boot/vmlinuz-$release")
began=$(date +%s.%N)
qemu_run "$image" "$release" "$accel" -nic none -chardev "file,id=c0,path=$work/guest.log" \
	-chardev "file,id=c1,path=$work/stdout,append=on" -device virtserialport,chardev=c1,name=stdout \
	-chardev "file,id=c2,path=$work/stderr,append=on" -device virtserialport,chardev=c2,name=stderr 2> "$work/qemu.log" 7>&- 8>&- &
guest=$!
wait $guest || true
exec 7>&- 8>&-
# shellcheck disable=SC2086 # two numbers
wait $readers || true

said=$(complaints)
[ -z "$said" ] || say "the guest's kernel reported an error: $(head -n 1 <<< "$said")"
if [ -e "$out/failed" ] || [ ! -e "$out/rc" ]; then
	tail -n 20 "$work/guest.log" "$work/console" "$work/qemu.log" >&2 2> /dev/null || true
	[ ! -e "$out/failed" ] || die "the hosts could not be set up"
	die "the guest ended without COMMAND's status"
fi
status=$(cat "$out/rc")
# The file's time is this machine's.
say "COMMAND started after $(LC_ALL=C stat -c %.9Y "$out/command_starts" | LC_ALL=C awk -v b="$began" '{ printf "%.1f", $1 - b }') s; status $status"
exit "$status"
