#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests `roan vm` on this machine, as an ordinary user: the tool installed into a folder, and beside its sources. Boots two
# guests of its own. The user's cache starts with the kernel in this machine's cache; module and libroan are built.
#
#	this script, root -- setpriv --> nobody: roan vm --> QEMU: h1 -- switch -- h2
REPO=$(readlink -f "$(dirname "$0")/../..")
. "$REPO/selftests/vm/lib.sh"
dir=$(mktemp -d /tmp/roan-box.XXXXXX)
log=$dir/log
trap 'rm -rf "$dir"' EXIT
as_user=()
[ "$(id -u)" != 0 ] || as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs)
roan=$dir/installed/usr/sbin/roan
user() { (cd "$dir/home" && HOME=$dir/home TMPDIR=$dir/tmp ROAN_CACHE=$dir/cache XDG_CACHE_HOME='' "${as_user[@]}" "$@"); }

# shellcheck disable=SC2317 # called by ktap_check
install_for_user() {
	local image
	cd "$REPO" || return
	chmod 755 "$dir"
	mkdir -p "$dir"/{cache,home,home/kept,tmp,tree}
	make -s install-tool DESTDIR="$dir/installed" && make -s -C provider OUT="$dir/provider" DESTDIR="$dir/installed" install || return
	cp -a Kbuild kernel include provider tools "$dir/tree" || return
	image=$(selftests/vm/kernel.sh 6.12) || return
	cp -al "$image" "$dir/cache" 2> /dev/null || { rm -rf "$dir/cache/${image##*/}"; cp -a "$image" "$dir/cache"; } || return
	echo before > "$dir/home/outside"
	# Not what is in the cache: these files are links of this machine's.
	[ "${#as_user[@]}" = 0 ] || chown 65534:65534 "$dir/cache" "$dir/tmp" "$dir"/home{,/*} || return
	echo secret > "$dir/secret" && chmod 600 "$dir/secret"
}

refused() { # NAME "TEXT OF THE MESSAGE" OPTION...
	local rc
	user "$roan" vm "${@:3}" > "$log" 2>&1
	rc=$?
	ktap_check "$1: status 125 and a message" eval "cat '$log'; [ $rc = 125 ] && grep -q -- '$2' '$log' && ! grep -q booting '$log'"
}

said() { ktap_check "$1" eval "sed 's/^/# /' '$log'; grep -qE -- '$2' '$log'"; } # NAME PATTERN

ktap_header
ktap_check "the tool installed for a user" install_for_user || ktap_end

refused "no command" "which command" --hosts 2
refused "zero hosts" "--hosts 0" --hosts 0 -- true
refused "a rate that is no number" "--gbps fast" --gbps fast -- true
refused "an unknown option" "no option --host" --host 2 -- true
refused "a folder that is not writable" "--writable /usr" --writable /usr -- true
refused "an unknown kernel" "apt has no kernel 9.9, but: .*6.12" --kernel 9.9 -- true

# Runs in h1 of the first guest.
cat > "$dir/home/first" <<'END'
echo "uid $(id -u) in $PWD, VALUE $VALUE, $*"
echo "to stderr" >&2
echo "device $(ls /sys/class/infiniband)"
on h2 ib_write_bw -F -n 100 > /tmp/server 2>&1 &
until on h2 ss -Hltn 'sport = :18515' | grep -q .; do sleep 0.2; done
ib_write_bw -F -n 100 h2 | awk '$1 == 65536 { print "bandwidth", $4 }'
ip netns exec h2 ping -c 1 h1 > /dev/null && echo "h2 reaches h1"
echo kept > kept/file
echo after > outside
cat ../secret > /dev/null 2>&1 || echo "the secret cannot be read"
printf 'no newline\r'
sleep 1000 &
exit 7
END
VALUE='two words' user "$roan" vm --hosts=2 --writable kept -- bash ./first 'an argument' > "$log.out" 2> "$log.err"
rc=$?
cat "$log.out" "$log.err" > "$log"
ktap_check "the command's status is passed through" eval "cat '$log'; [ $rc = 7 ]"
said "environment, folder and arguments are the caller's; root in the guest" "^uid 0 in $dir/home, VALUE two words, an argument"
said "h1 sees its own device only" '^device roan1$'
said "ib_write_bw between h1 and h2" '^bandwidth [1-9]'
said "hosts have names" '^h2 reaches h1'
ktap_check "stdout and stderr are apart, byte for byte" eval "cat '$log.err'; grep -qx 'to stderr' '$log.err' && ! grep -q 'to stderr' '$log.out' &&
	[ \"\$(tail -c 11 '$log.out' | od -An -c | tr -d ' ')\" = 'nonewline\r' ]"
ktap_check "a file in the writable folder is there" grep -qx kept "$dir/home/kept/file"
ktap_check "a file elsewhere has not changed" grep -qx before "$dir/home/outside"
[ "$(id -u)" != 0 ] || said "a file that the user cannot read is not readable in the guest" '^the secret cannot be read'
[ "$(id -u)" != 0 ] || ktap_check "what the guest wrote belongs to the user" eval "[ \$(stat -c %u '$dir/home/kept/file') = 65534 ]"
said "progress is shown" 'roan vm: building the module'
echo "# $(grep -o 'COMMAND started after [0-9.]* s' "$log.err"), $(grep -o 'accel [a-z]*' "$log.err")"
ktap_check "nothing of it is left in TMPDIR" eval "! ls '$dir/tmp' | grep ."

EMULATOR=$(command -v false) user "$roan" vm -- true > "$log" 2>&1
ktap_check "a guest that does not start: status 125 and a message" eval "[ $? = 125 ] && grep -q 'the guest ended without' '$log'"

# The second guest, from the source tree: three hosts, a slower wire; ended by SIGINT to its process group, as by Ctrl-C.
cat > "$dir/home/second" <<'END'
echo "third $(on h3 ls /sys/class/infiniband)"
on h3 ib_write_bw -F -D 4 > /tmp/server 2>&1 &
until on h3 ss -Hltn 'sport = :18515' | grep -q .; do sleep 0.2; done
ping -c 5 -i 0.3 -q h2 | sed -n 's/^rtt .* = \([0-9]*\)[.].*/rtt \1/p'
ib_write_bw -F -D 4 h3 --report_gbits | awk '$1 == 65536 { printf "tenths of gbps %d\n", $4 * 10 }'
tc -s -n h1 qdisc show dev eth0 | sed -n 's/.*dropped \([0-9]*\).*/lost \1/p'
echo ready
sleep 1000
END
set -m
user "$dir/tree/tools/roan" vm --hosts 3 --gbps 0.2 --rtt 20ms --loss 0.5 -- bash ./second > "$log" 2>&1 &
guest=$!
set +m
ktap_check "a second guest, from the source tree" wait_for 500 eval "grep -q ^ready '$log' || ! kill -0 $guest"
said "three hosts" '^third roan3$'
number() { sed -n "s/^$1 \([0-9]*\)$/\1/p" "$log"; }
ktap_check "--rtt 20ms: 20 ms and some more" eval "sed 's/^/# /' '$log'; [ $(number rtt) -ge 20 ] && [ $(number rtt) -lt 100 ]"
ktap_check "--gbps 0.2: at most that" eval "[ $(number 'tenths of gbps') -le 2 ]"
ktap_check "--loss 0.5: packets are lost" eval "[ $(number lost) -gt 0 ]"
kill -INT -- -$guest
wait $guest
rc=$?
ktap_check "SIGINT ends it with status 130" eval "cat '$log'; [ $rc = 130 ]"
ktap_check "the guest is gone" wait_for 20 eval "! pgrep -f -- '$dir/cache/linux-image'"
ktap_end
