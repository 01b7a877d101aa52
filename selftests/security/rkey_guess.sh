#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A forger guesses the R_Key of another user's region: rkey_guess.py says what it knows and what must hold.
#
#	h1: v1, the forger's raw socket ======== v2 roan2 :h2	the victim's QP and region, and the forger's own region
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
NET=$REPO/selftests/net/packets
. "$NET/python.sh"
. "$NET/raw_peer.sh"
export PYTHONPATH=$NET

ktap_header
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing 2> /dev/null || true
alone_up rkey_guess
alone rkey_guess
