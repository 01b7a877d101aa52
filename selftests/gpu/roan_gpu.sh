#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Output of `roan gpu` for machines with GPUs. Each machine is a small tree of files that imitates its /sys, /proc and
# /boot. Needs no GPU, no module and no root.
. "$(dirname "$(readlink -f "$0")")/../vm/lib.sh"
ROAN_ROOT=$(mktemp -d)
trap 'rm -rf "$ROAN_ROOT"' EXIT
export ROAN_ROOT

put() { mkdir -p "$ROAN_ROOT/${1%/*}" && printf '%s\n' "$2" > "$ROAN_ROOT/$1"; }
module() { mkdir -p "$ROAN_ROOT/sys/module/$1"; }
machine() { rm -rf "${ROAN_ROOT:?}"/* && mkdir -p "$ROAN_ROOT/sys/bus/pci/devices" && for m; do module "$m"; done; }

# Creates the files of a card with two BARs: 256 MiB of memory (or the given size, in hexadecimal) and 16 MiB of
# registers.
card() { # SLOT VENDOR CLASS DRIVER [BAR 0's LAST BYTE]
	local d=sys/bus/pci/devices/0000:$1
	put "$d/vendor" "$2"; put "$d/device" 0x1234; put "$d/class" "$3"
	put "$d/resource" "0x0000001000000000 0x00000010${5:-0fffffff} 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x00000000f0000000 0x00000000f0ffffff 0x0000000000040200
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x0000000000000000 0x0000000000000000 0x0000000000000000"
	[ -z "$4" ] || ln -s "../../drivers/$4" "$ROAN_ROOT/$d/driver"
}

nvidia() { # FLAVOUR
	card 01:00.0 0x10de 0x030000 nvidia
	case $1 in
	open) put proc/driver/nvidia/version "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build" ;;
	*) put proc/driver/nvidia/version "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023" ;;
	esac
}

roan_on() { # DEVICE NETDEV [SLOT: what the interface sits on]
	put "sys/class/infiniband/$1/ports/1/gid_attrs/ndevs/0" "$2"
	mkdir -p "$ROAN_ROOT/sys/class/infiniband/$1/ports/1/cc_param" "$ROAN_ROOT/sys/class/net/$2"
	[ -z "${3:-}" ] || { mkdir -p "$ROAN_ROOT/sys/devices/pci0000:00/$3" && ln -s "../../../devices/pci0000:00/$3" "$ROAN_ROOT/sys/class/net/$2/device"; }
}

config() { put "boot/config-$(uname -r)" "$(printf '%s\n' "$@")"; }

says() { # EXPRESSION...: each matches a line of the output; "!EXPRESSION": no line matches
	local want out
	out=$("$REPO/tools/roan" gpu 2>&1) || { echo "$out"; return 1; }
	for want; do
		if [ "${want#!}" != "$want" ]; then ! grep -Eq -- "${want#!}" <<< "$out"; else grep -Eq -- "$want" <<< "$out"; fi ||
			{ echo "wanted: $want"; echo "$out"; return 1; }
	done
}

ktap_header
machine roan
ktap_check "no GPU" says '^no GPU here$'
card 00:02.0 0x8086 0x020000 e1000e && card 03:00.1 0x10de 0x040300 snd_hda_intel
ktap_check "neither network cards nor a GPU's sound are GPUs" says '^no GPU here$'

machine && nvidia open
ktap_check "without roan there is no path" says '^0000:01:00.0: NVIDIA 1234, driver nvidia: none$' '^    roan is not loaded$'
module roan
ktap_check "NVIDIA without roan_peermem" says ': none$' 'driver 550.54.14, the open flavour: .*EOPNOTSUPP' 'roan_peermem is not loaded'
put sys/kernel/mm/memory_peers/nv_mem/version 550.54.14
ktap_check "the client belongs to another stack" says ': none$' 'nv_mem is the client of another RDMA stack'
machine roan roan_peermem && nvidia closed
ktap_check "NVIDIA without its client" says ': none$' 'driver 535.129.03, the closed flavour' 'nvidia-peermem is not loaded'
module nvidia_peermem
ktap_check "its client was built without the peer-memory interface" says ': none$' 'built anew with roan_peermem.s Module.symvers'
put sys/kernel/mm/memory_peers/nv_mem/version 535.129.03
roan_on roan0 veth0
ktap_check "its client accepts no adapter of this machine" says ': none$' 'roan0 is on no PCI adapter'
roan_on roan1 eth1 0000:05:00.0
ktap_check "peer client" says ': peer client nv_mem$' 'roan0 is on no PCI adapter' '!roan1' 'the CPU reaches 256 MiB \(BAR 0\)'

machine roan && card 03:00.0 0x1002 0x030000 amdgpu
ktap_check "AMD: dma-buf, the kernel configuration is not available" says '^0000:03:00.0: AMD 1234, driver amdgpu: dma-buf$' '/boot has no configuration'
config CONFIG_PCI_P2PDMA=y '# CONFIG_DMABUF_MOVE_NOTIFY is not set'
ktap_check "a missing kernel option is named" says 'CONFIG_DMABUF_MOVE_NOTIFY is not set' '!CONFIG_PCI_P2PDMA'
config CONFIG_PCI_P2PDMA=y CONFIG_DMABUF_MOVE_NOTIFY=y
put sys/bus/pci/devices/0000:03:00.0/mem_info_vram_total $((16 << 30))
put sys/bus/pci/devices/0000:03:00.0/mem_info_vis_vram_total $((256 << 20))
put sys/bus/pci/devices/0000:03:00.0/resource0_resize 0000000000007f00
ktap_check "a BAR that shows a part of the memory" says ': dma-buf$' 'memory: 16 GiB, the CPU reaches 256 MiB' \
	'BAR 0 could be 16 GiB: resizable BAR' '!CONFIG'
rm "$ROAN_ROOT/sys/bus/pci/devices/0000:03:00.0/resource"
card 03:00.0 0x1002 0x030000 '' && sed -i '1s/.*/0x0000001000000000 0x00000013ffffffff 0x14220c/' "$ROAN_ROOT/sys/bus/pci/devices/0000:03:00.0/resource"
put sys/bus/pci/devices/0000:03:00.0/mem_info_vis_vram_total $((16 << 30))
ktap_check "a BAR that shows all of it" says 'memory: 16 GiB, all of it' '!could be'

machine roan && card 03:00.0 0x1002 0x038000 vfio-pci && card 04:00.0 0x8086 0x030000 xe && card 05:00.0 0x1da3 0x120000 habanalabs &&
	card 06:00.0 0x10de 0x030200 ''
ktap_check "each card of several by its own driver" says '03:00.0: AMD 1234, driver vfio-pci: none$' '04:00.0: Intel 1234, driver xe: dma-buf$' \
	'05:00.0: Habana 1234, driver habanalabs: none$' '06:00.0: NVIDIA 1234, driver none: none$' 'no driver is bound'
ktap_end
