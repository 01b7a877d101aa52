#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Priority flow control: pause frames stop a priority and nothing else, for as long as they may and no longer. pfc.py sends them.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/python.sh"
. "$HERE/raw_peer.sh"

ktap_header
alone_up pfc
alone pfc
