#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Packets that are cut, corrupt, spoofed, or make no sense: packets.py sends them and says what must come of each. What a CNP
# does to the rate of its queue pair, and what there is to see of it, is cnp_reaction.py's.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/python.sh"
. "$HERE/raw_peer.sh"

ktap_header
alone_up packets
on h2 ip addr add 10.7.0.22/24 dev v2 && on h2 ip addr add fd07::22/64 dev v2 nodad
echo 100000 > "/sys/class/infiniband/$H2DEV/ports/1/cc_param/min_time_between_cnps"
python_runs cnp_reaction 300 on h2
alone packets
