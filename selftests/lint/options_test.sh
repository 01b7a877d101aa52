#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the module for a kernel without the options of kernel/compat/options.mk: it must build, need no symbol that such a
# kernel lacks, and say what it lacks. Without an option that it needs the build must fail and name it.
#   options_test.sh [KDIR]	default: the newest installed headers
cd "$(dirname "$(readlink -f "$0")")/../.." || exit
. selftests/vm/lib.sh
kdir=$(readlink -f "${1:-$(find /lib/modules/*/build/ -maxdepth 1 -name .config | sort -V | tail -n 1 | xargs -r dirname)}")
dir=$(mktemp -d /tmp/roan-options.XXXXXX)
trap 'rm -rf "$dir"' EXIT

# A copy of the headers, of links but for the three files that say what the kernel has.
headers_without() { # OPTION...
	local o f
	rm -rf "$dir/kdir" && mkdir "$dir/kdir" && cp -as "$kdir/." "$dir/kdir" || return
	for f in include/config/auto.conf include/generated/autoconf.h Module.symvers; do
		rm "$dir/kdir/$f" && cp "$kdir/$f" "$dir/kdir/$f" || return
		for o; do
			sed -i "/\\<CONFIG_$o\\(_MODULE\\)\\?\\>/d" "$dir/kdir/$f" || return
		done
	done
	# What a kernel without DCB and connection tracking does not export.
	case " $* " in *" DCB "*) sed -i -E '/\t(dcb_|register_dcb|unregister_dcb|nf_ct_)/d' "$dir/kdir/Module.symvers" ;; esac
}

build() {
	rm -rf "$dir/module" && mkdir "$dir/module" && cp -a Kbuild kernel include "$dir/module" || return
	make -s -j"$(nproc)" -C "$dir/kdir" M="$dir/module" modules > "$dir/log" 2>&1
}

ktap_header
[ -e "$kdir/Makefile" ] || { ktap_skip "options" "no kernel headers here"; ktap_end; }
mapfile -t options < <(sed -n 's/^$(call without,\([A-Z0-9_]*\),.*/\1/p' kernel/compat/options.mk)
ktap_check "headers without ${options[*]}" headers_without "${options[@]}"
ktap_check "the module builds and finds its symbols" eval "build || { tail -n 20 '$dir/log'; false; }"
for o in "${options[@]}"; do
	ktap_check "the build says once what it lacks without CONFIG_$o" eval "[ \"\$(grep -c '^roan: this kernel has no CONFIG_$o: ' '$dir/log')\" = 1 ]"
done
for o in IPV6 INFINIBAND_USER_ACCESS NET_UDP_TUNNEL HMM_MIRROR; do
	ktap_check "without CONFIG_$o the build fails and names it" eval "headers_without $o && ! build && grep -q 'error.*roan needs CONFIG_$o' '$dir/log'"
done
ktap_end
