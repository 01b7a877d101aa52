#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The Debian packages, in an overlay over a Debian 12 root (root.sh), by chroot; needs root. `make deb` builds them there,
# lintian checks them, they are installed, DKMS builds the module for KERNELS, manual pages and completion work, and a purge
# leaves no file. Then the same with the packages for rpm. This machine's system is not changed.
#
#	tree --make deb--> roan, roan-dkms, libroan, libroan-dev --dpkg -i--> root: /lib/modules/KERNEL/updates/dkms/roan.ko
#
# KERNELS: as `roan vm --kernel` (6.12-cloud 6.1); empty: none. Each takes a minute of CPU time to build for.
# shellcheck disable=SC2154 # variables of root.sh
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
KERNELS=${KERNELS-6.12-cloud 6.1}
. "$HERE/root.sh"

# Files of the overlay that neither dpkg, a log, a cache nor this test made.
files() {
	(cd "$work/changes" && find . ! -type c ! -type d ! -path './var/lib/dpkg/*' ! -path './var/log/*' ! -path './var/cache/*' ! -path './build/*' \
		! -path './tmp/*' ! -path './run/*' ! -path './var/lib/apt/*' ! -path './lib/modules/*/modules.*' ! -path './usr/lib/modules/*/modules.*' ! -path './var/lib/dkms/mok.*' ! -path './root/.rpmdb/*' ! -path './root/.config/*' ! -name ld.so.cache | sort)
}

# The headers appear where their packages have them.
headers() { # KERNEL...: sets `releases`
	local kernel release dir part
	for kernel; do
		release=$("$REPO/tools/vm/kernel.sh" -c release "$kernel") && dir=$("$REPO/tools/vm/kernel.sh" headers "$release") || return
		dir=$(readlink -f "$dir")
		for part in "${dir%/*}"/linux-* "${dir%/src/*}"/lib/linux-kbuild-*; do
			[ -d "$part" ] && [ ! -e "$root/usr/${part#*/usr/}" ] || continue
			mkdir -p "$root/usr/${part#*/usr/}" && mount -o bind,ro "$part" "$root/usr/${part#*/usr/}" || return
		done
		mkdir -p "$root/lib/modules/$release" && ln -s "/usr/src/linux-headers-$release" "$root/lib/modules/$release/build" || return
		releases+=("$release")
	done
}

installed() {
	in_root sh -c 'dpkg -i $(ls /build/build/deb/*.deb | grep -v dbgsym)' > "$log" 2>&1 || { tail -n 20 "$log"; cat "$root"/var/lib/dkms/roan/*/build/make.log; return 1; }
}

dkms_built() { # RELEASE
	local ko=$root/lib/modules/$1/updates/dkms/roan.ko
	in_root dkms status -k "$1" | grep -q 'roan/.*: installed' || { in_root dkms status; return 1; }
	ko=$(ls "$ko"*) || return
	in_root modinfo -F vermagic "${ko#"$root"}" | grep -q "^$1 "
}

# Instead of the module of the tree in /build an empty one, which is built in seconds.
small_module() { # DESCRIPTION
	local f
	for f in kernel/main.c kernel/mem/peermem/clients.c; do
		{ printf '#include <linux/module.h>\nMODULE_DESCRIPTION("%s");\n' "$1" && sed -n '/^MODULE_LICENSE/,$p' "$REPO/$f"; } > "$root/build/$f"
	done
	{ grep -E '^(obj-m|version-flag|CFLAGS_kernel)' "$REPO/Kbuild" &&
		printf '%s := %s\n' roan-y kernel/main.o roan_peermem-y kernel/mem/peermem/clients.o; } > "$root/build/Kbuild"
}

# What modprobe loads.
module_is() { # RELEASE DESCRIPTION [VERSION]
	local version=${3:-$(in_root /build/tools/package version)}
	in_root modinfo -k "$1" roan > "$log"
	grep -qx "description: *$2" "$log" && grep -qxF "version:        $version" "$log" || { head -n 5 "$log"; in_root dkms status; return 1; }
}

debs_again() { in_root make -s -C /build deb > "$log" 2>&1 || { tail -n 20 "$log"; return 1; }; }

same_debs() {
	local deb
	mv "$root/build/build/deb" "$work/deb" && debs_again || return
	for deb in "$work"/deb/*.deb; do
		cmp "$deb" "$root/build/build/deb/${deb##*/}" || return
	done
}

# By apt, which unpacks a package of another version only.
upgraded() {
	local version
	small_module upgrade
	debs_again && version=$(in_root /build/tools/package version) || return
	in_root sh -c 'apt-get -y install $(ls /build/build/deb/*.deb | grep -v dbgsym)' > "$log" 2>&1 || { tail -n 20 "$log"; return 1; }
	[ "$(in_root dpkg-query -W -f '${Version}\n' roan roan-dkms libroan libroan-dev | uniq)" = "$version" ] ||
		{ in_root dpkg -l '*roan*'; return 1; }
}

# Another python3 is first in PATH.
own_python() {
	mkdir "$root/tmp/python" && ln -s /bin/false "$root/tmp/python/python3"
	in_root env PATH=/tmp/python:/usr/sbin:/usr/bin:/sbin:/bin sh -c 'roan status && CNI_COMMAND=VERSION /usr/share/roan/roan-cni'
}

manuals() { # PAGE SECTION WORD...: shown without a warning, with these words
	local page=$1 section=$2
	shift 2
	in_root env MANWIDTH=100 MANROFFOPT= sh -c "man --warnings -l $page > /tmp/page 2> /tmp/warnings; col -b < /tmp/page > /tmp/text"
	[ ! -s "$root/tmp/warnings" ] || { cat "$root/tmp/warnings"; return 1; }
	for word; do
		grep -q -- "$word" "$root/tmp/text" || { echo "no '$word' in $page($section)"; return 1; }
	done
}

completes() { # "EXPECTED WORDS" TYPED-WORD...: the last one is what has been typed of it
	local want=$1 got
	shift
	# shellcheck disable=SC2016 # expanded in the root
	got=$(in_root bash -c '. /usr/share/bash-completion/bash_completion
		. /usr/share/bash-completion/completions/roan
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
		_roan 2> /dev/null
		echo "${COMPREPLY[@]}"' bash roan "$@")
	[ "$got" = "$want" ] || { echo "got '$got', not '$want'"; return 1; }
}

every_command_completes() {
	local c n=0
	for c in $(in_root roan --help | grep -o '{.*}' | head -n 1 | tr -d '{}' | tr , ' '); do
		completes "$c" "$c" || return
		n=$((n + 1))
	done
	[ $n -ge 10 ] || { echo "roan --help names $n commands"; return 1; }
}

# A kernel that the module cannot be built for: the first kernel's headers with a changed configuration.
passed_over() { # SED-COMMAND
	local name=${releases[0]}-other version rc=0
	version=$(in_root /build/tools/package version)
	rm -rf "${root:?}/usr/src/$name" && mkdir -p "$root/usr/src/$name" "$root/lib/modules/$name" || return
	in_root sh -c "cd /usr/src/$name && cp -as /usr/src/linux-headers-${releases[0]}/. . && cp --remove-destination \$(readlink -f .config) .config &&
		ln -sfn /usr/src/$name /lib/modules/$name/build && sed -i '$1' .config" || return
	in_root dkms build "roan/$version" -k "$name" > "$log" 2>&1 || rc=$?
	rm -r "$root/usr/src/$name" "$root/lib/modules/$name"
	grep -q 'includes a BUILD_EXCLUSIVE directive which does not match' "$log" && [ $rc = 77 ] || { cat "$log"; return 1; }
}

wanted() { in_root udevadm test -a add /sys/class/net/lo 2>&1 | grep -qx 'SYSTEMD_WANTS=roan-link@lo.service'; }

# As root without DESTDIR, for the first of the kernels, then removed.
from_the_tree() {
	{ tree_make install && in_root modinfo -k "${releases[0]}" roan && in_root roan status && [ -e "$root/etc/libibverbs.d/roan.driver" ] &&
		one_module dkms "make uninstall" && tree_make uninstall; } > "$work/tree.log" 2>&1 || { tail -n 20 "$work/tree.log"; return 1; }
	nothing_left
}

# One roan.ko for a kernel: the second way to install it is refused, whichever comes first.
one_module() { # WAY (dkms, or install) COMMAND: what removes the first one
	local was
	was=$(in_root modinfo -n -k "${releases[0]}" roan)
	! tree_make "$1" > "$log" 2>&1 && grep -qx "package: $was is installed. First remove it: $2" "$log" && [ "$was" = "$(in_root modinfo -n -k "${releases[0]}" roan)" ] ||
		{ tail -n 20 "$log"; return 1; }
}

# WAY may install beside a module that is in FOLDER, or not.
beside() { # FOLDER WAY STATUS
	local rc=0
	mkdir -p "$root/lib/modules/other/$1" && touch "$root/lib/modules/other/$1/roan.ko.xz"
	in_root /build/tools/package alone other "$2" > "$log" 2>&1 || rc=1
	rm -r "$root/lib/modules/other"
	[ $rc = "$3" ] && { [ $rc = 0 ] || grep -q "/other/$1/roan.ko.xz is installed" "$log"; } || { echo "$2 beside $1: $rc"; cat "$log"; return 1; }
}

# DKMS puts modules into extra on Fedora, into updates on SUSE.
folders() {
	local folder rc=0
	for folder in updates/dkms extra extra/roan weak-updates/roan; do
		beside $folder install 1 || return
	done
	beside updates install 0 && beside updates dkms 1 || return
	mkdir -p "$root/var/lib/dkms/roan/1/other"
	beside updates install 1 && beside updates dkms 0 && beside extra dkms 0 || rc=1
	rm -r "$root/var/lib/dkms/roan"
	return $rc
}

modules_conflict() {
	in_root /build/tools/package module "/lib/modules/${releases[0]}/build" > "$log" 2>&1 || { tail -n 20 "$log"; return 1; }
	! in_root sh -c 'dpkg -i /build/build/deb/roan-modules-*.deb' > "$log" 2>&1 && grep -q 'conflicting packages - not installing roan-modules' "$log" ||
		{ cat "$log"; return 1; }
}

# `dkms` builds for the running kernel: uname names that of the headers.
tree_make() { # TARGET
	mkdir -p "$root/tmp/bin"
	[ -e "$root/build/selftests" ] || cp -a "$REPO/selftests" "$root/build"
	printf '#!/bin/sh\n[ "$*" = -r ] && echo %s || exec /bin/uname "$@"\n' "${releases[0]}" > "$root/tmp/bin/uname"
	chmod +x "$root/tmp/bin/uname"
	in_root env PATH=/tmp/bin:/usr/sbin:/usr/bin:/sbin:/bin make -s -C /build "$1" KDIR="/lib/modules/${releases[0]}/build"
}

# Another module of DKMS is built after roan's has gone.
dkms_from_the_tree() {
	local other=$root/usr/src/other-1
	mkdir "$other" && printf '#include <linux/module.h>\nMODULE_LICENSE("GPL");\n' > "$other/other.c" && echo 'obj-m := other.o' > "$other/Kbuild"
	printf '%s=%s\n' PACKAGE_NAME other PACKAGE_VERSION 1 AUTOINSTALL yes 'BUILT_MODULE_NAME[0]' other 'DEST_MODULE_LOCATION[0]' /updates > "$other/dkms.conf"
	{ small_module dkms && tree_make dkms && module_is "${releases[0]}" dkms && small_module again && tree_make dkms && module_is "${releases[0]}" again &&
		tree_make uninstall && in_root dkms add other/1 && in_root dkms autoinstall -k "${releases[0]}" && in_root dkms status | grep 'other/1.*installed' &&
		in_root dkms remove other/1 --all; } > "$work/dkms.log" 2>&1 || { tail -n 20 "$work/dkms.log"; return 1; }
	rm -r "$other"
	nothing_left
}

nothing_left() {
	files | comm -13 "$work/before" - > "$log"
	[ ! -s "$log" ] || { cat "$log"; return 1; }
	[ ! -e "$root/etc/roan" ] && [ -z "$(find "$root/var/lib/dkms" -name 'roan*')" ]
}

# The link that this makes is in no package.
exporter_enabled() {
	in_root systemctl enable roan-exporter.service &&
		[ -L "$root/etc/systemd/system/multi-user.target.wants/roan-exporter.service" ]
}

# By the line of getting-started.md.
removed() {
	local line
	line=$(sed -n 's/^To remove the packages[^`]*`apt \([^`]*\)`.*/apt-get -y \1/p' "$REPO/Documentation/getting-started.md")
	in_root sh -c "${line:?}" > "$log" 2>&1 || { cat "$log"; return 1; }
	nothing_left
}

# ---- rpm: Debian's rpmbuild and rpm, which know nothing of Debian's packages (--nodeps) ----

rpms_built() { in_root sh -c "cd /build && VERSION=${rpm_version:-} tools/package rpm" > "$log" 2>&1 || { tail -n 20 "$log"; return 1; }; }

lint_rpms() {
	in_root sh -c 'rpmlint -c /build/tools/rpm/rpmlint.toml /build/build/rpm/libroan.spec /build/build/rpm/*.rpm' > "$log" 2>&1
	grep -q '4 packages and 1 specfiles checked; 0 errors, 0 warnings' "$log" || { cat "$log"; return 1; }
}

rpms_installed() {
	in_root sh -c 'rpm -i --nodeps /build/build/rpm/*.rpm' > "$log" 2>&1 || { cat "$log"; return 1; }
	[ "$(in_root rpm -qa --qf '%{name}\n' | sort | paste -sd' ')" = "libroan libroan-devel roan roan-dkms" ] && in_root rpm -V --nodeps libroan libroan-devel roan roan-dkms
}

rpms_upgraded() { # DESCRIPTION
	small_module "$1"
	rpms_built && in_root sh -c 'rpm -U --nodeps /build/build/rpm/*.rpm' > "$log" 2>&1 || { tail -n 20 "$log"; return 1; }
	[ "${#releases[@]}" = 0 ] || module_is "${releases[0]}" "$1" "${rpm_version:-}"
}

# The version stays: only the packages' release rises.
rpms_released() {
	sed -i 's/^\(Release:[[:space:]]*\)1/\12/' "$root/build/tools/rpm/libroan.spec"
	rpm_version=$(in_root rpm -q --qf '%{version}' roan-dkms) rpms_upgraded release
}

rpms_removed() {
	in_root rpm -e --nodeps libroan libroan-devel roan roan-dkms > "$log" 2>&1 || { cat "$log"; return 1; }
	nothing_left
}

ktap_header
releases=()
# Not by ktap_check: it runs a subshell, and their variables would be lost.
root_up || { ktap_fail "a root with systemd and DKMS"; ktap_end; }
log=$work/log
mount -r -t sysfs sysfs "$root/sys"
# shellcheck disable=SC2086 # a list
headers $KERNELS || { ktap_fail "headers of $KERNELS"; ktap_end; }
ktap_check "make deb" root_debs || ktap_end
ktap_check "lintian reports nothing" lint_debs '/build/build/deb/*.changes'
ktap_check "make deb of the same tree gives the same packages" same_debs
in_root ldconfig
files > "$work/before"
ktap_check "the packages install" installed
for release in "${releases[@]}"; do
	ktap_check "DKMS: the module for $release is installed" dkms_built "$release"
done
ktap_check "packages of a tree that has changed are an upgrade" upgraded
for release in "${releases[@]}"; do
	ktap_check "the newer module for $release is installed" module_is "$release" upgrade
done
ktap_check "roan runs" eval "in_root roan status | grep -q 'no roan device'"
ktap_check "roan and roan-cni run by Debian's Python" own_python
ktap_check "roan(8): commands, files" manuals /usr/share/man/man8/roan.8.gz 8 'roan add IF' 'roan vm' /etc/roan/IF.conf 'device=roan0'
ktap_check "roan(4): parameters" manuals /usr/share/man/man4/roan.4.gz 4 answer_rxe rpg_ai_rate pfc_prio_mask
ktap_check "roan(7)" manuals /usr/share/man/man7/roan.7.gz 7 ROAN_CC
ktap_check "completion: each command" every_command_completes
ktap_check "completion: cc" completes "set show" cc ""
ktap_check "completion: options" completes "--name --set" add lo --
ktap_check "completion: interfaces" completes "lo" add l
ktap_check "completion: roan vm" completes "--hosts" vm --ho
ktap_check "the units are valid" in_root systemd-analyze verify roan-link@lo.service roan-exporter.service
ktap_check "the exporter is not enabled" eval "in_root systemctl is-enabled roan-exporter.service | grep -qx disabled"
ktap_check "udev: an interface without a file wants no unit" eval "! wanted"
mkdir -p "$root/etc/roan" && echo device=roan0 > "$root/etc/roan/lo.conf"
ktap_check "udev: an interface with a file wants its unit" wanted
ktap_check "the exporter is enabled" exporter_enabled
if [ "${#releases[@]}" != 0 ]; then
	ktap_check "DKMS passes over a kernel without HMM_MIRROR" passed_over /CONFIG_HMM_MIRROR=/d
	ktap_check "DKMS passes over a real-time kernel without its lock of softirqs" passed_over '$a# CONFIG_PREEMPT_RT_NEEDS_BH_LOCK is not set'
	ktap_check "make install beside roan-dkms is refused" one_module install "apt purge roan-dkms"
	ktap_check "the package of the module alone beside roan-dkms is refused" modules_conflict
fi
ktap_check "the documented purge leaves no file" removed
ktap_check "a module in a folder of another distribution's DKMS is seen" folders
if [ "${#releases[@]}" != 0 ]; then
	ktap_check "make install, then make uninstall: no file is left" from_the_tree
	ktap_check "make dkms, then make uninstall: no file is left, and DKMS goes on" dkms_from_the_tree
fi
cp -a "$REPO"/{Kbuild,kernel} "$root/build"
ktap_check "rpm: rpmbuild" rpms_built || ktap_end
ktap_check "rpm: rpmlint reports nothing" lint_rpms
ktap_check "rpm: the packages install, each file as packaged" rpms_installed
[ "${#releases[@]}" = 0 ] || ktap_check "rpm: DKMS: the module for ${releases[0]} is installed" dkms_built "${releases[0]}"
ktap_check "rpm: roan runs" eval "in_root roan status | grep -q 'no roan device'"
ktap_check "rpm: a higher version is installed, with its module" rpms_upgraded version
ktap_check "rpm: a higher release of this version, too" rpms_released
ktap_check "rpm: the exporter is enabled" exporter_enabled
ktap_check "rpm: removal leaves no file" rpms_removed
ktap_end
