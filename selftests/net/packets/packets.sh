#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Truncated, corrupt, spoofed and invalid packets: packets.py sends them and checks the effect of each. cnp_reaction.py
# checks what a CNP does to a QP's rate, and how that is shown; source_port.py the UDP source ports of QPs.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/python.sh"
. "$HERE/raw_peer.sh"

ktap_header
alone_up packets
on h2 ip addr add 10.7.0.22/24 dev v2 && on h2 ip addr add fd07::22/64 dev v2 nodad
echo 100000 > "/sys/class/infiniband/$H2DEV/ports/1/cc_param/min_time_between_cnps"
python_runs cnp_reaction 300 on h2
python_runs source_port 300 on h2
alone packets
