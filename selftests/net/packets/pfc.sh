#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Priority flow control: a pause frame stops its priority only, and for its time only. pfc.py has the cases.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../../vm/lib.sh"
. "$HERE/python.sh"
. "$HERE/raw_peer.sh"

ktap_header
alone_up pfc
alone pfc
