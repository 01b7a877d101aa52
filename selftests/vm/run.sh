#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs one script in a guest whose root is this machine's, read-only under a tmpfs overlay. Prints the script's output
# and exits with its status; or with 98 if the kernel log has an error report, 99 if the guest did not finish.
#   run.sh LAB[+RELEASE] [-v] [-m MEM] [-s SECONDS] [-c CPUS] [-k ARG] [-o DIR] [-n] SCRIPT [ARG...]
#	LAB: uml | uml-debug | uml-virtual (the same as uml -v) | qemu | qemu-6.12 | qemu-6.1 | qemu-rt | qemu-new |
#	    qemu-6.12-cloud | qemu-6.1-cloud | smp-debug | smp-kcsan (QEMU, 4 CPUs); on another CPU, with a root of its own
#	    (foreign.sh): arm64 | arm64-16k | arm64-64k (pages of 16 and 64 KiB) | s390x
#	+RELEASE: +trixie: the root of that Debian release (debian.sh), with roan built in it, not this machine's root;
#	    +source: this machine's root, rdma-core built from its newest known source, roan as a provider in that tree
#	-v  virtual time (UML): the clock advances only while every task sleeps; a task that polls stops it for ever.
#	    Random numbers are a fixed sequence: two runs of one script send the same packets
#	-k  appended to the kernel's command line	-n  do not build roan for that kernel first
#	-o  copy the guest's folder /out/kept to DIR at the end
# DMESG=FILE: save the kernel log. NICS=MODEL: two emulated adapters on one QEMU hub (e1000e, virtio-net-pci; igb, of
# QEMU 8 and newer). CABLE=DIR:N: a virtio adapter, joined to that of another guest with the same DIR. One guest has
# N=1, the other N=2. MONITOR=SOCKET: QEMU's monitor (QMP) listens there. EMULATOR=COMMAND: the QEMU to use; default:
# debian.sh's, if it has one. LINK_TYPE, WIRE and the variables named in LAB_ENV are passed to the script. ICOUNT=y:
# QEMU's clock advances by 1 ns for each instruction that a guest CPU executes and skips idle time, so that times do not
# depend on the load of this machine.
# COVERAGE=y: roan.ko reports the basic blocks that run; uml, uml-debug, smp-*. They are saved as ran/LAB-SCRIPT beside
# roan.ko, for ../fuzz/uverbs/lines.py.
set -eu
HERE=$(dirname "$(readlink -f "$0")")
REPO=$(readlink -f "$HERE/../..")
. "$REPO/tools/vm/qemu.sh"
say() { echo "# $*"; }
lab=${1:-} release=
case $lab in *+*) release=${lab#*+} lab=${lab%%+*} ;; esac
[ $# -ge 2 ] || { sed -n 3,22p "$0"; exit 2; }
shift
VIRTUAL='time-travel=inf-cpu time-travel-start=1700000000000000000'
virtual='' mem=2G limit=600 cpus=2 append='' build=y keep=''
[ "$lab" != uml-virtual ] || { lab=uml; virtual=$VIRTUAL; }
# The host may leave a guest's CPU without a time slice for many seconds.
case $lab in smp-*) cpus=4 mem=3G append='watchdog_thresh=60 workqueue.watchdog_thresh=300' ;; esac
while getopts vm:s:c:k:o:n o; do
	case $o in
	v) virtual=$VIRTUAL ;;
	m) mem=$OPTARG ;;
	s) limit=$((3 * OPTARG)) ;;	# SECONDS is for a quiet machine; other guests usually run beside this one
	c) cpus=$OPTARG ;;
	k) append="$append $OPTARG" ;;
	o) keep=$OPTARG ;;
	n) build='' ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
script=$(readlink -f "$1")
shift
name=$lab${release:+-$release}-${script##*/}

work=$(mktemp -d /tmp/roan-lab.XXXXXX)
trap 'rm -rf "$work"' EXIT
out=$work/out
mkdir "$out"
cp "$REPO"/tools/vm/{guest.sh,fstab} "$out"
# What others have left in this machine's /tmp is not there in the guest, unless the test itself is in there.
case $REPO:$script in
/tmp/* | *:/tmp/*) ;;
*) echo "t /tmp tmpfs" >> "$out/fstab" ;;
esac
[ -z "${COVERAGE:-}" ] || { set -- "$script" "$@"; script=$HERE/coverage.sh; }
for v in LINK_TYPE WIRE ROAN_KO NICS ${LAB_ENV:-}; do
	[ -z "${!v:-}" ] || printf 'export %s=%q\n' "$v" "${!v}"
done > "$out/env"

built() { # FOLDER COMMAND...; holds a lock on the folder of build/, as two guests may need the same build
	local into=$REPO/build/$1
	shift
	[ -n "$build" ] || return 0
	mkdir -p "$into"
	flock "$into" "$@" > "$work/build.log" 2>&1 || { tail -n 30 "$work/build.log"; echo "run.sh: roan does not build: $*"; exit 97; }
}
module=(make -s -j"$(nproc)" -C "$REPO" module ROAN_TESTS=y)

# Lower layer of the guest's root: this machine's root, or that of another release or CPU, with its own build of provider and
# programs.
lower=/
case $lab in arm64* | s390x) release=${lab%%-*} ;; esac
base=$REPO/build/$release
in_root=("$HERE/debian.sh" run "$release") flags=()
case $release in
'') ;;
source)
	in_root=() tree=$base/build
	built "$release" "$REPO/provider/rdma-core.sh" "$("$HERE/debian.sh" source)" "$base"
	flags=(CPPFLAGS="-I$tree/include" LDFLAGS="-L$tree/lib")
	printf 'export PATH=%q:$PATH LD_LIBRARY_PATH=%q\n' "$tree/bin" "$tree/lib" >> "$out/env" ;;
arm64 | s390x)
	lower=$("$HERE/foreign.sh" root "$release")
	in_root=("$HERE/foreign.sh" with "$release") ;;
*)
	lower=$("$HERE/debian.sh" root "$release") ;;
esac
if [ "$lower" != / ]; then
	built "$release" "${in_root[@]}" make -s -C "$REPO/provider" OUT="$base/provider"
	echo "export PROVIDER=$base/provider" >> "$out/env"
fi
if [ -n "$release" ]; then
	built "$release" "${in_root[@]}" make -s -C "$REPO/selftests/verbs" OUT="$base/selftests" "${flags[@]}"
	built "$release" "${in_root[@]}" make -s -C "$REPO/selftests/gpu" OUT="$base/selftests"
	[ "$release" != source ] || built "$release" make -s -C "$REPO/selftests/security" OUT="$base/selftests" \
		"${flags[@]}" "$base/selftests/user_share"	# counts an object that only a newer rdma-core has
	echo "export PROGRAMS=$base/selftests" >> "$out/env"
fi

# Library to preload in virtual time: replaces the host's random numbers. Prints its path.
not_random() {
	local so=$REPO/build/selftests/fixed_rng.so
	[ "$so" -nt "$HERE/fixed_rng.c" ] || { mkdir -p "${so%/*}" && cc -O2 -Wall -shared -fPIC -o "$so.$$" "$HERE/fixed_rng.c" && mv "$so.$$" "$so"; }
	echo "$so"
}

# A UML kernel uses one CPU at a time and stops its processes at each system call and fault. Spread over several host
# CPUs it waits for cross-CPU wake-ups and takes four times as long, so bind it. LAB_CPU: index into our CPUs; default:
# a random one.
one_cpu() {
	local ours
	mapfile -t ours < <(taskset -cp $$ | sed 's/.*: //; s/,/\n/g' | awk -F- '{ for (i = $1; i <= $NF; i++) print i }')
	echo "${ours[${LAB_CPU:-$RANDOM} % ${#ours[@]}]}"
}

run_uml() {
	local folder src tag preload
	folder=$("$HERE/kernel.sh" "$lab")
	src=$folder/linux-source-6.12
	tag=$(cat "$src/include/config/kernel.release")-um
	[ "$lab" = uml ] || tag=$tag-debug
	tag=$tag${COVERAGE:+-coverage}
	# shellcheck disable=SC2046 # a word or none
	built "$tag" "${module[@]}" KDIR="$src" ARCH=um $([ "$lab" = uml ] || echo UBSAN=1)	# undefined behaviour ends the guest
	echo "export ROAN_KO=$REPO/build/$tag/roan.ko" >> "$out/env"
	sed 's/^$/\n/' /proc/cpuinfo > "$out/cpuinfo"
	cat > "$work/init" <<-END
		#!/bin/bash
		export PATH=/usr/sbin:/usr/bin:/sbin:/bin
		mount -t tmpfs t /mnt && mkdir -p /mnt/u /mnt/w /mnt/r
		mount -t overlay -o lowerdir=$lower,upperdir=/mnt/u,workdir=/mnt/w o /mnt/r
		cd /mnt/r && mkdir -p out lib/modules .$REPO
		[ $lower = / ] || mount -r -t hostfs -o $REPO none .$REPO
		mount -t hostfs -o $out none out
		mount -t hostfs -o $folder/mods/lib/modules none lib/modules
		mount -t proc p proc; mount -t sysfs s sys; mount -t devtmpfs d dev
		exec chroot . /bin/bash -c '"\$0" "\$@" > /out/log 2>&1' bash /out/guest.sh $REPO $lab $(printf '%q ' "$script" "$@")
	END
	chmod +x "$work/init"
	: > "$out/log"
	preload=
	if [ -n "$virtual" ]; then
		preload=$(not_random)
		[ "$lab" = uml ] || virtual="$virtual kmemleak=off"	# it needs a clock to age objects
	fi
	# The kernel's random numbers also depend on its command line, so that must not name $work.
	exec 9< "$work"
	# In the background: this shell then ends at once by a signal, and the guest with it.
	# shellcheck disable=SC2086 # $append is several words
	LD_PRELOAD=$preload setpriv --pdeathsig TERM timeout "$limit" taskset -c "$(one_cpu)" "$src/linux" $virtual mem="$mem" \
		root=/dev/root rootfstype=hostfs rootflags=/ ro init=/proc/self/fd/9/init \
		quiet log_buf_len=1M con=null con0=null,fd:2 kunit.enable="${KUNIT:-0}" $append > "$work/console" 2>&1 < /dev/null &
	tail --pid=$! -s 0.1 -f -n +1 "$out/log" &	# ends once the guest has and all is printed
	wait
}

# Options for two adapters on a hub of their own, or for one with a cable to another guest.
nics() { # [MODEL]
	local n slot
	if [ -n "${CABLE:-}" ]; then
		n=${CABLE##*:}
		echo -netdev "dgram,id=cable,local.type=unix,local.path=${CABLE%:*}/$n,remote.type=unix,remote.path=${CABLE%:*}/$((3 - n))" \
			-device "virtio-net,netdev=cable,mac=52:54:00:72:6f:0$n"
		return
	fi
	[ -n "$1" ] || { echo -nic none; return; }
	# Its virtual functions need PCI Express, and two slots each on the root bus: 16 and 17 after the adapter's.
	[ "$1" != igb ] || echo -machine q35
	for n in 1 2; do
		slot=
		[ "$1" != igb ] || slot=,addr=$((5 + 2 * n))
		echo -netdev "hubport,id=n$n,hubid=1" -device "$1,netdev=n$n,mac=52:54:00:72:6f:0$n,romfile=$slot"
	done
}

# Boots the kernel in FOLDER by the command in the array qemu.
boot() { # FOLDER VERSION [ARG...]
	local folder=$1 version=$2 monitor=() shown=$REPO retry=y shares=() to sed
	[ -z "${MONITOR:-}" ] || monitor=(-qmp "unix:$MONITOR,server=on,wait=off")
	qemu_initrd "$folder" "$version" "/out/guest.sh $REPO $lab $(printf '%q ' "$script" "${@:3}") > /dev/hvc0 2>&1"
	exec {to}> >(exec sed -u 's/\r$//')
	sed=$!
	# shellcheck disable=SC2046 # the adapters' options are several words
	qemu_run "$folder" "$version" "$(qemu_accelerator "$folder/boot/vmlinuz-$version")" -chardev stdio,id=c0,signal=off \
		"${monitor[@]}" $(nics "${NICS:-}") >&"$to" {to}>&-
	exec {to}>&-
	wait "$sed"
}

version_in() { # FOLDER
	local kernel
	kernel=$(basename "$1"/boot/vmlinuz-*)
	echo "${kernel#vmlinuz-}"
}

run_qemu() {
	local series=${lab#qemu} folder version tag qemu
	mapfile -t qemu < <(if [ -n "${EMULATOR:-}" ]; then echo "$EMULATOR"; else "$HERE/debian.sh" emulator; fi)
	series=${series#-}
	folder=$("$HERE/kernel.sh" "${series:-6.12}")
	version=$(version_in "$folder")
	case $series in
	new) built "$version" "$HERE/debian.sh" run trixie "${module[@]}" KDIR="/lib/modules/$version/build" STRICT=1 ;;
	smp-*)
		tag=${version%-smp*}-$lab
		tag=$tag${COVERAGE:+-coverage}
		built "$tag" "${module[@]}" KDIR="$folder/linux-source-6.12"
		echo "export ROAN_KO=$REPO/build/$tag/roan.ko" >> "$out/env" ;;
	*) built "$version" "${module[@]}" KDIR="$("$REPO/tools/vm/kernel.sh" headers "$version")" ;;
	esac
	boot "$folder" "$version" "$@"
}

# shellcheck disable=SC2034 # some variables are read by qemu.sh
run_foreign() {
	local folder kdir version linux_arch triplet qemu cpu serial busybox=$lower/bin/busybox
	read -r linux_arch triplet _ <<< "$("$HERE/foreign.sh" words "$lab")"
	case $lab in
	arm64*) qemu=(qemu-system-aarch64 -machine virt) cpu=neoverse-n1 serial=ttyAMA0 append="$append kpti=off" ;;
	s390x) qemu=(qemu-system-s390x) cpu=max serial=ttysclp0 ;;
	esac
	case $lab in
	arm64-64k) folder=$("$HERE/kernel.sh" "$lab") kdir=$folder/linux-source-6.12 ;;
	*) folder=$("$HERE/foreign.sh" kernel "$lab") kdir=$folder/kdir ;;
	esac
	version=$(version_in "$folder")
	built "$version" "${module[@]}" KDIR="$kdir" ARCH="$linux_arch" KARGS="CROSS_COMPILE=$triplet-"
	echo "export ROAN_KO=$REPO/build/$version/roan.ko" >> "$out/env"
	boot "$folder" "$version" "$@"
}

first_complaint() { # LINE: with what follows it, without SLUB's dumps of memory, registers, and callers that are a guess
	local noise='(Object|Redzone|Padding|Bytes b4) +[0-9a-f]+: | (RAX|RDX|RBP|R10|R13|FS|CS|CR2|Code): |Modules linked in|\] +\? '

	grep -sFx -A 2000 -- "$1" "$out/dmesg" | grep -vE "$noise" | head -n 30 || true
}

case $lab in
uml | uml-debug) run_uml "$@" ;;
qemu | qemu-6.12 | qemu-6.1 | qemu-rt | qemu-new | qemu-*-cloud | smp-debug | smp-kcsan) run_qemu "$@" ;;
arm64 | arm64-16k | arm64-64k | s390x) run_foreign "$@" ;;
*) sed -n 3,22p "$0"; exit 2 ;;
esac
[ -z "$keep" ] || { mkdir -p "$keep" && cp -r "$out/kept/." "$keep"; } || true
if [ -e "$out/ran" ]; then
	ko=$(sed -n 's/^export ROAN_KO=//p' "$out/env")
	mkdir -p "${ko%/*}/ran"
	find "${ko%/*}/ran" -type f ! -newer "$ko" -delete	# of another roan.ko
	cp "$out/ran" "${ko%/*}/ran/$name"
fi
[ -z "${DMESG:-}" ] || cp "$out/dmesg" "$DMESG" 2> /dev/null || cp "$work/console" "$DMESG" || true
if [ ! -e "$out/rc" ] || [ ! -s "$out/dmesg" ]; then
	tail -n 60 "$work/console"
	echo "# the guest did not finish ($limit s at most), or could not save its kernel's log"
	exit 99
fi
said=$(complaints)
if [ -n "$said" ]; then
	report=$(first_complaint "${said%%$'\n'*}")	# none of kmemleak
	echo "# the kernel complained:"
	printf '%s\n' "$said" | head -n $((${#report} ? 8 : 38)) | sed 's/^/# /'
	[ -z "$report" ] || printf 'the first report:\n%s\n' "$report" | sed 's/^/# /'
	exit 98
fi
exit "$(cat "$out/rc")"
