#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# `roan add` and `roan up`: what they write to /etc/roan and to a device's parameters. The device is a folder that imitates
# sysfs; a script in place of `rdma` makes it. Needs root, and no module. With a module, after reboots: reboot.sh.
. "$(dirname "$(readlink -f "$0")")/../vm/lib.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
param=$dir/class/roan0/ports/1/cc_param
mkdir -p "$dir/bin"
cat > "$dir/bin/rdma" <<END
#!/bin/sh
case "\$*" in
*show)
	if [ -s $dir/shown ]; then
		sed -i 1d $dir/shown
		mkdir -p $dir/class/other/ports/1/cc_param
		echo '[{"ifname":"other","netdev":"lo"}]'
	elif [ -e $param ]; then
		echo '[{"ifname":"roan0","netdev":"lo"}]'
	fi ;;
"link add "*)
	[ ! -s $dir/hidden ] || { sed -i 1d $dir/hidden; echo "error: File exists" >&2; exit 1; }
	mkdir -p $param && touch $param/algo $param/rpg_ai_rate $param/rpg_hai_rate ;;
esac
END
ln -s /bin/true "$dir/bin/modprobe"
chmod +x "$dir/bin/rdma"

roan() { env PATH="$dir/bin:$PATH" ROAN_SYSFS="$dir/class" ROAN_CONFIG="$dir/etc" "$REPO/tools/roan" "$@"; }
has() { [ "$(cat "$param/$1")" = "$2" ] || { echo "$1 is $(cat "$param/$1"), not $2"; return 1; }; } # PARAMETER VALUE

# Only the parameters that the second call names change.
added_twice() {
	roan add lo --set rpg_ai_rate=50 algo=dcqcn && roan add lo --set rpg_hai_rate=60 && roan add lo --set rpg_ai_rate=70 || return
	has algo dcqcn && has rpg_ai_rate 70 && has rpg_hai_rate 60 || return
	grep -v '^#' "$dir/etc/lo.conf"
	[ "$(grep -v '^#' "$dir/etc/lo.conf" | paste -sd' ')" = "device=roan0 algo=dcqcn rpg_ai_rate=70 rpg_hai_rate=60" ]
}

# As an upgrade of the package does.
up_missing() {
	echo 99 > "$param/rpg_ai_rate"
	roan up --missing && has rpg_ai_rate 99 || return
	rm -r "$dir/class/roan0"
	roan up --missing && has rpg_ai_rate 70
}

up_applies() { echo 99 > "$param/rpg_ai_rate" && roan up && has rpg_ai_rate 70; }

# The interface comes from a container that has ended. Its device there, "other", is listed in the answers to so many `rdma link show`,
# then not found, while so many `rdma link add` fail.
up_behind_another() { # ANSWERS FAILURES
	rm -r "$dir/class/roan0"
	yes | head -n "$1" > "$dir/shown"
	yes | head -n "$2" > "$dir/hidden"
	roan up --missing && has rpg_ai_rate 70 && [ ! -s "$dir/shown" ] && [ ! -s "$dir/hidden" ]
}

another_stays() {
	up_behind_another 1000 0 2> "$dir/err"
	cat "$dir/err"
	rm "$dir/shown"
	grep -q "lo has device other, not roan0; 'rdma link del other' removes it" "$dir/err"
}

ktap_header
[ "$(id -u)" = 0 ] || { ktap_skip "all" "needs root"; ktap_end; }
ktap_check "roan add again: the other parameters stay" added_twice
ktap_check "roan up --missing leaves a device alone that is there" up_missing
ktap_check "roan up applies the file" up_applies
ktap_check "roan up waits for a device of another namespace to go: it is shown" up_behind_another 2 0
ktap_check "... it is not shown" up_behind_another 0 2
ktap_check "... it stays" another_stays
ktap_end
