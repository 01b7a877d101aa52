#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# `roan doctor`: each fault that is seeded is found, with its code and no other; healthy set-ups have none. NICS=e1000e:
# the two hosts are connected by emulated adapters; else some cases are skipped. doctor_faults.py has the table of this
# host's faults, doctor_lldp.py those of a switch, doctor_peer.py those of the way to a peer.
#
#	first namespace: lo, a veth, a bridge, a VLAN; container c0 (shared RDMA namespaces)
#	then, exclusive:	h1 roan1 on v1 ==== v2 roan2 in h2: `roan doctor --listen`
# shellcheck source=selftests/vm/lib.sh
. "$REPO/selftests/vm/lib.sh"
modprobe -q -a ib_core ib_uverbs rdma_cm rdma_ucm nf_tables nft_ct nf_conntrack cls_u32 act_pedit act_csum sch_ingress dummy
ktap_header
python3 "$REPO/selftests/tools/doctor_faults.py" > /tmp/faults 2>&1
ktap_relay /tmp/faults "doctor_faults.py" $?
ktap_end
